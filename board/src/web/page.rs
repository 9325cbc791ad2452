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
    /// Whether it asks a reader to confirm something. Then the focus is on the page as a whole: a key
    /// that is held must not press a button.
    pub is_confirmation: bool,
}

impl Page {
    /// A page that stays as it is.
    pub fn still(title: String, main: Markup) -> Page {
        Page { is_live: false, ..Page::new(title, main) }
    }

    pub fn new(title: String, main: Markup) -> Page {
        Page { title, status: StatusCode::OK, main, is_live: true, is_confirmation: false }
    }

    /// What a reader is asked to confirm.
    pub fn confirmation(title: String, main: Markup) -> Page {
        Page { is_confirmation: true, ..Page::still(title, main) }
    }
}
