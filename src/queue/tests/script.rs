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
//! | `ADD id [+delay or =at] [ttr=60] [prio=128] [tries=0] [base=0 max=0] [ttl=0] [keep=0] [body=x] [REPLACE]` | when it is due, `replaced` and when, `taken`, `full`; for the id `*`: the id |
//! | `POP [ttr=…]` | `id#attempt` or `nil`; the leases are called L1, L2 … as they come |
//! | `FINISH id L1`, `FINISH id *`, `DEL id` | `1` or `0` |
//! | `UNBEGUN id L1` | `1` or `0`: released, and nobody has worked on it |
//! | `RELEASE id L1 [+delay] [why]`, `BURY id L1 [why]`, `TOUCH id L1 [ttr=…]` | `1` or `0` |
//! | `BACK L1` | `1` or `0`: gives back what was handed out then |
//! | `KICK n` | the ids that were kicked |
//! | `KICKJOB id` | `1` or `0` |
//! | `PAUSE time`, `MAXJOBS n`, `DEADKEEP ms` | |
//! | `PEEK state`, `SCAN n` | ids; a scan shows its parts, of n jobs at most, between slashes |
//! | `FORGET` | the ids that are to be forgotten; they are |
//! | `PURGE state older n` | the ids that are purged, n at most |
//! | `WHY id` | the reason of a job, or `nil` |
//! | `FLOOR n` | from here on, leases are at least n |
//! | `GET id` | `delayed 100`, `ready 100`, `reserved 160 #1 L1`, `dead 160 #1 L1`, `nil` |
//! | `TOLD id` | what ADD was told: `x @0 ttr=60 prio=128 tries=0`, with its time |
//! | `COUNTS` | how many are delayed, ready, reserved, dead; and done, if any |
//! | `NEXT`, `UPKEEP` | the next change, the next time the timer has to come; or `nil` |
//! | `ORDER` | every id, in the order of `jobs()` |
//! | `NAME` | the id that `*` would be |
//! | `LEASE` | the number of the last lease, or `nil` |
//! | `TOTALS` | added, replaced, popped, timed out, finished, deleted |
//! | `MORE_TOTALS` | released, buried, died, kicked, purged |
//! | `BURIED` | the dead are carried to where they belong |
//! | `LOAD` | go on with a queue that is loaded from the records of this one |
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
    /// With the ids of their jobs.
    handouts: Vec<(String, Handout)>,
    floor: Lease,
}

impl Default for Session {
    fn default() -> Session {
        Session {
            queue: Queue::new((1, 2)),
            other: None,
            now: Time::ZERO,
            handouts: Vec::new(),
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
                let finished = self.queue.finish(self.now, id(), self.claim(words[2]));
                u8::from(finished != Finished::No).to_string()
            }
            "RELEASE" => {
                let delay = words.get(3).and_then(|word| word.strip_prefix('+'));
                let why = words.get(if delay.is_some() { 4 } else { 3 }).map(|why| why.as_bytes());
                let delay = delay.map(|delay| millis(number(delay)));
                is_some(self.queue.release(self.now, id(), self.claim(words[2]), delay, why))
            }
            "UNBEGUN" => is_some(self.queue.release_unbegun(self.now, id(), self.claim(words[2]), None)),
            "BURY" => {
                let why = words.get(3).map(|why| why.as_bytes());
                is_some(self.queue.bury(self.now, id(), self.claim(words[2]), why))
            }
            "TOUCH" => {
                let ttr = words.get(3).and_then(|word| word.strip_prefix("ttr="));
                let ttr = ttr.map(|ttr| millis(number(ttr)));
                is_some(self.queue.touch(self.now, id(), self.claim(words[2]), ttr))
            }
            "BACK" => {
                let (id, handout) = self.handout(words[1]).clone();
                is_some(self.queue.give_back(Id::new(id.as_bytes()).unwrap(), &handout))
            }
            "KICK" => {
                let kicked = self.queue.kick(self.now, number(words[1]) as usize);
                self.names(&kicked)
            }
            "KICKJOB" => is_some(self.queue.kick_job(self.now, id())),
            "PAUSE" => {
                self.queue.pause(Time::new(number(words[1])).unwrap());
                String::new()
            }
            "MAXJOBS" => {
                let max_jobs = std::num::NonZeroU64::new(number(words[1]));
                self.queue.alter(Settings { max_jobs, ..*self.queue.settings() });
                String::new()
            }
            "DEADKEEP" => {
                let dead_keep = millis(number(words[1]));
                self.queue.alter(Settings { dead_keep, ..*self.queue.settings() });
                String::new()
            }
            "PEEK" => self.names(&self.queue.peek(state_called(words[1]), 1_000)),
            "PURGE" => {
                let older = millis(number(words[2]));
                let at_most = number(words[3]) as usize;
                let slots = self.queue.to_purge(self.now, state_called(words[1]), older, at_most);
                self.purge(&slots)
            }
            "SCAN" => self.scan(number(words[1]) as usize),
            "FORGET" => {
                let slots = self.queue.to_forget(self.now, 1_000);
                self.purge(&slots)
            }
            "WHY" => {
                let job = self.queue.get(id()).unwrap();
                job.reason_at(self.now).map_or("nil".into(), |why| String::from_utf8_lossy(why).into())
            }
            "UPKEEP" => self.queue.next_upkeep().map_or("nil".into(), shown),
            "DEL" => u8::from(self.queue.delete(id())).to_string(),
            "GET" => self.queue.get(id()).map_or("nil".into(), |job| self.where_it_stands(&job)),
            "TOLD" => self.queue.get(id()).map_or("nil".into(), |job| what_was_told(&job)),
            "COUNTS" => {
                let Counts { delayed, ready, reserved, dead, done } = self.queue.counts();
                let done = if done > 0 { format!(" {done}") } else { String::new() };
                format!("{delayed} {ready} {reserved} {dead}{done}")
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
                let Totals { added, replaced, popped, timed_out, finished, deleted, .. } =
                    self.queue.totals();
                format!("{added} {replaced} {popped} {timed_out} {finished} {deleted}")
            }
            "MORE_TOTALS" => {
                let Totals { released, buried, died, kicked, purged, .. } = self.queue.totals();
                format!("{released} {buried} {died} {kicked} {purged}")
            }
            "BURIED" => {
                assert!(self.queue.bury_the_overdue(1_000));
                String::new()
            }
            "LOAD" => {
                self.queue = loaded(&self.queue);
                self.queue.advance(self.now);
                String::new()
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
        let mut policy = Policy::plain(millis(60));
        let (mut body, mut if_taken) = ("x", IfTaken::Refuse);
        for word in &words[2..] {
            match word.split_once('=') {
                Some(("", time)) => due = Due::At(Time::new(number(time)).unwrap()),
                Some(("ttr", ttr)) => policy.ttr = millis(number(ttr)),
                Some(("tries", limit)) => policy.attempts = Attempts::new(number(limit) as u32),
                Some(("base", base)) => policy.backoff.base = millis(number(base)),
                Some(("max", max)) => policy.backoff.max = millis(number(max)),
                Some(("ttl", ttl)) => policy.ttl = millis(number(ttl)),
                Some(("keep", keep)) => policy.keep = millis(number(keep)),
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
        assert!(self.handouts.iter().all(|(_, before)| before.lease < handout.lease), "leases only grow");
        assert!(handout.lease >= self.floor);
        let job = self.queue.view(handout.slot).unwrap();
        assert_eq!(job.time, handout.end);
        let id = name(job.id);
        self.handouts.push((id.clone(), handout));
        format!("{id}#{}", handout.attempt)
    }

    fn claim(&self, word: &str) -> Claim {
        match word {
            "*" => Claim::Latest,
            lease => Claim::Lease(self.handout(lease).1.lease),
        }
    }

    fn handout(&self, lease: &str) -> &(String, Handout) {
        &self.handouts[lease[1..].parse::<usize>().unwrap() - 1]
    }

    fn purge(&mut self, slots: &[Slot]) -> String {
        let names = self.names(slots);
        self.queue.purge(slots);
        names
    }

    fn names(&self, slots: &[Slot]) -> String {
        let names = slots.iter().map(|slot| name(self.queue.id_and_body(*slot).unwrap().0));
        names.collect::<Vec<_>>().join(" ")
    }

    fn scan(&self, at_most: usize) -> String {
        let (mut parts, mut from) = (Vec::new(), Some(0));
        while let Some(at) = from {
            let part = self.queue.scan(at, None, at_most);
            parts.push(self.names(&part.slots));
            from = part.next;
        }
        parts.join(" / ")
    }

    fn where_it_stands(&self, job: &JobView) -> String {
        let state = job.state(self.queue.clone().advance(self.now)).name();
        let mut told = format!("{state} {}", shown(job.time));
        let Progress { attempt, lease, .. } = job.progress;
        if attempt > 0 {
            told += &format!(" #{attempt}");
        }
        if let Some(lease) = lease {
            told +=
                &format!(" L{}", self.handouts.iter().position(|(_, one)| one.lease == lease).unwrap() + 1);
        }
        told
    }

    /// What must be so at every moment.
    fn check_sums(&self, script: &str) {
        let now = self.queue.clone().advance(Time::ZERO);
        for state in State::ALL {
            let is_in = |job: &JobView| job.state(now) == state;
            let mut seen: Vec<String> = self.queue.jobs().filter(is_in).map(|job| name(job.id)).collect();
            let peeked = self.names(&self.queue.peek(state, 1_000));
            let mut peeked: Vec<&str> = peeked.split_whitespace().collect();
            assert_eq!(self.queue.counts().of(state), seen.len(), "{state:?} in: {script}");
            seen.sort();
            peeked.sort();
            assert_eq!(peeked, seen, "{state:?} in: {script}");
        }
        assert_eq!(self.queue.jobs().count(), self.queue.len(), "in: {script}");
        assert!(self.queue.jobs().all(|job| self.queue.get(job.id) == Some(job)), "in: {script}");
    }
}

/// The queue as it comes out of a file.
pub fn loaded(queue: &Queue) -> Queue {
    let mut loaded = Queue::new((3, 4));
    for job in queue.jobs() {
        let record = JobRecord::decode(&job.record().encode()).unwrap();
        loaded.load(job.id.bytes(), job.body, &record).unwrap();
    }
    loaded.restore(&QueueRecord::decode(&queue.record().encode()).unwrap()).unwrap();
    loaded
}

fn state_called(name: &str) -> State {
    State::ALL.into_iter().find(|state| state.name() == name).unwrap()
}

fn what_was_told(job: &JobView) -> String {
    let Policy { ttr, attempts, priority, .. } = job.policy;
    let (body, created) = (String::from_utf8_lossy(job.body), shown(job.created));
    let limit = attempts.limit();
    format!("{body} @{created} ttr={} prio={priority} tries={limit}", ttr.as_u64())
}

fn is_some(slot: Option<Slot>) -> String {
    u8::from(slot.is_some()).to_string()
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
