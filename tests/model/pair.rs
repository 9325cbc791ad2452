//! A queue and its reference under one clock.

use dq::queue::{Batch, Millis, Mode};

use crate::compare::compare;
use crate::log::Entry;
use crate::operation::{Floor, Operation, Turn};
use crate::reference::Reference;
use crate::run_state::OfTests;
use crate::subject::{at, circumstances, Subject};
use crate::told::{Bytes, Circumstances, Command, Outcome, LEASE_MAX};
use crate::{watch, SEED};

pub struct Pair {
    pub subject: Subject,
    pub reference: Reference,
    pub clock: u64,
}

impl Pair {
    pub fn new(clock: u64) -> Pair {
        Pair {
            subject: Subject::new(crate::file::new_queue(SEED)),
            reference: Reference::default(),
            clock,
        }
    }

    /// Plays a turn on both; what is to be logged of it.
    pub fn play(&mut self, turn: &Turn) -> Vec<Entry> {
        self.clock = turn.jump.from(self.clock);
        let readers = turn.readers.time(self.clock, self.reference.horizon);
        self.advance(if turn.operation.looks_first() { self.clock } else { readers });
        let mut entries: Vec<Entry> = self.settle(turn).into_iter().collect();
        if matches!(turn.operation, Operation::Upkeep) {
            entries.extend(std::iter::from_fn(|| self.settle(turn)));
        }
        let commands = turn.operation.commands(self.clock, &self.reference, &self.subject);
        let told = self.circumstances(turn);
        entries.extend(commands.iter().filter_map(|command| self.apply(&told, command)));
        compare(&self.subject.queue, &self.reference);
        entries
    }

    /// What the frame does before a change, and the timer: jobs that others wait for have died by
    /// now, which the log has to know. Before a change, some of them; the timer comes to all.
    fn settle(&mut self, turn: &Turn) -> Option<Entry> {
        let told = self.circumstances(turn);
        let is_due = self.subject.queue.settles_at().is_some_and(|time| time <= at(self.clock));
        if !is_due || matches!(turn.operation, Operation::Look) {
            return None;
        }
        let most = if matches!(turn.operation, Operation::Upkeep) { usize::MAX } else { 3 };
        let ids = self.subject.to_settle(self.clock, most);
        let due = self.reference.unsettled().filter(|(_, death)| *death <= self.clock);
        let due: Vec<&Bytes> = due.map(|(id, _)| id).collect();
        assert!(ids.iter().all(|id| due.contains(&id)), "{ids:?} of {due:?}");
        assert!(ids.len() == due.len() || (most < usize::MAX && !ids.is_empty()), "{ids:?}");
        let entry = self.apply(&told, &Command::Settle { ids });
        assert!(entry.is_some(), "a death that is settled is in the log");
        entry
    }

    pub fn advance(&mut self, to: u64) {
        self.subject.queue.advance(at(to));
        self.reference.advance(to);
    }

    fn circumstances(&self, turn: &Turn) -> Circumstances {
        let lease_floor = match turn.floor {
            Floor::None => 0,
            Floor::OfClock => self.clock << 11,
            Floor::Above(more) => self.reference.last_lease + more,
        };
        let lease_floor = lease_floor.min(LEASE_MAX - 9);
        Circumstances { now: self.clock, defaults: turn.defaults, lease_floor }
    }

    /// Of a pop, how many it wants, and whether so many may go: in a queue where neither groups nor
    /// schedules say more about that, and which has leases left.
    fn whether_worth(&self, told: &Circumstances, command: &Command) -> Option<(usize, bool)> {
        let queue = &self.subject.queue;
        let last_lease = self.reference.last_lease.max(told.lease_floor).max(told.now << 11);
        let has_leases = last_lease < LEASE_MAX / 2;
        let is_plain = queue.groups_len() == 0 && queue.schedules() == 0 && has_leases;
        match command {
            Command::Pop { count, no_ack, .. } if is_plain => {
                let mode = if *no_ack { Mode::NoAck } else { Mode::Lease };
                let batch = Batch { min: *count, linger: Millis::MAX };
                Some((*count, queue.is_worth(at(told.now), mode, batch)))
            }
            _ => None,
        }
    }

    fn apply(&mut self, told: &Circumstances, command: &Command) -> Option<Entry> {
        let log_state = *self.subject.queue.log_state();
        let mut calendar = OfTests::default();
        let for_sink = matches!(command, Command::Pop { no_ack: true, .. })
            .then(|| self.subject.next_for_sink(&circumstances(told)));
        let worth = self.whether_worth(told, command);
        // Not always: it takes as long as all the rest.
        let watched = (self.clock % 4 == 0).then(|| watch::all(&mut self.subject.queue));
        let outcome = self.subject.apply(&circumstances(told), command, &mut calendar);
        match watched {
            Some(watched) => watch::check(&mut self.subject.queue, &watched, command),
            None => drop(self.subject.queue.take_news()),
        }
        if let (Outcome::HandedOut(handed, _), Some(for_sink)) = (&outcome, for_sink) {
            let first = handed.first().map(|job| (job.id.clone(), job.body.clone()));
            assert_eq!(for_sink, first, "a sink takes what a pop hands out first");
        }
        if let (Outcome::HandedOut(handed, 0), Some((min, is_worth))) = (&outcome, worth) {
            assert_eq!(handed.len() >= min, is_worth, "{min} jobs are worth a delivery");
        }
        let expected = self.reference.apply(told, command, &outcome);
        assert_eq!(outcome, expected, "of {command:?} under {told:?}");
        Entry::of(&log_state, circumstances(told), command, &outcome, calendar.0)
    }
}
