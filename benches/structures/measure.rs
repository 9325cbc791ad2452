//! One run of one candidate through a script, and the medians of several.

use std::time::Instant;

use crate::candidate::Candidate;
use crate::counting::Bytes;
use crate::workload::{Script, BODY_BYTES, ID_BYTES};
use crate::ALLOCATOR;

/// A promotion goes in slices of so many jobs, as the timer's does: the longest tells whether it
/// can.
const SLICE_JOBS: usize = 1_000;

#[derive(Clone, Copy, Default)]
pub struct Sample {
    pub add_ns: f64,
    pub longest_add_us: f64,
    pub cancel_ns: f64,
    pub promote_ms: f64,
    pub longest_slice_us: f64,
    pub pop_ns: f64,
    /// Beyond id and body, after the first adds; as requested, and rounded up as jemalloc does.
    pub bytes_requested: f64,
    pub bytes_rounded: f64,
    /// Rounded, after half of the jobs were cancelled and as many others added.
    pub bytes_churned: f64,
}

/// # Panics
/// When the jobs don't leave in the total order, or their count is wrong.
pub fn run<C: Candidate>(name: &str, script: &Script) -> Sample {
    let expected = script.order_of_leaving();
    let mut popped: Vec<[u8; ID_BYTES]> = Vec::with_capacity(expected.len());
    let before = ALLOCATOR.bytes();
    let mut candidate = C::new(crate::workload::START_MS);
    let mut sample = Sample::default();

    (sample.add_ns, sample.longest_add_us) = timed_adds(&mut candidate, script);
    (sample.bytes_requested, sample.bytes_rounded) = beyond_id_and_body(before, script.jobs);

    sample.cancel_ns = timed_cancels(&mut candidate, script);
    for number in script.jobs..script.ids.len() {
        add(&mut candidate, script, number);
    }
    (_, sample.bytes_churned) = beyond_id_and_body(before, expected.len());

    (sample.promote_ms, sample.longest_slice_us) = timed_promotion(&mut candidate, script);
    assert_eq!(candidate.ready(), expected.len(), "{name}: not all are ready");

    let start = Instant::now();
    while candidate.pop(script.last_due_ms, &mut |id| popped.extend(<[u8; ID_BYTES]>::try_from(id)))
    {
    }
    sample.pop_ns = nanoseconds(start) / popped.len() as f64;

    assert_eq!(popped.len(), expected.len(), "{name}: jobs are lost");
    let in_order =
        popped.iter().zip(&expected).all(|(id, number)| *id == script.ids[*number as usize]);
    assert!(in_order, "{name}: out of order");
    sample
}

fn add<C: Candidate>(candidate: &mut C, script: &Script, number: usize) -> bool {
    candidate.add(&script.ids[number], &[b'x'; BODY_BYTES], script.due_ms[number])
}

/// Nanoseconds an add, without the clock's own, and microseconds of the longest one.
fn timed_adds<C: Candidate>(candidate: &mut C, script: &Script) -> (f64, f64) {
    let mut longest_ns = 0;
    let start = Instant::now();
    let mut last = start;
    for number in 0..script.jobs {
        add(candidate, script, number);
        let now = Instant::now();
        longest_ns = longest_ns.max((now - last).as_nanos());
        last = now;
    }
    let add_ns = (last - start).as_nanos() as f64 / script.jobs as f64;
    (add_ns - clock_ns(), longest_ns as f64 / 1e3)
}

/// What it costs to read the clock.
fn clock_ns() -> f64 {
    const READINGS: u32 = 100_000;
    let start = Instant::now();
    for _ in 0..READINGS {
        std::hint::black_box(Instant::now());
    }
    nanoseconds(start) / f64::from(READINGS)
}

fn timed_cancels<C: Candidate>(candidate: &mut C, script: &Script) -> f64 {
    let start = Instant::now();
    for number in &script.cancelled {
        candidate.cancel(&script.ids[*number as usize]);
    }
    nanoseconds(start) / script.cancelled.len() as f64
}

/// Milliseconds in all, and microseconds of the longest slice.
fn timed_promotion<C: Candidate>(candidate: &mut C, script: &Script) -> (f64, f64) {
    let start = Instant::now();
    let mut longest_ns: f64 = 0.0;
    loop {
        let slice = Instant::now();
        let is_done = candidate.promote(script.last_due_ms, SLICE_JOBS);
        longest_ns = longest_ns.max(nanoseconds(slice));
        if is_done {
            return (nanoseconds(start) / 1e6, longest_ns / 1e3);
        }
    }
}

fn beyond_id_and_body(before: Bytes, jobs: usize) -> (f64, f64) {
    let now = ALLOCATOR.bytes();
    let a_job = |bytes: usize| bytes as f64 / jobs as f64 - (ID_BYTES + BODY_BYTES) as f64;
    (a_job(now.requested - before.requested), a_job(now.rounded - before.rounded))
}

fn nanoseconds(since: Instant) -> f64 {
    since.elapsed().as_nanos() as f64
}

/// The median of each figure. Of the longest adds and slices, the shortest: what the machine itself
/// adds to one is not there each time, what the structure does is.
pub fn median(samples: &[Sample]) -> Sample {
    let of = |figure: fn(&Sample) -> f64| sorted(samples, figure)[samples.len() / 2];
    let least =
        |figure: fn(&Sample) -> f64| sorted(samples, figure).first().copied().unwrap_or_default();
    Sample {
        add_ns: of(|s| s.add_ns),
        longest_add_us: least(|s| s.longest_add_us),
        cancel_ns: of(|s| s.cancel_ns),
        promote_ms: of(|s| s.promote_ms),
        longest_slice_us: least(|s| s.longest_slice_us),
        pop_ns: of(|s| s.pop_ns),
        bytes_requested: of(|s| s.bytes_requested),
        bytes_rounded: of(|s| s.bytes_rounded),
        bytes_churned: of(|s| s.bytes_churned),
    }
}

/// How far the runs of one candidate lie apart in adds, cancels and pops: the widest, in percent of
/// the median.
pub fn spread_percent(samples: &[Sample]) -> f64 {
    let spread = |figure: fn(&Sample) -> f64| {
        let figures = sorted(samples, figure);
        match figures.as_slice() {
            [least, .., most] => 100.0 * (most - least) / figures[figures.len() / 2],
            _ => 0.0,
        }
    };
    spread(|s| s.add_ns).max(spread(|s| s.cancel_ns)).max(spread(|s| s.pop_ns))
}

fn sorted(samples: &[Sample], figure: fn(&Sample) -> f64) -> Vec<f64> {
    let mut figures: Vec<f64> = samples.iter().map(figure).collect();
    figures.sort_by(f64::total_cmp);
    figures
}
