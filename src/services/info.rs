//! The `dq` section of INFO.

use std::ffi::CStr;
use std::sync::atomic::Ordering;

use super::calendar::occurrences;
use super::change::notify::{JOBS_ADDED, JOBS_DELETED, JOBS_FINISHED, JOBS_POPPED, JOBS_SUNK};
use super::state;
use crate::queue::State;
use crate::server::client::Client;
use crate::server::context;
use crate::server::logfile;
use crate::server::section::Section;

/// A number that the services remember.
pub type Remembered = fn(&state::State<Client>) -> u64;

/// What `look` can't have is left out.
pub fn show(section: &Section, is_going_down: bool, look: impl Fn(Remembered) -> Option<u64>) {
    let show = |name: &CStr, remembered| {
        look(remembered).into_iter().for_each(|number| section.number(name, number));
    };
    section.text(c"version", env!("CARGO_PKG_VERSION"));
    section.text(c"tzdb_version", occurrences::database_version());
    show(c"queues", |state| state.sums.queues());
    show(c"jobs_delayed", |state| state.sums.jobs(State::Delayed));
    show(c"jobs_ready", |state| state.sums.jobs(State::Ready));
    show(c"jobs_reserved", |state| state.sums.jobs(State::Reserved));
    show(c"jobs_dead", |state| state.sums.jobs(State::Dead));
    show(c"jobs_done", |state| state.sums.jobs(State::Done));
    show(c"jobs_held", |state| state.sums.jobs(State::Held));
    show(c"waiting_consumers", |state| state.waiters.consumers() as u64);
    show(c"queues_waiting", |state| state.hints.len() as u64);
    show(c"timer_runs", |state| state.stats.runs);
    show(c"timer_budget_exceeded", |state| state.stats.budget_exceeded);
    show(c"timer_last_us", |state| state.stats.last.as_micros() as u64);
    show(c"timer_max_us", |state| state.stats.longest.as_micros() as u64);
    section.number(c"jobs_added", JOBS_ADDED.load(Ordering::Relaxed));
    section.number(c"jobs_popped", JOBS_POPPED.load(Ordering::Relaxed));
    section.number(c"jobs_finished", JOBS_FINISHED.load(Ordering::Relaxed));
    section.number(c"jobs_deleted", JOBS_DELETED.load(Ordering::Relaxed));
    section.number(c"jobs_sunk", JOBS_SUNK.load(Ordering::Relaxed));
    show(c"diverged", |state| state.diverged);
    section.number(c"bugs", logfile::bugs());
    show(c"watchers", |state| (state.waiters.len() - state.waiters.consumers()) as u64);
    // A server that is shutting down can't be asked.
    if !is_going_down {
        section.number(c"eviction_risk", u64::from(context::evicts_any_key()));
    }
}
