//! The real server as the host of the services, and what they do when the server calls.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::calendar::occurrences::{self, ParsedCron};
use super::host::{Host, Keyspace};
use super::key_ref::{Access, Closed, Database};
use super::keys::async_load;
use super::keys::moved;
use super::keys::value::QueueValue;
use super::state::State;
use super::timer::pacemaker;
use super::timer::wakeup;
use super::waiting::{reply, serving};
use super::{config, info};
use crate::queue::{Cron, Defaults, Time};
use crate::server::blocking;
use crate::server::client::Client;
use crate::server::context::{self, Context};
use crate::server::hooks::{Aside, Hooks};
use crate::server::key::{self, Cursor, Key};
use crate::server::logfile;
use crate::server::main_thread::MainThread;
use crate::server::{slots, timer};

static STATE: MainThread<State<Client>> = MainThread::new(State::NEW);
static WALK: MainThread<Option<Cursor>> = MainThread::new(None);

/// Whether every command comes from a client: true on an active primary with no slot import.
static IS_STEADY_PRIMARY: AtomicBool = AtomicBool::new(false);

/// The server, inside a callback or a command. With a callback's [`Context`] it is a [`Keyspace`].
#[derive(Clone, Copy)]
pub struct Live<C = ()> {
    context: C,
}

/// In a command, or a callback that opens no keys.
pub const LIVE: Live = Live { context: () };

/// The functions that the server calls.
pub const HOOKS: Hooks = Hooks {
    alarm: |context| {
        let is_primary = context.is_primary();
        let took = pacemaker::on_alarm(Live { context }, is_primary);
        if let Some(took) = took {
            context::record_latency(pacemaker::LATENCY_EVENT, took);
        }
        update_source_flags();
    },
    turn_ending: || serving::on_turn_ending(LIVE),
    key_ready: |database, name| serving::on_key_ready(LIVE, database, name),
    unblocking: |context, ticket, replies| {
        reply::unblocked(replies, serving::on_unblocking(Live { context }, ticket));
    },
    unblocked: |context, ticket, replies| {
        reply::unblocked(replies, serving::on_unblocked(Live { context }, ticket));
    },
    replied: |ticket| serving::on_replied(LIVE, ticket),
    gone: |ticket| serving::on_gone(LIVE, ticket),
    role_changed: |is_primary| {
        pacemaker::on_role_changed(LIVE, is_primary);
        update_source_flags();
    },
    loading: |is_loading| {
        pacemaker::on_loading(LIVE, is_loading);
        update_source_flags();
    },
    loading_aside: |stage| match stage {
        Aside::Begun => async_load::begin(LIVE),
        Aside::SwappedIn => async_load::swap_in(LIVE),
        Aside::ThrownAway => async_load::throw_away(LIVE),
    },
    flushed: |database| pacemaker::on_flushed(LIVE, database),
    slots_moved: || {
        moved::on_slots_moved(LIVE);
        update_source_flags();
    },
    swapped: |a, b| pacemaker::on_swapped(LIVE, a, b),
    info: |section, is_going_down| {
        // The server may be going down because of what was done to the state.
        info::show(section, is_going_down, |look| match is_going_down {
            true => STATE.try_with(|state| look(state)),
            false => Some(STATE.with(|state| look(state))),
        });
    },
};

/// Called while the module is being loaded, when there can be no timers yet.
pub fn starts_as(is_primary: bool) {
    STATE.with(|state| state.is_primary = is_primary);
    update_source_flags();
}

/// Whether this server changes queues by itself.
pub fn is_primary() -> bool {
    STATE.with(|state| state.is_primary)
}

fn update_source_flags() {
    let is_active = STATE.with(|state| state.is_active());
    IS_STEADY_PRIMARY.store(is_active && !slots::is_importing(), Ordering::Relaxed);
}

/// Whether every command comes from a client: true on an active primary with no slot import.
pub fn is_steady_primary() -> bool {
    IS_STEADY_PRIMARY.load(Ordering::Relaxed)
}

/// Parses a client's CRON.
pub fn read_cron(cron: &Cron) -> Result<ParsedCron, occurrences::Error> {
    STATE.with(|state| state.cron_cache.read(cron))
}

impl<C: Copy> Host for Live<C> {
    type Client = Client;
    type Key<'k> = Key<'k>;

    fn with<R>(self, work: impl FnOnce(&mut State<Client>) -> R) -> R {
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
        context::may_replicate() && STATE.with(|state| state.is_active())
    }

    fn defaults(self) -> Defaults {
        config::defaults()
    }

    fn tick_budget(self) -> Duration {
        config::tick_budget()
    }

    fn is_own(self, name: &[u8]) -> bool {
        key::is_own(name)
    }

    fn is_in_cluster(self) -> bool {
        slots::is_in_cluster()
    }

    fn is_staying(self, name: &[u8]) -> bool {
        slots::is_staying(name)
    }

    fn set_alarm(self, after: Duration) {
        timer::set_alarm(after);
    }

    fn at_end_of_turn(self) {
        timer::at_end_of_turn();
    }

    fn warn(self, what: &str) {
        logfile::warning(what);
    }

    fn bug(self, what: &str) {
        logfile::bug(what);
    }

    fn unblock(self, client: Client) {
        blocking::unblock(client);
    }
}

impl Keyspace for Live<Context<'_>> {
    fn open<R>(
        self,
        key_ref: (Database, &[u8]),
        access: Access,
        work: impl FnOnce(Key<'_>, &mut QueueValue) -> R,
    ) -> Result<R, Closed> {
        self.context.open(key_ref, access, work)
    }

    fn walk_on(self) -> bool {
        let cursor = WALK.with(Option::take).unwrap_or_default();
        let next = self.context.walk::<QueueValue>(cursor, |database, name, value| {
            wakeup::plan(LIVE, value, || database, || name);
        });
        let goes_on = next.is_some();
        WALK.with(|cursor| *cursor = next);
        goes_on
    }
}
