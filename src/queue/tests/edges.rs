//! Jobs that wait for others.

use super::words::text;
use super::*;

#[test]
fn a_job_waits_for_those_it_names_and_is_due_when_the_last_one_is_done() {
    check(
        "@0 ADD a | ADD b | ADD c after=a,b -> 0 | GET c -> held 0 | COUNTS -> 0 2 0 0 0 1 | EDGES c -> 2/2 0 | EDGES a -> 0/0 1 | PEEK held -> c \
         | POP n=9 -> a#1 b#1 | @5 FINISH a L1 -> 1 | GET c -> held 0 | EDGES c -> 1/2 0 | EDGES a -> 0/0 0 | LOAD | @7 FINISH b L2 -> 1 | GET c -> ready 7 \
         | NEWS -> ready | EDGES c -> 0/2 0 | DEPS c -> a:done b:done | POP -> c#1 | LOAD | DEPS c -> a:done b:done | FINISH c L3 -> 1 | ORDER ->",
    );
    check("@0 ADD a | ADD b after=a | ADD c after=b | ADD d after=c | POP NOACK -> a#1 | POP NOACK -> b#1 | POP NOACK -> c#1 | POP NOACK -> d#1 | POP -> nil");
    check("@0 ADD a | ADD b after=a | TAKE b -> nil | KICK 1 -> | GET b -> held 0 | POP | BURY a L1 | GET b -> held 0");
}

#[test]
fn results_move_along_however_short_the_predecessor_is_kept() {
    check("@0 ADD a | ADD b keep=9 | ADD c after=b,a | POP n=2 | DONE a L1 RESULT=x -> 1 | DONE b L2 RESULT=y -> 1 | DEPS c -> b:done=y a:done=x | @9 FORGET -> b | LOAD | DEPS c -> b:done=y a:done=x");
    check("@0 ADD a keep=9 | POP | DONE a L1 RESULT=x | ADD b after=a -> 0 | GET b -> ready 0 | DEPS b -> a:done=x | @9 ADD c after=a -> nojob a | LOAD | @9 DEPS b -> a:done=x");
    check("@0 ADD a | ADD b after=a | POP NOACK -> a#1 | DEPS b -> a:done | RESULT b -> nil");
    check("@0 ADD a ttr=5 | ADD b after=a | POP | DEPS b -> a:reserved | @5 DEPS b -> a:ready | RELEASE a L1 +9 | DEPS b -> a:delayed");
}

#[test]
fn delay_counts_from_the_last_edge_and_at_is_a_lower_bound() {
    check("@0 ADD a | ADD b +10 after=a -> 0 | POP | @5 FINISH a L1 | GET b -> delayed 15 | @14 POP -> nil | @15 POP -> b#1");
    check("@0 ADD a | ADD b =10 after=a | ADD c =10 after=a | POP | COPY | LOAD | @5 FINISH a L1 | GET b -> delayed 10 | SWAP | @50 FINISH a L1 | GET b -> ready 50");
    check("@3 ADD a keep=9 | POP NOACK | ADD b +10 after=a -> 13 | GET b -> delayed 13");
}

#[test]
fn a_held_job_has_its_ttl_from_its_add_and_late_from_its_due_time() {
    check("@0 ADD a | ADD b ttl=10 after=a | @9 COUNTS -> 0 1 0 0 0 1 | @10 COUNTS -> 0 1 0 1 | GET b -> dead 0 | WHY b -> its time to live is over | PEEK dead -> b | PEEK held -> | NEWS -> ready dead \
         | POP | FINISH a L1 | GET b -> dead 10 | POP -> nil | DEPS b -> a:done | KICK 1 -> b | GET b -> ready 10 | DEPS b -> a:done");
    check("@0 ADD a | ADD b late=5 after=a | @20 POP | FINISH a L1 | GET b -> ready 20 | @24 GET b -> ready 20 | @25 GET b -> dead 20 | WHY b -> late");
    check("@0 ADD a | ADD b ttl=10 after=a | @10 KICKJOB b -> 1 | GET b -> ready 10 | EDGES b -> 0/0 0 | EDGES a -> 0/0 0 | @19 POP n=2 | COUNTS -> 0 0 2 0");
    check("@0 ADD a | ADD b ttl=10 group=g after=a | GROUP g -> 0 0 0 | @10 COUNTS -> 0 1 0 1 | @5 POP | FINISH a L1 | GROUP g -> 1 0 0 | POP -> b#1");
}

#[test]
fn hold_lasts_until_it_is_ended() {
    check("@0 ADD a HOLD -> 0 | GET a -> held 0 | EDGES a -> 0/0 0 hold | LOAD | UNHOLD a -> 1 | UNHOLD a -> 0 | GET a -> ready 0 | EDGES a -> 0/0 0");
    check("@0 ADD a | ADD b HOLD after=a | POP | FINISH a L1 | GET b -> held 0 | EDGES b -> 0/1 0 hold | @5 UNHOLD b x a -> 1 | GET b -> ready 5");
    check("@0 ADD a | ADD b HOLD after=a +3 | UNHOLD b -> 1 | GET b -> held 0 | POP | @5 FINISH a L1 | GET b -> delayed 8");
    check("@0 ADD a HOLD ttl=5 | @5 UNHOLD a -> 0 | GET a -> dead 0");
}

#[test]
fn a_batch_grows_while_it_runs() {
    check("@0 ADD a | ADD done after=a | ADD b before=done -> 0 | GET b -> ready 0 | EDGES done -> 2/2 0 | POP n=2 | FINISH a L1 | GET done -> held 0 | FINISH b L2 | GET done -> ready 0 | DEPS done -> a:done b:done");
    check("@0 ADD done HOLD | ADD a before=done | ADD b before=done | POP n=2 | FINISH a L1 b L2 | GET done -> held 0 | UNHOLD done | GET done -> ready 0 | DEPS done -> a:done b:done");
    check("@0 ADD a | ADD b | ADD c before=a -> notheld a | ADD c before=x -> notheld x | GET c -> nil | ADD d after=a | ADD e after=b | ADD f before=e,d | POP n=3 | FINISH a L1 b L2 f L3 | ORDER -> d e");
    // The jobs that DONE adds are there before the edges from the finished one are settled.
    check("@0 ADD a | ADD done after=a | POP | DONE a L1 RESULT=x +ADD b before=done -> b | GET done -> held 0 | DEPS done -> a:done=x b:ready | POP NOACK | GET done -> ready 0");
    check("@0 ADD a | ADD done after=a | POP | DONE a L1 +ADD b after=a -> nojob a | GET a -> reserved 60 #1 L1 | DONE a L1 RESULT=x KEEP=9 +ADD b after=a +ADD c after=b +ADD d before=c -> b c d | DEPS b -> a:done=x | GET b -> ready 0 | DEPS c -> b:ready d:ready | GET done -> ready 0");
    check("@0 ADD a | POP | DONE a L1 +ADD b HOLD +ADD c before=b +ADD b REPLACE +ADD d before=b -> notheld b | ORDER -> a | DONE a L1 +ADD b HOLD +ADD c before=b +ADD d after=c REPLACE -> b c d");
}

#[test]
fn settled_jobs_are_due_in_the_order_in_which_they_were_added() {
    check("@0 ADD a | ADD z after=a | ADD y after=a | ADD x after=a | POP | LOAD | FINISH a L1 | ORDER -> z y x");
    check("@0 ADD z HOLD | ADD y HOLD | ADD x HOLD | ADD a before=x,y,z | UNHOLD x y z -> 3 | POP | COPY | FINISH a L1 | ORDER -> z y x | SWAP | LOAD | FINISH a L1 | ORDER -> z y x");
    check("@0 ADD z HOLD | ADD y HOLD | ADD z HOLD REPLACE | ADD a before=z,y | UNHOLD y z | LOAD | POP NOACK | ORDER -> y z");
}

#[test]
fn a_predecessor_that_dies_holds_its_dependents_back() {
    check("@0 ADD a tries=1 | ADD b after=a | POP | BEHIND -> 0 | BURY a L1 why | BEHIND -> 1 | GET b -> held 0 | DEPS b -> a:dead=why | COUNTS -> 0 0 0 1 0 1 | KICK 1 -> a | BEHIND -> 0 | POP | FINISH a L2 | GET b -> ready 0");
    check("@0 ADD a ttl=5 | ADD b after=a | UPKEEP -> 5 | @5 BEHIND -> 0 | SETTLE -> 1 | BEHIND -> 1 | LOAD | BEHIND -> 1 | SETTLE -> 0 | DEPS b -> a:dead=its time to live is over | KICKJOB a | BEHIND -> 0 | POP NOACK | GET b -> ready 5");
    // A job that is dead already, and one that waits for several.
    check("@0 ADD a | ADD c | POP | BURY a L1 why | ADD b after=a,c | BEHIND -> 1 | EDGES b -> 2/2 0 | ADD d HOLD | BEHIND -> 1 | KICKJOB b -> 1 | BEHIND -> 0 | EDGES a -> 0/0 0 | DEPS b ->");
    // A last lease that ran out may still be finished.
    check("@0 ADD a tries=1 ttr=5 | ADD b after=a | POP | @5 SETTLE -> 1 | BEHIND -> 1 | @9 FINISH a L1 -> 1 | BEHIND -> 0 | DEPS b -> a:done | GET b -> ready 9");
    check("@0 ADD a tries=1 ttr=5 | ADD b after=a | POP | @5 SETTLE -> 1 | TOUCH a L1 -> 1 | BEHIND -> 0 | UPKEEP -> 10 | @10 SETTLE -> 1 | BEHIND -> 1");
}

#[test]
fn with_run_a_death_settles_the_edge() {
    check("@0 ADD a | ADD b after=a RUN | POP | BURY a L1 why | GET b -> ready 0 | DEPS b -> a:dead=why | KICK 1 -> a | POP NOACK -> b#1 | POP NOACK -> a#1");
    check("@0 ADD a tries=1 | ADD b after=a RUN | POP | RELEASE a L1 no | GET b -> ready 0 | DEPS b -> a:dead=no");
    check("@0 ADD a late=5 | ADD b after=a RUN | @5 POP -> b#1 | DEPS b -> a:dead=late");
    check("@0 ADD a tries=1 ttr=5 | ADD b after=a RUN +2 | POP | @5 SETTLE -> 1 | GET b -> delayed 7 | DEPS b -> a:dead=no attempts left | FINISH a L1 -> 1 | DEPS b -> a:dead=no attempts left");
    check("@0 ADD a | POP | BURY a L1 why | ADD b after=a RUN -> 0 | GET b -> ready 0 | DEPS b -> a:dead=why | EDGES a -> 0/0 0");
    // Of many, some at once.
    check("@0 ADD a ttl=5 | ADD b ttl=5 | ADD c ttl=5 | ADD d ttl=6 | ADD e after=a,b,c,d RUN | ADD f after=a,b RUN | ADD g after=c RUN | @5 SETTLE -> 3 | PEEK ready -> d f g | @6 SETTLE -> 1 | GET e -> ready 6");
    // A dependent that is dead itself settles the edges from it.
    check("@0 ADD a | ADD b ttl=5 after=a | ADD c after=b RUN | @5 SETTLE -> 1 | GET c -> ready 5 | DEPS c -> b:dead=its time to live is over");
}

#[test]
fn with_a_removed_predecessor_nothing_can_come() {
    check("@0 ADD a | ADD b after=a | ADD c after=a RUN | ADD d after=b | DEL a -> 1 | GET b -> dead 0 | WHY b -> job 'a' that it waits for was removed | DEPS b -> a:gone | GET c -> ready 0 | DEPS c -> a:gone | BEHIND -> 1 | MORE_TOTALS -> 0 0 1 0 0 | KICK 1 -> b | BEHIND -> 0 | LOAD | POP n=2 NOACK -> c#1 b#1 | GET d -> ready 0");
    check("@0 ALTER deadkeep=9 | ADD a | ADD b after=a | POP | BURY a L1 why | @9 FORGET -> a | GET b -> dead 9");
    check("@0 ADD a | ADD b | ADD c after=a,b | DEL a | GET c -> dead 0 | EDGES c -> 1/2 0 | POP NOACK -> b#1 | DEPS c -> a:gone b:done | GET c -> dead 0");
    check("@0 ADD a | ADD b after=a | ADD c after=b | PURGE held 0 9 -> b c | ORDER -> a | EDGES a -> 0/0 0");
    check("@0 ADD a keep=5 | ADD b after=a | POP NOACK | @5 FORGET -> a | GET b -> ready 0 | DEPS b -> a:done");
    check("@0 ADD a | ADD b ttl=5 after=a | @5 DEL a | GET b -> dead 5 | WHY b -> its time to live is over");
    // An operation ends before anything follows from it: a job that it removes didn't die before.
    check("@0 ADD a | ADD b after=a | ADD c after=b RUN | DEL a b -> 2 | DEPS c -> b:gone | GET c -> ready 0");
    check("@0 ADD a | ADD b after=a | ADD c after=b RUN | DEL a | DEL b -> 1 | DEPS c -> b:dead=job 'a' that it waits for was removed");
}

#[test]
fn replaced_jobs_keep_their_dependents_and_lose_their_predecessors() {
    check("@0 ADD a | ADD b after=a | ADD a REPLACE +5 -> replaced 5 | EDGES b -> 1/1 0 | EDGES a -> 0/0 1 | LOAD | @5 POP | FINISH a L1 | GET b -> ready 5");
    check("@0 ADD a | ADD b after=a | ADD c after=b | ADD b REPLACE | EDGES a -> 0/0 0 | EDGES b -> 0/0 1 | POP n=2 -> a#1 b#1 | FINISH b L2 | GET c -> ready 0");
    check("@0 ADD a | ADD b after=a | POP | BURY a L1 | BEHIND -> 1 | ADD a REPLACE | BEHIND -> 0 | POP NOACK | GET b -> ready 0");
    check("@0 ADD a ttl=5 | ADD b after=a RUN | ADD a REPLACE | @5 SETTLE -> 0 | GET b -> held 0 | ADD a ttl=5 REPLACE | @10 SETTLE -> 1");
    check("@0 ADD a | ADD b after=a | ADD c | ADD b after=c REPLACE | EDGES a -> 0/0 0 | POP n=2 | FINISH c L2 | DEPS b -> c:done");
    check("@0 ADD a HOLD | ADD b before=a | ADD b before=a REPLACE | EDGES a -> 1/1 0 hold | ADD c HOLD | ADD b before=c,a REPLACE | EDGES b -> 0/0 2 | EDGES a -> 1/1 0 hold");
}

#[test]
fn there_are_no_cycles() {
    check("@0 ADD a | ADD b after=a | ADD c | ADD a after=b REPLACE -> waited-for a | ADD a after=c REPLACE -> waited-for a | ADD a every=5 REPLACE -> waited-for a | ADD a every=5 ENSURE -> waited-for a | GET a -> ready 0");
    // A job with a schedule waits for nothing.
    check("@0 ADD a HOLD | ADD a every=5 ENSURE -> replaced 5 | GET a -> delayed 5 | EDGES a -> 0/0 0 | ADD b | ADD c after=b | ADD c every=5 ENSURE -> replaced 5 | EDGES b -> 0/0 0 | @5 POP NOACK n=9 -> b#1 a#1 c#1");
    check("@0 ADD a | ADD a after=a REPLACE -> nojob a | ADD b after=b -> nojob b | ADD c HOLD | ADD c before=c REPLACE -> notheld c | ADD c HOLD before=c REPLACE -> notheld c | GET b -> nil");
    check("@0 ADD a HOLD | ADD b before=a | ADD b after=a REPLACE -> waited-for b | POP | DONE b L1 +ADD b after=a -> b | EDGES b -> 1/1 0 | EDGES a -> 0/1 1 hold");
}

#[test]
fn what_done_adds_is_judged_by_what_it_has_added_before() {
    const BEGIN: &str = "@0 ADD p | ADD d after=p | ADD y HOLD | ADD w | TAKE w";
    check(&format!("{BEGIN} | DONE w L1 +ADD p REPLACE +ADD p after=y REPLACE -> waited-for p | GET w -> reserved 60 #1 L1"));
    check(&format!("{BEGIN} | DONE w L1 +ADD d REPLACE +ADD e after=d +ADD d REPLACE +ADD d after=y REPLACE -> waited-for d"));
    check(&format!("{BEGIN} | DONE w L1 +ADD p REPLACE +ADD p before=y,d REPLACE +ADD p REPLACE -> p p p | EDGES p -> 0/0 2 | EDGES d -> 1/1 0"));
}

#[test]
fn who_waits_for_a_job_knows_whether_it_is_dead_whatever_happens_to_others() {
    check("@0 ADD a ttl=5 | ADD b after=a | @5 ADD c after=a | ADD d after=a RUN | BEHIND -> 2 | EDGES a -> 0/0 2 | LOAD | KICKJOB b | BEHIND -> 1 | ADD e after=a | ADD a REPLACE ttl=5 | BEHIND -> 0 | ADD f after=a | @10 SETTLE -> 1 | BEHIND -> 3 | DEL e | KICKJOB a | BEHIND -> 0 | EDGES a -> 0/0 2");
    check("@0 ADD a tries=1 ttr=5 | ADD b after=a | ADD c after=a | POP | TOUCH a L1 ttr=9 | @9 SETTLE -> 1 | BEHIND -> 2 | TOUCH a L1 ttr=9 | BEHIND -> 0 | BURY a L1 | ADD b REPLACE | DEL c | EDGES a -> 0/0 0 | BEHIND -> 0");
}

#[test]
fn edges_that_can_not_be_are_refused() {
    check("@0 ADD a after=x -> nojob x | ADD s every=10 | ADD a after=s -> schedule s | ADD a NX after=x -> nojob x | GET a -> nil | ADD a | ADD a after=x -> taken | ADD a NX after=x -> taken | ALTER maxjobs=2 | ADD b after=x -> full");
    check("@0 ADD s every=10 | ADD a | POP | DONE a L1 +ADD b after=s -> schedule s | DONE a L1 +ADD c every=5 +ADD b after=c -> schedule c | DONE a L1 +ADD b after=c +ADD c -> nojob c | ORDER -> s a");
}

#[test]
fn what_done_adds_is_checked_as_if_it_was_there() {
    // Those that wait for a job that is replaced wait for the new one, so that it can't wait.
    check("@0 ADD b | ADD c after=b | ADD y | ADD x prio=0 | POP | DONE x L1 +ADD b REPLACE +ADD b after=y REPLACE -> waited-for b | GET x -> reserved 60 #1 L1 | DONE x L1 +ADD b REPLACE +ADD b REPLACE -> b b | EDGES b -> 0/0 1");
    check("@0 ADD a HOLD | ADD x | POP | DONE x L1 +ADD b before=a +ADD b REPLACE +ADD b every=5 REPLACE -> waited-for b | EDGES a -> 0/0 0 hold");
    check("@0 ALTER maxjobs=1 | ADD x | POP | DONE x L1 +ADD a +ADD b after=c -> full");
    // At the last moment there is, nothing is kept.
    check("@MAX ADD x HOLD | DONE x * KEEP=9 +ADD a after=x -> nojob x | GET x -> held MAX");
}

#[test]
fn a_held_job_is_finished_without_running() {
    check("@0 ADD ok HOLD ttl=50 | ADD ship after=ok | ADD x | POP | FINISH x L1 ok L1 -> 1 | COPY | DONE ok * RESULT=yes -> 1 | GET ok -> nil | GET ship -> ready 0 | DEPS ship -> ok:done=yes | TOTALS -> 3 0 1 0 2 0 | SWAP | @50 DONE ok * -> 0 | FINISH ok * -> 0 | GET ship -> held 0");
    check("@0 ADD a | ADD b keep=9 after=a | FINISH b * -> 1 | GET b -> done 9 | EDGES a -> 0/0 0 | DEPS b -> | POP NOACK | GET b -> done 9");
    check("@0 ADD a | FINISH a * -> 0 | ADD b HOLD | BURY b * -> 0 | TOUCH b * -> 0 | RELEASE b * -> 0 | FINISH b * a * -> 1");
}

#[test]
fn a_kicked_job_runs_at_once_and_keeps_what_it_has_got() {
    check("@0 ADD a | ADD b | ADD c after=a,b +50 | POP | DONE a L1 RESULT=x | KICKJOB c -> 1 | GET c -> ready 0 | DEPS c -> a:done=x | EDGES b -> 0/0 0 | TALLY c -> 0 0 0 1 | POP NOACK | POP -> c#1");
    // A retry has what came before it, too.
    check("@0 ADD a | ADD b tries=1 after=a | POP | DONE a L1 RESULT=x | POP | BURY b L2 | KICK 1 -> b | DEPS b -> a:done=x | LOAD | POP | DEPS b -> a:done=x");
    check("@0 ADD a HOLD | KICKJOB a -> 1 | EDGES a -> 0/0 0 | GET a -> ready 0");
}

#[test]
fn a_chain_of_deaths_is_settled_without_recursion() {
    const JOBS: usize = 20_000;
    let mut queue = Queue::new((1, 2));
    let names: Vec<String> = (0..JOBS).map(|number| number.to_string()).collect();
    add(&mut queue, 0, &plain("first"));
    for (number, name) in names.iter().enumerate() {
        let after = vec![if number == 0 { id("first") } else { id(&names[number - 1]) }];
        let edges = NewEdges { after, on_dead: OnDead::Run, ..NewEdges::default() };
        let ttl = Some(span(5));
        add(&mut queue, 0, &Add { edges: Some(Box::new(edges)), ttl, ..plain(name) });
    }
    // Each of them is dead, which the log doesn't know yet.
    let claims = Claims::from_slice(&[Claim { id: id("first"), lease: None }]);
    queue.apply(&told(9), &Pop::ONE);
    queue.apply(&told(9), &Finish { claims });
    queue.advance(at(9));
    assert_eq!((queue.counts().dead, queue.counts().held), (JOBS, 0));
    queue.check_edges();
}

#[test]
fn a_job_has_at_most_so_many_edges() {
    let mut queue = Queue::new((1, 2));
    add(&mut queue, 0, &plain("a"));
    let names: Vec<String> = (0..EDGES_MAX).map(|number| number.to_string()).collect();
    let after_a = || Some(Box::new(NewEdges { after: vec![id("a")], ..NewEdges::default() }));
    for name in &names {
        add(&mut queue, 0, &Add { edges: after_a(), ..plain(name) });
    }
    let refused = Added::Unconnected(Box::new(EdgeFault::TooManyDependents(b"a"[..].into())));
    assert_eq!(queue.apply(&told(0), &Add { edges: after_a(), ..plain("b") }), refused);
    delete(&mut queue, "7");
    add(&mut queue, 0, &Add { edges: after_a(), ..plain("b") });
    let after = names.iter().filter(|name| *name != "7").map(|name| id(name));
    let after: Vec<Id> = after.chain([id("b")]).collect();
    let edges = Some(Box::new(NewEdges { after, ..NewEdges::default() }));
    add(&mut queue, 0, &Add { edges, ..plain("all") });
    let edges = NewEdges { before: vec![id("all")], ..NewEdges::default() };
    let refused = Added::Unconnected(Box::new(EdgeFault::TooManyPredecessors(b"all"[..].into())));
    let one_more = Add { edges: Some(Box::new(edges)), ..plain("more") };
    assert_eq!(queue.apply(&told(0), &one_more), refused);
    // Those that wait for a job wait for one that replaces it, too.
    let refused = Added::Unconnected(Box::new(EdgeFault::TooManyDependents(b"a"[..].into())));
    let replaced = Add { if_taken: IfTaken::Replace, ..one_more };
    assert_eq!(queue.apply(&told(0), &Add { id: Some(id("a")), ..replaced }), refused);
    queue.advance(at(0));
    assert_eq!(queue.counts().held, EDGES_MAX + 1);
    // A file has them in several records.
    assert!(script::loaded(&queue).edge_records().eq(queue.edge_records()));
    let claims = [Claim { id: id("a"), lease: None }];
    queue.apply(&told(0), &Pop::ONE);
    queue.apply(&told(0), &Finish { claims: Claims::from_slice(&claims) });
    assert_eq!((queue.counts().held, queue.counts().ready), (1, EDGES_MAX));
    queue.check_edges();
}

#[test]
fn a_purge_takes_fewer_jobs_where_these_wait_for_many() {
    let mut queue = Queue::new((1, 2));
    let names = ["a", "b", "c", "d"];
    names.iter().for_each(|name| add(&mut queue, 0, &plain(name)));
    let after = || names.iter().map(|name| id(name)).collect();
    let wait = || Some(Box::new(NewEdges { after: after(), ..NewEdges::default() }));
    for number in 0..4_000 {
        add(&mut queue, 0, &Add { edges: wait(), ..plain(&number.to_string()) });
    }
    queue.advance(at(0));
    assert_eq!(queue.to_purge(at(0), State::Ready, Millis::ZERO, 9).len(), names.len());
    assert_eq!(queue.to_purge(at(0), State::Held, Millis::ZERO, 9_999).len(), 2_500);
    queue.apply(&told(0), &Alter { dead_keep: Some(span(5)), ..Alter::default() });
    let held = queue.ids_of(&queue.peek(State::Held, 4_000));
    queue.apply(&told(0), &KickJob { ids: held.ids() });
    assert_eq!(queue.edge_records().count(), 0);
}

#[test]
fn edges_of_many_bytes_are_in_several_records() {
    let mut queue = Queue::new((1, 2));
    let result = vec![b'x'; 700_000];
    let names = ["a", "b", "c", "d", "e"];
    names.iter().for_each(|name| add(&mut queue, 0, &plain(name)));
    let after = names.iter().map(|name| id(name)).collect();
    let edges = Some(Box::new(NewEdges { after, ..NewEdges::default() }));
    add(&mut queue, 0, &Add { edges, ..plain("all") });
    queue.apply(&told(0), &Pop { count: 9, ..Pop::ONE });
    for name in &names[..4] {
        let claim = Claim { id: id(name), lease: None };
        let done = Done { claim, result: Some(&result), keep: None, adds: Vec::new() };
        queue.apply(&told(0), &done);
    }
    assert!(queue.memory() > 4 * result.len());
    assert_eq!(queue.edge_records().count(), 3);
    let loaded = script::loaded(&queue);
    assert!(loaded.edge_records().eq(queue.edge_records()));
    loaded.check_edges();
    let mut copy = queue.clone();
    drop(queue);
    copy.check_edges();
    delete(&mut copy, "all");
    assert!(copy.memory() < result.len());
    assert!(copy.take_removed().bytes() > 4 * result.len());
}

#[test]
fn a_death_that_a_replica_hears_of_late_wakes_it_once_it_is_a_primary() {
    let mut queue = Queue::new((1, 2));
    add(&mut queue, 0, &Add { late: Some(span(5)), ..plain("a") });
    // It is read at its own time, and its log is behind.
    queue.advance(at(100));
    assert_eq!(queue.find_wake_at(), None);
    let edges = Some(Box::new(NewEdges { after: vec![id("a")], ..NewEdges::default() }));
    add(&mut queue, 0, &Add { edges, ..plain("b") });
    assert_eq!(queue.settles_at(), Some(at(5)));
    assert_eq!(queue.wake_at(), at(5));
}

#[test]
fn there_is_room_for_the_edges_that_a_job_has_and_no_more() {
    let mut queue = Queue::new((1, 2));
    add(&mut queue, 0, &plain("a"));
    let edges = Some(Box::new(NewEdges { after: vec![id("a")], ..NewEdges::default() }));
    add(&mut queue, 0, &Add { edges, ..plain("b") });
    for queue in [&queue, &queue.clone(), &script::loaded(&queue)] {
        assert_eq!(queue.edges.as_ref().unwrap().room(), 1);
    }
}

#[test]
fn a_result_that_removed_jobs_shared_counts_no_longer() {
    let mut queue = Queue::new((1, 2));
    let names: Vec<String> = (0..2_000).map(|number| number.to_string()).collect();
    names.iter().for_each(|name| add(&mut queue, 0, &plain(name)));
    let after_all = || {
        let after = names.iter().map(|name| id(name)).collect();
        Some(Box::new(NewEdges { after, ..NewEdges::default() }))
    };
    for name in ["x", "y", "z"] {
        add(&mut queue, 0, &Add { edges: after_all(), ..plain(name) });
    }
    let on_hold = NewEdges { is_on_hold: true, ..NewEdges::default() };
    add(&mut queue, 0, &Add { edges: Some(Box::new(on_hold)), ..plain("stays") });
    queue.apply(&told(0), &Pop::ONE);
    let claim = Claim { id: id("0"), lease: None };
    let result = vec![b'x'; 100_000];
    queue.apply(&told(0), &Done { claim, result: Some(&result), keep: None, adds: Vec::new() });
    let ids = Ids::from_slice(&[id("x"), id("y"), id("z")]);
    queue.apply(&told(0), &Remove { ids, counted_as: Removal::Deleted });
    queue.check_edges();
    assert!(queue.take_removed().bytes() > result.len());
}

#[test]
fn records_of_edges_that_can_not_be_are_refused() {
    let mut queue = Queue::new((1, 2));
    add(&mut queue, 0, &plain("a"));
    let edges = Some(Box::new(NewEdges { after: vec![id("a")], ..NewEdges::default() }));
    add(&mut queue, 0, &Add { edges, ..plain("b") });
    let records: Vec<EdgesRecord> = queue.edge_records().collect();
    delete(&mut queue, "a");
    assert_eq!(queue.load_edges(&records), Err(RecordError::Impossible));
    delete(&mut queue, "b");
    assert_eq!(queue.load_edges(&records), Err(RecordError::Impossible));
    let bytes = records.encode();
    for cut in 1..bytes.len() {
        assert!(Vec::<EdgesRecord>::decode(&bytes[..cut]).is_err());
    }
    assert_eq!(Vec::<EdgesRecord>::decode(&bytes).unwrap(), records);
}

#[test]
fn a_held_job_of_a_file_without_edges_can_be_resumed() {
    let mut queue = Queue::new((1, 2));
    let edges = Some(Box::new(NewEdges { is_on_hold: true, ..NewEdges::default() }));
    add(&mut queue, 0, &Add { edges, ..plain("a") });
    let record = JobRecord::of(&queue.get(id("a")).unwrap());
    let mut loaded = Queue::new((1, 2));
    loaded.load(b"a", b"x", &record).unwrap();
    let ids = Ids::from_slice(&[id("a")]);
    assert_eq!(loaded.apply(&told(0), &Resume::Jobs(ids)), Resumed::Jobs(1));
    assert_eq!(loaded.counts().ready, 1);
}

impl Queue {
    /// What must be so at every moment.
    pub(super) fn check_edges(&self) {
        let held: Vec<String> = self.in_stage_held();
        let Some(edges) = &self.edges else {
            assert!(held.is_empty(), "{held:?} are held, and there are no edges");
            return;
        };
        edges.check(|slot| {
            let job = self.view(slot).expect("a job with edges is there");
            (job.progress.stage == Stage::Held, job.dies_at())
        });
        for name in held {
            let slot = self.store.find(id(&name)).unwrap();
            assert!(edges.dependent(slot).is_some(), "{name} is held, and has no edges");
        }
    }

    fn in_stage_held(&self) -> Vec<String> {
        let held = self.jobs().filter(|job| job.progress.stage == Stage::Held);
        held.map(|job| text(Some(job.id.bytes()))).collect()
    }
}
