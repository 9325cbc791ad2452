//! Patterns of ids, as in the server's own SCAN and KEYS:
//!
//! | part | what it matches |
//! | --- | --- |
//! | `*` | any bytes, or none |
//! | `?` | any byte |
//! | `[a-z_]`, `[^0-9]` | one of these bytes; any byte except these |
//! | `\*` | the byte after the backslash, also in brackets |
//!
//! A glob that looks like a mistake matches as it does in the server: brackets that aren't closed
//! reach to the end, the ends of a descending range are swapped, a backslash at the end matches a
//! backslash, `[]` matches no byte and `[^]` any byte.
//!
//! A glob matches bytes, not letters: `?` matches one of the two bytes of `é`. In ranges, bytes
//! count from 0 to 255; in the server that depends on whether the machine's `char` has a sign.
//!
//! Once the next star is reached, the search never returns to an earlier one: if the later parts
//! match anywhere, they also match from the earliest place on. So an id costs at most its length
//! times the length of the glob, and no glob takes exponential time, as some did in the server
//! (CVE-2022-36021).

use super::ids::{Id, ID_BYTES_MAX};

/// A parsed glob. Takes a few kilobytes, however long the text was.
#[derive(Clone, Debug)]
pub struct Glob {
    /// `None` if it needs more bytes than an id has.
    parts: Option<Vec<Part>>,
}

#[derive(Clone, Debug)]
enum Part {
    Star,
    AnyByte,
    Byte(u8),
    OneOf(Box<ByteSet>),
}

/// Whether an id matches, and how many bytes were compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compared {
    pub is_match: bool,
    pub steps: usize,
}

impl Glob {
    /// Every sequence of bytes is a glob. O(its length).
    pub fn new(glob: &[u8]) -> Glob {
        let (mut parts, mut bytes_needed) = (Vec::new(), 0);
        let mut rest = glob;
        while let Some((part, behind)) = first_part(rest) {
            rest = behind;
            match (&part, parts.last()) {
                (Part::Star, Some(Part::Star)) => continue,
                (Part::Star, _) => {}
                (Part::AnyByte | Part::Byte(_) | Part::OneOf(_), _) => bytes_needed += 1,
            }
            if bytes_needed > ID_BYTES_MAX {
                return Glob { parts: None };
            }
            parts.push(part);
        }
        Glob { parts: Some(parts) }
    }

    /// O(length of the id × length of the glob) at most; for most globs O(length of the id).
    pub fn compare(&self, id: Id) -> Compared {
        match &self.parts {
            Some(parts) => compare(parts, id.bytes()),
            None => Compared { is_match: false, steps: 0 },
        }
    }
}

/// Where to try again: after the latest star, which has matched the bytes before this one.
#[derive(Clone, Copy)]
struct Retry {
    part: usize,
    byte: usize,
}

fn compare(parts: &[Part], bytes: &[u8]) -> Compared {
    let (mut part, mut at, mut steps) = (0, 0, 0);
    let mut retry: Option<Retry> = None;
    loop {
        steps += 1;
        let goes_on = match (parts.get(part), bytes.get(at)) {
            (Some(Part::Star), _) => {
                retry = Some(Retry { part: part + 1, byte: at });
                part += 1;
                continue;
            }
            (None, None) => return Compared { is_match: true, steps },
            (Some(wanted), Some(byte)) => wanted.takes(*byte),
            // No byte is left for this part, and moving the latest star on leaves even fewer bytes.
            (Some(_), None) => return Compared { is_match: false, steps },
            (None, Some(_)) => false,
        };
        match (goes_on, &mut retry) {
            (true, _) => (part, at) = (part + 1, at + 1),
            (false, Some(retry)) => {
                retry.byte += 1;
                (part, at) = (retry.part, retry.byte);
            }
            (false, None) => return Compared { is_match: false, steps },
        }
    }
}

impl Part {
    /// Whether this part matches this byte.
    fn takes(&self, byte: u8) -> bool {
        match self {
            Part::Star => false,
            Part::AnyByte => true,
            Part::Byte(wanted) => *wanted == byte,
            Part::OneOf(set) => set.has(byte),
        }
    }
}

/// The first part of a glob, and the rest; `None` at its end.
fn first_part(glob: &[u8]) -> Option<(Part, &[u8])> {
    Some(match glob {
        [] => return None,
        [b'*', rest @ ..] => (Part::Star, rest),
        [b'?', rest @ ..] => (Part::AnyByte, rest),
        [b'[', b'^', rest @ ..] => {
            let (set, rest) = brackets(rest);
            (Part::OneOf(Box::new(set.inverted())), rest)
        }
        [b'[', rest @ ..] => {
            let (set, rest) = brackets(rest);
            (Part::OneOf(Box::new(set)), rest)
        }
        [b'\\', byte, rest @ ..] | [byte, rest @ ..] => (Part::Byte(*byte), rest),
    })
}

/// The set in brackets, and the text after them.
fn brackets(mut inside: &[u8]) -> (ByteSet, &[u8]) {
    let mut set = ByteSet::default();
    loop {
        inside = match inside {
            [] => return (set, &[]),
            [b'\\', byte, rest @ ..] => {
                set.add(*byte, *byte);
                rest
            }
            [b']', rest @ ..] => return (set, rest),
            [from, b'-', to, rest @ ..] => {
                set.add(*from.min(to), *from.max(to));
                rest
            }
            [byte, rest @ ..] => {
                set.add(*byte, *byte);
                rest
            }
        };
    }
}

/// A bit for each byte.
#[derive(Clone, Debug, Default)]
struct ByteSet([u64; 4]);

impl ByteSet {
    fn add(&mut self, from: u8, to: u8) {
        for byte in from..=to {
            if let Some(word) = self.0.get_mut(usize::from(byte / 64)) {
                *word |= 1 << (byte % 64);
            }
        }
    }

    fn has(&self, byte: u8) -> bool {
        self.0.get(usize::from(byte / 64)).is_some_and(|word| word >> (byte % 64) & 1 != 0)
    }

    fn inverted(self) -> ByteSet {
        ByteSet(self.0.map(|word| !word))
    }
}

#[cfg(test)]
mod tests;
