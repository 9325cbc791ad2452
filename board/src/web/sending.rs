//! Answers of many megabytes: few are sent at a time, and each within a time, so that readers that take
//! them slowly, or not at all, don't fill the memory.

use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::http::{header, HeaderValue};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use tokio::sync::OwnedSemaphorePermit;

/// Sent in parts of so many bytes.
const PART: usize = 64 << 10;

/// An answer of these bytes, whose connection is cut when it isn't sent within this time. The place is
/// given back when they are sent, or the reader is gone.
pub fn whole(bytes: Bytes, place: OwnedSemaphorePermit, within: Duration) -> Response {
    let length = HeaderValue::from(bytes.len());
    let began = Instant::now();
    let parts = stream::try_unfold((bytes, place), move |(mut bytes, place)| async move {
        if bytes.is_empty() {
            return Ok(None);
        }
        if began.elapsed() > within {
            return Err("it was taken too slowly");
        }
        let part = bytes.split_to(PART.min(bytes.len()));
        Ok(Some((part, (bytes, place))))
    });
    ([(header::CONTENT_LENGTH, length)], Body::from_stream(parts)).into_response()
}
