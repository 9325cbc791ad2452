//! A queue to which that is done, and what must hold all the same.

use dq::queue::*;

use super::{LoggedCircumstances, Step};
use crate::compare::check_sums;
use crate::file::{load, rewritten, save};

/// A queue that takes whatever comes.
pub struct Hostile {
    pub queue: Queue,
    told: Circumstances,
    horizon: Time,
}

impl Hostile {
    pub fn new(queue: Queue) -> Hostile {
        Hostile { queue, told: Circumstances::default(), horizon: Time::ZERO }
    }

    /// Plays a step. What is refused must have changed nothing.
    pub fn play(&mut self, told: &LoggedCircumstances) {
        // These are checked where entries are read.
        let lease_floor = Lease::new(told.floor.min(Lease::MAX.number() - 1));
        let defaults = Defaults {
            ttr: Millis::new(5).unwrap(),
            attempts: Attempts::new(3),
            ..Defaults::default()
        };
        self.told =
            Circumstances { now: Time::new(told.now).unwrap_or(Time::MAX), defaults, lease_floor };
        let before = self.queue.clone();
        let played = self.play_records(&told.step).unwrap_or_else(|| {
            self.play_of_users(&told.step);
            Ok(())
        });
        if played.is_err() {
            assert!(self.queue.jobs().eq(before.jobs()));
            assert_eq!(self.queue.record(), before.record());
            assert!(self.queue.edge_records().eq(before.edge_records()));
        }
        check_sums(&self.queue, self.horizon);
        // What was taken can be saved and loaded, and written to an AOF.
        for again in [load(&save(&self.queue), (3, 4)), rewritten(&self.queue, (5, 6))] {
            assert!(self.queue.jobs().eq(again.jobs()));
            assert!(self.queue.edge_records().eq(again.edge_records()));
            assert_eq!(self.queue.group_records(), again.group_records());
            assert_eq!(self.queue.record(), again.record());
        }
    }

    /// None, of what users do.
    fn play_records(&mut self, step: &Step) -> Option<Result<(), RecordError>> {
        Some(match step {
            Step::Put { id, record } => {
                self.apply(&record.0, |record| Effect::Jobs(vec![(&id.0, b"body", record)]))
            }
            Step::Queue(record) => self.apply(&record.0, Effect::Queue),
            Step::Groups(records) => self.apply(&records.0, Effect::Groups),
            Step::Edges(records) => Vec::<EdgesRecord>::decode(&records.0)
                .and_then(|records| self.queue.apply(&self.told, &Effect::Edges(records))),
            Step::Load { id, record } => JobRecord::decode(&record.0)
                .and_then(|record| self.queue.load(&id.0, b"body", &record)),
            Step::Jobs(block) => read_block(&block.0)
                .collect::<Result<_, _>>()
                .and_then(|jobs| self.take(&Effect::Jobs(jobs))),
            Step::Block(block) => {
                // Each job that can be read is there before the one that can't.
                for read in read_block(&block.0) {
                    let loaded =
                        read.and_then(|(id, body, record)| self.queue.load(id, body, &record));
                    check_sums(&self.queue, self.horizon);
                    if loaded.is_err() {
                        break;
                    }
                }
                Ok(())
            }
            Step::Restore(record) => {
                QueueRecord::decode(&record.0).and_then(|record| self.queue.restore(&record))
            }
            _ => return None,
        })
    }

    fn apply<'b, R: Record>(
        &mut self,
        bytes: &[u8],
        effect: impl FnOnce(R) -> Effect<'b>,
    ) -> Result<(), RecordError> {
        self.take(&effect(R::decode(bytes)?))
    }

    fn take(&mut self, effect: &Effect) -> Result<(), RecordError> {
        let is_possible = effect.check();
        let taken = self.queue.apply(&self.told, effect);
        // Only a queue with jobs that wait for others knows more.
        assert!(taken == is_possible || self.queue.has_edges() && is_possible.is_ok());
        taken
    }

    fn play_of_users(&mut self, step: &Step) {
        let (queue, told) = (&mut self.queue, self.told);
        match step {
            Step::Advance(time) => {
                self.horizon = Time::new(*time).unwrap_or(Time::MAX);
                queue.advance(self.horizon);
            }
            Step::Pop { ttr, no_ack } => {
                let mode = if *no_ack { Mode::NoAck } else { Mode::Lease };
                let ready = queue.jobs().filter(|job| job.state(told.now) == State::Ready).count();
                let pop = Pop { count: 2, ttr: ttr.and_then(Millis::new), mode };
                let comes_back = queue.jobs().any(|job| job.schedule.is_some());
                let deliveries = queue.apply(&told, &pop);
                // With NOACK, one that comes back may be ready again at once.
                assert!(deliveries.len() <= ready || (comes_back && pop.mode == Mode::NoAck));
                for delivery in deliveries.iter() {
                    let (id, _) = delivery.id_and_body(queue);
                    assert!(delivery.lease > told.lease_floor);
                    assert!(*no_ack || queue.get(id).is_some_and(|job| job.time == delivery.end));
                }
            }
            Step::Finish { id, lease } => {
                let lease = (*lease % 2 == 1).then(|| Lease::new(*lease));
                Id::new(&id.0).map(|id| {
                    queue.apply(
                        &told,
                        &Finish { claims: Claims::from_slice(&[Claim { id, lease }]) },
                    )
                });
            }
            Step::Connect { id, other, is_before, on_dead, is_on_hold } => {
                if let (Some(id), Some(other)) = (Id::new(&id.0), Id::new(&other.0)) {
                    let (after, before) =
                        if *is_before { (vec![], vec![other]) } else { (vec![other], vec![]) };
                    let (on_dead, is_on_hold) = (*on_dead, *is_on_hold);
                    let edges = Some(Box::new(NewEdges { after, before, on_dead, is_on_hold }));
                    let if_taken = IfTaken::Replace;
                    queue.apply(&told, &Add { edges, if_taken, ..Add::plain(id, b"") });
                }
            }
            Step::Delete { id } => {
                Id::new(&id.0).map(|id| {
                    queue.apply(
                        &told,
                        &Remove { ids: Ids::from_slice(&[id]), counted_as: Removal::Deleted },
                    )
                });
            }
            Step::Change { id, how } => {
                if let Some(id) = Id::new(&id.0) {
                    change(queue, &told, id, *how);
                }
            }
            Step::Kick => {
                let names = queue.ids_of(&queue.peek(State::Dead, 3));
                queue.apply(&told, &KickJob { ids: names.ids() });
            }
            Step::Upkeep => {
                let slots = queue.to_forget(told.now, 3);
                forget(queue, &told, &slots);
                queue.find_wake_at();
            }
            Step::Purge(state) => {
                let slots = queue.to_purge(told.now, *state, Millis::new(3).unwrap(), 3);
                forget(queue, &told, &slots);
            }
            Step::AddByQueue { due } => add_by_queue(queue, &told, *due),
            records => panic!("{records:?}"),
        }
    }
}

fn forget(queue: &mut Queue, told: &Circumstances, slots: &[u32]) {
    let names = queue.ids_of(slots);
    assert_eq!(
        queue.apply(told, &Remove { ids: names.ids(), counted_as: Removal::Purged }).0,
        slots.len()
    );
}

fn change(queue: &mut Queue, told: &Circumstances, id: Id, how: u8) {
    let claim = Claim { id, lease: None };
    let delay = Millis::new(u64::from(how / 8)).unwrap();
    let ttr = (!delay.is_zero()).then_some(delay);
    let when = match how % 3 {
        0 => WhenReleased::AfterBackoff,
        1 => WhenReleased::After(delay),
        _ => WhenReleased::Unbegun,
    };
    let note: &[u8] = if how & 16 == 0 { b"" } else { b"how far" };
    let checkpoint = Checkpoint {
        body: (how & 32 != 0).then_some(b"another"),
        note: (how & 64 != 0).then_some(note),
    };
    match how % 5 {
        0 => {
            let priority = (how >= 128).then_some(how);
            let release = Release { when, priority, checkpoint, ..Release::plain(claim) };
            assert!(queue.apply(told, &release).0 <= 1);
        }
        1 => drop(queue.apply(told, &Touch { claim, ttr, checkpoint }).has_changed()),
        4 => finish(queue, told, claim, ttr),
        2 => drop(queue.apply(told, &Bury { claim, reason: Some(b"why") }).has_changed()),
        _ => drop(queue.apply(told, &KickJob { ids: Ids::from_slice(&[id]) }).has_changed()),
    };
}

/// And goes on with a job of the same id and one whose id is made: both are added, or neither.
fn finish(queue: &mut Queue, told: &Circumstances, claim: Claim, keep: Option<Millis>) {
    let before: Vec<Vec<u8>> = queue.jobs().map(|job| job.id.bytes().to_vec()).collect();
    let adds = vec![Add::plain(claim.id, b"follows"), Add::nameless(b"made")];
    let done = Done { claim, result: Some(b"came of it"), keep, adds };
    match queue.apply(told, &done) {
        DoneOutcome::Yes { ids } => {
            assert_eq!(ids.len(), 2);
            for (id, body) in ids.iter().zip([&b"follows"[..], b"made"]) {
                let id = Id::new(id.as_ref().unwrap()).unwrap();
                assert_eq!(queue.get(id).unwrap().body, body);
            }
        }
        DoneOutcome::No | DoneOutcome::Refused(_) => {
            assert!(queue.jobs().map(|job| job.id.bytes()).eq(before.iter().map(|id| &id[..])));
        }
    }
}

fn add_by_queue(queue: &mut Queue, told: &Circumstances, due: u64) {
    let is_full = queue.settings().max_jobs.is_some_and(|max| queue.len() as u64 >= max.get());
    let add = Add {
        id: None,
        due: Due::At(Time::new(due).unwrap_or(Time::MAX)),
        ttl: Millis::new(due % 9),
        ..Add::plain(Id::new(b"made").unwrap(), b"")
    };
    match queue.apply(told, &add) {
        Added::New { .. } => assert!(!is_full),
        Added::Full => assert!(is_full),
        Added::Unchanged { .. }
        | Added::Never
        | Added::Over { .. }
        | Added::Replaced { .. }
        | Added::Left
        | Added::Unconnected(_)
        | Added::Taken => {
            panic!("an id that was made is taken")
        }
    }
}
