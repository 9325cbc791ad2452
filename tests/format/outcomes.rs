//! The numbers that the outcome of a logged command depends on.

use super::*;

#[test]
fn leases_begin_with_the_time_and_only_grow() {
    let mut queue = Queue::new(SEED);
    for name in ["a", "b", "c", "d", "e"] {
        queue.apply(&told(0), &Add::plain(id(name), b""));
    }
    let mut pop = |told: Circumstances| {
        let deliveries = queue.apply(&told, &Pop::ONE);
        let lease = deliveries.iter().next().unwrap().lease;
        lease.number()
    };
    assert_eq!(pop(told(1_000)), 1_000 * 2_048);
    assert_eq!(pop(told(1_000)), 1_000 * 2_048 + 1);
    assert_eq!(pop(told(999)), 1_000 * 2_048 + 2);
    assert_eq!(pop(told(1_001)), 1_001 * 2_048);
    assert_eq!(
        pop(Circumstances { lease_floor: Lease::new(9_999_999), ..told(1_002) }),
        10_000_000
    );
}

#[test]
fn made_ids_go_on_by_one_and_pass_taken_ones_in_steps_that_double() {
    let mut queue = Queue::new(SEED);
    for taken in ["2000-0", "2000-1", "2000-3"] {
        queue.apply(&told(0), &Add::plain(id(taken), b""));
    }
    let mut made = |now: u64| {
        let added = queue.apply(&told(now), &Add { id: None, ..Add::plain(id("x"), b"") });
        let Added::New { slot, .. } = added else { panic!("{added:?}") };
        String::from_utf8(queue.id_and_body(slot).unwrap().0.bytes().to_vec()).unwrap()
    };
    assert_eq!(
        [made(1_000), made(1_000), made(999), made(2_000)],
        ["1000-0", "1000-1", "1000-2", "2000-7"]
    );
}

#[test]
fn backoffs_have_this_jitter() {
    let backoff = Backoff { base: ms(1_000), max: ms(60_000) };
    for (attempt, lease, wait) in [
        (1, 1, 859),
        (1, 2, 853),
        (2, 2_048_000, 1_942),
        (3, 3_612_109_209_600_001, 3_558),
        (7, 3_612_109_209_600_001, 53_369),
        (u32::MAX, Lease::MAX.number(), 57_849),
    ] {
        assert_eq!(
            backoff.after(attempt, Lease::new(lease)),
            ms(wait),
            "attempt {attempt}, lease {lease}"
        );
    }
}

#[test]
fn a_pop_hands_out_ten_thousand_jobs_or_16_mib_at_most() {
    let all = Pop { count: usize::MAX, ..Pop::ONE };
    let mut many = Queue::new(SEED);
    for n in 0..10_001 {
        many.apply(&told(0), &Add::plain(id(&n.to_string()), b""));
    }
    assert_eq!(many.apply(&told(1), &all).len(), 10_000);

    let body = vec![0; 8 << 20];
    let mut large = Queue::new(SEED);
    for name in ["a", "b", "c"] {
        large.apply(&told(0), &Add::plain(id(name), &body));
    }
    assert_eq!(large.apply(&told(1), &all).len(), 2, "16 MiB are enough");
}

#[test]
fn an_add_without_options_has_these_defaults() {
    let mut queue = Queue::new(SEED);
    queue.apply(&told(0), &Add::plain(id("a"), b""));
    let policy = queue.get(id("a")).unwrap().policy;
    assert_eq!((policy.priority, policy.ttr, policy.attempts.limit()), (128, ms(500), 25));
}

#[test]
fn a_bury_without_a_reason_gives_one() {
    let mut queue = Queue::new(SEED);
    queue.apply(&told(0), &Add::plain(id("a"), b""));
    queue.apply(&told(0), &Pop::ONE);
    queue.apply(&told(0), &Bury { claim: Claim { id: id("a"), lease: None }, reason: None });
    assert_eq!(queue.get(id("a")).unwrap().reason, Some(&b"buried"[..]));
}

#[test]
fn the_last_time_and_the_last_lease_have_these_numbers() {
    assert_eq!(Time::MAX.unix_ms(), (1 << 48) - 1);
    assert_eq!(Lease::MAX.number(), (1 << 53) - 1);
    let mut queue = Queue::new(SEED);
    let due = Due::In(Millis::MAX);
    queue.apply(&told(9), &Add { due, ttl: Some(Millis::MAX), ..Add::plain(id("a"), b"") });
    let job = queue.get(id("a")).unwrap();
    assert_eq!((job.time, job.progress.expires_at), (Time::MAX, None));
}

/// An entry of the log carries what the writer's queue had come to.
#[test]
fn the_check_of_a_session_is_this_number() {
    let mut queue = Queue::new(SEED);
    let claim = Claim { id: id("a"), lease: Some(Lease::new(2_000 * 2_048)) };
    assert_eq!(queue.log_state().check, Checksum(0));
    queue.apply(&told(1_000), &Add::plain(id("a"), b"hello"));
    assert_eq!(queue.log_state().check, Checksum(0x71a8_ed40_a7cb_3971));
    queue.apply(&told(2_000), &Pop::ONE);
    assert_eq!(queue.log_state().check, Checksum(0xe155_2e92_42a2_3282));
    queue.apply(&told(2_001), &Finish { claims: Claims::from_slice(&[claim]) });
    assert_eq!(queue.log_state().check, Checksum(0xc71a_3a95_3504_8ddc));
}

#[test]
fn jobs_that_are_spread_come_due_at_these_times() {
    let mut queue = Queue::new(SEED);
    let names = ["a", "b", "c"];
    let job = |name| OneOfMany { id: Some(id(name)), body: b"" };
    let like = Add { attempts: Some(Attempts::new(1)), ..Add::plain(id("a"), b"") };
    let (jobs, times) = (names.map(job).to_vec(), Times::SpreadOver(ms(10)));
    queue.apply(&told(1_000), &AddMany { like, jobs, times });
    let due = |queue: &Queue| names.map(|name| queue.get(id(name)).unwrap().time.unix_ms());
    assert_eq!(due(&queue), [1_000, 1_003, 1_006]);

    queue.apply(&told(2_000), &Pop { count: 3, ..Pop::ONE });
    let ids = names.map(id);
    for id in ids {
        queue.apply(&told(2_000), &Bury { claim: Claim { id, lease: None }, reason: None });
    }
    queue.apply(&told(3_000), &KickSpread { ids: Ids::from_slice(&ids), span: ms(20) });
    assert_eq!(due(&queue), [3_000, 3_006, 3_013]);
    assert_eq!(queue.log_state().check, Checksum(0x01e4_8c9f_5c67_0e81));
}
