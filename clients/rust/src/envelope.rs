//! Headers that travel with a body, such as the context of a trace.
//!
//! ```text
//! dq:1 {"traceparent":"00-…"}\n{"to":"ann"}
//! ```
//!
//! A body with headers begins with `dq:1 `, the headers as one line of JSON, and a newline; the body
//! as the codec made it follows. A body without headers stays as it is, unless it begins with
//! `dq:1 ` by itself: then it gets empty headers, so that every body comes back as it was.

use serde_json::{Map, Value};

use crate::errors::{Error, Result};

/// Names and values, in the order in which they were given.
pub type Headers = Vec<(String, String)>;

const MARK: &[u8] = b"dq:1 ";

/// The payload of a body with its headers.
pub fn wrapped(body: Vec<u8>, headers: &[(String, String)]) -> Result<Vec<u8>> {
    if headers.is_empty() && !body.starts_with(MARK) {
        return Ok(body);
    }
    let named: Map<String, Value> =
        headers.iter().map(|(name, value)| (name.clone(), value.as_str().into())).collect();
    let mut payload = MARK.to_vec();
    payload.extend(serde_json::to_vec(&named).map_err(Error::codec)?);
    payload.push(b'\n');
    payload.extend(body);
    Ok(payload)
}

/// The body of a payload, and its headers. What only looks like an envelope is a body.
pub fn unwrapped(payload: Vec<u8>) -> (Vec<u8>, Headers) {
    match parts(&payload) {
        Some((body, headers)) => (body.to_vec(), headers),
        None => (payload, Headers::new()),
    }
}

fn parts(payload: &[u8]) -> Option<(&[u8], Headers)> {
    let rest = payload.strip_prefix(MARK)?;
    let end = rest.iter().position(|&byte| byte == b'\n')?;
    let (line, body) = (rest.get(..end)?, rest.get(end + 1..)?);
    let named: Map<String, Value> = serde_json::from_slice(line).ok()?;
    let text = |value: Value| match value {
        Value::String(text) => text,
        other => other.to_string(),
    };
    Some((body, named.into_iter().map(|(name, value)| (name, text(value))).collect()))
}
