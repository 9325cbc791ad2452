//! The services in a real server: their host, and what they do when it calls.

use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::calendar::{self, Reading};
use super::frame::{OpenQueue, Source};
use super::host::{self, Host, QueueKey};
use super::log::{self, Told, Wording};
use super::notify::Announced;
use super::place::Database;
use super::state::State;
use super::value::QueueValue;
use super::waiters::{Around, Departure, JobShape, Shape, Ticket};
use super::{aside, config, frame, info, moved, pacemaker, waiting, wakeup, whereabouts};
use crate::queue::{Changed, Cron, Defaults, Mode, Pop, Queue, Time};
use crate::server::arg::Arg;
use crate::server::blocking;
use crate::server::call::Call;
use crate::server::client::{self, Client};
use crate::server::context::{self, Context};
use crate::server::hooks::{Aside, Hooks};
use crate::server::key::{self, Cursor, Key, OpenValue, WrongType};
use crate::server::logfile::{self, warning};
use crate::server::main_thread::MainThread;
use crate::server::replies::Replies;
use crate::server::{slots, timer};

static STATE: MainThread<State<Client>> = MainThread::new(State::NEW);
static WALK: MainThread<Option<Cursor>> = MainThread::new(None);

/// Whether this server is a primary that isn't loading.
static IS_ACTIVE: AtomicBool = AtomicBool::new(false);
/// Whether all commands come from clients: so in such a primary, but while slots are on their way to it.
static HAS_ONLY_CLIENTS: AtomicBool = AtomicBool::new(false);

const LATER_THAN_THE_TIMER: Duration = Duration::from_secs(2);

/// Divergences are told this often at most.
const BETWEEN_WARNINGS: Duration = Duration::from_secs(1);

/// The server, inside a callback or a command.
#[derive(Clone, Copy)]
pub struct Live<'c> {
    /// Of a timer, for keys that no command names.
    context: Option<Context<'c>>,
}

impl Live<'_> {
    pub const INSIDE_A_COMMAND: Live<'static> = Live { context: None };
}

/// What the server is to call.
pub const HOOKS: Hooks = Hooks {
    alarm: |context| {
        let is_primary = context.is_primary();
        let took = pacemaker::on_alarm(Live { context: Some(context) }, is_primary);
        if let Some(took) = took {
            context::record_latency(pacemaker::LATENCY_EVENT, took);
        }
        find_out_who_calls();
    },
    turn_ending: || waiting::on_turn_ending(Live::INSIDE_A_COMMAND),
    key_ready: |database, name| waiting::on_key_ready(Live::INSIDE_A_COMMAND, database, name),
    unblocking: |ticket, replies| {
        reply_to_one_who_waited(waiting::on_unblocking(Live::INSIDE_A_COMMAND, ticket), replies)
    },
    unblocked: |ticket, replies| {
        reply_to_one_who_waited(waiting::on_unblocked(Live::INSIDE_A_COMMAND, ticket), replies)
    },
    disconnected: |client| waiting::on_disconnect(Live::INSIDE_A_COMMAND, client),
    replied: |ticket| waiting::on_replied(Live::INSIDE_A_COMMAND, ticket),
    gone: |ticket| waiting::on_gone(Live::INSIDE_A_COMMAND, ticket),
    role_changed: |is_primary| {
        pacemaker::on_role_changed(Live::INSIDE_A_COMMAND, is_primary);
        find_out_who_calls();
    },
    loading: |context, is_loading| {
        pacemaker::on_loading(Live { context: Some(context) }, is_loading);
        find_out_who_calls();
    },
    loading_aside: |stage| match stage {
        Aside::Begun => aside::begin(Live::INSIDE_A_COMMAND),
        Aside::SwappedIn => aside::swap_in(Live::INSIDE_A_COMMAND),
        Aside::ThrownAway => aside::throw_away(Live::INSIDE_A_COMMAND),
    },
    flushed: |database| pacemaker::on_flushed(Live::INSIDE_A_COMMAND, database),
    slots_moved: || {
        moved::on_slots_moved(Live::INSIDE_A_COMMAND);
        find_out_who_calls();
    },
    swapped: |a, b| pacemaker::on_swapped(Live::INSIDE_A_COMMAND, a, b),
    info: |section, is_going_down| info::show(Live::INSIDE_A_COMMAND, section, is_going_down),
};

/// While the module is being loaded: too early for timers.
pub fn starts_as(is_primary: bool) {
    STATE.with(|state| state.is_primary = is_primary);
    find_out_who_calls();
}

fn find_out_who_calls() {
    let is_active = STATE.with(|state| state.is_primary && !state.is_loading);
    IS_ACTIVE.store(is_active, Ordering::Relaxed);
    HAS_ONLY_CLIENTS.store(is_active && !slots::is_importing(), Ordering::Relaxed);
}

/// Whether all commands come from clients: in a primary that isn't loading and to which no slots are on their way.
pub fn has_only_clients() -> bool {
    HAS_ONLY_CLIENTS.load(Ordering::Relaxed)
}

/// Whose command this is.
pub fn source_of(call: &Call) -> Source {
    if has_only_clients() || !call.is_from_log() {
        Source::Client
    } else {
        Source::Log
    }
}

/// A queue that a command has opened.
pub struct Opened<'c> {
    key: Key<'c>,
    value: OpenValue<'c, QueueValue>,
    is_new: bool,
}

impl<'c> Opened<'c> {
    /// `None` when there is no such key.
    pub fn at(call: &Call<'c>, name: Arg<'c>, access: key::Access) -> Result<Option<Opened<'c>>, WrongType> {
        let key = call.key(name);
        Ok(key.open(access)?.map(|value| Opened { key, value, is_new: false }))
    }

    /// Made if there is no such key.
    pub fn or_created(call: &Call<'c>, name: Arg<'c>) -> Result<Opened<'c>, WrongType> {
        let key = call.key(name);
        let (value, is_new) = key
            .open_or_create(|| whereabouts::new(Live::INSIDE_A_COMMAND, Queue::new(context::hash_seed())))?;
        Ok(Opened { key, value, is_new })
    }

    /// Does this as a command of this source: see [`OpenQueue::change`].
    pub fn change<O: Announced>(
        mut self,
        source: Source,
        operation: &O,
        reply: impl FnOnce(&O::Outcome, &Queue),
    ) -> O::Outcome {
        let outcome = self.queue_for(source).change(operation, Wording::AsSent, reply);
        self.close(outcome)
    }

    /// Does this as an entry of the log that tells its circumstances.
    pub fn change_as_told<O: Announced>(mut self, told: &Told, operation: &O) -> O::Outcome {
        let outcome = self.queue_as_told(told).change(operation, Wording::AsSent, |_, _| ());
        self.close(outcome)
    }

    /// Where nothing was done, and nothing logged, a key that was made for it is none.
    fn close<O: Changed>(self, outcome: O) -> O {
        if self.is_new && !outcome.has_changed() {
            self.value.delete();
        }
        outcome
    }

    /// For a command of this source.
    pub fn queue_for(&mut self, source: Source) -> OpenQueue<'_, Live<'static>> {
        OpenQueue::new(Live::INSIDE_A_COMMAND, self.key, self.value.get(), source)
    }

    /// For an entry of the log that tells its circumstances.
    fn queue_as_told<'s>(&'s mut self, told: &'s Told) -> OpenQueue<'s, Live<'static>> {
        let key = self.key;
        let (open, is_same) = OpenQueue::told(Live::INSIDE_A_COMMAND, key, self.value.get(), told);
        if !is_same {
            tell_of_divergence(key.name());
        }
        open
    }

    /// For those who only look; and when that is, for this queue. Time has passed in it.
    pub fn look(&mut self) -> (&QueueValue, Time) {
        let value = self.value.get();
        let now = frame::look(Live::INSIDE_A_COMMAND, &self.key, value);
        (value, now)
    }

    /// How many consumers wait for this queue.
    pub fn consumers(&self) -> usize {
        waiting::consumers_at(Live::INSIDE_A_COMMAND, &self.key)
    }
}

/// What a client's CRON says.
pub fn read_cron(cron: &Cron) -> Result<Reading, calendar::Error> {
    let read = STATE.with(|state| Some(state.readings.read(cron)));
    read.unwrap_or(Err(calendar::Error::Zone))
}

/// How often a queue was not what it was where the log was written.
pub fn times_diverged() -> u64 {
    STATE.with(|state| state.diverged)
}

/// The queue at this key is not what it was where the log was written.
pub fn tell_of_divergence(name: &[u8]) {
    let uptime = context::uptime();
    let is_due = STATE.with(|state| {
        state.diverged += 1;
        let is_due =
            state.told_of_divergence.is_none_or(|last| uptime.saturating_sub(last) >= BETWEEN_WARNINGS);
        if is_due {
            state.told_of_divergence = Some(uptime);
        }
        is_due
    });
    if is_due {
        warning(&format!(
            "the queue '{}' has come to something else here than where its log was written. A full \
             resynchronisation, or a restart from a file of the primary, makes it the same again",
            name.escape_ascii()
        ));
    }
}

/// The client that called waits for jobs of these keys, or for nil after `timeout`. One that can't wait, as
/// in a transaction or a script, gets nil at once.
pub fn wait(call: &Call, keys: &[Arg], pop: &Pop, shape: Shape, timeout: Option<Duration>) {
    let database = call.database();
    let places = keys.iter().map(|key| (database, key.into())).collect();
    let at_latest = timeout.map(servers_own_timeout);
    let block = |ticket| call.may_block().then(|| blocking::block(call, keys, at_latest, ticket)).flatten();
    if !waiting::wait(Live::INSIDE_A_COMMAND, places, pop, shape, timeout, block) {
        call.replies().null();
    }
}

/// After this time the server ends the wait. It ends all that are over in one turn, at some 15 µs each; our timer ends a few
/// in each turn. So the server comes later, for what the timer leaves out. Where the timer rests, it comes in time.
fn servers_own_timeout(timeout: Duration) -> Duration {
    if IS_ACTIVE.load(Ordering::Relaxed) {
        timeout.saturating_add(LATER_THAN_THE_TIMER)
    } else {
        timeout
    }
}

fn reply_to_one_who_waited(departure: Option<Departure>, replies: Replies) {
    let Some(Departure { shape, terms, assigned: Some(assigned) }) = departure else {
        replies.null();
        return;
    };
    if shape.around == Around::KeyAndJobs {
        replies.array(2);
        replies.bulk(&assigned.place.1);
    }
    replies.array(assigned.jobs.len());
    for job in &assigned.jobs {
        let lease = (terms.mode == Mode::Lease).then_some(job.lease);
        let due = (shape.job == JobShape::WithDue).then(|| job.occurrence.unix_ms());
        replies.delivery(&job.id, &job.body, lease.map(|lease| lease.number()), job.attempt, due);
    }
}

impl<'c> Host for Live<'c> {
    type Client = Client;
    type Key<'k> = Key<'k>;

    fn with<R: Default>(self, work: impl FnOnce(&mut State<Client>) -> R) -> R {
        STATE.with(work)
    }

    fn wall_clock(self) -> Time {
        context::wall_clock()
    }

    fn until(self, time: Time) -> Duration {
        context::until(time)
    }

    fn uptime(self) -> Duration {
        context::uptime()
    }

    fn may_change(self) -> bool {
        context::may_replicate() && STATE.with(|state| state.is_primary && !state.is_loading)
    }

    fn defaults(self) -> Defaults {
        config::defaults()
    }

    fn tick_budget(self) -> Duration {
        config::tick_budget()
    }

    fn open<R>(
        self,
        place: (Database, &[u8]),
        purpose: host::Purpose,
        work: impl FnOnce(Key<'_>, &mut QueueValue) -> R,
    ) -> Result<R, host::Closed> {
        let access = match purpose {
            host::Purpose::Look => key::Access::Read,
            host::Purpose::Change => key::Access::Write,
        };
        let context = self.context.ok_or(host::Closed::Missing)?;
        context.open(place, access, work).map_err(|closed| match closed {
            key::Closed::Missing => host::Closed::Missing,
            key::Closed::NotOwn => host::Closed::NotOwn,
        })
    }

    fn is_own(self, name: &[u8]) -> bool {
        key::is_own(name)
    }

    fn set_alarm(self, after: Duration) {
        timer::set_alarm(after);
    }

    fn at_end_of_turn(self) {
        timer::at_end_of_turn();
    }

    fn begin_walk(self) {
        let begun = Cursor::default();
        drop(WALK.with(|cursor| cursor.replace(begun)));
    }

    fn walk_on(self) -> bool {
        let (Some(context), Some(cursor)) = (self.context, WALK.with(Option::take)) else {
            return false;
        };
        let next = context.walk::<QueueValue>(cursor, |database, name, value| {
            wakeup::plan(Live::INSIDE_A_COMMAND, value, || database, || name);
        });
        let goes_on = next.is_some();
        WALK.with(|cursor| *cursor = next);
        goes_on
    }

    fn bug(self, what: &str) {
        logfile::bug(what);
    }

    fn unblock(self, client: Client) {
        blocking::unblock(client);
    }
}

impl QueueKey for Key<'_> {
    fn database(&self) -> Database {
        Key::database(self)
    }

    fn name(&self) -> &[u8] {
        Key::name(self)
    }

    fn is_inside_another(&self) -> bool {
        Key::is_inside_another(self)
    }

    fn signal_modified(&self) {
        Key::signal_modified(self);
    }

    fn is_notifying(&self) -> bool {
        Key::is_notifying(self)
    }

    fn notify(&self, event: &CStr) {
        Key::notify(self, event);
    }

    fn log_as_sent(&self) {
        self.replicate_verbatim();
    }

    fn log_as_sent_at(&self, time: Time, told: &str) {
        self.replicate_sent(log::APPLY, time.unix_ms(), told);
    }

    fn log_words(&self, command: &CStr, words: &[&[u8]]) {
        self.replicate_words(command, words);
    }
}

/// The ticket of a client is the same on both floors.
const _: fn(Ticket) -> client::Ticket = |ticket| ticket;
