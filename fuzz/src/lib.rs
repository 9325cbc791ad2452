//! What is fuzzed is what `cargo test` tries a little of: `tests/fuzz`. Here it meets libFuzzer,
//! which looks at what an input reaches.

// As in the tests, of which this consists; they use some more of it.
#![allow(clippy::missing_safety_doc, dead_code)]

#[path = "../../tests/fuzz/look.rs"]
mod look;
#[path = "../../tests/fuzz/mutate.rs"]
pub mod mutate;
#[path = "../../tests/fuzz/payload.rs"]
pub mod payload;
#[path = "../../tests/fuzz/script.rs"]
pub mod script;
#[path = "../../tests/fuzz/server/mod.rs"]
pub mod server;
#[path = "../../tests/fuzz/session.rs"]
pub mod session;

use std::sync::OnceLock;

use fastrand::Rng;
use libfuzzer_sys::fuzzer_mutate;

/// A change of the input in its place: half of them as libFuzzer does it, to its bytes, half by
/// what `change` knows of its form.
pub fn change_in_place(
    data: &mut [u8],
    size: usize,
    max_size: usize,
    seed: u32,
    change: impl FnOnce(&[u8], &mut Rng) -> Vec<u8>,
) -> usize {
    let mut random = Rng::with_seed(seed.into());
    if random.bool() {
        return fuzzer_mutate(data, size, max_size);
    }
    let changed = change(&data[..size], &mut random);
    let len = changed.len().min(max_size);
    data[..len].copy_from_slice(&changed[..len]);
    len
}

/// The words of the sessions in the corpus.
pub fn words() -> &'static [server::Word] {
    static WORDS: OnceLock<Vec<server::Word>> = OnceLock::new();
    WORDS.get_or_init(|| {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/fuzz/corpus");
        let folders = ["commands", "log"].map(|name| std::fs::read_dir(format!("{root}/{name}")));
        let files = folders.into_iter().flatten().flatten().flatten();
        let texts: Vec<Vec<u8>> =
            files.filter_map(|file| std::fs::read(file.path()).ok()).collect();
        mutate::words_of(texts.iter().map(Vec::as_slice))
    })
}
