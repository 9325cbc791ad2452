//! Who is let in, and the headers that keep a page to itself.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{header, HeaderMap, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use base64::engine::general_purpose::STANDARD;
use base64::Engine;
use subtle::ConstantTimeEq;

use super::App;
use crate::args::Args;

/// Nothing from elsewhere, no inline script or style, no framing; strings don't become markup.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
    connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; \
    require-trusted-types-for 'script'; trusted-types board";

pub struct Guard {
    /// What the Authorization header must be.
    authorization: Option<String>,
    hosts: Vec<String>,
    is_any_host_right: bool,
}

impl Guard {
    pub fn new(args: &Args) -> Guard {
        let authorization = args.auth.as_ref().map(|auth| format!("Basic {}", STANDARD.encode(auth)));
        let mut hosts = vec!["localhost".to_string()];
        hosts.extend(args.host.iter().map(|host| host.to_ascii_lowercase()));
        // A page that asks for a password, or that was opened to all, has nothing to fear from names.
        let is_any_host_right =
            (args.auth.is_some() || args.no_auth || args.metrics_only) && args.host.is_empty();
        Guard { authorization, hosts, is_any_host_right }
    }

    /// Who asks, for the log: anybody whom this lets in and who gave a name, gave the one there is.
    pub fn user(&self, headers: &HeaderMap) -> String {
        let given = headers.get(header::AUTHORIZATION).filter(|_| self.authorization.is_some());
        let coded = given.and_then(|given| given.as_bytes().strip_prefix(b"Basic "));
        let plain = coded.and_then(|coded| STANDARD.decode(coded).ok()).unwrap_or_default();
        let name = plain.split(|byte| *byte == b':').next().unwrap_or_default();
        crate::bytes::Shown(name).to_string()
    }

    fn knows(&self, headers: &HeaderMap) -> bool {
        let Some(right) = &self.authorization else { return true };
        let given = headers.get(header::AUTHORIZATION).map(HeaderValue::as_bytes).unwrap_or_default();
        given.ct_eq(right.as_bytes()).into()
    }

    /// A web site can have its own name point to this address, and its scripts may then read what is
    /// served here: unless the page answers to no such name.
    fn is_meant(&self, headers: &HeaderMap) -> bool {
        if self.is_any_host_right {
            return true;
        }
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
        let name = name_of(host).to_ascii_lowercase();
        name.parse::<IpAddr>().is_ok() || self.hosts.contains(&name)
    }
}

/// The name in a Host header, without the port and an IPv6 address's brackets.
fn name_of(host: &str) -> &str {
    if let Some((address, _)) = host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return address;
    }
    host.split_once(':').map_or(host, |(name, _)| name)
}

pub async fn let_in(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    if !app.guard.is_meant(request.headers()) {
        let why = "dq-board isn't called by this name: see --host\n";
        return (StatusCode::MISDIRECTED_REQUEST, why).into_response();
    }
    if !app.guard.knows(request.headers()) {
        let ask = [(header::WWW_AUTHENTICATE, "Basic realm=\"dq-board\", charset=\"UTF-8\"")];
        return (StatusCode::UNAUTHORIZED, ask, "a name and a password are needed\n").into_response();
    }
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
        Guard::new(&Args::try_parse_from(["dq-board"].into_iter().chain(line.split_whitespace())).unwrap())
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
    fn the_password_is_asked_for() {
        let knows = |line: &str, given: &str| guard(line).knows(&headers(header::AUTHORIZATION, given));
        assert!(guard("").knows(&HeaderMap::new()));
        assert!(!guard("--auth ann:secret").knows(&HeaderMap::new()));
        assert!(knows("--auth ann:secret", "Basic YW5uOnNlY3JldA=="));
        assert!(!knows("--auth ann:secret", "Basic YW5uOnNlY3JldA="));
        assert!(!knows("--auth ann:secret", "Basic YW5uOmd1ZXNz"));
    }
}
