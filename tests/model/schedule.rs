//! Jobs of the reference that come back.

use dq::queue::State;

use crate::job::{Job, Stage, Tally};
use crate::reference::Reference;
use crate::run_state::RunState;
use crate::told::{Add, Bytes, IfTaken, Outcome, Policy, Rule, Starts, Timing, LAST};

pub const NO_ATTEMPTS_LEFT: &[u8] = b"no attempts left";
const LATE: &[u8] = b"late";
const EXPIRED: &[u8] = b"its time to live is over";

impl Job {
    /// When it is ready again, if the lease of its last attempt runs out.
    pub fn comes_back(&self) -> Option<u64> {
        let round = self
            .round
            .as_ref()
            .filter(|_| self.stage == Stage::Leased && self.is_at_its_last_attempt())?;
        Some(round.rule.ready(&self.id, round.next?).max(self.time))
    }

    /// How many times of its schedule passed without a run of their own.
    pub fn missed(&self) -> u64 {
        self.round.as_ref().map_or(0, |round| round.missed.into())
    }

    /// As somebody sees it who looks.
    pub fn note_at(&self, now: u64) -> Option<&Bytes> {
        self.note.as_ref().filter(|_| !self.has_come_back(now))
    }

    fn has_come_back(&self, now: u64) -> bool {
        self.time <= now && self.comes_back().is_some()
    }

    /// As it is at `now`, written down.
    fn written_down(&self, now: u64) -> Job {
        let mut job = self.clone();
        if matches!(self.stage, Stage::Dead | Stage::Done) {
            return job;
        }
        job.tally = self.tally_at(now);
        if let Some(death) = self.death().filter(|death| *death <= now) {
            let was_last = self.stage == Stage::Leased && self.is_at_its_last_attempt();
            let why = if was_last && self.time == death {
                NO_ATTEMPTS_LEFT
            } else if self.expires_at == Some(death) {
                EXPIRED
            } else {
                LATE
            };
            (job.stage, job.time, job.reason) = (Stage::Dead, death, Some(why.to_vec()));
            (job.lease, job.expires_at) = (None, None);
        } else if self.stage == Stage::Leased && self.time <= now {
            (job.stage, job.time, job.lease) = (Stage::Waiting, self.due(), None);
            if self.has_come_back(now) {
                job.round.as_mut().unwrap().fail();
                (job.attempt, job.reason) = (0, Some(NO_ATTEMPTS_LEFT.to_vec()));
                job.note = None;
            }
        }
        job
    }

    /// Why it is dead.
    pub fn reason_of_death(&self, now: u64) -> Option<Bytes> {
        let dead = self.written_down(now);
        let was_last = dead.is_at_its_last_attempt().then(|| NO_ATTEMPTS_LEFT.to_vec());
        dead.reason.or(was_last)
    }

    /// It is about to be handed out.
    pub fn begin_run(&mut self, now: u64) {
        if self.has_come_back(now) {
            self.round.as_mut().unwrap().fail();
            self.attempt = 0;
            self.reason = Some(NO_ATTEMPTS_LEFT.to_vec());
            self.note = None;
        }
        if let Some(round) = self.round.as_mut().filter(|_| self.attempt == 0) {
            round.begin(now);
        }
    }
}

impl Reference {
    pub fn add_schedule(
        &mut self,
        now: u64,
        policy: Policy,
        add: &Add,
        rule: &Rule,
        starts: Starts,
    ) -> Outcome {
        let name = add.id.clone().unwrap();
        let rule = &Rule { late: policy.late, ..*rule };
        let policy = Policy { ttl: 0, keep: 0, late: 0, ..policy };
        let is_gone = self.get(&name).is_some_and(|job| job.is_over(now));
        let there = self.get(&name).filter(|_| !is_gone).cloned();
        if there.is_some() && add.if_taken.leaves() {
            return Outcome::No;
        }
        if let Err(refused) = self.check_replaced(&name, add) {
            return refused;
        }
        if let Some(old) =
            there.as_ref().filter(|old| add.if_taken == IfTaken::Ensure && old.stage != Stage::Done)
        {
            let dies = old.state(now) == State::Dead && old.state(self.horizon) != State::Dead;
            let outcome = self.ensure(now, policy, add, (rule, starts), old);
            self.totals.died += u64::from(
                dies && outcome.has_changed()
                    && self.get(&name).is_some_and(|job| job.stage == Stage::Dead),
            );
            return outcome;
        }
        let is_full =
            self.settings.max_jobs != 0 && self.jobs.len() as u64 >= self.settings.max_jobs;
        if is_full && self.get(&name).is_none() {
            return Outcome::Full;
        }
        let Some(round) = RunState::new(rule, now, starts, true) else {
            let is_ensured = add.if_taken == IfTaken::Ensure;
            return if is_ensured { Outcome::Over { was_there: false } } else { Outcome::Never };
        };
        let due = rule.ready(&name, round.occurrence);
        self.put_scheduled(Job {
            id: name.clone(),
            body: add.body.clone(),
            created: now,
            policy,
            stage: Stage::Waiting,
            attempt: 0,
            lease: None,
            time: due,
            expires_at: None,
            reason: None,
            tally: Tally::default(),
            order: 0,
            group: add.options.group,
            round: Some(round),
            note: None,
            result: None,
            waits: None,
            is_known_dead: false,
        });
        self.totals.replaced += u64::from(there.is_some());
        self.totals.added += u64::from(there.is_none());
        self.totals.purged += u64::from(is_gone);
        Outcome::Added { id: name, due, replaced: there.is_some() }
    }

    fn put_scheduled(&mut self, job: Job) {
        let order = self.next_event();
        self.jobs.retain(|other| other.id != job.id);
        self.join(job.group);
        self.jobs.push(Job { order, ..job });
    }

    fn ensure(
        &mut self,
        now: u64,
        policy: Policy,
        add: &Add,
        new: (&Rule, Starts),
        stored: &Job,
    ) -> Outcome {
        let (rule, starts) = new;
        let old = &stored.written_down(now);
        let in_step = |round: &RunState| match (rule.timing, starts) {
            (Timing::Every(period), Starts::At(time)) => time.abs_diff(round.anchor) % period == 0,
            _ => true,
        };
        let same =
            old.round.as_ref().filter(|round| round.rule.timing == rule.timing && in_step(round));
        let group = add.options.group;
        let mut job = Job {
            body: add.body.clone(),
            policy,
            group,
            expires_at: None,
            waits: None,
            ..old.clone()
        };
        if let Some(before) = same {
            let mut round = RunState { rule: *rule, ..before.clone() };
            if old.stage == Stage::Waiting && old.attempt == 0 {
                if (!rule.allows(round.occurrence) || rule.is_last(round.runs)) && old.time > now {
                    return self.end_schedule(&old.id);
                }
                let had_same_limits =
                    (rule.until, rule.runs) == (before.rule.until, before.rule.runs);
                match round.next {
                    Some(next) => round.next = rule.allows(next).then_some(next),
                    None => round.is_decided &= had_same_limits,
                }
            } else if matches!(old.stage, Stage::Waiting | Stage::Leased) {
                round.next = if rule.is_last(round.runs) {
                    None
                } else if let Some(next) = round.next {
                    Some(next).filter(|next| rule.allows(*next))
                } else {
                    let after = if rule.all { round.occurrence } else { now.max(round.occurrence) };
                    round.following(after).0
                };
                round.is_decided = true;
            }
            job.round = Some(round);
        } else {
            let first = RunState::new(rule, now, starts, false);
            let under_way = old.round.as_ref().map_or(now, |round| round.occurrence);
            if matches!(old.stage, Stage::Waiting | Stage::Held) {
                let Some(first) = first else {
                    return self.end_schedule(&old.id);
                };
                job.time = rule.ready(&job.id, first.occurrence);
                (job.stage, job.attempt, job.lease) = (Stage::Waiting, 0, None);
                job.round = Some(first);
            } else {
                let next = first.as_ref().map(|first| first.occurrence);
                let round = RunState::at(rule, first.map_or(now, |first| first.anchor), under_way);
                job.round = Some(RunState { next, is_decided: true, ..round });
            }
        }
        // A lease that has run out stays good, where the job is the same with it.
        let mut leased = Job {
            body: job.body.clone(),
            policy,
            group,
            expires_at: None,
            waits: None,
            ..stored.clone()
        };
        leased.round = job.round.clone();
        if stored.has_come_back(now) {
            let round = stored.round.clone().unwrap();
            leased.round = Some(RunState { rule: *rule, ..round });
        }
        if (Job { order: job.order, ..leased.written_down(now) }) == job {
            job = leased;
        }
        if job == *stored {
            return Outcome::No;
        }
        let (name, due) = (job.id.clone(), job.time);
        self.put_scheduled(job);
        self.totals.replaced += 1;
        Outcome::Added { id: name, due, replaced: true }
    }

    /// Its limits allow no time any more.
    fn end_schedule(&mut self, id: &[u8]) -> Outcome {
        self.jobs.retain(|job| job.id != id);
        self.totals.deleted += 1;
        Outcome::Over { was_there: true }
    }

    /// The run is over. False when there is no other.
    pub fn arm(&mut self, now: u64, place: usize, failed: Option<Option<&Bytes>>) -> bool {
        let job = &mut self.jobs[place];
        let Some(round) = job.round.as_mut().filter(|round| round.next.is_some()) else {
            return false;
        };
        job.note = None;
        match failed {
            Some(reason) => {
                round.fail();
                job.reason = Some(reason.cloned().unwrap_or(NO_ATTEMPTS_LEFT.to_vec()));
            }
            None => assert!(round.arm()),
        }
        job.attempt = 0;
        let ready = round.rule.ready(&job.id, round.occurrence).max(now);
        self.wait(place, ready);
        true
    }

    /// Those that are too late, of which the first would be next, wait for what comes behind. How
    /// many that were.
    pub fn pass_over(&mut self, now: u64) -> usize {
        let mut passed_over = 0;
        while let Some(place) = self.first_to_leave(now) {
            let job = &mut self.jobs[place];
            let Some(late) =
                job.round.as_ref().map(|round| round.rule.late).filter(|late| *late != 0)
            else {
                break;
            };
            let (has_come_back, due) = (job.has_come_back(now), job.due());
            let mut round = job.round.clone().unwrap();
            let mut reason = None;
            if has_come_back {
                round.fail();
                (reason, job.note) = (Some(NO_ATTEMPTS_LEFT), None);
            }
            if has_come_back || job.attempt == 0 {
                if round.occurrence + round.rule.jitter + late > now {
                    break;
                }
                let before = round.missed;
                round.pass_over(now);
                self.totals.missed += u64::from(round.missed - before);
            } else {
                if due + late > now || due + late >= LAST {
                    break;
                }
                round.failed += 1;
                reason = Some(LATE);
            }
            passed_over += 1;
            job.tally = job.tally_at(now);
            match round.next {
                None => {
                    job.round = Some(round);
                    self.mark_dead(now, place, Some(&LATE.to_vec()));
                }
                Some(next) => {
                    round.arm();
                    let ready = round.rule.ready(&job.id, next).max(now);
                    (job.attempt, job.round, job.note) = (0, Some(round), None);
                    job.reason = reason.map(Vec::from).or(job.reason.take());
                    self.wait(place, ready);
                }
            }
        }
        passed_over
    }

    pub fn kick_schedule(&mut self, now: u64, place: usize, due: u64) -> bool {
        let job = &mut self.jobs[place];
        let (state, has_come_back) = (job.state(now), job.has_come_back(now));
        let tally = job.tally_at(now);
        let round = job.round.as_mut().unwrap();
        match state {
            State::Dead => {
                (round.occurrence, round.next, round.is_decided) = (due, None, false);
                (job.attempt, job.reason) = (0, None);
            }
            State::Delayed => {
                if has_come_back {
                    round.fail();
                    (job.attempt, job.reason) = (0, Some(NO_ATTEMPTS_LEFT.to_vec()));
                    job.note = None;
                }
                if job.attempt == 0 {
                    if !round.is_decided {
                        // Neither the beginning of time nor its end is a next occurrence.
                        let next = Some(round.occurrence).filter(|next| (1..LAST).contains(next));
                        (round.next, round.is_decided) = (next, true);
                    }
                    round.occurrence = now;
                }
            }
            State::Ready | State::Reserved | State::Done | State::Held => return false,
        }
        self.jobs[place].tally = Tally { kicked: tally.kicked + 1, ..tally };
        self.wait(place, due);
        self.totals.kicked += 1;
        true
    }
}
