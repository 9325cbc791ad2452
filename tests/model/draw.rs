//! How likely which operation is: at times and with spans at which things happen together.

use dq::queue::{OnDead, State};
use proptest::prelude::*;

use crate::groups::Name;
use crate::operation::{
    By, CheckpointIn, Claim, DueIn, EdgesIn, Floor, Following, Jump, NewId, Operation, Readers,
    RuleIn, TimesIn, Turn, Which, GIVEN_IDS,
};
use crate::told::{
    Alteration, Backoff, Defaults, IfTaken, Options, Rate, Rule, Timing, When, LAST, LEASES_END,
};

const YEAR: u64 = 365 * 86_400_000;

/// A span: most often of a size at which things happen together.
fn span() -> impl Strategy<Value = u64> {
    prop_oneof![
        12 => Just(0u64),
        12 => Just(1u64),
        20 => 2..8u64,
        8 => 1_000..5_000u64,
        1 => (1..20u64).prop_map(|years| years * YEAR),
    ]
}

fn jump() -> impl Strategy<Value = Jump> {
    prop_oneof![
        12 => Just(Jump::Forward(0)),
        18 => span().prop_map(Jump::Forward),
        2 => (0..20u64).prop_map(Jump::Back),
        1 => span().prop_map(Jump::Back),
    ]
}

/// So far ahead of another clock, or behind it.
fn skew() -> impl Strategy<Value = i64> {
    prop_oneof![
        4 => -9..9i64,
        2 => -300_000..300_000i64,
        1 => any::<i32>().prop_map(i64::from),
    ]
}

/// When somebody looks at a replica, between two entries of the log: by a clock that is so far
/// ahead of that of its primary, or behind it; or nobody does.
pub fn looks(turns: usize) -> impl Strategy<Value = Vec<Option<i64>>> {
    prop::collection::vec(look(), turns)
}

pub fn look() -> impl Strategy<Value = Option<i64>> {
    prop_oneof![2 => Just(None), 1 => skew().prop_map(Some)]
}

fn readers() -> impl Strategy<Value = Readers> {
    prop_oneof![8 => Just(Readers::OfClock), 2 => Just(Readers::Asleep), 2 => skew().prop_map(Readers::Ahead)]
}

fn defaults() -> impl Strategy<Value = Defaults> {
    let usual = Defaults { ttr: 60, attempts: 0, backoff: Backoff::default() };
    let others = [
        Defaults { ttr: 5, attempts: 3, backoff: Backoff { base: 2, max: 9 } },
        Defaults { attempts: 1, ..usual },
        Defaults { backoff: Backoff { base: 5, max: 20 }, ..usual },
    ];
    prop_oneof![12 => Just(usual), 1 => prop::sample::select(others.to_vec())]
}

fn floor() -> impl Strategy<Value = Floor> {
    prop_oneof![
        16 => Just(Floor::None),
        1 => Just(Floor::OfClock),
        2 => (0..5_000u64).prop_map(Floor::Above),
    ]
}

fn due() -> impl Strategy<Value = DueIn> {
    prop_oneof![
        6 => span().prop_map(DueIn::Delay),
        3 => span().prop_map(DueIn::Ahead),
        2 => span().prop_map(DueIn::Behind),
        1 => prop_oneof![Just(0), Just(LAST), Just(LAST - 1)].prop_map(DueIn::At),
        1 => Just(DueIn::Delay(LAST)),
    ]
}

fn ttr() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 1..6u64, 3 => 1_000..3_000u64, 1 => Just(LAST)]
}

/// A span of which zero means that there is none.
fn span_if_any() -> impl Strategy<Value = u64> {
    prop_oneof![8 => Just(0u64), 6 => 1..12u64, 2 => 1_000..5_000u64, 1 => Just(LAST)]
}

fn attempts() -> impl Strategy<Value = u32> {
    prop_oneof![3 => Just(0u32), 6 => 1..4u32, 1 => Just(u32::MAX)]
}

fn backoff() -> impl Strategy<Value = Backoff> {
    (span_if_any(), span_if_any()).prop_map(|(base, max)| Backoff { base, max })
}

fn priority() -> impl Strategy<Value = u8> {
    prop_oneof![2 => Just(0u8), 2 => Just(255u8), 1 => any::<u8>()]
}

fn options() -> BoxedStrategy<Options> {
    let some = prop::option::of(priority());
    let parts = (
        prop::option::weighted(0.8, ttr()),
        prop::option::weighted(0.7, attempts()),
        some,
        prop::option::of(backoff()),
        prop::option::of(span_if_any()),
        prop::option::of(span_if_any()),
        prop::option::weighted(0.3, span_if_any()),
        group(),
    );
    let drawn = parts.prop_map(|(ttr, attempts, priority, backoff, ttl, keep, late, group)| {
        Options { ttr, attempts, priority, backoff, ttl, keep, late, group }
    });
    // By itself: all in one, they would take more stack than a thread has.
    drawn.boxed()
}

/// One of few, so that they have several jobs.
fn group() -> impl Strategy<Value = Option<Name>> {
    prop_oneof![4 => Just(None), 5 => (0..4u8).prop_map(Some)]
}

fn new_id() -> impl Strategy<Value = NewId> {
    let like = (0..3u64, prop_oneof![0..5u64, Just(7u64), Just(u64::MAX)]);
    prop_oneof![
        6 => (0..=GIVEN_IDS).prop_map(NewId::Given),
        3 => Just(NewId::ByQueue),
        1 => like.prop_map(|(ahead, number)| NewId::LikeOfQueue { ahead, number }),
    ]
}

fn which() -> impl Strategy<Value = Which> {
    prop_oneof![
        2 => (0..=GIVEN_IDS).prop_map(Which::Given),
        6 => any::<u16>().prop_map(Which::There),
        1 => any::<u16>().prop_map(Which::Held),
    ]
}

fn edges() -> BoxedStrategy<EdgesIn> {
    let held = prop_oneof![6 => any::<u16>().prop_map(Which::Held), 1 => which()];
    let on_dead = prop_oneof![Just(OnDead::Hold), Just(OnDead::Run)];
    let parts = (several(which()), several(held), on_dead, prop::bool::weighted(0.2), 0..5u8);
    let drawn = parts.prop_map(|(after, before, on_dead, is_on_hold, kind)| match kind {
        0 => EdgesIn { after: Vec::new(), before: Vec::new(), on_dead, is_on_hold: true },
        1 => EdgesIn { after: Vec::new(), before, on_dead, is_on_hold },
        _ => EdgesIn { after, before: Vec::new(), on_dead, is_on_hold },
    });
    drawn.boxed()
}

/// Mostly one, or several, which may be the same.
fn several<T: std::fmt::Debug>(one: impl Strategy<Value = T>) -> impl Strategy<Value = Vec<T>> {
    (prop::collection::vec(one, 4), prop_oneof![6 => Just(1usize), 1 => 2..5usize]).prop_map(
        |(mut all, len)| {
            all.truncate(len);
            all
        },
    )
}

fn claim() -> impl Strategy<Value = Claim> {
    let by = prop_oneof![
        4 => Just(By::TheirLease),
        4 => any::<u16>().prop_map(By::SomeLease),
        1 => prop_oneof![0..10u64, Just(u64::MAX)].prop_map(By::NoLease),
        3 => Just(By::Latest),
    ];
    (which(), by).prop_map(|(job, by)| Claim { job, by })
}

fn rule() -> impl Strategy<Value = RuleIn> {
    let timing = prop_oneof![
        8 => (1..8u64).prop_map(Timing::Every),
        1 => prop_oneof![Just(2_000u64), Just(YEAR), Just(LAST)].prop_map(Timing::Every),
        6 => (1..5u64).prop_map(Timing::Cron),
    ];
    let jitter = prop_oneof![6 => Just(0u64), 2 => 1..6u64, 1 => Just(LAST)];
    let runs = prop_oneof![6 => Just(0u32), 3 => 1..4u32];
    let until = prop::option::weighted(0.2, span());
    (timing, prop::bool::weighted(0.3), jitter, runs, until).prop_map(
        |(timing, all, jitter, runs, until_in)| RuleIn {
            rule: Rule { timing, all, jitter, runs, until: None, late: 0 },
            until_in,
        },
    )
}

fn schedule() -> impl Strategy<Value = Operation> {
    let if_taken = prop_oneof![1 => Just(IfTaken::Refuse), 2 => Just(IfTaken::Replace), 5 => Just(IfTaken::Ensure)];
    let (ttr, attempts, priority) = (None, None, None);
    let plain = Options {
        ttr,
        attempts,
        priority,
        backoff: None,
        ttl: None,
        keep: None,
        late: None,
        group: None,
    };
    let options = prop_oneof![2 => Just(plain), 3 => options()];
    (0..=GIVEN_IDS, rule(), prop::option::weighted(0.4, due()), options, if_taken).prop_map(
        |(id, rule, starts, options, if_taken)| Operation::Schedule {
            id,
            rule,
            starts,
            options,
            if_taken,
        },
    )
}

/// The length of a text that a worker sends.
fn text() -> impl Strategy<Value = u16> {
    prop_oneof![2 => Just(0u16), 4 => 1..6u16, 1 => Just(3_000u16)]
}

fn checkpoint() -> impl Strategy<Value = CheckpointIn> {
    (prop::option::weighted(0.3, text()), prop::option::weighted(0.5, text()))
        .prop_map(|(body, note)| CheckpointIn { body, note })
}

fn following() -> BoxedStrategy<Following> {
    let if_taken = prop_oneof![
        4 => Just(IfTaken::Refuse),
        2 => Just(IfTaken::Leave),
        2 => Just(IfTaken::Replace),
        2 => Just(IfTaken::Ensure),
    ];
    let schedule = (rule(), prop::option::weighted(0.4, due()));
    // One that the queue makes for another job beside it, if it isn't careful.
    let like = (0..2u64).prop_map(|number| NewId::LikeOfQueue { ahead: 0, number });
    let id = prop_oneof![4 => new_id(), 1 => Just(NewId::ByQueue), 2 => like];
    let parts = (
        prop::option::weighted(0.8, id),
        due(),
        options(),
        prop::option::weighted(0.3, schedule),
        prop::option::weighted(0.4, edges()),
        if_taken,
    );
    let drawn = parts.prop_map(|(id, due, options, schedule, edges, if_taken)| Following {
        id,
        due,
        options,
        schedule,
        edges,
        if_taken,
    });
    drawn.boxed()
}

fn done() -> BoxedStrategy<Operation> {
    let adds =
        (prop::collection::vec(following(), 3), prop_oneof![2 => Just(0usize), 3 => 1..4usize]);
    let adds = adds.prop_map(|(mut adds, len)| {
        adds.truncate(len);
        adds
    });
    let parts =
        (claim(), prop::option::weighted(0.7, text()), prop::option::of(span_if_any()), adds);
    let drawn =
        parts.prop_map(|(claim, result, keep, adds)| Operation::Done { claim, result, keep, adds });
    drawn.boxed()
}

fn of_producers() -> impl Strategy<Value = Operation> {
    let edges = prop::option::weighted(0.4, edges());
    let add = (new_id(), due(), options(), edges, prop::bool::weighted(0.3));
    let add = add.prop_map(|(id, due, options, edges, replaces)| Operation::Add {
        id,
        due,
        options,
        edges,
        replaces,
    });
    let if_taken = prop_oneof![
        3 => Just(IfTaken::Refuse),
        2 => Just(IfTaken::Leave),
        2 => Just(IfTaken::Replace),
    ];
    let times = prop_oneof![
        3 => Just(TimesIn::Same),
        2 => prop::collection::vec(due(), 4).prop_map(TimesIn::Each),
        2 => span().prop_map(TimesIn::SpreadOver),
    ];
    let ids = prop::collection::vec(new_id(), 1..5usize);
    let edges = prop::option::weighted(0.4, self::edges());
    let alike = (ids, due(), times, options(), edges, if_taken);
    let alike = alike.prop_map(|(ids, due, times, options, edges, if_taken)| Operation::Alike {
        ids,
        due,
        times,
        options,
        edges,
        if_taken,
    });
    // More than are remembered, or few, which have many.
    let spread = prop_oneof![2 => Just(0u8), 1 => 2..9u8, 1 => Just(90u8)];
    let many = (200..600u64, due(), options(), spread);
    let many = many.prop_map(|(jobs, due, options, groups)| Operation::AddMany {
        jobs,
        due,
        options,
        groups,
    });
    prop_oneof![50 => add, 20 => alike, 25 => schedule(), 1 => many]
}

fn of_workers() -> impl Strategy<Value = Operation> {
    // As many as a POP can hand out whatever it has to ask the calendar for: at 250 questions it
    // ends early.
    let count = prop_oneof![12 => Just(1usize), 4 => 2..6usize, 1 => 100..240usize];
    let pop = (count, prop::option::of(ttr()), prop::bool::weighted(0.2));
    let pop = pop.prop_map(|(count, ttr, no_ack)| Operation::Pop { count, ttr, no_ack });
    let both = (several(claim()), 1..4usize, prop::option::of(ttr()), prop::bool::weighted(0.2));
    let both = both.prop_map(|(claims, count, ttr, no_ack)| Operation::FinishAndPop {
        claims,
        count,
        ttr,
        no_ack,
    });
    let when = prop_oneof![
        4 => Just(When::AfterBackoff),
        4 => span().prop_map(When::After),
        2 => Just(When::Unbegun),
    ];
    let by_id = (several(which()), prop::option::of(ttr()), prop::bool::weighted(0.2));
    let by_id = by_id.prop_map(|(jobs, ttr, no_ack)| Operation::PopById { jobs, ttr, no_ack });
    let release = (
        claim(),
        when,
        prop::option::weighted(0.3, priority()),
        prop::option::of(0..3u8),
        checkpoint(),
    );
    let release = release.prop_map(|(claim, when, priority, reason, checkpoint)| {
        Operation::Release { claim, when, priority, reason, checkpoint }
    });
    let touch = (claim(), prop::option::of(ttr()), checkpoint());
    let touch =
        touch.prop_map(|(claim, ttr, checkpoint)| Operation::Touch { claim, ttr, checkpoint });
    let renew = (several(claim()), prop::option::of(ttr()));
    let renew = renew.prop_map(|(claims, ttr)| Operation::Renew(claims, ttr));
    let bury = (claim(), prop::option::of(0..3u8));
    let bury = bury.prop_map(|(claim, reason)| Operation::Bury { claim, reason });
    let count = prop_oneof![4 => 1..5usize, 1 => 5..300usize];
    prop_oneof![
        50 => pop,
        20 => both,
        10 => by_id,
        20 => several(claim()).prop_map(Operation::Finish),
        20 => done(),
        16 => release,
        16 => touch,
        8 => renew,
        6 => bury,
        9 => count.prop_map(|count| Operation::GiveBack { count }),
    ]
}

fn alteration() -> BoxedStrategy<Alteration> {
    let max_jobs = prop_oneof![3 => Just(0u64), 1 => 1..9u64];
    let parts = (
        prop::option::weighted(0.2, ttr()),
        prop::option::weighted(0.2, attempts()),
        prop::option::weighted(0.2, backoff()),
        prop::option::weighted(0.2, span_if_any()),
        prop::option::weighted(0.2, span_if_any()),
        prop::option::of(max_jobs),
        prop::option::of(span_if_any()),
    );
    let drawn =
        parts.prop_map(|(ttr, attempts, backoff, keep, late, max_jobs, dead_keep)| Alteration {
            ttr,
            attempts,
            backoff,
            keep,
            late,
            max_jobs,
            dead_keep,
            ..Alteration::default()
        });
    drawn.boxed()
}

fn limits() -> impl Strategy<Value = Alteration> {
    let concurrency = prop_oneof![2 => Just(0u32), 4 => 1..4u32, 1 => Just(u32::MAX)];
    let jobs = prop_oneof![8 => 1..4u32, 1 => 4..40u32];
    let per = prop_oneof![1 => Just(1u64), 8 => 2..30u64, 1 => Just(3_000u64)];
    let burst = prop_oneof![4 => Just(1u32), 3 => 2..6u32];
    let rate = (jobs, per, burst).prop_map(|(jobs, per, burst)| Rate { jobs, per, burst });
    let parts = (
        prop::option::of(concurrency),
        prop::option::weighted(0.6, prop::option::weighted(0.8, rate)),
    );
    (parts, any::<bool>()).prop_map(|((concurrency, rate), of_groups)| {
        if of_groups {
            let (group_concurrency, group_rate) = (concurrency, rate);
            return Alteration { group_concurrency, group_rate, ..Alteration::default() };
        }
        Alteration { concurrency, rate, ..Alteration::default() }
    })
}

fn sink() -> impl Strategy<Value = Alteration> {
    let sink = (1..4u8, prop_oneof![Just(0u64), 1..9u64]);
    let sink = prop::option::of(sink).prop_map(Some);
    sink.prop_map(|sink| Alteration { sink, ..Alteration::default() })
}

fn of_operators() -> impl Strategy<Value = Operation> {
    let at_most = || prop_oneof![6 => 1..4usize, 1 => Just(1_000usize)];
    let purge = (prop::sample::select(State::ALL.to_vec()), span(), at_most());
    let purge =
        purge.prop_map(|(state, older, at_most)| Operation::Purge { state, older, at_most });
    prop_oneof![
        12 => several(which()).prop_map(Operation::Delete),
        8 => (at_most(), prop::option::weighted(0.3, span()))
            .prop_map(|(at_most, over)| Operation::Kick { at_most, over }),
        8 => several(which()).prop_map(Operation::KickJob),
        2 => several(which()).prop_map(Operation::Forget),
        5 => purge,
        4 => (group(), prop::option::weighted(0.8, 0..8u64))
            .prop_map(|(group, span)| Operation::Pause { group, span }),
        5 => group().prop_map(|group| Operation::Resume { group }),
        4 => several(which()).prop_map(Operation::ResumeJobs),
        2 => alteration().prop_map(Operation::Alter),
        5 => limits().prop_map(Operation::Alter),
        1 => sink().prop_map(Operation::Alter),
    ]
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        60 => of_producers(),
        110 => of_workers(),
        36 => of_operators(),
        10 => Just(Operation::Look),
        6 => Just(Operation::Upkeep),
    ]
}

pub fn turn() -> impl Strategy<Value = Turn> {
    (jump(), defaults(), floor(), readers(), operation()).prop_map(
        |(jump, defaults, floor, readers, operation)| Turn {
            jump,
            defaults,
            floor,
            readers,
            operation,
        },
    )
}

pub fn turns(most: usize) -> impl Strategy<Value = Vec<Turn>> {
    prop::collection::vec(turn(), 1..most)
}

/// Where the clock begins: at nothing, at a small number, today, shortly before the end of leases,
/// and before that of time.
pub fn clock() -> impl Strategy<Value = u64> {
    prop_oneof![
        2 => Just(0u64),
        8 => Just(1_000_000u64),
        8 => Just(1_763_725_200_000u64),
        1 => Just(LEASES_END - 2_000),
        1 => Just(LAST - 2_000),
    ]
}
