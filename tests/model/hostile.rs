//! Records and circumstances that nobody of good will would send.

// The fuzzer takes this file by its path, too.
#[path = "hostile/play.rs"]
mod play;

pub use play::Hostile;

use dq::queue::*;
use proptest::prelude::*;

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
