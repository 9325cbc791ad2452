//! Why the jobs of a queue died: above its dead jobs, each reason with its count.

use maud::{html, Markup};

use super::choice::Choice;
use super::{selection, words, App};
use crate::bytes::{excerpt, Fields};
use crate::server::deaths::{Reason, Reasons, LOOK};
use crate::server::queue::Info;
use crate::watch::now_ms;

/// Reasons that are told at once; the others when they are asked for.
const AT_ONCE: usize = 8;
/// What of a pattern is shown.
const EXCERPT: usize = 300;

/// How many dead jobs to look at for their reasons, at least.
pub fn look(fields: &Fields) -> u64 {
    fields.number("look").unwrap_or(LOOK)
}

pub fn show(
    app: &App,
    queue: &[u8],
    info: &Info,
    choice: &Choice,
    reasons: &Reasons,
    look: u64,
) -> Markup {
    let of = |reason: &Reason| of(app, queue, choice, reason);
    let (first, more) = reasons.reasons.split_at(AT_ONCE.min(reasons.reasons.len()));
    let more_jobs = more.iter().map(|reason| reason.jobs).sum::<u64>() + reasons.others;
    html! {
        section #deaths.deaths aria-label="Why they died" {
            h2 { "Why they died" }
            p.note title="Numbers, addresses, ids and quoted texts count as the same: #" { (progress(queue, info, choice, reasons, look)) }
            ol.reasons { @for reason in first { (of(reason)) } }
            @if more_jobs > 0 {
                details #more-reasons { summary { (more_words(more, reasons)) ", " (words::jobs(more_jobs)) }
                    ol.reasons { @for reason in more { (of(reason)) } }
                    @if reasons.others > 0 {
                        p.note { (words::jobs(reasons.others)) " of other reasons: too many different ones to list. Find a text in them." }
                    }
                }
            }
        }
    }
}

fn more_words(more: &[Reason], reasons: &Reasons) -> String {
    let at_least = if reasons.others > 0 { "more than " } else { "" };
    let many = more.len() as u64;
    format!(
        "{at_least}{} more {}",
        words::number(many),
        if many == 1 { "reason" } else { "reasons" }
    )
}

fn of(app: &App, queue: &[u8], choice: &Choice, reason: &Reason) -> Markup {
    let pattern = reason.pattern.as_bytes();
    let its = choice.with_why(Some(&reason.pattern));
    let jobs = format!("{} of “{}”", words::jobs(reason.jobs), excerpt(pattern, 100));
    html! {
        li data-key={ "why " (excerpt(pattern, 400)) } {
            span.count { (words::number(reason.jobs)) }
            a href=(its.link(queue)) {
                @if pattern.is_empty() { "(no reason)" } @else { (excerpt(pattern, EXCERPT)) }
            }
            span.soft {
                @if reason.jobs > 1 { "first " (words::brief(reason.first_ms, now_ms())) ", last " }
                (words::brief(reason.last_ms, now_ms()))
            }
            span.offers { (selection::offers_of_all(app, queue, &its, &jobs)) }
        }
    }
}

/// How far the board has read.
fn progress(queue: &[u8], info: &Info, choice: &Choice, reasons: &Reasons, look: u64) -> Markup {
    let looked = words::number(reasons.looked);
    let dead = words::number(info.counts.dead.max(reasons.looked));
    let link = |look: u64| choice.link_with(queue, &[("look", look.to_string())]);
    html! {
        @if reasons.is_whole {
            (looked) " dead looked through."
        } @else if reasons.is_done {
            "Of the " (looked) " of " (dead) " that died first. "
            a #look-on href=(link(reasons.looked + LOOK)) { "Look at " (words::number(LOOK)) " more" }
        } @else {
            (looked) " of " (dead) " looked at so far. "
            a #look-on href=(link(look)) { "Look on" }
        }
    }
}
