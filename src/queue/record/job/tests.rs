use super::*;
use crate::queue::groups::record::GroupRecord;

fn at(unix_ms: u64) -> Time {
    Time::new(unix_ms).unwrap()
}

fn ms(ms: u64) -> Millis {
    Millis::new(ms).unwrap()
}

fn record() -> JobRecord {
    JobRecord {
        time: at(1_763_725_200_500),
        created: at(1_763_725_200_000),
        ttr: ms(60_000),
        attempts: Attempts::new(25),
        priority: 128,
        attempt: 2,
        lease: Lease::new(3_612_109_209_600_001),
        stage: Stage::Leased,
        extra: None,
    }
}

fn record_with(extra: ExtraRecord) -> JobRecord {
    JobRecord { extra: Some(Box::new(extra)), ..record() }
}

fn extra() -> ExtraRecord {
    ExtraRecord {
        backoff: Some(Backoff { base: ms(1_000), max: ms(60_000) }),
        ttl: Some(ms(86_400_000)),
        expires_at: Some(at(1_763_811_600_000)),
        keep: Some(ms(3_600_000)),
        reason: Some(ByteBuf::from("the bank is closed")),
        tally: Some(Tally { timed_out: 1, released: 2, buried: 0, kicked: 65_535 }),
        ..ExtraRecord::default()
    }
}

#[test]
fn a_record_is_read_as_it_was_written() {
    let late = Some(ms(9));
    for record in [record(), record_with(extra()), record_with(ExtraRecord { late, ..extra() })] {
        let bytes = record.encode();
        assert_eq!(JobRecord::decode(&bytes).as_ref(), Ok(&record));
        let job = record.job(b"a", b"x").unwrap();
        assert_eq!(JobRecord::of(&job), record);
    }
}

#[test]
fn a_record_tells_its_lease() {
    assert_eq!(record().lease(), Lease::new(3_612_109_209_600_001));
}

#[test]
fn a_plain_record_is_these_bytes() {
    let bytes = [
        0x98, 0xcf, 0, 0, 0x01, 0x9a, 0xa6, 0x36, 0xcc, 0x74, 0xcf, 0, 0, 0x01, 0x9a, 0xa6, 0x36,
        0xca, 0x80, 0xcd, 0xea, 0x60, 25, 0xcc, 0x80, 2, 0xcf, 0, 0x0c, 0xd5, 0x31, 0xb6, 0x54,
        0x00, 0x01, 1,
    ];
    assert_eq!(JobRecord::decode(&bytes), Ok(record()));
    assert_eq!(record().encode(), bytes);
}

#[test]
fn a_record_that_is_cut_short_or_too_long_is_refused() {
    let bytes = record().encode();
    for cut in 0..bytes.len() {
        assert_eq!(JobRecord::decode(&bytes[..cut]), Err(RecordError::Unreadable), "cut at {cut}");
    }
    let longer = [&bytes[..], &[0]].concat();
    assert_eq!(JobRecord::decode(&longer), Err(RecordError::TrailingBytes));
    let one_field_more = [&[0x9a], &bytes[1..], &[0xc0, 0xc0]].concat();
    assert_eq!(JobRecord::decode(&one_field_more), Err(RecordError::Unreadable));
}

/// Each of these is readable by itself.
#[test]
fn what_cannot_be_together_is_refused() {
    let rule = Recurrence {
        timing: crate::queue::value::recurrence::Timing::Every(ms(5)),
        misfire: crate::queue::value::recurrence::Misfire::One,
        jitter: ms(0),
        runs: 0,
        until: None,
        late: ms(0),
    };
    let schedule = Some((rule, RunState::new(at(1), at(6))));
    let nameless = Some(ByteBuf::new());
    for impossible in [
        JobRecord { ttr: ms(0), ..record() },
        JobRecord { lease: Lease::default(), ..record() },
        JobRecord { stage: Stage::Waiting, ..record() },
        JobRecord { stage: Stage::Dead, ..record() },
        JobRecord { stage: Stage::Done, ..record() },
        JobRecord { attempt: 0, ..record() },
        record_with(ExtraRecord { late: Some(ms(1)), schedule: schedule.clone(), ..extra() }),
        JobRecord {
            stage: Stage::Held,
            lease: Lease::default(),
            ..record_with(ExtraRecord { schedule: schedule.clone(), ..extra() })
        },
        record_with(ExtraRecord { group: nameless, ..extra() }),
        record_with(ExtraRecord { group: Some(ByteBuf::from(vec![b'g'; 513])), ..extra() }),
    ] {
        let read = JobRecord::decode(&impossible.encode()).unwrap();
        assert_eq!(read.job(b"a", b""), Err(RecordError::Impossible), "{read:?}");
    }
    assert!(record_with(ExtraRecord { schedule, ..extra() }).job(b"a", b"").is_ok());
    assert_eq!(record().job(b"", b""), Err(RecordError::Id));
    assert_eq!(record().job(&[1; 513], b""), Err(RecordError::Id));
}

#[test]
fn a_list_that_promises_too_much_is_refused_without_reserving_it() {
    let four_billion_groups = [0xdd, 0xff, 0xff, 0xff, 0xff];
    assert_eq!(Vec::<GroupRecord>::decode(&four_billion_groups), Err(RecordError::Unreadable));
    let a_name_of_four_gigabytes = [0x91, 0x98, 0xc6, 0xff, 0xff, 0xff, 0xff, 1];
    assert_eq!(Vec::<GroupRecord>::decode(&a_name_of_four_gigabytes), Err(RecordError::Unreadable));
}
