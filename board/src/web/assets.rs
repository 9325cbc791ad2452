//! Style, script and icon: part of the program, so that it needs no other host and no folder.

use axum::http::header;
use axum::response::IntoResponse;

const STYLE: &str = include_str!("../../assets/board.css");
const SCRIPT: &str = include_str!("../../assets/board.js");
const CHARTS_STYLE: &str = include_str!("../../assets/charts.css");
const CHARTS_SCRIPT: &str = include_str!("../../assets/charts.js");
const ICON: &str = include_str!("../../assets/icon.svg");

pub async fn style() -> impl IntoResponse {
    asset("text/css; charset=utf-8", STYLE)
}

pub async fn script() -> impl IntoResponse {
    asset("text/javascript; charset=utf-8", SCRIPT)
}

pub async fn charts_style() -> impl IntoResponse {
    asset("text/css; charset=utf-8", CHARTS_STYLE)
}

pub async fn charts_script() -> impl IntoResponse {
    asset("text/javascript; charset=utf-8", CHARTS_SCRIPT)
}

pub async fn icon() -> impl IntoResponse {
    asset("image/svg+xml", ICON)
}

fn asset(kind: &'static str, text: &'static str) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, kind)], text)
}
