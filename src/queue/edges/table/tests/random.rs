//! Random changes, beside lists that are searched from the beginning.

use proptest::prelude::*;

use super::*;
use crate::queue::edges::edge::{End, OnDead};
use crate::queue::value::time::Millis;

/// Few, so that they meet.
const JOBS: Slot = 6;

#[derive(Clone, Debug)]
enum Change {
    Add { slot: Slot, edges: BTreeMap<Slot, bool>, is_on_hold: bool },
    AddEdge { dependent: Slot, from: Slot, is_dead: bool },
    SettleAll(Slot),
    SettleSome { from: Slot, every: usize },
    Forget(Slot),
    DropOpen(Slot),
    LeaveHold(Slot),
    EndHold(Slot),
    Move { from: Slot, to: Slot },
    Note { from: Slot, is_dead: bool },
    Death { from: Slot, at: Option<u64> },
    Copy,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum SlowEdge {
    Open { from: Slot, is_dead: bool },
    Settled,
}

#[derive(Clone, Debug)]
struct SlowJob {
    slot: Slot,
    edges: Vec<SlowEdge>,
    is_on_hold: bool,
    is_held: bool,
}

impl SlowJob {
    fn open(&self) -> impl Iterator<Item = (Slot, bool)> + '_ {
        self.edges.iter().filter_map(|edge| match edge {
            SlowEdge::Open { from, is_dead } => Some((*from, *is_dead)),
            SlowEdge::Settled => None,
        })
    }
}

/// The dependents in the order in which they were added.
#[derive(Default)]
struct Slow {
    jobs: Vec<SlowJob>,
    deaths: BTreeMap<Slot, Time>,
}

impl Slow {
    fn edges_from(&self, from: Slot) -> Vec<(Slot, u32)> {
        let is_from =
            |edge: &SlowEdge| matches!(edge, SlowEdge::Open { from: it, .. } if *it == from);
        let of_job = |job: &SlowJob| {
            let places = (0..).zip(&job.edges).filter(|(_, edge)| is_from(edge));
            places.map(|(place, _)| (job.slot, place)).collect::<Vec<_>>()
        };
        self.jobs.iter().flat_map(of_job).collect()
    }

    fn job(&mut self, slot: Slot) -> Option<&mut SlowJob> {
        self.jobs.iter_mut().find(|job| job.slot == slot)
    }

    fn edge(&mut self, (slot, place): (Slot, u32)) -> &mut SlowEdge {
        &mut self.job(slot).unwrap().edges[place as usize]
    }

    fn behind_dead(&self) -> usize {
        let is_behind = |job: &&SlowJob| job.is_held && job.open().any(|(_, is_dead)| is_dead);
        self.jobs.iter().filter(is_behind).count()
    }

    /// A death is of interest while a job waits.
    fn settle_down(&mut self) {
        let waits: BTreeSet<Slot> =
            self.jobs.iter().flat_map(|job| job.open()).map(|(from, _)| from).collect();
        self.deaths.retain(|slot, _| waits.contains(slot));
    }

    fn take_released(&mut self) -> Vec<Slot> {
        let mut released = Vec::new();
        for job in &mut self.jobs {
            if job.is_held && !job.is_on_hold && job.open().next().is_none() {
                job.is_held = false;
                released.push(job.slot);
            }
        }
        released
    }
}

fn open(from: Slot, is_dead: bool) -> Edge {
    Edge::Open { from, is_dead }
}

fn ending() -> Arc<Ending> {
    Arc::new(Ending { id: b"it"[..].into(), end: End::Done, what: Some(b"result"[..].into()) })
}

fn settle(edges: &mut Edges, slow: &mut Slow, from: Slot, some: &[EdgeRef]) {
    let ending = ending();
    for edge in some {
        edges.settle(from, edge, &ending);
        *slow.edge((edge.dependent, edge.index)) = SlowEdge::Settled;
    }
}

fn forget(edges: &mut Edges, slow: &mut Slow, slot: Slot) {
    let was_there = edges.forget_dependent(slot).is_some();
    assert_eq!(was_there, slow.job(slot).is_some());
    slow.jobs.retain(|job| job.slot != slot);
    slow.settle_down();
}

fn make(edges: &mut Edges, slow: &mut Slow, change: &Change) {
    match change {
        Change::Add { slot, edges: named, is_on_hold } => {
            forget(edges, slow, *slot);
            let all = named.iter().map(|(from, is_dead)| open(*from, *is_dead)).collect();
            let due = Due::In(Millis::ZERO);
            edges.add_dependent(*slot, Dependent::new(all, OnDead::Hold, *is_on_hold, due));
            let all = named
                .iter()
                .map(|(from, is_dead)| SlowEdge::Open { from: *from, is_dead: *is_dead });
            let (all, is_on_hold) = (all.collect(), *is_on_hold);
            let is_held = is_on_hold || !named.is_empty();
            slow.jobs.push(SlowJob { slot: *slot, edges: all, is_on_hold, is_held });
        }
        // Only to a held job, which doesn't know that one yet.
        Change::AddEdge { dependent, from, .. }
            if slow.edges_from(*from).iter().any(|(slot, _)| slot == dependent)
                || slow.job(*dependent).is_some_and(|job| !job.is_held) => {}
        Change::AddEdge { dependent, from, is_dead } => {
            let is_there = edges.add_edge(*dependent, open(*from, *is_dead));
            assert_eq!(is_there, slow.job(*dependent).is_some());
            let edge = SlowEdge::Open { from: *from, is_dead: *is_dead };
            slow.job(*dependent).into_iter().for_each(|job| job.edges.push(edge));
        }
        Change::SettleAll(from) => {
            let all = edges.take_edges_from(*from);
            settle(edges, slow, *from, &all);
        }
        Change::SettleSome { from, every } => {
            let some: Vec<_> = edges.edges_from(*from).into_iter().step_by(*every).collect();
            settle(edges, slow, *from, &some);
        }
        Change::Forget(slot) => forget(edges, slow, *slot),
        Change::DropOpen(slot) => {
            edges.drop_open(*slot);
            if let Some(job) = slow.job(*slot) {
                job.edges.retain(|edge| *edge == SlowEdge::Settled);
                (job.is_held, job.is_on_hold) = (false, false);
            }
            // One without edges that wasn't held is left as it is.
            let is_known = edges.dependent(*slot).is_some();
            slow.jobs.retain(|job| job.slot != *slot || !job.edges.is_empty() || is_known);
        }
        Change::LeaveHold(slot) => {
            edges.leave_hold(*slot);
            slow.job(*slot).into_iter().for_each(|job| job.is_held = false);
        }
        Change::EndHold(slot) => {
            let was_on_hold = slow.job(*slot).is_some_and(|job| job.is_on_hold);
            assert_eq!(edges.end_hold(*slot), was_on_hold);
            slow.job(*slot).into_iter().for_each(|job| job.is_on_hold = false);
        }
        // A job that replaces another is new.
        Change::Move { to, .. } if !slow.edges_from(*to).is_empty() => (),
        Change::Move { from, to } => {
            let moved = slow.edges_from(*from);
            edges.move_predecessor(*from, *to);
            for place in moved {
                if let SlowEdge::Open { from, .. } = slow.edge(place) {
                    *from = *to;
                }
            }
            slow.deaths.remove(from);
        }
        Change::Note { from, is_dead } => {
            edges.edges_from(*from).iter().for_each(|edge| edges.note_life(*from, edge, *is_dead));
            for place in slow.edges_from(*from) {
                *slow.edge(place) = SlowEdge::Open { from: *from, is_dead: *is_dead };
            }
        }
        Change::Death { from, at } => {
            let at = at.map(|at| Time::new(at).unwrap());
            edges.set_death(*from, at);
            slow.deaths.remove(from);
            at.map(|at| slow.deaths.insert(*from, at));
        }
        Change::Copy => *edges = edges.clone(),
    }
    slow.settle_down();
}

fn compare(edges: &Edges, slow: &mut Slow) {
    for from in 0..JOBS {
        let expected = slow.edges_from(from);
        let found: Vec<_> =
            edges.edges_from(from).iter().map(|edge| (edge.dependent, edge.index)).collect();
        assert_eq!(found, expected, "edges from {from}");
        assert_eq!(edges.waiting_for(from), expected.len());
        let is_dead = |place: &&(Slot, u32)| {
            matches!(slow.edge(**place), SlowEdge::Open { is_dead: true, .. })
        };
        assert_eq!(edges.waiting_for_dead(from), expected.iter().filter(is_dead).count());
    }
    let order: Vec<Slot> = edges.in_order().into_iter().map(|(slot, _)| slot).collect();
    assert_eq!(order, slow.jobs.iter().map(|job| job.slot).collect::<Vec<_>>());
    for job in &slow.jobs {
        let found = edges.dependent(job.slot).unwrap();
        let all: Vec<SlowEdge> = found
            .edges()
            .iter()
            .map(|edge| match edge.from() {
                Some((from, is_dead)) => SlowEdge::Open { from, is_dead },
                None => SlowEdge::Settled,
            })
            .collect();
        assert_eq!(all, job.edges);
        assert_eq!(found.open() as usize, job.open().count());
        assert_eq!((found.is_held(), found.is_on_hold()), (job.is_held, job.is_on_hold));
    }
    assert_eq!(edges.behind_dead(), slow.behind_dead());
    let deaths: BTreeSet<(Time, Slot)> =
        slow.deaths.iter().map(|(slot, at)| (*at, *slot)).collect();
    assert_eq!(edges.deaths, deaths);
    assert_eq!(edges.next_death(), deaths.first().map(|(at, _)| *at));
    assert_eq!(edges.bytes, edges.counted_bytes());
}

fn change() -> impl Strategy<Value = Change> {
    let slot = || 0..JOBS;
    prop_oneof![
        4 => (slot(), prop::collection::btree_map(slot(), any::<bool>(), 0..4), any::<bool>())
            .prop_map(|(slot, edges, is_on_hold)| Change::Add { slot, edges, is_on_hold }),
        3 => (slot(), slot(), any::<bool>())
            .prop_map(|(dependent, from, is_dead)| Change::AddEdge { dependent, from, is_dead }),
        1 => slot().prop_map(Change::SettleAll),
        1 => (slot(), 1..4usize).prop_map(|(from, every)| Change::SettleSome { from, every }),
        1 => slot().prop_map(Change::Forget),
        1 => slot().prop_map(Change::DropOpen),
        1 => slot().prop_map(Change::LeaveHold),
        1 => slot().prop_map(Change::EndHold),
        1 => (slot(), slot()).prop_map(|(from, to)| Change::Move { from, to }),
        2 => (slot(), any::<bool>()).prop_map(|(from, is_dead)| Change::Note { from, is_dead }),
        2 => (slot(), prop::option::of(0..5u64)).prop_map(|(from, at)| Change::Death { from, at }),
        1 => Just(Change::Copy),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn edges_are_what_a_slow_list_says(changes in prop::collection::vec(change(), 0..60)) {
        let (mut edges, mut slow) = (Edges::default(), Slow::default());
        for change in &changes {
            make(&mut edges, &mut slow, change);
            let mut released: Vec<Slot> =
                std::iter::from_fn(|| edges.next_released()).map(|(slot, _)| slot).collect();
            let mut expected = slow.take_released();
            released.sort();
            expected.sort();
            prop_assert_eq!(released, expected);
            compare(&edges, &mut slow);
        }
        (0..JOBS).for_each(|slot| forget(&mut edges, &mut slow, slot));
        prop_assert!(edges.is_empty());
        prop_assert_eq!((edges.bytes, edges.behind_dead, edges.deaths.len()), (0, 0, 0));
        prop_assert!(edges.predecessors.is_empty());
    }
}
