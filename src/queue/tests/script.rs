//! Sessions with a queue, written down in a line:
//!
//! ```text
//! @0 ADD a +100 | @99 POP -> nil | @100 POP -> a#1 | @100 FINISH a L1 -> 1
//! ```
//!
//! Steps stand between bars; `-> …` is what must come of one. `@t` is the time of a step and of
//! those behind it. Times are numbers, `MAX`, or `MAX-5`; `END` is the first moment for which there
//! are no leases any more.
//!
//! | step | what comes of it |
//! | --- | --- |
//! | `ADD id [+delay or =at] [ttr=60] [prio=128] [tries=0] [base=0 max=0] [ttl=0] [keep=0] [late=0] [group=x] [body=x] [REPLACE or NX]` | when it is due, `replaced` and when, `taken`, `full`; for the id `*`: the id |
//! | `ADD … every=ms or cron=step [misfire=all] [jitter=] [runs=] [until=] [ENSURE]` | the same, `unchanged`, `never`, `ended` |
//! | `ADD … [after=a,b or before=a,b] [RUN] [HOLD]` | the same, or what is wrong with an edge, and the id |
//! | `MADD id,id,* [spread=ms or delays=ms,ms,ms] [as ADD]` | the id of each, `left` where there is none; what is wrong, and with which, from 0 |
//! | `UNHOLD id [id …]` | how many were on hold |
//! | `DEPS id`, `EDGES id` | what it waits for: `a:done=x b:ready`; how many edges are open, lead to it, lead from it |
//! | `BEHIND` | how many held jobs wait for a dead one |
//! | `SETTLE` | how many jobs have died that others wait for: the timer looks |
//! | `ROUND id` | where a schedule is: `occurrence>next run=0 missed=1 failed=1` |
//! | `POP [n=1] [ttr=…] [NOACK]` | `id#attempt` of each, or `nil`; the leases are called L1, L2 … as they come |
//! | `TAKE [ttr=…] [NOACK] id [id …]` | as POP, by id |
//! | `FINISH id L1 [id L2 …]`, `FINISH id *`, `DEL id [id …]` | how many |
//! | `UNBEGUN id L1` | `1` or `0`: released, and nobody has worked on it |
//! | `RELEASE id L1 [+delay] [prio=…] [BODY=x] [NOTE=x] [why]`, `BURY id L1 [why]`, `TOUCH id L1 [ttr=…] [BODY=x] [NOTE=x]` | `1` or `0` |
//! | `DONE id L1 [RESULT=x] [KEEP=ms] [+ADD id …] …` | `1` or `0`; with ADDs the id of each, `left` where there is none; `taken`, `full` or `never` when one is refused |
//! | `KICK n`, `KICKJOB id [id …]` | the ids that were kicked; how many |
//! | `PAUSE [group=x] [span]`, `RESUME [group=x]` | `1` or `0` |
//! | `GROUP name` | how many are ready, reserved, delayed; `until` when it is paused; or `nil` |
//! | `ALTER [ttr=…] [tries=…] [base=… max=…] [keep=…] [late=…] [maxjobs=…] [deadkeep=…] [concurrency=…] [rate=n/per] [each=…] [eachrate=n/per] [burst=…]` | |
//! | `DEFAULTS ttr tries` | what jobs get from here on that aren't told otherwise |
//! | `PEEK state`, `SCAN n` | ids; a scan shows its parts, of n jobs at most, between slashes |
//! | `FORGET` | the ids that are to be forgotten; they are |
//! | `PURGE state older n` | the ids that are purged, n at most |
//! | `WHY id`, `NOTE id`, `RESULT id` | the reason of a job, its note, its result; or `nil` |
//! | `TALLY id` | how often it timed out, was released, buried, kicked |
//! | `FLOOR n` | from here on, leases up to n belong to others |
//! | `GET id` | `delayed 100`, `ready 100`, `reserved 160 #1 L1`, `dead 160 #1 L1`, `nil` |
//! | `TOLD id` | what ADD was told: `x @0 ttr=60 prio=128 tries=0`, with its time |
//! | `COUNTS` | how many are delayed, ready, reserved, dead; done and held, if any |
//! | `NEXT`, `UPKEEP` | the next change, the next time the timer has to come; or `nil` |
//! | `NEWS` | `ready`, `dead`, both or nothing: what has become of jobs since the last time |
//! | `ORDER` | every id, in the order of `jobs()` |
//! | `NAME` | the id that `*` would be |
//! | `LEASE` | the number of the last lease, or `nil` |
//! | `TOTALS` | added, replaced, popped, timed out, finished, deleted |
//! | `MORE_TOTALS` | released, buried, died, kicked, purged |
//! | `SCHEDULES` | how many jobs come back, which, and how many of their times were missed in all |
//! | `LOAD` | go on with a queue that is loaded from the records of this one |
//! | `COPY`, `SWAP` | make a copy of the queue; go on with the other one |
//!
//! Beside each queue goes a replica that hears of what changes it, and on which no time passes.

use std::collections::HashMap;

use super::groups::group_of;
use super::numbers::{number, shown};
use super::operators::alteration;
use super::rounds::Multiples;
use super::words::{added_many, checkpoint, done_of, followed, many_of, new_job, unconnected};
use super::*;
use crate::queue::memory::slab::Slot;

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
        session.queues.check(script);
    }
}

/// A queue, and what has become of its log elsewhere.
#[derive(Clone)]
struct Queues {
    queue: Queue,
    replica: Queue,
}

impl Queues {
    /// As the module does it: circumstances are told when the log position doesn't tell them.
    fn apply<O: Operation>(&mut self, circumstances: &Circumstances, operation: &O) -> O::Outcome {
        let before = *self.queue.log_state();
        let mut calendar = Multiples::default();
        let outcome = self.queue.apply_by(circumstances, operation, &mut calendar);
        if outcome.has_changed() {
            let told = if before.implies(circumstances) && calendar.0.is_empty() {
                self.replica.circumstances()
            } else {
                assert!(self.replica.compare_checksum(before.check), "the queues have diverged");
                *circumstances
            };
            self.replica.apply_by(&told, operation, &mut Answers(&calendar.0));
        } else {
            assert_eq!(*self.queue.log_state(), before, "nothing has changed");
        }
        outcome
    }

    fn check(&self, script: &str) {
        let Queues { queue, replica } = self;
        assert!(queue.jobs().eq(replica.jobs()), "the replica's jobs, in: {script}");
        assert_eq!(queue.log_state(), replica.log_state(), "in: {script}");
        let told = |queue: &Queue| queue.record().without_totals();
        assert_eq!(told(queue), told(replica), "the replica's record, in: {script}");
        assert!(queue.edge_records().eq(replica.edge_records()), "edges, in: {script}");
        assert!(queue.pending_records().eq(replica.pending_records()), "pending, in: {script}");
        assert_eq!(
            queue.group_records(),
            replica.group_records(),
            "the replica's groups, in: {script}"
        );
    }
}

pub struct Session {
    queues: Queues,
    other: Option<Queues>,
    pub told: Circumstances,
    /// In the order in which they were given: L1 is the first.
    pub leases: Vec<Lease>,
}

impl Default for Session {
    fn default() -> Session {
        Session {
            queues: Queues { queue: Queue::new((1, 2)), replica: Queue::new((5, 6)) },
            other: None,
            told: told(0),
            leases: Vec::new(),
        }
    }
}

impl Session {
    /// As the module does it: deaths are settled before a change.
    fn apply<O: Operation>(&mut self, operation: &O) -> O::Outcome {
        self.settle();
        self.queues.apply(&self.told, operation)
    }

    fn settle(&mut self) -> usize {
        let mut settled = 0;
        while self.queue().settles_at().is_some_and(|time| time <= self.told.now) {
            let names = self.queue().ids_of(&self.queue().to_settle(self.told.now, 3));
            settled += self.queues.apply(&self.told, &Settle { ids: names.ids() }).0;
        }
        settled
    }

    pub fn play(&mut self, step: &str) -> String {
        let mut words: Vec<&str> = step.split_whitespace().collect();
        if let Some(time) = words[0].strip_prefix('@') {
            self.told.now = at(number(time));
            words.remove(0);
        }
        self.queues.queue.advance(self.told.now);
        match words[0] {
            "ADD" => self.add(&words),
            "MADD" => {
                let added = self.apply(&many_of(&words));
                added_many(self.queue(), &added)
            }
            "POP" => self.pop(&words[1..]),
            "TAKE" => self.take(&words[1..]),
            "FINISH" => {
                let claims: Vec<Claim> =
                    words[1..].chunks(2).map(|pair| self.claim(pair)).collect();
                self.apply(&Finish { claims: Claims::from_slice(&claims) }).0.to_string()
            }
            "DONE" => self.done(&words[1..]),
            "RELEASE" => {
                let (words, checkpoint) = checkpoint(&words);
                let delay = words.get(3).and_then(|word| word.strip_prefix('+'));
                let rest = &words[if delay.is_some() { 4 } else { 3 }..];
                let priority = rest.first().and_then(|word| word.strip_prefix("prio="));
                let reason = rest.get(usize::from(priority.is_some())).map(|why| why.as_bytes());
                let after = |delay| WhenReleased::After(span(number(delay)));
                let when = delay.map_or(WhenReleased::AfterBackoff, after);
                let priority = priority.map(|priority| number(priority) as u8);
                let claim = self.claim(&words[1..]);
                accepted(self.apply(&Release { claim, when, priority, reason, checkpoint }))
            }
            "UNBEGUN" => {
                let release = Release::plain(self.claim(&words[1..]));
                accepted(self.apply(&Release { when: WhenReleased::Unbegun, ..release }))
            }
            "BURY" => {
                let reason = words.get(3).map(|why| why.as_bytes());
                accepted(self.apply(&Bury { claim: self.claim(&words[1..]), reason }))
            }
            "TOUCH" => {
                let (words, checkpoint) = checkpoint(&words);
                let ttr = words.get(3).and_then(|word| word.strip_prefix("ttr="));
                let ttr = ttr.map(|ttr| span(number(ttr)));
                accepted(self.apply(&Touch { claim: self.claim(&words[1..]), ttr, checkpoint }))
            }
            "KICK" => {
                let slots = self.queue().peek(State::Dead, number(words[1]) as usize);
                let names = self.names(&slots);
                let ids: Vec<Id> = names.split_whitespace().map(id).collect();
                let (ids, span) = (Ids::from_slice(&ids), words.get(2).map(|ms| span(number(ms))));
                let kicked = match span {
                    Some(span) => self.apply(&KickSpread { ids: ids.clone(), span }),
                    None => self.apply(&KickJob { ids: ids.clone() }),
                };
                assert_eq!(kicked.0, ids.len());
                names.clone()
            }
            "KICKJOB" => {
                let ids: Vec<Id> = words[1..].iter().map(|name| id(name)).collect();
                self.apply(&KickJob { ids: Ids::from_slice(&ids) }).0.to_string()
            }
            "PAUSE" => {
                let (group, words) = group_of(&words[1..]);
                self.apply(&Pause { group, span: words.first().map(|ms| span(number(ms))) });
                String::new()
            }
            "RESUME" => {
                let (group, _) = group_of(&words[1..]);
                let resume = group.map_or(Resume::Queue, Resume::Group);
                u8::from(self.apply(&resume).has_changed()).to_string()
            }
            "UNHOLD" => {
                let ids: Vec<Id> = words[1..].iter().map(|name| id(name)).collect();
                match self.apply(&Resume::Jobs(Ids::from_slice(&ids))) {
                    Resumed::Jobs(jobs) => jobs.to_string(),
                    Resumed::Pause(_) => panic!("jobs were resumed"),
                }
            }
            "SETTLE" => self.settle().to_string(),
            "ALTER" => {
                self.apply(&alteration(&words[1..]));
                String::new()
            }
            "DEFAULTS" => {
                let attempts = Attempts::new(number(words[2]) as u32);
                let backoff = match words.get(3..5) {
                    Some(words) => {
                        Backoff { base: span(number(words[0])), max: span(number(words[1])) }
                    }
                    None => Backoff::NONE,
                };
                self.told.defaults = Defaults { ttr: span(number(words[1])), attempts, backoff };
                String::new()
            }
            "PURGE" => {
                let (older, at_most) = (span(number(words[2])), number(words[3]) as usize);
                let slots =
                    self.queue().to_purge(self.told.now, state_called(words[1]), older, at_most);
                self.forget(&slots)
            }
            "FORGET" => {
                let slots = self.queue().to_forget(self.told.now, 1_000);
                self.forget(&slots)
            }
            "DEL" => {
                let ids: Vec<Id> = words[1..].iter().map(|name| id(name)).collect();
                self.apply(&Remove { ids: Ids::from_slice(&ids), counted_as: Removal::Deleted })
                    .0
                    .to_string()
            }
            "FLOOR" => {
                self.told.lease_floor = Lease::new(number(words[1]));
                String::new()
            }
            "UPKEEP" => self.queues.queue.find_wake_at().map_or("nil".into(), shown),
            "NEWS" => {
                let Events { is_any_ready, is_any_dead, .. } = self.queues.queue.take_events();
                let events = [is_any_ready.then_some("ready"), is_any_dead.then_some("dead")];
                events.into_iter().flatten().collect::<Vec<_>>().join(" ")
            }
            "LOAD" => {
                self.queues.queue = loaded(self.queue());
                self.queues.queue.advance(self.told.now);
                String::new()
            }
            "COPY" => {
                self.other = Some(self.queues.clone());
                String::new()
            }
            "SWAP" => {
                std::mem::swap(&mut self.queues, self.other.as_mut().expect("a copy, before SWAP"));
                String::new()
            }
            _ => self.look(&words),
        }
    }

    pub fn queue(&self) -> &Queue {
        &self.queues.queue
    }

    fn add(&mut self, words: &[&str]) -> String {
        let add = new_job(words);
        match self.apply(&add) {
            Added::New { slot, .. } if add.id.is_none() => {
                name(self.queue().id_and_body(slot).unwrap().0)
            }
            Added::New { due, .. } => shown(due),
            Added::Replaced { due, .. } => format!("replaced {}", shown(due)),
            Added::Taken | Added::Left => "taken".into(),
            Added::Unchanged { .. } => "unchanged".into(),
            Added::Full => "full".into(),
            Added::Never | Added::Over { was_there: false } => "never".into(),
            Added::Over { was_there: true } => "ended".into(),
            Added::Unconnected(fault) => unconnected(&fault),
        }
    }

    fn done(&mut self, words: &[&str]) -> String {
        let done = done_of(words, self.claim(words));
        followed(&self.apply(&done))
    }

    fn pop(&mut self, words: &[&str]) -> String {
        let mut pop = Pop::ONE;
        for word in words {
            match word.split_once('=') {
                Some(("ttr", ttr)) => pop.ttr = Some(span(number(ttr))),
                Some(("n", count)) => pop.count = number(count) as usize,
                None if *word == "NOACK" => pop.mode = Mode::NoAck,
                _ => panic!("{word} is nothing that POP knows"),
            }
        }
        let deliveries = self.apply(&pop);
        self.delivered(&deliveries, pop.mode)
    }

    fn take(&mut self, words: &[&str]) -> String {
        let ttr =
            words.iter().find_map(|word| word.strip_prefix("ttr=")).map(|ttr| span(number(ttr)));
        let mode = if words.contains(&"NOACK") { Mode::NoAck } else { Mode::Lease };
        let ids = words.iter().filter(|word| !word.starts_with("ttr=") && **word != "NOACK");
        let ids: Vec<Id> = ids.map(|name| id(name)).collect();
        let deliveries = self.apply(&PopById { ids: &ids, ttr, mode });
        self.delivered(&deliveries, mode)
    }

    /// Writes down what was delivered, and shows it.
    fn delivered(&mut self, deliveries: &Deliveries, mode: Mode) -> String {
        let (floor, now) = (self.told.lease_floor, self.told.now);
        let mut told = Vec::new();
        for delivery in deliveries.iter() {
            let queue = &self.queues.queue;
            let (id, body) = delivery.id_and_body(queue);
            assert!(self.leases.iter().all(|before| *before < delivery.lease), "leases only grow");
            assert!(delivery.lease > floor && delivery.lease >= Lease::first_at(now));
            let is_leased = |job: JobView| (job.time, job.body) == (delivery.end, body);
            assert!(mode == Mode::NoAck || queue.get(id).is_some_and(is_leased));
            told.push(format!("{}#{}", name(id), delivery.attempt));
            self.leases.push(delivery.lease);
        }
        if told.is_empty() {
            "nil".into()
        } else {
            told.join(" ")
        }
    }

    /// Of an id and a lease.
    fn claim<'w>(&self, words: &[&'w str]) -> Claim<'w> {
        let lease = (words[1] != "*").then(|| self.lease(words[1]));
        Claim { id: id(words[0]), lease }
    }

    fn lease(&self, called: &str) -> Lease {
        self.leases[called[1..].parse::<usize>().unwrap() - 1]
    }

    fn forget(&mut self, slots: &[Slot]) -> String {
        let names = self.names(slots);
        let ids: Vec<Id> = names.split_whitespace().map(id).collect();
        assert_eq!(
            self.apply(&Remove { ids: Ids::from_slice(&ids), counted_as: Removal::Purged }).0,
            slots.len()
        );
        names
    }

    pub fn names(&self, slots: &[Slot]) -> String {
        let names = slots.iter().map(|slot| name(self.queue().id_and_body(*slot).unwrap().0));
        names.collect::<Vec<_>>().join(" ")
    }

    /// What must be so at every moment.
    fn check_sums(&self, script: &str) {
        let queue = self.queue();
        for state in State::ALL {
            let is_in = |job: &JobView| job.state(self.told.now) == state;
            let mut seen: Vec<String> =
                queue.jobs().filter(is_in).map(|job| name(job.id)).collect();
            let peeked = self.names(&queue.peek(state, 1_000));
            let mut peeked: Vec<&str> = peeked.split_whitespace().collect();
            assert_eq!(queue.counts().of(state), seen.len(), "{state:?} in: {script}");
            seen.sort();
            peeked.sort();
            assert_eq!(peeked, seen, "{state:?} in: {script}");
        }
        assert_eq!(queue.jobs().count(), queue.len(), "in: {script}");
        assert!(queue.jobs().all(|job| queue.get(job.id) == Some(job)), "in: {script}");
        assert_eq!(queue.group_records().len() as u64, queue.record().groups_len(), "in: {script}");
        queue.check_edges();
        check_heard(queue, script);
        let needed = queue.clone().find_wake_at().unwrap_or(Time::MAX);
        assert!(queue.wake_at() <= needed, "the timer would come after {needed:?}, in: {script}");
    }
}

/// What was recorded of changes, one after the other, makes the jobs that there are.
fn check_heard(queue: &Queue, script: &str) {
    let mut jobs = HashMap::new();
    for (slot, after) in &queue.heard {
        match after {
            Some(after) => jobs.insert(*slot, *after),
            None => jobs.remove(slot),
        };
    }
    for job in queue.jobs() {
        let heard = queue.store.find(job.id).and_then(|slot| jobs.remove(&slot));
        assert_eq!(heard, Some((job.time, job.progress)), "{} in: {script}", name(job.id));
    }
    assert!(jobs.is_empty(), "{jobs:?} in: {script}");
}

/// The queue as it comes out of a file.
pub fn loaded(queue: &Queue) -> Queue {
    let mut loaded = Queue::new((3, 4));
    for job in queue.jobs() {
        let record = JobRecord::decode(&JobRecord::of(&job).encode()).unwrap();
        loaded.load(job.id.bytes(), job.body, &record).unwrap();
    }
    for group in Vec::<GroupRecord>::decode(&queue.group_records().encode()).unwrap() {
        loaded.load_group(&group).unwrap();
    }
    let pending: Vec<PendingRecord> = queue.pending_records().collect();
    loaded.load_pending(&Vec::<PendingRecord>::decode(&pending.encode()).unwrap()).unwrap();
    for record in queue.edge_records() {
        let record = EdgesRecord::decode(&record.encode()).unwrap();
        loaded.load_edges(&[record]).unwrap();
    }
    loaded.restore(&QueueRecord::decode(&queue.record().encode()).unwrap()).unwrap();
    loaded
}

fn accepted(jobs: Affected) -> String {
    jobs.0.to_string()
}

pub fn state_called(name: &str) -> State {
    State::ALL.into_iter().find(|state| state.name() == name).unwrap()
}

pub fn name(id: Id) -> String {
    String::from_utf8_lossy(id.bytes()).into()
}
