//! Where the queues are by now whose jobs are on their way, or on their way back ([`super::pending`]).

use super::alarm::{arm, NEXT_TURN};
use super::host::Host;
use super::pending::{Lost, Origin};
use super::place::{Database, Place};
use super::state::State;
use super::value::QueueValue;

/// A queue that had left its key is at this one.
pub fn found<H: Host>(host: H, value: &QueueValue, place: &Place) {
    if !value.may_have_parcels() {
        return;
    }
    let is_any_lost = host.with(|state| {
        for origin in origins(state).filter(|origin| origin.is(value)) {
            origin.place.clone_from(place);
        }
        let lost = std::mem::take(&mut state.lost_astray).into_iter();
        let (found, astray): (Vec<Lost>, Vec<Lost>) = lost.partition(|lost| lost.origin.is(value));
        state.lost_astray = astray;
        state.lost.extend(found);
        !state.lost.is_empty()
    });
    if is_any_lost {
        arm(host, Some(NEXT_TURN));
    }
}

/// A copy of a queue: jobs that are on their way are leased in the copy, too, and nobody will ever get them from there.
pub fn copied<H: Host>(host: H, value: &QueueValue, copy: &QueueValue, place: &Place) {
    if !value.may_have_parcels() {
        return;
    }
    let is_any_lost = host.with(|state| {
        for origins in state.waiters.origins() {
            if origins.iter().any(|origin| origin.is(value)) {
                origins.push(Origin::new(place.clone(), copy));
            }
        }
        let lost = state.lost.iter().chain(&state.lost_astray).filter(|lost| lost.origin.is(value));
        let origin = || Origin::new(place.clone(), copy);
        let lost: Vec<Lost> = lost.map(|lost| lost.of_copy(origin())).collect();
        state.lost.extend(lost);
        !state.lost.is_empty()
    });
    if is_any_lost {
        arm(host, Some(NEXT_TURN));
    }
}

/// Two databases have changed places.
pub fn swapped<H: Host>(host: H, a: Database, b: Database) {
    host.with(|state| origins(state).for_each(|origin| origin.swap(a, b)));
}

/// Of all that is on its way, or on its way back.
fn origins<C: Copy + Ord>(state: &mut State<C>) -> impl Iterator<Item = &mut Origin> {
    let lost = state.lost.iter_mut().chain(&mut state.lost_astray).map(|lost| &mut lost.origin);
    state.waiters.origins().flatten().chain(lost)
}
