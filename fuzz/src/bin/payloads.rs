//! Many payloads, quickly: changes of what the given folders have, chosen by chance and not by what
//! they reach. Each is restored, and where it is taken, its queue hands out a job and is freed; one
//! in a hundred of these is looked at in every way.
//!
//! `payloads 10000000 SEED tests/fuzz/corpus/restore`

use std::time::Instant;

use dq_fuzz::{mutate, payload};
use fastrand::Rng;

const LEN_MAX: usize = 4_096;
const LOOKED_AT: usize = 100;

fn main() {
    let mut words = std::env::args().skip(1);
    let mut next =
        || words.next().and_then(|word| word.parse::<u64>().ok()).expect("how many, and the seed");
    let (number, seed) = (next(), next());
    let mut files: Vec<_> = words
        .flat_map(|folder| std::fs::read_dir(folder).expect("a folder"))
        .map(|entry| entry.expect("a folder").path())
        .collect();
    files.sort();
    let inputs: Vec<Vec<u8>> =
        files.iter().map(|file| std::fs::read(file).expect("a file")).collect();
    let (mut random, mut taken, began) = (Rng::with_seed(seed), 0, Instant::now());
    for _ in 0..number {
        let mut input = mutate::payload(&inputs[random.usize(0..inputs.len())], &mut random);
        input.truncate(LEN_MAX);
        if payload::restore_and_free(&input) {
            taken += 1;
            if taken % LOOKED_AT == 0 {
                payload::restore(&input);
            }
        }
    }
    println!("{number} payloads, {taken} taken, in {:.1} s", began.elapsed().as_secs_f64());
}
