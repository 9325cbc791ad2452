//! Who asks, and whether a form is from here: also behind proxies.

use std::net::{IpAddr, SocketAddr};

use axum::http::{header, HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use ipnet::IpNet;
use maud::html;

use super::page::Page;
use super::{layout, App};
use crate::address::PublicUrl;
use crate::args::{Args, Verb};
use crate::bytes::Fields;

/// What is in front of dq-board, and says truly who asks.
pub struct Proxies(Vec<IpNet>);

impl Proxies {
    pub fn new(args: &Args) -> Proxies {
        Proxies(args.trusted_proxy.clone())
    }

    pub fn has(&self, peer: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(&peer))
    }

    /// The last address that none of them has. Each proxy adds whom it was asked by at the end of
    /// X-Forwarded-For; what stands before that anybody may have written.
    pub fn reader(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let lines =
            headers.get_all("x-forwarded-for").into_iter().filter_map(|line| line.to_str().ok());
        let words: Vec<&str> = lines.flat_map(|line| line.split(',')).collect();
        let mut reader = peer;
        for word in words.into_iter().rev() {
            if !self.has(reader) {
                break;
            }
            let Some(before) = address(word.trim()) else { break };
            reader = before;
        }
        reader
    }
}

fn address(word: &str) -> Option<IpAddr> {
    let bare = word.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(word);
    let with_port = || word.parse::<SocketAddr>().map(|address| address.ip());
    bare.parse::<IpAddr>().or_else(|_| with_port()).ok().map(|address| address.to_canonical())
}

/// A form of ours, from a reader who may do this; else what the reader is told, and the log.
pub fn posted(
    app: &App,
    headers: &HeaderMap,
    fields: &Fields,
    verb: &[u8],
) -> Result<Verb, Box<Response>> {
    let refused = |logged: &str, why: &'static str| {
        app.board.actions.refuse(app, verb, fields, logged);
        Err(Box::new((StatusCode::FORBIDDEN, why).into_response()))
    };
    let is_own = is_own_form(headers, app.board.public_url.as_ref());
    match Verb::named(verb).filter(|verb| app.may(*verb)) {
        None => refused("no right to do that", "you may not do that here\n"),
        Some(_) if !is_own || !app.forms.made(fields.text("token"), &app.reader) => refused(
            "not from a form of this page",
            "this didn't come from a form of this page: reload it\n",
        ),
        Some(verb) => Ok(verb),
    }
}

/// A page that asks a reader to confirm something, from a reader who may do it. A link of another
/// site doesn't lead there: nothing should stand between a reader and a button that the reader didn't
/// ask for. A browser says where it comes from; an address that a person typed comes from nowhere.
pub fn opened_here(
    app: &App,
    headers: &HeaderMap,
    fields: &Fields,
    verb: Verb,
    queue: &[u8],
) -> Result<(), Box<Response>> {
    let refused = |logged: &str, told: &str| {
        app.board.actions.refuse(app, verb.name().as_bytes(), fields, logged);
        let main = html! {
            p.banner role="alert" { (told) }
            p { a href=(layout::queue_link(queue)) { "To the queue" } }
        };
        let page = Page { status: StatusCode::FORBIDDEN, ..Page::still("Refused".into(), main) };
        Err(Box::new(layout::answer(app, &page, None)))
    };
    if !app.may(verb) {
        return refused("no right to do that", "You may not do that here.");
    }
    let site = headers.get("sec-fetch-site").map(|site| site.as_bytes());
    if !matches!(site, None | Some(b"same-origin" | b"none")) {
        let told =
            "Another site led here. What is to be confirmed is opened from a page of dq-board.";
        return refused("a link of another site", told);
    }
    Ok(())
}

/// Whether the browser, if it says where a form was, says that it was on a page from here. A
/// browser that knows the page by a safe address says so by itself; another one says which origin
/// the page had.
fn is_own_form(headers: &HeaderMap, public_url: Option<&PublicUrl>) -> bool {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(site) = text("sec-fetch-site") {
        return site == "same-origin";
    }
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    text("origin").is_none_or(|origin| {
        let is_asked_host = origin.split_once("://").is_some_and(|(_, name)| Some(name) == host);
        is_asked_host || public_url.is_some_and(|url| url.origin == origin)
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    fn headers(all: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in all {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn only_a_trusted_proxy_may_name_the_client_address() {
        let reader = |line: &str, peer: &str, said: &[&str]| {
            let args =
                Args::try_parse_from(["dq-board"].into_iter().chain(line.split_whitespace()))
                    .unwrap();
            let said: Vec<_> = said.iter().map(|said| ("x-forwarded-for", *said)).collect();
            let all = headers(&said);
            Proxies::new(&args).reader(peer.parse().unwrap(), &all).to_string()
        };
        let proxy = "--trusted-proxy 10.0.0.1";
        assert_eq!(reader("", "10.0.0.1", &["9.9.9.9"]), "10.0.0.1");
        assert_eq!(reader(proxy, "10.0.0.2", &["9.9.9.9"]), "10.0.0.2");
        assert_eq!(reader(proxy, "10.0.0.1", &[]), "10.0.0.1");
        assert_eq!(reader(proxy, "10.0.0.1", &["1.1.1.1, 9.9.9.9"]), "9.9.9.9");
        assert_eq!(reader(proxy, "10.0.0.1", &["1.1.1.1", "9.9.9.9:80"]), "9.9.9.9");
        assert_eq!(reader(proxy, "10.0.0.1", &["1.1.1.1, nonsense"]), "10.0.0.1");
        assert_eq!(
            reader("--trusted-proxy 10.0.0.0/8", "10.0.0.1", &["8.8.8.8, [2001:db8::1], 10.9.9.9"]),
            "2001:db8::1"
        );
    }

    #[test]
    fn a_form_of_another_origin_is_refused() {
        let url: PublicUrl = "https://board.example/dq/".parse().unwrap();
        let is_own = |all: &[(&'static str, &str)]| is_own_form(&headers(all), Some(&url));
        let here = ("host", "127.0.0.1:8377");
        assert!(is_own(&[here]), "no browser");
        assert!(is_own(&[here, ("origin", "http://127.0.0.1:8377")]));
        assert!(is_own(&[here, ("origin", "https://board.example")]));
        assert!(is_own(&[
            here,
            ("origin", "https://other.example"),
            ("sec-fetch-site", "same-origin")
        ]));
        for origin in
            ["https://evil.example", "http://board.example", "https://board.example:81", "null", ""]
        {
            assert!(!is_own(&[here, ("origin", origin)]), "{origin}");
        }
        for site in ["cross-site", "same-site", "none"] {
            assert!(
                !is_own(&[here, ("origin", "http://127.0.0.1:8377"), ("sec-fetch-site", site)]),
                "{site}"
            );
        }
    }
}
