//! Addresses on the command line, and the names that are given to them.

use std::net::IpAddr;
use std::str::FromStr;

use axum::http::Uri;
use ipnet::IpNet;

/// The address under which readers reach the page, when something in front of dq-board has another
/// one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicUrl {
    /// As browsers say it: `https://board.example`.
    pub origin: String,
    /// Without the port.
    pub host: String,
    /// `/`, or `/dq/`.
    pub path: String,
}

impl FromStr for PublicUrl {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<PublicUrl, &'static str> {
        const WRONG: &str = "must be http://name[:port][/path] or https://…";
        let url: Uri = text.parse().map_err(|_| WRONG)?;
        let (Some(scheme), Some(authority)) = (url.scheme_str(), url.authority()) else {
            return Err(WRONG);
        };
        let port = match (scheme, authority.port_u16()) {
            ("http", None | Some(80)) | ("https", None | Some(443)) => String::new(),
            ("http" | "https", Some(port)) => format!(":{port}"),
            _ => return Err(WRONG),
        };
        if url.query().is_some() || authority.as_str().contains('@') {
            return Err(WRONG);
        }
        let host = authority.host().to_ascii_lowercase();
        let path = format!("{}/", url.path().trim_end_matches('/'));
        Ok(PublicUrl { origin: format!("{scheme}://{host}{port}"), host, path })
    }
}

/// Names that can be a part of a path and a label as they are.
const NAME_MAX: usize = 40;

/// `NAME=ADDRESS`, or an address without a name. An address has a `:` or a `.` before anything that
/// could be a password with a `=` in it, and a name has neither.
pub fn named(text: &str) -> (Option<&str>, &str) {
    let is_name = |name: &str| {
        !name.is_empty()
            && name.len() <= NAME_MAX
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    match text.split_once('=') {
        Some((name, address)) if is_name(name) => (Some(name), address),
        _ => (None, text),
    }
}

/// An address, or a network of them.
pub fn network(text: &str) -> Result<IpNet, &'static str> {
    let address = text.parse::<IpAddr>().map(IpNet::from);
    address
        .or_else(|_| text.parse())
        .map_err(|_| "must be an address or a network, such as 10.0.0.0/8")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_public_url_is_an_origin_and_a_path() {
        let url =
            |text: &str| text.parse::<PublicUrl>().map(|url| (url.origin, url.host, url.path));
        let told =
            |origin: &str, host: &str, path: &str| Ok((origin.into(), host.into(), path.into()));
        assert_eq!(
            url("https://Board.example"),
            told("https://board.example", "board.example", "/")
        );
        assert_eq!(url("https://b.example:443/dq"), told("https://b.example", "b.example", "/dq/"));
        assert_eq!(
            url("http://b.example:8080/a/b/"),
            told("http://b.example:8080", "b.example", "/a/b/")
        );
        for wrong in [
            "b.example",
            "ftp://b.example",
            "https://b.example/?a",
            "https://ann@b.example",
            "/dq",
            "",
        ] {
            assert!(url(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_password_with_an_equals_sign_is_no_name() {
        for (text, name, address) in [
            ("eu=redis://h:1", Some("eu"), "redis://h:1"),
            ("eu_2-b=redis://:a=b@h", Some("eu_2-b"), "redis://:a=b@h"),
            ("redis://:a=b@h", None, "redis://:a=b@h"),
            ("unix:///run/a=b.sock", None, "unix:///run/a=b.sock"),
            ("a b=redis://h", None, "a b=redis://h"),
            ("=redis://h", None, "=redis://h"),
            ("redis://h", None, "redis://h"),
            ("eu=10.0.0.1:26379", Some("eu"), "10.0.0.1:26379"),
        ] {
            assert_eq!(named(text), (name, address), "{text}");
        }
        assert_eq!(named(&format!("{}=redis://h", "x".repeat(41))).0, None);
    }

    #[test]
    fn an_address_is_a_network_of_one() {
        assert_eq!(network("10.1.2.3").unwrap().to_string(), "10.1.2.3/32");
        assert_eq!(network("fd00::/8").unwrap().to_string(), "fd00::/8");
        assert!(network("proxy.example").is_err());
    }
}
