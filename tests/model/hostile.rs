//! Records and circumstances that nobody of good will would send.

use dq::queue::*;
use proptest::prelude::*;

use crate::compare::check_sums;
use crate::file::{load, rewritten, save};

/// The bytes of a record: anything, or fields that have the right types and any values, or those
/// with a byte changed.
#[derive(Clone)]
pub struct Blob(Vec<u8>);

/// Readable, in what a failing test prints.
impl std::fmt::Debug for Blob {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "b\"{}\"", self.0.escape_ascii())
    }
}

#[derive(Clone, Debug)]
pub enum Step {
    Put {
        id: Blob,
        record: Blob,
    },
    Load {
        id: Blob,
        record: Blob,
    },
    /// Jobs of a file.
    Block(Blob),
    /// Jobs of an AOF that was rewritten.
    Jobs(Blob),
    Queue(Blob),
    Restore(Blob),
    Groups(Blob),
    Edges(Blob),
    /// A user adds a job that waits for another, or for which that waits.
    Connect {
        id: Blob,
        other: Blob,
        is_before: bool,
        on_dead: OnDead,
        is_on_hold: bool,
    },
    /// And what users do in between.
    Advance(u64),
    Pop {
        ttr: Option<u64>,
        no_ack: bool,
    },
    Finish {
        id: Blob,
        lease: u64,
    },
    Delete {
        id: Blob,
    },
    /// Release, touch, bury, kick or finish.
    Change {
        id: Blob,
        how: u8,
    },
    Kick,
    Upkeep,
    Purge(State),
    AddByQueue {
        due: u64,
    },
}

/// A step, and under which circumstances an entry of a log told of it.
#[derive(Clone, Debug)]
pub struct LoggedCircumstances {
    step: Step,
    now: u64,
    floor: u64,
}

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        10 => 0..6u64,
        2 => any::<u64>(),
        4 => (0..64u32, 0..3u64).prop_map(|(bits, less)| (1u64 << bits).wrapping_sub(less)),
        1 => Just(u64::MAX),
    ]
}

fn time() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 0..20u64, 1 => number()]
}

fn id() -> impl Strategy<Value = Blob> {
    let like_of_queue = (time(), number()).prop_map(|(time, n)| format!("{time}-{n}").into_bytes());
    prop_oneof![
        12 => (b'a'..b'f').prop_map(|letter| vec![letter]),
        4 => like_of_queue,
        1 => Just(Vec::new()),
        1 => (511..515usize).prop_map(|len| vec![0; len]),
    ]
    .prop_map(Blob)
}

fn blob(fields: impl Strategy<Value = Vec<u8>> + 'static) -> impl Strategy<Value = Blob> {
    let fields = fields.boxed();
    let changed = (fields.clone(), any::<prop::sample::Index>(), any::<u8>());
    let changed = changed.prop_map(|(mut bytes, place, byte)| {
        let place = place.index(bytes.len());
        bytes[place] = byte;
        bytes
    });
    let any_bytes = prop::collection::vec(any::<u8>(), 0..40);
    prop_oneof![12 => fields, 2 => changed, 1 => any_bytes].prop_map(Blob)
}

fn bytes_of(value: impl serde::Serialize) -> Vec<u8> {
    rmp_serde::to_vec(&value).unwrap()
}

/// Backoff, TTL, expiry, KEEP, reason, tally, group, LATE, schedule, note, result.
type Extra = (
    Option<(u64, u64)>,
    Option<u64>,
    Option<u64>,
    Option<u64>,
    Text,
    Option<(u16, u16, u16, u16)>,
    Text,
    Option<u64>,
    Option<Schedule>,
    Text,
    Text,
);
type Text = Option<serde_bytes::ByteBuf>;

/// A rule, and where the job has got to.
type Schedule = (Rule, (u64, u64, u64, u32, u32, u32));
/// EVERY, expression and zone; MISFIRE, JITTER, RUNS, UNTIL, LATE.
type Rule = ((u64, Option<(String, String)>), u8, u64, u32, Option<u64>, u64);

fn schedule() -> impl Strategy<Value = Schedule> {
    let timing = prop_oneof![
        6 => (1..9u64).prop_map(|period| (period, None)),
        1 => number().prop_map(|period| (period, None)),
        3 => ("[0-9* ]{0,9}", "[A-Z]{0,3}").prop_map(|cron| (0, Some(cron))),
    ];
    let count = || prop_oneof![6 => 0..4u32, 1 => Just(u32::MAX)];
    let span = || prop_oneof![8 => 0..9u64, 1 => number()];
    let misfire = prop_oneof![8 => 0..2u8, 1 => any::<u8>()];
    let rule = (timing, misfire, span(), count(), prop::option::of(time()), span());
    (rule, (time(), time(), time(), count(), count(), count()))
}

fn extra() -> impl Strategy<Value = Extra> {
    let span = || prop_oneof![8 => 0..9u64, 1 => number()];
    let bytes = || prop::collection::vec(any::<u8>(), 0..4).prop_map(serde_bytes::ByteBuf::from);
    (
        prop::option::of((span(), span())),
        prop::option::of(span()),
        prop::option::of(time()),
        prop::option::of(span()),
        prop::option::of(bytes()),
        prop::option::weighted(0.3, any::<(u16, u16, u16, u16)>()),
        prop::option::weighted(0.5, group()),
        prop::option::weighted(0.2, span()),
        prop::option::weighted(0.4, schedule()),
        prop::option::weighted(0.4, bytes()),
        prop::option::weighted(0.3, bytes()),
    )
}

/// Stage, attempt and lease: most often such as there are.
fn progress() -> impl Strategy<Value = (u8, u32, u64)> {
    let attempt = || prop_oneof![8 => 0..4u32, 1 => Just(u32::MAX)];
    prop_oneof![
        4 => Just((0, 0, 0)),
        4 => (prop::sample::select(vec![0u8, 2, 3]), attempt()).prop_map(|(stage, attempt)| (stage, attempt, 0)),
        6 => (attempt(), number()).prop_map(|(attempt, lease)| (1, attempt, lease)),
        3 => Just((4, 0, 0)),
        1 => (0..5u8, attempt(), number()),
    ]
}

fn job_record() -> impl Strategy<Value = Blob> {
    let ttr = prop_oneof![8 => 1..9u64, 1 => number()];
    let attempts = prop_oneof![8 => 0..4u32, 1 => any::<u32>()];
    let times = (time(), time(), ttr);
    let rest = (attempts, any::<u8>(), progress(), prop::option::of(extra()));
    blob((times, rest).prop_map(
        |((time, created, ttr), (attempts, priority, (stage, attempt, lease), extra))| {
            let plain = (time, created, ttr, attempts, priority, attempt, lease, stage);
            match extra {
                None => bytes_of(plain),
                Some(_) => [&[0x99], &bytes_of(plain)[1..], &bytes_of(extra)].concat(),
            }
        },
    ))
}

fn block() -> impl Strategy<Value = Blob> {
    // An array of an id, a body and the bytes of a record.
    let job = (id_bytes(), id_bytes(), job_record()).prop_map(|(id, body, record)| {
        let start = bytes_of((&id, &body, ()));
        [start.strip_suffix(&[0xc0]).unwrap_or(&start), &record.0].concat()
    });
    blob(prop::collection::vec(job, 1..4).prop_map(|jobs| jobs.concat()))
}

fn id_bytes() -> impl Strategy<Value = serde_bytes::ByteBuf> {
    id().prop_map(|id| serde_bytes::ByteBuf::from(id.0))
}

fn group() -> impl Strategy<Value = serde_bytes::ByteBuf> {
    let name = prop_oneof![8 => (0..3usize).prop_map(|n| vec![b'g'; n]), 1 => Just(vec![0; 513])];
    name.prop_map(serde_bytes::ByteBuf::from)
}

fn group_records() -> impl Strategy<Value = Blob> {
    let turns = prop::collection::vec(any::<u8>(), 0..3).prop_map(serde_bytes::ByteBuf::from);
    let arrival = (time(), prop_oneof![4 => 0..3u32, 1 => any::<u32>()], 0..5u32);
    let round = || (any::<u8>(), time(), number());
    let rounds = || prop::collection::vec(round(), 0..3);
    let held = prop::option::weighted(0.2, time());
    let record = (group(), number(), turns, arrival, time(), held, rounds());
    let record = record.prop_map(|(name, serial, turns, (ms, parts, of), paused, held, rounds)| {
        (name, serial, turns, (ms, parts), of, paused, held, rounds)
    });
    let of_rounds = rounds().prop_map(|rounds| {
        let none = || serde_bytes::ByteBuf::new();
        ((none(), 0u64, none(), (0u64, 0u32), 0u32, 0u64, None::<u64>, rounds),)
    });
    prop_oneof![
        4 => blob(prop::collection::vec(record, 0..4).prop_map(bytes_of)),
        1 => blob(of_rounds.prop_map(bytes_of)),
    ]
}

fn queue_record() -> impl Strategy<Value = Blob> {
    let total = || prop_oneof![9 => 0..9u64, 1 => number()];
    let totals = (prop::array::uniform6(total()), prop::array::uniform6(total()));
    let totals = totals.prop_map(|(a, b)| [&a[..], &b].concat());
    let span = || prop_oneof![6 => 0..9u64, 1 => number()];
    let few = || prop::option::of(prop_oneof![8 => 1..9u32, 1 => any::<u32>()]);
    let rate = || prop::option::of((1..9u32, span(), prop_oneof![6 => 1..9u32, 1 => any::<u32>()]));
    let defaults = (prop::option::of(1..9u64), prop::option::of(0..4u32), (span(), span()));
    let spans = (span(), span(), prop::option::of(number()), span());
    let settings = (defaults, spans, (few(), rate(), few(), rate())).prop_map(
        |(
            (ttr, attempts, backoff),
            (keep, late, max_jobs, dead_keep),
            (leases, rate, per, each),
        )| {
            let of_queue = (ttr, attempts, backoff, keep, late, max_jobs, dead_keep, leases, rate);
            [&[0x9b], &bytes_of(of_queue)[1..], &bytes_of((per, each))[1..]].concat()
        },
    );
    let log_state = (time(), (span(), any::<u32>()), any::<u64>());
    let arrival = prop_oneof![2 => Just((0, 0)), 1 => (time(), prop_oneof![0..9u32, any::<u32>()])];
    let start = (number(), (time(), number()), totals, time(), time());
    let end = (log_state, arrival, (number(), number(), number()));
    let stream = prop_oneof![8 => 1..9usize, 1 => Just(0), 1 => 510..515usize];
    let sink = prop::option::of((
        stream.prop_map(|len| serde_bytes::ByteBuf::from(vec![7; len])),
        number(),
    ));
    blob((start, settings, end, sink).prop_map(|(start, settings, end, sink)| {
        let fields = 9 + u8::from(sink.is_some());
        let sink = sink.map_or(Vec::new(), bytes_of);
        [&[0x90 + fields], &bytes_of(start)[1..], &settings, &bytes_of(end)[1..], &sink].concat()
    }))
}

/// Records of edges with the right types: of jobs that are there or not, in any order.
fn edges_records() -> impl Strategy<Value = Blob> {
    let what = prop::option::weighted(0.2, id_bytes());
    let state = prop_oneof![6 => Just(0u8), 3 => 1..5u8, 1 => any::<u8>()];
    let edges = prop::collection::vec((id_bytes(), state, what), 0..4);
    let flags = (prop::bool::weighted(0.8), prop::bool::weighted(0.2), prop::bool::weighted(0.3));
    let on_dead = prop_oneof![8 => 0..2u8, 1 => any::<u8>()];
    let due = prop_oneof![3 => Just((0, 0)), 1 => (time(), Just(0)), 1 => (time(), time())];
    let record = (id_bytes(), edges, flags, on_dead, due).prop_map(
        |(id, edges, (is_first, continues, is_on_hold), on_dead, (delay, at))| {
            (id, edges, is_first, continues, on_dead, is_on_hold, delay, at)
        },
    );
    blob(prop::collection::vec(record, 0..4).prop_map(bytes_of))
}

fn connect() -> impl Strategy<Value = Step> {
    let on_dead = prop::sample::select(vec![OnDead::Hold, OnDead::Run]);
    (id(), id(), any::<bool>(), on_dead, any::<bool>()).prop_map(
        |(id, other, is_before, on_dead, is_on_hold)| Step::Connect {
            id,
            other,
            is_before,
            on_dead,
            is_on_hold,
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (id(), job_record()).prop_map(|(id, record)| Step::Put { id, record }),
        3 => (id(), job_record()).prop_map(|(id, record)| Step::Load { id, record }),
        2 => block().prop_map(Step::Block),
        2 => block().prop_map(Step::Jobs),
        1 => queue_record().prop_map(Step::Queue),
        1 => queue_record().prop_map(Step::Restore),
        3 => group_records().prop_map(Step::Groups),
        6 => edges_records().prop_map(Step::Edges),
        4 => connect(),
        3 => time().prop_map(Step::Advance),
        4 => (prop::option::of(1..9u64), any::<bool>()).prop_map(|(ttr, no_ack)| Step::Pop { ttr, no_ack }),
        2 => (id(), number()).prop_map(|(id, lease)| Step::Finish { id, lease }),
        1 => id().prop_map(|id| Step::Delete { id }),
        4 => (id(), any::<u8>()).prop_map(|(id, how)| Step::Change { id, how }),
        1 => Just(Step::Kick),
        2 => Just(Step::Upkeep),
        1 => prop::sample::select(State::ALL.to_vec()).prop_map(Step::Purge),
        2 => time().prop_map(|due| Step::AddByQueue { due }),
    ]
}

pub fn logged_step() -> impl Strategy<Value = LoggedCircumstances> {
    let told = (step(), time(), prop_oneof![4 => Just(0u64), 1 => number()]);
    told.prop_map(|(step, now, floor)| LoggedCircumstances { step, now, floor })
}

pub fn steps() -> impl Strategy<Value = Vec<LoggedCircumstances>> {
    prop::collection::vec(logged_step(), 1..40)
}

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
