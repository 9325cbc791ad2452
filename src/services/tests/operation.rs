//! Operations on a queue as the simulation says them, and as they stand in its log.

use std::ffi::CStr;

use crate::queue::{
    self, Add, Added, Affected, Alter, Attempts, Bury, Changed, Checkpoint, Claim, Claims,
    Deliveries, Done, DoneOutcome, Finish, ForgetGroups, Id, Ids, IfTaken, KickJob, KickSpread,
    Lease, Millis, Mode, OnDead, PassOver, Pause, Pop, PopById, Queue, Rate, Release, Removal,
    Remove, Renew, Resume, Resumed, Settle, Sink, Time, Touch, WhenReleased,
};
use crate::services::change::frame::Frame;
use crate::services::change::log::LogForm;
use crate::services::waiting::wish::Class;

use super::edges::NewEdges;
use super::many::ManyJobs;
use super::node::Node;
use super::watch::claims_of;

pub type Bytes = Vec<u8>;

#[derive(Clone, Debug, PartialEq)]
pub enum Operation {
    Add(NewJob),
    AddMany(Box<ManyJobs>),
    Pop(Terms),
    PopById(Vec<Bytes>, Terms),
    Finish(Vec<(Bytes, Option<u64>)>),
    Release {
        id: Bytes,
        lease: Option<u64>,
        when: When,
        priority: Option<u8>,
        left: Left,
    },
    Touch {
        id: Bytes,
        lease: Option<u64>,
        left: Left,
    },
    Done {
        id: Bytes,
        lease: Option<u64>,
        result: Option<Bytes>,
        keep: Option<u64>,
        adds: Vec<NewJob>,
    },
    Renew {
        claims: Vec<(Bytes, Option<u64>)>,
        ttr: Option<u64>,
    },
    Bury {
        id: Bytes,
        lease: Option<u64>,
    },
    Delete(Vec<Bytes>),
    KickJob(Vec<Bytes>),
    KickSpread(Vec<Bytes>, u64),
    /// The queue, or a group of it.
    Pause(Option<Bytes>, Option<u64>),
    Resume(Option<Bytes>),
    LimitGroups(GroupLimits),
    /// Dead jobs are kept for so long; zero is for ever.
    KeepDead(u64),
    /// What is due goes to the stream of this number.
    Sink(Option<u8>),
    Forget(Vec<Bytes>),
    ForgetGroups,
    /// Runs of schedules that are too late for a sink.
    PassOver,
    ResumeJobs(Vec<Bytes>),
    /// These have died by then, and others wait for them.
    Settle(Vec<Bytes>),
}

/// What a worker leaves with a job that goes on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Left {
    pub body: Option<Bytes>,
    pub note: Option<Bytes>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct NewJob {
    pub id: Bytes,
    pub body: Bytes,
    pub due: Due,
    pub ttr: u64,
    pub priority: u8,
    pub attempts: u32,
    pub keep: u64,
    pub ttl: u64,
    pub late: u64,
    pub group: Option<Bytes>,
    pub edges: NewEdges,
    pub replaces: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    In(u64),
    At(u64),
}

/// How many jobs of a group may be worked on, and how fast they may leave; none and zero are no
/// limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupLimits {
    pub places: u32,
    pub pace: Option<Pace>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    pub jobs: u32,
    pub per: u64,
    pub burst: u32,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum When {
    After(u64),
    Unbegun,
}

/// What somebody asks for who takes jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    pub count: usize,
    pub ttr: Option<u64>,
    pub no_ack: bool,
}

/// A job as somebody gets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handed {
    pub id: Bytes,
    pub body: Bytes,
    pub lease: u64,
    pub attempt: u32,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    Done(bool),
    Jobs(usize),
    /// Leases that were extended; and the places of those that are void.
    Renewed(usize, Vec<usize>),
    Handed(Vec<Handed>),
    /// A job is finished, and these follow it.
    Followed(Vec<Option<Bytes>>),
    /// It isn't, since one of those wouldn't be added.
    Refused,
    /// Many are added, but for those whose id is taken.
    Added(Vec<Option<Bytes>>),
    /// None is, because of the one at this place.
    RefusedAt(usize),
}

impl Outcome {
    pub fn has_changed(&self) -> bool {
        match self {
            Outcome::Done(is_done) => *is_done,
            Outcome::Jobs(jobs) | Outcome::Renewed(jobs, _) => *jobs > 0,
            Outcome::Handed(handed) => !handed.is_empty(),
            Outcome::Followed(_) => true,
            Outcome::Added(added) => added.iter().any(Option::is_some),
            Outcome::Refused | Outcome::RefusedAt(_) => false,
        }
    }
}

pub fn ms(ms: u64) -> Millis {
    Millis::new(ms).unwrap()
}

pub fn id(bytes: &[u8]) -> Id<'_> {
    Id::new(bytes).unwrap()
}

pub fn ids(all: &[Bytes]) -> Vec<Id<'_>> {
    all.iter().map(|bytes| id(bytes)).collect()
}

fn claim(bytes: &[u8], lease: Option<u64>) -> Claim<'_> {
    Claim { id: id(bytes), lease: lease.map(Lease::new) }
}

impl Terms {
    pub fn pop(&self) -> Pop {
        let mode = if self.no_ack { Mode::NoAck } else { Mode::Lease };
        Pop { count: self.count, ttr: self.ttr.map(ms), mode }
    }

    fn read(words: &[&[u8]]) -> Terms {
        let mut terms = Terms { count: 1, ttr: None, no_ack: false };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match *word {
                b"COUNT" => terms.count = number(words.next().unwrap()) as usize,
                b"TTR" => terms.ttr = Some(number(words.next().unwrap())),
                b"NOACK" => terms.no_ack = true,
                other => panic!("a DQ.POP is logged with {}", other.escape_ascii()),
            }
        }
        terms
    }
}

impl Left {
    fn checkpoint(&self) -> Checkpoint<'_> {
        Checkpoint { body: self.body.as_deref(), note: self.note.as_deref() }
    }
}

impl Due {
    pub fn counted_from(self, now: u64) -> u64 {
        match self {
            Due::In(delay) => now + delay,
            Due::At(time) => time.max(now),
        }
    }

    pub fn operation(self) -> queue::Due {
        match self {
            Due::In(delay) => queue::Due::In(ms(delay)),
            Due::At(time) => queue::Due::At(Time::new(time).unwrap()),
        }
    }
}

impl NewJob {
    pub fn operation(&self) -> Add<'_> {
        Add {
            due: self.due.operation(),
            ttr: Some(ms(self.ttr)),
            priority: Some(self.priority),
            attempts: Some(Attempts::new(self.attempts)),
            keep: Some(ms(self.keep)),
            ttl: Some(ms(self.ttl)),
            late: Some(ms(self.late)),
            group: self.group.as_deref().map(id),
            edges: self.edges.operation(),
            if_taken: if self.replaces { IfTaken::Replace } else { IfTaken::Refuse },
            ..Add::plain(id(&self.id), &self.body)
        }
    }
}

impl NewEdges {
    fn operation(&self) -> Option<Box<queue::NewEdges<'_>>> {
        let NewEdges { after, before, is_on_hold, runs } = self;
        if *self == NewEdges::default() {
            return None;
        }
        let on_dead = if *runs { OnDead::Run } else { OnDead::Hold };
        let (after, before, is_on_hold) = (ids(after), ids(before), *is_on_hold);
        Some(Box::new(queue::NewEdges { after, before, on_dead, is_on_hold }))
    }
}

pub fn number(digits: &[u8]) -> u64 {
    std::str::from_utf8(digits).unwrap().parse().unwrap()
}

pub fn handed(deliveries: &Deliveries, queue: &Queue) -> Vec<Handed> {
    let one = |delivery: &crate::queue::Delivery| {
        let (id, body) = delivery.id_and_body(queue);
        let (id, body) = (id.bytes().to_vec(), body.to_vec());
        Handed { id, body, lease: delivery.lease.number(), attempt: delivery.attempt }
    };
    deliveries.iter().map(one).collect()
}

type Open<'q, 'n> = Frame<'q, &'n Node>;

fn done(jobs: Affected) -> Outcome {
    Outcome::Done(jobs.has_changed())
}

impl Operation {
    /// Whether it makes the queue if there is none.
    pub fn creates(&self) -> bool {
        matches!(
            self,
            Operation::Add(_)
                | Operation::AddMany(_)
                | Operation::Pause(..)
                | Operation::KeepDead(_)
                | Operation::Sink(_)
                | Operation::LimitGroups(_)
        )
    }

    /// As the log has it in words.
    pub fn read(name: &[u8], words: &[&[u8]]) -> Operation {
        let all = || words.iter().map(|word| word.to_vec()).collect();
        match name {
            b"DQ.POP" if words.first() == Some(&&b"ID"[..]) => {
                let (ids, rest) = ids_read(words);
                Operation::PopById(ids, Terms::read(rest))
            }
            b"DQ.POP" => Operation::Pop(Terms::read(words)),
            b"DQ.KICKJOB" => Operation::KickJob(all()),
            b"KICKSPREAD" => {
                let ids = words[1..].iter().map(|word| word.to_vec()).collect();
                Operation::KickSpread(ids, number(words[0]))
            }
            b"PASSOVER" => Operation::PassOver,
            b"FORGET" if words.is_empty() => Operation::ForgetGroups,
            b"FORGET" => Operation::Forget(all()),
            b"SETTLE" => Operation::Settle(all()),
            b"DQ.RELEASE" if words[2] == b"UNBEGUN" => {
                let (id, lease) = (words[0].to_vec(), Some(number(words[1])));
                Operation::Release {
                    id,
                    lease,
                    when: When::Unbegun,
                    priority: None,
                    left: Left::default(),
                }
            }
            other => panic!("{} is logged", other.escape_ascii()),
        }
    }

    pub fn carry_out(&self, open: Open, log_as: LogForm) -> Outcome {
        match self {
            Operation::Add(job) => open.change(&job.operation(), log_as, |added, _| {
                Outcome::Done(matches!(added, Added::New { .. } | Added::Replaced { .. }))
            }),
            Operation::AddMany(many) => {
                open.change(&many.operation(), log_as, |added, _| many.outcome(added))
            }
            Operation::Pop(terms) => Outcome::Handed(open.change(&terms.pop(), log_as, handed)),
            Operation::PopById(names, terms) => {
                let (mut all, ids, Pop { ttr, mode, .. }) = (Vec::new(), ids(names), terms.pop());
                let pop = PopById { ids: &ids, ttr, mode };
                let mut told =
                    |deliveries: &Deliveries, queue: &Queue| all = handed(deliveries, queue);
                match log_as {
                    // From a client.
                    LogForm::Command(..) => {
                        let class = Class { mode, batch: None };
                        open.deliver(&pop, class, || false, log_as, told);
                    }
                    LogForm::AsSent | LogForm::Internal(..) => open.change(&pop, log_as, &mut told),
                }
                Outcome::Handed(all)
            }
            Operation::Finish(claims) => {
                let claims: Vec<Claim> =
                    claims.iter().map(|(id, lease)| claim(id, *lease)).collect();
                Outcome::Jobs(open.change(
                    &Finish { claims: Claims::from_slice(&claims) },
                    log_as,
                    |outcome, _| outcome.0,
                ))
            }
            Operation::Release { id, lease, when, priority, left } => {
                let when = match when {
                    When::After(delay) => WhenReleased::After(ms(*delay)),
                    When::Unbegun => WhenReleased::Unbegun,
                };
                let claim = claim(id, *lease);
                let release = Release {
                    claim,
                    when,
                    priority: *priority,
                    reason: None,
                    checkpoint: left.checkpoint(),
                };
                open.change(&release, log_as, |outcome, _| done(*outcome))
            }
            Operation::Touch { id, lease, left } => open.change(
                &Touch { claim: claim(id, *lease), ttr: None, checkpoint: left.checkpoint() },
                log_as,
                |outcome, _| done(*outcome),
            ),
            Operation::Done { id, lease, result, keep, adds } => {
                let claim = claim(id, *lease);
                let adds = adds.iter().map(NewJob::operation).collect();
                let done = Done { claim, result: result.as_deref(), keep: keep.map(ms), adds };
                open.change(&done, log_as, |followed, _| match followed {
                    DoneOutcome::No => Outcome::Done(false),
                    DoneOutcome::Refused(_) => Outcome::Refused,
                    DoneOutcome::Yes { ids } => {
                        let id = |id: &Option<Box<[u8]>>| id.as_deref().map(Bytes::from);
                        Outcome::Followed(ids.iter().map(id).collect())
                    }
                })
            }
            Operation::Renew { claims, ttr } => {
                let renew = Renew { claims: claims_of(claims), ttr: ttr.map(ms) };
                open.change(&renew, log_as, |renewed, _| {
                    Outcome::Renewed(renewed.extended, renewed.void.clone())
                })
            }
            Operation::Bury { id, lease } => open.change(
                &Bury { claim: claim(id, *lease), reason: None },
                log_as,
                |outcome, _| done(*outcome),
            ),
            Operation::Delete(names) => Outcome::Jobs(open.change(
                &Remove { ids: Ids::from_slice(&ids(names)), counted_as: Removal::Deleted },
                log_as,
                |outcome, _| outcome.0,
            )),
            Operation::KickJob(names) => Outcome::Jobs(open.change(
                &KickJob { ids: Ids::from_slice(&ids(names)) },
                log_as,
                |outcome, _| outcome.0,
            )),
            Operation::KickSpread(names, span) => Outcome::Jobs(open.change(
                &KickSpread { ids: Ids::from_slice(&ids(names)), span: ms(*span) },
                log_as,
                |outcome, _| outcome.0,
            )),
            Operation::Forget(names) => Outcome::Jobs(open.change(
                &Remove { ids: Ids::from_slice(&ids(names)), counted_as: Removal::Purged },
                log_as,
                |outcome, _| outcome.0,
            )),
            Operation::ForgetGroups => {
                Outcome::Jobs(open.change(&ForgetGroups, log_as, |outcome, _| outcome.0))
            }
            Operation::PassOver => {
                Outcome::Jobs(open.change(&PassOver, log_as, |outcome, _| outcome.0))
            }
            Operation::ResumeJobs(names) => {
                let ids = &ids(names);
                let resume = Resume::Jobs(Ids::from_slice(ids));
                open.change(&resume, log_as, |outcome, _| resumed(*outcome))
            }
            Operation::Settle(names) => {
                let settle = Settle { ids: Ids::from_slice(&ids(names)) };
                Outcome::Jobs(open.change(&settle, log_as, |outcome, _| outcome.0))
            }
            Operation::Pause(group, span) => {
                let pause = Pause { group: group.as_deref().map(id), span: span.map(ms) };
                open.change(&pause, log_as, |outcome, _| changed(*outcome))
            }
            Operation::Resume(group) => {
                let resume = group.as_deref().map(id).map_or(Resume::Queue, Resume::Group);
                open.change(&resume, log_as, |outcome, _| resumed(*outcome))
            }
            Operation::LimitGroups(GroupLimits { places, pace }) => {
                let rate =
                    pace.map(|Pace { jobs, per, burst }| Rate::new(jobs, ms(per), burst).unwrap());
                let (group_concurrency, group_rate) = (Some(*places), Some(rate));
                let alter = Alter { group_concurrency, group_rate, ..Alter::default() };
                open.change(&alter, log_as, |outcome, _| changed(*outcome))
            }
            Operation::KeepDead(span) => {
                let alter = Alter { dead_keep: Some(ms(*span)), ..Alter::default() };
                open.change(&alter, log_as, |outcome, _| changed(*outcome))
            }
            Operation::Sink(sink) => {
                let sink = Some(sink.map(|number| Sink::new(id(&[number]), 0)));
                let alter = Alter { sink, ..Alter::default() };
                open.change(&alter, log_as, |outcome, _| changed(*outcome))
            }
        }
    }
}

/// The ids of a POP by id, each behind a word; and the rest.
fn ids_read<'w>(words: &'w [&'w [u8]]) -> (Vec<Bytes>, &'w [&'w [u8]]) {
    let pairs = words.chunks(2).take_while(|pair| pair[0] == b"ID").count();
    (
        words.iter().skip(1).step_by(2).take(pairs).map(|id| id.to_vec()).collect(),
        &words[2 * pairs..],
    )
}

fn changed(outcome: impl Changed) -> Outcome {
    Outcome::Done(outcome.has_changed())
}

fn resumed(outcome: Resumed) -> Outcome {
    match outcome {
        Resumed::Pause(has_ended) => Outcome::Done(has_ended),
        Resumed::Jobs(jobs) => Outcome::Jobs(jobs),
    }
}

/// What was logged in these words.
pub fn read_logged(command: &CStr, words: &[&[u8]]) -> (Option<(u64, String)>, Operation) {
    if command != crate::services::change::log::APPLY {
        return (None, Operation::read(command.to_bytes(), words));
    }
    let told = std::str::from_utf8(words[1]).unwrap().to_string();
    (Some((number(words[0]), told)), Operation::read(words[2], &words[3..]))
}
