//! The records of queues and of groups, and the blocks in which jobs stand.

use super::*;

#[test]
fn a_queue_is_these_bytes() {
    let expected = bytes(&[
        &[0x99],                                                 // an array of 9
        &[0xcd, 0x04, 0x00],                                     // last lease 1,024
        &[0x92, 77, 3],                                          // serial time, number
        TOTALS,                                                  // twelve of them
        &[50],                                                   // counted
        &[0xcf, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],       // paused until the end of time
        SETTINGS,                                                // an array of 11
        &[0x93, 60, 0x92, 0xcd, 0x01, 0xf4, 25], // clock 60, default TTR 500, attempts 25
        &[0xcf, 0xfe, 0xdc, 0xba, 0x98, 0x76, 0x54, 0x32, 0x10], // check
        &[0x92, 0, 0],                           // no rate has got anywhere
        &[0x93, 0, 0, 0],                        // no groups
    ]);
    let mut queue = Queue::new(SEED);
    queue.restore(&QueueRecord::decode(&expected).unwrap()).unwrap();
    assert_eq!(queue.record().encode(), expected);

    assert_eq!(queue.last_lease(), Some(Lease::new(1_024)));
    assert_eq!((queue.totals().added, queue.totals().missed), (1, 12));
    assert_eq!(queue.paused_until(at(60)), Some(Time::MAX));
    let settings = queue.settings();
    assert_eq!((settings.ttr, settings.attempts), (Some(ms(30)), None));
    assert_eq!(settings.backoff, Some(Backoff { base: ms(1), max: ms(2) }));
    assert_eq!((settings.keep, settings.late, settings.dead_keep), (ms(3), ms(4), ms(9)));
    assert_eq!(settings.max_jobs.unwrap().get(), 1_000);
    let log_state = LogState {
        clock: at(60),
        defaults: told(0).defaults,
        check: Checksum(0xfedc_ba98_7654_3210),
    };
    assert_eq!(*queue.log_state(), log_state);
}

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
    // CONCURRENCY 7, RATE 3 10 BURST 2; none for groups.
    let limits = [7, 0x93, 3, 10, 2, 0xc0, 0xc0];
    let place = record.windows(limits.len()).position(|part| part == limits).unwrap();
    // The next one would leave at 106 and 2/3.
    let end = [0x92, 106, 2, 0x93, 0, 0, 0];
    assert!(record.ends_with(&end), "{record:?}");
    let restored = |limits: &[u8], arrival: &[u8]| {
        let between = &record[place + 7..record.len() - end.len()];
        let told = bytes(&[&record[..place], limits, between, arrival, &[0x93, 0, 0, 0]]);
        let mut queue = Queue::new(SEED);
        queue.restore(&QueueRecord::decode(&told)?).map(|()| queue)
    };
    assert_eq!(restored(&limits, &[0x92, 106, 2]).unwrap().record().encode(), record);
    let without_rate = [7, 0xc0, 0xc0, 0xc0];
    assert_eq!(restored(&without_rate, &[0x92, 0, 0]).unwrap().settings().rate, None);
    for unreadable in [[3, 0, 2], [3, 10, 0], [0, 10, 0], [0, 0, 0]] {
        let limits = bytes(&[&[7, 0x93], &unreadable, &[0xc0, 0xc0]]);
        let refused = restored(&limits, &[0x92, 0, 0]).err();
        assert_eq!(refused, Some(RecordError::Unreadable), "{unreadable:?}");
    }
    let far: &[u8] = &[0x92, 0xcf, 0, 3, 0, 0, 0, 0, 0, 0, 0];
    let impossible: [(&[u8], &[u8]); 3] =
        [(&limits, &[0x92, 106, 3]), (&limits, far), (&without_rate, &[0x92, 106, 2])];
    for (limits, arrival) in impossible {
        assert_eq!(restored(limits, arrival).err(), Some(RecordError::Impossible), "{arrival:?}");
    }
    let zero_of_a_limit = [0, 0xc0, 0xc0, 0xc0];
    assert!(restored(&zero_of_a_limit, &[0x92, 0, 0]).is_err());
}

#[test]
fn a_backoff_of_the_queue_or_of_the_server() {
    let mut queue = Queue::new(SEED);
    let alter = |backoff| Alter { backoff: Some(backoff), ..Alter::default() };
    let backoff = Backoff { base: ms(1), max: ms(2) };
    let defaults = Defaults { backoff, ..told(0).defaults };
    let changes: [(Defaults, Alter, &[u8], &[u8]); 4] = [
        (told(0).defaults, Alter::default(), &[0x92, 0, 0], &[0x92, 0xcd, 0x01, 0xf4, 25]),
        (defaults, Alter::default(), &[0x92, 0, 0], &[0x93, 0xcd, 0x01, 0xf4, 25, 0x92, 1, 2]),
        // Set to none, whatever the server's is.
        (defaults, alter(Backoff::NONE), &[0xc0], &[0x93, 0xcd, 0x01, 0xf4, 25, 0x92, 1, 2]),
        (told(0).defaults, alter(backoff), &[0x92, 1, 2], &[0x92, 0xcd, 0x01, 0xf4, 25]),
    ];
    for (defaults, alter, of_queue, of_server) in changes {
        queue.apply(&Circumstances { defaults, ..told(100) }, &alter);
        let record = queue.record();
        let bytes = record.encode();
        // Behind TTR and ATTEMPTS, and before KEEP.
        let settings = super::bytes(&[&[0x9b, 0xc0, 0xc0], of_queue, &[0]]);
        let heading = super::bytes(&[&[0x93, 100], of_server]);
        for part in [settings, heading] {
            assert!(bytes.windows(part.len()).any(|some| some == part), "{part:?} in {bytes:?}");
        }
        let mut loaded = Queue::new(SEED);
        loaded.restore(&QueueRecord::decode(&bytes).unwrap()).unwrap();
        assert_eq!(loaded.record(), record);
        assert_eq!(loaded.settings().backoff, queue.settings().backoff);
    }
}

#[test]
fn a_queue_with_a_sink_has_a_field_more() {
    let mut queue = Queue::new(SEED);
    let told = told(100);
    let alter = |sink| Alter { sink: Some(sink), ..Alter::default() };
    queue.apply(&told, &alter(None));
    let without = queue.record().encode();
    queue.apply(&told, &alter(Some(Sink::new(id("out"), 300))));
    let with = |stream: &[u8], max_len: &[u8]| {
        // No job has edges.
        let extra = bytes(&[&[0x92, 0x92, 0xc4, stream.len() as u8], stream, max_len, &[0]]);
        bytes(&[&[0x9a], &without[1..], &extra])
    };
    let record = with(b"out", &[0xcd, 1, 44]);
    assert_eq!((without[0], queue.record().encode()), (0x99, record.clone()));
    let restored = |record: &[u8]| {
        let mut queue = Queue::new(SEED);
        queue.restore(&QueueRecord::decode(record)?).map(|()| queue)
    };
    assert_eq!(restored(&record).unwrap().record().encode(), record);
    let all = with(b"out", &[0]);
    let sink = restored(&all).unwrap().sink().cloned().unwrap();
    assert_eq!((sink.stream(), sink.max_len()), (&b"out"[..], None));
    assert!(restored(&without).unwrap().sink().is_none());
    for impossible in [with(b"", &[0]), with(b"out", &[0xcf, 128, 0, 0, 0, 0, 0, 0, 0])] {
        assert_eq!(restored(&impossible).err(), Some(RecordError::Impossible));
    }
}

#[test]
fn edges_are_these_bytes() {
    let mut queue = Queue::new(SEED);
    for name in ["a", "b", "c"] {
        queue.apply(&told(100), &Add::plain(id(name), b""));
    }
    let edges = |after: &[&'static str], on_dead, is_on_hold| {
        let after = after.iter().map(|name| id(name)).collect();
        Some(Box::new(NewEdges { after, on_dead, is_on_hold, ..NewEdges::default() }))
    };
    let due = Due::In(ms(7));
    let all = Add {
        edges: edges(&["a", "b", "c"], OnDead::Hold, false),
        due,
        ..Add::plain(id("d"), b"")
    };
    queue.apply(&told(100), &all);
    let due = Due::At(at(300));
    queue.apply(
        &told(100),
        &Add { edges: edges(&[], OnDead::Run, true), due, ..Add::plain(id("e"), b"") },
    );
    queue.apply(&told(100), &Pop { count: 2, ..Pop::ONE });
    let claim = |name| Claim { id: id(name), lease: None };
    let done = Done { claim: claim("a"), result: Some(b"x"), keep: None, adds: Vec::new() };
    queue.apply(&told(100), &done);
    queue.apply(&told(100), &Bury { claim: claim("b"), reason: None });
    // No sink, and two jobs have edges.
    assert!(queue.record().encode().ends_with(&[0x92, 0xc0, 2]));
    let records: Vec<EdgesRecord> = queue.edge_records().collect();
    let expected = bytes(&[
        &[0x92, 0x99, 0xc4, 1, b'd', 0x93],
        // Done with a result, dead, open.
        &[0x93, 0xc4, 1, b'a', 2, 0xc4, 1, b'x'],
        &[0x93, 0xc4, 1, b'b', 1, 0xc0],
        &[0x93, 0xc4, 1, b'c', 0, 0xc0],
        // The only record of the job; HOLD; not on hold; 7 ms behind the last edge, at 100 or later.
        &[0xc3, 0xc2, 0, 0xc2, 7, 0, 100],
        &[0x98, 0xc4, 1, b'e', 0x90, 0xc3, 0xc2, 1, 0xc3, 0, 0xcd, 1, 44],
    ]);
    assert_eq!(records.encode(), expected);
    assert_eq!(Vec::<EdgesRecord>::decode(&expected).unwrap(), records);
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
    // No limits of the queue; GROUPCONCURRENCY 7, GROUPRATE 3 10 BURST 2.
    let limits = [0xc0, 0xc0, 7, 0x93, 3, 10, 2];
    assert!(record.windows(limits.len()).any(|part| part == limits), "{record:?}");
    // Three records, two groups were made, and those without jobs were looked at up to the second.
    assert!(record.ends_with(&[0x92, 0, 0, 0x93, 3, 2, 2]), "{record:?}");
    let expected = bytes(&[
        &[0x93],
        // Those without one have had their turn with priority 128, in a round that began at 100,
        // when two groups had come.
        &[0x98, 0xc4, 0, 0, 0xc4, 1, 128, 0x92, 0, 0, 0, 0, 0xc0],
        &[0x91, 0x93, 0xcc, 128, 100, 2],
        // Its arrival time is 103 and a third; nothing has been held back by that, of a burst of
        // two.
        &[0x98, 0xc4, 3, b'r', b'e', b'd', 1, 0xc4, 1, 128, 0x92, 103, 1, 3, 0, 0, 0x90],
        // Paused until 105.
        &[0x98, 0xc4, 4, b'b', b'l', b'u', b'e', 2, 0xc4, 0, 0x92, 0, 0, 0, 105, 0xc0, 0x90],
    ]);
    assert_eq!(queue.group_records().encode(), expected);
    assert_eq!(Vec::<GroupRecord>::decode(&expected).unwrap(), queue.group_records());
    // Where its rate holds it back as the arrival time says, that is all there is.
    queue.apply(&told(100), &Add { group: Some(id("red")), ..Add::plain(id("d"), b"") });
    assert_eq!(queue.apply(&told(100), &Pop { count: 2, ..Pop::ONE }).len(), 1);
    let red = [0x98, 0xc4, 3, b'r', b'e', b'd', 1, 0xc4, 1, 128, 0x92, 106, 2, 3, 0, 0xc0, 0x90];
    assert_eq!(queue.group_records()[1..2].to_vec().encode(), bytes(&[&[0x91], &red]));
    let impossible: [&[u8]; 5] = [
        &[0xc4, 0, 1, 0xc4, 0, 0x92, 0, 0, 0],
        &[0xc4, 1, b'g', 0, 0xc4, 0, 0x92, 0, 0, 0],
        &[0xc4, 1, b'g', 1, 0xc4, 0, 0x92, 5, 0, 0],
        &[0xc4, 1, b'g', 1, 0xc4, 0, 0x92, 5, 3, 3],
        &[0xc4, 1, b'g', 1, 0xc4, 0, 0x92, 0xcf, 0, 3, 0, 0, 0, 0, 0, 0, 0, 3],
    ];
    for group in impossible {
        let records = bytes(&[&[0x91, 0x98], group, &[0, 0xc0, 0x90]]);
        let records = Vec::<GroupRecord>::decode(&records).unwrap();
        assert_eq!(queue.load_group(&records[0]), Err(RecordError::Impossible), "{group:?}");
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
        &[0x98, 100, 100, 0xcd, 0x01, 0xf4, 25, 0xcc, 128, 0, 0, 0],
        &[0x93, 0xc4, 2, b'b', b'c', 0xc4, 0],
        &[0x98, 101, 101, 0xcd, 0x01, 0xf4, 25, 0xcc, 128, 0, 0, 0],
    ]);
    assert_eq!(block.bytes(), expected);
    let read: Vec<_> = read_block(&expected).take(9).map(|job| job.unwrap()).collect();
    assert_eq!(
        read.iter().map(|(id, body, _)| (*id, *body)).collect::<Vec<_>>(),
        [(&b"a"[..], &b"one"[..]), (b"bc", b"")]
    );
}
