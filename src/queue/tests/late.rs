//! Jobs that nobody takes in time.

use super::*;

#[test]
fn a_job_that_no_worker_took_within_its_late_is_dead() {
    check("@0 ADD a +10 late=5 | NEXT -> 10 | @14 GET a -> ready 10 | COUNTS -> 0 1 0 0 | NEXT -> 15 | @15 GET a -> dead 10 | WHY a -> late \
         | POP -> nil | COUNTS -> 0 0 0 1 | PEEK dead -> a | MORE_TOTALS -> 0 0 1 0 0 | LOAD | GET a -> dead 10 | COPY | COUNTS -> 0 0 0 1");
    check("@0 ADD a late=5 | @4 POP -> a#1 | @5 GET a -> reserved 64 #1 L1 | FINISH a L1 -> 1");
    check("@0 ADD a late=5 | ADD b | @9 POP -> b#1 | POP -> nil | DEL a -> 1 | COUNTS -> 0 0 1 0");
    check("@0 ADD a late=MAX | @END-1 GET a -> ready 0 | POP -> a#1");
}

#[test]
fn a_queue_has_a_late_for_jobs_that_give_none() {
    check("@0 ADD old | ALTER late=5 | ADD new | ADD other late=9 | ADD never late=0 | @5 PEEK ready -> old other never | @9 PEEK ready -> old never \
         | ALTER late=0 | ADD last | @99 PEEK ready -> old never last | PEEK dead -> new other");
}

#[test]
fn each_attempt_has_its_own_late() {
    // The end of a lease, and of the wait behind it.
    check("@0 ADD a late=5 ttr=10 | @3 POP -> a#1 | @13 GET a -> ready 13 #1 L1 | @17 GET a -> ready 13 #1 L1 | @18 GET a -> dead 13 #1 L1 | WHY a -> late");
    check("@0 ADD a late=5 ttr=10 base=1 max=1 | POP | @11 GET a -> ready 10 #1 L1 | @15 POP -> a#2 | @26 POP -> a#3");
    check("@0 ADD a late=5 ttr=10 base=1 max=1 | POP | NEXT -> 10 | @10 COUNTS -> 1 0 0 0 | @11 COUNTS -> 0 1 0 0 | @16 COUNTS -> 0 0 0 1 | TOTALS -> 1 0 1 1 0 0 | MORE_TOTALS -> 0 0 1 0 0");
    check("@0 ADD a late=5 | POP | @2 RELEASE a L1 +20 -> 1 | @26 GET a -> ready 22 #1 | @27 GET a -> dead 22 #1 | WHY a -> late");
    check(
        "@0 ADD a late=5 | @4 POP | UNBEGUN a L1 -> 1 | @8 GET a -> ready 4 | @9 GET a -> dead 4",
    );
    // The last one has no other behind it.
    check("@0 ADD a late=5 ttr=10 tries=1 | POP | @10 GET a -> dead 10 #1 L1 | WHY a -> no attempts left | @15 WHY a -> no attempts left");
}

#[test]
fn a_job_dies_of_ttl_or_late_whichever_comes_first() {
    check("@0 ADD a +10 late=5 ttl=12 | @12 GET a -> dead 10 | WHY a -> its time to live is over");
    check("@0 ADD a +10 late=5 ttl=15 | @15 WHY a -> its time to live is over");
    check("@0 ADD a +10 late=5 ttl=16 | @15 GET a -> dead 10 | WHY a -> late");
    check(
        "@0 ADD a +10 late=5 ttl=9 | COUNTS -> 1 0 0 0 | @9 WHY a -> its time to live is over | NEXT -> nil",
    );
    check("@0 ADD a late=5 ttl=12 ttr=9 | POP | @9 GET a -> ready 9 #1 L1 | NEXT -> 12 | @12 GET a -> dead 9 #1 L1 | WHY a -> its time to live is over");
}

#[test]
fn the_last_worker_may_still_report_a_job_that_died_of_late() {
    let late = "@0 ADD a late=5 ttr=10 | POP | @15 COUNTS -> 0 0 0 1 | ";
    check(&format!("{late} FINISH a L1 -> 1 | COUNTS -> 0 0 0 0"));
    check(&format!("{late} TOUCH a L1 -> 1 | GET a -> reserved 25 #1 L1 | COUNTS -> 0 0 1 0"));
    check(&format!("{late} RELEASE a L1 rain -> 1 | GET a -> ready 15 #1 | WHY a -> rain | @20 GET a -> dead 15 #1 | WHY a -> late"));
    check(&format!(
        "{late} BURY a L1 rain -> 1 | @20 GET a -> dead 15 #1 | WHY a -> rain | MORE_TOTALS -> 0 1 1 0 0"
    ));
}

#[test]
fn a_kicked_job_has_its_late_again() {
    check("@0 ADD a late=5 | @5 COUNTS -> 0 0 0 1 | KICKJOB a -> 1 | GET a -> ready 5 | WHY a -> nil | @9 GET a -> ready 5 | @10 GET a -> dead 5");
    check("@0 ADD a +90 late=5 | @3 KICKJOB a -> 1 | @7 GET a -> ready 3 | @8 GET a -> dead 3");
    check("@0 ADD a late=5 | @9 ADD a REPLACE | @99 GET a -> ready 9");
    check("@0 ADD a | @9 ADD a REPLACE late=5 | @14 GET a -> dead 9");
    check("@0 ALTER deadkeep=30 | ADD a late=5 | UPKEEP -> 5 | @5 UPKEEP -> 35 | @34 FORGET -> | @35 FORGET -> a");
}

#[test]
fn pauses_and_limits_add_no_time_to_late() {
    check("@0 ADD a late=5 | ADD b late=20 | PAUSE 10 | @10 POP -> b#1 | GET a -> dead 0 | WHY a -> late");
    check("@0 ALTER concurrency=1 | ADD a late=5 ttr=7 | ADD b late=5 | POP n=2 -> a#1 | @5 GET b -> dead 0 | FINISH a L1 | POP -> nil");
    check("@0 ALTER rate=1/10 | ADD a late=15 | ADD b late=15 | ADD c late=15 | POP n=9 -> a#1 | @10 POP n=9 -> b#1 | @20 POP n=9 -> nil | GET c -> dead 0");
}

#[test]
fn an_occurrence_that_was_not_taken_in_time_is_passed_over_and_counted() {
    for every in ["every", "cron"] {
        let add = format!("@0 ADD a {every}=10 late=5");
        // Too old is what was due five milliseconds ago.
        check(&format!("{add} -> 10 | @14 POP -> a#1 | ROUND a -> 10>20 run=1"));
        check(&format!("{add} | @15 GET a -> ready 10 | COUNTS -> 0 1 0 0 | POP -> nil | GET a -> delayed 20 | ROUND a -> 20>nil run=0 missed=1 | COUNTS -> 1 0 0 0 | POP -> nil \
             | @20 POP -> a#1 | ROUND a -> 20>30 run=1 missed=1 | MORE_TOTALS -> 0 0 0 0 0 | TOTALS -> 1 0 1 0 0 0"));
        // The latest may be in time, though those before it aren't.
        check(&format!(
            "{add} | @53 POP -> a#1 | ROUND a -> 50>60 run=1 missed=4 | FINISH a L1 | GET a -> delayed 60"
        ));
        check(&format!("{add} | @58 POP -> nil | ROUND a -> 60>nil run=0 missed=5 | LOAD | @60 POP -> a#1 | COPY | SWAP | FINISH a * -> 1 | GET a -> delayed 70"));
        check(&format!(
            "{add} | @58 POP NOACK -> nil | GET a -> delayed 60 | @60 POP NOACK -> a#1 | GET a -> delayed 70"
        ));
    }
}

#[test]
fn misfire_all_makes_up_for_the_runs_that_are_in_time() {
    for every in ["every", "cron"] {
        let add = format!("@0 ADD a {every}=10 misfire=all late=25");
        check(&format!(
            "{add} | @57 POP -> a#1 | ROUND a -> 40>50 run=1 missed=3 | FINISH a L1 | GET a -> ready 57 | POP -> a#1 | ROUND a -> 50>60 run=2 missed=3 | FINISH a L2 | GET a -> delayed 60"
        ));
        check(&format!("{add} | @57 POP n=9 NOACK -> a#1 a#1 | ROUND a -> 60>nil run=2 missed=3"));
        check(&format!("{add} | @35 POP -> a#1 | ROUND a -> 20>30 run=1 missed=1"));
    }
}

#[test]
fn jobs_that_follow_a_passed_over_run_are_delivered() {
    check("@0 ADD old every=10 late=5 prio=0 | ADD job +12 | ADD new every=16 late=5 | @17 POP -> job#1 | POP -> new#1 | POP -> nil | GET old -> delayed 20");
    check("@0 ADD old every=10 late=5 | ADD job +12 | @15 POP -> job#1 | ROUND old -> 20>nil run=0 missed=1");
}

#[test]
fn a_pop_that_a_pause_or_a_limit_holds_back_passes_over_no_run() {
    check("@0 ADD a every=10 late=5 | @16 PAUSE 10 | POP -> nil | ROUND a -> 10>nil run=0 | @26 POP -> nil | ROUND a -> 30>nil run=0 missed=2");
    check("@0 ALTER concurrency=1 | ADD a every=10 late=5 prio=9 | ADD b prio=0 | @16 POP -> b#1 | POP -> nil | ROUND a -> 10>nil run=0 | FINISH b L1 | POP -> nil | ROUND a -> 20>nil run=0 missed=1");
    check("@0 ALTER rate=1/10 | ADD a every=10 late=5 prio=9 | ADD b prio=0 | @16 POP -> b#1 | POP -> nil | ROUND a -> 10>nil run=0 | @26 POP -> nil | ROUND a -> 30>nil run=0 missed=2");
}

#[test]
fn a_run_whose_next_attempt_was_not_taken_in_time_has_failed() {
    check("@0 ADD a every=100 late=5 ttr=10 | @100 POP -> a#1 | @110 GET a -> ready 110 #1 L1 | @114 COUNTS -> 0 1 0 0 | @115 POP -> nil | GET a -> delayed 200 \
         | ROUND a -> 200>nil run=1 failed=1 | WHY a -> late | FINISH a L1 -> 0");
    check("@0 ADD a every=100 late=5 | @100 POP | RELEASE a L1 +50 | @154 POP -> a#2 | ROUND a -> 100>200 run=1 | FINISH a L2 | GET a -> delayed 200");
    check("@0 ADD a every=100 late=5 | @100 POP | RELEASE a L1 +50 | @155 POP -> nil | ROUND a -> 200>nil run=1 failed=1");
    // The next one is too late as well.
    check("@0 ADD a every=100 late=5 | @100 POP | RELEASE a L1 +50 | @255 POP -> nil | ROUND a -> 300>nil run=1 missed=1 failed=1");
    // Its last attempt had timed out: the next occurrence was to come.
    check("@0 ADD a every=100 late=5 ttr=10 tries=1 | @100 POP | @203 POP -> a#1 | ROUND a -> 200>300 run=2 failed=1");
    check("@0 ADD a every=100 late=5 ttr=10 tries=1 | @100 POP | @205 POP -> nil | ROUND a -> 300>nil run=1 missed=1 failed=1 | WHY a -> no attempts left");
}

#[test]
fn a_run_that_was_longer_than_late_is_followed_by_one_that_is_in_time() {
    check("@0 ADD a every=10 late=5 ttr=1000 | @10 POP | @43 FINISH a L1 -> 1 | GET a -> ready 43 | ROUND a -> 20>nil run=1 | POP -> a#1 | ROUND a -> 40>50 run=2 missed=2");
    check("@0 ADD a every=10 late=5 ttr=1000 | @10 POP | @47 FINISH a L1 -> 1 | POP -> nil | ROUND a -> 50>nil run=1 missed=3");
}

#[test]
fn jitter_never_makes_an_occurrence_too_late() {
    check("@0 ADD a every=1000 jitter=900 late=5 | @1904 POP -> a#1 | ROUND a -> 1000>2000 run=1");
    check("@0 ADD a every=1000 jitter=900 late=5 | @1905 POP -> nil | ROUND a -> 2000>nil run=0 missed=1");
}

#[test]
fn after_the_last_occurrence_of_a_schedule_nothing_is_waited_for() {
    let ended = "@0 ADD a every=10 until=25 late=5 | @25 POP -> nil | GET a -> dead 25 | WHY a -> late | ROUND a -> 10>nil run=0 missed=2 | COUNTS -> 0 0 0 1 | MORE_TOTALS -> 0 0 1 0 0";
    check(ended);
    check(&format!("{ended} | KICKJOB a -> 1 | @29 POP -> a#1 | ROUND a -> 25>nil run=1 missed=2 | FINISH a L1 -> 1 | COUNTS -> 0 0 0 0"));
    check("@0 ADD a cron=10 until=25 late=5 | @99 POP -> nil | GET a -> dead 99 | ROUND a -> 10>nil run=0 missed=2");
    // RUNS counts runs, not what was passed over.
    check("@0 ADD a every=10 runs=1 late=5 | @97 POP -> nil | @100 POP -> a#1 | ROUND a -> 100>nil run=1 missed=9 | FINISH a L1 | COUNTS -> 0 0 0 0");
    check("@0 ADD a every=10 runs=1 late=5 | @10 POP | RELEASE a L1 | @15 POP -> nil | GET a -> dead 15 #1 | WHY a -> late | ROUND a -> 10>nil run=1 failed=1");
}

#[test]
fn a_schedule_that_is_kicked_runs_in_time_or_goes_on_as_before() {
    check(
        "@0 ADD a every=100 late=5 | @30 KICKJOB a -> 1 | @34 POP -> a#1 | ROUND a -> 30>100 run=1",
    );
    check("@0 ADD a every=100 late=5 | @30 KICKJOB a -> 1 | @35 POP -> nil | ROUND a -> 100>nil run=0 missed=1 | @100 POP -> a#1");
    check("@0 ADD a every=100 late=5 | @30 KICKJOB a -> 1 | @107 POP -> nil | ROUND a -> 200>nil run=0 missed=2");
    // One that waits for a consumer is ready already.
    check("@0 ADD a every=100 late=5 | @107 KICKJOB a -> 0 | POP -> nil | KICKJOB a -> 1 | POP -> a#1 | ROUND a -> 107>200 run=1 missed=1");
}

#[test]
fn ensure_sets_late_and_leaves_the_run_that_is_due() {
    check("@0 ADD a every=10 | @17 ADD a every=10 late=5 ENSURE -> replaced 10 | ADD a every=10 late=5 ENSURE -> unchanged | GET a -> ready 10 | POP -> nil | GET a -> delayed 20");
    check("@0 ADD a every=10 late=5 | @17 ADD a every=10 ENSURE -> replaced 10 | POP -> a#1 | ROUND a -> 10>20 run=1");
    check("@0 ALTER late=5 | ADD a every=10 | ADD a every=10 ENSURE -> unchanged | ALTER late=0 | ADD a every=10 ENSURE -> replaced 10 | @99 POP -> a#1");
    check("@0 ADD a every=10 late=5 | @17 ADD a every=10 late=5 REPLACE -> replaced 27 | ROUND a -> 27>nil run=0");
}

fn schedules(queue: &mut Queue, jobs: u32, timing: &Timing) {
    for n in 0..jobs {
        let name = n.to_string();
        let rule = Recurrence {
            timing: timing.clone(),
            misfire: Misfire::One,
            jitter: Millis::ZERO,
            runs: 0,
            until: None,
            late: Millis::ZERO,
        };
        let schedule = Some(Box::new(NewSchedule { rule, starts: Starts::ByItself }));
        let plain = Add::plain(Id::new(name.as_bytes()).unwrap(), b"x");
        let told = Circumstances::default();
        let add = Add { schedule, late: Millis::new(5), ..plain };
        queue.apply_by(&told, &add, &mut rounds::Multiples::default());
    }
}

#[test]
fn one_pop_passes_over_a_thousand_and_says_that_there_may_be_more() {
    let (jobs, mut queue) = (2_500, Queue::new((1, 2)));
    schedules(&mut queue, jobs, &Timing::Every(Millis::new(10).unwrap()));
    let told = Circumstances { now: Time::new(17).unwrap(), ..Circumstances::default() };
    for (passed_over, is_all) in [(1_000, false), (1_000, false), (500, true)] {
        let deliveries = queue.apply(&told, &Pop::ONE);
        assert!(deliveries.is_empty() && deliveries.has_changed());
        assert_eq!(
            (deliveries.passed_over(), deliveries.have_ended_early()),
            (passed_over, !is_all)
        );
    }
    let deliveries = queue.apply(&told, &Pop::ONE);
    assert!(!deliveries.has_changed() && !deliveries.have_ended_early());
    queue.advance(told.now);
    assert_eq!(queue.counts().delayed, jobs as usize);
}

#[test]
fn one_pop_asks_the_calendar_a_bounded_number_of_times() {
    let names: Vec<String> = (0..400).map(|n| n.to_string()).collect();
    let ids: Vec<Id> = names.iter().map(|name| Id::new(name.as_bytes()).unwrap()).collect();
    asks_a_bounded_number_of_times(&Pop { count: 10_000, ..Pop::ONE });
    asks_a_bounded_number_of_times(&PopById { ids: &ids, ttr: None, mode: Mode::Lease });
}

fn asks_a_bounded_number_of_times(pop: &impl Operation<Outcome = Deliveries>) {
    let mut queue = Queue::new((1, 2));
    let cron = Cron { expression: "10".into(), zone: "".into() };
    schedules(&mut queue, 400, &Timing::Cron(cron));
    let told = Circumstances { now: Time::new(14).unwrap(), ..Circumstances::default() };
    let mut calendar = rounds::Multiples::default();
    let deliveries = queue.apply_by(&told, pop, &mut calendar);
    assert_eq!(
        (deliveries.len(), calendar.0.len(), deliveries.have_ended_early()),
        (250, 250, true)
    );
    let deliveries = queue.apply_by(&told, pop, &mut calendar);
    assert_eq!((deliveries.len(), deliveries.have_ended_early()), (150, false));
}
