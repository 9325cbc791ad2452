//! Who is let in, and the headers that keep a page to itself.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use axum::extract::{Request, State};
use axum::http::{header, HeaderMap, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::Extension;
use base64::engine::general_purpose::STANDARD;
use base64::Engine;
use subtle::ConstantTimeEq;

use super::guesses::Guesses;
use super::{App, Board};
use crate::args::{Args, Verb};
use crate::bytes::Shown;
use crate::serve::Peer;

/// Nothing from elsewhere, no inline script or style, no framing; strings don't become markup.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
    connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; \
    require-trusted-types-for 'script'; trusted-types board";

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reader {
    /// As [`Shown`]; empty where nobody is asked for a name.
    pub name: String,
    pub address: IpAddr,
}

pub struct Guard {
    /// `user:password`.
    auth: Option<String>,
    /// What those may do who are let in.
    verbs: Vec<Verb>,
    guesses: Guesses,
    hosts: Vec<String>,
    is_any_host_right: bool,
}

impl Guard {
    pub fn new(args: &Args) -> Guard {
        let mut hosts = vec!["localhost".to_string()];
        hosts.extend(args.host.iter().map(|host| host.to_ascii_lowercase()));
        hosts.extend(args.public_url.iter().map(|url| url.host.clone()));
        // A page that asks for a password, or that was opened to all, has nothing to fear from
        // names.
        let is_any_host_right =
            (args.auth.is_some() || args.no_auth || args.metrics_only) && args.host.is_empty();
        let (auth, verbs) = (args.auth.clone(), args.verbs());
        Guard { auth, verbs, guesses: Guesses::default(), hosts, is_any_host_right }
    }

    /// The reader and what they may do, or what they are told instead.
    fn check(
        &self,
        address: IpAddr,
        headers: &HeaderMap,
        now: Instant,
    ) -> Result<(Reader, Vec<Verb>), Box<Response>> {
        let Some(right) = self.auth.as_ref() else {
            return Ok((Reader { name: String::new(), address }, self.verbs.clone()));
        };
        let Some(given) = credentials(headers) else { return Err(ask()) };
        if let Some(wait) = self.guesses.wait(address, now) {
            let wait = [(header::RETRY_AFTER, wait.as_secs_f64().ceil().to_string())];
            let why = "too many wrong passwords came from your address: wait a minute\n";
            return Err((StatusCode::TOO_MANY_REQUESTS, wait, why).into_response().into());
        }
        let name = Shown(given.split(|byte| *byte == b':').next().unwrap_or_default()).to_string();
        if given.ct_eq(right.as_bytes()).into() {
            self.guesses.was_right(address);
            return Ok((Reader { name, address }, self.verbs.clone()));
        }
        self.guesses.was_wrong(address, now);
        tracing::warn!(from = %address, user = name, "a wrong name or password");
        Err(ask())
    }

    /// A web site can have its own name point to this address, and its scripts may then read what
    /// is served here: unless the page answers to no such name.
    fn is_meant(&self, headers: &HeaderMap) -> bool {
        if self.is_any_host_right {
            return true;
        }
        let host =
            headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
        let name = name_of(host).to_ascii_lowercase();
        name.parse::<IpAddr>().is_ok() || self.hosts.contains(&name)
    }
}

/// What the reader gave, `user:password`. None when there is nothing of that kind.
fn credentials(headers: &HeaderMap) -> Option<Vec<u8>> {
    let (scheme, coded) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    let coded = Some(coded.trim()).filter(|_| scheme.eq_ignore_ascii_case("basic"));
    Some(STANDARD.decode(coded?).unwrap_or_default())
}

fn ask() -> Box<Response> {
    let ask = [(header::WWW_AUTHENTICATE, "Basic realm=\"dq-board\", charset=\"UTF-8\"")];
    (StatusCode::UNAUTHORIZED, ask, "a name and a password are needed\n").into_response().into()
}

/// The name in a Host header, without the port and an IPv6 address's brackets.
fn name_of(host: &str) -> &str {
    if let Some((address, _)) = host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return address;
    }
    host.split_once(':').map_or(host, |(name, _)| name)
}

/// A request that comes further has what it is answered from: the reader's own [`App`].
pub async fn let_in(
    State(board): State<Arc<Board>>,
    Extension(Peer(peer)): Extension<Peer>,
    mut request: Request,
    next: Next,
) -> Response {
    if !board.guard.is_meant(request.headers()) {
        let why = "dq-board isn't called by this name: see --host\n";
        return (StatusCode::MISDIRECTED_REQUEST, why).into_response();
    }
    let address = board.proxies.reader(peer, request.headers());
    let (reader, verbs) = match board.guard.check(address, request.headers(), Instant::now()) {
        Ok(known) => known,
        Err(answer) => return *answer,
    };
    request.extensions_mut().insert(Arc::new(App::new(board, reader, verbs)));
    next.run(request).await
}

/// The headers of every answer.
pub async fn seal(mut response: Response) -> Response {
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "same-origin"),
        (header::CACHE_CONTROL, "no-store"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    for (name, value) in [
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
        ("permissions-policy", "camera=(), geolocation=(), microphone=()"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    fn guard(line: &str) -> Guard {
        Guard::new(
            &Args::try_parse_from(["dq-board"].into_iter().chain(line.split_whitespace())).unwrap(),
        )
    }

    fn headers(name: header::HeaderName, value: &str) -> HeaderMap {
        [(name, HeaderValue::from_str(value).unwrap())].into_iter().collect()
    }

    #[test]
    fn a_web_site_s_own_name_is_refused() {
        let is_meant = |line: &str, host: &str| guard(line).is_meant(&headers(header::HOST, host));
        for host in ["127.0.0.1:8377", "localhost:8377", "LOCALHOST", "[::1]:8377", "10.1.2.3"] {
            assert!(is_meant("", host), "{host}");
        }
        for host in ["evil.example:8377", "localhost.evil.example", "127.0.0.1.evil.example", ""] {
            assert!(!is_meant("", host), "{host}");
        }
        assert!(is_meant("--host Board.example", "board.example:80"));
        assert!(!is_meant("--host board.example", "evil.example"));
        assert!(is_meant("--auth a:b", "board.example"));
        assert!(!guard("").is_meant(&HeaderMap::new()));
    }

    #[test]
    fn a_request_without_the_password_is_refused() {
        let reader = IpAddr::from([10, 0, 0, 1]);
        let told = |guard: &Guard, headers: &HeaderMap| {
            guard
                .check(reader, headers, Instant::now())
                .err()
                .map(|answer| answer.status().as_u16())
        };
        assert_eq!(told(&guard(""), &HeaderMap::new()), None);
        let guard = guard("--auth ann:secret");
        assert_eq!(told(&guard, &HeaderMap::new()), Some(401));
        let given = |given: &str| told(&guard, &headers(header::AUTHORIZATION, given));
        for right in ["Basic YW5uOnNlY3JldA==", "basic YW5uOnNlY3JldA==", "BASIC  YW5uOnNlY3JldA=="]
        {
            assert_eq!(given(right), None, "{right}");
        }
        for wrong in
            ["Basic YW5uOnNlY3JldA=", "Basic YW5uOmd1ZXNz", "Bearer YW5uOnNlY3JldA==", "Basic", ""]
        {
            assert_eq!(given(wrong), Some(401), "{wrong}");
        }
        assert!((0..20).any(|_| given("Basic YW5uOmd1ZXNz") == Some(429)));
        assert_eq!(
            given("Basic YW5uOnNlY3JldA=="),
            Some(429),
            "whoever guesses waits, also with the right one"
        );
        assert_eq!(told(&guard, &HeaderMap::new()), Some(401), "that is no guess");
    }
}
