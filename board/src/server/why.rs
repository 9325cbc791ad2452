//! Why a queue hands out nothing, or takes nothing: all causes that can be told from what is known
//! of it. docs/board/why.md has them as a table, in the same order.

use super::groups::HeldBack;
use super::health::Health;
use super::queue::Info;

/// In the order in which they are told: what must end first, before the others matter, is first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    Replica,
    LacksReplicas,
    DiskFailed,
    Paused,
    Concurrency,
    Rate,
    /// All ready jobs are of groups that are at their limits, or paused.
    Groups,
    Sink,
    NoWorkers,
    /// Workers have jobs, and none waits for another one.
    Busy,
    /// Workers wait, jobs are ready, and nothing above explains it.
    Unknown,
    BehindDead,
    /// MAXJOBS: it takes no jobs.
    Full,
    MemoryFull,
    NothingReady,
}

impl Cause {
    /// Whether something is wrong: the others are what an operator has set, or will pass.
    pub fn is_fault(self) -> bool {
        !matches!(
            self,
            Cause::Paused
                | Cause::Concurrency
                | Cause::Rate
                | Cause::Groups
                | Cause::Busy
                | Cause::NothingReady
        )
    }
}

/// Workers that ask now and then need not be waiting at this moment, nor finish at once.
const STILL_MS: u64 = 15_000;

/// What is known of a queue and its server.
pub struct Seen<'a> {
    pub info: &'a Info,
    pub health: &'a Health,
    /// Jobs handed out a second; `None` until that has been seen for a while.
    pub popped: Option<f64>,
    /// `None` where the groups weren't looked at.
    pub held_back: Option<&'a HeldBack>,
}

impl Seen<'_> {
    pub fn causes(&self) -> Vec<Cause> {
        let info = self.info;
        let mut causes = self.of_server();
        if info.is_paused {
            causes.push(Cause::Paused);
        }
        if info.counts.ready > 0 {
            causes.extend(self.of_limits());
        }
        if info.sink.error.is_some() {
            causes.push(Cause::Sink);
        }
        if causes.is_empty() {
            causes.extend(self.of_workers());
        }
        for (is_so, cause) in [
            (info.held_behind_dead > 0, Cause::BehindDead),
            (info.is_full(), Cause::Full),
            (self.health.memory_is_full, Cause::MemoryFull),
            (info.counts.ready == 0 && !self.delivers(), Cause::NothingReady),
        ] {
            causes.extend(is_so.then_some(cause));
        }
        causes
    }

    /// How much a queue needs a look: one in which something is wrong more than one that has dead jobs,
    /// and of these one that has ten times as many. What is wrong with its server is so for all queues.
    pub fn illness(&self) -> u32 {
        const OF_FAULT: u32 = 100;
        let info = self.info;
        let is_quiet = info.counts.ready == 0
            && info.counts.dead == 0
            && info.sink.error.is_none()
            && !info.is_full();
        if is_quiet {
            return 0;
        }
        let is_own =
            |cause: &Cause| cause.is_fault() && (Cause::Paused..=Cause::Full).contains(cause);
        let is_wrong = self.causes().iter().any(is_own);
        let digits = info.counts.dead.checked_ilog10().map_or(0, |log| log + 1);
        digits + if is_wrong { OF_FAULT } else { 0 }
    }

    pub fn delivers(&self) -> bool {
        self.popped.is_some_and(|popped| popped > 0.0)
    }

    /// Whether reading its groups may tell more.
    pub fn asks_for_groups(&self) -> bool {
        self.info.groups > 0
            && self.info.counts.ready > 0
            && !self.delivers()
            && !self.causes().iter().any(|cause| *cause < Cause::Groups)
    }

    fn of_server(&self) -> Vec<Cause> {
        let health = self.health;
        let may_stop = self.info.counts.ready > 0 && !self.delivers();
        [
            (health.replica_of.is_some(), Cause::Replica),
            (health.lacks_replicas, Cause::LacksReplicas),
            // Where the server is told to go on without its files, it does.
            (health.disk_failed && may_stop, Cause::DiskFailed),
        ]
        .into_iter()
        .filter_map(|(is_so, cause)| is_so.then_some(cause))
        .collect()
    }

    /// What holds back jobs that are ready. A sink needs no place of CONCURRENCY.
    fn of_limits(&self) -> Vec<Cause> {
        let (info, settings) = (self.info, &self.info.settings);
        let is_taken = settings.concurrency > 0
            && info.counts.reserved >= settings.concurrency
            && info.sink.stream.is_none();
        let has_left = info.limits.rate_left != Some(0);
        let is_spent = settings.rate.jobs > 0
            && (!has_left || (info.limits.blocked_until.is_some() && !is_taken));
        if is_taken || is_spent {
            let causes = [(is_taken, Cause::Concurrency), (is_spent, Cause::Rate)];
            return causes.into_iter().filter_map(|(is, cause)| is.then_some(cause)).collect();
        }
        let all_of_groups = self.held_back.is_some_and(|held| held.ready >= info.counts.ready);
        // Else one of them would have a job.
        let workers_wait = info.groups > 0 && info.waiting_consumers > 0 && !info.is_paused;
        let is_blocked = all_of_groups || workers_wait;
        is_blocked.then_some(Cause::Groups).into_iter().collect()
    }

    /// What only time tells: a job is ready, and for a while none was handed out.
    fn of_workers(&self) -> Option<Cause> {
        let info = self.info;
        let stands_still = self.popped == Some(0.0) && info.oldest_ready_ms > Some(STILL_MS);
        if !stands_still {
            return None;
        }
        match (info.waiting_consumers, info.counts.reserved, &info.sink.stream) {
            (0, 0, None) => Some(Cause::NoWorkers),
            // A group's limit holds jobs back in the same way.
            (0, _, None) if info.groups > 0 && self.held_back.is_none() => None,
            (0, _, None) => Some(Cause::Busy),
            _ => Some(Cause::Unknown),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::queue::{Counts, Limits, Rate, Settings, Sink};

    /// A queue in which three jobs are ready and have been for a minute.
    fn ready() -> Info {
        Info {
            jobs: 3,
            counts: Counts { ready: 3, ..Counts::default() },
            oldest_ready_ms: Some(60_000),
            ..Info::default()
        }
    }

    fn told(info: &Info, popped: Option<f64>) -> Vec<Cause> {
        Seen { info, health: &Health::default(), popped, held_back: None }.causes()
    }

    fn still(info: &Info) -> Vec<Cause> {
        told(info, Some(0.0))
    }

    #[test]
    fn each_limit_and_setting_is_a_cause_of_its_own() {
        let paused = Info { is_paused: true, ..ready() };
        assert_eq!(still(&paused), [Cause::Paused]);

        let mut info = ready();
        info.settings = Settings { concurrency: 5, ..Settings::default() };
        info.counts.reserved = 5;
        assert_eq!(still(&info), [Cause::Concurrency]);
        info.counts.reserved = 4;
        assert_eq!(still(&info), [Cause::Busy]);

        let rate = Rate { jobs: 1, per_ms: 1_000, burst: 1 };
        let mut info = ready();
        info.settings = Settings { rate, ..Settings::default() };
        info.limits = Limits { rate_left: Some(0), blocked_until: Some(9) };
        assert_eq!(told(&info, Some(1.0)), [Cause::Rate]);
        info.limits = Limits { rate_left: Some(1), blocked_until: None };
        assert_eq!(told(&info, Some(1.0)), []);

        let sink = Sink { stream: Some(b"out".to_vec()), error: Some(b"OOM".to_vec()), maxlen: 0 };
        assert_eq!(still(&Info { sink: sink.clone(), ..ready() }), [Cause::Sink]);
        // A sink waits for no worker, and takes no place.
        let mut info = Info { sink: Sink { error: None, ..sink }, ..ready() };
        info.settings.concurrency = 1;
        info.counts.reserved = 1;
        assert_eq!(still(&info), [Cause::Unknown]);

        let mut info = ready();
        info.settings.max_jobs = 3;
        assert_eq!(told(&info, Some(1.0)), [Cause::Full]);
        assert_eq!(told(&Info { held_behind_dead: 2, ..ready() }, Some(1.0)), [Cause::BehindDead]);
    }

    #[test]
    fn workers_are_the_cause_only_when_nothing_was_handed_out_for_a_while() {
        let mut info = ready();
        assert_eq!(still(&info), [Cause::NoWorkers]);
        assert_eq!(told(&info, None), []);
        assert_eq!(told(&info, Some(0.2)), []);
        info.oldest_ready_ms = Some(STILL_MS);
        assert_eq!(still(&info), []);
        info.oldest_ready_ms = Some(60_000);
        info.counts.reserved = 2;
        assert_eq!(still(&info), [Cause::Busy]);
        info.waiting_consumers = 1;
        assert_eq!(still(&info), [Cause::Unknown]);
    }

    #[test]
    fn groups_hold_back_all_ready_jobs_or_are_no_cause() {
        let info = Info { groups: 2, ..ready() };
        let health = Health::default();
        let with = |ready: u64| {
            let held = HeldBack { ready, limited: 1, ..HeldBack::default() };
            let held_back = Some(&held);
            Seen { info: &info, health: &health, popped: Some(0.0), held_back }.causes()
        };
        assert_eq!(with(3), [Cause::Groups]);
        assert_eq!(with(2), [Cause::NoWorkers]);
        let mut busy = info.clone();
        busy.counts.reserved = 1;
        assert_eq!(still(&busy), []);
        // Workers that wait would have a job that may go.
        let waiting = Info { waiting_consumers: 1, ..info.clone() };
        assert_eq!(told(&waiting, Some(1.0)), [Cause::Groups]);
        let asks = |info: &Info, popped| {
            Seen { info, health: &health, popped, held_back: None }.asks_for_groups()
        };
        assert!(asks(&info, Some(0.0)) && asks(&info, None));
        assert!(!asks(&info, Some(1.0)) && !asks(&ready(), Some(0.0)));
        assert!(!asks(&Info { is_paused: true, ..info.clone() }, Some(0.0)));
    }

    #[test]
    fn a_queue_without_a_ready_job_says_so_unless_it_delivers() {
        let info = Info::default();
        assert_eq!(told(&info, None), [Cause::NothingReady]);
        assert_eq!(still(&info), [Cause::NothingReady]);
        assert_eq!(told(&info, Some(3.0)), []);
        // Limits hold nothing back then.
        let mut info = Info { groups: 1, waiting_consumers: 1, ..Info::default() };
        info.settings.concurrency = 1;
        info.counts.reserved = 1;
        assert_eq!(still(&info), [Cause::NothingReady]);
    }

    #[test]
    fn the_server_s_own_trouble_is_told_first() {
        let all = Health {
            replica_of: Some("h:1".into()),
            lacks_replicas: true,
            disk_failed: true,
            memory_is_full: true,
        };
        let told =
            |info: &Info, popped| Seen { info, health: &all, popped, held_back: None }.causes();
        let server = [Cause::Replica, Cause::LacksReplicas];
        let still = [&server[..], &[Cause::DiskFailed, Cause::MemoryFull]].concat();
        assert_eq!(told(&ready(), Some(0.0)), still);
        // A server that hands out jobs has been told to go on.
        assert_eq!(told(&ready(), Some(1.0)), [&server[..], &[Cause::MemoryFull]].concat());
    }

    #[test]
    fn all_causes_come_in_one_order() {
        let mut info = Info { is_paused: true, held_behind_dead: 1, ..ready() };
        info.settings.concurrency = 1;
        info.settings.rate.jobs = 1;
        info.settings.max_jobs = 1;
        info.counts.reserved = 1;
        info.limits.rate_left = Some(0);
        let health = Health { replica_of: Some("h:1".into()), ..Health::default() };
        let seen = Seen { info: &info, health: &health, popped: Some(0.0), held_back: None };
        let causes = seen.causes();
        let mut sorted = causes.clone();
        sorted.sort();
        assert_eq!(causes, sorted);
        assert_eq!(
            causes,
            [
                Cause::Replica,
                Cause::Paused,
                Cause::Concurrency,
                Cause::Rate,
                Cause::BehindDead,
                Cause::Full
            ]
        );
    }
}
