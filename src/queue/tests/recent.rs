//! How much happened in the last minute.

use super::*;

#[test]
fn what_happened_in_the_last_minute_is_counted() {
    check("@600000 ADD a | ADD b | ADD c | POP n=3 | FINISH a L1 b L2 | RELEASE c L3 | @659999 MINUTE -> 3 3 2 1 | @660000 MINUTE -> 0 0 0 0 | @999999 MINUTE -> 0 0 0 0");
    check("@600000 MINUTE -> 0 0 0 0 | ADD a | @620000 ADD b | @625000 ADD c | @640000 ADD a REPLACE | @659999 MINUTE -> 4 0 0 0 | @660000 MINUTE -> 3 0 0 0 | @680000 MINUTE -> 1 0 0 0 | @700000 MINUTE -> 0 0 0 0");
    // Of time, too.
    check("@600000 ADD a ttr=30000 | POP | @629999 MINUTE -> 2 2 0 0 | @630000 MINUTE -> 2 2 0 2 | @689999 MINUTE -> 0 0 0 1");
    check("@600000 ADD a ttl=5 | @600005 POP -> nil | @659999 MINUTE -> 1 0 0 0");
}

#[test]
fn a_queue_that_is_idle_for_long_counts_anew() {
    check("@600000 ADD a | ADD b | @3600000 ADD c | @3659999 MINUTE -> 1 0 0 0");
    check("@600000 ADD a | @655000 ADD b | @665000 ADD c | @714999 MINUTE -> 1 0 0 0");
    // The part in which b came ends when the minute begins.
    check("@600000 ADD a | @612000 ADD b | @675000 ADD c | @679999 MINUTE -> 1 0 0 0");
}

#[test]
fn what_is_known_of_less_than_a_minute_is_told_as_if_of_one() {
    check(
        "@600000 MINUTE -> 0 0 0 0 | @600001 ADD a | @630000 MINUTE -> 2 0 0 0 | @615000 MINUTE -> 0 0 0 0",
    );
    // At most for one second.
    check("@600000 ADD a | MINUTE -> 60 0 0 0");
}

#[test]
fn files_begin_anew_and_a_clock_that_is_set_does_no_harm() {
    check("@600000 ADD a | ADD b | @610000 LOAD | MINUTE -> 0 0 0 0 | ADD c | @669999 MINUTE -> 1 0 0 0");
    check("@9000000 ADD a | ADD b | @600000 MINUTE -> 0 0 0 0 | ADD c | @659999 MINUTE -> 1 0 0 0 | @9000000 MINUTE -> 0 0 0 0");
    check("@600000 ADD a | @9000000 ADD b | @9059999 MINUTE -> 1 0 0 0");
}
