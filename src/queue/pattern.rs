//! Patterns of ids, as those of the server's own SCAN and KEYS:
//!
//! | part | what it stands for |
//! | --- | --- |
//! | `*` | any bytes, or none |
//! | `?` | any byte |
//! | `[a-z_]`, `[^0-9]` | one of these bytes; any other than these |
//! | `\*` | the byte behind the backslash, also in brackets |
//!
//! What the server makes of a pattern that looks like a mistake is made of it here: brackets that aren't closed reach to the
//! end, a range from above is turned round, a backslash at the end is one, `[]` is no byte and `[^]` is any.
//!
//! Bytes, not letters: `?` is one of the two of `é`. In ranges bytes count from 0 to 255; in the server that depends on the
//! machine, whose `char` has a sign or none.
//!
//! A star that was passed is never gone back to once the next one has been reached: whatever the later parts match, they
//! match from the earliest place on. So an id costs at most its length times that of the pattern, and no pattern is
//! exponential, as it was in the server (CVE-2022-36021).

use super::ids::{Id, ID_BYTES_MAX};

/// A pattern that has been read. Takes a few kilobytes, however long it was.
#[derive(Clone, Debug)]
pub struct Pattern {
    /// `None`: it asks for more bytes than an id has.
    parts: Option<Vec<Part>>,
}

#[derive(Clone, Debug)]
enum Part {
    Star,
    AnyByte,
    Byte(u8),
    OneOf(Box<ByteSet>),
}

/// Whether an id matches, and how many bytes were compared to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compared {
    pub is_match: bool,
    pub steps: usize,
}

impl Pattern {
    /// Every sequence of bytes is a pattern. O(its length).
    pub fn new(pattern: &[u8]) -> Pattern {
        let (mut parts, mut bytes_needed) = (Vec::new(), 0);
        let mut rest = pattern;
        while let Some((part, behind)) = first_part(rest) {
            rest = behind;
            match (&part, parts.last()) {
                (Part::Star, Some(Part::Star)) => continue,
                (Part::Star, _) => {}
                (Part::AnyByte | Part::Byte(_) | Part::OneOf(_), _) => bytes_needed += 1,
            }
            if bytes_needed > ID_BYTES_MAX {
                return Pattern { parts: None };
            }
            parts.push(part);
        }
        Pattern { parts: Some(parts) }
    }

    /// O(length of the id × that of the pattern) at most; most often O(length of the id).
    pub fn compare(&self, id: Id) -> Compared {
        match &self.parts {
            Some(parts) => compare(parts, id.bytes()),
            None => Compared { is_match: false, steps: 0 },
        }
    }
}

/// Where to try again: behind the latest star, which has taken up to this byte.
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
            // Nothing is left that a later star could give it.
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
    /// Whether this is a byte that it stands for.
    fn takes(&self, byte: u8) -> bool {
        match self {
            Part::Star => false,
            Part::AnyByte => true,
            Part::Byte(wanted) => *wanted == byte,
            Part::OneOf(set) => set.has(byte),
        }
    }
}

/// The first part of a pattern, and the rest; `None` at its end.
fn first_part(pattern: &[u8]) -> Option<(Part, &[u8])> {
    Some(match pattern {
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

/// What stands in brackets, and what is behind them.
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
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn is_match(pattern: &[u8], id: &[u8]) -> bool {
        Pattern::new(pattern).compare(Id::new(id).unwrap()).is_match
    }

    /// What the page says, word by word, and exponential.
    fn is_match_by_definition(pattern: &[u8], id: &[u8]) -> bool {
        match (pattern, id) {
            ([], _) => id.is_empty(),
            ([b'*', rest @ ..], _) => (0..=id.len()).any(|n| is_match_by_definition(rest, &id[n..])),
            (_, []) => false,
            ([b'?', rest @ ..], [_, id @ ..]) => is_match_by_definition(rest, id),
            ([b'[', rest @ ..], [byte, id @ ..]) => {
                let (is_inverted, mut rest) = match rest {
                    [b'^', rest @ ..] => (true, rest),
                    _ => (false, rest),
                };
                let mut is_in = false;
                while !rest.is_empty() && rest[0] != b']' {
                    let taken = match rest {
                        [b'\\', wanted, ..] => {
                            is_in |= wanted == byte;
                            2
                        }
                        [one, b'-', other, ..] => {
                            is_in |= (one..=other).contains(&byte) || (other..=one).contains(&byte);
                            3
                        }
                        _ => {
                            is_in |= rest[0] == *byte;
                            1
                        }
                    };
                    rest = &rest[taken..];
                }
                is_in != is_inverted && is_match_by_definition(rest.get(1..).unwrap_or(&[]), id)
            }
            ([b'\\', wanted, rest @ ..] | [wanted, rest @ ..], [byte, id @ ..]) => {
                wanted == byte && is_match_by_definition(rest, id)
            }
        }
    }

    #[test]
    fn patterns_match_what_those_of_the_server_match() {
        let table: &[(&str, &[&str], &[&str])] = &[
            ("*", &["a", "abc"], &[]),
            ("", &[], &["a"]),
            ("a", &["a"], &["b", "aa"]),
            ("h?llo", &["hello", "hxllo"], &["hllo", "heello"]),
            ("h*llo", &["hllo", "heeeello"], &["hell"]),
            ("h[ae]llo", &["hello", "hallo"], &["hillo"]),
            ("h[^e]llo", &["hallo", "h^llo"], &["hello", "hllo"]),
            ("h[a-b]llo", &["hallo", "hbllo"], &["hcllo", "h-llo"]),
            ("h[b-a]llo", &["hallo", "hbllo"], &["hcllo"]),
            ("**a**", &["a", "ba", "ab"], &["b"]),
            ("*a*b*c", &["abc", "xaxbxc", "abcabc"], &["acb", "ab"]),
            (r"\*", &["*"], &["a", r"\*"]),
            (r"a\", &[r"a\"], &["a"]),
            (r"[\]]", &["]"], &[r"\", "a"]),
            (r"[\a-z]", &["a", "-", "z"], &["b", r"\"]),
            ("[a-]", &["a", "_", "]"], &["-", "b"]),
            ("[-a]", &["-", "a"], &["b"]),
            ("[", &[], &["[", "a"]),
            ("[^", &["a", "["], &["ab"]),
            ("[ab", &["a", "b"], &["["]),
            ("[]", &[], &["]", "["]),
            ("[^]", &["a", "]"], &["aa"]),
            ("[]a]", &[], &["a", "]a]", "a]"]),
            ("]", &["]"], &["["]),
        ];
        for (pattern, matching, others) in table {
            for id in *matching {
                assert!(is_match(pattern.as_bytes(), id.as_bytes()), "{pattern} matches {id}");
            }
            for id in *others {
                assert!(!is_match(pattern.as_bytes(), id.as_bytes()), "{pattern} doesn't match {id}");
            }
        }
    }

    #[test]
    fn bytes_are_bytes() {
        assert!(is_match(b"?", b"\xff") && is_match("??".as_bytes(), "é".as_bytes()));
        assert!(is_match(b"a\0*", b"a\0\n") && !is_match(b"a", b"a\0"));
        assert!(is_match(b"[\x80-\xff]", b"\xe9") && !is_match(b"[\x80-\xff]", b"a"));
        assert!(is_match(b"[a-\xff]", b"\xe9") && !is_match(b"[a-\xff]", b"A"));
    }

    /// These took a server before 6.2.11 and 7.0.9 for ever.
    #[test]
    fn no_pattern_costs_more_than_its_length_times_that_of_the_id() {
        let long = vec![b'a'; ID_BYTES_MAX];
        let id = Id::new(&long).unwrap();
        for pattern in [
            "a*".repeat(32) + "b",
            "a*".repeat(10_000) + "b",
            "*a".repeat(256) + "b",
            "*".repeat(100_000) + "b",
            "*?".repeat(300) + "b",
            "*[a-z]".repeat(300) + "*b",
            format!("*{}b", "a".repeat(255)),
            format!("*{}b*{}b", "a".repeat(128), "a".repeat(128)),
        ] {
            let Compared { is_match, steps } = Pattern::new(pattern.as_bytes()).compare(id);
            let most = (ID_BYTES_MAX + 1) * (pattern.len() + 1).min(2 * ID_BYTES_MAX + 2);
            assert!(!is_match && steps <= most, "{steps} steps for {pattern}");
        }
    }

    #[test]
    fn a_pattern_takes_no_more_memory_than_an_id_may_need() {
        let exact = Pattern::new(&b"?".repeat(ID_BYTES_MAX));
        assert!(exact.compare(Id::new(&[0; ID_BYTES_MAX]).unwrap()).is_match);
        for long in ["?".repeat(ID_BYTES_MAX + 1), "[ab]".repeat(1_000_000)] {
            assert!(Pattern::new(long.as_bytes()).parts.is_none());
        }
        // One byte, and many stars; a long set; many escapes.
        assert!(is_match(&b"*".repeat(1_000_000), b"a"));
        assert!(is_match(format!("[{}]", "b-z".repeat(100_000)).as_bytes(), b"c"));
        assert!(is_match(br"\a".repeat(ID_BYTES_MAX).as_slice(), &[b'a'; ID_BYTES_MAX]));
    }

    /// Few bytes, so that they meet; those of patterns among them.
    fn text(len: std::ops::Range<usize>) -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(prop::sample::select(br"aabbc*?[]^-\".to_vec()), len)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_pattern_matches_what_it_should_by_definition(pattern in text(0..9), id in text(1..7)) {
            prop_assert_eq!(is_match(&pattern, &id), is_match_by_definition(&pattern, &id));
        }

        #[test]
        fn also_of_any_bytes(
            pattern in prop::collection::vec(any::<u8>(), 0..6),
            id in prop::collection::vec(any::<u8>(), 1..6),
        ) {
            prop_assert_eq!(is_match(&pattern, &id), is_match_by_definition(&pattern, &id));
            // And a pattern of its own bytes, escaped, matches an id.
            let escaped: Vec<u8> = id.iter().flat_map(|byte| [b'\\', *byte]).collect();
            prop_assert!(is_match(&escaped, &id));
        }
    }
}
