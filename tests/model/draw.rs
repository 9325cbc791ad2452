//! How likely which operation is: at times and with spans at which things happen together.

use dq::queue::State;
use proptest::prelude::*;

use crate::operation::{By, Claim, DueIn, Floor, Jump, NewId, Operation, Turn, Which, GIVEN_IDS};
use crate::told::{Policy, Settings, LAST};

const YEAR: u64 = 365 * 86_400_000;

/// A span: most often of a size at which things happen together.
fn span() -> impl Strategy<Value = u64> {
    prop_oneof![
        6 => Just(0u64),
        6 => Just(1u64),
        10 => 2..8u64,
        4 => 1_000..5_000u64,
        1 => (1..50u64).prop_map(|years| years * YEAR),
    ]
}

fn jump() -> impl Strategy<Value = Jump> {
    prop_oneof![
        9 => span().prop_map(Jump::Forward),
        1 => span().prop_map(Jump::Back),
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

fn policy() -> impl Strategy<Value = Policy> {
    let attempts = prop_oneof![3 => Just(0u32), 6 => 1..4u32, 1 => Just(u32::MAX)];
    let priority = prop_oneof![5 => Just(128u8), 2 => Just(0u8), 2 => Just(255u8), 1 => any::<u8>()];
    let parts = (ttr(), attempts, priority, span_if_any(), span_if_any(), span_if_any(), span_if_any());
    parts.prop_map(|(ttr, attempts, priority, backoff_base, backoff_max, ttl, keep)| Policy {
        ttr,
        attempts,
        priority,
        backoff_base,
        backoff_max,
        ttl,
        keep,
    })
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
        1 => (0..=GIVEN_IDS).prop_map(Which::Given),
        3 => any::<u16>().prop_map(Which::There),
    ]
}

fn claim() -> impl Strategy<Value = Claim> {
    let by = prop_oneof![
        4 => Just(By::TheirLease),
        4 => any::<u16>().prop_map(By::SomeLease),
        1 => prop_oneof![0..10u64, Just(u64::MAX)].prop_map(By::NoLease),
        2 => Just(By::Latest),
    ];
    (which(), by).prop_map(|(job, by)| Claim { job, by })
}

fn of_producers() -> impl Strategy<Value = Operation> {
    let add = (new_id(), due(), policy(), prop::bool::weighted(0.3));
    let add = add.prop_map(|(id, due, policy, replaces)| Operation::Add { id, due, policy, replaces });
    let many = (200..600u64, due(), policy());
    let many = many.prop_map(|(jobs, due, policy)| Operation::AddMany { jobs, due, policy });
    prop_oneof![60 => add, 1 => many]
}

fn of_workers() -> impl Strategy<Value = Operation> {
    let count = prop_oneof![12 => Just(1usize), 4 => 2..6usize, 1 => 100..400usize];
    let floor = prop_oneof![Just(Floor::None), Just(Floor::OfClock)];
    let pop = (count, prop::option::of(ttr()), floor);
    let pop = pop.prop_map(|(count, ttr, floor)| Operation::Pop { count, ttr, floor });
    let release = (claim(), prop::bool::weighted(0.2), prop::option::of(span()), prop::option::of(0..3u8));
    let release = release.prop_map(|(claim, unbegun, delay, reason)| Operation::Release {
        claim,
        unbegun,
        delay,
        reason,
    });
    let touch = (claim(), prop::option::of(ttr()));
    let touch = touch.prop_map(|(claim, ttr)| Operation::Touch { claim, ttr });
    let bury = (claim(), prop::option::of(0..3u8));
    let bury = bury.prop_map(|(claim, reason)| Operation::Bury { claim, reason });
    let count = prop_oneof![4 => 1..5usize, 1 => 5..300usize];
    prop_oneof![
        60 => pop,
        20 => claim().prop_map(Operation::Finish),
        16 => release,
        12 => touch,
        6 => bury,
        6 => count.prop_map(|count| Operation::GiveBack { count }),
    ]
}

fn of_operators() -> impl Strategy<Value = Operation> {
    let at_most = || prop_oneof![6 => 1..4usize, 1 => Just(1_000usize)];
    let purge = (prop::sample::select(State::ALL.to_vec()), span(), at_most());
    let purge = purge.prop_map(|(state, older, at_most)| Operation::Purge { state, older, at_most });
    let max_jobs = prop_oneof![3 => Just(0u64), 1 => 1..9u64];
    let settings = (max_jobs, span_if_any());
    let settings = settings.prop_map(|(max_jobs, dead_keep)| Settings { max_jobs, dead_keep });
    prop_oneof![
        12 => which().prop_map(Operation::Delete),
        8 => at_most().prop_map(|at_most| Operation::Kick { at_most }),
        8 => which().prop_map(Operation::KickJob),
        5 => purge,
        2 => prop_oneof![2 => Just(0u64), 1 => 1..8u64].prop_map(|span| Operation::Pause { span }),
        2 => settings.prop_map(Operation::Alter),
    ]
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        60 => of_producers(),
        110 => of_workers(),
        36 => of_operators(),
        10 => Just(Operation::Advance),
        6 => (1..4usize).prop_map(|at_most| Operation::BuryOverdue { at_most }),
        6 => Just(Operation::Upkeep),
    ]
}

fn turn() -> impl Strategy<Value = Turn> {
    (jump(), operation()).prop_map(|(jump, operation)| Turn { jump, operation })
}

pub fn turns(most: usize) -> impl Strategy<Value = Vec<Turn>> {
    prop::collection::vec(turn(), 1..most)
}

/// Where the clock begins: at nothing, at a small number, today, shortly before the end of time.
pub fn clock() -> impl Strategy<Value = u64> {
    prop_oneof![
        1 => Just(0u64),
        4 => Just(1_000_000u64),
        4 => Just(1_763_725_200_000u64),
        1 => Just(LAST - 2_000),
    ]
}
