//! Where there are several servers: the way from one to another.

use std::sync::Arc;

use maud::{html, Markup};

use crate::watch::Watch;

/// From a server's page to the page of all.
const UP: &str = "../../";

/// Of a server's first page, from the page of all.
pub fn path_of(name: &str) -> String {
    format!("on/{name}/")
}

/// In the header of a server's page.
pub fn switch(servers: &[Arc<Watch>], here: &str) -> Markup {
    html! {
        @if servers.len() > 1 {
            (home(UP))
            details.servers {
                summary title="Other servers" { (here) }
                ul { @for other in servers.iter().filter(|other| other.name != here) {
                    li { a href={ (UP) (path_of(&other.name)) } { (other.name) } }
                } }
            }
        } @else {
            (home("./"))
            @if !here.is_empty() { strong { (here) } }
        }
    }
}

pub fn home(href: &str) -> Markup {
    html! { a.home href=(href) { img src="icon.svg" alt="" width="22" height="22"; "dq" } }
}
