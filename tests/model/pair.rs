//! A queue and its reference under one clock.

use dq::queue::Queue;

use crate::compare::compare;
use crate::log::Entry;
use crate::operation::{Floor, Turn};
use crate::reference::Reference;
use crate::schedule::OfTests;
use crate::subject::{at, circumstances, Subject};
use crate::told::{Circumstances, Command, Outcome, LEASE_MAX};
use crate::{watch, SEED};

pub struct Pair {
    pub subject: Subject,
    pub reference: Reference,
    pub clock: u64,
}

impl Pair {
    pub fn new(clock: u64) -> Pair {
        Pair { subject: Subject::new(Queue::new(SEED)), reference: Reference::default(), clock }
    }

    /// Plays a turn on both; what is to be logged of it.
    pub fn play(&mut self, turn: &Turn) -> Vec<Entry> {
        self.clock = turn.jump.from(self.clock);
        let readers = turn.readers.time(self.clock, self.reference.horizon);
        self.advance(if turn.operation.looks_first() { self.clock } else { readers });
        let commands = turn.operation.commands(self.clock, &self.reference, &self.subject);
        let told = self.circumstances(turn);
        let entries = commands.iter().filter_map(|command| self.apply(&told, command)).collect();
        compare(&self.subject.queue, &self.reference);
        entries
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

    fn apply(&mut self, told: &Circumstances, command: &Command) -> Option<Entry> {
        let log_state = *self.subject.queue.log_state();
        let mut calendar = OfTests::default();
        let for_sink = matches!(command, Command::Pop { no_ack: true, .. })
            .then(|| self.subject.next_for_sink(&circumstances(told)));
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
        let expected = self.reference.apply(told, command, &outcome);
        assert_eq!(outcome, expected, "of {command:?} under {told:?}");
        Entry::of(&log_state, circumstances(told), command, &outcome, calendar.0)
    }
}
