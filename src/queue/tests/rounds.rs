//! Jobs that come back.

use super::*;

/// A calendar in which the expression `10` is each multiple of ten; and what it said.
#[derive(Default)]
pub struct Multiples(pub Vec<Following>);

impl Calendar for Multiples {
    fn following(&mut self, cron: &Cron, from: Time, after: Time) -> Following {
        let step: u64 = cron.expression.parse().unwrap();
        let next = Time::new((after.unix_ms() / step + 1) * step);
        let missed =
            (from.unix_ms() + 1..=after.unix_ms()).filter(|time| time % step == 0).count() as u32;
        self.0.push(Following { next, missed });
        Following { next, missed }
    }
}

/// The schedule that the words of an ADD give, if they do.
pub fn schedule_of(words: &[&str], due: Option<Due>) -> Option<Box<NewSchedule>> {
    let value = |name| words.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    let number = |name| value(name).map(|text| text.parse::<u64>().unwrap());
    let cron = |text: &str| {
        Timing::Cron(Cron { expression: text.into(), zone: value("tz").unwrap_or_default().into() })
    };
    let every = |ms| Timing::Every(Millis::new(ms).unwrap());
    let rule = Recurrence {
        timing: number("every").map(every).or(value("cron").map(cron))?,
        misfire: value("misfire").map_or(Misfire::One, |_| Misfire::All),
        jitter: Millis::new(number("jitter").unwrap_or(0)).unwrap(),
        runs: number("runs").unwrap_or(0) as u32,
        until: number("until").map(|time| Time::new(time).unwrap()),
        late: Millis::ZERO,
    };
    let starts = due.map_or(Starts::ByItself, |due| match due {
        Due::In(delay) => Starts::In(delay),
        Due::At(time) => Starts::At(time),
    });
    Some(Box::new(NewSchedule { rule, starts }))
}

/// `occurrence>next run` and what else there is.
pub fn round(job: &JobView, now: Time) -> String {
    let Some(round) = job.run_state_at(now) else {
        return "nil".into();
    };
    let next = round.next().map_or("nil".into(), |next| next.unix_ms().to_string());
    let count = |name, count| if count > 0 { format!(" {name}={count}") } else { String::new() };
    let (missed, failed) = (count("missed", round.missed), count("failed", round.failed));
    format!("{}>{next} run={}{missed}{failed}", round.occurrence.unix_ms(), round.runs)
}

#[test]
fn a_finished_job_comes_back_for_its_next_occurrence() {
    check("@0 ADD a every=10 -> 10 | GET a -> delayed 10 | @9 POP -> nil | @10 ROUND a -> 10>nil run=0 | POP -> a#1 | ROUND a -> 10>20 run=1 \
         | @13 FINISH a L1 -> 1 | GET a -> delayed 20 | FINISH a L1 -> 0 | @20 POP -> a#1 | @21 FINISH a L2 -> 1 | GET a -> delayed 30 | TOTALS -> 1 0 2 0 2 0");
    check("@3 ADD a cron=10 -> 10 | @10 POP -> a#1 | ROUND a -> 10>20 run=1 | @13 FINISH a L1 -> 1 | GET a -> delayed 20 | LOAD | @20 POP -> a#1 | COPY | SWAP | FINISH a * -> 1 | GET a -> delayed 30");
}

#[test]
fn schedules_are_counted_found_and_sum_up_what_they_missed() {
    check("@0 ADD a every=10 | ADD b | ADD c cron=10 | SCHEDULES -> 2 a,c missed=0 \
         | @45 POP n=3 -> b#1 a#1 c#1 | SCHEDULES -> 2 a,c missed=6 | LOAD | SCHEDULES -> 2 a,c missed=6 \
         | ADD c REPLACE | SCHEDULES -> 1 a missed=6 | ADD b every=5 REPLACE | DEL a -> 1 | SCHEDULES -> 1 b missed=6");
    check(
        "@0 ADD a every=10 misfire=all | @45 POP NOACK -> a#1 | POP NOACK -> a#1 | SCHEDULES -> 1 a missed=0",
    );
}

#[test]
fn every_is_anchored_at_the_first_due_time_and_never_drifts() {
    check("@3 ADD a every=10 +4 -> 7 | @9 POP -> a#1 | @9 FINISH a L1 -> 1 | GET a -> delayed 17 | @20 POP | FINISH a L2 | GET a -> delayed 27");
    check("@3 ADD a every=10 =25 -> 25 | @25 POP | FINISH a L1 | GET a -> delayed 35");
    // A time in the past is now; the step stays.
    check("@33 ADD a every=10 =5 -> 33 | POP -> a#1 | FINISH a L1 | GET a -> delayed 35");
    check("@33 ADD a cron=10 =5 -> 40 | ADD b cron=10 =40 -> 40 | ADD c cron=10 +0 -> 40 | @40 ADD d cron=10 -> 50");
}

#[test]
fn a_run_that_is_longer_than_the_period_never_overlaps_another() {
    check("@0 ADD a every=10 ttr=1000 | @10 POP | @15 POP -> nil | @35 POP -> nil | FINISH a L1 | GET a -> ready 35 | ROUND a -> 20>nil run=1 \
         | POP -> a#1 | ROUND a -> 20>40 run=2 missed=1 | @36 FINISH a L2 | GET a -> delayed 40");
}

#[test]
fn all_missed_runs_come_as_one() {
    check("@0 ADD a every=10 | @57 POP -> a#1 | ROUND a -> 10>60 run=1 missed=4 | FINISH a L1 | GET a -> delayed 60");
    check("@0 ADD a cron=10 | @57 POP -> a#1 | ROUND a -> 10>60 run=1 missed=4 | FINISH a L1 | GET a -> delayed 60");
    check("@0 ADD a every=10 | PAUSE 55 | @30 POP -> nil | @56 POP -> a#1 | ROUND a -> 10>60 run=1 missed=4");
}

#[test]
fn misfire_all_makes_up_for_each_missed_run() {
    check("@0 ADD a every=10 misfire=all | @35 POP | ROUND a -> 10>20 run=1 | FINISH a L1 | ROUND a -> 20>nil run=1 | POP -> a#1 | FINISH a L2 | POP -> a#1 | FINISH a L3 \
         | GET a -> delayed 40 | ROUND a -> 40>nil run=3");
    check("@0 ADD a cron=10 misfire=all | @35 POP NOACK -> a#1 | POP NOACK -> a#1 | POP NOACK -> a#1 | POP NOACK -> nil | GET a -> delayed 40");
    // The others get their turn: what is made up for stands behind those that are ready.
    check(
        "@0 ADD a every=10 misfire=all | ADD b +20 | @35 POP -> a#1 | FINISH a L1 | POP -> b#1 | POP -> a#1",
    );
}

#[test]
fn a_run_that_fails_does_not_end_the_schedule() {
    // Timed out at the last attempt: nobody has to do anything for that.
    check("@0 ADD a every=10 tries=2 ttr=3 base=2 max=2 | @10 POP -> a#1 | @15 POP -> a#2 | GET a -> reserved 18 #2 L2 | @17 COUNTS -> 0 0 1 0 | @18 COUNTS -> 1 0 0 0 \
         | NEXT -> 20 | WHY a -> no attempts left | ROUND a -> 20>nil run=1 failed=1 | @20 COUNTS -> 0 1 0 0 | POP -> a#1 | ROUND a -> 20>30 run=2 failed=1 | WHY a -> no attempts left \
         | FINISH a L3 | GET a -> delayed 30 | MORE_TOTALS -> 0 0 0 0 0 | TOTALS -> 1 0 3 2 1 0");
    check("@0 ADD a every=10 tries=1 ttr=25 | @10 POP | @34 COUNTS -> 0 0 1 0 | @35 COUNTS -> 0 1 0 0 | GET a -> ready 35 #1 L1 | POP -> a#1 | ROUND a -> 20>40 run=2 missed=1 failed=1");
    check("@0 ADD a cron=10 tries=1 | @10 POP | @13 RELEASE a L1 rain -> 1 | GET a -> delayed 20 | WHY a -> rain | ROUND a -> 20>nil run=1 failed=1 \
         | @20 POP -> a#1 | FINISH a L2 | WHY a -> rain | MORE_TOTALS -> 1 0 0 0 0");
}

#[test]
fn attempts_are_counted_for_each_run_of_a_schedule() {
    check("@0 ADD a every=100 tries=2 | @100 POP -> a#1 | RELEASE a L1 +5 | @105 POP -> a#2 | ROUND a -> 100>200 run=1 | FINISH a L2 | @200 POP -> a#1");
    // A retry behind the next occurrence: that comes at once then.
    check("@0 ADD a every=10 | @10 POP | RELEASE a L1 +30 | @40 POP -> a#2 | ROUND a -> 10>20 run=1 | FINISH a L2 | GET a -> ready 40 | POP -> a#1 | ROUND a -> 20>50 run=2 missed=2");
    check("@0 ADD a every=10 runs=3 | @10 POP | UNBEGUN a L1 -> 1 | ROUND a -> 10>20 run=0 | @11 POP -> a#1 | ROUND a -> 10>20 run=1 | FINISH a L2 | GET a -> delayed 20");
}

#[test]
fn work_that_is_done_late_counts_until_the_job_is_delivered_again() {
    check("@0 ADD a every=10 tries=1 ttr=3 | @10 POP | @15 ROUND a -> 20>nil run=1 failed=1 | FINISH a L1 -> 1 | ROUND a -> 20>nil run=1 | GET a -> delayed 20");
    check("@0 ADD a every=10 tries=1 ttr=3 | @10 POP | @15 TOUCH a L1 -> 1 | GET a -> reserved 18 #1 L1 | ROUND a -> 10>20 run=1 | @25 POP | FINISH a L1 -> 0 | RELEASE a L1 -> 0");
}

#[test]
fn bury_del_runs_and_until_end_a_schedule() {
    check("@0 ADD a every=10 | @10 POP | BURY a L1 snow | @50 COUNTS -> 0 0 0 1 | POP -> nil | NEXT -> nil | GET a -> dead 10 #1 | WHY a -> snow");
    check("@0 ADD a every=10 | @10 POP | DEL a -> 1 | FINISH a L1 -> 0 | COUNTS -> 0 0 0 0");
    check("@0 ADD a every=10 runs=2 | @10 POP | FINISH a L1 | @20 POP | ROUND a -> 20>nil run=2 | FINISH a L2 -> 1 | GET a -> nil | TOTALS -> 1 0 2 0 2 0");
    check("@0 ADD a every=10 until=20 | @10 POP | FINISH a L1 | @20 POP | ROUND a -> 20>nil run=2 | FINISH a L2 | GET a -> nil");
    check(
        "@0 ADD a cron=10 until=45 | @58 POP | ROUND a -> 10>nil run=1 missed=3 | FINISH a L1 | GET a -> nil",
    );
    check("@0 ADD a every=10 until=9 -> never | GET a -> nil | LEASE -> nil | ADD a cron=10 until=9 -> never | ADD a cron=10 until=10 -> 10");
    // The last run, when it fails, is dead as any job.
    check("@0 ADD a every=10 runs=1 tries=1 ttr=3 | @10 POP | @13 COUNTS -> 0 0 0 1 | WHY a -> no attempts left | MORE_TOTALS -> 0 0 1 0 0 | KICKJOB a -> 1 | POP -> a#1 | FINISH a L2 | GET a -> nil");
}

#[test]
fn a_schedule_that_is_kicked_runs_now_and_goes_on_as_before() {
    check("@0 ADD a every=100 | @30 KICKJOB a -> 1 | GET a -> ready 30 | ROUND a -> 30>100 run=0 | KICKJOB a -> 0 | POP -> a#1 | ROUND a -> 30>100 run=1 | FINISH a L1 | GET a -> delayed 100 | @100 POP | ROUND a -> 100>200 run=2");
    check("@0 ADD a cron=100 | @30 KICKJOB a -> 1 | POP | FINISH a L1 | GET a -> delayed 100");
    // Out of attempts, and waiting for its next occurrence.
    check("@0 ADD a every=100 tries=1 ttr=3 | @100 POP | @110 KICKJOB a -> 1 | GET a -> ready 110 | ROUND a -> 110>200 run=1 failed=1 | POP -> a#1 | FINISH a L2 | GET a -> delayed 200");
    check("@0 ADD a every=100 tries=3 base=50 max=50 ttr=3 | @100 POP | RELEASE a L1 | KICKJOB a -> 1 | GET a -> ready 100 #1 | POP -> a#2 | ROUND a -> 100>200 run=1");
    // Buried: it is a schedule again, from now on.
    check("@0 ADD a every=100 | @100 POP | BURY a L1 snow | @950 KICK 1 -> a | WHY a -> nil | POP -> a#1 | ROUND a -> 950>1000 run=2 | FINISH a L2 | GET a -> delayed 1000");
}

#[test]
fn a_pop_with_noack_arms_the_next_run_at_once() {
    check("@0 ADD a every=10 | @10 POP NOACK -> a#1 | GET a -> delayed 20 | POP NOACK -> nil | @20 POP NOACK -> a#1 | ROUND a -> 30>nil run=2 | TOTALS -> 1 0 2 0 2 0");
    check("@0 ADD a every=10 runs=1 | @10 POP NOACK -> a#1 | GET a -> nil");
}

#[test]
fn ensure_leaves_a_schedule_where_it_is_and_sets_the_rest() {
    check("@0 ADD a every=10 ENSURE -> 10 | @5 ADD a every=10 ENSURE -> unchanged | ADD a every=10 body=new prio=7 ENSURE -> replaced 10 | GET a -> delayed 10 \
         | TOLD a -> new @0 ttr=60 prio=7 tries=0 | @10 POP | ADD a every=10 body=newer tries=3 ENSURE | GET a -> reserved 70 #1 L1 | ROUND a -> 10>20 run=1 | FINISH a L1 -> 1 | GET a -> delayed 20");
    check("@0 ADD a cron=10 ENSURE -> 10 | @57 ADD a cron=10 body=new ENSURE -> replaced 10 | POP -> a#1 | ROUND a -> 10>60 run=1 missed=4");
    // However often, and by however many.
    check("@0 ADD a every=10 ENSURE | @3 ADD a every=10 ENSURE -> unchanged | @6 ADD a every=10 ENSURE -> unchanged | @10 POP -> a#1 | @12 ADD a every=10 ENSURE -> unchanged | COUNTS -> 0 0 1 0 | LEASE -> 20480");
    check("@0 ADD a every=10 =5 ENSURE -> 5 | @3 ADD a every=10 =25 ENSURE -> unchanged | ADD a every=10 =26 ENSURE -> replaced 26");
}

#[test]
fn a_changed_schedule_counts_from_now_and_never_fires_at_once() {
    // At the end of time there is no other.
    check("@0 ADD a every=10 | @57 ADD b every=10 until=5 -> never | ADD b every=10 until=5 ENSURE -> never | ADD a every=281474976710655 =0 ENSURE -> ended | GET a -> nil");
    check("@0 ADD a every=10 | @57 GET a -> ready 10 | ADD a every=30 ENSURE -> replaced 87 | GET a -> delayed 87 | ROUND a -> 87>nil run=0");
    check("@0 ADD a every=10 | @57 ADD a cron=50 ENSURE -> replaced 100 | @100 POP | @101 ADD a cron=30 ENSURE | GET a -> reserved 160 #1 L1 | ROUND a -> 100>120 run=0 | FINISH a L1 | GET a -> delayed 120");
    check("@0 ADD a every=10 | @57 ADD a every=7 =57 ENSURE -> replaced 64 | ADD b every=7 =50 ENSURE -> 57 | ADD a every=8 =20 ENSURE -> replaced 60");
    check("@0 ADD a every=10 tries=3 | @10 POP | RELEASE a L1 +5 why | @12 ADD a every=100 ENSURE -> replaced 112 | GET a -> delayed 112 | WHY a -> why");
    // A job without one gets it; and a run that is under way is not lost.
    check("@0 ADD a ttl=50 | POP | ADD a every=100 ENSURE | GET a -> reserved 60 #1 L1 | FINISH a L1 -> 1 | GET a -> delayed 100 | @50 COUNTS -> 1 0 0 0");
    check("@0 ADD a keep=90 | POP | FINISH a L1 | @5 ADD a every=10 ENSURE -> replaced 15 | GET a -> delayed 15");
}

#[test]
fn ensure_leaves_or_ends_a_schedule_that_is_at_its_end() {
    // An operator has to look at what was buried.
    check("@0 ADD a every=10 | @10 POP | BURY a L1 snow | @20 ADD a every=10 body=new ENSURE | GET a -> dead 10 #1 | WHY a -> snow | ADD a every=7 ENSURE | COUNTS -> 0 0 0 1 | KICKJOB a -> 1 | POP -> a#1 | ROUND a -> 20>27 run=1");
    check("@0 ADD a every=10 runs=5 | @10 POP | FINISH a L1 | ADD a every=10 runs=1 ENSURE -> ended | GET a -> nil | TOTALS -> 1 0 1 0 1 1");
    check("@0 ADD a every=10 | @10 POP | ADD a every=10 until=15 ENSURE | ROUND a -> 10>nil run=1 | ADD a every=10 ENSURE | ROUND a -> 10>20 run=1 | ADD a every=10 runs=1 ENSURE | FINISH a L1 | GET a -> nil");
    check("@0 ADD a cron=10 | @10 POP | ADD a cron=10 until=15 ENSURE | @23 ADD a cron=10 ENSURE | ROUND a -> 10>30 run=1");
    check("@0 ADD a every=10 ttl=50 keep=9 REPLACE -> 10 | @20 POP | FINISH a L1 | GET a -> delayed 30 | ADD a every=10 -> taken | ADD a +5 REPLACE | ROUND a -> nil");
}

#[test]
fn ensure_of_the_same_schedule_gives_the_same_reply_until_its_end() {
    let same = "ADD a every=10 until=25 ENSURE";
    check(&format!(
        "@0 {same} -> 10 | @10 POP | FINISH a L1 | @17 {same} -> unchanged | @24 {same} -> unchanged | @30 {same} -> unchanged | POP -> a#1 \
         | @31 {same} -> unchanged | ROUND a -> 20>nil run=2 | FINISH a L2 -> 1 | GET a -> nil | {same} -> never | GET a -> nil"
    ));
    // Dead, it stays so. A kick is a run, however late.
    check(&format!("@0 {same} | @10 POP | BURY a L1 | @40 {same} -> unchanged | KICKJOB a | {same} -> unchanged | POP -> a#1 | FINISH a L2 | GET a -> nil"));
}

#[test]
fn ensure_with_an_earlier_until_ends_the_schedule_there() {
    let ends_at = |until| format!("ADD a every=10 until={until} ENSURE");
    // What waits for a time that isn't allowed any more ends; what is ready has come before that.
    check(&format!(
        "@0 ADD a every=10 | @12 POP | FINISH a L1 | @13 {} -> ended | GET a -> nil",
        ends_at(15)
    ));
    check(&format!(
        "@0 ADD a every=10 | @12 {} -> replaced 10 | POP -> a#1 | ROUND a -> 10>nil run=1",
        ends_at(5)
    ));
    check("@0 ADD a every=10 | @3 ADD a every=7 until=5 ENSURE -> ended | GET a -> nil");
    check("@0 ADD a every=10 | @10 POP | ADD a every=7 until=5 ENSURE -> replaced 70 | FINISH a L1 -> 1 | GET a -> nil");
    // The time behind a run was decided: for a run that is kicked, and for one that is given back.
    check(&format!("@0 ADD a every=10 | @3 KICKJOB a | ROUND a -> 3>10 run=0 | {} -> replaced 3 | POP -> a#1 | FINISH a L1 | GET a -> nil", ends_at(5)));
    check(&format!("@0 ADD a every=10 | @10 POP | UNBEGUN a L1 | ROUND a -> 10>20 run=0 | {} -> replaced 10 | POP -> a#1 | FINISH a L2 | GET a -> nil", ends_at(15)));
    // And a later end lets it go on.
    check(&format!(
        "@0 {} | @10 POP | UNBEGUN a L1 | {} -> replaced 10 | POP -> a#1 | ROUND a -> 10>20 run=1",
        ends_at(15),
        ends_at(25)
    ));
}

#[test]
fn what_was_missed_counts_once_however_often_the_last_run_is_given_back() {
    let begun = "@0 ADD a every=10 until=105 | @110 POP -> a#1 | ROUND a -> 10>nil run=1 missed=9";
    check(&format!(
        "{begun} | UNBEGUN a L1 | POP -> a#1 | ROUND a -> 10>nil run=1 missed=9 | UNBEGUN a L2 | LOAD | POP -> a#1 \
         | ROUND a -> 10>nil run=1 missed=9 | COPY | SWAP | FINISH a * -> 1 | GET a -> nil"
    ));
}

#[test]
fn ensure_leaves_what_time_has_made_of_a_job() {
    // Dead by its last timeout, though there would be more runs or more attempts by now, or another
    // schedule.
    let dead = "@0 ADD a every=10 runs=1 tries=1 ttr=3 | @10 POP | @15";
    for (change, kicked) in [
        ("every=10 runs=5 tries=1", "20>30 run=2"),
        ("every=10 runs=1 tries=5", "20>nil run=2"),
        ("every=7 tries=1", "20>22 run=1"),
        ("every=10", "20>30 run=2"),
    ] {
        check(&format!(
            "{dead} ADD a {change} ENSURE -> replaced 13 | WHY a -> no attempts left | POP -> nil | COUNTS -> 0 0 0 1 \
             | MORE_TOTALS -> 0 0 1 0 0 | LOAD | ADD a {change} ENSURE -> unchanged | COUNTS -> 0 0 0 1 | @20 KICKJOB a -> 1 \
             | POP -> a#1 | ROUND a -> {kicked}"
        ));
    }
    // The same once more changes nothing, not even that work which is done late counts.
    check(&format!(
        "{dead} ADD a every=10 runs=1 tries=1 ttr=3 ENSURE -> unchanged | FINISH a L1 -> 1"
    ));
    check(&format!("{dead} ADD a every=10 runs=1 tries=1 body=new prio=7 ENSURE -> replaced 13 | GET a -> dead 13 #1 L1 | WHY a -> no attempts left | FINISH a L1 -> 1"));
    // Without a schedule until then: out of attempts; or of time.
    check("@0 ADD a tries=1 ttr=3 | POP | @5 ADD a every=50 ENSURE -> replaced 3 | GET a -> dead 3 #1 | WHY a -> no attempts left | @60 POP -> nil | KICKJOB a -> 1 | POP -> a#1 | ROUND a -> 60>105 run=1");
    check("@0 ADD a ttl=3 | @5 ADD a every=50 ENSURE -> replaced 3 | GET a -> dead 3 | WHY a -> its time to live is over | @60 POP -> nil | KICKJOB a -> 1 | POP -> a#1");
    // A run that has failed stays failed, and the next time stays.
    let failed = "@0 ADD a every=100 tries=1 ttr=3 | @100 POP | @110";
    let waits = "GET a -> delayed 200 | WHY a -> no attempts left";
    check(&format!("{failed} ADD a every=100 tries=5 ENSURE -> replaced 200 | {waits} | ROUND a -> 200>nil run=1 failed=1 | @200 POP -> a#1"));
    check(&format!("{failed} ADD a every=70 ENSURE -> replaced 180 | GET a -> delayed 180 | ROUND a -> 180>nil run=0 | @180 POP -> a#1"));
    check(&format!(
        "{failed} ADD a every=100 tries=1 ttr=3 ENSURE -> unchanged | ADD a every=100 runs=1 ENSURE -> ended | GET a -> nil"
    ));
    check(&format!("{failed} ADD a every=100 tries=1 body=new ENSURE | GET a -> delayed 103 #1 L1 | WHY a -> no attempts left | ROUND a -> 200>nil run=1 failed=1 | FINISH a L1 -> 1 | GET a -> delayed 200"));
    // One that waits for another attempt gets it when it would have.
    let retried = "@0 ADD a every=100 tries=5 ttr=3 | @100 POP | @110";
    check(&format!("{retried} ADD a every=100 tries=1 ENSURE -> replaced 103 | GET a -> ready 103 #1 | ROUND a -> 100>200 run=1 | POP -> a#2 | @170 GET a -> delayed 170 #2 L2"));
    check(&format!("{retried} ADD a every=100 base=50 max=50 ENSURE -> replaced 103 | POP -> a#2"));
    check(&format!(
        "{retried} ADD a every=70 ENSURE -> replaced 180 | GET a -> delayed 180 | POP -> nil"
    ));
}

#[test]
fn a_zone_is_the_same_however_it_is_written() {
    for (before, after) in
        [("", " tz=UTC"), (" tz=utc", ""), (" tz=Europe/Berlin", " tz=europe/BERLIN")]
    {
        check(&format!(
            "@0 ADD a cron=10{before} | @10 POP | FINISH a L1 | ROUND a -> 20>nil run=1 | ADD a cron=10{after} ENSURE -> replaced 20 \
             | ROUND a -> 20>nil run=1 | ADD a cron=10{after} ENSURE -> unchanged | ADD a cron=10 tz=Asia/Tokyo ENSURE | ROUND a -> 20>nil run=0"
        ));
    }
}

#[test]
fn a_jitter_is_added_and_never_moves_the_occurrence() {
    check("@0 ADD a every=1000 jitter=500 -> 1164 | ROUND a -> 1000>nil run=0 | @1163 POP -> nil | @1164 POP -> a#1 | ROUND a -> 1000>2000 run=1 | FINISH a L1 | GET a -> delayed 2203");
}

#[test]
fn a_job_with_a_schedule_outlives_its_attempts() {
    let schedule = schedule_of(&["every=100"], None);
    let attempts = Some(Attempts::new(1));
    let mut queue = Queue::new((1, 2));
    add(&mut queue, 0, &Add { schedule, attempts, ..plain("scheduled") });
    add(&mut queue, 0, &Add { attempts, ..plain("once") });
    queue.apply(&told(1_000), &Pop { count: 2, ..Pop::ONE });
    let outlives = |name| queue.get(id(name)).unwrap().outlives_its_attempts();
    assert_eq!((outlives("scheduled"), outlives("once")), (true, false));
}

#[test]
fn a_job_that_gets_a_schedule_no_longer_expires() {
    check("@0 ADD a ttl=50 ttr=200 | POP | ADD a ttr=200 every=100 ENSURE | @60 GET a -> reserved 200 #1 L1");
}

#[test]
fn the_last_run_of_a_schedule_keeps_its_other_attempts() {
    check("@0 ADD a every=100 tries=3 | @100 POP -> a#1 | RELEASE a L1 +50 | ADD a every=100 runs=1 tries=3 ENSURE -> replaced 150 \
         | @150 POP -> a#2 | FINISH a * -> 1 | GET a -> nil");
}
