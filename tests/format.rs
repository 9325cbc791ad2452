//! What is frozen: the bytes of records, and the numbers that the outcome of a logged command depends on. All of it is in
//! docs/format.md. When a test here fails, two versions of the module would read a file or a log differently.
//!
//! The bytes are written by hand, field by field, from the tables there and the specification of MessagePack.

// A test may panic.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use dq::queue::*;

const SEED: (u64, u64) = (1, 2);

fn at(unix_ms: u64) -> Time {
    Time::new(unix_ms).unwrap()
}

fn ms(ms: u64) -> Millis {
    Millis::new(ms).unwrap()
}

fn id(name: &str) -> Id<'_> {
    Id::new(name.as_bytes()).unwrap()
}

fn told(now: u64) -> Circumstances {
    let defaults = Defaults { ttr: ms(500), attempts: Attempts::new(25) };
    Circumstances { now: at(now), defaults, ..Circumstances::default() }
}

fn bytes(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

fn job<'a>(progress: Progress, time: u64, reason: Option<&'a [u8]>) -> JobView<'a> {
    let policy = Policy {
        ttr: ms(60_000),
        attempts: Attempts::new(25),
        priority: 128,
        backoff: Backoff { base: ms(1_000), max: ms(60_000) },
        ttl: ms(86_400_000),
        keep: ms(0),
        late: ms(0),
    };
    let (group, schedule) = (None, None);
    JobView {
        id: id("a"),
        body: b"body",
        time: at(time),
        created: at(100),
        policy,
        progress,
        reason,
        tally: Tally::default(),
        group,
        schedule,
    }
}

#[test]
fn a_job_with_all_that_a_job_can_have() {
    let progress = Progress {
        stage: Stage::Leased,
        attempt: 2,
        lease: Some(Lease::new(70_000)),
        expires_at: Some(at(5_000_000_000)),
    };
    let expected = bytes(&[
        &[0x9a],                                  // an array of 10
        &[0xcd, 0x03, 0xe8],                      // time 1,000
        &[100],                                   // created
        &[0xcd, 0xea, 0x60],                      // ttr 60,000
        &[25],                                    // attempts
        &[0xcc, 128],                             // priority
        &[2],                                     // attempt
        &[0xce, 0x00, 0x01, 0x11, 0x70],          // lease 70,000
        &[1],                                     // stage: leased
        &[0xc2],                                  // not named by the queue
        &[0x96],                                  // extra, an array of 6
        &[0xcd, 0x03, 0xe8],                      // backoff base 1,000
        &[0xcd, 0xea, 0x60],                      // backoff max 60,000
        &[0xce, 0x05, 0x26, 0x5c, 0x00],          // ttl 86,400,000
        &[0],                                     // keep
        &[0xcf, 0, 0, 0, 1, 0x2a, 0x05, 0xf2, 0], // expires at 5,000,000,000
        &[0xc4, 2, b'n', b'o'],                   // reason
    ]);
    let job = job(progress, 1_000, Some(b"no"));
    assert_eq!(JobRecord::of(&job, Naming::Given).encode(), expected);
    assert_eq!(JobRecord::decode(&expected).unwrap().job(b"a", b"body"), Ok(job));
}

#[test]
fn a_job_that_comes_back() {
    let expected = bytes(&[
        &[0x9a, 0xcd, 0x03, 0xe8, 100, 0xcd, 0xea, 0x60, 25, 0xcc, 128, 0, 0, 0, 0xc2],
        &[0x97], // extra, an array of 7
        &[0xcd, 0x03, 0xe8, 0xcd, 0xea, 0x60, 0xce, 0x05, 0x26, 0x5c, 0x00, 0, 0xc0, 0xc0],
        &[0x9d],                         // schedule, an array of 13
        &[0xcd, 0x01, 0xf4, 0xc0, 0xc0], // EVERY 500, no expression, no zone
        &[1],                            // MISFIRE ALL
        &[60, 9],                        // JITTER 60, RUNS 9
        &[0xcd, 0x27, 0x10],             // UNTIL 10,000
        &[0xcc, 200, 0xcd, 0x02, 0xbc],  // anchor 200, occurrence 700
        &[0xcd, 0x04, 0xb0],             // next 1,200
        &[4, 5, 6],                      // runs, missed, failed
    ]);
    let rule = Recurrence {
        timing: Timing::Every(ms(500)),
        misfire: Misfire::All,
        jitter: ms(60),
        runs: 9,
        until: Some(at(10_000)),
        late: ms(0),
    };
    let mut round = Round::new(at(200), at(700)).with_next(Some(at(1_200)));
    (round.runs, round.missed, round.failed) = (4, 5, 6);
    let schedule = Some(Scheduled { rule: &rule, round });
    let job = JobView { schedule, ..job(Progress::default(), 1_000, None) };
    assert_eq!(JobRecord::of(&job, Naming::Given).encode(), expected);
    assert_eq!(JobRecord::decode(&expected).unwrap().job(b"a", b"body"), Ok(job));
}

/// Without LATE, records are as before.
#[test]
fn jobs_that_may_be_late() {
    let plain = bytes(&[
        &[0x9a, 10, 10, 60, 25, 1, 0, 0, 0, 0xc2],
        &[0x98], // extra, an array of 8
        &[0, 0, 0, 0, 0xc0, 0xc0],
        &[0xc0],      // no schedule
        &[0xcc, 200], // late 200
    ]);
    let record = JobRecord::decode(&plain).unwrap();
    assert_eq!(record.job(b"a", b"").unwrap().policy.late, ms(200));
    assert_eq!(record.encode(), plain);
    let fields = [0, 0, 0, 0, 0xc0, 0xc0];
    let schedule = [9, 0xc0, 0xc0, 0, 0, 0, 0xc0, 0, 60, 0xc0, 0, 0, 0, 0xcc, 200];
    let head = [0x9a, 10, 10, 60, 25, 1, 0, 0, 0, 0xc2];
    let scheduled = bytes(&[&head, &[0x97], &fields, &[0x9e], &schedule]);
    let record = JobRecord::decode(&scheduled).unwrap();
    let job = record.job(b"a", b"").unwrap();
    assert_eq!((job.schedule.unwrap().rule.late, job.policy.late), (ms(200), ms(0)));
    assert_eq!(record.encode(), scheduled);
    // A schedule has its own.
    let both = bytes(&[&head, &[0x98], &fields, &[0x9e], &schedule, &[7]]);
    assert_eq!(JobRecord::decode(&both).unwrap().job(b"a", b""), Err(RecordError::Schedule));
}

/// One that never was any of that has none, as before.
#[test]
fn a_job_that_timed_out_or_was_released() {
    let head: &[u8] = &[0x9a, 0xcd, 0x03, 0xe8, 100, 0xcd, 0xea, 0x60, 25, 0xcc, 128, 0, 0, 0, 0xc2];
    let expected = bytes(&[
        head,
        &[0x99], // extra, an array of 9
        &[0xcd, 0x03, 0xe8, 0xcd, 0xea, 0x60, 0xce, 0x05, 0x26, 0x5c, 0x00, 0, 0xc0, 0xc0],
        &[0xc0, 0],                       // no schedule, no LATE
        &[0x94, 1, 2, 3, 0xcd, 255, 255], // timed out, released, buried, kicked 65,535
    ]);
    let tally = Tally { timed_out: 1, released: 2, buried: 3, kicked: u16::MAX };
    let job = JobView { tally, ..job(Progress::default(), 1_000, None) };
    assert_eq!(JobRecord::of(&job, Naming::Given).encode(), expected);
    assert_eq!(JobRecord::decode(&expected).unwrap().job(b"a", b"body"), Ok(job));
    let higher = bytes(&[&expected[..expected.len() - 3], &[0xce, 0, 1, 0, 0]]);
    assert_eq!(JobRecord::decode(&higher), Err(RecordError::Unreadable));
}

#[test]
fn a_job_with_a_group() {
    let expected = bytes(&[
        &[0x9a, 0xcd, 0x03, 0xe8, 100, 0xcd, 0xea, 0x60, 25, 0xcc, 128, 0, 0, 0, 0xc2],
        &[0x9a], // extra, an array of 10
        &[0xcd, 0x03, 0xe8, 0xcd, 0xea, 0x60, 0xce, 0x05, 0x26, 0x5c, 0x00, 0, 0xc0, 0xc0],
        &[0xc0, 0, 0x94, 0, 0, 0, 0], // no schedule, no LATE, no tally
        &[0xc4, 3, b'r', b'e', b'd'], // group
    ]);
    let job = JobView { group: Some(id("red")), ..job(Progress::default(), 1_000, None) };
    assert_eq!(JobRecord::of(&job, Naming::Given).encode(), expected);
    assert_eq!(JobRecord::decode(&expected).unwrap().job(b"a", b"body"), Ok(job));
    let nameless = bytes(&[expected.strip_suffix(&[0xc4, 3, b'r', b'e', b'd']).unwrap(), &[0xc4, 0]]);
    assert_eq!(JobRecord::decode(&nameless).unwrap().job(b"a", b""), Err(RecordError::Group));
}

#[test]
fn groups_and_a_queue_with_limits_for_them() {
    let mut queue = Queue::new(SEED);
    let group_rate = Some(Rate::new(3, ms(10), 2));
    queue.apply(&told(100), &Alter { group_concurrency: Some(7), group_rate, ..Alter::default() });
    for name in ["a", "b", "c"] {
        let group = (name != "c").then(|| id("red"));
        queue.apply(&told(100), &Add { group, ..Add::plain(id(name), b"") });
    }
    queue.apply(&told(100), &Pause { group: Some(id("blue")), span: Some(ms(5)) });
    assert_eq!(queue.apply(&told(100), &Pop { count: 2, ..Pop::ONE }).len(), 2);
    let record = queue.record().encode();
    assert_eq!(record[0], 0x99);
    // No limits of the queue; GROUPCONCURRENCY 7, GROUPRATE 3 10 BURST 2; three records, two groups were made, and those
    // without jobs were looked at up to the second.
    assert!(record.ends_with(&[0x97, 0, 0, 0, 0, 0, 0, 0x97, 7, 3, 10, 2, 3, 2, 2]), "{record:?}");
    let expected = bytes(&[
        &[0x93],
        &[0x97, 0xc4, 0, 0, 0xc4, 1, 128, 0, 0, 0, 0], // those without one have had their turn with priority 128
        &[0x97, 0xc4, 3, b'r', b'e', b'd', 1, 0xc4, 1, 128, 103, 1, 3, 0], // and may leave at 103 and a third
        &[0x97, 0xc4, 4, b'b', b'l', b'u', b'e', 2, 0xc4, 0, 0, 0, 0, 105], // paused until 105
    ]);
    assert_eq!(queue.group_records().encode(), expected);
    assert_eq!(Vec::<GroupRecord>::decode(&expected).unwrap(), queue.group_records());
    let impossible: [&[u8]; 5] = [
        &[0x97, 0xc4, 0, 1, 0xc4, 0, 0, 0, 0, 0],
        &[0x97, 0xc4, 1, b'g', 0, 0xc4, 0, 0, 0, 0, 0],
        &[0x97, 0xc4, 1, b'g', 1, 0xc4, 0, 5, 0, 0, 0],
        &[0x97, 0xc4, 1, b'g', 1, 0xc4, 0, 5, 3, 3, 0],
        &[0x97, 0xc4, 1, b'g', 1, 0xc4, 0, 0xcf, 0, 3, 0, 0, 0, 0, 0, 0, 0, 3, 0],
    ];
    for group in impossible {
        let records = Vec::<GroupRecord>::decode(&bytes(&[&[0x91], group])).unwrap();
        assert_eq!(queue.load_group(&records[0]), Err(RecordError::Group), "{group:?}");
    }
}

#[test]
fn a_schedule_by_cron() {
    let schedule = |fields: &[&[u8]]| {
        let head: &[&[u8]] = &[&[0x9a, 1, 1, 1, 0, 0, 0, 0, 0, 0xc2, 0x97, 0, 0, 0, 0, 0xc0, 0xc0, 0x9d]];
        bytes(&[head, fields, &[&[0, 0, 0, 0xc0, 0, 60, 0xc0, 0, 0, 0]]].concat())
    };
    let noon = schedule(&[&[0, 0xaa], b"0 12 * * *", &[0xa3], b"UTC"]);
    let record = JobRecord::decode(&noon).unwrap();
    let job = record.job(b"a", b"").unwrap();
    let cron = Cron { expression: "0 12 * * *".into(), zone: "UTC".into() };
    let rule = Recurrence {
        timing: Timing::Cron(cron),
        misfire: Misfire::One,
        jitter: ms(0),
        runs: 0,
        until: None,
        late: ms(0),
    };
    assert_eq!(job.schedule, Some(Scheduled { rule: &rule, round: Round::new(at(0), at(60)) }));
    assert_eq!(record.encode(), noon);
    let long = [b'*'; 257];
    for impossible in [
        schedule(&[&[0, 0xc0, 0xc0]]),                       // neither EVERY nor CRON
        schedule(&[&[1, 0xa1, b'*', 0xc0]]),                 // both
        schedule(&[&[1, 0xc0, 0xa3], b"UTC"]),               // EVERY in a zone
        schedule(&[&[0, 0xa0, 0xc0]]),                       // no expression
        schedule(&[&[0, 0xda, 0x01, 0x01], &long, &[0xc0]]), // too long a one
    ] {
        let record = JobRecord::decode(&impossible).unwrap();
        assert_eq!(record.job(b"a", b""), Err(RecordError::Schedule));
    }
}

#[test]
fn stages_are_numbered() {
    for (number, stage) in [(0, Stage::Waiting), (2, Stage::Dead), (3, Stage::Done)] {
        let record = [0x99, 1, 1, 1, 0, 0, 0, 0, number, 0xc2];
        let read = JobRecord::decode(&record).unwrap();
        assert_eq!(read.job(b"a", b"").unwrap().progress.stage, stage);
        assert_eq!(read.encode(), record);
    }
    let unknown = JobRecord::decode(&[0x99, 1, 1, 1, 0, 0, 0, 0, 4, 0xc2]).unwrap();
    assert_eq!(unknown.job(b"a", b""), Err(RecordError::Stage));
}

const TOTALS: &[u8] = &[0x9b, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11];
const SETTINGS: &[u8] = &[0x97, 30, 0xc0, 1, 2, 0, 0xcd, 0x03, 0xe8, 9];

#[test]
fn a_queue() {
    let expected = bytes(&[
        &[0x98],                                                 // an array of 8
        &[0xcd, 0x04, 0x00],                                     // last lease 1,024
        &[77],                                                   // serial time
        &[3],                                                    // serial number
        TOTALS,                                                  // eleven of them
        &[50],                                                   // counted
        &[0xcf, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],       // paused until the end of time
        SETTINGS,                          // TTR 30, BACKOFF 1 2, MAXJOBS 1,000, DEADKEEP 9
        &[0x94, 60, 0xcd, 0x01, 0xf4, 25], // clock 60, default TTR 500, attempts 25
        &[0xcf, 0xfe, 0xdc, 0xba, 0x98, 0x76, 0x54, 0x32, 0x10], // check
    ]);
    let mut queue = Queue::new(SEED);
    queue.restore(&QueueRecord::decode(&expected).unwrap()).unwrap();
    assert_eq!(queue.record().encode(), expected);

    assert_eq!(queue.last_lease(), Some(Lease::new(1_024)));
    assert_eq!((queue.totals().added, queue.totals().purged), (1, 11));
    assert_eq!(queue.paused_until(at(60)), Some(Time::MAX));
    let settings = queue.settings();
    assert_eq!((settings.ttr, settings.attempts), (Some(ms(30)), None));
    assert_eq!((settings.max_jobs.unwrap().get(), settings.dead_keep), (1_000, ms(9)));
    let heading = Heading { clock: at(60), defaults: told(0).defaults, check: 0xfedc_ba98_7654_3210 };
    assert_eq!(*queue.heading(), heading);
}

#[test]
fn a_queue_whose_jobs_may_be_late() {
    let mut queue = Queue::new(SEED);
    queue.apply(&told(100), &Alter { late: Some(ms(9)), ..Alter::default() });
    let record = queue.record().encode();
    let settings: [u8; 9] = [0x98, 0xc0, 0xc0, 0, 0, 0, 0, 0, 9];
    assert!(record.windows(settings.len()).any(|part| part == settings), "{record:?}");
    let mut other = Queue::new(SEED);
    other.restore(&QueueRecord::decode(&record).unwrap()).unwrap();
    assert_eq!((other.settings().late, other.record().encode()), (ms(9), record));
}

/// A queue without limits has an array of 8, as before.
#[test]
fn a_queue_with_limits() {
    let mut queue = Queue::new(SEED);
    let rate = Rate::new(3, ms(10), 2).unwrap();
    let alter = Alter { concurrency: Some(7), rate: Some(Some(rate)), ..Alter::default() };
    queue.apply(&told(100), &alter);
    for id in [b"a", b"b"] {
        queue.apply(&told(100), &Add::plain(Id::new(id).unwrap(), b""));
    }
    assert_eq!(queue.apply(&told(100), &Pop { count: 9, ..Pop::ONE }).len(), 2);
    let record = queue.record().encode();
    assert_eq!(record[0], 0x99);
    // CONCURRENCY 7, RATE 3 10 BURST 2; the next one would leave at 106 and 2/3.
    let limits = [0x96, 7, 3, 10, 2, 106, 2];
    assert!(record.ends_with(&limits), "{record:?}");
    let with = |limits: &[u8]| [record.strip_suffix(&[0x96, 7, 3, 10, 2, 106, 2]).unwrap(), limits].concat();
    let restored = |limits: &[u8]| {
        let mut queue = Queue::new(SEED);
        queue.restore(&QueueRecord::decode(&with(limits))?).map(|()| queue)
    };
    assert_eq!(restored(&limits).unwrap().record().encode(), record);
    assert_eq!(restored(&[0x96, 7, 0, 0, 0, 0, 0]).unwrap().settings().rate, None);
    let impossible: [&[u8]; 5] = [
        &[0x96, 7, 3, 0, 2, 106, 2],
        &[0x96, 7, 3, 10, 0, 106, 2],
        &[0x96, 7, 3, 10, 2, 106, 3],
        &[0x96, 7, 0, 10, 0, 0, 0],
        &[0x96, 7, 3, 10, 2, 0xcf, 0, 3, 0, 0, 0, 0, 0, 0, 0],
    ];
    for limits in impossible {
        assert_eq!(restored(limits).err(), Some(RecordError::Limit), "{limits:?}");
    }
    assert_eq!(restored(&[0x97, 7, 3, 10, 2, 106, 2, 0]).err(), Some(RecordError::Unreadable));
}

#[test]
fn a_queue_of_0_1_has_no_heading_and_older_ones_have_less() {
    let with_settings = bytes(&[&[0x97, 0, 77, 3], TOTALS, &[50, 60], SETTINGS]);
    let shortest = bytes(&[&[0x94, 0, 77, 3], &[0x96, 1, 2, 3, 4, 5, 6]]);
    for old in [with_settings, shortest] {
        let mut queue = Queue::new(SEED);
        queue.restore(&QueueRecord::decode(&old).unwrap()).unwrap();
        assert_eq!(*queue.heading(), Heading::default());
        assert_eq!((queue.totals().added, queue.totals().deleted), (1, 6));
    }
}

#[test]
fn moves_of_0_1_and_their_causes() {
    let causes = [
        Cause::Popped,
        Cause::Released,
        Cause::Touched,
        Cause::Buried,
        Cause::Finished,
        Cause::Kicked,
        Cause::Returned,
    ];
    let waiting = job(Progress { attempt: 1, ..Progress::default() }, 100, Some(b"no"));
    for (number, cause) in (0..).zip(causes) {
        let expected = [0x91, 0x98, 0xc4, 1, b'a', number, 100, 0, 1, 0, 0xc0, 0xc4, 2, b'n', b'o'];
        assert_eq!(vec![waiting.move_record(cause)].encode(), expected);
    }
    let unknown = [0x91, 0x98, 0xc4, 1, b'a', 7, 100, 0, 1, 0, 0xc0, 0xc0];
    let unknown = Vec::<MoveRecord>::decode(&unknown).unwrap();
    assert_eq!(Effect::Move(unknown).check(), Err(RecordError::Cause));
}

#[test]
fn leases_and_drops_of_0_1() {
    let lease = vec![LeaseRecord::new(id("a"), Lease::new(70_000), at(100))].encode();
    assert_eq!(lease, [0x91, 0x93, 0xc4, 1, b'a', 0xce, 0, 1, 0x11, 0x70, 100]);
    for (number, exit) in [(0, Exit::Finished), (1, Exit::Purged)] {
        let drop = DropRecord::new(exit, [id("a"), id("bc")].into_iter()).encode();
        assert_eq!(drop, [0x92, number, 0x92, 0xc4, 1, b'a', 0xc4, 2, b'b', b'c']);
    }
    let unknown = DropRecord::decode(&[0x92, 2, 0x90]).unwrap();
    assert_eq!(Effect::Drop(unknown).check(), Err(RecordError::Cause));
}

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
    assert_eq!(pop(Circumstances { lease_floor: Lease::new(9_999_999), ..told(1_002) }), 10_000_000);
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
    assert_eq!([made(1_000), made(1_000), made(999), made(2_000)], ["1000-0", "1000-1", "1000-2", "2000-7"]);
}

#[test]
fn waits_have_this_jitter() {
    let backoff = Backoff { base: ms(1_000), max: ms(60_000) };
    for (attempt, lease, wait) in [
        (1, 1, 859),
        (1, 2, 853),
        (2, 2_048_000, 1_942),
        (3, 3_612_109_209_600_001, 3_558),
        (7, 3_612_109_209_600_001, 53_369),
        (u32::MAX, Lease::MAX.number(), 57_849),
    ] {
        assert_eq!(backoff.after(attempt, Lease::new(lease)), ms(wait), "attempt {attempt}, lease {lease}");
    }
}

#[test]
fn a_pop_hands_out_so_much_at_most() {
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
fn what_an_add_does_not_say() {
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
fn the_last_time() {
    assert_eq!(Time::MAX.unix_ms(), (1 << 48) - 1);
    assert_eq!(Lease::MAX.number(), (1 << 53) - 1);
    let mut queue = Queue::new(SEED);
    let due = Due::In(Millis::MAX);
    queue.apply(&told(9), &Add { due, ttl: Some(Millis::MAX), ..Add::plain(id("a"), b"") });
    let job = queue.get(id("a")).unwrap();
    assert_eq!((job.time, job.progress.expires_at), (Time::MAX, None));
}

/// From encoding version 2 on, the jobs of a value stand in blocks.
#[test]
fn a_block_of_two_jobs() {
    let mut queue = Queue::new(SEED);
    queue.apply(&told(100), &Add::plain(id("a"), b"one"));
    queue.apply(&told(101), &Add::plain(id("bc"), b""));
    let mut block = BlockWriter::default();
    queue.jobs().for_each(|job| assert!(!block.add(&job)));
    let expected = bytes(&[
        &[0x93, 0xc4, 1, b'a', 0xc4, 3, b'o', b'n', b'e'], // an array of 3: id, body, record
        &[0x99, 100, 100, 0xcd, 0x01, 0xf4, 25, 0xcc, 128, 0, 0, 0, 0xc2],
        &[0x93, 0xc4, 2, b'b', b'c', 0xc4, 0],
        &[0x99, 101, 101, 0xcd, 0x01, 0xf4, 25, 0xcc, 128, 0, 0, 0, 0xc2],
    ]);
    assert_eq!(block.bytes(), expected);
    let read: Vec<_> = read_block(&expected).take(9).map(|job| job.unwrap()).collect();
    assert_eq!(
        read.iter().map(|(id, body, _)| (*id, *body)).collect::<Vec<_>>(),
        [(&b"a"[..], &b"one"[..]), (b"bc", b"")]
    );
}

/// An entry of the log carries what the writer's queue had come to.
#[test]
fn the_check_of_a_session() {
    let mut queue = Queue::new(SEED);
    let claim = Claim { id: id("a"), lease: Some(Lease::new(2_000 * 2_048)) };
    assert_eq!(queue.heading().check, 0);
    queue.apply(&told(1_000), &Add::plain(id("a"), b"hello"));
    assert_eq!(queue.heading().check, 0x0348_873c_44a8_fa9b);
    queue.apply(&told(2_000), &Pop::ONE);
    assert_eq!(queue.heading().check, 0x51ae_8d17_4e89_03ec);
    queue.apply(&told(2_001), &Finish { claims: &[claim] });
    assert_eq!(queue.heading().check, 0xf2cb_3595_061b_e618);
}
