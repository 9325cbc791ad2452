//! Random comings and goings, beside the plain `Vec`.

use super::*;

#[derive(Clone, Debug)]
enum Op {
    Insert {
        time: u64,
        kind: EntryKind,
        copies: usize,
        window: windows::Draw,
    },
    /// So many in a row, from this place (in 1/65536 of all) in the order.
    Remove {
        place: u16,
        run: usize,
    },
    /// All of them but one in so many: what is left is thin everywhere.
    Thin {
        one_in: usize,
    },
    /// On or back.
    Advance {
        time: u64,
    },
    /// Somebody looks for what is open then: hints and bounds change.
    Look {
        time: u64,
    },
    /// Takes so many of those that are open then, and puts each where its lease ends.
    HandOut {
        time: u64,
        jobs: usize,
        ttr: u64,
    },
    Copy,
}

fn op(times: u64) -> impl Strategy<Value = Op> {
    let copies = prop_oneof![4 => Just(1usize), 4 => 2..60usize, 2 => 200..600usize];
    let run = prop_oneof![4 => Just(1usize), 4 => 2..100usize, 2 => 200..700usize];
    let kind = prop::sample::select(ENTRY_KINDS.to_vec());
    let insert = (0..times, kind, copies, windows::draw(times));
    let insert =
        insert.prop_map(|(time, kind, copies, window)| Op::Insert { time, kind, copies, window });
    prop_oneof![
        10 => insert,
        6 => (any::<u16>(), run.clone()).prop_map(|(place, run)| Op::Remove { place, run }),
        1 => (2..100usize).prop_map(|one_in| Op::Thin { one_in }),
        3 => (0..times).prop_map(|time| Op::Advance { time }),
        6 => (0..2 * times).prop_map(|time| Op::Look { time }),
        6 => (0..times, run, 1..times).prop_map(|(time, jobs, ttr)| Op::HandOut { time, jobs, ttr }),
        1 => Just(Op::Copy),
    ]
}

fn apply(pair: &mut Pair, op: &Op, times: u64) {
    match *op {
        Op::Insert { time, kind, copies, window } => {
            // Of few times, all the same one; of many, a short stretch of them.
            let stretch = times / 1_000 + 1;
            for n in 0..copies as u64 {
                let time = time + n * 7 % stretch;
                pair.insert_open(time, kind, window.of(time, n));
            }
        }
        Op::Remove { place, run } => {
            for _ in 0..run.min(pair.plain.len()) {
                let place = pair.plain.len() * usize::from(place) / 65_536;
                pair.remove(place);
            }
        }
        Op::Thin { one_in } => {
            for place in (0..pair.plain.len()).rev() {
                if place % one_in != 0 {
                    pair.remove(place);
                }
            }
        }
        Op::Advance { time } => pair.advance(time),
        Op::Look { time } => pair.look(at(time)),
        Op::HandOut { time, jobs, ttr } => (0..jobs).for_each(|_| pair.hand_out(time, ttr)),
        Op::Copy => *pair = pair.clone(),
    }
}

fn runs(times: u64, ops: &[Op]) {
    let mut pair = Pair::default();
    for op in ops {
        apply(&mut pair, op, times);
        pair.check();
    }
}

const FEW: u64 = 4;
const MANY: u64 = 1_000_000;

proptest! {
    #[test]
    fn buckets_of_few_times_are_a_sorted_list(ops in prop::collection::vec(op(FEW), 1..40)) {
        runs(FEW, &ops);
    }

    #[test]
    fn buckets_of_many_times_are_a_sorted_list(ops in prop::collection::vec(op(MANY), 1..40)) {
        runs(MANY, &ops);
    }
}
