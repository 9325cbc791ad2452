//! The queue under test: commands in, outcomes out, in the terms of the reference.

use dq::queue::{self as core, Changed, Operation, Queue, State};

use crate::groups;
use crate::run_state::OfTests;
use crate::told::{self, Alteration, Bytes, Command, Handed, Outcome, When};

#[derive(Clone)]
pub struct Subject {
    pub queue: Queue,
}

pub fn at(unix_ms: u64) -> core::Time {
    core::Time::new(unix_ms).unwrap()
}

pub fn millis(ms: u64) -> core::Millis {
    core::Millis::new(ms).unwrap()
}

pub fn id(bytes: &[u8]) -> core::Id<'_> {
    core::Id::new(bytes).unwrap()
}

fn backoff(backoff: told::Backoff) -> core::Backoff {
    core::Backoff { base: millis(backoff.base), max: millis(backoff.max) }
}

fn claim(claim: &told::Claim) -> core::Claim<'_> {
    core::Claim { id: id(&claim.id), lease: claim.lease.map(core::Lease::new) }
}

pub fn circumstances(told: &told::Circumstances) -> core::Circumstances {
    let told::Defaults { ttr, attempts, backoff: waits } = told.defaults;
    core::Circumstances {
        now: at(told.now),
        defaults: core::Defaults {
            ttr: millis(ttr),
            attempts: core::Attempts::new(attempts),
            backoff: backoff(waits),
        },
        lease_floor: core::Lease::new(told.lease_floor),
    }
}

/// More than any of these queues has.
const ALL: usize = 1_000_000;

impl Subject {
    pub fn new(queue: Queue) -> Subject {
        Subject { queue }
    }

    pub fn seen(&self, state: State, at_most: usize) -> Vec<Bytes> {
        self.ids_of(&self.queue.peek(state, at_most))
    }

    pub fn to_purge(&self, now: u64, state: State, older: u64, at_most: usize) -> Vec<Bytes> {
        self.ids_of(&self.queue.to_purge(at(now), state, millis(older), at_most))
    }

    pub fn to_forget(&self, now: u64) -> Vec<Bytes> {
        self.ids_of(&self.queue.to_forget(at(now), ALL))
    }

    pub fn to_settle(&self, now: u64, edges: usize) -> Vec<Bytes> {
        self.ids_of(&self.queue.to_settle(at(now), edges))
    }

    fn ids_of(&self, slots: &[u32]) -> Vec<Bytes> {
        let ids: Vec<Bytes> = self.queue.ids_of(slots).bytes().into_iter().map(Vec::from).collect();
        assert_eq!(ids.len(), slots.len());
        ids
    }

    /// Carries a command out; what came of it must say truly whether it has changed anything.
    pub fn apply(
        &mut self,
        told: &core::Circumstances,
        command: &Command,
        calendar: &mut dyn core::Calendar,
    ) -> Outcome {
        let before = *self.queue.log_state();
        let outcome = self.carry_out(told, command, calendar);
        if outcome.has_changed() {
            assert_eq!(
                (self.queue.log_state().clock, self.queue.log_state().defaults),
                (told.now, told.defaults)
            );
        } else {
            assert_eq!(*self.queue.log_state(), before);
        }
        outcome
    }

    fn carry_out(
        &mut self,
        told: &core::Circumstances,
        command: &Command,
        calendar: &mut dyn core::Calendar,
    ) -> Outcome {
        let queue = &mut self.queue;
        match command {
            Command::Add(command) => add(queue, told, command, calendar),
            Command::Alike { adds, like, times } => {
                add_alike(queue, told, (adds, *like, *times), calendar)
            }
            Command::Pop { count, ttr, no_ack } => {
                let mode = mode(*no_ack);
                self.pop(told, &core::Pop { count: *count, ttr: ttr.map(millis), mode }, calendar)
            }
            Command::FinishAndPop { claims, count, ttr, no_ack } => {
                let claims = claims.iter().map(claim).collect();
                let pop = core::Pop { count: *count, ttr: ttr.map(millis), mode: mode(*no_ack) };
                let both = core::FinishAndPop { finish: core::Finish { claims }, pop };
                let outcome = queue.apply_by(told, &both, calendar);
                let taken = Box::new(handed_out(queue, &outcome.taken));
                Outcome::FinishedAndTaken(outcome.finished.0, taken)
            }
            Command::PopById { ids, ttr, no_ack } => {
                let (ids, mode) = (all(ids), mode(*no_ack));
                let pop = core::PopById { ids: &ids, ttr: ttr.map(millis), mode };
                self.pop(told, &pop, calendar)
            }
            Command::Finish { claims } => {
                let claims: Vec<core::Claim> = claims.iter().map(claim).collect();
                done(
                    queue,
                    told,
                    &core::Finish { claims: core::Claims::from_slice(&claims) },
                    |finished| Outcome::Jobs(finished.0),
                )
            }
            Command::Release { claim: of, when, priority, reason, checkpoint } => {
                let when = match when {
                    When::AfterBackoff => core::WhenReleased::AfterBackoff,
                    When::After(delay) => core::WhenReleased::After(millis(*delay)),
                    When::Unbegun => core::WhenReleased::Unbegun,
                };
                let (claim, priority, reason) = (claim(of), *priority, reason.as_deref());
                let checkpoint = self::checkpoint(checkpoint);
                yes(queue, told, &core::Release { claim, when, priority, reason, checkpoint })
            }
            Command::Touch { claim: of, ttr, checkpoint } => {
                let (claim, checkpoint) = (claim(of), self::checkpoint(checkpoint));
                yes(queue, told, &core::Touch { claim, ttr: ttr.map(millis), checkpoint })
            }
            Command::Renew { claims, ttr } => {
                let claims = claims.iter().map(claim).collect();
                done(queue, told, &core::Renew { claims, ttr: ttr.map(millis) }, |renewed| {
                    Outcome::Renewed(renewed.void.clone(), renewed.extended)
                })
            }
            Command::Done { claim: of, finishing, adds } => {
                finish(queue, told, (claim(of), finishing), adds, calendar)
            }
            Command::Bury { claim: of, reason } => {
                yes(queue, told, &core::Bury { claim: claim(of), reason: reason.as_deref() })
            }
            Command::Delete { ids } => done(
                queue,
                told,
                &core::Remove {
                    ids: core::Ids::from_slice(&all(ids)),
                    counted_as: core::Removal::Deleted,
                },
                |deleted| Outcome::Jobs(deleted.0),
            ),
            Command::KickJob { ids } => done(
                queue,
                told,
                &core::KickJob { ids: core::Ids::from_slice(&all(ids)) },
                |kicked| Outcome::Jobs(kicked.0),
            ),
            Command::KickSpread { ids, span } => done(
                queue,
                told,
                &core::KickSpread { ids: core::Ids::from_slice(&all(ids)), span: millis(*span) },
                |kicked| Outcome::Jobs(kicked.0),
            ),
            Command::Forget { ids } => done(
                queue,
                told,
                &core::Remove {
                    ids: core::Ids::from_slice(&all(ids)),
                    counted_as: core::Removal::Purged,
                },
                |forgotten| Outcome::Jobs(forgotten.0),
            ),
            Command::ForgetGroups => {
                done(queue, told, &core::ForgetGroups, |forgotten| Outcome::Jobs(forgotten.0))
            }
            Command::Pause { group, span } => {
                let name = group.map(groups::name);
                let pause = core::Pause { group: name.as_deref().map(id), span: span.map(millis) };
                yes(queue, told, &pause)
            }
            Command::Resume { group } => {
                let name = group.map(groups::name);
                let name = name.as_deref().map(id);
                let resume = name.map_or(core::Resume::Queue, core::Resume::Group);
                done(queue, told, &resume, resumed)
            }
            Command::ResumeJobs { ids } => {
                let ids = &all(ids);
                let resume = core::Resume::Jobs(core::Ids::from_slice(ids));
                done(queue, told, &resume, resumed)
            }
            Command::Settle { ids } => {
                let ids = &all(ids);
                let settle = core::Settle { ids: core::Ids::from_slice(ids) };
                done(queue, told, &settle, |settled| Outcome::Jobs(settled.0))
            }
            Command::Alter(alteration) => yes(queue, told, &alter(alteration)),
        }
    }

    /// What a sink would add to its stream now.
    pub fn next_for_sink(&self, told: &core::Circumstances) -> Option<(Bytes, Bytes)> {
        let mut queue = self.queue.clone();
        while queue.apply_by(told, &core::PassOver, &mut OfTests::default()).has_changed() {}
        let next = queue.next_to_leave(told.now)?;
        Some((next.id.bytes().to_vec(), next.body.to_vec()))
    }

    fn pop(
        &mut self,
        told: &core::Circumstances,
        pop: &impl Operation<Outcome = core::Deliveries>,
        calendar: &mut dyn core::Calendar,
    ) -> Outcome {
        let deliveries = self.queue.apply_by(told, pop, calendar);
        handed_out(&self.queue, &deliveries)
    }
}

fn handed_out(queue: &core::Queue, deliveries: &core::Deliveries) -> Outcome {
    assert_eq!(deliveries.len(), deliveries.iter().count());
    let handed = deliveries.iter().map(|delivery| {
        let (id, body) = delivery.id_and_body(queue);
        let (id, body) = (id.bytes().to_vec(), body.to_vec());
        let lease = delivery.lease.number();
        let (end, due) = (delivery.end.unix_ms(), delivery.due.unix_ms());
        Handed { id, body, lease, attempt: delivery.attempt, end, due }
    });
    let outcome = Outcome::HandedOut(handed.collect(), deliveries.passed_over());
    let is_set_back = deliveries.has_changed() && !outcome.has_changed();
    if is_set_back {
        Outcome::SetBack
    } else {
        outcome
    }
}

fn checkpoint(told: &told::Checkpoint) -> core::Checkpoint<'_> {
    core::Checkpoint { body: told.body.as_deref(), note: told.note.as_deref() }
}

fn mode(no_ack: bool) -> core::Mode {
    if no_ack {
        core::Mode::NoAck
    } else {
        core::Mode::Lease
    }
}

fn all(ids: &[Bytes]) -> Vec<core::Id<'_>> {
    ids.iter().map(|bytes| id(bytes)).collect()
}

fn yes<O: Operation>(queue: &mut Queue, told: &core::Circumstances, operation: &O) -> Outcome {
    Outcome::yes_if(queue.apply(told, operation).has_changed())
}

fn resumed(outcome: &core::Resumed) -> Outcome {
    match *outcome {
        core::Resumed::Pause(has_ended) => Outcome::yes_if(has_ended),
        core::Resumed::Jobs(jobs) => Outcome::Jobs(jobs),
    }
}

fn done<O: Operation>(
    queue: &mut Queue,
    told: &core::Circumstances,
    operation: &O,
    outcome: impl Fn(&O::Outcome) -> Outcome,
) -> Outcome {
    let came = queue.apply(told, operation);
    assert_eq!(outcome(&came).has_changed(), came.has_changed());
    outcome(&came)
}

fn add(
    queue: &mut Queue,
    told: &core::Circumstances,
    add: &told::Add,
    calendar: &mut dyn core::Calendar,
) -> Outcome {
    let group = add.options.group.map(groups::name);
    let operation = new_job(add, group.as_deref());
    let (slot, due, replaced) = match queue.apply_by(told, &operation, calendar) {
        core::Added::New { slot, due } => (slot, due, false),
        core::Added::Replaced { slot, due } => (slot, due, true),
        core::Added::Taken | core::Added::Left | core::Added::Unchanged { .. } => {
            return Outcome::No;
        }
        core::Added::Never => return Outcome::Never,
        core::Added::Over { was_there } => return Outcome::Over { was_there },
        core::Added::Full => return Outcome::Full,
        core::Added::Unconnected(fault) => return Outcome::Unconnected(*fault),
    };
    let (id, body) = queue.id_and_body(slot).unwrap();
    assert_eq!(body, add.body);
    Outcome::Added { id: id.bytes().to_vec(), due: due.unix_ms(), replaced }
}

fn add_alike(
    queue: &mut Queue,
    told: &core::Circumstances,
    (adds, like, times): (&[told::Add], told::Due, told::Times),
    calendar: &mut dyn core::Calendar,
) -> Outcome {
    let first = told::Add { due: like, ..adds[0].clone() };
    let group = first.options.group.map(groups::name);
    let jobs = adds
        .iter()
        .map(|add| core::OneOfMany { id: add.id.as_ref().map(|bytes| id(bytes)), body: &add.body });
    let times = match times {
        told::Times::Same => core::Times::Same,
        told::Times::Each => core::Times::Each(adds.iter().map(|add| due(add.due)).collect()),
        told::Times::SpreadOver(ms) => core::Times::SpreadOver(millis(ms)),
    };
    let operation =
        core::AddMany { like: new_job(&first, group.as_deref()), jobs: jobs.collect(), times };
    match queue.apply_by(told, &operation, calendar) {
        core::AddedMany::Yes(slots) => {
            let id_of = |slot| queue.id_and_body(slot).unwrap().0.bytes().to_vec();
            Outcome::Alike(slots.into_iter().map(|slot| slot.map(id_of)).collect())
        }
        core::AddedMany::Refused { position, why } => {
            let why = match why {
                core::Refusal::Twice(_) => Outcome::Twice,
                core::Refusal::As(added) => refused(added),
            };
            Outcome::RefusedAt(position, Box::new(why))
        }
    }
}

fn refused(added: core::Added) -> Outcome {
    match added {
        core::Added::Taken => Outcome::No,
        core::Added::Full => Outcome::Full,
        core::Added::Never => Outcome::Never,
        core::Added::Unconnected(fault) => Outcome::Unconnected(*fault),
        no_error => panic!("{no_error:?} is no reason to refuse anything"),
    }
}

fn due(due: told::Due) -> core::Due {
    match due {
        told::Due::In(delay) => core::Due::In(millis(delay)),
        told::Due::At(time) => core::Due::At(at(time)),
    }
}

fn finish(
    queue: &mut Queue,
    told: &core::Circumstances,
    (claim, finishing): (core::Claim, &told::Finishing),
    adds: &[told::Add],
    calendar: &mut dyn core::Calendar,
) -> Outcome {
    let groups: Vec<Option<Bytes>> =
        adds.iter().map(|add| add.options.group.map(groups::name)).collect();
    let adds = adds.iter().zip(&groups).map(|(add, group)| new_job(add, group.as_deref()));
    let (result, keep) = (finishing.result.as_deref(), finishing.keep.map(millis));
    let operation = core::Done { claim, result, keep, adds: adds.collect() };
    match queue.apply_by(told, &operation, calendar) {
        core::DoneOutcome::No => Outcome::No,
        core::DoneOutcome::Yes { ids } => {
            Outcome::Followed(ids.into_iter().map(|id| id.map(Vec::from)).collect())
        }
        core::DoneOutcome::Refused(added) => Outcome::Refused(Box::new(refused(added))),
    }
}

fn new_job<'a>(add: &'a told::Add, group: Option<&'a [u8]>) -> core::Add<'a> {
    let starts_of = |starts| match starts {
        told::Starts::ByItself => core::Starts::ByItself,
        told::Starts::In(delay) => core::Starts::In(millis(delay)),
        told::Starts::At(time) => core::Starts::At(at(time)),
    };
    let schedule = add.schedule.map(|(rule, starts)| {
        Box::new(core::NewSchedule { rule: rule.of_core(), starts: starts_of(starts) })
    });
    let told::Options { ttr, attempts, priority, backoff: waits, ttl, keep, late, group: _ } =
        add.options;
    core::Add {
        id: add.id.as_ref().map(|bytes| id(bytes)),
        body: &add.body,
        due: due(add.due),
        ttr: ttr.map(millis),
        priority,
        attempts: attempts.map(core::Attempts::new),
        backoff: waits.map(backoff),
        ttl: ttl.map(millis),
        keep: keep.map(millis),
        late: late.map(millis),
        group: group.map(id),
        schedule,
        edges: add.edges.as_ref().map(|edges| Box::new(new_edges(edges))),
        if_taken: match add.if_taken {
            told::IfTaken::Refuse => core::IfTaken::Refuse,
            told::IfTaken::Leave => core::IfTaken::Leave,
            told::IfTaken::Replace => core::IfTaken::Replace,
            told::IfTaken::Ensure => core::IfTaken::Ensure,
        },
    }
}

/// As one is called in these tests.
pub fn sink((number, max_len): (u8, u64)) -> core::Sink {
    core::Sink::new(id(&[number]), max_len)
}

fn new_edges(edges: &told::Edges) -> core::NewEdges<'_> {
    let told::Edges { after, before, on_dead, is_on_hold } = edges;
    let (on_dead, is_on_hold) = (*on_dead, *is_on_hold);
    core::NewEdges { after: all(after), before: all(before), on_dead, is_on_hold }
}

fn alter(alteration: &Alteration) -> core::Alter {
    let Alteration {
        ttr,
        attempts,
        backoff: waits,
        keep,
        late,
        max_jobs,
        dead_keep,
        concurrency,
        rate,
        ..
    } = *alteration;
    let rate_of =
        |rate: told::Rate| core::Rate::new(rate.jobs, millis(rate.per), rate.burst).unwrap();
    core::Alter {
        ttr: ttr.map(millis),
        attempts: attempts.map(core::Attempts::new),
        backoff: waits.map(backoff),
        keep: keep.map(millis),
        late: late.map(millis),
        max_jobs,
        dead_keep: dead_keep.map(millis),
        concurrency,
        rate: rate.map(|rate| rate.map(rate_of)),
        group_concurrency: alteration.group_concurrency,
        group_rate: alteration.group_rate.map(|rate| rate.map(rate_of)),
        sink: alteration.sink.map(|sink| sink.map(self::sink)),
    }
}
