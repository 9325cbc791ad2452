//! The records of jobs and of their schedules.

use super::*;

#[test]
fn a_job_with_all_that_a_job_can_have_is_these_bytes() {
    let progress = Progress {
        stage: Stage::Leased,
        attempt: 2,
        lease: Some(Lease::new(70_000)),
        expires_at: Some(at(5_000_000_000)),
    };
    let expected = bytes(&[
        &[0x99],                                  // an array of 9
        &[0xcd, 0x03, 0xe8],                      // time 1,000
        &[100],                                   // created
        &[0xcd, 0xea, 0x60],                      // ttr 60,000
        &[25],                                    // attempts
        &[0xcc, 128],                             // priority
        &[2],                                     // attempt
        &[0xce, 0x00, 0x01, 0x11, 0x70],          // lease 70,000
        &[1],                                     // stage: leased
        &[0x95],                                  // extra, an array of 5
        &[0x92, 0xcd, 0x03, 0xe8],                // backoff base 1,000
        &[0xcd, 0xea, 0x60],                      // backoff max 60,000
        &[0xce, 0x05, 0x26, 0x5c, 0x00],          // ttl 86,400,000
        &[0xcf, 0, 0, 0, 1, 0x2a, 0x05, 0xf2, 0], // expires at 5,000,000,000
        &[0xc0],                                  // keep
        &[0xc4, 2, b'n', b'o'],                   // reason
    ]);
    check(job(progress, 1_000, Some(b"no")), &expected);
}

/// What [`job`] gives each: BACKOFF and TTL.
const BACKOFF_AND_TTL: [u8; 12] =
    [0x92, 0xcd, 0x03, 0xe8, 0xcd, 0xea, 0x60, 0xce, 0x05, 0x26, 0x5c, 0x00];

/// Of a job that waits, with so many fields in its extra.
fn waiting(extra_fields: u8) -> Vec<u8> {
    let plain = [0x99, 0xcd, 0x03, 0xe8, 100, 0xcd, 0xea, 0x60, 25, 0xcc, 128, 0, 0, 0];
    bytes(&[&plain, &[0x90 | extra_fields], &BACKOFF_AND_TTL])
}

fn check(job: JobView, expected: &[u8]) {
    assert_eq!(JobRecord::of(&job).encode(), expected);
    assert_eq!(JobRecord::decode(expected).unwrap().job(b"a", b"body"), Ok(job));
}

#[test]
fn a_job_with_a_schedule_is_these_bytes() {
    let expected = bytes(&[
        &waiting(9),
        &[0xc0, 0xc0, 0xc0, 0xc0, 0xc0, 0xc0], // no expiry, KEEP, reason, tally, group, LATE
        &[0x92, 0x96],                         // schedule, an array of 2; its rule, one of 6
        &[0x92, 0xcd, 0x01, 0xf4, 0xc0],       // EVERY 500, no CRON
        &[1],                                  // MISFIRE ALL
        &[60, 9],                              // JITTER 60, RUNS 9
        &[0xcd, 0x27, 0x10],                   // UNTIL 10,000
        &[70],                                 // LATE
        &[0x96],                               // where it has got to, an array of 6
        &[0xcc, 200, 0xcd, 0x02, 0xbc],        // anchor 200, occurrence 700
        &[0xcd, 0x04, 0xb0],                   // next 1,200
        &[4, 5, 6],                            // runs, missed, failed
    ]);
    let rule = Recurrence {
        timing: Timing::Every(ms(500)),
        misfire: Misfire::All,
        jitter: ms(60),
        runs: 9,
        until: Some(at(10_000)),
        late: ms(70),
    };
    let mut round = RunState::new(at(200), at(700)).with_next(Some(at(1_200)));
    (round.runs, round.missed, round.failed) = (4, 5, 6);
    let schedule = Some(ScheduleView { rule: &rule, run_state: round });
    let job = job(Progress::default(), 1_000, None);
    check(JobView { schedule, ..job }, &expected);
    // A schedule has its own LATE.
    let mut both = expected;
    both[waiting(9).len() + 5] = 7;
    let both = JobRecord::decode(&both).unwrap();
    assert_eq!(both.job(b"a", b""), Err(RecordError::Impossible));
}

#[test]
fn a_next_occurrence_that_is_not_decided_or_does_not_come() {
    let undecided = RunState::new(at(1), at(2));
    let bytes_of = |run_state| rmp_serde::to_vec(&run_state).unwrap();
    assert_eq!(bytes_of(undecided), [0x96, 1, 2, 0, 0, 0, 0]);
    let none = bytes(&[&[0x96, 1, 2, 0xcf, 0, 0], &[0xff; 6], &[0, 0, 0]]);
    assert_eq!(bytes_of(undecided.with_next(None)), none);
}

#[test]
fn a_job_that_may_be_late() {
    // No expiry, KEEP, reason, tally, group; LATE 200.
    let expected = bytes(&[&waiting(8), &[0xc0, 0xc0, 0xc0, 0xc0, 0xc0, 0xcc, 200]]);
    let mut job = job(Progress::default(), 1_000, None);
    job.policy.late = ms(200);
    check(job, &expected);
}

/// One that never was any of that has none.
#[test]
fn a_job_that_timed_out_or_was_released() {
    let expected = bytes(&[
        &waiting(6),
        &[0xc0, 0xc0, 0xc0],              // no expiry, KEEP, reason
        &[0x94, 1, 2, 3, 0xcd, 255, 255], // timed out, released, buried, kicked 65,535
    ]);
    let tally = Tally { timed_out: 1, released: 2, buried: 3, kicked: u16::MAX };
    check(JobView { tally, ..job(Progress::default(), 1_000, None) }, &expected);
    let higher = bytes(&[&expected[..expected.len() - 3], &[0xce, 0, 1, 0, 0]]);
    assert_eq!(JobRecord::decode(&higher), Err(RecordError::Unreadable));
}

#[test]
fn a_job_with_a_group() {
    let group = [0xc4, 3, b'r', b'e', b'd'];
    let expected = bytes(&[&waiting(7), &[0xc0, 0xc0, 0xc0, 0xc0], &group]);
    check(JobView { group: Some(id("red")), ..job(Progress::default(), 1_000, None) }, &expected);
    let nameless = bytes(&[expected.strip_suffix(&group).unwrap(), &[0xc4, 0]]);
    let nameless = JobRecord::decode(&nameless).unwrap();
    assert_eq!(nameless.job(b"a", b""), Err(RecordError::Impossible));
}

#[test]
fn a_job_with_a_note() {
    let plain = job(Progress::default(), 1_000, None);
    // No expiry, KEEP, reason, tally, group, LATE, schedule.
    let expected = bytes(&[&waiting(10), &[0xc0; 7], &[0xc4, 3], b"1/3"]);
    check(JobView { note: Some(b"1/3"), ..plain }, &expected);
    // An empty one is none, and is not written.
    let empty = bytes(&[&waiting(10), &[0xc0; 7], &[0xc4, 0]]);
    let empty = JobRecord::decode(&empty).unwrap();
    assert_eq!(empty.job(b"a", b"body"), Ok(plain));
    assert_eq!(JobRecord::of(&plain).encode(), waiting(2));
}

#[test]
fn a_job_with_a_result() {
    let done = Progress { stage: Stage::Done, attempt: 1, ..Progress::default() };
    let mut plain = job(done, 1_000, None);
    plain.policy.keep = ms(200);
    let mut start = waiting(11);
    // Attempt and stage: done.
    (start[11], start[13]) = (1, 3);
    // No expiry; KEEP 200; no reason, tally, group, LATE, schedule, note.
    let start = bytes(&[&start, &[0xc0, 0xcc, 200], &[0xc0; 6]]);
    let expected = bytes(&[&start, &[0xc4, 2], b"42"]);
    check(JobView { result: Some(b"42"), ..plain }, &expected);
    // An empty one is one.
    check(JobView { result: Some(b""), ..plain }, &bytes(&[&start, &[0xc4, 0]]));
    let with_note = bytes(&[&expected[..start.len() - 1], &[0xc4, 1, b'n', 0xc4, 2], b"42"]);
    check(JobView { note: Some(b"n"), result: Some(b"42"), ..plain }, &with_note);
}

/// Neither what a field says by itself, nor how many there are.
#[test]
fn an_extra_that_says_nothing_is_left_out() {
    let plain = [0x98, 1, 1, 1, 0, 0, 0, 0, 0];
    for extra in [&[0x90][..], &[0x91, 0xc0], &[0x93, 0x92, 0, 0, 0, 0xc0], &[0xc0]] {
        let told = bytes(&[&[0x99], &plain[1..], extra]);
        let record = JobRecord::decode(&told).unwrap();
        let job = record.job(b"a", b"").unwrap();
        assert_eq!(JobRecord::of(&job).encode(), plain);
    }
    let longer = bytes(&[&[0x99], &plain[1..], &[0x9c], &[0xc0; 12]]);
    assert_eq!(JobRecord::decode(&longer), Err(RecordError::Unreadable));
}

#[test]
fn a_schedule_by_cron() {
    let schedule = |timing: &[&[u8]]| {
        let plain: &[&[u8]] = &[&[0x99, 1, 1, 1, 0, 0, 0, 0, 0, 0x99], &[0xc0; 8], &[0x92, 0x96]];
        bytes(&[plain, timing, &[&[0, 0, 0, 0xc0, 0, 0x96, 0, 60, 0, 0, 0, 0]]].concat())
    };
    let noon = schedule(&[&[0x92, 0, 0x92, 0xaa], b"0 12 * * *", &[0xa3], b"UTC"]);
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
    assert_eq!(
        job.schedule,
        Some(ScheduleView { rule: &rule, run_state: RunState::new(at(0), at(60)) })
    );
    assert_eq!(record.encode(), noon);
    let long = [b'*'; 257];
    for impossible in [
        schedule(&[&[0x92, 0, 0xc0]]), // neither EVERY nor CRON
        schedule(&[&[0x92, 1, 0x92, 0xa1, b'*', 0xa0]]), // both
        schedule(&[&[0x92, 0, 0x92, 0xa0, 0xa0]]), // no expression
        schedule(&[&[0x92, 0, 0x92, 0xda, 0x01, 0x01], &long, &[0xa0]]), // too long a one
        schedule(&[&[0x92, 0, 0x92, 0xa1, b'*', 0xd9, 65], &long[..65]]), // too long a zone
    ] {
        assert_eq!(JobRecord::decode(&impossible), Err(RecordError::Unreadable), "{impossible:?}");
    }
}

#[test]
fn stages_and_misfires_are_numbered() {
    let stages = [(0, Stage::Waiting), (2, Stage::Dead), (3, Stage::Done), (4, Stage::Held)];
    for (number, stage) in stages {
        let record = [0x98, 1, 1, 1, 0, 0, 0, 0, number];
        let read = JobRecord::decode(&record).unwrap();
        assert_eq!(read.job(b"a", b"").unwrap().progress.stage, stage);
        assert_eq!(read.encode(), record);
    }
    let unknown = JobRecord::decode(&[0x98, 1, 1, 1, 0, 0, 0, 0, 5]);
    assert_eq!(unknown, Err(RecordError::Unreadable));
    assert_eq!(Misfire::ALL.map(Misfire::number), [0, 1]);
    assert_eq!(Misfire::ALL.map(Misfire::name), ["ONE", "ALL"]);
    assert_eq!(rmp_serde::from_slice::<Misfire>(&[1]).unwrap(), Misfire::All);
    assert!(rmp_serde::from_slice::<Misfire>(&[2]).is_err());
}
