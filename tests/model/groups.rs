//! Groups of the reference: each thing that holds one back is worked out anew from its jobs, and
//! whose turn it is by looking at all of them.

use std::collections::{BTreeMap, BTreeSet};

use dq::queue::State;

use crate::job::{Job, Line, Stage};
use crate::reference::Reference;
use crate::told::{Rate, LAST};

/// By number: see [`name`].
pub type Name = u8;

/// What a group is called.
pub fn name(number: Name) -> Vec<u8> {
    // Any bytes will do, as many as of an id.
    match number {
        0 => vec![0],
        1 => vec![b'g'; 512],
        n => format!("group {n}").into_bytes(),
    }
}

#[derive(Clone, Debug, Default)]
pub struct Groups {
    /// In the order in which they were made.
    pub all: Vec<Group>,
    /// By priority.
    rounds: BTreeMap<u8, RunState>,
    last_serial: u64,
    swept: u64,
    idle_before: usize,
}

/// Those that could leave when it began have a turn.
#[derive(Clone, Debug, Default)]
struct RunState {
    began: u64,
    /// Those that came later have a greater one.
    last_serial: u64,
    /// 0: those without a group.
    had: BTreeSet<u64>,
}

impl RunState {
    fn has_turn(&self, serial: u64, opens: u64) -> bool {
        self.last_serial > 0
            && opens <= self.began
            && serial <= self.last_serial
            && !self.had.contains(&serial)
    }
}

#[derive(Clone, Debug)]
pub struct Group {
    pub name: Name,
    /// Another one each time that its first job comes.
    serial: u64,
    /// In parts of a millisecond of the rate.
    arrival: i128,
    /// Until when the rate held it back last, or does.
    blocked_until: u64,
    pub paused_until: u64,
}

/// What a look at a group shows.
#[derive(Debug, PartialEq, Eq)]
pub struct Seen {
    pub ready: usize,
    pub reserved: usize,
    pub delayed: usize,
    pub paused_until: Option<u64>,
    pub opens: Option<u64>,
}

/// Who may leave next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Contender {
    waits_for_next_round: bool,
    opens: u64,
    /// 0: those without a group.
    serial: u64,
    group: Option<Name>,
}

fn parts(rate: Rate, time: u64) -> i128 {
    i128::from(time) * i128::from(rate.jobs)
}

/// From when on nothing counts of what has left.
fn rate_over(rate: Rate, arrival: i128) -> u64 {
    let jobs = i128::from(rate.jobs);
    ((arrival.max(0) + jobs - 1) / jobs) as u64
}

fn tolerance(rate: Rate) -> i128 {
    i128::from(rate.burst - 1) * i128::from(rate.per)
}

/// No group waits for longer than for one distance.
fn clamped(rate: Rate, arrival: i128, now: u64) -> i128 {
    arrival.min(parts(rate, now) + tolerance(rate) + i128::from(rate.per))
}

/// Until when the rate holds a group back, if it does now.
fn holds(rate: Rate, arrival: i128, now: u64) -> Option<u64> {
    let opens = (arrival - tolerance(rate)).max(0) / i128::from(rate.jobs);
    Some(u64::try_from(opens).unwrap()).filter(|opens| *opens > now)
}

impl Reference {
    fn group(&self, name: Name) -> Option<&Group> {
        self.groups.all.iter().find(|group| group.name == name)
    }

    fn group_mut(&mut self, name: Name) -> &mut Group {
        if self.group(name).is_none() {
            let serial = self.next_serial();
            self.groups.all.push(Group {
                name,
                serial,
                arrival: 0,
                blocked_until: 0,
                paused_until: 0,
            });
        }
        self.groups.all.iter_mut().find(|group| group.name == name).unwrap()
    }

    fn next_serial(&mut self) -> u64 {
        self.groups.last_serial += 1;
        self.groups.last_serial
    }

    /// A job of this group comes.
    pub fn join(&mut self, group: Option<Name>) {
        let Some(name) = group else {
            return;
        };
        let is_first = !self.jobs.iter().any(|job| job.group == group);
        if is_first && self.group(name).is_some() {
            self.group_mut(name).serial = self.next_serial();
        }
        self.group_mut(name);
    }

    fn leases(&self, name: Name) -> Vec<u64> {
        let jobs =
            self.jobs.iter().filter(|job| job.group == Some(name) && job.stage == Stage::Leased);
        jobs.map(|job| job.end_of_lease().unwrap()).collect()
    }

    /// From when on nothing holds back this group.
    fn gate(&self, group: &Group) -> u64 {
        let mut gate = group.paused_until;
        let limit = self.settings.group_concurrency as usize;
        if limit > 0 {
            let ends = self.leases(group.name);
            // The first moment at which there are few enough.
            let is_free = |time: &u64| ends.iter().filter(|end| *end > time).count() < limit;
            gate = gate.max(ends.iter().copied().chain([0]).filter(is_free).min().unwrap());
        }
        if self.settings.group_rate.is_some() {
            gate = gate.max(group.blocked_until);
        }
        gate
    }

    /// Since when each group, or those without one, has something in this priority that waits to be
    /// handed out: also what has expired there.
    fn lines(&self, priority: u8) -> BTreeMap<Option<Name>, u64> {
        let mut lines = BTreeMap::new();
        for job in &self.jobs {
            let (line, time, _) = job.place();
            if line == Line::Lane(priority) || line == Line::Grouped(priority) {
                let first = lines.entry(job.group).or_insert(time);
                *first = time.min(*first);
            }
        }
        lines
    }

    fn opens(&self, group: Option<Name>, since: u64) -> u64 {
        since.max(group.map_or(0, |name| self.gate(self.group(name).unwrap())))
    }

    fn priorities(&self) -> BTreeSet<u8> {
        self.jobs.iter().map(|job| job.policy.priority).collect()
    }

    /// Which job leaves next, and as whose turn.
    fn next_to_leave(&self, now: u64) -> Option<(usize, u8, Contender)> {
        let (priority, first) = self.priorities().into_iter().find_map(|priority| {
            let first = self.first_in(priority, now)?;
            Some((priority, first))
        })?;
        let is_its = |job: &Job| {
            (job.policy.priority, job.group) == (priority, first.group)
                && job.state(now) == State::Ready
        };
        let jobs = self.jobs.iter().enumerate().filter(|(_, job)| is_its(job));
        let (place, _) = jobs.min_by_key(|(_, job)| (job.due(), job.order)).unwrap();
        Some((place, priority, first))
    }

    pub fn first_to_leave(&self, now: u64) -> Option<usize> {
        self.next_to_leave(now).map(|(place, ..)| place)
    }

    /// It leaves.
    pub fn take_next(&mut self, now: u64) -> Option<usize> {
        let (place, priority, first) = self.next_to_leave(now)?;
        self.count_turn(priority, &first, now);
        Some(place)
    }

    fn first_in(&self, priority: u8, now: u64) -> Option<Contender> {
        let ready = self.jobs.iter().filter(|job| job.policy.priority == priority);
        let ready: BTreeSet<Option<Name>> =
            ready.filter(|job| job.state(now) == State::Ready).map(|job| job.group).collect();
        let lines = self.lines(priority).into_iter().filter(|(group, _)| ready.contains(group));
        let round = self.groups.rounds.get(&priority).cloned().unwrap_or_default();
        let contenders = lines.map(|(group, since)| {
            let serial = group.map_or(0, |name| self.group(name).unwrap().serial);
            let opens = self.opens(group, since);
            let waits_for_next_round = !round.has_turn(serial, opens);
            Contender { waits_for_next_round, opens, serial, group }
        });
        contenders.filter(|contender| contender.opens <= now).min()
    }

    fn count_turn(&mut self, priority: u8, first: &Contender, now: u64) {
        if self.lines(priority).keys().all(Option::is_none) {
            return;
        }
        let last_serial = self.groups.last_serial;
        let round = self.groups.rounds.entry(priority).or_default();
        if first.waits_for_next_round {
            *round = RunState { began: now, last_serial, had: BTreeSet::new() };
        }
        // The clock may have been set back.
        round.began = round.began.min(now);
        round.had.insert(first.serial);
        self.count_for_its_rate(first.group, now);
    }

    pub fn count_for_its_rate(&mut self, group: Option<Name>, now: u64) {
        if let (Some(name), Some(rate)) = (group, self.settings.group_rate) {
            let group = self.group_mut(name);
            let arrival =
                if group.arrival >= parts(rate, now + 1) + tolerance(rate) + i128::from(rate.per) {
                    // The clock was set back.
                    parts(rate, now) + tolerance(rate)
                } else {
                    group.arrival.max(parts(rate, now))
                };
            group.arrival = arrival + i128::from(rate.per);
            group.blocked_until = holds(rate, group.arrival, now).unwrap_or(group.blocked_until);
        }
    }

    /// Whether nothing holds back this job's group, if it has one.
    pub fn may_leave_its_group(&self, job: &Job, now: u64) -> bool {
        job.group.is_none_or(|name| self.gate(self.group(name).unwrap()) <= now)
    }

    /// Whether a lease of this job that has run out may live again.
    pub fn has_place_in_group(&self, job: &Job, now: u64) -> bool {
        let limit = self.settings.group_concurrency as usize;
        let live =
            job.group.map_or(0, |name| self.leases(name).iter().filter(|end| **end > now).count());
        limit == 0 || live < limit
    }

    pub fn pause_group(&mut self, name: Name, until: u64) {
        self.group_mut(name).paused_until = until;
    }

    pub fn resume_group(&mut self, name: Name) -> bool {
        let group = self.groups.all.iter_mut().find(|group| group.name == name);
        group.is_some_and(|group| std::mem::take(&mut group.paused_until) > 0)
    }

    pub fn alter_group_rate(&mut self, before: Option<Rate>, now: u64) {
        let rate = self.settings.group_rate;
        for group in &mut self.groups.all {
            group.arrival = match (rate, before) {
                (Some(rate), Some(before)) if rate == before => group.arrival,
                (Some(rate), Some(before)) => {
                    let (jobs, others) = (i128::from(rate.jobs), i128::from(before.jobs));
                    clamped(rate, (group.arrival * jobs + others - 1) / others, now)
                }
                _ => 0,
            };
            if rate.is_none() || rate != before {
                group.blocked_until =
                    rate.and_then(|rate| holds(rate, group.arrival, now)).unwrap_or_default();
            }
        }
    }

    /// Whether the clock was set back, which ends what their rate holds back by the clock as it
    /// was.
    pub fn is_set_back_for_groups(&self, now: u64) -> bool {
        now < self.clock && self.settings.group_rate.is_some() && !self.groups.all.is_empty()
    }

    /// Behind an operation that has changed something.
    pub fn tidy_groups(&mut self, before: u64, now: u64) {
        if let Some(rate) = self.settings.group_rate.filter(|_| now < before) {
            for group in &mut self.groups.all {
                group.arrival = clamped(rate, group.arrival, now);
                group.blocked_until = holds(rate, group.arrival, now).unwrap_or_default();
            }
        }
        let len = self.idle_groups().len();
        let looks = 2 + 2 * len.saturating_sub(self.groups.idle_before);
        self.look_at_groups(looks, now);
        self.groups.idle_before = self.idle_groups().len();
        if self.groups.all.is_empty() {
            self.groups = Groups::default();
        }
    }

    /// What a FORGET without ids does: with so few groups, it looks at all of them.
    pub fn forget_groups(&mut self, now: u64) -> usize {
        let (before, swept) = (self.groups.all.len(), self.groups.swept);
        self.look_at_groups(usize::MAX, now);
        let forgotten = before - self.groups.all.len();
        if forgotten == 0 {
            self.groups.swept = swept;
        }
        forgotten
    }

    /// When the timer forgets groups, or looks for some: not while there are changes.
    pub fn forgets_groups_at(&self) -> Option<u64> {
        let quiet = self.clock + 1_000;
        let idle = self.idle_groups();
        if self.horizon < quiet {
            return idle.first().map(|_| quiet);
        }
        let ends = idle.iter().map(|(_, name)| {
            let group = self.group(*name).unwrap();
            let over = self.settings.group_rate.map_or(0, |rate| rate_over(rate, group.arrival));
            group.paused_until.max(over)
        });
        ends.min().map(|end| end.max(quiet))
    }

    fn idle_groups(&self) -> BTreeSet<(u64, Name)> {
        let with_jobs: BTreeSet<Option<Name>> = self.jobs.iter().map(|job| job.group).collect();
        let all = self.groups.all.iter().filter(|group| !with_jobs.contains(&Some(group.name)));
        all.map(|group| (group.serial, group.name)).collect()
    }

    fn look_at_groups(&mut self, looks: usize, now: u64) {
        for _ in 0..looks.min(self.idle_groups().len()) {
            let idle = self.idle_groups();
            let next = idle.iter().find(|(serial, _)| *serial > self.groups.swept).or(idle.first());
            let Some((serial, name)) = next.copied() else {
                break;
            };
            self.groups.swept = serial;
            let group = self.group(name).unwrap();
            let rate = self.settings.group_rate;
            let is_rate_over = rate.is_none_or(|rate| group.arrival <= parts(rate, now));
            if group.paused_until <= now && is_rate_over {
                self.groups.all.retain(|group| group.name != name);
            }
        }
    }

    /// When a group may leave that may not now.
    pub fn next_group(&self) -> Option<u64> {
        let lines = self.priorities().into_iter().flat_map(|priority| self.lines(priority));
        let lines = lines
            .filter(|(group, _)| group.is_some())
            .map(|(group, since)| self.opens(group, since));
        lines.filter(|opens| *opens > self.horizon).min()
    }

    pub fn see_group(&self, group: &Group) -> Seen {
        let count =
            |state| self.in_state(state).filter(|job| job.group == Some(group.name)).count();
        let lines = self.priorities().into_iter().flat_map(|priority| self.lines(priority));
        let since =
            lines.filter(|(name, _)| *name == Some(group.name)).map(|(_, since)| since).min();
        Seen {
            ready: count(State::Ready),
            reserved: count(State::Reserved),
            delayed: count(State::Delayed),
            paused_until: Some(group.paused_until).filter(|until| *until > self.horizon),
            opens: since.map(|since| self.opens(Some(group.name), since)),
        }
    }
}

/// A pause of a group lasts until then.
pub fn until(now: u64, span: Option<u64>) -> u64 {
    span.map_or(LAST, |span| (now + span).min(LAST))
}
