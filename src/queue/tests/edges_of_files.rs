//! Records of edges that no queue has written.

use serde_bytes::ByteBuf;

use super::*;

/// An edge: its job, the number of its state.
type HostileEdge = (ByteBuf, u8, Option<ByteBuf>);

const OPEN: u8 = 0;
const OPEN_OF_DEAD: u8 = 1;
const DONE: u8 = 2;
const PENDING: u8 = 5;

#[derive(Clone)]
struct Hostile {
    id: &'static str,
    edges: Vec<HostileEdge>,
    is_first: bool,
    continues: bool,
    on_dead: u8,
    is_on_hold: bool,
}

fn edge(id: &str, state: u8) -> HostileEdge {
    (ByteBuf::from(id), state, None)
}

fn of(id: &'static str, edges: Vec<HostileEdge>) -> Hostile {
    Hostile { id, edges, is_first: true, continues: false, on_dead: 0, is_on_hold: false }
}

fn records(all: &[Hostile]) -> Vec<EdgesRecord> {
    let fields = all.iter().map(|one| {
        let Hostile { id, edges, is_first, continues, on_dead, is_on_hold } = one;
        (ByteBuf::from(*id), edges, *is_first, *continues, *on_dead, *is_on_hold, 0, 0)
    });
    let bytes = rmp_serde::to_vec(&fields.collect::<Vec<_>>()).unwrap();
    Vec::<EdgesRecord>::decode(&bytes).unwrap()
}

fn on_hold<'a>() -> NewEdges<'a> {
    NewEdges { is_on_hold: true, ..NewEdges::default() }
}

/// With a held job `h`, and `ready`, `dead`, `mortal` (dead by time at 50), `kept` and `schedule`.
fn queue() -> Queue {
    let mut queue = Queue::new((1, 2));
    for name in ["kept", "dead"] {
        let keep = Some(span(1_000));
        add(&mut queue, 0, &Add { keep, ..plain(name) });
        queue.apply(&told(0), &Pop::ONE);
        let claim = Claim { id: id(name), lease: None };
        if name == "kept" {
            queue.apply(&told(0), &Finish { claims: Claims::from_slice(&[claim]) });
        } else {
            queue.apply(&told(0), &Bury { claim, reason: None });
        }
    }
    add(&mut queue, 0, &plain("ready"));
    add(&mut queue, 0, &Add { ttl: Some(span(50)), ..plain("mortal") });
    let schedule = rounds::schedule_of(&["every=10"], None);
    add(&mut queue, 0, &Add { schedule, ..plain("schedule") });
    add(&mut queue, 0, &Add { edges: Some(Box::new(on_hold())), ..plain("h") });
    assert_eq!((queue.counts().dead, queue.counts().done, queue.counts().held), (1, 1, 1));
    queue
}

/// Each queue is also loaded without its own edges.
fn loaded_with(all: &[Hostile]) -> Result<Queue, RecordError> {
    let whole = queue();
    let mut loaded = Queue::new((3, 4));
    for job in whole.jobs() {
        loaded.load(job.id.bytes(), job.body, &JobRecord::of(&job)).unwrap();
    }
    loaded.load_edges(&records(all)).map(|()| loaded)
}

fn fault(all: &[Hostile]) -> RecordError {
    let found = loaded_with(all).map(|_| ());
    found.expect_err("it is refused")
}

#[test]
fn an_edge_that_is_never_settled_is_refused() {
    let run = |hostile: Hostile| Hostile { on_dead: 1, ..hostile };
    for impossible in [
        of("h", vec![edge("kept", OPEN)]),
        of("h", vec![edge("schedule", OPEN)]),
        of("h", vec![edge("h", OPEN)]),
        of("h", vec![edge("nowhere", OPEN)]),
        run(of("h", vec![edge("dead", OPEN)])),
        run(of("h", vec![edge("dead", OPEN_OF_DEAD)])),
        run(of("h", vec![edge("mortal", OPEN_OF_DEAD)])),
        // And what makes held-behind-dead wrong.
        of("h", vec![edge("ready", OPEN_OF_DEAD)]),
        of("h", vec![edge("dead", OPEN)]),
        // Held for nothing.
        of("h", vec![]),
        of("h", vec![edge("ready", DONE)]),
        // A job with a schedule waits for none.
        of("schedule", vec![edge("ready", DONE)]),
        // What goes on, and hasn't begun.
        Hostile { is_first: false, ..of("h", vec![edge("ready", OPEN)]) },
    ] {
        let good = of("h", vec![edge("ready", OPEN)]);
        assert_eq!(fault(std::slice::from_ref(&impossible)), RecordError::Impossible);
        if impossible.is_first {
            assert_eq!(fault(&[good, impossible]), RecordError::Impossible);
        }
    }
}

/// The queue loads what it saves.
fn reloads(queue: &mut Queue) {
    queue.check_edges();
    let mut loaded = Queue::new((5, 6));
    for job in queue.jobs() {
        loaded.load(job.id.bytes(), job.body, &JobRecord::of(&job)).unwrap();
    }
    let edges: Vec<EdgesRecord> = queue.edge_records().collect();
    loaded.load_edges(&edges).unwrap();
    loaded.check_dependents(queue.record().edges_len()).unwrap();
    assert!(loaded.jobs().eq(queue.jobs()));
    assert_eq!(loaded.edge_records().collect::<Vec<_>>(), edges);
    loaded.check_edges();
}

#[test]
fn records_of_a_job_stand_behind_each_other() {
    let begun = Hostile { continues: true, ..of("h", vec![]) };
    let open = of("h", vec![edge("ready", OPEN)]);
    let other = of("dead", vec![edge("x", DONE)]);
    let rest = Hostile { is_first: false, ..open.clone() };
    for impossible in [
        vec![begun.clone(), other.clone()],
        vec![begun.clone(), open.clone()],
        vec![begun.clone(), Hostile { is_first: false, ..other.clone() }],
        vec![open.clone(), rest.clone()],
        vec![other.clone(), rest.clone()],
        // In the end, it waits for nothing.
        vec![begun.clone(), Hostile { is_first: false, ..of("h", vec![edge("x", DONE)]) }],
        vec![begun.clone(), Hostile { is_first: false, is_on_hold: true, ..of("h", vec![]) }],
    ] {
        assert_eq!(fault(&impossible), RecordError::Impossible);
    }
    // One whose rest is to come, or was cut off, waits for a command.
    for held in [vec![begun.clone(), rest], vec![begun], vec![open, other]] {
        reloads(&mut loaded_with(&held).unwrap());
    }
}

#[test]
fn edges_and_a_hold_are_of_a_held_job() {
    for name in ["ready", "kept"] {
        let hold = Hostile { is_on_hold: true, ..of(name, vec![]) };
        for impossible in [of(name, vec![edge("mortal", OPEN)]), hold] {
            assert_eq!(fault(&[impossible]), RecordError::Impossible, "{name}");
        }
    }
}

#[test]
fn a_held_job_without_edges_is_on_hold() {
    let mut queue = loaded_with(&[]).unwrap();
    assert_eq!(queue.check_dependents(0), Err(RecordError::Impossible), "a file is refused");
    reloads(&mut queue);
    let edges = NewEdges { before: vec![id("h")], ..NewEdges::default() };
    add(&mut queue, 0, &Add { edges: Some(Box::new(edges)), ..plain("first") });
    reloads(&mut queue);
    let resume = Resume::Jobs(Ids::from_slice(&[id("h")]));
    queue.apply(&told(0), &resume);
    reloads(&mut queue);
    assert_eq!(queue.counts().held, 1, "it waits for the other one");
}

#[test]
fn a_job_that_others_wait_for_is_replaced_by_one_that_ends() {
    for policy in ["HOLD", "RUN"] {
        let on_dead = u8::from(policy == "RUN");
        let mut queue =
            loaded_with(&[Hostile { on_dead, ..of("h", vec![edge("ready", OPEN)]) }]).unwrap();
        let record_of = |name: &str| JobRecord::of(&queue.get(id(name)).unwrap());
        let [kept, schedule, dead] = ["kept", "schedule", "dead"].map(record_of);
        for impossible in [kept, schedule] {
            let effect = Effect::Jobs(vec![(b"x", b"", dead.clone()), (b"ready", b"", impossible)]);
            let before = queue.record();
            assert_eq!(queue.apply(&told(0), &effect), Err(RecordError::Impossible));
            assert_eq!((queue.record(), queue.get(id("x"))), (before, None), "nothing is changed");
        }
        let effect = Effect::Jobs(vec![(b"ready", b"", dead)]);
        assert_eq!(queue.apply(&told(0), &effect), Ok(()));
        assert_eq!(queue.counts().held, usize::from(policy == "HOLD"));
        reloads(&mut queue);
    }
}

/// What is pending: its kind, and the id of its job.
fn pending(all: &[(u8, &str)]) -> Vec<PendingRecord> {
    let fields = all.iter().map(|(kind, id)| (*kind, ByteBuf::from(*id), None::<ByteBuf>, 5));
    let bytes = rmp_serde::to_vec(&fields.collect::<Vec<_>>()).unwrap();
    Vec::<PendingRecord>::decode(&bytes).unwrap()
}

fn edge_of(place: u64) -> HostileEdge {
    (ByteBuf::from(place.to_be_bytes()), PENDING, None)
}

#[test]
fn what_is_pending_and_can_not_be_is_refused() {
    let [died, gone, mark, unmark]: [u8; 4] = [1, 2, 3, 4];
    for impossible in [
        &[(mark, "nowhere")][..],
        &[(mark, "ready")],
        &[(mark, "kept")],
        &[(unmark, "schedule")],
        &[(unmark, "dead")],
        &[(mark, "dead"), (mark, "dead")],
        &[(gone, "x"), (mark, "kept")],
    ] {
        let mut queue = queue();
        let before = queue.record().encode();
        assert_eq!(queue.load_pending(&pending(impossible)), Err(RecordError::Impossible));
        assert_eq!(queue.record().encode(), before);
    }
    assert_eq!(queue().load_pending(&pending(&[(died, "")])), Err(RecordError::Id));
    let mut queue = queue();
    queue.load_pending(&pending(&[(died, "x"), (gone, "y"), (mark, "dead")])).unwrap();
    for (place, on_dead) in [(0, 0), (2, 0), (2, 1), (3, 0), (u64::MAX, 1)] {
        let hostile = Hostile { on_dead, ..of("h", vec![edge_of(place)]) };
        assert_eq!(queue.load_edges(&records(&[hostile])), Err(RecordError::Impossible));
    }
    let mut short = edge_of(1);
    short.0.pop();
    assert_eq!(queue.load_edges(&records(&[of("h", vec![short])])), Err(RecordError::Impossible));
    // What can be is carried out.
    let edges = vec![edge_of(1), edge("dead", OPEN)];
    queue.load_edges(&records(&[of("h", edges)])).unwrap();
    queue.check_edges();
    assert_eq!(queue.apply(&told(9), &Settle { ids: Ids::new() }), Affected(1));
    queue.check_edges();
    assert_eq!((queue.has_pending(), queue.counts().held), (false, 0));
}

#[test]
fn records_with_one_that_is_refused_change_nothing() {
    let mut queue = queue();
    let before: Vec<EdgesRecord> = queue.edge_records().collect();
    let all = [of("h", vec![edge("ready", OPEN)]), of("h", vec![edge("kept", OPEN)])];
    assert_eq!(queue.load_edges(&records(&all)), Err(RecordError::Impossible));
    assert_eq!(queue.edge_records().collect::<Vec<_>>(), before);
    queue.check_edges();
}

#[test]
fn edges_that_no_queue_writes_and_that_do_no_harm_are_taken() {
    let queue = loaded_with(&[of("h", vec![edge("ready", OPEN), edge("ready", OPEN)])]);
    let mut queue = queue.unwrap();
    queue.check_edges();
    queue.apply(&told(0), &Pop { mode: Mode::NoAck, ..Pop::ONE });
    assert_eq!(queue.counts().held, 0);
    queue.check_edges();
    // It was dead when the log said so, and isn't after the clock was set back.
    let mut queue = loaded_with(&[of("h", vec![edge("mortal", OPEN_OF_DEAD)])]).unwrap();
    assert_eq!(queue.held_behind_dead(), 1);
    delete(&mut queue, "mortal");
    assert_eq!((queue.counts().held, queue.held_behind_dead()), (0, 0));
}

#[test]
fn further_edges_come_right_behind_the_first() {
    // x is dead, and its edges are still to be marked: those that are come first.
    let of_dead = of("h", vec![edge("dead", OPEN_OF_DEAD)]);
    let mut queue = loaded_with(&[]).unwrap();
    add(&mut queue, 0, &Add { edges: Some(Box::new(on_hold())), ..plain("before") });
    queue.load_pending(&pending(&[(3, "dead")])).unwrap();
    let begun = Hostile { is_on_hold: true, ..of("before", vec![edge("x", DONE)]) };
    queue.load_edges(&records(&[begun, of_dead])).unwrap();
    let rest = Hostile { is_first: false, ..of("before", vec![edge("dead", OPEN)]) };
    assert_eq!(queue.load_edges(&records(&[rest])), Err(RecordError::Impossible));
}

#[test]
fn a_death_counts_for_those_that_wait_for_it_whatever_others_know_already() {
    let known = of("h", vec![edge("mortal", OPEN_OF_DEAD)]);
    let waits = Hostile { on_dead: 1, ..of("g", vec![edge("mortal", OPEN)]) };
    for all in [[known.clone(), waits.clone()], [waits, known]] {
        let mut queue = queue();
        add(&mut queue, 0, &Add { edges: Some(Box::new(on_hold())), ..plain("g") });
        queue.load_edges(&records(&all)).unwrap();
        assert_eq!(queue.settles_at(), Some(at(50)));
        let ids = queue.ids_of(&queue.to_settle(at(50), 9));
        queue.apply(&told(50), &Settle { ids: ids.ids() });
        assert_eq!(queue.counts().held, 1, "the other one");
        queue.check_edges();
    }
}

#[test]
fn a_job_of_a_file_has_no_more_edges_than_others() {
    let many = |count| (0..count).map(|_| edge("ready", OPEN)).collect::<Vec<_>>();
    assert!(loaded_with(&[of("h", many(EDGES_MAX))]).is_ok());
    assert_eq!(fault(&[of("h", many(EDGES_MAX + 1))]), RecordError::TooManyEdges);
    let settled = (0..=EDGES_MAX).map(|_| edge("x", DONE)).collect();
    assert_eq!(fault(&[of("kept", settled)]), RecordError::TooManyEdges);
    let one_more = of("mortal", many(1));
    assert_eq!(fault(&[of("h", many(EDGES_MAX)), one_more]), RecordError::TooManyEdges);
    // Also where they came before.
    let mut queue = loaded_with(&[of("h", many(EDGES_MAX))]).unwrap();
    let next = Hostile { is_first: false, ..of("h", many(1)) };
    assert_eq!(queue.load_edges(&records(&[next])), Err(RecordError::TooManyEdges));
    let next = of("mortal", many(1));
    assert_eq!(queue.load_edges(&records(&[next])), Err(RecordError::TooManyEdges));
}

#[test]
fn records_of_one_job_add_up() {
    let first = of("h", vec![edge("ready", OPEN)]);
    let first = Hostile { continues: true, ..first };
    let next = Hostile {
        is_first: false,
        continues: true,
        ..of("h", vec![edge("mortal", OPEN), edge("x", DONE)])
    };
    let mut all = vec![first];
    all.extend(std::iter::repeat_n(next, (EDGES_MAX - 1) / 2));
    if let Some(last) = all.last_mut() {
        last.continues = false;
    }
    let queue = loaded_with(&all).unwrap();
    queue.check_edges();
    let record = queue.edge_records().next().unwrap();
    assert_eq!(queue.edge_records().count(), 1);
    assert_eq!(record.edges(|id| queue.store.find(id)).unwrap().len(), EDGES_MAX - 1);
}
