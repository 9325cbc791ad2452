//! Sums by step, beside a count of each job; and where the last ones of many buckets are.

use super::*;
use crate::queue::lines::buckets::steps::Steps;
use crate::queue::lines::buckets::tests::windows::FULL;
use crate::queue::value::time::Millis;

/// What is asked: the sums of so many steps from a moment on, of what has a time after another.
#[derive(Clone, Copy, Debug)]
struct Ask {
    from: u64,
    step: u64,
    count: usize,
    now: u64,
}

impl Ask {
    fn steps(self) -> Steps {
        Steps::new(at(self.from), Millis::new(self.step).unwrap(), self.count).unwrap()
    }

    /// By division, job by job.
    fn step_of(self, time: u64) -> Option<usize> {
        let step = time.checked_sub(self.from)? / self.step;
        Some(step as usize).filter(|step| *step < self.count)
    }
}

impl Pair {
    fn check_sums(&self, ask: Ask) {
        let mut expected = vec![JobCounts::default(); ask.count];
        for (time, _, kind) in self.plain.iter().filter(|(time, ..)| *time > at(ask.now)) {
            if let Some(step) = ask.step_of(time.unix_ms()) {
                expected[step] += tally_of_plain(&[(*time, 0, *kind)]);
            }
        }
        let mut sums = vec![JobCounts::default(); ask.count];
        self.buckets.add_up_by_step(&ask.steps(), at(ask.now), &mut sums);
        assert_eq!(sums, expected, "{ask:?}");
        // There are several lines: each adds to the sums of those before.
        self.buckets.add_up_by_step(&ask.steps(), at(ask.now), &mut sums);
        expected.iter_mut().for_each(|sum| *sum += *sum);
        assert_eq!(sums, expected, "{ask:?}, twice");
    }
}

/// Jobs that follow one another.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    begin: u64,
    /// Between two; with none, all are of the same millisecond.
    gap: u64,
    jobs: usize,
    /// One in so many is leased, or leased at first. A bucket in which one is isn't searched, but
    /// gone through.
    leased: Option<usize>,
}

const TIMES: u64 = 20_000;

fn stretch() -> impl Strategy<Value = Stretch> {
    let gap = prop_oneof![2 => Just(0u64), 3 => 1..4u64, 2 => 4..100u64, 1 => 100..1_000u64];
    let jobs = prop_oneof![1..20usize, 100..700usize];
    let leased = prop_oneof![6 => Just(None), 1 => (1..300usize).prop_map(Some)];
    (0..TIMES, gap, jobs, leased).prop_map(|(begin, gap, jobs, leased)| Stretch {
        begin,
        gap,
        jobs,
        leased,
    })
}

fn ask() -> impl Strategy<Value = Ask> {
    // From a bucket in many steps to many buckets in one.
    let step = prop_oneof![1 => 1..4u64, 4 => 4..100u64, 4 => 100..2_000u64, 1 => 2_000..2 * TIMES];
    let count = prop_oneof![0..4usize, 4..300usize];
    let now = prop_oneof![1 => Just(0u64), 3 => 0..TIMES, 1 => TIMES..10 * TIMES];
    (0..TIMES, step, count, now).prop_map(|(from, step, count, now)| Ask { from, step, count, now })
}

fn line_of_stretches(stretches: &[Stretch]) -> Pair {
    let mut pair = Pair::default();
    for Stretch { begin, gap, jobs, leased } in stretches {
        for n in 0..*jobs {
            let is_leased = leased.is_some_and(|one_in| n % one_in == 0);
            pair.insert(
                begin + n as u64 * gap,
                if is_leased { ENTRY_KINDS[1 + n % 2] } else { EntryKind::Waiting },
            );
        }
    }
    pair
}

proptest! {
    #[test]
    fn sums_by_step_are_those_of_a_count(
        stretches in prop::collection::vec(stretch(), 1..8),
        left_out in prop::option::of(2..20usize),
        asks in prop::collection::vec(ask(), 20),
    ) {
        let mut pair = line_of_stretches(&stretches);
        // Then buckets begin later than their line says.
        if let Some(one_in) = left_out {
            (0..pair.plain.len()).rev().step_by(one_in).for_each(|place| pair.remove(place));
        }
        asks.into_iter().for_each(|ask| pair.check_sums(ask));
    }
}

/// Times that are evenly spread, dense in the front or behind, and equal: where a step ends is
/// found from a guess that is right, too early, too late.
#[test]
fn sums_by_step_are_right_wherever_a_step_ends_in_a_bucket() {
    let even = (0..2 * FULL).map(|n| 10 * n);
    let early = (0..2 * FULL).map(|n| n * n * n / 10_000);
    let late = (0..2 * FULL).map(|n| 40 * FULL - (2 * FULL - n).pow(2) / 40);
    let equal = (0..2 * FULL).map(|n| n / 100 * 700);
    let (front, behind) = ([0].into_iter().chain(5_000..5_600), (0..600).chain([9_000]));
    let lines: [Vec<u64>; 6] = [
        even.collect(),
        early.collect(),
        late.collect(),
        equal.collect(),
        front.collect(),
        behind.collect(),
    ];
    for times in lines {
        let pair = Pair::of(times.iter().copied());
        let last = times[times.len() - 1];
        for step in [1, 7, 50, 99, 100, 260, 700, 701, 2_560, last, last + 1] {
            for from in [0, 1, 5, step, last / 2, last] {
                for now in [0, from, from + step / 2, last / 2, last - 1] {
                    for count in [1, 3, 100] {
                        pair.check_sums(Ask { from, step, count, now });
                    }
                }
            }
        }
    }
}

#[test]
fn sums_by_step_reach_to_the_last_time_there_is() {
    let last = Time::MAX.unix_ms();
    let at_the_end = (0..2 * FULL).map(|n| last - 2 * (2 * FULL - n)).chain([last - 1, last]);
    for pair in [Pair::of(at_the_end), Pair::of([1, last])] {
        for (from, step, count) in
            [(0, last, 1), (last - 1_000, 10, 100), (last, 1, 0), (last - 1, 1, 1)]
        {
            for now in [0, last - 300, last - 1, last] {
                pair.check_sums(Ask { from, step, count, now });
            }
        }
    }
}

#[test]
fn a_moment_is_in_the_step_that_begins_by_then_and_ends_later() {
    let ask = Ask { from: 100, step: 10, count: 3, now: 0 };
    for time in [0, 99, 100, 101, 109, 110, 119, 120, 129, 130, 139, 140, Time::MAX.unix_ms()] {
        assert_eq!(ask.steps().of(at(time)), ask.step_of(time), "{time}");
    }
    assert_eq!((ask.step_of(99), ask.step_of(129), ask.step_of(130)), (None, Some(2), None));
    let instants = Steps::new(at(5), Millis::of_ms(0), 2).unwrap();
    assert_eq!([4, 5, 6, 7].map(|time| instants.of(at(time))), [None, Some(0), Some(1), None]);
}
