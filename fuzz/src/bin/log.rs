#![no_main]

use dq_fuzz::{change_in_place, mutate, script, session, words};

libfuzzer_sys::fuzz_target!(|input: &[u8]| session::play(&script::parse(input)));

libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    change_in_place(data, size, max_size, seed, |text, random| {
        mutate::session(text, words(), random)
    })
});
