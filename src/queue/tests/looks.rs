//! Steps of the sessions in `script.rs` that change nothing.

use super::groups::of_group;
use super::numbers::{number, shown};
use super::rounds::round;
use super::script::{name, state_called, Session};
use super::words::{edges_to, text, what_was_told};
use super::*;

impl Session {
    /// What changes nothing.
    pub(super) fn look(&self, words: &[&str]) -> String {
        let queue = self.queue();
        let job = || queue.get(id(words[1]));
        match words[0] {
            "PEEK" => self.names(&queue.peek(state_called(words[1]), 1_000)),
            "SCAN" => self.scan(number(words[1]) as usize),
            "WHY" => {
                let job = job().unwrap();
                text(job.reason_at(self.told.now))
            }
            "DEPS" => edges_to(queue, words[1], self.told.now),
            "EDGES" => {
                let EdgeCounts { pending, after, before, is_on_hold } =
                    queue.edge_counts(id(words[1])).unwrap_or_default();
                let hold = if is_on_hold { " hold" } else { "" };
                format!("{pending}/{after} {before}{hold}")
            }
            "BEHIND" => queue.held_behind_dead().to_string(),
            "NOTE" => text(job().unwrap().note_at(self.told.now)),
            "RESULT" => text(job().unwrap().result),
            "TALLY" => {
                let Tally { timed_out, released, buried, kicked } =
                    job().unwrap().tally_at(self.told.now);
                format!("{timed_out} {released} {buried} {kicked}")
            }
            "GROUP" => queue.group(id(words[1])).map_or("nil".into(), |group| of_group(&group)),
            "ROUND" => round(&job().unwrap(), self.told.now),
            "GET" => job().map_or("nil".into(), |job| self.where_it_stands(&job)),
            "TOLD" => job().map_or("nil".into(), |job| what_was_told(&job)),
            "COUNTS" => {
                let Counts { delayed, ready, reserved, dead, done, held } = queue.counts();
                let done = if done + held > 0 { format!(" {done}") } else { String::new() };
                let held = if held > 0 { format!(" {held}") } else { String::new() };
                format!("{delayed} {ready} {reserved} {dead}{done}{held}")
            }
            "NEXT" => queue.next_change().map_or("nil".into(), shown),
            "ORDER" => queue.jobs().map(|job| name(job.id)).collect::<Vec<_>>().join(" "),
            "NAME" => queue.next_id(self.told.now),
            "LEASE" => queue.last_lease().map_or("nil".into(), |lease| lease.number().to_string()),
            "TOTALS" => {
                let Totals { added, replaced, popped, timed_out, finished, deleted, .. } =
                    queue.totals();
                format!("{added} {replaced} {popped} {timed_out} {finished} {deleted}")
            }
            "MORE_TOTALS" => {
                let Totals { released, buried, died, kicked, purged, .. } = queue.totals();
                format!("{released} {buried} {died} {kicked} {purged}")
            }
            "SCHEDULES" => {
                let sought = ScanFilter { is_scheduled: true, ..ScanFilter::default() };
                let found = queue
                    .ids_of(&queue.scan(0, &sought, 100).slots)
                    .bytes()
                    .iter()
                    .map(|id| name(Id::new(id).unwrap()))
                    .collect::<Vec<_>>();
                format!(
                    "{} {} missed={}",
                    queue.schedules(),
                    found.join(","),
                    queue.totals().missed
                )
            }
            other => panic!("{other} is no step"),
        }
    }

    fn scan(&self, at_most: usize) -> String {
        let (mut parts, mut from) = (Vec::new(), Some(0));
        while let Some(at) = from {
            let part = self.queue().scan(at, &ScanFilter::default(), at_most);
            parts.push(self.names(&part.slots));
            from = part.next;
        }
        parts.join(" / ")
    }

    fn where_it_stands(&self, job: &JobView) -> String {
        let mut told = format!("{} {}", job.state(self.told.now).name(), shown(job.time));
        let Progress { attempt, lease, .. } = job.progress;
        if attempt > 0 {
            told += &format!(" #{attempt}");
        }
        if let Some(lease) = lease {
            let place = self.leases.iter().position(|one| *one == lease);
            told += &format!(" L{}", place.unwrap() + 1);
        }
        told
    }
}
