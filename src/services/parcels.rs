//! Where the queues are by now whose jobs are on their way, or on their way back ([`super::pending`]).

use std::collections::BTreeSet;

use super::alarm::arm;
use super::host::{Host, Purpose};
use super::pending::{Lost, Origin, Parcel, Sight};
use super::place::{Database, Place};
use super::state::State;
use super::value::QueueValue;

/// The ids of this queue's jobs that are on their way, or on their way back.
pub fn ids<H: Host>(host: H, value: &QueueValue) -> BTreeSet<Box<[u8]>> {
    if !value.may_have_parcels() {
        return BTreeSet::new();
    }
    host.with(|state| {
        let is_its = |parcel: &&Parcel| parcel.origins.iter().any(|origin| origin.is(value));
        let on_their_way = state.waiters.parcels().filter(is_its).flat_map(|parcel| parcel.pending.jobs());
        let lost = state.lost.iter().chain(&state.lost_astray).filter(|lost| lost.origin.is(value));
        on_their_way.chain(lost.flat_map(Lost::jobs)).map(|job| job.id.clone()).collect()
    })
}

/// The queue has left its key.
pub fn left<H: Host>(host: H, value: &QueueValue) {
    host.with(|state| {
        let its = origins(state).filter(|origin| origin.is(value));
        its.for_each(|origin| origin.sight = Sight::Astray);
    });
}

/// A queue that had left its key is at this one.
pub fn found<H: Host>(host: H, value: &QueueValue, place: &Place) {
    if !value.may_have_parcels() {
        return;
    }
    host.with(|state| {
        origins(state).filter(|origin| origin.is(value)).for_each(|origin| origin.found(place));
        let lost = std::mem::take(&mut state.lost_astray).into_iter();
        let (found, astray): (Vec<Lost>, Vec<Lost>) = lost.partition(|lost| lost.origin.is(value));
        state.lost_astray = astray;
        state.lost.extend(found);
    });
    arm(host, None);
}

/// A copy of a queue: jobs that are on their way are leased in the copy, too, and nobody will ever get them from there.
pub fn copied<H: Host>(host: H, value: &QueueValue, copy: &QueueValue, place: &Place) {
    if !value.may_have_parcels() {
        return;
    }
    host.with(|state| {
        for origins in state.waiters.origins() {
            if origins.iter().any(|origin| origin.is(value)) {
                origins.push(Origin::new(place.clone(), copy));
            }
        }
        let lost = state.lost.iter().chain(&state.lost_astray).filter(|lost| lost.origin.is(value));
        let origin = || Origin::new(place.clone(), copy);
        let lost: Vec<Lost> = lost.map(|lost| lost.of_copy(origin())).collect();
        state.lost.extend(lost);
    });
    arm(host, None);
}

/// Two databases have changed places.
pub fn swapped<H: Host>(host: H, a: Database, b: Database) {
    host.with(|state| origins(state).for_each(|origin| origin.swap(a, b)));
}

/// A database, or all of them, will be empty.
pub fn flushed<H: Host>(host: H, database: Option<Database>) {
    retain(host, |origin| origin.outlives_flush(database));
}

/// Everything is about to be loaded again.
pub fn loading<H: Host>(host: H) {
    retain(host, Origin::outlives_loading);
}

fn retain<H: Host>(host: H, outlives: impl Fn(&mut Origin) -> bool) {
    host.with(|state| {
        for origins in state.waiters.origins() {
            origins.retain(&outlives);
        }
        state.lost.retain_mut(|lost| outlives(&mut lost.origin));
        state.lost_astray.retain_mut(|lost| outlives(&mut lost.origin));
    });
}

/// What was flushed has been loaded again: DEBUG RELOAD. The queues are other values now, and where they were.
pub fn loaded<H: Host>(host: H) {
    let is_flushed = |origin: &&mut Origin| origin.sight == Sight::Flushed;
    let places: BTreeSet<Place> =
        host.with(|state| origins(state).filter(is_flushed).map(|origin| origin.place.clone()).collect());
    for place in places {
        // One that isn't there any more has nothing to get back.
        let _ = host.open((place.0, &place.1), Purpose::Look, |_, value| {
            host.with(|state| {
                let its = origins(state).filter(is_flushed).filter(|origin| origin.place == place);
                its.for_each(|origin| *origin = Origin::new(place.clone(), value));
            });
        });
    }
}

/// Of all that is on its way, or on its way back.
fn origins<C: Copy + Ord>(state: &mut State<C>) -> impl Iterator<Item = &mut Origin> {
    let lost = state.lost.iter_mut().chain(&mut state.lost_astray).map(|lost| &mut lost.origin);
    state.waiters.origins().flatten().chain(lost)
}
