//! What a job waits for, and what came of it.

use maud::{html, Markup};

use super::{graph, layout, words};
use crate::bytes::{excerpt, line, link};
use crate::server::chains::{Behind, Root};
use crate::server::deps::{Dep, Deps};
use crate::server::job::Job;
use crate::server::queue::State;
use crate::server::Result;

/// What of a result or a reason a row shows.
const EXCERPT: usize = 200;

/// The part of them that begins at this place, and a picture with the first part.
pub fn of(queue: &[u8], job: &Job, from: u64, deps: &Result<Deps>) -> Markup {
    let edges = &job.edges;
    html! {
        section.deps {
            div.bodyhead {
                h2 { @if edges.pending > 0 { "Waits for" } @else if edges.after > 0 { "Has waited for" }
                    @else { "Waits for no other job" } }
                @if edges.after > 0 { span.soft { (words::jobs(edges.after))
                    @if edges.pending > 0 { ", " (words::number(edges.pending)) " pending" } } }
            }
            @match deps {
                Ok(deps) => {
                    @if from == 0 { (graph::of(queue, job, &deps.found)) }
                    @if edges.after > 0 { (table(queue, from, &deps.found)) }
                    (pager(queue, job, from, deps.next))
                    @if edges.before > 0 {
                        p.note { (behind(job)) " The server counts these and doesn't list them. They are among the "
                            a href=(link("queue", &[("name", queue), ("state", b"held")])) { "held jobs" } "." }
                    }
                },
                Err(trouble) => p.note { (trouble) },
            }
        }
    }
}

fn table(queue: &[u8], from: u64, found: &[Dep]) -> Markup {
    html! {
        table.list {
            thead { tr {
                th.id scope="col" { "id" }
                th scope="col" { "state" }
                th.text scope="col" { "result · reason" }
            } }
            tbody { @for (place, dep) in (from..).zip(found) { tr data-key=(place) {
                th.id scope="row" {
                    @if dep.is_gone() { (excerpt(&dep.id, 100)) }
                    @else { a href=(layout::job_link(queue, &dep.id)) { (excerpt(&dep.id, 100)) } }
                }
                td data-label="state" { span.state.{ "is-" (dep.state) } { (dep.state) } }
                td.text { @if let Some(what) = &dep.what {
                    span.reason[dep.state == "dead"] { (line(what, EXCERPT)) }
                } }
            } } }
        }
    }
}

fn pager(queue: &[u8], job: &Job, from: u64, next: Option<u64>) -> Markup {
    let at = |place: u64| {
        let place = place.to_string();
        link("job", &[("queue", queue), ("id", &job.id), ("from", place.as_bytes())])
    };
    html! {
        @if from > 0 || next.is_some() {
            nav.pager aria-label="Pages of what it waits for" {
                @if from > 0 {
                    a.first href=(layout::job_link(queue, &job.id)) { "⇤ first" }
                    a rel="prev" data-came-from hidden { "← previous" }
                }
                @if let Some(next) = next { a rel="next" href=(at(next)) { "next →" } }
            }
        }
    }
}

/// How a held job stands, in a sentence.
pub fn lead(job: &Job) -> String {
    let pending = words::jobs(job.edges.pending);
    match (job.edges.is_on_hold, job.edges.pending) {
        (true, 0) => "On hold until it is resumed.".into(),
        (true, _) => format!("On hold until it is resumed, and waits for {pending}."),
        (false, _) => format!("Waits for {pending}."),
    }
}

/// What is behind what a job waits for.
pub struct Chain {
    /// `None` for the job that others wait for.
    pub root: Option<Root>,
    pub behind: Behind,
}

/// “In the end it waits for pay, which is dead: card declined. 12 held jobs wait for that.”
pub fn chain(queue: &[u8], chain: &Chain) -> Markup {
    let Chain { root, behind } = chain;
    let many = words::jobs_in(State::Held, behind.jobs);
    let waits = if behind.jobs == 1 { "waits" } else { "wait" };
    let at_least = if behind.is_whole { "" } else { "At least " };
    html! { span #chain {
        @match root {
            Some(Root { dep, between }) => {
                @if *between > 0 { "In the end it waits for " } @else { "It waits for " }
                a href=(layout::job_link(queue, &dep.id)) { (excerpt(&dep.id, 100)) } ", which is "
                strong.reason[dep.state == "dead"] { (dep.state) }
                @if let Some(what) = dep.what.as_ref().filter(|_| dep.state == "dead") { ": " span.reason { (line(what, EXCERPT)) } }
                ". " (at_least) (many) " " (waits) " for that, straight or through others."
            },
            None => { (at_least) (many) " " (waits) " for it, straight or through others." },
        }
    } }
}

/// How many jobs wait for it; nothing when none does.
pub fn behind(job: &Job) -> String {
    match job.edges.before {
        0 => String::new(),
        1 => "1 job waits for it.".into(),
        many => format!("{} wait for it.", words::jobs(many)),
    }
}

#[cfg(test)]
mod tests {
    use redis::Value;

    use super::*;

    fn job(fields: &[(&str, Value)]) -> Job {
        let text = |text: &str| Value::BulkString(text.into());
        let fields = [&[("state", text("held"))], fields].concat();
        let pairs = fields.into_iter().map(|(name, value)| (text(name), value));
        Job::read(Value::Map(pairs.collect())).unwrap().unwrap()
    }

    fn edges(pending: i64, before: i64, on_hold: i64) -> Job {
        job(&[
            ("pending", Value::Int(pending)),
            ("after", Value::Int(3)),
            ("before", Value::Int(before)),
            ("on-hold", Value::Int(on_hold)),
        ])
    }

    #[test]
    fn a_held_job_says_what_it_waits_for_and_what_waits_for_it() {
        assert_eq!(lead(&edges(2, 0, 0)), "Waits for 2 jobs.");
        assert_eq!(lead(&edges(1, 0, 1)), "On hold until it is resumed, and waits for 1 job.");
        assert_eq!(lead(&edges(0, 0, 1)), "On hold until it is resumed.");
        assert_eq!(behind(&edges(0, 0, 1)), "");
        assert_eq!(behind(&edges(0, 1, 1)), "1 job waits for it.");
        assert_eq!(behind(&edges(0, 12, 1)), "12 jobs wait for it.");
    }

    #[test]
    fn a_job_without_edges_says_nothing_of_them() {
        let plain = job(&[("note", Value::Nil)]);
        assert_eq!((plain.state, behind(&plain)), (State::Held, String::new()));
        assert_eq!((plain.edges.after, plain.edges.is_on_hold, plain.note), (0, false, None));
    }
}
