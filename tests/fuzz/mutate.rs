//! Changing an input a little, so that what comes out is still read to its end: a session stays
//! lines of words, a payload keeps the lengths of its strings right. What a byte here or there does
//! to these, a fuzzer tries by itself.

use fastrand::Rng;

use super::script::{self, Line};
use super::server::{Item, Word};

/// Where numbers turn over, and what the module says is the last time, span or lease.
const NUMBERS: [u64; 16] = [
    0,
    1,
    2,
    127,
    255,
    256,
    65_535,
    u32::MAX as u64,
    u32::MAX as u64 + 1,
    1 << 47,
    (1 << 48) - 1,
    1 << 48,
    (1 << 53) - 1,
    i64::MAX as u64,
    u64::MAX - 1,
    u64::MAX,
];

const CHANGES_MAX: usize = 4;

/// `words` are such as may stand in a line.
pub fn session(text: &[u8], words: &[Word], random: &mut Rng) -> Vec<u8> {
    let mut lines = script::parse(text);
    for _ in 0..random.usize(1..=CHANGES_MAX) {
        change_lines(&mut lines, words, random);
    }
    script::print(&lines)
}

/// The words of all these sessions.
pub fn words_of<'t>(texts: impl IntoIterator<Item = &'t [u8]>) -> Vec<Word> {
    let mut words: Vec<Word> = texts.into_iter().flat_map(script::parse).flatten().collect();
    words.sort();
    words.dedup();
    words
}

fn change_lines(lines: &mut Vec<Line>, words: &[Word], random: &mut Rng) {
    let Some(at) = pick(lines.len(), random) else {
        lines.push(vec![some_word(words, random)]);
        return;
    };
    match random.u8(0..10) {
        0 => drop(lines.remove(at)),
        1 => lines.insert(at, lines[at].clone()),
        2 => {
            let other = random.usize(0..lines.len());
            lines.swap(at, other);
        }
        3 => {
            let ms = if random.bool() { random.u64(0..100_000) } else { some_number(random) };
            lines.insert(at, vec![format!("@{ms}").into_bytes()]);
        }
        _ => change_words(&mut lines[at], words, random),
    }
}

fn change_words(line: &mut Line, words: &[Word], random: &mut Rng) {
    let Some(at) = pick(line.len(), random) else {
        line.push(some_word(words, random));
        return;
    };
    match random.u8(0..8) {
        0 => drop(line.remove(at)),
        1 => line.insert(at, some_word(words, random)),
        2 => line[at] = some_word(words, random),
        3 => line[at] = some_number(random).to_string().into_bytes(),
        4 => line.push(some_word(words, random)),
        _ => change_bytes(&mut line[at], random),
    }
}

fn some_word(words: &[Word], random: &mut Rng) -> Word {
    pick(words.len(), random).map(|at| words[at].clone()).unwrap_or_default()
}

fn some_number(random: &mut Rng) -> u64 {
    let near = NUMBERS[random.usize(0..NUMBERS.len())];
    near.wrapping_add(random.u64(0..3)).wrapping_sub(1)
}

/// The first byte is the version of the encoding.
pub fn payload(input: &[u8], random: &mut Rng) -> Vec<u8> {
    let (version, value) = input.split_first().unwrap_or((&2, &[]));
    let mut items = Item::all(value);
    for _ in 0..random.usize(1..=CHANGES_MAX) {
        change_items(&mut items, random);
    }
    let mut changed = vec![*version];
    if random.u8(0..50) == 0 {
        changed[0] = random.u8(..);
    }
    items.iter().for_each(|item| item.write(&mut changed));
    changed.push(0);
    if random.u8(0..50) == 0 {
        changed.truncate(random.usize(0..=changed.len()));
    }
    changed
}

fn change_items(items: &mut Vec<Item>, random: &mut Rng) {
    let Some(at) = pick(items.len(), random) else {
        items.push(Item::Unsigned(some_number(random)));
        return;
    };
    match (random.u8(0..12), &mut items[at]) {
        (0, _) => drop(items.remove(at)),
        (1, _) => items.insert(at, items[at].clone()),
        // A made-up count has room made for it, as far as that goes: it takes its time.
        (2, Item::Unsigned(number)) if random.u16(0..500) == 0 => *number = some_number(random),
        (3, Item::Unsigned(number)) => {
            *number = number.wrapping_add(random.u64(0..3)).wrapping_sub(1)
        }
        (_, Item::Unsigned(_)) => (),
        (_, Item::String(bytes)) => change_bytes(bytes, random),
    }
}

/// Numbers and lengths of MessagePack stand behind a byte that says how long they are.
fn change_bytes(bytes: &mut Vec<u8>, random: &mut Rng) {
    let Some(at) = pick(bytes.len(), random) else {
        bytes.push(random.u8(..));
        return;
    };
    match random.u8(0..10) {
        0 => drop(bytes.remove(at)),
        1 => bytes.insert(at, random.u8(..)),
        2 => bytes[at] ^= 1 << random.u8(0..8),
        3 => bytes[at] = bytes[at].wrapping_add(random.u8(0..3)).wrapping_sub(1),
        4 => bytes[at] = random.u8(..),
        5 => bytes.truncate(at),
        6 => write_number(bytes, at, 0xcf, &some_number(random).to_be_bytes()),
        7 => write_number(bytes, at, 0xce, &(some_number(random) as u32).to_be_bytes()),
        8 => bytes[at] = [0xc0, 0xc2, 0xc3, 0x90, 0x9f, 0xdd, 0xc6, 0xdb, 0xcf][random.usize(0..9)],
        _ => {
            let (from, len) = (random.usize(0..bytes.len()), random.usize(0..32));
            let part: Vec<u8> = bytes[from..].iter().take(len).copied().collect();
            bytes.splice(at..at, part);
        }
    }
}

/// In the place of the number that begins here, if one does.
fn write_number(bytes: &mut Vec<u8>, at: usize, mark: u8, number: &[u8]) {
    let old = match bytes[at] {
        0xcc | 0xd0 => 2,
        0xcd | 0xd1 => 3,
        0xce | 0xd2 => 5,
        0xcf | 0xd3 => 9,
        _ => 1,
    };
    let end = (at + old).min(bytes.len());
    bytes.splice(at..end, std::iter::once(mark).chain(number.iter().copied()));
}

fn pick(len: usize, random: &mut Rng) -> Option<usize> {
    (len > 0).then(|| random.usize(0..len))
}
