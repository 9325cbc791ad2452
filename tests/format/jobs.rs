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
fn a_job_with_a_schedule_is_these_bytes() {
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
    let mut round = RunState::new(at(200), at(700)).with_next(Some(at(1_200)));
    (round.runs, round.missed, round.failed) = (4, 5, 6);
    let schedule = Some(ScheduleView { rule: &rule, run_state: round });
    let job = JobView { schedule, ..job(Progress::default(), 1_000, None) };
    assert_eq!(JobRecord::of(&job, Naming::Given).encode(), expected);
    assert_eq!(JobRecord::decode(&expected).unwrap().job(b"a", b"body"), Ok(job));
}

/// Without LATE, records are as before.
#[test]
fn jobs_that_may_be_late_are_these_bytes() {
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
fn a_job_that_timed_out_or_was_released_is_these_bytes() {
    let head: &[u8] =
        &[0x9a, 0xcd, 0x03, 0xe8, 100, 0xcd, 0xea, 0x60, 25, 0xcc, 128, 0, 0, 0, 0xc2];
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
fn a_job_with_a_group_is_these_bytes() {
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
    let nameless =
        bytes(&[expected.strip_suffix(&[0xc4, 3, b'r', b'e', b'd']).unwrap(), &[0xc4, 0]]);
    assert_eq!(JobRecord::decode(&nameless).unwrap().job(b"a", b""), Err(RecordError::Group));
}

#[test]
fn a_schedule_by_cron_is_these_bytes() {
    let schedule = |fields: &[&[u8]]| {
        let head: &[&[u8]] =
            &[&[0x9a, 1, 1, 1, 0, 0, 0, 0, 0, 0xc2, 0x97, 0, 0, 0, 0, 0xc0, 0xc0, 0x9d]];
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
    assert_eq!(
        job.schedule,
        Some(ScheduleView { rule: &rule, run_state: RunState::new(at(0), at(60)) })
    );
    assert_eq!(record.encode(), noon);
    let long = [b'*'; 257];
    for impossible in [
        schedule(&[&[0, 0xc0, 0xc0]]),         // neither EVERY nor CRON
        schedule(&[&[1, 0xa1, b'*', 0xc0]]),   // both
        schedule(&[&[1, 0xc0, 0xa3], b"UTC"]), // EVERY in a zone
        schedule(&[&[0, 0xa0, 0xc0]]),         // no expression
        schedule(&[&[0, 0xda, 0x01, 0x01], &long, &[0xc0]]), // too long a one
    ] {
        let record = JobRecord::decode(&impossible).unwrap();
        assert_eq!(record.job(b"a", b""), Err(RecordError::Schedule));
    }
}

#[test]
fn stages_have_these_numbers() {
    for (number, stage) in [(0, Stage::Waiting), (2, Stage::Dead), (3, Stage::Done)] {
        let record = [0x99, 1, 1, 1, 0, 0, 0, 0, number, 0xc2];
        let read = JobRecord::decode(&record).unwrap();
        assert_eq!(read.job(b"a", b"").unwrap().progress.stage, stage);
        assert_eq!(read.encode(), record);
    }
    let unknown = JobRecord::decode(&[0x99, 1, 1, 1, 0, 0, 0, 0, 4, 0xc2]).unwrap();
    assert_eq!(unknown.job(b"a", b""), Err(RecordError::Stage));
}
