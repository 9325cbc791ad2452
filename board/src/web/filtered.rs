//! Those jobs of a state that fit a filter, or have another order; and above all jobs of a state:
//! the field for such a search.

use maud::{html, Markup};

use super::choice::{Choice, Progress};
use super::{selection, words, App};
use crate::bytes::{excerpt, Hex};
use crate::server::jobs::{page_size, Place};
use crate::server::queue::{Info, State as JobState};
use crate::server::search::{Portion, Search};
use crate::server::walk::{Mark, Order};
use crate::server::Result;

/// Looks on from where the reader is.
pub async fn read(place: &Place<'_>, choice: &Choice, from: &Progress) -> Result<Portion> {
    let search = Search { state: choice.state, order: choice.order, filter: &choice.filter };
    let most = page_size(place.info).saturating_sub(usize::try_from(from.kept).unwrap_or(0)).max(1);
    let mark = from.mark.clone().unwrap_or(Mark::first(choice.state));
    place.search(&search, mark, most).await
}

/// Above a state's jobs: a search in them, and for dead ones their order.
pub fn toolbar(queue: &[u8], choice: &Choice) -> Markup {
    let find = choice.filter.find.as_ref();
    let typed = find.and_then(|find| std::str::from_utf8(&find.text).ok()).unwrap_or_default();
    html! {
        div.toolbar {
            form.find action="queue" method="get" {
                input type="hidden" name="name.hex" value=(Hex(queue));
                (choice.without_find().hidden())
                input #find type="search" name="find" value=(typed) maxlength="500" autocomplete="off"
                    aria-label={ "Find a text in the " (choice.state.name()) " jobs" }
                    placeholder="Find a text in them"
                    title="In ids, reasons, notes, results and bodies; A to Z in either case";
                button { "Find" }
                button #find-all name="all" value="1" title="In the jobs of all states" { "In all states" }
            }
            @if choice.state == JobState::Dead {
                nav.views aria-label="Order" {
                    @for (order, name) in [(Order::Oldest, "oldest first"), (Order::Newest, "newest first")] {
                        a href=(choice.with_order(order).link(queue)) aria-current=[(choice.order == order).then_some("true")] { (name) }
                    }
                }
            }
        }
    }
}

pub fn page(
    app: &App,
    queue: &[u8],
    info: &Info,
    choice: &Choice,
    from: &Progress,
    portion: &Portion,
) -> Markup {
    let here = portion.jobs.len() as u64;
    let (looked, found) = (from.looked + portion.looked, from.found + here);
    // A page of all jobs needs no more of them, and is kept up to date as it is.
    let is_full = from.kept + here >= page_size(info) as u64 || choice.filter.is_all();
    let progress = Progress { mark: portion.next.clone(), looked, found, kept: 0, page: from.page };
    html! {
        @if choice.filter.is_all() {
            p.note { "Those that died last are first." }
        } @else {
            (chosen(queue, choice))
            p #progress.note role="status" { (progress_words(choice, info, &progress)) }
        }
        (selection::table(app, queue, info, choice, &portion.jobs))
        @if found == 0 && portion.next.is_none() { p.empty { "There are none." } }
        (pager(queue, info, choice, from, progress, is_full))
    }
}

/// What is left out by the filter can be brought back.
fn chosen(queue: &[u8], choice: &Choice) -> Markup {
    html! {
        p.chosen {
            @if let Some(why) = &choice.filter.why {
                span { "Reason: " @if why.is_empty() { "none" } @else { code.reason { (excerpt(why.as_bytes(), 400)) } }
                    " " a href=(choice.with_why(None).link(queue)) { "all reasons" } }
            }
            @if let Some(find) = &choice.filter.find {
                span { "Text: " code { (excerpt(&find.text, 200)) }
                    " " a href=(choice.without_find().link(queue)) { "any text" } }
            }
        }
    }
}

fn progress_words(choice: &Choice, info: &Info, progress: &Progress) -> String {
    let (found, looked) = (words::number(progress.found), progress.looked);
    match (&progress.mark, looked) {
        (Some(_), _) => {
            let all = words::jobs_in(choice.state, info.counts.of(choice.state).max(looked));
            format!("{} of {all} looked at: {found} found so far.", words::number(looked))
        }
        (None, 1) => format!("The only {} job looked at: {found} found.", choice.state.name()),
        (None, _) => {
            format!("All {} looked at: {found} found.", words::jobs_in(choice.state, looked))
        }
    }
}

fn pager(
    queue: &[u8],
    info: &Info,
    choice: &Choice,
    from: &Progress,
    progress: Progress,
    is_full: bool,
) -> Markup {
    let kept = from.kept + progress.found - from.found;
    let next = Progress {
        kept: if is_full { 0 } else { kept },
        page: from.page + u64::from(is_full),
        ..progress
    };
    let mut fields: Vec<(&str, &[u8])> = vec![("name", queue)];
    fields.extend(choice.fields());
    html! {
        nav.pager aria-label="Pages" {
            @if from.mark.is_some() {
                a.first href=(choice.link(queue)) { "⇤ first" }
                a rel="prev" data-came-from hidden { "← previous" }
            }
            @if choice.filter.is_all() && (next.mark.is_some() || from.page > 0) {
                span { "page " (words::number(from.page + 1)) " of " (words::jobs(info.counts.of(choice.state))) }
            }
            @if next.mark.is_some() {
                @if is_full { a rel="next" href=(next.link("queue", &fields)) { "next →" } }
                // board.js follows it by itself, and keeps what is here.
                @else { a #go-on data-goes-on href=(next.link("queue", &fields)) { "look on →" } }
            }
        }
    }
}
