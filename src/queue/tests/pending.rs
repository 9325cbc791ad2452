//! What follows from the end of a job for those that wait for it, when a part of it comes later.

use proptest::prelude::*;

use super::words::{new_job, text};
use super::*;

/// So few that each step is a slice of its own.
const SMALL: SettleBudget = SettleBudget { of_operation: 1, of_slice: 1 };

fn queue(jobs: &[&str], budget: SettleBudget) -> Queue {
    let mut queue = Queue::new((1, 2));
    queue.set_settle_budget(budget);
    for job in jobs {
        let words: Vec<&str> = ["ADD"].into_iter().chain(job.split_whitespace()).collect();
        add(&mut queue, 0, &new_job(&words));
    }
    queue
}

fn claim(name: &str) -> Claim<'_> {
    Claim { id: id(name), lease: None }
}

fn finish(queue: &mut Queue, now: u64, names: &[&str]) {
    let claims: Claims = names.iter().map(|name| claim(name)).collect();
    queue.apply(&told(now), &Finish { claims });
}

/// As the timer does it; how many slices it took.
fn carry_out(queue: &mut Queue, now: u64) -> usize {
    let mut slices = 0;
    while queue.settles_at().is_some_and(|time| time <= at(now)) {
        let ids = queue.ids_of(&queue.to_settle(at(now), 3));
        assert_ne!(queue.apply(&told(now), &Settle { ids: ids.ids() }), Affected(0));
        queue.check_edges();
        slices += 1;
    }
    slices
}

fn state(queue: &Queue, name: &str, now: u64) -> (&'static str, u64) {
    let job = queue.get(id(name)).unwrap();
    (job.state(at(now)).name(), job.since(at(now)).unix_ms())
}

#[test]
fn what_is_left_over_is_carried_out_as_of_the_time_of_the_end() {
    let jobs = ["a", "b after=a", "c after=a +10", "d after=b RUN"];
    let mut queue = queue(&jobs, SMALL);
    queue.apply(&told(0), &Pop::ONE);
    finish(&mut queue, 5, &["a"]);
    assert_eq!((state(&queue, "b", 5), state(&queue, "c", 5)), (("ready", 5), ("held", 0)));
    assert_eq!(queue.settles_at(), Some(Time::ZERO));
    assert_eq!(queue.wake_at(), Time::ZERO);
    assert!(carry_out(&mut queue, 9) > 0);
    assert_eq!(queue.get(id("c")).unwrap().due(), at(15));
    // And a death so: whoever dies, dies of it then.
    let mut queue = self::queue(&["a", "b after=a", "c after=b", "d after=b RUN +3"], SMALL);
    let ids = Ids::from_slice(&[id("a")]);
    queue.apply(&told(5), &Remove { ids, counted_as: Removal::Deleted });
    assert_eq!((state(&queue, "b", 5), state(&queue, "d", 5)), (("dead", 5), ("held", 0)));
    carry_out(&mut queue, 9);
    assert_eq!(queue.get(id("d")).unwrap().due(), at(8));
    assert_eq!((state(&queue, "c", 9), queue.held_behind_dead()), (("held", 0), 1));
}

#[test]
fn a_job_that_expired_before_a_slice_came_to_it_is_dead_and_was_not_ready() {
    // A TTL ends a held job, too; LATE counts from its due time on, which was not known before.
    for (option, dies_now) in [("ttl=10", false), ("late=10", true)] {
        let dependent = format!("c after=a {option}");
        let mut queue = queue(&["a", "b after=a", &dependent], SMALL);
        queue.apply(&told(0), &Pop::ONE);
        finish(&mut queue, 5, &["a"]);
        queue.advance(at(20));
        queue.take_events();
        carry_out(&mut queue, 20);
        let events = queue.take_events();
        assert_eq!(state(&queue, "c", 20).0, "dead");
        assert_eq!((events.is_any_ready, events.is_any_dead), (false, dies_now), "{option}");
    }
}

#[test]
fn what_a_job_has_got_it_keeps_though_it_is_kicked_before_a_slice_comes_to_it() {
    let mut queue = queue(&["a", "x", "b after=a", "c after=a,x"], SMALL);
    queue.apply(&told(0), &Pop::ONE);
    let (claim, result) = (claim("a"), Some(&b"r"[..]));
    queue.apply(&told(0), &Done { claim, result, keep: None, adds: Vec::new() });
    let seen = |queue: &Queue| {
        let (edges, _) = queue.edges_to(id("c"), 0, 9, at(0));
        edges.iter().map(|edge| (edge.state.name(), text(edge.what))).collect::<Vec<_>>()
    };
    let counts = queue.edge_counts(id("c")).unwrap();
    assert_eq!((counts.pending, seen(&queue)[0].clone()), (2, ("done", "r".into())));
    queue.apply(&told(0), &KickJob { ids: Ids::from_slice(&[id("c")]) });
    queue.check_edges();
    assert_eq!((state(&queue, "c", 0), seen(&queue)), (("ready", 0), vec![("done", "r".into())]));
    carry_out(&mut queue, 0);
    assert_eq!(queue.edge_counts(id("x")), None);
}

/// What each operation on a job that has died by time comes to, for one that waits for it with RUN.
#[test]
fn a_death_by_time_counts_whatever_is_done_with_the_job_before_the_timer_comes() {
    let ids = || Ids::from_slice(&[id("a")]);
    type Doing = (&'static str, Box<dyn Fn(&mut Queue)>);
    let lease = "no attempts left";
    let operations: Vec<Doing> = vec![
        (
            "kick",
            Box::new(move |queue| {
                assert_eq!(queue.apply(&told(9), &KickJob { ids: ids() }), Affected(1))
            }),
        ),
        (
            "replace",
            Box::new(|queue| {
                let if_taken = IfTaken::Replace;
                drop(queue.apply(&told(9), &Add { if_taken, ..plain("a") }));
            }),
        ),
        ("finish", Box::new(|queue| finish(queue, 9, &["a"]))),
        (
            "done",
            Box::new(|queue| {
                let done = Done { claim: claim("a"), result: None, keep: None, adds: Vec::new() };
                drop(queue.apply(&told(9), &done));
            }),
        ),
        (
            "touch",
            Box::new(|queue| {
                let (claim, checkpoint) = (claim("a"), Checkpoint::NONE);
                let touched = queue.apply(&told(9), &Touch { claim, ttr: None, checkpoint });
                assert_eq!(touched, Affected(1));
            }),
        ),
        (
            "release",
            Box::new(|queue| {
                assert_eq!(queue.apply(&told(9), &Release::plain(claim("a"))), Affected(1))
            }),
        ),
        (
            "bury",
            Box::new(|queue| {
                let reason = Some(&b"other"[..]);
                let bury = Bury { claim: claim("a"), reason };
                assert_eq!(queue.apply(&told(9), &bury), Affected(1));
            }),
        ),
        (
            "delete",
            Box::new(|queue| {
                let ids = Ids::from_slice(&[id("a")]);
                queue.apply(&told(9), &Remove { ids, counted_as: Removal::Deleted });
            }),
        ),
        (
            "add after",
            Box::new(|queue| {
                let edges = NewEdges { after: vec![id("a")], ..NewEdges::default() };
                add(queue, 9, &Add { edges: Some(Box::new(edges)), ..plain("c") });
            }),
        ),
        (
            "pop",
            Box::new(move |queue| {
                let (ids, mode) = (ids(), Mode::Lease);
                drop(queue.apply(&told(9), &PopById { ids: &ids, ttr: None, mode }));
            }),
        ),
    ];
    for (name, operation) in operations {
        let mut queue = queue(&["a tries=1 ttr=5", "b after=a RUN +2"], SettleBudget::DEFAULT);
        queue.apply(&told(0), &Pop::ONE);
        operation(&mut queue);
        queue.check_edges();
        let (edges, _) = queue.edges_to(id("b"), 0, 9, at(9));
        assert_eq!((edges[0].state.name(), text(edges[0].what)), ("dead", lease.into()), "{name}");
        assert_eq!(state(&queue, "b", 9), ("ready", 7), "{name}");
    }
}

#[test]
fn however_many_have_died_a_kick_before_the_timer_loses_no_death() {
    const JOBS: usize = 3_000;
    let mut queue = Queue::new((1, 2));
    let names: Vec<String> = (0..JOBS).map(|number| number.to_string()).collect();
    for name in &names {
        add(&mut queue, 0, &Add { ttl: Some(span(5)), ..plain(name) });
        let after = vec![id(name)];
        let edges = NewEdges { after, on_dead: OnDead::Run, ..NewEdges::default() };
        let behind = format!("behind {name}");
        add(&mut queue, 0, &Add { edges: Some(Box::new(edges)), ..plain(&behind) });
    }
    // What the frame settles before a change, and then all are kicked.
    let some = queue.ids_of(&queue.to_settle(at(9), 1_000));
    queue.apply(&told(9), &Settle { ids: some.ids() });
    let ids: Ids = names.iter().map(|name| id(name)).collect();
    assert_eq!(queue.apply(&told(9), &KickJob { ids }), Affected(JOBS));
    carry_out(&mut queue, 9);
    queue.advance(at(9));
    assert_eq!((queue.counts().held, queue.counts().ready), (0, 2 * JOBS));
}

/// fetch, maps behind it, and reduces that wait for all of these; some die in time.
fn flow(width: usize, kinds: &[bool]) -> Vec<String> {
    let kind = |number: usize| if kinds[number % kinds.len()] { " RUN" } else { "" };
    let maps = (0..width).map(|map| format!("m{map} after=fetch +{}{}", map % 3, kind(map)));
    let names = (0..width).map(|map| format!("m{map}")).collect::<Vec<_>>().join(",");
    let reduces = (0..width)
        .map(|number| format!("r{number} after={names} prio={}{}", number % 2, kind(number + 1)));
    ["fetch".to_string()].into_iter().chain(maps).chain(reduces).collect()
}

fn seen(queue: &Queue) -> Vec<String> {
    let seen = |job: JobView| {
        let state = (job.state(at(50)).name(), job.since(at(50)), job.due());
        format!("{} {state:?} {}", text(Some(job.id.bytes())), text(job.reason))
    };
    queue.jobs().map(seen).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// Wherever the slices fall, and whether the queue came out of a file in between.
    #[test]
    fn the_outcome_does_not_depend_on_where_slices_fall(
        kinds in prop::collection::vec(any::<bool>(), 1..4),
        budgets in (1..30u32, 1..30u32),
        operations in prop::collection::vec(0..6u8, 1..4),
        reloads in 0..4usize,
    ) {
        let jobs = flow(5, &kinds);
        let jobs: Vec<&str> = jobs.iter().map(|job| &job[..]).collect();
        let (of_operation, of_slice) = budgets;
        let budget = SettleBudget { of_operation, of_slice };
        let (mut whole, mut sliced) = (queue(&jobs, SettleBudget::DEFAULT), queue(&jobs, budget));
        let maps: Vec<String> = (0..5).map(|map| format!("m{map}")).collect();
        let maps: Vec<&str> = maps.iter().map(|map| &map[..]).collect();
        let all = Ids::from_iter(maps.iter().map(|map| id(map)));
        for (now, operation) in (10..).zip(&operations) {
            for queue in [&mut whole, &mut sliced] {
                let remove = |ids| Remove { ids, counted_as: Removal::Deleted };
                match operation {
                    0 => { queue.apply(&told(now), &remove(Ids::from_slice(&[id("fetch")]))); }
                    1 => { queue.apply(&told(now), &remove(all.clone())); }
                    2 => { queue.apply(&told(now), &KickJob { ids: all.clone() }); }
                    3 => finish(queue, now, &["fetch"]),
                    4 => finish(queue, now, &maps),
                    _ => {
                        queue.apply(&told(now), &Pop::ONE);
                        for name in ["fetch", "m0", "m1", "m2"] {
                            queue.apply(&told(now), &Bury { claim: claim(name), reason: None });
                            carry_out(queue, now);
                        }
                    }
                }
                queue.check_edges();
            }
            for _ in 0..reloads {
                let record = sliced.record().encode();
                sliced = script::loaded(&sliced);
                sliced.set_settle_budget(budget);
                sliced.check_edges();
                prop_assert_eq!(sliced.record().encode(), record);
                if sliced.settles_at().is_some_and(|time| time <= at(now)) {
                    sliced.apply(&told(now), &Settle { ids: Ids::new() });
                }
            }
            carry_out(&mut sliced, now);
            prop_assert_eq!(seen(&sliced), seen(&whole));
            prop_assert!(sliced.edge_records().eq(whole.edge_records()));
            prop_assert_eq!(sliced.held_behind_dead(), whole.held_behind_dead());
            prop_assert_eq!(sliced.settles_at(), whole.settles_at());
        }
    }
}

/// Whatever becomes of a job whose edges are still to be marked, and of those that waited for it,
/// the queue loads what it saves.
#[test]
fn a_mark_that_no_edge_needs_any_more_is_in_no_file() {
    let ids = |name| Ids::from_slice(&[id(name)]);
    let kick = |queue: &mut Queue| {
        assert_eq!(queue.apply(&told(5), &KickJob { ids: ids("x") }), Affected(1));
    };
    let bury = |queue: &mut Queue| {
        let bury = Bury { claim: claim("x"), reason: None };
        assert_eq!(queue.apply(&told(5), &bury), Affected(1));
    };
    let replace = |queue: &mut Queue, schedule| {
        let if_taken = IfTaken::Replace;
        drop(queue.apply(&told(5), &Add { if_taken, schedule, ..plain("x") }));
    };
    type Play<'p> = &'p dyn Fn(&mut Queue);
    let operations: [(&str, Play); 4] = [
        ("kicked", &kick),
        ("replaced", &|queue| replace(queue, None)),
        ("with a schedule", &|queue| replace(queue, rounds::schedule_of(&["every=10"], None))),
        ("dead again", &|queue| {
            kick(queue);
            queue.apply(&told(5), &PopById { ids: &ids("x"), ttr: None, mode: Mode::Lease });
            bury(queue);
        }),
    ];
    for (name, operation) in operations {
        let jobs = ["x prio=0", "y after=x", "a prio=0", "b after=a", "c after=a"];
        let mut queue = queue(&jobs, SMALL);
        for _ in 0..2 {
            queue.apply(&told(0), &Pop::ONE);
        }
        finish(&mut queue, 5, &["a"]);
        bury(&mut queue);
        queue.apply(&told(5), &Remove { ids: ids("y"), counted_as: Removal::Deleted });
        operation(&mut queue);
        queue.check_edges();
        assert!(queue.has_pending(), "{name}");
        let mut loaded = script::loaded(&queue);
        loaded.check_edges();
        assert!(loaded.pending_records().eq(queue.pending_records()), "{name}");
        for queue in [&mut queue, &mut loaded] {
            carry_out(queue, 6);
        }
        assert_eq!(seen(&loaded), seen(&queue), "{name}");
    }
}
