//! Sessions with a queue, written down in a line:
//!
//! ```text
//! @0 ADD a +100 | @99 POP -> nil | @100 POP -> a#1 | @100 FINISH a L1 -> 1
//! ```
//!
//! Steps stand between bars; `-> …` is what must come of one. `@t` is the time of a step and of those
//! behind it. Times are numbers, `MAX`, or `MAX-5`.
//!
//! | step | what comes of it |
//! | --- | --- |
//! | `ADD id [+delay or =at] [ttr=60] [prio=128] [tries=0] [body=x] [REPLACE]` | when it is due, `replaced` and when, `taken`; for the id `*`: the id |
//! | `POP [ttr=…]` | `id#attempt` or `nil`; the leases are called L1, L2 … as they come |
//! | `FINISH id L1`, `FINISH id *`, `DEL id` | `1` or `0` |
//! | `FLOOR n` | from here on, leases are at least n |
//! | `GET id` | `delayed 100`, `ready 100`, `reserved 160 #1 L1`, `dead 160 #1 L1`, `nil` |
//! | `TOLD id` | what ADD was told: `x @0 ttr=60 prio=128 tries=0`, with its time |
//! | `COUNTS` | how many are delayed, ready, reserved, dead |
//! | `NEXT` | the next change, or `nil` |
//! | `ORDER` | every id, in the order of `jobs()` |
//! | `NAME` | the id that `*` would be |
//! | `LEASE` | the number of the last lease, or `nil` |
//! | `TOTALS` | added, replaced, popped, timed out, finished, deleted |
//! | `COPY`, `SWAP` | make a copy of the queue; go on with the other one |

use super::*;

/// Plays a session; panics at the first step of which something else comes.
#[track_caller]
pub fn check(script: &str) {
    let mut session = Session::default();
    for step in script.split('|') {
        let (step, wanted) = match step.split_once("->") {
            Some((step, wanted)) => (step, Some(wanted.trim())),
            None => (step, None),
        };
        let came = session.play(step);
        if let Some(wanted) = wanted {
            assert_eq!(came, wanted, "\n  of: {}\n  in: {script}\n", step.trim());
        }
        session.check_sums(script);
    }
}

struct Session {
    queue: Queue,
    other: Option<Queue>,
    now: Time,
    leases: Vec<Lease>,
    floor: Lease,
}

impl Default for Session {
    fn default() -> Session {
        Session {
            queue: Queue::new((1, 2)),
            other: None,
            now: Time::ZERO,
            leases: Vec::new(),
            floor: Lease::default(),
        }
    }
}

impl Session {
    fn play(&mut self, step: &str) -> String {
        let mut words: Vec<&str> = step.split_whitespace().collect();
        if let Some(time) = words[0].strip_prefix('@') {
            self.now = Time::new(number(time)).unwrap();
            words.remove(0);
        }
        let id = || Id::new(words[1].as_bytes()).unwrap();
        if words[0] != "ADD" && words[0] != "POP" {
            self.queue.advance(self.now);
        }
        match words[0] {
            "ADD" => self.add(&words),
            "POP" => self.pop(&words),
            "FINISH" => {
                let claim = match words[2] {
                    "*" => Claim::Latest,
                    lease => Claim::Lease(self.leases[lease[1..].parse::<usize>().unwrap() - 1]),
                };
                u8::from(self.queue.finish(id(), claim)).to_string()
            }
            "DEL" => u8::from(self.queue.delete(id())).to_string(),
            "GET" => self.queue.get(id()).map_or("nil".into(), |job| self.where_it_stands(&job)),
            "TOLD" => self.queue.get(id()).map_or("nil".into(), |job| what_was_told(&job)),
            "COUNTS" => {
                let Counts { delayed, ready, reserved, dead } = self.queue.counts();
                format!("{delayed} {ready} {reserved} {dead}")
            }
            "NEXT" => self.queue.next_change().map_or("nil".into(), shown),
            "ORDER" => self.queue.jobs().map(|job| name(job.id)).collect::<Vec<_>>().join(" "),
            "NAME" => self.queue.next_id(self.now),
            "FLOOR" => {
                self.floor = Lease::new(number(words[1]));
                String::new()
            }
            "LEASE" => self.queue.last_lease().map_or("nil".into(), |lease| lease.number().to_string()),
            "TOTALS" => {
                let Totals { added, replaced, popped, timed_out, finished, deleted } = self.queue.totals();
                format!("{added} {replaced} {popped} {timed_out} {finished} {deleted}")
            }
            "COPY" => {
                self.other = Some(self.queue.clone());
                String::new()
            }
            "SWAP" => {
                std::mem::swap(&mut self.queue, self.other.as_mut().expect("a copy, before SWAP"));
                String::new()
            }
            other => panic!("{other} is no step"),
        }
    }

    fn add(&mut self, words: &[&str]) -> String {
        let mut due = Due::In(Millis::ZERO);
        let mut policy = Policy { ttr: millis(60), attempts: Attempts::new(0), priority: 128 };
        let (mut body, mut if_taken) = ("x", IfTaken::Refuse);
        for word in &words[2..] {
            match word.split_once('=') {
                Some(("", time)) => due = Due::At(Time::new(number(time)).unwrap()),
                Some(("ttr", ttr)) => policy.ttr = millis(number(ttr)),
                Some(("tries", limit)) => policy.attempts = Attempts::new(number(limit) as u32),
                Some(("prio", priority)) => policy.priority = number(priority) as u8,
                Some(("body", text)) => body = text,
                None if *word == "REPLACE" => if_taken = IfTaken::Replace,
                None if word.starts_with('+') => due = Due::In(millis(number(&word[1..]))),
                _ => panic!("ADD knows no {word}"),
            }
        }
        let (id, naming) = match words[1] {
            "*" => (self.queue.next_id(self.now), Naming::ByQueue),
            id => (id.to_string(), Naming::Given),
        };
        let job = NewJob { id: Id::new(id.as_bytes()).unwrap(), body: body.as_bytes(), due, policy, naming };
        match (self.queue.add(self.now, &job, if_taken), naming) {
            (Added::New(_), Naming::ByQueue) => id,
            (Added::New(due), Naming::Given) => shown(due),
            (Added::Replaced(due), _) => format!("replaced {}", shown(due)),
            (Added::Taken, _) => "taken".into(),
            (Added::Full, _) => "full".into(),
        }
    }

    fn pop(&mut self, words: &[&str]) -> String {
        let ttr = words.get(1).and_then(|word| word.strip_prefix("ttr="));
        let ttr = ttr.map(|ttr| millis(number(ttr)));
        let Some(handout) = self.queue.pop(self.now, ttr, self.floor) else {
            return "nil".into();
        };
        assert!(self.leases.iter().all(|before| *before < handout.lease), "leases only grow");
        assert!(handout.lease >= self.floor);
        self.leases.push(handout.lease);
        let job = self.queue.view(handout.slot).unwrap();
        assert_eq!(job.time, handout.end);
        format!("{}#{}", name(job.id), handout.attempt)
    }

    fn where_it_stands(&self, job: &JobView) -> String {
        let state = job.state(self.queue.clone().advance(self.now)).name();
        let mut told = format!("{state} {}", shown(job.time));
        if let Some(Delivery { lease, attempt, .. }) = job.delivery {
            let lease = self.leases.iter().position(|other| *other == lease).unwrap() + 1;
            told += &format!(" #{attempt} L{lease}");
        }
        told
    }

    /// What must be so at every moment.
    fn check_sums(&self, script: &str) {
        let Counts { delayed, ready, reserved, dead } = self.queue.counts();
        assert_eq!(delayed + ready + reserved + dead, self.queue.len(), "in: {script}");
        assert_eq!(self.queue.jobs().count(), self.queue.len(), "in: {script}");
        assert!(self.queue.jobs().all(|job| self.queue.get(job.id) == Some(job)), "in: {script}");
    }
}

fn what_was_told(job: &JobView) -> String {
    let Policy { ttr, attempts, priority } = job.policy;
    let (body, created) = (String::from_utf8_lossy(job.body), shown(job.created));
    let limit = attempts.limit();
    format!("{body} @{created} ttr={} prio={priority} tries={limit}", ttr.as_u64())
}

fn name(id: Id) -> String {
    String::from_utf8_lossy(id.bytes()).into()
}

fn millis(ms: u64) -> Millis {
    Millis::new(ms).unwrap()
}

fn number(text: &str) -> u64 {
    match text.strip_prefix("MAX") {
        Some("") => Time::MAX.unix_ms(),
        Some(less) => Time::MAX.unix_ms() - less[1..].parse::<u64>().unwrap(),
        None => text.parse().unwrap_or_else(|_| panic!("{text} is no number")),
    }
}

/// Times in the last second there is are shown as they are written.
fn shown(time: Time) -> String {
    match Time::MAX.since(time).as_u64() {
        0 => "MAX".into(),
        less @ 1..=1_000 => format!("MAX-{less}"),
        _ => time.unix_ms().to_string(),
    }
}
