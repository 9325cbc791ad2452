//! A queue that a command of the real server has opened; and how its client waits.

use std::time::Duration;

use super::lifecycle;
use super::value::QueueValue;
use crate::queue::{Batch, Changed, Checksum, Claim, Id, Operation, Pop, Queue, Time};
use crate::server::arg::Arg;
use crate::server::call::Call;
use crate::server::key::{Key, OpenValue, WrongType};
use crate::server::{blocking, context};
use crate::services::change::divergence;
use crate::services::change::frame::{self, Frame, Source};
use crate::services::change::log::{LogForm, LoggedCircumstances};
use crate::services::host::Host;
use crate::services::key_ref::{Access, QueueKey};
use crate::services::live::{is_steady_primary, Live, LIVE};
use crate::services::waiting::wish::{Shape, Wish};
use crate::services::waiting::{reply, serving, watching};

/// The server's timeout is later than ours by this much: see [`servers_own_timeout`].
const LATER_THAN_THE_TIMER: Duration = Duration::from_secs(2);

/// Where this command comes from.
pub fn source_of(call: &Call) -> Source {
    if is_steady_primary() || !call.is_from_log() {
        Source::Client
    } else {
        Source::Log
    }
}

/// A queue that a command has opened.
pub struct OpenedKey<'c> {
    key: Key<'c>,
    value: OpenValue<'c, QueueValue>,
    is_new: bool,
}

impl<'c> OpenedKey<'c> {
    /// `None` if there is no such key.
    pub fn at(
        call: &Call<'c>,
        name: Arg<'c>,
        access: Access,
    ) -> Result<Option<OpenedKey<'c>>, WrongType> {
        let key = call.key(name);
        Ok(key.open(access)?.map(|value| OpenedKey { key, value, is_new: false }))
    }

    /// Creates the key if there is none.
    pub fn or_created(call: &Call<'c>, name: Arg<'c>) -> Result<OpenedKey<'c>, WrongType> {
        let key = call.key(name);
        let (value, is_new) =
            key.open_or_create(|| lifecycle::new(LIVE, Queue::new(context::hash_seed())))?;
        Ok(OpenedKey { key, value, is_new })
    }

    /// Applies an operation as a command of this source: see [`Frame::change`].
    pub fn change<O: Operation, R>(
        mut self,
        source: Source,
        operation: &O,
        reply: impl FnOnce(&O::Outcome, &Queue) -> R,
    ) -> R {
        let frame = self.frame_for(source);
        let (replied, has_changed) = frame.change(operation, LogForm::AsSent, |outcome, queue| {
            (reply(outcome, queue), outcome.has_changed())
        });
        self.close(has_changed);
        replied
    }

    /// Applies an operation as a log entry with circumstances.
    pub fn replay_entry<O: Operation>(mut self, logged: &LoggedCircumstances, operation: &O) {
        let (key, value) = (self.key, self.value.get());
        if !value.queue.compare_checksum(Checksum(logged.check)) {
            divergence::report(key.name());
        }
        let frame = Frame::new(LIVE, key, value, Source::Log, Some(logged));
        let has_changed =
            frame.change(operation, LogForm::AsSent, |outcome, _| outcome.has_changed());
        self.close(has_changed);
    }

    /// Deletes a key that was created for a command that changed nothing.
    fn close(self, has_changed: bool) {
        if self.is_new && !has_changed {
            self.value.delete();
        }
    }

    /// Opens the frame for a command of this source.
    #[inline(always)]
    pub fn frame_for(&mut self, source: Source) -> Frame<'_, Live> {
        Frame::new(LIVE, self.key, self.value.get(), source, None)
    }

    /// Advances the queue for a read-only command. Returns the queue and its current time.
    pub fn look(&mut self) -> (&QueueValue, Time) {
        let value = self.value.get();
        let now = frame::look(LIVE, &self.key, value);
        (value, now)
    }

    /// How many clients wait for this queue.
    pub fn consumers(&self) -> usize {
        serving::consumers_at(LIVE, &self.key)
    }
}

/// Blocks the client until there are jobs at one of these keys, or until `timeout`, when it gets
/// nil. A client that can't block, in a transaction or a script, gets nil at once.
pub fn wait(
    call: &Call,
    keys: &[Arg],
    (pop, batch): (&Pop, Option<Batch>),
    shape: Shape,
    timeout: Option<Duration>,
) {
    let database = call.database();
    let places = keys.iter().map(|key| (database, key.into())).collect();
    let wish = Wish::jobs(*pop, batch, shape, places);
    if !wait_for(call, keys, wish, timeout) {
        reply::nothing(call.replies(), shape);
    } else if batch.is_some() {
        // The timer finds out for how long the first job may wait.
        keys.iter().for_each(|key| serving::serve_soon(LIVE, database, key.bytes()));
    }
}

impl OpenedKey<'_> {
    /// Makes the client wait until this job is done, dead or gone. False if it can't wait.
    pub fn wait_for_job(
        &mut self,
        call: &Call,
        name: Arg,
        id: Id,
        timeout: Option<Duration>,
    ) -> bool {
        let key_ref = (call.database(), (&name).into());
        let queue = &mut self.value.get().queue;
        let wish = may_watch(call).then(|| watching::job_wish(queue, key_ref, id)).flatten();
        wish.is_some_and(|wish| self.watch(call, name, wish, timeout))
    }

    fn watch(&mut self, call: &Call, name: Arg, wish: Wish, timeout: Option<Duration>) -> bool {
        let waits = wait_for(call, &[name], wish, timeout);
        watching::plan(LIVE, &self.key, self.value.get());
        waits
    }

    /// Makes the client wait until one of these leases is void. The places of those that are void
    /// already, if there are any or if the client can't wait.
    pub fn wait_for_leases(
        &mut self,
        call: &Call,
        name: Arg,
        claims: &[Claim],
        timeout: Option<Duration>,
    ) -> Option<Vec<usize>> {
        let key_ref = (call.database(), (&name).into());
        if !may_watch(call) {
            return Some(Vec::new());
        }
        let queue = &mut self.value.get().queue;
        let now = queue.horizon();
        match watching::leases_wish(queue, key_ref, now, claims) {
            Ok(wish) => (!self.watch(call, name, wish, timeout)).then(Vec::new),
            Err(void) => Some(void),
        }
    }

    /// How many clients wait for what becomes of jobs and leases of this queue.
    pub fn watchers(&self) -> usize {
        watching::watchers_at(LIVE, &self.key)
    }
}

/// Whether the client may wait for what becomes of a job. Not on a replica, where the timer rests.
fn may_watch(call: &Call) -> bool {
    LIVE.with(|state| state.is_active()) && call.may_block()
}

/// Blocks the client until it gets what it wants of these keys. False if it can't block.
fn wait_for(call: &Call, keys: &[Arg], wish: Wish, timeout: Option<Duration>) -> bool {
    let at_latest = timeout.map(servers_own_timeout);
    let block =
        |ticket| call.may_block().then(|| blocking::block(call, keys, at_latest, ticket)).flatten();
    serving::wait(LIVE, wish, timeout, block)
}

/// Timeout passed to the server. Our timer ends waits a few per loop iteration; the server ends all
/// that are over in one iteration, at some 15 µs each. So the server's timeout is 2 s later, as a
/// fallback. Without our timer it is exact.
fn servers_own_timeout(timeout: Duration) -> Duration {
    if LIVE.with(|state| state.is_active()) {
        timeout.saturating_add(LATER_THAN_THE_TIMER)
    } else {
        timeout
    }
}
