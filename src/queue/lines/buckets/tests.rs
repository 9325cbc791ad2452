//! The buckets beside a plain sorted `Vec`, compared whole after each step.

use super::*;
use crate::queue::lines::buckets::walk::Start;
use proptest::prelude::*;

mod by_step;
mod random;
mod room;
mod windows;

use windows::Kept;

/// The bucket of each job, by slot.
#[derive(Clone, Default)]
struct Homes(Vec<BucketNumber>);

impl BucketListener for Homes {
    fn moved_to(&mut self, slot: Slot, bucket: BucketNumber) {
        self.0[slot as usize] = bucket;
    }
}

/// Buckets, and beside them what they must be.
#[derive(Clone, Default)]
struct Pair {
    buckets: Buckets,
    main_lines: Homes,
    windows: Kept,
    plain: Vec<(Time, Slot, EntryKind)>,
    now: Time,
}

fn at(unix_ms: u64) -> Time {
    Time::new(unix_ms).unwrap()
}

impl Pair {
    fn of(times: impl IntoIterator<Item = u64>) -> Pair {
        let mut pair = Pair::default();
        times.into_iter().for_each(|time| pair.insert(time, EntryKind::Waiting));
        pair
    }

    fn insert(&mut self, time: u64, kind: EntryKind) {
        self.insert_open(time, kind, Window::ALWAYS);
    }

    fn insert_open(&mut self, time: u64, kind: EntryKind, window: Window) {
        let slot = self.main_lines.0.len() as Slot;
        self.main_lines.0.push(BucketNumber::MAX);
        // What is leased opens when it is not.
        let window =
            if kind == EntryKind::Leased { Window { opens: at(time), ..window } } else { window };
        self.windows.push(window);
        self.buckets.insert(&NewEntry { time: at(time), slot, kind, window }, &mut self.main_lines);
        let place = self.plain.partition_point(|(other, _, _)| *other <= at(time));
        self.plain.insert(place, (at(time), slot, kind));
    }

    /// Removes the job that is at this place in the order.
    fn remove(&mut self, place: usize) {
        let (time, slot, _) = self.plain.remove(place);
        let bucket = self.main_lines.0[slot as usize];
        assert_eq!(self.buckets.time_of(slot, bucket), Some(time));
        assert_eq!(self.buckets.remove(slot, bucket, &mut self.main_lines), Some(time));
        assert_eq!(self.buckets.time_of(slot, bucket), None, "gone is gone");
    }

    fn advance(&mut self, now: u64) {
        let (from, to) = (self.now.min(at(now)), self.now.max(at(now)));
        let passes_any = self.plain.iter().any(|(time, ..)| from < *time && *time <= to);
        self.buckets.advance(at(now));
        self.now = at(now);
        if passes_any {
            // So the next steps are quiet ones, up to that.
            let next = self.buckets.next().unwrap_or(Time::MAX);
            assert_eq!(self.buckets.next_at_earliest, next, "at {now}");
        }
    }

    fn check(&self) {
        self.check_what_it_says();
        self.check_how_it_is_built();
        self.check_windows();
    }

    fn check_what_it_says(&self) {
        assert!(self.buckets.iter().eq(self.plain.iter().copied()), "the order is another one");
        assert_eq!(self.buckets.job_counts().0.jobs, self.plain.len());
        assert_eq!(self.buckets.first(), self.plain.first().map(|(time, slot, _)| (*time, *slot)));
        let passed = self.plain.partition_point(|(time, _, _)| *time <= self.now);
        let next = self.plain.get(passed).map(|(time, _, _)| *time);
        assert_eq!(self.buckets.next(), next, "next, at {:?}", self.now);
        let (before, after) = self.plain.split_at(passed);
        let counted = (tally_of_plain(&self.plain), tally_of_plain(before));
        assert_eq!(self.buckets.job_counts(), counted, "all and passed, at {:?}", self.now);
        assert!(
            self.buckets.to_come(Start::FIRST, |_| true).eq(after.iter().copied()),
            "to come, at {:?}",
            self.now
        );
        for kind in ENTRY_KINDS {
            self.check_those_to_come(after, kind);
        }
        let middle = self.plain.get(self.plain.len() / 2).map_or(self.now, |(time, ..)| *time);
        for time in [Time::ZERO, middle, self.now, Time::MAX] {
            let after: Vec<_> =
                self.plain.iter().filter(|(other, ..)| *other > time).copied().collect();
            assert_eq!(self.buckets.count_after(time), tally_of_plain(&after), "after {time:?}");
        }
        for (from, to) in
            [(Time::ZERO, middle), (self.now, middle), (middle, self.now), (middle, Time::MAX)]
        {
            let between = |(time, ..): &&(Time, Slot, EntryKind)| from < *time && *time <= to;
            let expected: Vec<_> = self.plain.iter().filter(between).copied().collect();
            assert_eq!(
                self.buckets.count_between(from, to),
                tally_of_plain(&expected),
                "{from:?} to {to:?}"
            );
        }
        self.check_from_the_end();
    }

    /// The first and the last one of each of the last buckets, and of all.
    fn check_from_the_end(&self) {
        let (mut behind, lens) = (0, self.bucket_lens());
        let mut places = vec![self.plain.len().saturating_sub(1), self.plain.len()];
        for len in lens.iter().rev().take(5) {
            places.extend([behind, behind + len - 1]);
            behind += len;
        }
        for behind in places {
            let expected = self.plain.iter().nth_back(behind).map(|(time, ..)| *time);
            assert_eq!(
                self.buckets.time_from_end(behind),
                expected,
                "{behind} from the end, of {lens:?}"
            );
        }
    }

    /// Whoever wants one kind of jobs gets all of those, and with them their neighbours at most.
    fn check_those_to_come(&self, after: &[(Time, Slot, EntryKind)], kind: EntryKind) {
        let is_it = |(_, _, other): &(Time, Slot, EntryKind)| *other == kind;
        let to_come: Vec<_> =
            self.buckets.to_come(Start::FIRST, |tally| count_of(tally, kind) > 0).collect();
        assert!(
            to_come.iter().filter(|job| is_it(job)).eq(after.iter().filter(|job| is_it(job))),
            "{kind:?}"
        );
        assert!(to_come.is_sorted_by_key(|(time, ..)| *time), "{kind:?}");
        let mut everyone = after.iter();
        assert!(
            to_come.iter().all(|job| everyone.any(|other| other == job)),
            "a stranger among {kind:?}"
        );
        let has_any = tally_of_plain(&self.plain) != JobCounts::default() && !to_come.is_empty();
        assert!(
            !has_any || self.plain.iter().any(is_it),
            "buckets that nobody wants, for {kind:?}"
        );
    }

    fn check_how_it_is_built(&self) {
        let mut capacity = 0;
        let mut before = Time::ZERO;
        for line in &self.buckets.directory {
            let bucket = self.buckets.buckets.get(line.bucket).expect("a line names a bucket");
            assert!((1..=BUCKET_ENTRIES).contains(&bucket.len()));
            assert!(before <= line.first, "a line begins before the end of the last bucket");
            for entry in bucket.entries() {
                assert!(line.first <= entry.time());
                assert_eq!(self.main_lines.0[entry.slot as usize], line.bucket);
                before = entry.time();
            }
            let parts: Vec<_> = bucket.entries().iter().map(Entry::parts).collect();
            assert_eq!(bucket.tally(), tally_of_plain(&parts));
            capacity += bucket.capacity();
        }
        assert_eq!(self.buckets.buckets.len(), self.buckets.directory.len());
        assert_eq!(self.buckets.capacity, capacity, "memory is not what it is said to be");
    }

    fn bucket_lens(&self) -> Vec<usize> {
        let lines = self.buckets.directory.iter();
        lines.map(|line| self.buckets.buckets.get(line.bucket).unwrap().len()).collect()
    }
}

const ENTRY_KINDS: [EntryKind; 3] =
    [EntryKind::Waiting, EntryKind::Leased, EntryKind::LeasedThenWaiting];

fn tally_of_plain(jobs: &[(Time, Slot, EntryKind)]) -> JobCounts {
    let count = |wanted| jobs.iter().filter(|(_, _, kind)| *kind == wanted).count();
    JobCounts {
        jobs: jobs.len(),
        leased: count(EntryKind::Leased),
        leased_then_waiting: count(EntryKind::LeasedThenWaiting),
    }
}

fn count_of(tally: JobCounts, kind: EntryKind) -> usize {
    match kind {
        EntryKind::Waiting => tally.waiting(),
        EntryKind::Leased => tally.leased,
        EntryKind::LeasedThenWaiting => tally.leased_then_waiting,
    }
}

#[test]
fn jobs_of_one_time_leave_in_the_order_in_which_they_came() {
    let mut pair = Pair::default();
    for n in 0..3_000 {
        // Early, late and equal ones in turn: runs of a thousand, built in the middle of each
        // other.
        pair.insert([20, 10, 30][n % 3], EntryKind::Waiting);
    }
    pair.check();
    let slots: Vec<Slot> = pair.buckets.iter().map(|(_, slot, _)| slot).collect();
    let came = |first: Slot| (0..1_000).map(move |n| first + 3 * n);
    assert!(slots.into_iter().eq(came(1).chain(came(0)).chain(came(2))));
}

#[test]
fn buckets_without_wanted_jobs_are_left_out_whole() {
    let mut pair = Pair::of(0..10 * BUCKET_ENTRIES as u64);
    assert_eq!(pair.buckets.to_come(Start::FIRST, |tally| tally.leased > 0).count(), 0);
    pair.insert(5 * BUCKET_ENTRIES as u64, EntryKind::Leased);
    let found = pair.buckets.to_come(Start::FIRST, |tally| tally.leased > 0).count();
    assert!((1..=BUCKET_ENTRIES).contains(&found), "{found}");
    pair.check();
}

#[test]
fn ascending_times_leave_every_bucket_full() {
    let pair = Pair::of(0..10 * BUCKET_ENTRIES as u64);
    assert_eq!(pair.bucket_lens(), [BUCKET_ENTRIES; 10]);
    let equal = Pair::of(std::iter::repeat_n(5, 10 * BUCKET_ENTRIES));
    assert_eq!(equal.bucket_lens(), [BUCKET_ENTRIES; 10]);
    equal.check();
}

#[test]
fn descending_times_leave_every_bucket_full() {
    let pair = Pair::of((0..10 * BUCKET_ENTRIES as u64).rev());
    assert_eq!(pair.bucket_lens(), [BUCKET_ENTRIES; 10]);
    pair.check();
}

#[test]
fn a_full_bucket_splits_in_halves_when_a_job_comes_in_between() {
    let half = BUCKET_ENTRIES / 2;
    for place in [0, 1, half as u64 - 1, half as u64, half as u64 + 1, BUCKET_ENTRIES as u64 - 2] {
        let mut pair = Pair::of((0..2 * BUCKET_ENTRIES as u64).map(|n| 10 * n));
        pair.insert(10 * place + 5, EntryKind::Leased);
        let lens = pair.bucket_lens();
        assert_eq!(lens.iter().sum::<usize>(), 2 * BUCKET_ENTRIES + 1);
        assert_eq!((lens.len(), lens[0].min(lens[1])), (3, half), "at {place}");
        pair.check();
    }
}

#[test]
fn a_full_bucket_of_one_time_among_others_splits_behind_its_run() {
    let full = std::iter::repeat_n(5, BUCKET_ENTRIES);
    let mut pair = Pair::of(full.chain(std::iter::repeat_n(9, BUCKET_ENTRIES)));
    for time in [5, 4, 5, 9, 5, 10, 7] {
        pair.insert(time, EntryKind::Waiting);
        pair.check();
    }
}

#[test]
fn cancelled_jobs_leave_no_chain_of_small_buckets() {
    const JOBS: usize = 20 * BUCKET_ENTRIES;
    // Whatever the order of the cancels, one job in `KEPT` stays.
    const KEPT: usize = 128;
    let is_kept = |slot: &Slot| *slot as usize % KEPT == 0;
    let ascending: Vec<Slot> = (0..JOBS as Slot).filter(|slot| !is_kept(slot)).collect();
    let descending = ascending.iter().rev().copied().collect();
    let mut mixed = ascending.clone();
    mixed.sort_by_key(|slot| slot.wrapping_mul(0x9E37_79B9).rotate_left(11));
    for (name, order) in [("ascending", ascending), ("descending", descending), ("mixed", mixed)] {
        let mut pair = Pair::of(0..JOBS as u64);
        for slot in order {
            let place = pair.plain.iter().position(|(_, other, _)| *other == slot).unwrap();
            pair.remove(place);
        }
        pair.check();
        let (kept, buckets) = (JOBS / KEPT, pair.buckets.directory.len());
        assert!(buckets <= kept / 8, "{name}: {kept} jobs in {buckets} buckets");
    }
}

#[test]
fn memory_comes_back_when_the_jobs_leave() {
    let mut pair = Pair::of((0..100_000).map(|n| n % 1_000));
    pair.check();
    while let Some(last) = pair.plain.len().checked_sub(1) {
        pair.remove(last / 2);
    }
    pair.check();
    assert_eq!(pair.buckets.capacity, 0);
    let constant = size_of::<DirectoryEntry>() * 16 + 2 * size_of::<Bucket>() * 1_024;
    assert!(pair.buckets.memory() <= constant, "{} bytes", pair.buckets.memory());
}

#[test]
fn a_directory_that_was_long_keeps_no_more_than_four_times_its_room() {
    let mut pair = Pair::of(0..20_000);
    assert!(pair.buckets.directory.capacity() > 100);
    while pair.plain.len() > 300 {
        pair.remove(pair.plain.len() - 1);
        let (lines, room) = (pair.buckets.directory.len(), pair.buckets.directory.capacity());
        assert!(room < 4 * (lines + 1), "{lines} lines, room for {room}");
    }
}

#[test]
fn a_directory_that_shrank_by_merges_gives_its_room_back() {
    let mut pair = Pair::of(0..20_000);
    (0..19_700).rev().filter(|place| place % 128 != 0).for_each(|place| pair.remove(place));
    let (lines, room) = (pair.buckets.directory.len(), pair.buckets.directory.capacity());
    assert!(room <= 4 * lines + 3, "{lines} lines, room for {room}");
}

/// Each time, all of it is copied.
#[test]
fn a_directory_gives_its_room_back_in_a_few_large_pieces() {
    let mut pair = Pair::of(0..40_000);
    let (mut room, mut pieces) = (pair.buckets.directory.capacity(), 0);
    let doublings = room.ilog2();
    while let Some(last) = pair.plain.len().checked_sub(1) {
        pair.remove(last);
        if pair.buckets.directory.capacity() != room {
            (room, pieces) = (pair.buckets.directory.capacity(), pieces + 1);
        }
    }
    assert!(pieces <= doublings, "{pieces} times, of 2^{doublings}");
}

#[test]
fn a_copy_counts_its_own_memory() {
    let mut pair = Pair::of((0..1_000).map(|n| n % 100));
    pair.clone().check();
    pair.advance(50);
    (0..600).for_each(|_| pair.remove(100));
    let mut copy = pair.clone();
    copy.check();
    for n in 0..1_000 {
        copy.insert(n % 70, EntryKind::Leased);
    }
    copy.check();
    pair.check();
}

/// Lines of jobs with runs of equal times, shorter and longer than a bucket.
fn patterns() -> Vec<Vec<u64>> {
    let runs = |len: usize| (0..3_000).map(move |n| 10 + (n / len) as u64);
    vec![
        runs(3_000).collect(),
        runs(1).collect(),
        runs(BUCKET_ENTRIES).collect(),
        runs(BUCKET_ENTRIES - 1).collect(),
        runs(BUCKET_ENTRIES + 1).collect(),
        runs(700).collect(),
        runs(100).rev().collect(),
        runs(100).zip(runs(1_000)).flat_map(|(a, b)| [a, b]).collect(),
    ]
}

#[test]
fn the_horizon_counts_right_from_anywhere_to_anywhere() {
    for times in patterns() {
        let mut whole = Pair::default();
        for (n, time) in times.iter().enumerate() {
            whole.insert(*time, ENTRY_KINDS[n % 3]);
        }
        let last = times.iter().max().unwrap() + 1;
        let step = (last / 12).max(1) as usize;
        for from in (9..=last).step_by(step) {
            let mut pair = whole.clone();
            pair.advance(from);
            pair.check_what_it_says();
            for to in (9..=last).step_by(step) {
                let mut pair = pair.clone();
                pair.advance(to);
                pair.check_what_it_says();
            }
        }
    }
}

#[test]
fn jobs_that_come_and_go_at_the_horizon_are_counted_on_their_side() {
    for times in patterns() {
        let mut pair = Pair::of(times.iter().copied());
        let middle = times[times.len() / 2];
        pair.advance(middle);
        for time in [middle, middle - 1, middle + 1, 0, middle, u64::from(u32::MAX)] {
            pair.insert(time, EntryKind::Leased);
            pair.check_what_it_says();
        }
        for _ in 0..100 {
            let passed = pair.buckets.job_counts().1.jobs;
            // The first beyond the horizon, if any, and the last before it.
            pair.remove(passed.min(pair.plain.len() - 1));
            let passed = pair.buckets.job_counts().1.jobs;
            pair.remove(passed - 1);
            pair.check_what_it_says();
        }
        pair.check();
    }
}

#[test]
fn the_horizon_goes_back() {
    let mut pair = Pair::of([10, 20, 30]);
    pair.advance(25);
    assert_eq!(pair.buckets.job_counts().1.jobs, 2);
    for (now, passed) in [(20, 2), (19, 1), (9, 0), (30, 3), (0, 0), (0, 0), (10, 1)] {
        pair.advance(now);
        pair.check();
        assert_eq!(pair.buckets.job_counts().1.jobs, passed);
    }
}

#[test]
fn next_is_right_after_every_kind_of_change() {
    let mut pair = Pair::default();
    let next_is = |pair: &Pair, time: Option<u64>| {
        pair.check();
        assert_eq!(pair.buckets.next(), time.map(at));
    };
    next_is(&pair, None);
    pair.insert(50, EntryKind::Waiting);
    next_is(&pair, Some(50));
    pair.insert(70, EntryKind::Waiting);
    next_is(&pair, Some(50));
    pair.insert(40, EntryKind::Leased);
    next_is(&pair, Some(40));
    pair.advance(39);
    next_is(&pair, Some(40));
    pair.advance(40);
    next_is(&pair, Some(50));
    pair.insert(40, EntryKind::Waiting);
    next_is(&pair, Some(50));
    pair.insert(41, EntryKind::Waiting);
    next_is(&pair, Some(41));
    pair.insert(41, EntryKind::Waiting);
    pair.remove(2);
    next_is(&pair, Some(41));
    pair.remove(2);
    next_is(&pair, Some(50));
    pair.remove(0);
    next_is(&pair, Some(50));
    pair.advance(60);
    next_is(&pair, Some(70));
    pair.advance(70);
    next_is(&pair, None);
    pair.insert(Time::MAX.unix_ms(), EntryKind::Leased);
    next_is(&pair, Some(Time::MAX.unix_ms()));
    pair.advance(Time::MAX.unix_ms());
    next_is(&pair, None);
}

#[test]
fn every_time_there_is_fits_beside_the_hold() {
    let edges = [0, 1, u64::from(u32::MAX), 1 << 32, (1 << 47) - 1, 1 << 47, Time::MAX.unix_ms()];
    let mut pair = Pair::default();
    for time in edges {
        ENTRY_KINDS.into_iter().for_each(|kind| pair.insert(time, kind));
    }
    for time in edges {
        pair.advance(time);
        pair.check();
    }
}
