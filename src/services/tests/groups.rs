//! The account's groups: whose turn it is, and what holds a group back. As everything in an
//! account, it is worked out anew from a list whenever it is asked, and shares no code with the
//! queue.

use std::collections::{BTreeMap, BTreeSet};

use super::account::{Job, Stage, State};
use super::operation::{Bytes, GroupLimits, Pace};

type Name = Bytes;

#[derive(Clone, Debug)]
struct Group {
    /// The one that came first goes first: when its first job did.
    serial: u64,
    paused_until: u64,
    /// When the next job would leave by the rate, in parts of a millisecond.
    arrival: u128,
    /// Until when the rate held it back last, or does.
    blocked_until: u64,
}

/// Those that could leave when it began have a turn in it.
#[derive(Clone, Debug, Default)]
struct Round {
    began: u64,
    /// Which group had come last by then.
    last_serial: u64,
    /// `None` are the jobs without a group.
    had: BTreeSet<Option<Name>>,
}

impl Round {
    fn has_turn(&self, name: Option<&Name>, opens: u64, serial: u64) -> bool {
        self.last_serial > 0
            && opens <= self.began
            && serial <= self.last_serial
            && !self.had.contains(&name.cloned())
    }
}

/// The job that leaves next, and what its leaving makes of the turns.
pub struct Turn<'a> {
    pub job: &'a Job,
    is_counted: bool,
    is_new_round: bool,
}

/// As it is to be counted.
pub struct Counted {
    group: Option<Name>,
    priority: u8,
    is_counted: bool,
    is_new_round: bool,
}

#[derive(Clone, Debug, Default)]
pub struct Groups {
    all: BTreeMap<Name, Group>,
    /// By priority.
    rounds: BTreeMap<u8, Round>,
    last_serial: u64,
    limits: GroupLimits,
}

impl Pace {
    /// Parts of a millisecond between two jobs, of which `self.jobs` make one.
    fn distance(self) -> u128 {
        self.per.into()
    }

    fn parts(self) -> u128 {
        self.jobs.into()
    }

    fn tolerance(self) -> u128 {
        u128::from(self.burst - 1) * self.distance()
    }

    /// The furthest that it may be where nobody is to wait for longer than one distance.
    fn one_ahead(self, now: u64) -> u128 {
        u128::from(now) * self.parts() + self.tolerance() + self.distance()
    }

    fn opens(self, arrival: u128) -> u64 {
        u64::try_from(arrival.saturating_sub(self.tolerance()) / self.parts()).unwrap()
    }

    /// Until when a group is held back, if it is now.
    fn holds(self, arrival: u128, now: u64) -> Option<u64> {
        Some(self.opens(arrival)).filter(|opens| *opens > now)
    }

    fn after_one(self, arrival: u128, now: u64) -> u128 {
        let now_parts = u128::from(now) * self.parts();
        // Further ahead than jobs can have brought it: the clock was set back.
        let is_set_back = arrival >= self.one_ahead(now) + self.parts();
        let from = if is_set_back { now_parts + self.tolerance() } else { arrival.max(now_parts) };
        from + self.distance()
    }
}

/// It stands in line: it will be ready, or was, unless it dies before.
fn stands(job: &Job) -> bool {
    let stage = matches!(job.stage, Stage::Waiting | Stage::Leased);
    stage && job.death().is_none_or(|death| death > job.time)
}

impl Groups {
    fn make(&mut self, name: &[u8]) -> &mut Group {
        let last_serial = &mut self.last_serial;
        self.all.entry(name.to_vec()).or_insert_with(|| {
            *last_serial += 1;
            Group { serial: *last_serial, paused_until: 0, arrival: 0, blocked_until: 0 }
        })
    }

    /// A job of this group comes, beside these.
    pub fn join(&mut self, name: Option<&Name>, jobs: &[Job]) {
        let Some(name) = name else {
            return;
        };
        let is_first = !jobs.iter().any(|job| job.new.group.as_ref() == Some(name));
        if let Some(group) = self.all.get_mut(name).filter(|_| is_first) {
            self.last_serial += 1;
            group.serial = self.last_serial;
        }
        self.make(name);
    }

    pub fn pause(&mut self, name: &[u8], until: u64) {
        self.make(name).paused_until = until;
    }

    pub fn resume(&mut self, name: &[u8]) -> bool {
        self.all.get_mut(name).is_some_and(|group| std::mem::take(&mut group.paused_until) > 0)
    }

    pub fn limit(&mut self, now: u64, limits: GroupLimits) {
        let before = std::mem::replace(&mut self.limits, limits);
        if before == limits {
            return;
        }
        for group in self.all.values_mut() {
            group.arrival = match (before.pace, limits.pace) {
                (Some(old), Some(new)) if old == new => group.arrival,
                (Some(old), Some(new)) => {
                    let same = (group.arrival * new.parts()).div_ceil(old.parts());
                    same.min(new.one_ahead(now))
                }
                (None, Some(_)) | (_, None) => 0,
            };
            if before.pace != limits.pace {
                let holds = limits.pace.and_then(|pace| pace.holds(group.arrival, now));
                group.blocked_until = holds.unwrap_or_default();
            }
        }
    }

    /// One that there are.
    pub fn have_a_rate(&self) -> bool {
        self.limits.pace.is_some() && !self.all.is_empty()
    }

    /// From when on nothing holds back this group, as things stand.
    fn opens(&self, name: &Name, jobs: &[Job]) -> u64 {
        let Some(group) = self.all.get(name) else {
            return 0;
        };
        let mut opens = group.paused_until;
        if let Some(places) = self.limits.places.checked_sub(1) {
            let its = jobs.iter().filter(|job| job.new.group.as_ref() == Some(name));
            let leased = its.filter(|job| job.stage == Stage::Leased);
            let end = |job: &Job| job.expires_at.map_or(job.time, |expiry| expiry.min(job.time));
            let mut ends: Vec<u64> = leased.map(end).collect();
            ends.sort_unstable_by(|one, other| other.cmp(one));
            opens = opens.max(ends.get(places as usize).copied().unwrap_or_default());
        }
        opens.max(self.limits.pace.map_or(0, |_| group.blocked_until))
    }

    /// From when on this job isn't held back.
    pub fn holds_until(&self, job: &Job, jobs: &[Job]) -> u64 {
        job.new.group.as_ref().map_or(0, |name| self.opens(name, jobs))
    }

    /// Whether a lease of this job may live again that has run out.
    pub fn has_place(&self, now: u64, job: &Job, jobs: &[Job]) -> bool {
        let (Some(_), 1..) = (&job.new.group, self.limits.places) else {
            return true;
        };
        let is_live =
            |other: &&Job| other.new.group == job.new.group && other.state(now) == State::Reserved;
        jobs.iter().filter(is_live).count() < self.limits.places as usize
    }

    /// Who leaves next, by priority, turn and time.
    pub fn first<'a>(&self, now: u64, jobs: &'a [Job]) -> Option<Turn<'a>> {
        let priorities: BTreeSet<u8> = jobs.iter().map(|job| job.new.priority).collect();
        priorities.into_iter().find_map(|priority| self.first_of(now, priority, jobs))
    }

    fn first_of<'a>(&self, now: u64, priority: u8, jobs: &'a [Job]) -> Option<Turn<'a>> {
        let here: Vec<&Job> =
            jobs.iter().filter(|job| job.new.priority == priority && stands(job)).collect();
        let first = |name: Option<&Name>| {
            let its = here.iter().filter(|job| job.new.group.as_ref() == name);
            its.filter(|job| job.state(now) == State::Ready).min_by_key(|job| job.place()).copied()
        };
        let since = |name: Option<&Name>| {
            here.iter().filter(|job| job.new.group.as_ref() == name).map(|job| job.time).min()
        };
        let own = first(None);
        if here.iter().all(|job| job.new.group.is_none()) {
            return own.map(|job| Turn { job, is_counted: false, is_new_round: false });
        }
        // Groups that may leave, by when they could have for the first time.
        let mut groups: Vec<(u64, u64, &Name, &Job)> = Vec::new();
        for (name, group) in &self.all {
            let opens = since(Some(name)).map(|since| since.max(self.opens(name, jobs)));
            if let (Some(opens), Some(job)) =
                (opens.filter(|opens| *opens <= now), first(Some(name)))
            {
                groups.push((opens, group.serial, name, job));
            }
        }
        groups.sort_unstable_by_key(|(opens, serial, ..)| (*opens, *serial));
        let own_since = since(None).unwrap_or(u64::MAX);
        let round = self.rounds.get(&priority).cloned().unwrap_or_default();
        for is_new_round in [false, true] {
            let may = |name, opens, serial| is_new_round || round.has_turn(name, opens, serial);
            let group =
                groups.iter().find(|(opens, serial, name, _)| may(Some(name), *opens, *serial));
            let own = own.filter(|_| may(None, own_since, 0));
            let turn = |job| Some(Turn { job, is_counted: true, is_new_round });
            match (own, group) {
                (Some(own), Some((opens, ..))) if own_since <= *opens => return turn(own),
                (Some(own), None) => return turn(own),
                (_, Some((.., job))) => return turn(job),
                (None, None) => (),
            }
        }
        None
    }

    /// This one leaves now.
    pub fn count(&mut self, now: u64, counted: &Counted) {
        if counted.is_counted {
            let round = self.rounds.entry(counted.priority).or_default();
            if counted.is_new_round {
                *round = Round { began: now, last_serial: self.last_serial, had: BTreeSet::new() };
            }
            round.began = round.began.min(now);
            round.had.insert(counted.group.clone());
        }
        let pace = self.limits.pace;
        let group = counted.group.as_ref().and_then(|name| self.all.get_mut(name));
        if let (Some(group), Some(pace)) = (group, pace) {
            group.arrival = pace.after_one(group.arrival, now);
            group.blocked_until = pace.holds(group.arrival, now).unwrap_or(group.blocked_until);
        }
    }

    /// Behind everything that has changed something: a group without jobs of which nothing counts
    /// is forgotten. (With two names, all are looked at each time.)
    pub fn tidy(&mut self, before: u64, now: u64, jobs: &[Job]) {
        if let Some(pace) = self.limits.pace.filter(|_| now < before) {
            for group in self.all.values_mut() {
                group.arrival = group.arrival.min(pace.one_ahead(now));
                group.blocked_until = pace.holds(group.arrival, now).unwrap_or_default();
            }
        }
        self.forget_idle(now, jobs);
        if self.all.is_empty() {
            self.rounds.clear();
            self.last_serial = 0;
        }
    }

    /// How many are gone.
    pub fn forget_idle(&mut self, now: u64, jobs: &[Job]) -> usize {
        let (before, pace) = (self.all.len(), self.limits.pace);
        self.all.retain(|name, group| {
            let has_jobs = jobs.iter().any(|job| job.new.group.as_ref() == Some(name));
            let is_pace_over =
                pace.is_none_or(|pace| group.arrival <= u128::from(now) * pace.parts());
            has_jobs || !is_pace_over || group.paused_until > now
        });
        before - self.all.len()
    }
}

impl Turn<'_> {
    pub fn counted(&self) -> Counted {
        let Turn { job, is_counted, is_new_round } = *self;
        Counted {
            group: job.new.group.clone(),
            priority: job.new.priority,
            is_counted,
            is_new_round,
        }
    }
}

impl Counted {
    /// Somebody asked for it: no turn, but it counts for the rate.
    pub fn by_id(job: &Job) -> Counted {
        let (group, priority) = (job.new.group.clone(), job.new.priority);
        Counted { group, priority, is_counted: false, is_new_round: false }
    }
}
