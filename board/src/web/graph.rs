//! A small picture of a job's edges: what it waits for to the left, itself, and below how many wait
//! for it. All of it is in the table and the sentences beside it, too: the picture is for the eye.

use maud::{html, Markup, Render};

use super::{layout, words};
use crate::bytes::excerpt;
use crate::server::deps::Dep;
use crate::server::job::Job;

/// Jobs that it shows of those that are waited for.
const SHOWN_MAX: usize = 12;

// Of a box, and of what lies between two.
const WIDTH: usize = 160;
const HEIGHT: usize = 26;
const ROW: usize = 32;
const GAP: usize = 32;
/// Characters of an id that fit beside its state.
const ID: usize = 11;

/// Of the first part of what it waits for; nothing for a job without edges.
pub fn of(queue: &[u8], job: &Job, found: &[Dep]) -> Markup {
    let shown = found.get(..SHOWN_MAX).unwrap_or(found);
    let more = job.edges.after.saturating_sub(shown.len() as u64);
    let left = shown.len() + usize::from(more > 0);
    let right = if job.edges.before > 0 { 2 } else { 1 };
    let rows = left.max(right);
    let x = if left > 0 { WIDTH + GAP } else { 0 };
    // The job stands in the middle of what it waits for.
    let own = left.saturating_sub(right) / 2;
    let (width, height) = (x + WIDTH, rows * ROW - (ROW - HEIGHT));
    html! { @if left > 0 || job.edges.before > 0 {
        svg.edges viewBox={ "0 0 " (width) " " (height) } width=(width) height=(height) aria-hidden="true" {
            @for row in 0..left { (edge(row, own, x)) }
            @for (row, dep) in shown.iter().enumerate() {
                @let content = node(0, row, &excerpt(&dep.id, ID), &dep.state);
                @if dep.is_gone() { (content) } @else {
                    a href=(layout::job_link(queue, &dep.id)) tabindex="-1" { (content) }
                }
            }
            @if more > 0 { (note(0, shown.len(), &format!("and {} more", words::number(more)))) }
            (node(x, own, &excerpt(&job.id, ID), job.state.name()).with_class("own"))
            @if job.edges.before > 0 {
                line x1=(x + WIDTH / 2) x2=(x + WIDTH / 2) y1=(own * ROW + HEIGHT) y2=((own + 1) * ROW) {}
                (note(x, own + 1, &waiting(job.edges.before)))
            }
        }
    } }
}

fn waiting(before: u64) -> String {
    match before {
        1 => "1 job waits for it".into(),
        many => format!("{} wait for it", words::jobs(many)),
    }
}

/// From the box of a row to the job's own.
fn edge(row: usize, own: usize, x: usize) -> Markup {
    let middle = |row: usize| row * ROW + HEIGHT / 2;
    html! { line x1=(WIDTH) y1=(middle(row)) x2=(x) y2=(middle(own)) {} }
}

struct Node {
    x: usize,
    y: usize,
    id: String,
    state: String,
    class: &'static str,
}

impl Node {
    fn with_class(self, class: &'static str) -> Node {
        Node { class, ..self }
    }
}

fn node(x: usize, row: usize, id: &str, state: &str) -> Node {
    Node { x, y: row * ROW, id: id.into(), state: state.into(), class: "" }
}

impl Render for Node {
    fn render(&self) -> Markup {
        let (x, y) = (self.x, self.y);
        html! {
            g.{ "is-" (self.state) }.{ (self.class) } {
                rect x=(x + 1) y=(y + 1) width=(WIDTH - 2) height=(HEIGHT - 2) rx="5" {}
                text.id x=(x + 8) y=(y + 17) { (self.id) }
                text.is x=(x + WIDTH - 8) y=(y + 17) text-anchor="end" { (self.state) }
            }
        }
    }
}

fn note(x: usize, row: usize, text: &str) -> Markup {
    html! {
        g.note {
            rect x=(x + 1) y=(row * ROW + 1) width=(WIDTH - 2) height=(HEIGHT - 2) rx="5" {}
            text x=(x + WIDTH / 2) y=(row * ROW + 17) text-anchor="middle" { (text) }
        }
    }
}

#[cfg(test)]
mod tests {
    use redis::Value;

    use super::*;

    fn graph(after: usize, before: i64, found: usize) -> String {
        let text = |text: &str| Value::BulkString(text.into());
        let pairs = [
            ("state", text("held")),
            ("id", text("<own>")),
            ("after", Value::Int(after as i64)),
            ("before", Value::Int(before)),
        ];
        let pairs = pairs.map(|(name, value)| (text(name), value)).to_vec();
        let job = Job::read(Value::Map(pairs)).unwrap().unwrap();
        let dep = |n: usize| Dep {
            id: format!("part-{n}").into(),
            state: if n == 0 { "gone" } else { "done" }.into(),
            what: None,
        };
        of(b"q", &job, &(0..found).map(dep).collect::<Vec<_>>()).into_string()
    }

    #[test]
    fn a_job_without_edges_has_no_picture() {
        assert_eq!(graph(0, 0, 0), "");
    }

    #[test]
    fn a_picture_is_bounded_and_says_how_much_it_leaves_out() {
        let svg = graph(1_000, 7, 20);
        assert_eq!(svg.matches("<rect").count(), SHOWN_MAX + 3);
        assert!(svg.contains("and 988 more") && svg.contains("7 jobs wait for it"));
        assert!(svg.contains("&lt;own&gt;") && !svg.contains("part-12"));
        // What is gone is no link.
        assert_eq!(svg.matches("<a ").count(), SHOWN_MAX - 1);
        let one = graph(0, 1, 0);
        assert!(one.contains("1 job waits for it") && !one.contains("more"));
    }
}
