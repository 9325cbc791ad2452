//! A queue that a command of the real server has opened; and how its client waits for one.

use std::time::Duration;

use super::divergence;
use super::frame::{self, OpenQueue, Source};
use super::live::{is_active, is_settled_primary, Live};
use super::log::{LogForm, LoggedCircumstances};
use super::notify::Announced;
use super::place::{Access, QueueKey};
use super::value::QueueValue;
use super::waiters::Shape;
use super::{lifecycle, waiting};
use crate::queue::{Changed, Pop, Queue, Time};
use crate::server::arg::Arg;
use crate::server::call::Call;
use crate::server::key::{Key, OpenValue, WrongType};
use crate::server::{blocking, context};

/// The server ends waits that the timer has left by then.
const LATER_THAN_THE_TIMER: Duration = Duration::from_secs(2);

/// Whose command this is.
pub fn source_of(call: &Call) -> Source {
    if is_settled_primary() || !call.is_from_log() {
        Source::Client
    } else {
        Source::Log
    }
}

/// A queue that a command has opened.
pub struct OpenedQueue<'c> {
    key: Key<'c>,
    value: OpenValue<'c, QueueValue>,
    is_new: bool,
}

impl<'c> OpenedQueue<'c> {
    /// `None` when there is no such key.
    pub fn at(
        call: &Call<'c>,
        name: Arg<'c>,
        access: Access,
    ) -> Result<Option<OpenedQueue<'c>>, WrongType> {
        let key = call.key(name);
        Ok(key.open(access)?.map(|value| OpenedQueue { key, value, is_new: false }))
    }

    /// Made if there is no such key.
    pub fn or_created(call: &Call<'c>, name: Arg<'c>) -> Result<OpenedQueue<'c>, WrongType> {
        let key = call.key(name);
        let (value, is_new) = key.open_or_create(|| {
            lifecycle::new(Live::WITHOUT_CONTEXT, Queue::new(context::hash_seed()))
        })?;
        Ok(OpenedQueue { key, value, is_new })
    }

    /// Does this as a command of this source: see [`OpenQueue::change`].
    pub fn change<O: Announced, R>(
        mut self,
        source: Source,
        operation: &O,
        reply: impl FnOnce(&O::Outcome, &Queue) -> R,
    ) -> R {
        let open = self.queue_for(source);
        let (replied, has_changed) = open.change(operation, LogForm::AsSent, |outcome, queue| {
            (reply(outcome, queue), outcome.has_changed())
        });
        self.close(has_changed);
        replied
    }

    /// Does this as an entry of the log that tells its circumstances.
    pub fn replay_entry<O: Announced>(mut self, logged: &LoggedCircumstances, operation: &O) {
        let open = self.queue_for_entry(logged);
        let has_changed =
            open.change(operation, LogForm::AsSent, |outcome, _| outcome.has_changed());
        self.close(has_changed);
    }

    /// Where nothing was done, and nothing logged, a key that was made for it is none.
    fn close(self, has_changed: bool) {
        if self.is_new && !has_changed {
            self.value.delete();
        }
    }

    /// For a command of this source.
    pub fn queue_for(&mut self, source: Source) -> OpenQueue<'_, Live<'static>> {
        OpenQueue::new(Live::WITHOUT_CONTEXT, self.key, self.value.get(), source)
    }

    /// For an entry of the log that tells its circumstances.
    fn queue_for_entry<'s>(
        &'s mut self,
        logged: &'s LoggedCircumstances,
    ) -> OpenQueue<'s, Live<'static>> {
        let key = self.key;
        let (open, is_same) =
            OpenQueue::for_entry(Live::WITHOUT_CONTEXT, key, self.value.get(), logged);
        if !is_same {
            divergence::report(key.name());
        }
        open
    }

    /// For those who only look; and when that is, for this queue. Time has passed in it.
    pub fn look(&mut self) -> (&QueueValue, Time) {
        let value = self.value.get();
        let now = frame::look(Live::WITHOUT_CONTEXT, &self.key, value);
        (value, now)
    }

    /// How many consumers wait for this queue.
    pub fn consumers(&self) -> usize {
        waiting::consumers_at(Live::WITHOUT_CONTEXT, &self.key)
    }
}

/// The client that called waits for jobs of these keys, or for nil after `timeout`. One that can't
/// wait, as in a transaction or a script, gets nil at once.
pub fn wait(call: &Call, keys: &[Arg], pop: &Pop, shape: Shape, timeout: Option<Duration>) {
    let database = call.database();
    let places = keys.iter().map(|key| (database, key.into())).collect();
    let at_latest = timeout.map(servers_own_timeout);
    let block =
        |ticket| call.may_block().then(|| blocking::block(call, keys, at_latest, ticket)).flatten();
    if !waiting::wait(Live::WITHOUT_CONTEXT, places, pop, shape, timeout, block) {
        call.replies().null();
    }
}

/// After this time the server ends the wait. It ends all that are over in one turn, at some 15 µs
/// each; our timer ends a few in each turn. So the server comes later, for what the timer leaves
/// out. Where the timer rests, it comes in time.
fn servers_own_timeout(timeout: Duration) -> Duration {
    if is_active() {
        timeout.saturating_add(LATER_THAN_THE_TIMER)
    } else {
        timeout
    }
}
