//! Many jobs that are added in one step.

use super::*;

#[test]
fn jobs_are_added_in_the_order_of_the_words() {
    check(
        "@7 MADD b,a,c -> b a c | ORDER -> b a c | POP n=3 -> b#1 a#1 c#1 | TOTALS -> 3 0 3 0 0 0",
    );
    check("@7 MADD b,a +50 prio=9 ttr=5 tries=2 -> b a | TOLD a -> x @7 ttr=5 prio=9 tries=2 | GET b -> delayed 57");
    check("@7 MADD a,b HOLD -> a b | GET a -> held 7 | UNHOLD a b -> 2 | POP n=9 -> a#1 b#1");
    check("@7 MADD a,b,c group=g | ADD d group=h | POP n=4 -> a#1 d#1 b#1 c#1");
}

#[test]
fn ids_that_are_made_are_none_of_those_that_are_given() {
    check("@7 MADD *,* -> 7-0 7-1 | NAME -> 7-2");
    check("@7 MADD *,7-0,7-1,* -> 7-3 7-0 7-1 7-4 | NAME -> 7-5");
}

#[test]
fn all_are_added_or_none() {
    check(
        "@0 ADD b | MADD a,b,c -> taken at 1 | ORDER -> b | TOTALS -> 1 0 0 0 0 0 | NEWS -> ready",
    );
    check("@0 MADD a,b,a,b -> twice at 2 | MADD a,a,a -> twice at 1 | ORDER ->");
    check("@0 ADD b | MADD a,b,a -> taken at 1 | MADD a,a,b -> twice at 1");
    check("@0 ADD a | MADD a,b,a NX -> twice at 2 | MADD b,b REPLACE -> twice at 1 | ORDER -> a");
    check("@0 ALTER maxjobs=3 | ADD x | MADD a,b,c -> full at 2 | MADD a,b -> a b | MADD * -> full at 0 | ORDER -> x a b");
    check("@0 ALTER maxjobs=2 | MADD a,b | MADD a,b REPLACE -> a b | MADD a,c REPLACE -> full at 1 | MADD a,b,c NX -> full at 2");
}

#[test]
fn jobs_that_are_not_added_leave_nothing_behind() {
    check("@0 ADD b | MADD a,c,b -> taken at 2 | ADD a | MADD c,d,c -> twice at 2 | MADD c,d -> c d | ORDER -> b a c d");
    check("@0 ADD p | ADD w after=p | MADD a,p -> taken at 1 | MADD a,c +5 -> a c | POP | FINISH p L1 | POP n=9 -> w#1");
}

#[test]
fn taken_ids_are_left_out_or_replaced() {
    check("@0 ADD b body=old | MADD a,b,c NX -> a left c | TOTALS -> 3 0 0 0 0 0 | MADD a,b NX -> left left");
    check("@0 ADD b | POP | MADD a,b REPLACE -> a b | FINISH b L1 -> 0 | TOTALS -> 2 1 1 0 0 0");
    // What was kept for long enough is gone.
    check("@0 ADD a keep=5 | POP | FINISH a L1 | @4 MADD a,b -> taken at 0 | @5 MADD a,b -> a b");
}

#[test]
fn each_has_its_time() {
    check("@100 MADD a,b,c delays=30,0,10 -> a b c | GET a -> delayed 130 | GET b -> ready 100 | GET c -> delayed 110");
    check("@100 MADD a,b,c spread=10 | GET a -> ready 100 | GET b -> delayed 103 | GET c -> delayed 106");
    check("@100 MADD a,b,c spread=10 +5 | GET a -> delayed 105 | GET b -> delayed 108 | GET c -> delayed 111");
    check("@100 MADD a,b spread=10 =50 | GET a -> ready 100 | GET b -> delayed 105");
    // One that is left out has had its time.
    check("@100 ADD b +1 | MADD a,b,c spread=9 NX | GET b -> delayed 101 | GET c -> delayed 106");
    check("@MAX-5 MADD a,b spread=1000 | GET b -> delayed MAX");
}

#[test]
fn many_wait_for_others_and_others_for_many() {
    check("@0 ADD root | MADD a,b after=root -> a b | COUNTS -> 0 1 0 0 0 2 | POP | FINISH root L1 | POP n=9 -> a#1 b#1");
    check("@0 ADD end HOLD | MADD a,b,c before=end | EDGES end -> 3/3 0 hold | UNHOLD end | POP n=3 | FINISH a L1 b L2 c L3 | POP -> end#1");
    check("@0 MADD a,b after=c -> nojob c at 0 | MADD a,b before=a -> notheld a at 0 | ORDER ->");
    // None waits for itself, nor for another of them.
    check("@0 ADD b | MADD b,a after=b REPLACE -> nojob b at 0 | MADD a,b after=b REPLACE -> waited-for b at 1 | ORDER -> b");
    check("@0 ADD p | ADD w after=p | MADD x,p REPLACE -> x p | MADD x,p after=w REPLACE -> waited-for p at 1");
}

#[test]
fn dead_jobs_come_back_spread_over_a_time() {
    let dead = "@0 ADD a | ADD b | ADD c | POP n=3 | BURY a L1 | BURY b L2 | BURY c L3";
    check(&format!("{dead} | @100 KICK 3 10 -> a b c | GET a -> ready 100 | GET b -> delayed 103 | GET c -> delayed 106"));
    check(&format!("{dead} | @100 KICK 2 10 -> a b | GET b -> delayed 105 | GET c -> dead 0 #1"));
    check("@0 ADD a ttl=50 | ADD b ttl=50 | @60 KICK 2 80 -> a b | @99 GET b -> delayed 100 | @105 GET b -> ready 100");
}

#[test]
fn held_jobs_are_spread_from_when_they_are_held_no_more() {
    check("@0 MADD a,b +50 spread=20 HOLD | @100 UNHOLD a b | GET a -> delayed 150 | GET b -> delayed 160");
    check("@0 ADD p | MADD a,b spread=20 after=p | POP | @100 FINISH p L1 | GET a -> ready 100 | GET b -> delayed 110");
}
