//! A page before it has anything around it.

use axum::http::StatusCode;
use maud::Markup;

/// The main part of a page.
pub struct Page {
    pub title: String,
    pub status: StatusCode,
    pub main: Markup,
    /// Whether it has a stream.
    pub is_live: bool,
}

impl Page {
    /// A page that stays as it is.
    pub fn still(title: String, main: Markup) -> Page {
        Page { is_live: false, ..Page::new(title, main) }
    }

    pub fn new(title: String, main: Markup) -> Page {
        Page { title, status: StatusCode::OK, main, is_live: true }
    }
}
