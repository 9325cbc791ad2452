//! Random changes, beside lists that are searched from the beginning.

use proptest::prelude::*;

use super::*;
use crate::queue::edges::edge::EndKind;
use crate::queue::edges::pending::{Step, Which};
use crate::queue::value::due::Due;
use crate::queue::value::time::Millis;

/// Few, so that they meet.
const JOBS: Slot = 6;

#[derive(Clone, Debug)]
enum Change {
    Add { slot: Slot, edges: BTreeSet<Slot>, runs: bool, is_on_hold: bool },
    AddEdges { from: Slot, dependents: BTreeSet<Slot> },
    EndKind { from: Slot, is_gone: bool },
    Note { from: Slot, is_dead: bool },
    Steps(usize),
    Forget(Slot),
    DropOpen(Slot),
    LeaveHold(Slot),
    EndHold(Slot),
    Move { from: Slot, to: Slot },
    Death { from: Slot, at: Option<u64> },
    Copy,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum SlowEdge {
    Open {
        from: Slot,
        is_marked: bool,
    },
    /// As the end with this number says, which is still to be carried out.
    Pending(u64, bool),
    Settled(EndKind),
}

#[derive(Clone, Debug)]
struct SlowJob {
    slot: Slot,
    edges: Vec<SlowEdge>,
    runs: bool,
    is_on_hold: bool,
    is_held: bool,
}

#[derive(Clone, Debug, PartialEq)]
enum SlowPending {
    EndKind(u64, EndKind),
    /// Marks of edges from this job: as `marks` says.
    Mark(Slot),
    /// The job has ended meanwhile.
    Nothing,
}

/// The dependents in the order in which they were added.
#[derive(Default)]
struct Slow {
    jobs: Vec<SlowJob>,
    deaths: BTreeMap<Slot, Time>,
    pending: VecDeque<SlowPending>,
    /// Whether each job is known to be dead.
    marks: BTreeMap<Slot, bool>,
    ends: u64,
}

fn waits(edge: &SlowEdge) -> bool {
    !matches!(edge, SlowEdge::Settled(_))
}

fn is_from(edge: &SlowEdge, slot: Slot) -> bool {
    matches!(edge, SlowEdge::Open { from, .. } if *from == slot)
}

impl Slow {
    fn job(&mut self, slot: Slot) -> Option<&mut SlowJob> {
        self.jobs.iter_mut().find(|job| job.slot == slot)
    }

    fn waiting_for(&self, from: Slot) -> BTreeSet<Slot> {
        let waits = |job: &&SlowJob| job.edges.iter().any(|edge| is_from(edge, from));
        self.jobs.iter().filter(waits).map(|job| job.slot).collect()
    }

    fn behind_dead(&self) -> usize {
        let is_behind = |job: &&SlowJob| job.is_held && self.marks_in(job) > 0;
        self.jobs.iter().filter(is_behind).count()
    }

    fn marks_in(&self, job: &SlowJob) -> usize {
        let is_marked = |edge: &&SlowEdge| {
            matches!(edge, SlowEdge::Open { is_marked: true, .. } | SlowEdge::Pending(_, true))
        };
        job.edges.iter().filter(is_marked).count()
    }

    /// Marked edges with HOLD from this job, in order.
    fn marks_of(&self, from: Slot) -> Vec<bool> {
        let held = self.jobs.iter().filter(|job| !job.runs);
        let edges = held.flat_map(|job| &job.edges);
        let mark = |edge: &SlowEdge| match edge {
            SlowEdge::Open { from: it, is_marked } if *it == from => Some(*is_marked),
            SlowEdge::Open { .. } | SlowEdge::Pending(..) | SlowEdge::Settled(_) => None,
        };
        edges.filter_map(mark).collect()
    }

    /// A death is of interest while a job waits; and so is what is known of it, or while it is
    /// pending.
    fn settle_down(&mut self) {
        let waited_for: BTreeSet<Slot> =
            (0..JOBS).filter(|slot| !self.waiting_for(*slot).is_empty()).collect();
        self.deaths.retain(|slot, _| waited_for.contains(slot));
        for slot in 0..JOBS {
            let is_pending = self.pending.contains(&SlowPending::Mark(slot));
            if self.marks_of(slot).is_empty() && !is_pending {
                self.marks.remove(&slot);
            }
        }
    }

    fn mark_one(&mut self, from: Slot) -> bool {
        let is_dead = self.marks.get(&from).copied().unwrap_or(false);
        let marks = self.marks_of(from);
        let place = match is_dead {
            true => marks.iter().position(|is_marked| !is_marked),
            false => marks.iter().rposition(|is_marked| *is_marked),
        };
        let Some(place) = place else {
            return false;
        };
        let edges = self.jobs.iter_mut().filter(|job| !job.runs).flat_map(|job| &mut job.edges);
        let edge = edges.filter(|edge| is_from(edge, from)).nth(place).unwrap();
        *edge = SlowEdge::Open { from, is_marked: is_dead };
        true
    }

    /// What a step comes to: the job that can't go on, or may.
    fn step(&mut self) -> Option<(Slot, bool)> {
        match self.pending.front().cloned()? {
            SlowPending::Mark(from) => {
                if !self.mark_one(from) {
                    self.pending.pop_front();
                }
            }
            SlowPending::Nothing => {
                self.pending.pop_front();
            }
            SlowPending::EndKind(number, end) => {
                let is_it =
                    |edge: &SlowEdge| matches!(edge, SlowEdge::Pending(it, _) if *it == number);
                let Some(job) = self.jobs.iter_mut().find(|job| job.edges.iter().any(is_it)) else {
                    self.pending.pop_front();
                    return None;
                };
                let edge = job.edges.iter_mut().find(|edge| is_it(edge)).unwrap();
                *edge = SlowEdge::Settled(end);
                let is_free = !job.is_on_hold && !job.edges.iter().any(waits);
                if job.is_held && end == EndKind::Gone && !job.runs {
                    return Some((job.slot, true));
                }
                return (job.is_held && is_free).then_some((job.slot, false));
            }
        }
        None
    }

    fn end(&mut self, from: Slot, end: EndKind) {
        self.ends += 1;
        let (mut number, mut is_any) = (self.ends, false);
        for job in self.jobs.iter_mut().filter(|job| end != EndKind::Dead || job.runs) {
            for edge in job.edges.iter_mut().filter(|edge| is_from(edge, from)) {
                let is_marked = matches!(edge, SlowEdge::Open { is_marked: true, .. });
                *edge = SlowEdge::Pending(number, is_marked);
                is_any = true;
            }
        }
        if is_any {
            self.pending.push_back(SlowPending::EndKind(number, end));
            number += 1;
        }
        self.ends = number;
        if end != EndKind::Dead {
            for pending in self.pending.iter_mut().filter(|it| **it == SlowPending::Mark(from)) {
                *pending = SlowPending::Nothing;
            }
            self.marks.remove(&from);
        }
    }
}

fn ending(end: EndKind) -> PredecessorEnd {
    PredecessorEnd { id: b"it"[..].into(), end, what: Some(b"result"[..].into()) }
}

fn forget(edges: &mut Edges, slow: &mut Slow, slot: Slot) {
    let was_there = edges.forget_dependent(slot).is_some();
    assert_eq!(was_there, slow.job(slot).is_some());
    slow.jobs.retain(|job| job.slot != slot);
    slow.settle_down();
}

fn steps(edges: &mut Edges, slow: &mut Slow, count: usize) {
    for _ in 0..count {
        let expected = slow.step();
        match edges.step() {
            None | Some(Step::Edge) => assert_eq!(expected, None),
            Some(Step::LastEdge(slot)) => {
                assert_eq!(expected, Some((slot, false)));
                assert!(edges.let_go_if_free(slot).is_some());
                slow.job(slot).unwrap().is_held = false;
            }
            Some(Step::Orphan { slot, of, .. }) => {
                assert_eq!(expected, Some((slot, true)));
                assert_eq!(*of, ending(EndKind::Gone));
                edges.leave_hold(slot);
                slow.job(slot).unwrap().is_held = false;
            }
        }
        slow.settle_down();
    }
}

fn make(edges: &mut Edges, slow: &mut Slow, change: &Change) {
    match change {
        Change::Add { slot, edges: named, runs, is_on_hold } => {
            forget(edges, slow, *slot);
            let all = named.iter().map(|from| NewEdge::Open(*from)).collect();
            let on_dead = if *runs { OnDead::Run } else { OnDead::Hold };
            let due = Due::In(Millis::ZERO);
            let new = NewDependent::of_new_job(all, on_dead, *is_on_hold, due);
            edges.add_dependent(*slot, new);
            let all = named.iter().map(|from| SlowEdge::Open { from: *from, is_marked: false });
            let is_held = *is_on_hold || !named.is_empty();
            let (slot, runs, is_on_hold) = (*slot, *runs, *is_on_hold);
            slow.jobs.push(SlowJob { slot, edges: all.collect(), runs, is_on_hold, is_held });
            named.iter().for_each(|from| note(edges, slow, *from, false));
        }
        // Only to held jobs, which don't know that one yet.
        Change::AddEdges { from, dependents } => {
            let known = edges.dependents_of(*from);
            assert_eq!(known, slow.waiting_for(*from));
            let is_new = |slot: &&Slot| {
                let held = slow.jobs.iter().find(|job| job.slot == **slot && job.is_held);
                held.is_some() && !known.contains(slot)
            };
            let new: Vec<Slot> = dependents.iter().filter(is_new).copied().rev().collect();
            assert!(edges.add_edges_from(*from, &new));
            for slot in new {
                let job = slow.jobs.iter().position(|job| job.slot == slot).unwrap();
                let behind = slow.jobs[job + 1..].iter().filter(|job| !job.runs);
                // The marked ones are the first.
                let is_marked = !slow.jobs[job].runs
                    && behind.flat_map(|job| &job.edges).any(|edge| {
                        matches!(edge, SlowEdge::Open { from: it, is_marked: true } if it == from)
                    });
                slow.jobs[job].edges.push(SlowEdge::Open { from: *from, is_marked });
            }
            note(edges, slow, *from, false);
        }
        Change::EndKind { from, is_gone } => {
            let end = if *is_gone { EndKind::Gone } else { EndKind::Done };
            edges.end(*from, Which::All, ending(end), Time::ZERO);
            slow.end(*from, end);
        }
        Change::Note { from, is_dead } => {
            if *is_dead {
                edges.end(*from, Which::Run, ending(EndKind::Dead), Time::ZERO);
                slow.end(*from, EndKind::Dead);
            }
            note(edges, slow, *from, *is_dead);
        }
        Change::Steps(count) => steps(edges, slow, *count),
        Change::Forget(slot) => forget(edges, slow, *slot),
        Change::DropOpen(slot) => {
            edges.drop_open(*slot);
            let ends: BTreeMap<u64, EndKind> = slow
                .pending
                .iter()
                .filter_map(|pending| match pending {
                    SlowPending::EndKind(number, end) => Some((*number, *end)),
                    SlowPending::Mark(_) | SlowPending::Nothing => None,
                })
                .collect();
            if let Some(job) = slow.job(*slot) {
                job.edges.retain(|edge| !matches!(edge, SlowEdge::Open { .. }));
                for edge in &mut job.edges {
                    if let SlowEdge::Pending(number, _) = edge {
                        *edge = SlowEdge::Settled(ends[number]);
                    }
                }
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
            assert_eq!(edges.end_hold(*slot, Time::ZERO), was_on_hold);
            slow.job(*slot).into_iter().for_each(|job| job.is_on_hold = false);
        }
        // A job that replaces another is new.
        Change::Move { to, .. }
            if !slow.waiting_for(*to).is_empty() || slow.marks.contains_key(to) => {}
        Change::Move { from, to } => {
            edges.move_predecessor(*from, *to);
            for edge in slow.jobs.iter_mut().flat_map(|job| &mut job.edges) {
                if let SlowEdge::Open { from: it, .. } = edge {
                    *it = if it == from { *to } else { *it };
                }
            }
            slow.deaths.remove(from);
            if let Some(is_dead) = slow.marks.remove(from) {
                slow.marks.insert(*to, is_dead);
            }
            for pending in slow.pending.iter_mut().filter(|it| **it == SlowPending::Mark(*from)) {
                *pending = SlowPending::Mark(*to);
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

/// What a queue does whenever a job that others wait for has changed.
fn note(edges: &mut Edges, slow: &mut Slow, from: Slot, is_dead: bool) {
    edges.record_life(from, is_dead);
    let marks = slow.marks_of(from);
    let is_pending = slow.pending.contains(&SlowPending::Mark(from));
    if !marks.is_empty() || is_pending {
        slow.marks.insert(from, is_dead);
        if !is_pending && marks.iter().any(|is_marked| *is_marked != is_dead) {
            slow.pending.push_back(SlowPending::Mark(from));
        }
    }
}

fn compare(edges: &Edges, slow: &Slow) {
    for from in 0..JOBS {
        let expected = slow.waiting_for(from);
        assert_eq!(edges.dependents_of(from), expected, "edges from {from}");
        assert_eq!(edges.waiting_for(from), expected.len());
    }
    let order: Vec<Slot> = edges.in_order().into_iter().map(|(slot, _)| slot).collect();
    assert_eq!(order, slow.jobs.iter().map(|job| job.slot).collect::<Vec<_>>());
    for job in &slow.jobs {
        let found = edges.dependent(job.slot).unwrap();
        let all = edges.edges_of(found).zip(&job.edges).map(|(edge, expected)| match edge {
            EdgeSight::Waits { from, is_marked } => SlowEdge::Open { from, is_marked },
            // Which one is seen by the order in which they are carried out.
            EdgeSight::Pending { is_marked, .. } => match expected {
                SlowEdge::Pending(number, _) => SlowEdge::Pending(*number, is_marked),
                SlowEdge::Open { .. } | SlowEdge::Settled(_) => SlowEdge::Pending(0, is_marked),
            },
            EdgeSight::Settled(ending) => SlowEdge::Settled(ending.end),
        });
        assert_eq!(all.collect::<Vec<_>>(), job.edges);
        assert_eq!(found.edges_len(), job.edges.len());
        assert_eq!(found.open() as usize, job.edges.iter().filter(|edge| waits(edge)).count());
        assert_eq!((found.is_held(), found.is_on_hold()), (job.is_held, job.is_on_hold));
    }
    assert_eq!(edges.behind_dead(), slow.behind_dead());
    assert_eq!(edges.pending_len(), slow.pending.len());
    let deaths: BTreeSet<(Time, Slot)> =
        slow.deaths.iter().map(|(slot, at)| (*at, *slot)).collect();
    assert_eq!(edges.deaths, deaths);
    assert_eq!(edges.next_death(), deaths.first().map(|(at, _)| *at));
    edges.check_lists();
}

fn play(changes: &[Change]) {
    let (mut edges, mut slow) = (Edges::default(), Slow::default());
    for change in changes {
        make(&mut edges, &mut slow, change);
        while let Some((slot, _)) = edges.next_freed() {
            let job = slow.job(slot).unwrap();
            assert!(job.is_held && !job.is_on_hold && !job.edges.iter().any(waits));
            job.is_held = false;
        }
        compare(&edges, &slow);
    }
    (0..JOBS).for_each(|slot| forget(&mut edges, &mut slow, slot));
    steps(&mut edges, &mut slow, 1_000);
    assert!(edges.is_empty());
    assert_eq!((edges.bytes, edges.behind_dead, edges.deaths.len()), (0, 0, 0));
    assert!(edges.predecessors.is_empty());
    assert_eq!((edges.lists.bundles.len(), edges.lists.dependents.len()), (0, 0));
}

fn change() -> impl Strategy<Value = Change> {
    let slot = || 0..JOBS;
    let slots = || prop::collection::btree_set(slot(), 0..4);
    prop_oneof![
        4 => (slot(), slots(), any::<bool>(), any::<bool>()).prop_map(
            |(slot, edges, runs, is_on_hold)| Change::Add { slot, edges, runs, is_on_hold }
        ),
        3 => (slot(), slots()).prop_map(|(from, dependents)| Change::AddEdges { from, dependents }),
        3 => (slot(), any::<bool>()).prop_map(|(from, is_gone)| Change::EndKind { from, is_gone }),
        3 => (slot(), any::<bool>()).prop_map(|(from, is_dead)| Change::Note { from, is_dead }),
        4 => (1..4usize).prop_map(Change::Steps),
        1 => slot().prop_map(Change::Forget),
        1 => slot().prop_map(Change::DropOpen),
        1 => slot().prop_map(Change::LeaveHold),
        1 => slot().prop_map(Change::EndHold),
        1 => (slot(), slot()).prop_map(|(from, to)| Change::Move { from, to }),
        2 => (slot(), prop::option::of(0..5u64)).prop_map(|(from, at)| Change::Death { from, at }),
        1 => Just(Change::Copy),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn edges_are_what_a_slow_list_says(changes in prop::collection::vec(change(), 0..60)) {
        play(&changes);
    }
}

#[test]
fn a_death_is_forgotten_with_the_last_edge_while_a_mark_is_pending() {
    let add = |slot, runs| Change::Add { slot, edges: [1].into(), runs, is_on_hold: false };
    let death = Change::Note { from: 1, is_dead: true };
    play(&[
        add(5, false),
        Change::Death { from: 1, at: Some(0) },
        death.clone(),
        add(0, true),
        Change::DropOpen(5),
        death,
    ]);
}
