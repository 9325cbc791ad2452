//! What the `dq` section of INFO shows.

use super::calendar;
use super::host::Host;
use super::notify::Counter;
use super::{pacemaker, waiting};
use crate::queue::State;
use crate::server::context;
use crate::server::logfile;
use crate::server::section::Section;

pub fn show<H: Host>(host: H, section: &Section, is_going_down: bool) {
    section.text(c"version", env!("CARGO_PKG_VERSION"));
    section.text(c"tzdb_version", calendar::database_version());
    section.number(c"queues", host.with(|state| state.sums.queues()));
    for (state, name) in [
        (State::Delayed, c"jobs_delayed"),
        (State::Ready, c"jobs_ready"),
        (State::Reserved, c"jobs_reserved"),
        (State::Dead, c"jobs_dead"),
        (State::Done, c"jobs_done"),
    ] {
        section.number(name, host.with(|all| all.sums.jobs(state)));
    }
    section.number(c"waiting_consumers", waiting::consumers(host) as u64);
    let (waiting, timer) = pacemaker::report(host);
    section.number(c"queues_waiting", waiting as u64);
    section.number(c"timer_runs", timer.runs);
    section.number(c"timer_budget_exceeded", timer.budget_exceeded);
    section.number(c"timer_last_us", timer.last.as_micros() as u64);
    section.number(c"timer_max_us", timer.longest.as_micros() as u64);
    section.number(c"jobs_added", Counter::Added.get());
    section.number(c"jobs_popped", Counter::Popped.get());
    section.number(c"jobs_finished", Counter::Finished.get());
    section.number(c"jobs_deleted", Counter::Deleted.get());
    section.number(c"diverged", host.with(|state| state.diverged));
    section.number(c"bugs", logfile::bugs());
    // A server that is going down is not asked any more.
    if !is_going_down {
        section.number(c"eviction_risk", u64::from(context::evicts_any_key()));
    }
}
