//! The frame around every change of a queue. A command says what is to be done; what follows from a
//! change (that it is logged, that watchers hear of it, that consumers are served, that the timer
//! comes) happens here, and can't be forgotten: a command has no other way to change a queue. The
//! timer and deliveries go through [`commit`].

use super::commit::{circumstances, commit, time_for};
use super::host::Host;
use super::lazyfree;
use super::log::{LogForm, LoggedCircumstances};
use super::notify::{self, Announced};
use super::place::QueueKey;
use super::value::QueueValue;
use super::waiting;
use super::wakeup;
use crate::queue::{Answers, Changed, Checksum, Circumstances, Deliveries, Following, Queue, Time};

/// Whose command it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    Client,
    /// A primary's, or one of an AOF: it gets the queue's own clock, and is subject to no limits of
    /// this server.
    Log,
}

/// For those who only look at a queue; when that is, for this queue. Time has passed in it.
pub fn look<H: Host>(host: H, key: &H::Key<'_>, value: &mut QueueValue) -> Time {
    let now = time_for(&value.queue, host.wall_clock());
    value.queue.advance(now);
    if value.is_unlocated() || value.is_to_be_planned() {
        wakeup::plan(host, value, || key.database(), || key.name());
    }
    now
}

/// A queue that is open for somebody's command. Time has passed in it.
pub struct OpenQueue<'q, H: Host> {
    host: H,
    key: H::Key<'q>,
    value: &'q mut QueueValue,
    circumstances: Circumstances,
    source: Source,
    /// What the log tells of the calendar.
    answers: &'q [Following],
}

impl<'q, H: Host> OpenQueue<'q, H> {
    #[inline(always)]
    pub fn new(
        host: H,
        key: H::Key<'q>,
        value: &'q mut QueueValue,
        source: Source,
    ) -> OpenQueue<'q, H> {
        let circumstances = match source {
            Source::Client => circumstances(host, value),
            Source::Log => value.queue.circumstances(),
        };
        let mut open = OpenQueue { host, key, value, circumstances, source, answers: &[] };
        open.let_time_pass();
        open
    }

    /// Of an entry of the log that tells its circumstances. False as well when the queue has come
    /// to something else than where the entry was written.
    pub fn for_entry(
        host: H,
        key: H::Key<'q>,
        value: &'q mut QueueValue,
        logged: &'q LoggedCircumstances,
    ) -> (OpenQueue<'q, H>, bool) {
        let circumstances = logged.circumstances(value.queue.log_state());
        let is_same = value.queue.compare_checksum(Checksum(logged.check));
        let (source, answers) = (Source::Log, logged.answers());
        let mut open = OpenQueue { host, key, value, circumstances, source, answers };
        open.let_time_pass();
        (open, is_same)
    }

    fn let_time_pass(&mut self) {
        // What the log says doesn't depend on that; it is for the totals.
        let now = self.circumstances.now;
        if self.source == Source::Client || now > self.value.queue.horizon() {
            self.value.queue.advance(now);
        }
    }

    pub fn now(&self) -> Time {
        self.circumstances.now
    }

    pub fn queue(&self) -> &Queue {
        &self.value.queue
    }

    /// Hands out to whoever asks; false, without a reply, when there is nothing for them. Those who
    /// have been waiting for this queue come first: also those whose turn hasn't come yet, if this
    /// one `would_wait`, too.
    pub fn hand_out<O: Announced<Outcome = Deliveries>>(
        mut self,
        pop: &O,
        would_wait: impl FnOnce() -> bool,
        log_as: LogForm,
        reply: impl FnOnce(&Deliveries, &Queue),
    ) -> bool {
        if self.source == Source::Client && waiting::consumers(self.host) > 0 {
            let now = self.circumstances.now;
            self.serve(|| now);
            if waiting::are_others_first(self.host, &self.key) && would_wait() {
                return false;
            }
            // Uses the time at which the waiting clients were served. With a later one, this client
            // could take a job that fell due in between, ahead of them.
            self.circumstances.now = time_for(&self.value.queue, self.circumstances.now);
        }
        self.change(pop, log_as, |deliveries, queue| {
            if !deliveries.is_empty() {
                reply(deliveries, queue);
            }
            !deliveries.is_empty()
        })
    }

    /// Does this, replies, and sees to what follows. Returns what the reply returned.
    pub fn change<O: Announced, R>(
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
        if outcome.has_changed() {
            // It may have taken long: leases begin when they are given.
            let host = self.host;
            self.serve(|| host.wall_clock());
            let is_unfinished = |it: &Deliveries| it.is_empty() && it.have_ended_early();
            if self.source == Source::Client && O::deliveries(&outcome).is_some_and(is_unfinished) {
                // There may be more, for which this one is perhaps going to wait.
                waiting::serve_soon(self.host, self.key.database(), self.key.name());
            }
        } else if self.value.is_to_be_planned() {
            wakeup::plan(self.host, self.value, || self.key.database(), || self.key.name());
        }
        replied
    }

    /// Does what the log says: nobody is told but those who get this server's own log.
    fn replay<O: Announced>(&mut self, operation: &O) -> O::Outcome {
        let mut answers = Answers(self.answers);
        let outcome = self.value.queue.apply_by(&self.circumstances, operation, &mut answers);
        lazyfree::free_removed(&mut self.value.queue);
        self.key.replicate_as_sent();
        if outcome.has_changed() {
            self.key.signal_modified();
            notify::count(&O::announce(&outcome));
        }
        // A replica, where nothing happens by itself, tells no watcher.
        notify::events(self.host, &mut self.value.queue);
        // By this server's clock: what the log says of the time may be from any other.
        let (lease, now) = (self.value.last_lease(), self.host.wall_clock());
        self.host.with(|state| state.leases.observe(lease, now));
        outcome
    }

    fn serve(&mut self, now: impl FnOnce() -> Time) {
        // A client may send what a log says, too.
        if self.source == Source::Client
            || self.host.with(|state| state.is_primary && !state.is_loading)
        {
            waiting::serve_at_command(self.host, &self.key, self.value, now);
        }
        wakeup::plan(self.host, self.value, || self.key.database(), || self.key.name());
    }
}
