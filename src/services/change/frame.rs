//! The frame around every change of a queue. A command gives the operation; the frame does what
//! follows from a change: it logs and announces it, serves waiting clients and arms the timer. No
//! command can forget that, as it has no other way to change a queue. The timer and deliveries use
//! [`commit`].

use super::commit::{circumstances, commit, time_for};
use super::log::{LogForm, LoggedCircumstances};
use super::notify;
use super::settle;
use crate::queue::{
    Answers, Changed, Circumstances, Deliveries, Following, Operation, Queue, Time,
};
use crate::services::host::Host;
use crate::services::key_ref::QueueKey;
use crate::services::keys::lazyfree;
use crate::services::keys::value::QueueValue;
use crate::services::timer::{sink, wakeup};
use crate::services::waiting::wish::Class;
use crate::services::waiting::{serving, watching};

/// Where a command comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    Client,
    /// The command comes from the primary or an AOF. It runs at the queue's clock, and this
    /// server's limits don't apply.
    Log,
}

/// Advances the queue for a read-only command. Returns the queue's current time.
pub fn look<H: Host>(host: H, key: &H::Key<'_>, value: &mut QueueValue) -> Time {
    let now = time_for(&value.queue, host.wall_clock());
    value.queue.advance(now);
    if value.is_unlocated() || value.is_to_be_planned() {
        wakeup::plan(host, value, || key.database(), || key.name());
    }
    now
}

/// A queue that is open for a command, and advanced to its time.
pub struct Frame<'q, H: Host> {
    host: H,
    key: H::Key<'q>,
    value: &'q mut QueueValue,
    circumstances: Circumstances,
    source: Source,
    /// The calendar's answers from the log.
    answers: &'q [Following],
    /// Opening it has settled edges.
    has_settled: bool,
}

impl<'q, H: Host> Frame<'q, H> {
    /// `entry` has the circumstances of a log entry, where they were logged with it.
    #[inline(always)]
    pub fn new(
        host: H,
        key: H::Key<'q>,
        value: &'q mut QueueValue,
        source: Source,
        entry: Option<&'q LoggedCircumstances>,
    ) -> Frame<'q, H> {
        let circumstances = match (entry, source) {
            (Some(entry), _) => entry.circumstances(value.queue.log_state()),
            (None, Source::Client) => circumstances(host, value),
            (None, Source::Log) => value.queue.circumstances(),
        };
        // Replay doesn't depend on the horizon; this only updates the totals.
        let now = circumstances.now;
        if source == Source::Client || now > value.queue.horizon() {
            value.queue.advance(now);
        }
        let answers = entry.map_or(&[][..], |entry| &entry.answers);
        let has_settled =
            source == Source::Client && settle::before_change(host, &key, value, &circumstances);
        Frame { host, key, value, circumstances, source, answers, has_settled }
    }

    pub fn now(&self) -> Time {
        self.circumstances.now
    }

    pub fn queue(&self) -> &Queue {
        &self.value.queue
    }

    /// Serves waiting clients first, then this client. Returns false without a reply if nothing is
    /// left for it, if what is left isn't worth it, or if it could wait and others are still to be
    /// served.
    pub fn deliver<O: Operation<Outcome = Deliveries>>(
        mut self,
        pop: &O,
        class: Class,
        would_wait: impl FnOnce() -> bool,
        log_as: LogForm,
        reply: impl FnOnce(&Deliveries, &Queue),
    ) -> bool {
        if self.source == Source::Client && serving::consumers(self.host) > 0 {
            let now = self.circumstances.now;
            self.serve(|| now);
            if serving::are_others_first(self.host, &self.key) && would_wait() {
                return false;
            }
            // Uses the time at which the waiting clients were served. With a later one, this client
            // could take a job that fell due in between, ahead of them.
            self.circumstances.now = time_for(&self.value.queue, self.circumstances.now);
        }
        if !class.is_worth(&self.value.queue, self.circumstances.now) {
            self.end(false);
            return false;
        }
        self.change(pop, log_as, |deliveries, queue| {
            if !deliveries.is_empty() {
                reply(deliveries, queue);
            }
            !deliveries.is_empty()
        })
    }

    /// Applies an operation, replies, and does what follows. Returns what `reply` returned.
    pub fn change<O: Operation, R>(
        mut self,
        operation: &O,
        log_as: LogForm,
        reply: impl FnOnce(&O::Outcome, &Queue) -> R,
    ) -> R {
        let outcome = match self.source {
            Source::Client => {
                commit(self.host, &self.key, self.value, &self.circumstances, operation, log_as)
            }
            Source::Log => self.replay(operation),
        };
        let replied = reply(&outcome, &self.value.queue);
        self.end(outcome.has_changed());
        let is_unfinished = |it: &Deliveries| it.is_empty() && it.have_ended_early();
        if self.source == Source::Client && outcome.deliveries().is_some_and(is_unfinished) {
            // The pop stopped at its budget. Look again soon, as this client may block.
            serving::serve_soon(self.host, self.key.database(), self.key.name());
        }
        replied
    }

    /// What follows from a change, if there was one.
    #[inline(always)]
    fn end(&mut self, has_changed: bool) {
        if has_changed || self.has_settled {
            // Read the clock again, so that leases of waiting clients start now.
            let host = self.host;
            self.serve(|| host.wall_clock());
        } else if self.value.is_to_be_planned() {
            wakeup::plan(self.host, self.value, || self.key.database(), || self.key.name());
        }
    }

    /// Replays an entry. It sends no notifications, but forwards the entry to this server's
    /// replicas and AOF.
    fn replay<O: Operation>(&mut self, operation: &O) -> O::Outcome {
        let mut answers = Answers(self.answers);
        let outcome = self.value.queue.apply_by(&self.circumstances, operation, &mut answers);
        lazyfree::free_removed(&mut self.value.queue);
        self.key.replicate_as_sent();
        if outcome.has_changed() {
            self.key.signal_modified();
        }
        // They are counted, and no more: a replica sends no notifications.
        notify::events(self.host, &mut self.value.queue);
        watching::report(self.host, &self.key, self.value, self.circumstances.now);
        // Uses this server's clock: the log's times come from another one.
        let (lease, now) = (self.value.last_lease(), self.host.wall_clock());
        self.host.with(|state| state.leases.observe(lease, now));
        outcome
    }

    fn serve(&mut self, now: impl FnOnce() -> Time) {
        // A client can send DQ.APPLY to a primary; waiting clients must be served then.
        if self.source == Source::Client || self.host.with(|state| state.is_active()) {
            serving::serve_at_command(self.host, &self.key, self.value, now);
        }
        sink::wake(self.host, self.value);
        wakeup::plan(self.host, self.value, || self.key.database(), || self.key.name());
    }
}
