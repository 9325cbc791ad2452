//! Queues of many jobs: nothing takes longer for the jobs that it isn't about, and memory comes
//! back.

use std::time::{Duration, Instant};

use super::*;
use crate::queue::memory::slab::Slot;

const MILLION: u64 = 1_000_000;

fn jobs(jobs: u64, add_of: impl Fn(u64) -> Add<'static>) -> Queue {
    let mut queue = Queue::new((1, 2));
    for n in 0..jobs {
        let name = n.to_string();
        add(&mut queue, 0, &Add { id: Some(id(&name)), ..add_of(n) });
    }
    queue
}

fn nameless() -> Add<'static> {
    Add { ttr: Some(span(1_000)), ..plain("x") }
}

fn name_of(queue: &Queue, slot: Slot) -> String {
    String::from_utf8(queue.id_and_body(slot).unwrap().0.bytes().to_vec()).unwrap()
}

#[test]
fn a_million_jobs_of_one_millisecond_are_counted_and_ordered_at_once() {
    let mut queue = jobs(MILLION, |_| Add { due: Due::At(at(500)), ..nameless() });
    assert!(queue.apply(&told(499), &Pop::ONE).is_empty());
    queue.advance(at(500));
    let counts = Counts { ready: MILLION as usize, ..Counts::default() };
    assert_eq!((queue.counts(), queue.next_change()), (counts, None));
    let deliveries = queue.apply(&told(500), &Pop { count: 10_000, ..Pop::ONE });
    for (n, delivery) in deliveries.iter().enumerate() {
        assert_eq!(delivery.id_and_body(&queue).0.bytes(), n.to_string().as_bytes());
    }
    assert_eq!(deliveries.len(), 10_000);
}

#[test]
fn a_million_jobs_of_a_million_milliseconds_are_counted_exactly_at_each_moment() {
    // Scattered: 7 is prime to a million, so each millisecond gets one.
    let mut queue = jobs(MILLION, |n| Add { due: Due::At(at(1 + n * 7 % MILLION)), ..nameless() });
    for now in
        [0, 1, 2, 255, 256, 257, 1_000, 500_000, 500_001, MILLION - 1, MILLION, 777, 0, MILLION]
    {
        queue.advance(at(now));
        let (delayed, ready) = ((MILLION - now) as usize, now as usize);
        assert_eq!(queue.counts(), Counts { delayed, ready, ..Counts::default() });
        assert_eq!(queue.next_change(), (now < MILLION).then(|| at(now + 1)));
    }
    popped(&mut queue, MILLION);
    assert_eq!(queue.get(id("0")).unwrap().progress.attempt, 1);
}

/// How long these steps take. Bounds on it are a hundred times what is needed, and a hundredth of
/// what steps that walk a queue of a million would take.
fn time_of(steps: impl FnOnce()) -> Duration {
    let start = Instant::now();
    steps();
    start.elapsed()
}

/// A million that expire at 10, among them and behind them some that don't.
fn a_million_that_expire() -> Queue {
    jobs(MILLION + 1_000, |n| {
        let ttl = (n < MILLION && n % 1_000 != 999).then(|| span(10));
        Add { ttl, ..nameless() }
    })
}

#[test]
fn a_million_jobs_that_expire_together_are_counted_and_stepped_over() {
    let mut queue = a_million_that_expire();
    queue.advance(at(10));
    let counts = Counts { ready: 2_000, dead: MILLION as usize - 1_000, ..Counts::default() };
    assert_eq!((queue.counts(), queue.totals().died as usize), (counts, counts.dead));
    assert_eq!((queue.next_change(), queue.oldest_ready()), (None, Some(at(0))));
    assert_eq!(queue.peek(State::Ready, 5_000).len(), 2_000);
    assert_eq!(queue.peek(State::Dead, 2_000_000).len(), counts.dead);
    let mut names = Vec::new();
    let taken = time_of(|| {
        for _ in 0..1_500 {
            let deliveries = queue.apply(&told(10), &Pop::ONE);
            let (id, _) = deliveries.iter().next().unwrap().id_and_body(&queue);
            names.push(String::from_utf8(id.bytes().to_vec()).unwrap().parse::<u64>().unwrap());
        }
        let nothing_else = Pop { count: 10_000, ..Pop::ONE };
        assert_eq!(queue.apply(&told(10), &nothing_else).len(), 500);
    });
    assert!(names
        .into_iter()
        .eq((0..1_000).map(|n| n * 1_000 + 999).chain(MILLION..MILLION + 500)));
    // Each of a quadratic kind would step over 4,000 buckets: 8,000,000 of them.
    assert!(taken < Duration::from_millis(500), "{taken:?}");
    queue.advance(at(9));
    assert_eq!(queue.counts().dead, 0, "and where time goes back they are ready");
    assert_eq!(queue.peek(State::Ready, 3), [0, 1, 2]);
}

#[test]
fn pops_that_find_nothing_among_a_million_expired_jobs_look_once() {
    let mut queue = jobs(MILLION, |_| Add { ttl: Some(span(10)), ..nameless() });
    let taken = time_of(|| {
        for now in 10..10_010 {
            assert!(queue.apply(&told(now), &Pop::ONE).is_empty());
            queue.advance(at(now));
            assert_eq!(queue.oldest_ready(), None);
        }
    });
    assert!(taken < Duration::from_millis(100), "{taken:?}");
}

#[test]
fn a_million_expired_jobs_are_forgotten_by_the_thousand_while_others_are_delivered() {
    let mut queue = a_million_that_expire();
    queue.apply(&told(0), &Alter { dead_keep: Some(span(5)), ..Alter::default() });
    let (mut forgotten, mut delivered) = (0, 0);
    let taken = time_of(|| loop {
        queue.advance(at(15));
        let slots = queue.to_forget(at(15), 1_000);
        let names: Vec<String> = slots.iter().map(|slot| name_of(&queue, *slot)).collect();
        let ids: Vec<Id> = names.iter().map(|name| id(name)).collect();
        let Affected(jobs) = queue
            .apply(&told(15), &Remove { ids: Ids::from_slice(&ids), counted_as: Removal::Purged });
        forgotten += jobs;
        delivered += queue.apply(&told(15), &Pop { count: 2, ..Pop::ONE }).len();
        if jobs == 0 {
            break;
        }
    });
    assert_eq!((forgotten, delivered), (MILLION as usize - 1_000, 2_000));
    assert!(taken < Duration::from_secs(20), "{taken:?}");
    assert_eq!(queue.find_wake_at(), Some(at(1_015)), "nothing but leases is left");
}

#[test]
fn jobs_that_wait_for_their_backoff_are_found_behind_many_that_are_reserved() {
    const RESERVED: u64 = 150_000;
    let backoff = Some(Backoff { base: span(1_000), max: span(1_000) });
    let mut queue = jobs(RESERVED + 1, |_| Add { backoff, ..nameless() });
    while !queue
        .apply(&told(0), &Pop { count: 10_000, ttr: Some(span(500)), mode: Mode::Lease })
        .is_empty()
    {}
    let name = RESERVED.to_string();
    let claim = Claim { id: id(&name), lease: None };
    queue.apply(&told(0), &Touch { claim, ttr: Some(span(1)), checkpoint: Checkpoint::NONE });
    queue.advance(at(400));
    assert_eq!((queue.counts().delayed, queue.counts().reserved), (1, RESERVED as usize));
    let seen = queue.peek(State::Delayed, 9);
    assert_eq!(seen.iter().map(|slot| name_of(&queue, *slot)).collect::<Vec<_>>(), [&name[..]]);
    assert_eq!(queue.to_purge(at(400), State::Delayed, span(1), 9), seen);
    let taken =
        time_of(|| (0..1_000).for_each(|_| assert_eq!(queue.peek(State::Delayed, 9), seen)));
    assert!(taken < Duration::from_secs(2), "{taken:?}");
}

#[test]
fn done_jobs_are_purged_by_age_behind_those_that_are_kept_for_less_long() {
    let mut queue = jobs(150_000, |n| Add {
        priority: Some(if n < 10 { 0 } else { 1 }),
        keep: Some(span(if n < 10 { 5_000 } else { 2_000 })),
        ..nameless()
    });
    queue.apply(&told(0), &Pop { count: 10, ttr: None, mode: Mode::NoAck });
    while !queue.apply(&told(100), &Pop { count: 10_000, ttr: None, mode: Mode::NoAck }).is_empty()
    {
    }
    queue.advance(at(150));
    let old = queue.to_purge(at(150), State::Done, span(100), 99);
    assert_eq!(
        old.iter().map(|slot| name_of(&queue, *slot)).collect::<Vec<_>>().concat(),
        "0123456789"
    );
    assert_eq!(queue.to_purge(at(150), State::Done, span(50), 1_000_000).len(), 150_000);
}

#[test]
fn a_pop_of_many_looks_for_its_lanes_once() {
    const JOBS: u64 = 50_000;
    let mut queue = jobs(JOBS, |n| Add { priority: Some((n % 256) as u8), ..nameless() });
    let mut order = Vec::new();
    let few =
        time_of(|| {
            for _ in 0..4 {
                let deliveries = queue.apply(&told(0), &Pop { count: 10_000, ..Pop::ONE });
                order.extend(deliveries.iter().map(|one| {
                    name_of(&queue, queue.store.find(one.id_and_body(&queue).0).unwrap())
                }));
            }
        });
    let mut expected: Vec<u64> = (0..JOBS).collect();
    expected.sort_by_key(|n| n % 256);
    assert!(order
        .iter()
        .map(|name| name.parse::<u64>().unwrap())
        .eq(expected.into_iter().take(40_000)));
    assert!(few < Duration::from_secs(2), "{few:?}");
}

#[test]
fn memory_comes_back_when_all_jobs_have_left() {
    let mut queue = Queue::new((1, 2));
    let mut copies = vec![queue.clone()];
    for n in 0..50_000u64 {
        add(&mut queue, 0, &Add { due: Due::At(at(n % 777)), ..plain(&n.to_string()) });
    }
    let full = queue.memory();
    copies.push(queue.clone());
    for n in 0..25_000 {
        popped(&mut queue, 1_000);
        delete(&mut queue, &n.to_string());
    }
    copies.push(queue.clone());
    for mut queue in copies.into_iter().chain([queue]) {
        (0..50_000).for_each(|n| delete(&mut queue, &n.to_string()));
        assert!(queue.is_empty());
        // A page of each slab, and what a short directory holds.
        assert!(queue.memory() < 200_000, "{} of {full} bytes", queue.memory());
    }
}

#[test]
fn a_policy_is_kept_once_however_many_jobs_have_it() {
    let of_policies =
        |different| jobs(10_000, |n| Add { ttr: Some(span(1 + n % different)), ..nameless() });
    let one = of_policies(1).memory();
    let mut queue = of_policies(10_000);
    assert!(queue.memory() > one + 10_000 * 20, "each has its own here");
    (0..10_000u64).for_each(|n| delete(&mut queue, &n.to_string()));
    assert!(queue.memory() < 200_000, "{} bytes", queue.memory());
}

#[test]
fn memory_comes_back_when_jobs_with_details_have_left() {
    const JOBS: u64 = 20_000;
    let backoff = Some(Backoff { base: span(9), max: span(99) });
    let mut queue = jobs(JOBS, |n| Add {
        backoff,
        ttl: (n % 2 == 0).then(|| span(50)),
        keep: Some(span(n % 3)),
        ttr: Some(span(20)),
        ..plain("x")
    });
    for n in 0..15_000 {
        let deliveries = queue.apply(&told(1), &Pop::ONE);
        let delivery = deliveries.iter().next().unwrap();
        let (name, lease) = (delivery.id_and_body(&queue).0.bytes().to_vec(), delivery.lease);
        let id = Id::new(&name).unwrap();
        let claim = Claim { id, lease: Some(lease) };
        let when = WhenReleased::After(span(500));
        let is_done = match n % 5 {
            0 => queue
                .apply(&told(1), &Finish { claims: Claims::from_slice(&[claim]) })
                .has_changed(),
            1 => queue
                .apply(&told(1), &Release { when, reason: Some(b"one"), ..Release::plain(claim) })
                .has_changed(),
            2 => queue.apply(&told(1), &Bury { claim, reason: Some(b"another") }).has_changed(),
            3 => queue
                .apply(&told(1), &Touch { claim, ttr: None, checkpoint: Checkpoint::NONE })
                .has_changed(),
            _ => queue
                .apply(&told(1), &Release { when: WhenReleased::Unbegun, ..Release::plain(claim) })
                .has_changed(),
        };
        assert!(is_done);
    }
    queue.advance(at(60));
    let full = queue.memory();
    for queue in [&mut queue.clone(), &mut queue] {
        (0..JOBS).for_each(|n| delete(queue, &n.to_string()));
        assert!(queue.is_empty());
        assert!(queue.memory() < 250_000, "{} of {full} bytes", queue.memory());
    }
}

#[test]
fn a_page_behind_any_of_a_million_jobs_of_one_millisecond_is_found_at_once() {
    let mut queue = jobs(MILLION, |_| Add { due: Due::At(at(500)), ..nameless() });
    queue.advance(at(499));
    let taken = time_of(|| {
        for n in (0..MILLION - 9).step_by(1_000) {
            let name = n.to_string();
            let after = After { id: Some(id(&name)), time: Some(at(500)) };
            let page = queue.peek_after(State::Delayed, &after, 3).unwrap();
            let names: Vec<String> = page.iter().map(|slot| name_of(&queue, *slot)).collect();
            assert_eq!(names, [n + 1, n + 2, n + 3].map(|n| n.to_string()));
        }
    });
    println!("a page behind a job of a million of its millisecond: {:?}", taken / 1_000);
    // Going through those before would be half a million steps a page.
    assert!(taken < Duration::from_secs(2), "{taken:?}");
}

fn forecast(from: u64, step: u64, steps: usize) -> Forecast {
    Forecast::new(at(from), span(step), steps).unwrap()
}

#[test]
fn jobs_of_a_large_group_are_counted_at_once_though_they_expire() {
    const JOBS: u64 = 300_000;
    let mut queue = jobs(JOBS, |n| {
        let (due, ttl) = (Due::At(at(n % 1_000)), Some(span(500 + n % 1_000)));
        Add { group: Some(id("g")), due, ttl, ..nameless() }
    });
    let taken = time_of(|| {
        for now in 0..1_500 {
            queue.advance(at(now));
            let group = queue.group(id("g")).unwrap();
            let (due, dead) = ((now + 1).min(1_000), (now + 1).saturating_sub(500));
            let [ready, delayed] =
                [due - dead, 1_000 - due].map(|part| (JOBS / 1_000 * part) as usize);
            let expected = (ready, 0, delayed);
            assert_eq!((group.ready, group.reserved, group.delayed), expected, "at {now}");
        }
    });
    // One by one, they would be some hundred million steps.
    assert!(taken < Duration::from_secs(1), "{taken:?}");
}

#[test]
fn a_forecast_adds_up_buckets_and_tells_each_job_that_waits() {
    let mut queue = jobs(100_000, |n| {
        let priority = (n % 3) as u8;
        Add { due: Due::At(at(1 + n * 7 % 100_000)), priority: Some(priority), ..nameless() }
    });
    queue.advance(at(500));
    // One a millisecond; up to 500 they are ready.
    let sums = queue.forecast(&forecast(0, 100, 1_000));
    assert_eq!(sums[..7], [0, 0, 0, 0, 0, 99, 100]);
    assert_eq!(
        sums.iter().sum::<u64>(),
        99_499,
        "but for that of the millisecond behind the last step"
    );
    assert_eq!(queue.forecast(&forecast(501, 1, 3)), [1, 1, 1]);
    assert_eq!(queue.forecast(&forecast(99_999, 1, 4)), [1, 1, 0, 0]);
    assert_eq!(queue.forecast(&forecast(100_001, 1, 1)), [0]);
    assert_eq!(queue.forecast(&forecast(0, Time::MAX.unix_ms(), 1)), [99_500]);
    assert_eq!(Forecast::new(at(1), span(Time::MAX.unix_ms()), 1), None);
    assert_eq!(Forecast::new(at(0), Millis::MAX, 2), None);
}

#[test]
fn a_forecast_tells_a_backoff_from_a_lease_that_is_running_unless_there_are_too_many() {
    let backoff = Some(Backoff { base: span(1_000), max: span(1_000) });
    for (jobs_leased, expected) in [(100, 100), (10_000, 100), (10_001, 0)] {
        // A hundred leases have run out, and their jobs wait for their backoff; the others are
        // running.
        let mut queue = jobs(100 + jobs_leased, |_| Add { backoff, ..nameless() });
        queue.apply(&told(0), &Pop { count: 100, ttr: Some(span(10)), ..Pop::ONE });
        let leased: usize =
            (0..3).map(|_| queue.apply(&told(1), &Pop { count: 10_000, ..Pop::ONE }).len()).sum();
        assert_eq!(leased as u64, jobs_leased);
        queue.advance(at(10));
        assert_eq!(queue.counts(), Counts { delayed: 100, reserved: leased, ..Counts::default() });
        assert_eq!(queue.forecast(&forecast(10, 10_000, 1)), [expected]);
    }
}

/// `cargo test --release --lib forecast_over -- --ignored --nocapture`
#[test]
#[ignore = "measures, in some gigabytes"]
fn forecast_over_ten_million_jobs() {
    const JOBS: u64 = 10_000_000;
    for (lanes, leases) in [(1, 0), (8, 0), (8, 10_000), (256, 0)] {
        let backoff = Some(Backoff { base: span(1_000), max: span(1_000) });
        let mut queue = jobs(JOBS, |n| {
            let due = Due::At(at(1 + n.wrapping_mul(2_654_435_761) % 86_400_000));
            Add {
                due: if n < leases { Due::At(at(0)) } else { due },
                priority: Some((n % lanes) as u8),
                backoff,
                ..nameless()
            }
        });
        queue.apply(&told(0), &Pop { count: 10_000, ..Pop::ONE });
        queue.advance(at(0));
        for (step, steps) in [(86_400_000, 1), (3_600_000, 24), (86_400, 1_000), (1, 1_000)] {
            let asked = forecast(0, step, steps);
            let mut taken: Vec<Duration> =
                (0..20).map(|_| time_of(|| drop(queue.forecast(&asked)))).collect();
            taken.sort();
            println!(
                "{lanes} priorities, {leases} leases, {steps} steps of {step} ms: {:?}, at most {:?}",
                taken[10], taken[19]
            );
        }
    }
}
