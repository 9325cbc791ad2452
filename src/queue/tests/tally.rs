//! How often a job timed out, was released, buried and kicked.

use super::*;
use crate::queue::kernel::change::Cause;

#[test]
fn a_lease_that_runs_out_counts_by_time_alone() {
    check("@0 ADD a ttr=10 | TALLY a -> 0 0 0 0 | POP | @9 TALLY a -> 0 0 0 0 | @10 TALLY a -> 1 0 0 0 | @5 TALLY a -> 0 0 0 0 | @12 POP -> a#2 | TALLY a -> 1 0 0 0 | @22 TALLY a -> 2 0 0 0");
    check("@0 ADD a tries=1 ttr=10 | POP | @10 GET a -> dead 10 #1 L1 | TALLY a -> 1 0 0 0");
    check("@0 ADD a ttl=5 ttr=10 | POP | @4 TALLY a -> 0 0 0 0 | @5 TALLY a -> 1 0 0 0 | @10 TALLY a -> 1 0 0 0 | KICKJOB a | TALLY a -> 1 0 0 1");
}

#[test]
fn a_lease_that_ran_out_counts_as_a_timeout_whatever_is_reported_later() {
    check("@0 ADD a ttr=10 | POP | @15 TOUCH a L1 -> 1 | TALLY a -> 1 0 0 0 | @20 TOUCH a L1 | TALLY a -> 1 0 0 0 | @30 RELEASE a L1 | TALLY a -> 2 1 0 0");
    check("@0 ADD a ttr=10 | POP | @15 UNBEGUN a L1 | TALLY a -> 1 0 0 0 | POP | @25 BURY a L2 | TALLY a -> 2 0 1 0");
    check("@0 ADD a ttr=10 keep=9 | POP | @15 FINISH a L1 | TALLY a -> 1 0 0 0 | LOAD | TALLY a -> 1 0 0 0");
    check("@0 ADD a ttr=10 | POP | FINISH a L1 | ADD a keep=9 | TALLY a -> 0 0 0 0 | POP NOACK | TALLY a -> 0 0 0 0");
}

#[test]
fn a_job_counts_its_releases_burials_and_kicks() {
    check("@0 ADD a | POP | RELEASE a L1 | RELEASE a L1 | POP | RELEASE a L2 +5 | TALLY a -> 0 2 0 0 | KICKJOB a | POP | BURY a L3 why | TALLY a -> 0 2 1 1 | LOAD | KICK 1 | TALLY a -> 0 2 1 2 | WHY a -> nil | POP -> a#1 | TALLY a -> 0 2 1 2");
    check(
        "@0 ADD a tries=1 | POP | RELEASE a L1 why | TALLY a -> 0 1 0 0 | ADD a REPLACE | TALLY a -> 0 0 0 0",
    );
    // As if nobody had had it: but the queue knows.
    check("@0 ADD a | POP | UNBEGUN a L1 | TALLY a -> 0 0 0 0 | MORE_TOTALS -> 1 0 0 0 0");
}

#[test]
fn a_schedule_counts_over_all_its_runs() {
    check("@0 ADD a every=10 tries=2 ttr=3 | @10 POP | RELEASE a L1 | POP | @13 TALLY a -> 1 1 0 0 | @20 POP -> a#1 | TALLY a -> 1 1 0 0 | FINISH a L3 | TALLY a -> 1 1 0 0 | KICKJOB a | TALLY a -> 1 1 0 1");
    check("@0 ADD a every=10 tries=1 | @10 POP | RELEASE a L1 rain | TALLY a -> 0 1 0 0 | ADD a every=10 tries=2 ENSURE | TALLY a -> 0 1 0 0 | LOAD | TALLY a -> 0 1 0 0");
    check("@0 ADD a every=10 ttr=3 tries=1 | @10 POP | @13 ADD a every=20 ENSURE -> replaced 33 | TALLY a -> 1 0 0 0");
}

#[test]
fn counters_of_a_job_stop_at_their_highest_number() {
    let full =
        Tally { timed_out: u16::MAX, released: u16::MAX, buried: u16::MAX, kicked: u16::MAX };
    assert_eq!(full.with_time_out(), full);
    for cause in [Cause::Released, Cause::Buried, Cause::Kicked] {
        assert_eq!(cause.counted_in(full), full);
    }
}

#[test]
fn a_job_that_never_failed_takes_no_memory_for_its_counters() {
    let bytes = |script: &[&str]| {
        let mut session = script::Session::default();
        script.iter().for_each(|step| drop(session.play(step)));
        session.queue().store.details_bytes()
    };
    let delivered = ["@0 ADD a ttr=10", "POP"];
    let given_back = ["@0 ADD a ttr=10", "POP", "UNBEGUN a L1"];
    let timed_out = ["@0 ADD a ttr=10", "POP", "@10 POP"];
    assert!(bytes(&given_back) <= bytes(&delivered));
    assert_eq!(bytes(&timed_out) - bytes(&delivered), 32);
}
