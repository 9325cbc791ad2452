//! The jobs of a group, or those in any state in which a text is found. DQ finds none of these, so a
//! page looks at all jobs of the queue, for half a second at a time, and says where to go on.

use maud::{html, Markup};

use super::{forms, groups, layout, list, words, App};
use crate::bytes::{excerpt, link, Fields, Shown};
use crate::server::job::Job;
use crate::server::jobs::{Found, PAGE};
use crate::server::queue::Info;
use crate::watch::now_ms;

/// What the pages before have been through.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Seen {
    /// Jobs of the queue that were looked at.
    looked: u64,
    /// Those of the group that are shown already, where this page goes on with the one before.
    kept: u64,
}

impl Seen {
    pub fn of(fields: &Fields) -> Seen {
        let number = |name: &str| fields.number(name).unwrap_or(0);
        Seen { looked: number("looked"), kept: number("kept") }
    }

    fn link(self, queue: &[u8], what: What<'_>, cursor: u64) -> String {
        let (cursor, looked, kept) =
            (cursor.to_string(), self.looked.to_string(), self.kept.to_string());
        let mut fields: Vec<(&str, &[u8])> = vec![("name", queue)];
        fields.extend(what.fields());
        fields.push(("cursor", cursor.as_bytes()));
        fields.push(("looked", looked.as_bytes()));
        fields.push(("kept", kept.as_bytes()));
        link("queue", &fields)
    }
}

/// What is looked for.
#[derive(Clone, Copy)]
pub enum What<'w> {
    Group(&'w [u8]),
    Text(&'w [u8]),
}

impl<'w> What<'w> {
    /// What an address has to say for it.
    fn fields(self) -> Vec<(&'static str, &'w [u8])> {
        match self {
            What::Group(group) => vec![("group", group)],
            What::Text(text) => vec![("find", text), ("all", b"1")],
        }
    }

    fn link(self, queue: &[u8]) -> String {
        let mut fields: Vec<(&str, &[u8])> = vec![("name", queue)];
        fields.extend(self.fields());
        link("queue", &fields)
    }
}

pub fn page(
    app: &App,
    queue: &[u8],
    info: &Info,
    what: What<'_>,
    before: &Seen,
    found: &Found,
) -> Markup {
    let kept = before.kept.saturating_add(found.jobs.len() as u64);
    let looked = before.looked.saturating_add(found.looked);
    html! {
        @match what {
            What::Group(group) => {
                p.note { "Jobs of the group " strong { (excerpt(group, 200)) } ", in any state and in no order. "
                    a href=(groups::page_link(queue, 0)) { "All groups" } }
                (forms::of_this_group(app, queue, group))
            },
            What::Text(text) => {
                p.note { "Jobs in any state in which " strong { (excerpt(text, 200)) } " is found: in their ids, reasons, notes, \
                    results and bodies. They come in no order. " a href=(layout::queue_link(queue)) { "All jobs" } }
            },
        }
        p #progress.note role="status" {
            @if found.next.is_some() {
                (words::number(looked)) " of about " (words::jobs(info.jobs.max(looked))) " of the queue looked at."
            } @else { "All jobs of the queue have been looked at." }
        }
        (table(queue, &found.jobs))
        @if kept == 0 && found.next.is_none() {
            p.empty { @if before.looked > 0 { "There are no more." } @else { @match what {
                What::Group(_) => "No job has this group.",
                What::Text(_) => "There are none.",
            } } }
        }
        (pager(queue, what, Seen { looked, kept }, found.next, before.looked > 0))
    }
}

/// It is there also when it is empty: rows come into it while the search goes on.
fn table(queue: &[u8], jobs: &[Job]) -> Markup {
    let now = now_ms();
    html! {
        table.list {
            thead { tr {
                th.id scope="col" { "id" }
                th scope="col" { "state" }
                th scope="col" { "since, or until" }
                th.text scope="col" { "reason · result · body" }
            } }
            tbody data-found { @for job in jobs { tr data-key=(Shown(&job.id)) {
                (list::name(queue, job))
                td data-label="state" { span.state.{ "is-" (job.state.name()) } { (job.state.name()) } }
                (list::time(job, list::time_heading(job.state), now))
                (list::text(job))
            } } }
        }
    }
}

/// A page that isn't full goes on by itself, where there is a script; else by its link.
fn pager(queue: &[u8], what: What<'_>, seen: Seen, next: Option<u64>, is_behind: bool) -> Markup {
    let is_full = seen.kept >= PAGE as u64;
    let next_page = Seen { kept: 0, ..seen };
    html! { @if is_behind || next.is_some() {
        nav.pager aria-label="Pages" {
            @if is_behind { a.first href=(what.link(queue)) { "⇤ first" } }
            @match next {
                Some(next) if is_full => a rel="next" href=(next_page.link(queue, what, next)) { "next →" },
                Some(next) => a #go-on data-goes-on href=(seen.link(queue, what, next)) { "look on →" },
                None => {},
            }
        }
    } }
}
