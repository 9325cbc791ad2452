//! The records of queues and of groups, and the blocks in which jobs stand.

use super::*;

#[test]
fn a_queue_is_these_bytes() {
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
    let log_state = LogState {
        clock: at(60),
        defaults: told(0).defaults,
        check: Checksum(0xfedc_ba98_7654_3210),
    };
    assert_eq!(*queue.log_state(), log_state);
}

#[test]
fn a_queue_whose_jobs_may_be_late_is_these_bytes() {
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
fn a_queue_with_limits_is_these_bytes() {
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
    let with = |limits: &[u8]| {
        [record.strip_suffix(&[0x96, 7, 3, 10, 2, 106, 2]).unwrap(), limits].concat()
    };
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
fn groups_and_a_queue_with_limits_for_them_are_these_bytes() {
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
    // No limits of the queue; GROUPCONCURRENCY 7, GROUPRATE 3 10 BURST 2; three records, two groups
    // were made, and those without jobs were looked at up to the second.
    assert!(record.ends_with(&[0x97, 0, 0, 0, 0, 0, 0, 0x97, 7, 3, 10, 2, 3, 2, 2]), "{record:?}");
    let expected = bytes(&[
        &[0x93],
        // Those without one have had their turn with priority 128, in a round that began at 100,
        // when two groups had come.
        &[0x99, 0xc4, 0, 0, 0xc4, 1, 128, 0, 0, 0, 0, 0, 0x91, 0x93, 0xcc, 128, 100, 2],
        // Its arrival time is 103 and a third; nothing has been held back by that, of a burst of
        // two.
        &[0x98, 0xc4, 3, b'r', b'e', b'd', 1, 0xc4, 1, 128, 103, 1, 3, 0, 0],
        &[0x97, 0xc4, 4, b'b', b'l', b'u', b'e', 2, 0xc4, 0, 0, 0, 0, 105], // paused until 105
    ]);
    assert_eq!(queue.group_records().encode(), expected);
    assert_eq!(Vec::<GroupRecord>::decode(&expected).unwrap(), queue.group_records());
    // Where its rate holds it back as the arrival time says, that is all there is.
    queue.apply(&told(100), &Add { group: Some(id("red")), ..Add::plain(id("d"), b"") });
    assert_eq!(queue.apply(&told(100), &Pop { count: 2, ..Pop::ONE }).len(), 1);
    let red = [0x97, 0xc4, 3, b'r', b'e', b'd', 1, 0xc4, 1, 128, 106, 2, 3, 0];
    assert_eq!(queue.group_records()[1..2].to_vec().encode(), bytes(&[&[0x91], &red]));
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

/// From encoding version 2 on, the jobs of a value stand in blocks.
#[test]
fn a_block_of_two_jobs_is_these_bytes() {
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
