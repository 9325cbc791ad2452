//! What DQ's words mean, each said once: pages have the sentence where the word stands, and all of
//! them at their end.

use maud::{html, Markup};

pub const READY: &str = "They are due, and wait for a worker.";
pub const DELAYED: &str = "They wait until they are due.";
pub const RESERVED: &str = "Workers have them, each for the time of a lease.";
pub const DEAD: &str =
    "Out of attempts or of time, or buried by a worker: they stay until you kick or delete them.";
pub const DONE: &str = "Finished, and kept for a while (KEEP).";
pub const HELD: &str = "They wait for other jobs, or until you resume them.";
pub const KICK: &str =
    "Kicking makes a dead job ready again, with all its attempts, as if it had just been added.";
pub const HANDED_OUT: &str =
    "A job is handed out when a worker gets it. Each time is one of its attempts.";
pub const LATE: &str = "How long jobs were ready before a worker got them.";

const WORDS: [(&str, &str); 13] = [
    ("ready", READY),
    ("delayed", DELAYED),
    ("reserved", RESERVED),
    ("dead", DEAD),
    ("done", DONE),
    ("held", HELD),
    ("handed out", HANDED_OUT),
    ("late", LATE),
    (
        "lease",
        "A worker's right to a job, for the job's time to run (TTR). If it runs out, because the worker \
        died, the job is handed out again.",
    ),
    ("kick", KICK),
    ("bury", "A worker that can't do a job buries it, with a reason: the job is dead."),
    ("release", "Gives a job back before its lease ends: it is tried again."),
    ("group", "Jobs that share limits, a customer's for one. Groups take turns."),
];

/// At the end of a page.
pub fn list() -> Markup {
    html! {
        details #words .words { summary { "What the words mean" }
            dl { @for (word, meaning) in WORDS { div { dt { (word) } dd { (meaning) } } } }
        }
    }
}
