use super::*;
use crate::queue::groups::record::GroupRecord;

fn record() -> JobRecord {
    JobRecord {
        time: 1_763_725_200_500,
        created: 1_763_725_200_000,
        ttr: 60_000,
        attempts: 25,
        priority: 128,
        attempt: 2,
        lease: 3_612_109_209_600_001,
        stage: STAGE_LEASED,
        named_by_queue: true,
        extra: None,
    }
}

fn record_with_all() -> JobRecord {
    let extra = ExtraRecord {
        backoff_base: 1_000,
        backoff_max: 60_000,
        ttl: 86_400_000,
        keep: 3_600_000,
        expires_at: Some(1_763_811_600_000),
        reason: Some(ByteBuf::from("the bank is closed")),
        schedule: None,
        late: 0,
        tally: TallyRecord(1, 2, 0, 65_535),
        group: None,
    };
    JobRecord { extra: Some(extra), ..record() }
}

#[test]
fn a_record_is_read_as_it_was_written() {
    for record in [record(), record_with_all()] {
        let bytes = record.encode();
        assert_eq!(JobRecord::decode(&bytes).as_ref(), Ok(&record));
        let job = record.job(b"a", b"x").unwrap();
        assert_eq!(JobRecord::of(&job, Naming::ByQueue), record);
    }
}

#[test]
fn a_record_tells_its_lease() {
    assert_eq!(JobRecord { lease: 3_612_345, ..record() }.lease_number(), 3_612_345);
}

#[test]
fn a_plain_record_is_these_bytes() {
    let bytes = [
        0x99, 0xcf, 0, 0, 0x01, 0x9a, 0xa6, 0x35, 0x0f, 0x74, 0xcf, 0, 0, 0x01, 0x9a, 0xa6, 0x35,
        0x0d, 0x80, 0xcd, 0xea, 0x60, 25, 0xcc, 0x80, 2, 0xcf, 0, 0x0c, 0xd5, 0x31, 0xa8, 0x6c,
        0x00, 0x01, 1, 0xc3,
    ];
    let read = JobRecord::decode(&bytes).unwrap();
    assert_eq!(read.encode(), bytes);
    assert_eq!((read.ttr, read.attempts, read.attempt), (60_000, 25, 2));
}

#[test]
fn a_record_that_is_cut_short_or_too_long_is_refused() {
    let bytes = record().encode();
    for cut in 0..bytes.len() {
        assert_eq!(JobRecord::decode(&bytes[..cut]), Err(RecordError::Unreadable), "cut at {cut}");
    }
    let longer = [&bytes[..], &[0]].concat();
    assert_eq!(JobRecord::decode(&longer), Err(RecordError::TrailingBytes));
    let one_field_more = [&[0x9a], &bytes[1..], &[0]].concat();
    assert_eq!(JobRecord::decode(&one_field_more), Err(RecordError::Unreadable));
}

#[test]
fn a_record_that_cannot_be_is_refused_in_words() {
    let check = |change: fn(&mut JobRecord), error| {
        let mut record = record();
        change(&mut record);
        assert_eq!(record.job(b"a", b""), Err(error));
    };
    check(|r| r.time = u64::MAX, RecordError::Time);
    check(|r| r.created = 1 << 48, RecordError::Time);
    check(|r| r.ttr = 0, RecordError::Span);
    check(|r| r.ttr = u64::MAX, RecordError::Span);
    check(|r| r.stage = 9, RecordError::Stage);
    check(|r| r.lease = 0, RecordError::Lease);
    check(|r| r.attempt = 0, RecordError::Lease);
    assert_eq!(record().job(b"", b""), Err(RecordError::Id));
    assert_eq!(record().job(&[1; 513], b""), Err(RecordError::Id));
}

#[test]
fn a_list_that_promises_too_much_is_refused_without_reserving_it() {
    let four_billion_groups = [0xdd, 0xff, 0xff, 0xff, 0xff];
    assert_eq!(Vec::<GroupRecord>::decode(&four_billion_groups), Err(RecordError::Unreadable));
    let a_name_of_four_gigabytes = [0x91, 0x97, 0xc6, 0xff, 0xff, 0xff, 0xff, 1];
    assert_eq!(Vec::<GroupRecord>::decode(&a_name_of_four_gigabytes), Err(RecordError::Unreadable));
}
