//! Jobs that are finished with a result, and followed by others; and what workers keep with jobs
//! that go on.

use super::rounds::schedule_of;
use super::*;

#[test]
fn a_result_stays_for_as_long_as_the_job_is_kept() {
    check("@0 ADD a keep=10 | POP | @5 DONE a L1 RESULT=42 -> 1 | GET a -> done 15 #1 | RESULT a -> 42 | @14 RESULT a -> 42 | LOAD | RESULT a -> 42 | @15 FORGET -> a | GET a -> nil");
    check("@0 ADD a | POP | DONE a L1 RESULT=42 -> 1 | GET a -> nil | TOTALS -> 1 0 1 0 1 0");
    check("@0 ADD a keep=10 | POP | DONE a L1 -> 1 | RESULT a -> nil | TOTALS -> 1 0 1 0 1 0");
    check("@0 ADD a keep=10 | POP | DONE a L1 RESULT= | RESULT a -> | LOAD | RESULT a ->");
}

#[test]
fn a_keep_of_its_own_goes_before_that_of_the_job() {
    check("@0 ADD a | POP | DONE a L1 RESULT=42 KEEP=9 -> 1 | GET a -> done 9 #1 | @8 FORGET -> | @9 FORGET -> a");
    check("@0 ADD a keep=10 | POP | DONE a L1 RESULT=42 KEEP=0 -> 1 | GET a -> nil");
    // How long it has been done follows from that.
    check("@100 ADD a keep=10 | POP | DONE a L1 KEEP=50 | @120 PURGE done 21 5 -> | PURGE done 20 5 -> a");
}

#[test]
fn a_result_of_a_schedule_is_that_of_its_last_run() {
    check(
        "@0 ADD a every=10 | @10 POP | DONE a L1 RESULT=one -> 1 | RESULT a -> one | @20 POP | RESULT a -> one \
         | DONE a L2 RESULT=two KEEP=5 -> 1 | RESULT a -> two | GET a -> delayed 30 | @30 POP | FINISH a L3 -> 1 | RESULT a -> nil",
    );
    check("@0 ADD a every=10 tries=1 | @10 POP | DONE a L1 RESULT=one | @20 POP | RELEASE a L2 why | RESULT a -> one");
    check("@0 ADD a every=10 runs=1 | @10 POP | DONE a L1 RESULT=one KEEP=5 | GET a -> done 15 #1 | RESULT a -> one");
    check("@0 ADD a every=10 | @10 POP | DONE a L1 RESULT=one | @20 POP NOACK -> a#1 | RESULT a -> nil");
}

#[test]
fn done_on_a_stale_lease_does_nothing() {
    check("@0 ADD a ttr=10 keep=9 | POP | @10 POP -> a#2 | DONE a L1 RESULT=x +ADD b -> 0 | GET a -> reserved 20 #2 L2 | GET b -> nil | RESULT a -> nil | DONE a L2 RESULT=y -> 1 | DONE a L2 RESULT=z -> 0 | RESULT a -> y");
    check("@0 ADD a | DONE a * +ADD b -> 0 | DONE nobody * +ADD b -> 0 | ORDER -> a");
    // A lease stays good after its end.
    check("@0 ADD a ttr=10 | POP | @500 DONE a L1 +ADD b -> b | ORDER -> b");
    check("@0 ADD a | POP | DONE a * +ADD b -> b | ORDER -> b");
}

#[test]
fn done_adds_the_jobs_that_follow() {
    check("@0 ADD a | POP | DONE a L1 +ADD b +5 body=y +ADD c prio=7 +ADD * -> b c 0-1 | ORDER -> c 0-1 b | TOLD b -> y @0 ttr=60 prio=128 tries=0 | TOTALS -> 4 0 1 0 1 0");
    check("@0 ADD a | ADD b | POP | DONE a L1 +ADD b NX +ADD c -> left c | ORDER -> b c");
    check("@0 ADD a | ADD b | POP | DONE a L1 +ADD b body=y REPLACE -> b | TOLD b -> y @0 ttr=60 prio=128 tries=0 | TOTALS -> 2 1 1 0 1 0");
    check("@0 ADD a | ADD s every=10 | POP -> a#1 | DONE a L1 +ADD s every=10 ENSURE +ADD t every=20 ENSURE -> s t | GET t -> delayed 20");
    check("@0 ADD a group=g | POP | DONE a L1 +ADD b group=g +ADD c group=h -> b c | GROUP g -> 1 0 0 | GROUP h -> 1 0 0");
}

#[test]
fn done_is_all_or_nothing() {
    check("@0 ADD a keep=9 | ADD b | POP | DONE a L1 RESULT=x +ADD c +ADD b -> taken | ORDER -> b a | RESULT a -> nil | GET a -> reserved 60 #1 L1 | TOTALS -> 2 0 1 0 0 0");
    check("@0 ADD a | POP | DONE a L1 +ADD c +ADD c -> taken | GET c -> nil | DONE a L1 +ADD c +ADD c REPLACE body=y -> c c | TOLD c -> y @0 ttr=60 prio=128 tries=0");
    check("@100 ADD a | POP | DONE a L1 +ADD b +ADD c every=10 until=50 -> never | ORDER -> a | DONE a L1 +ADD b +ADD c every=10 until=50 ENSURE -> b left");
    // An id that was kept for long enough is free.
    check("@0 ADD b keep=5 | POP | FINISH b L1 | ADD a | POP -> a#1 | @4 DONE a L2 +ADD b -> taken | @5 DONE a L2 +ADD b -> b");
}

#[test]
fn a_full_queue_has_the_place_of_the_finished_job() {
    check("@0 ALTER maxjobs=2 | ADD a | ADD b | POP | DONE a L1 +ADD c +ADD d -> full | DONE a L1 KEEP=9 +ADD c -> full | GET a -> reserved 60 #1 L1 | DONE a L1 +ADD c -> c | ORDER -> b c");
    check("@0 ALTER maxjobs=2 | ADD a | ADD b | POP | DONE a L1 +ADD b REPLACE +ADD * -> b 0-1 | COUNTS -> 0 2 0 0");
    check("@0 ALTER maxjobs=1 | ADD a every=10 | @10 POP | DONE a L1 +ADD b -> full | DEL a | ADD a every=10 runs=1 | @20 POP | DONE a L2 +ADD b -> b");
}

#[test]
fn the_id_of_a_finished_job_is_free_if_the_job_is_not_kept() {
    check("@0 ADD a | POP | DONE a L1 +ADD a +9 -> a | GET a -> delayed 9 | FINISH a L1 -> 0 | TOTALS -> 2 0 1 0 1 0");
    check("@0 ADD a keep=5 | POP | DONE a L1 +ADD a -> taken | DONE a L1 KEEP=0 +ADD a -> a | GET a -> ready 0");
    check("@0 ADD a | POP | DONE a L1 KEEP=5 +ADD a -> taken | DONE a L1 RESULT=x KEEP=5 +ADD a REPLACE -> a | GET a -> ready 0 | RESULT a -> nil");
    check("@0 ADD a every=10 | @10 POP | DONE a L1 +ADD a -> taken | DONE a L1 RESULT=x +ADD a every=10 ENSURE -> a | GET a -> delayed 20 | RESULT a -> x");
    check("@0 ADD a every=10 runs=1 | @10 POP | DONE a L1 +ADD a -> a | GET a -> ready 10");
}

#[test]
fn an_id_that_is_made_is_none_that_another_add_gives() {
    check("@5 ADD a | POP | DONE a L1 +ADD * +ADD 5-0 -> 5-1 5-0 | NAME -> 5-2");
    check("@5 ADD a | POP | DONE a L1 +ADD 5-1 NX +ADD * +ADD * +ADD 5-0 -> 5-1 5-3 5-4 5-0");
    // Nor that of the finished job, if that follows itself.
    check("@5 ADD 5-0 | POP | DONE 5-0 L1 +ADD * +ADD 5-0 -> 5-1 5-0");
}

#[test]
fn a_job_goes_on_with_what_a_worker_left() {
    check(
        "@0 ADD a | POP | TOUCH a L1 NOTE=1/3 -> 1 | NOTE a -> 1/3 | TOUCH a L1 ttr=9 -> 1 | NOTE a -> 1/3 \
         | RELEASE a L1 +3 NOTE=2/3 BODY=rest why -> 1 | NOTE a -> 2/3 | WHY a -> why | TOLD a -> rest @0 ttr=60 prio=128 tries=0 \
         | LOAD | NOTE a -> 2/3 | @3 POP -> a#2 | TOUCH a L2 NOTE= BODY=z -> 1 | NOTE a -> nil | TOLD a -> z @0 ttr=60 prio=128 tries=0",
    );
    check("@0 ADD a ttr=10 | POP | @10 POP | TOUCH a L1 NOTE=x BODY=y -> 0 | RELEASE a L1 NOTE=x BODY=y -> 0 | NOTE a -> nil | TOLD a -> x @0 ttr=10 prio=128 tries=0");
    check("@0 ADD a ttl=10 | POP | @10 TOUCH a L1 NOTE=x -> 0 | NOTE a -> nil");
    check("@0 ALTER concurrency=1 | ADD a ttr=10 | ADD b | POP | @10 POP -> b#1 | TOUCH a L1 NOTE=x BODY=y -> 0 | NOTE a -> nil");
    // What was left of a job that is dead or done shows.
    check("@0 ADD a tries=1 | POP | RELEASE a L1 NOTE=x -> 1 | GET a -> dead 0 #1 | NOTE a -> x | KICK 1 | NOTE a -> x");
    check("@0 ADD a keep=9 | POP | TOUCH a L1 NOTE=x | DONE a L1 RESULT=y | NOTE a -> x | ADD a REPLACE | NOTE a -> nil");
}

#[test]
fn a_note_of_a_schedule_ends_with_its_run() {
    check("@0 ADD a every=10 | @10 POP | TOUCH a L1 NOTE=x BODY=y | FINISH a L1 | NOTE a -> nil | TOLD a -> y @0 ttr=60 prio=128 tries=0");
    check("@0 ADD a every=10 tries=1 | @10 POP | RELEASE a L1 NOTE=x | GET a -> delayed 20 | NOTE a -> nil");
    check("@0 ADD a every=10 tries=2 | @10 POP | RELEASE a L1 NOTE=x | NOTE a -> x | POP -> a#2 | NOTE a -> x | FINISH a L2 | NOTE a -> nil");
    check("@0 ADD a every=10 tries=1 runs=1 | @10 POP | RELEASE a L1 NOTE=x | GET a -> dead 10 #1 | NOTE a -> x");
}

#[test]
fn a_note_ends_with_a_run_whose_last_attempt_times_out() {
    const NOTED: &str =
        "@0 ADD a every=100 tries=1 ttr=10 | @100 POP | TOUCH a L1 NOTE=x | @109 NOTE a -> x | @110 NOTE a -> nil";
    let check = |rest: &str| check(&format!("{NOTED} | {rest}"));
    // The lease is good until the job is delivered again, and with it the run goes on.
    check("TOUCH a L1 -> 1 | NOTE a -> x | @120 NOTE a -> nil | @200 POP -> a#1 | NOTE a -> nil | RELEASE a L2 | NOTE a -> nil");
    check("KICKJOB a -> 1 | NOTE a -> nil | POP -> a#1 | NOTE a -> nil");
    check("TAKE a -> a#1 | NOTE a -> nil");
    check("ADD a every=100 tries=1 ttr=10 ENSURE -> unchanged | TOUCH a L1 -> 1 | NOTE a -> x");
    check(
        "ADD a every=100 tries=2 ttr=10 ENSURE | NOTE a -> nil | @200 POP -> a#1 | NOTE a -> nil",
    );
    check("LOAD | NOTE a -> nil | @200 POP | NOTE a -> nil");
}

#[test]
fn a_note_ends_with_a_run_that_is_passed_over() {
    check("@0 ADD a every=100 tries=2 late=5 | @100 POP | RELEASE a L1 NOTE=x | @104 NOTE a -> x | @105 POP -> nil | GET a -> delayed 200 | NOTE a -> nil");
    check("@0 ADD a every=100 tries=1 ttr=10 late=5 | @100 POP | TOUCH a L1 NOTE=x | @205 POP -> nil | GET a -> delayed 300 | NOTE a -> nil");
    check("@0 ADD a every=100 tries=2 runs=1 late=5 | @100 POP | RELEASE a L1 NOTE=x | @105 POP -> nil | GET a -> dead 105 #1 | NOTE a -> x");
}

#[test]
fn ensure_keeps_note_and_result() {
    check(
        "@0 ADD a every=10 | @10 POP | DONE a L1 RESULT=r | @20 POP | TOUCH a L2 NOTE=n | ADD a every=10 ENSURE -> unchanged \
         | ADD a every=10 body=y ENSURE | NOTE a -> n | RESULT a -> r | ADD a every=7 ENSURE | NOTE a -> n | RESULT a -> r \
         | ADD a every=7 REPLACE | NOTE a -> nil | RESULT a -> nil",
    );
}

fn done<'a>(name: &'a str, result: &'a [u8], keep: u64) -> Done<'a> {
    let claim = Claim { id: id(name), lease: None };
    Done { claim, result: Some(result), keep: Some(span(keep)), adds: Vec::new() }
}

fn noted<'a>(name: &'a str, body: Option<&'a [u8]>, note: &'a [u8]) -> Touch<'a> {
    let checkpoint = Checkpoint { body, note: Some(note) };
    Touch { claim: Claim { id: id(name), lease: None }, ttr: None, checkpoint }
}

#[test]
fn memory_comes_back_when_notes_and_results_are_gone() {
    let mut queue = Queue::new((1, 2));
    let with_a_job = |queue: &mut Queue| {
        add(queue, 0, &plain("a"));
        popped(queue, 0);
        queue.memory()
    };
    // The lines in which a finished job stands remain.
    with_a_job(&mut queue);
    queue.apply(&told(0), &done("a", b"", 5));
    delete(&mut queue, "a");
    let before = with_a_job(&mut queue);
    queue.apply(&told(0), &noted("a", None, &[b'n'; 400]));
    assert!(queue.memory() > before + 400);
    queue.apply(&told(0), &noted("a", None, b""));
    assert_eq!(queue.memory(), before);
    queue.apply(&told(0), &noted("a", None, &[b'n'; 400]));
    let noted = queue.memory();
    queue.apply(&told(0), &done("a", &[b'r'; 3_000], 5));
    assert!(queue.memory() > noted + 2_900);
    delete(&mut queue, "a");
    assert_eq!(with_a_job(&mut queue), before);
    // Another body, and the first one again.
    queue.apply(&told(0), &self::noted("a", Some(&[b'b'; 5_000]), b""));
    assert!(queue.memory() > before + 4_900);
    queue.apply(&told(0), &self::noted("a", Some(b"body"), b""));
    assert_eq!(queue.memory(), before);
}

#[test]
fn a_large_body_or_result_that_is_replaced_or_removed_is_freed_elsewhere() {
    const LARGE: &[u8] = &[b'x'; 1 << 20];
    let mut queue = Queue::new((1, 2));
    let is_large =
        |queue: &mut Queue| queue.has_removed() && queue.take_removed().bytes() >= 1 << 20;
    let schedule = || {
        let every = schedule_of(&["every=10"], None);
        Add { schedule: every, if_taken: IfTaken::Ensure, ..plain("a") }
    };
    add(&mut queue, 0, &schedule());
    popped(&mut queue, 10);
    queue.apply(&told(10), &noted("a", Some(LARGE), b""));
    assert!(!is_large(&mut queue));
    queue.apply(&told(10), &noted("a", Some(b"small"), b""));
    assert!(is_large(&mut queue), "a body");
    queue.apply(&told(10), &done("a", LARGE, 0));
    assert!(!is_large(&mut queue));
    popped(&mut queue, 20);
    queue.apply(&told(20), &done("a", b"small", 0));
    assert!(is_large(&mut queue), "a result that is replaced");
    popped(&mut queue, 30);
    queue.apply(&told(30), &done("a", LARGE, 0));
    queue.apply(&told(30), &Add { body: b"another", ..schedule() });
    assert!(is_large(&mut queue), "a result that is copied");
    delete(&mut queue, "a");
    assert!(is_large(&mut queue), "a result of a job that is removed");
    assert!(!queue.has_removed());
}

#[test]
fn an_edge_from_the_finished_job_counts_no_more_when_its_dependent_is_replaced() {
    let names: Vec<String> = (0..EDGES_MAX).map(|number| number.to_string()).collect();
    let mut queue = Queue::new((1, 2));
    add(&mut queue, 0, &plain("a"));
    queue.apply(&told(0), &Pop::ONE);
    let with = |edges| Some(Box::new(edges));
    let after = || NewEdges { after: vec![id("a")], ..NewEdges::default() };
    add(&mut queue, 0, &Add { edges: with(after()), ..plain("x") });
    for name in &names {
        let on_hold = NewEdges { is_on_hold: true, ..NewEdges::default() };
        add(&mut queue, 0, &Add { edges: with(on_hold), ..plain(name) });
    }
    let before = names.iter().map(|name| id(name)).collect();
    let adds = vec![
        Add { if_taken: IfTaken::Replace, ..plain("x") },
        Add { edges: with(NewEdges { before, ..NewEdges::default() }), ..plain("a") },
        Add { edges: with(after()), ..plain("c") },
    ];
    let claim = Claim { id: id("a"), lease: None };
    let outcome = queue.apply(&told(0), &Done { claim, result: None, keep: None, adds });
    let fault = EdgeFault::TooManyDependents((*b"a").into());
    assert_eq!(outcome, DoneOutcome::Refused(Added::Unconnected(Box::new(fault))));
}

#[test]
fn a_held_job_that_is_finished_waits_no_more_for_what_an_add_replaces() {
    for keep in [None, Some(span(1_000))] {
        let mut queue = Queue::new((1, 2));
        add(&mut queue, 0, &plain("a"));
        let after = NewEdges { after: vec![id("a")], ..NewEdges::default() };
        add(&mut queue, 0, &Add { edges: Some(Box::new(after)), ..plain("held") });
        let schedule = schedule_of(&["every=1000"], Some(Due::In(span(5))));
        // A job with a schedule never ends, so none may wait for it.
        let adds = vec![Add { schedule, if_taken: IfTaken::Replace, ..plain("a") }];
        let claim = Claim { id: id("held"), lease: None };
        let outcome = queue.apply(&told(0), &Done { claim, result: None, keep, adds });
        assert!(matches!(outcome, DoneOutcome::Yes { .. }), "{outcome:?}");
        assert!(queue.get(id("a")).unwrap().schedule.is_some());
    }
}
