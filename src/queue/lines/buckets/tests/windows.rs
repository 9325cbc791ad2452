//! What is open when, beside a `Vec` that is searched from the front; and what a search has to look
//! at.

use std::cell::Cell;

use super::*;
use crate::queue::lines::buckets::walk::Start;

/// The window of each job, by slot; and how often one was asked for.
#[derive(Clone, Default)]
pub struct Kept {
    windows: Vec<Window>,
    asked: Cell<usize>,
}

impl Kept {
    pub fn push(&mut self, window: Window) {
        self.windows.push(window);
    }
}

impl Windows for Kept {
    fn window_of(&self, slot: Slot) -> Window {
        self.asked.set(self.asked.get() + 1);
        self.windows[slot as usize]
    }
}

/// Where windows lie around the times of their jobs.
#[derive(Clone, Copy, Debug)]
pub enum Draw {
    Always,
    /// It opens so long before the job's time, and doesn't close.
    Opens(u64),
    /// It closes so long after the job's time; of jobs that come together, the later the longer.
    Closes {
        after: u64,
        step: u64,
    },
}

pub fn draw(times: u64) -> impl Strategy<Value = Draw> {
    let closes = (1..times, prop_oneof![3 => Just(0u64), 1 => 0..=times / 300]);
    prop_oneof![
        2 => Just(Draw::Always),
        2 => Just(Draw::Opens(0)),
        2 => (0..times).prop_map(Draw::Opens),
        5 => closes.prop_map(|(after, step)| Draw::Closes { after, step }),
    ]
}

impl Draw {
    pub fn of(self, time: u64, n: u64) -> Window {
        match self {
            Draw::Always => Window::ALWAYS,
            Draw::Opens(before) => {
                Window { opens: at(time.saturating_sub(before)), ..Window::ALWAYS }
            }
            Draw::Closes { after, step } => closing(time + after + n * step),
        }
    }
}

fn closing(time: u64) -> Window {
    Window { closes: at(time), ..Window::ALWAYS }
}

impl Pair {
    fn opens_and_closes(&self, slot: Slot) -> (Time, Time) {
        let Window { opens, closes } = self.windows.windows[slot as usize];
        (opens, closes)
    }

    fn is_open(&self, slot: Slot, now: Time) -> bool {
        let (opens, closes) = self.opens_and_closes(slot);
        opens <= now && (now < closes || closes == Time::MAX)
    }

    /// Those that stand before (or behind) some time and are open at `now`.
    fn open_where(&self, now: Time, is_asked_for: impl Fn(Time) -> bool) -> Vec<(Time, Slot)> {
        let open = |(time, slot, _): &&(Time, Slot, EntryKind)| {
            is_asked_for(*time) && self.is_open(*slot, now)
        };
        self.plain.iter().filter(open).map(|(time, slot, _)| (*time, *slot)).collect()
    }

    /// Looks for what is open, as everybody does who looks; all must be found.
    pub fn look(&self, now: Time) {
        let first = self.open_where(now, |time| time <= now).first().copied();
        assert_eq!(self.buckets.first_open(now, &self.windows), first, "the first one at {now:?}");
        let to_come = self.open_where(now, |time| time > now);
        assert!(
            self.buckets.open_after(Start::FIRST, now, &self.windows).eq(to_come),
            "after {now:?}"
        );
        for until in [now, self.now, at(now.unix_ms() / 2), Time::MAX] {
            let up_to = self.open_where(now, |time| time <= until);
            assert!(
                self.buckets.open_up_to(Start::FIRST, until, now, &self.windows).eq(up_to),
                "{until:?} at {now:?}"
            );
        }
    }

    /// What a pop does.
    pub fn hand_out(&mut self, now: u64, ttr: u64) {
        let Some((time, slot)) = self.buckets.first_open(at(now), &self.windows) else {
            assert_eq!(self.open_where(at(now), |time| time <= at(now)), []);
            return;
        };
        let place = self.plain.iter().position(|(_, other, _)| *other == slot).unwrap();
        assert!(!self.plain[..place].iter().any(|(_, other, _)| self.is_open(*other, at(now))));
        assert!(time <= at(now) && self.is_open(slot, at(now)));
        self.remove(place);
        let end = now + ttr;
        self.insert_open(end, EntryKind::Leased, Window { opens: at(end), ..Window::ALWAYS });
    }

    /// Looks on copies, not to change the hints; then whether these say what is so.
    pub fn check_windows(&self) {
        let last = self.plain.last().map_or(Time::ZERO, |(time, ..)| *time);
        for now in [self.now, at(last.unix_ms() / 2), last] {
            self.clone().look(now);
        }
        let Closed { rows, since } = self.buckets.closed.get();
        assert!(rows <= self.buckets.directory.len());
        for (place, line) in self.buckets.directory.iter().enumerate() {
            let bucket = self.buckets.buckets.get(line.bucket).unwrap();
            for entry in bucket.entries() {
                let (opens, closes) = self.opens_and_closes(entry.slot);
                assert!(bucket.may_be_open(opens), "a bound is too narrow for what opens then");
                assert!(
                    bucket.may_be_open(before(closes)),
                    "a bound is too narrow for what closes then"
                );
                assert_eq!(entry.expires(), closes < Time::MAX);
                assert!(
                    place >= rows || closes <= since,
                    "row {place} of {rows} is open at {since:?}"
                );
            }
        }
    }

    /// How many windows are asked for meanwhile.
    fn asked(&self, steps: impl FnOnce()) -> usize {
        let before = self.windows.asked.get();
        steps();
        self.windows.asked.get() - before
    }
}

fn before(time: Time) -> Time {
    at(time.unix_ms() - 1)
}

pub const FULL: u64 = BUCKET_ENTRIES as u64;

/// So many full buckets of jobs of the times from 0 on, each open until then.
fn line_of(buckets: u64, closes: impl Fn(u64) -> Window) -> Pair {
    let mut pair = Pair::default();
    (0..buckets * FULL).for_each(|time| pair.insert_open(time, EntryKind::Waiting, closes(time)));
    pair
}

#[test]
fn the_first_open_job_is_found_at_each_moment_back_and_forth() {
    let pair = line_of(4, |time| closing(time + 1 + (time % 5) * 300));
    let last = 4 * FULL + 1_300;
    for now in (0..last).chain((0..last).rev()).step_by(37) {
        pair.look(at(now));
        pair.check_windows();
    }
}

#[test]
fn a_hint_holds_from_its_moment_on_and_not_before() {
    let mut pair = line_of(4, |_| closing(5_000));
    pair.insert(4 * FULL, EntryKind::Waiting);
    let first =
        |pair: &Pair, now| pair.buckets.first_open(at(now), &pair.windows).map(|(time, _)| time);
    assert_eq!(first(&pair, 5_000), Some(at(4 * FULL)));
    assert_eq!(pair.buckets.closed.get().rows, 4);
    assert_eq!(first(&pair, 4_999), Some(at(0)), "they are open again where time goes back");
    assert_eq!(first(&pair, 5_000), Some(at(4 * FULL)));
    assert_eq!(first(&pair, 6_000), Some(at(4 * FULL)));
}

#[test]
fn a_job_that_comes_among_closed_ones_is_found() {
    let came = [Window::ALWAYS, closing(5_001), closing(9_000), closing(5_000)];
    for (time, window) in [0, 1, FULL, 2 * FULL - 1, 2 * FULL + 7, 4 * FULL - 1]
        .into_iter()
        .flat_map(|time| came.map(|window| (time, window)))
    {
        let mut pair = line_of(4, |_| closing(5_000));
        pair.insert(4 * FULL, EntryKind::Waiting);
        pair.look(at(5_000));
        pair.insert_open(time, EntryKind::Waiting, window);
        pair.check();
        for now in [5_000, 4_999, 5_001, 5_000] {
            pair.look(at(now));
        }
        pair.check();
    }
}

#[test]
fn the_hint_moves_with_the_lines_that_go_and_come() {
    let mut pair = line_of(8, |_| closing(5_000));
    (0..8).for_each(|n| pair.insert(8 * FULL + n, EntryKind::Waiting));
    pair.look(at(5_000));
    while pair.plain.len() > 8 {
        // From the front, from behind, from the middle: buckets are thinned, merged and dropped.
        for place in [0, pair.plain.len() - 9, pair.plain.len() / 2 - 4] {
            if pair.plain.len() > 8 {
                pair.remove(place.min(pair.plain.len() - 9));
            }
        }
        pair.check();
        if pair.plain.len() % 7 == 0 {
            pair.look(at(5_000));
        }
    }
    assert_eq!(
        pair.buckets.first_open(at(5_000), &pair.windows).map(|(time, _)| time),
        Some(at(8 * FULL))
    );
}

#[test]
fn closed_buckets_are_looked_into_once() {
    let mut pair = line_of(100, |_| closing(30_000));
    (0..1_000).for_each(|n| pair.insert_open(27_000 + n, EntryKind::Waiting, closing(40_000)));
    let looked = pair.asked(|| {
        for now in 30_000..31_000 {
            pair.buckets.first_open(at(now), &pair.windows);
            assert_eq!(
                pair.buckets
                    .open_up_to(Start::FIRST, Time::MAX, at(now), &pair.windows)
                    .take(1)
                    .count(),
                1
            );
        }
    });
    // A few buckets are half of the one kind and half of the other.
    assert!(looked < 1_000 * 2 * 3 * BUCKET_ENTRIES, "{looked} windows");
    let closed = pair.asked(|| {
        for now in 40_000..41_000 {
            assert_eq!(pair.buckets.first_open(at(now), &pair.windows), None);
            assert_eq!(
                pair.buckets.open_up_to(Start::FIRST, Time::MAX, at(now), &pair.windows).count(),
                0
            );
        }
    });
    assert!(closed <= 2 * pair.plain.len(), "{closed} windows");
}

#[test]
fn a_bound_that_has_become_too_wide_is_narrowed_by_the_next_search() {
    let mut pair = line_of(10, |time| closing(if time % FULL == 9 { 90_000 } else { 5_000 }));
    (0..10).rev().for_each(|n| pair.remove((n * FULL + 9) as usize));
    let asked = |pair: &Pair| {
        pair.asked(|| assert_eq!(pair.buckets.first_open(at(6_000), &pair.windows), None))
    };
    let first = asked(&pair);
    assert!(first >= pair.plain.len(), "each has to be asked, once: {first}");
    assert_eq!(asked(&pair), 0);
    pair.check();
}

#[test]
fn jobs_whose_windows_open_later_are_left_out_by_the_bucket() {
    let opening = |time| Window { opens: at(time), ..Window::ALWAYS };
    let mut pair = Pair::default();
    (0..10 * FULL)
        .for_each(|n| pair.insert_open(10_000 + n, EntryKind::Leased, opening(10_000 + n)));
    pair.insert_open(12_000, EntryKind::LeasedThenWaiting, opening(50));
    let asked = |pair: &Pair, now, found| {
        pair.asked(|| {
            assert_eq!(pair.buckets.open_after(Start::FIRST, at(now), &pair.windows).count(), found)
        })
    };
    asked(&pair, 60, 1);
    let asked = asked(&pair, 60, 1);
    assert!(asked <= 2 * BUCKET_ENTRIES, "{asked} windows");
    pair.check();
}

/// All come in an order in which buckets are split, among one that isn't like them.
fn split_by(other: impl FnOnce(&mut Pair), insert: impl Fn(&mut Pair, u64)) -> Pair {
    let mut pair = Pair::default();
    other(&mut pair);
    let jobs = 40 * FULL;
    (0..jobs).for_each(|n| insert(&mut pair, n * 7_919 % jobs));
    assert!(pair.buckets.directory.len() > 60, "none was split");
    pair
}

#[test]
fn a_job_that_stays_open_does_not_make_its_neighbours_look_open() {
    let jobs = 40 * FULL;
    let others = [Window::ALWAYS, closing(jobs * 1_000)];
    for other in others {
        let pair = split_by(
            |pair| pair.insert_open(jobs, EntryKind::Waiting, other),
            |pair, time| pair.insert_open(time, EntryKind::Waiting, closing(time + 5_000)),
        );
        let now = at(jobs + 6_000);
        let asked = pair.asked(|| {
            assert_eq!(pair.buckets.first_open(now, &pair.windows), Some((at(jobs), 0)));
        });
        assert!(asked <= 2, "{asked} windows");
        pair.check();
    }
}

#[test]
fn a_job_that_is_open_at_once_does_not_make_its_neighbours_look_open() {
    let jobs = 40 * FULL;
    let leased_then_waiting = |pair: &mut Pair, time| {
        let opens = Window { opens: at(time + 10_000), ..Window::ALWAYS };
        pair.insert_open(time + 15_000, EntryKind::LeasedThenWaiting, opens);
    };
    let leased = |pair: &mut Pair, time| {
        pair.insert_open(time + 15_000, EntryKind::Leased, Window::ALWAYS);
    };
    for lease in [leased_then_waiting, leased] {
        let far = jobs * 1_000;
        let pair = split_by(|pair| pair.insert(far, EntryKind::Waiting), lease);
        let asked = pair.asked(|| {
            let open = pair.buckets.open_after(Start::FIRST, at(9_000), &pair.windows);
            assert!(open.eq([(at(far), 0)]));
        });
        assert!(asked <= 2, "{asked} windows");
        pair.check();
    }
}

#[test]
fn a_job_whose_entry_says_that_it_has_closed_is_not_asked() {
    let mut pair = Pair::default();
    for n in 0..FULL - 1 {
        pair.insert_open(n, EntryKind::Waiting, closing(n + 3_000));
    }
    pair.insert_open(FULL, EntryKind::Waiting, closing(1_000_000));
    let asked = pair.asked(|| {
        assert_eq!(
            pair.buckets.first_open(at(4_000), &pair.windows).map(|(time, _)| time),
            Some(at(FULL))
        );
    });
    assert_eq!(asked, 1);
}

#[test]
fn a_bucket_whose_jobs_have_all_closed_is_not_looked_into() {
    let pair = line_of(10, |_| closing(5_000));
    assert_eq!(
        pair.asked(|| assert_eq!(pair.buckets.first_open(at(6_000), &pair.windows), None)),
        0
    );
}

#[test]
fn a_job_that_never_closes_is_open_at_the_last_moment_there_is() {
    let mut pair = Pair::default();
    pair.insert_open(0, EntryKind::Waiting, closing(10));
    pair.insert_open(1, EntryKind::Waiting, Window::ALWAYS);
    pair.look(Time::MAX);
}

#[test]
fn a_narrowed_bound_spares_a_search_with_an_earlier_clock() {
    let mut pair = line_of(10, |time| closing(if time % FULL == 9 { 90_000 } else { 5_000 }));
    (0..10).rev().for_each(|n| pair.remove((n * FULL + 9) as usize));
    let asked =
        |now| pair.asked(|| assert_eq!(pair.buckets.first_open(at(now), &pair.windows), None));
    assert!(asked(6_000) > 0);
    assert_eq!(asked(5_500), 0, "the hint doesn't hold there, the bounds do");
}
