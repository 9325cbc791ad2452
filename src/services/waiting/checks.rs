//! Checks of what clients watch at a key where another queue may be, or none: after a RENAME, a
//! FLUSHALL, or the move of a slot. (Not in `watching.rs`: each commit calls that, and these need the
//! time that `commit.rs` has for a queue.)

use std::time::Duration;

use super::watching;
use super::wish::LeasesWish;
use crate::services::change::commit::time_for;
use crate::services::host::{Host, Keyspace};
use crate::services::key_ref::{Access, Closed, KeyRef};
use crate::services::timer::alarm::TimeSlice;
use crate::services::timer::wakeup;

/// A key whose slot is on its way to another node is looked at again after this time.
const LOOKS_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Looks at what clients watch where another queue may be. The timer does it first: what it does to
/// that queue is to be reported.
pub fn check_watched<H: Keyspace>(host: H, slice: &TimeSlice) {
    retry_checks(host);
    let mut left_over = Vec::new();
    while let Some((key_ref, last)) = host.with(|state| state.to_check.pop_first()) {
        let (database, name) = &key_ref;
        let looked = host.open((*database, name), Access::Read, |key, value| {
            let now = time_for(&value.queue, host.wall_clock());
            let last = watching::check_all(host, &key, value, now, last, slice);
            wakeup::plan(host, value, || *database, || name);
            watching::plan(host, &key, value);
            last
        });
        match looked {
            Ok(None) => {}
            Ok(last) => left_over.push((key_ref, last)),
            Err(Closed::Missing) if !host.is_in_cluster() || host.is_staying(name) => {
                watching::on_gone_from(host, *database, name);
            }
            // The server sends its clients to the other node.
            Err(Closed::Missing | Closed::NotOwn) => check_later(host, key_ref),
        }
        if slice.is_over(host) {
            break;
        }
    }
    host.with(|state| state.to_check.extend(left_over));
}

fn check_later<H: Host>(host: H, key_ref: KeyRef) {
    let again = host.uptime().saturating_add(LOOKS_AGAIN_AFTER);
    host.with(|state| {
        if state.leaving.is_empty() {
            state.retry_checks_at = again;
        }
        state.leaving.push(key_ref);
    });
}

/// While clients wait, the timer comes once a second at least.
fn retry_checks<H: Host>(host: H) {
    if host.with(|state| state.leaving.is_empty()) {
        return;
    }
    let uptime = host.uptime();
    host.with(|state| {
        if state.retry_checks_at <= uptime {
            let places = std::mem::take(&mut state.leaving).into_iter();
            state.to_check.extend(places.map(|key_ref| (key_ref, None)));
        }
    });
}

/// The places of the leases that are void now. None while they are on their way to another node,
/// which will tell.
pub fn void_of<H: Keyspace>(host: H, wish: &LeasesWish) -> Vec<usize> {
    let (database, name) = &wish.key_ref;
    let void = host.open((*database, name), Access::Read, |_, value| {
        let now = time_for(&value.queue, host.wall_clock());
        watching::void_now(&value.queue, &wish.leases, now)
    });
    match void {
        Ok(void) => void,
        Err(Closed::Missing) if !host.is_in_cluster() || host.is_staying(name) => {
            (0..wish.leases.len()).collect()
        }
        Err(Closed::Missing | Closed::NotOwn) => Vec::new(),
    }
}
