use proptest::prelude::*;

use super::*;

fn is_match(glob: &[u8], id: &[u8]) -> bool {
    Glob::new(glob).compare(Id::new(id).unwrap()).is_match
}

/// What the page says, word by word, and exponential.
fn is_match_by_definition(glob: &[u8], id: &[u8]) -> bool {
    match (glob, id) {
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
    for (glob, matching, others) in table {
        for id in *matching {
            assert!(is_match(glob.as_bytes(), id.as_bytes()), "{glob} matches {id}");
        }
        for id in *others {
            assert!(!is_match(glob.as_bytes(), id.as_bytes()), "{glob} doesn't match {id}");
        }
    }
}

#[test]
fn a_pattern_matches_single_bytes_not_characters() {
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
    for glob in [
        "a*".repeat(32) + "b",
        "a*".repeat(10_000) + "b",
        "*a".repeat(256) + "b",
        "*".repeat(100_000) + "b",
        "*?".repeat(300) + "b",
        "*[a-z]".repeat(300) + "*b",
        format!("*{}b", "a".repeat(255)),
        format!("*{}b*{}b", "a".repeat(128), "a".repeat(128)),
    ] {
        let Compared { is_match, steps } = Glob::new(glob.as_bytes()).compare(id);
        let most = (ID_BYTES_MAX + 1) * (glob.len() + 1).min(2 * ID_BYTES_MAX + 2);
        assert!(!is_match && steps <= most, "{steps} steps for {glob}");
    }
}

#[test]
fn a_pattern_takes_no_more_memory_than_an_id_may_need() {
    let exact = Glob::new(&b"?".repeat(ID_BYTES_MAX));
    assert!(exact.compare(Id::new(&[0; ID_BYTES_MAX]).unwrap()).is_match);
    for long in ["?".repeat(ID_BYTES_MAX + 1), "[ab]".repeat(1_000_000)] {
        assert!(Glob::new(long.as_bytes()).parts.is_none());
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
    fn patterns_of_few_letters_match_by_definition(glob in text(0..9), id in text(1..7)) {
        prop_assert_eq!(is_match(&glob, &id), is_match_by_definition(&glob, &id));
    }

    #[test]
    fn patterns_and_ids_of_any_bytes_match_by_definition(
        glob in prop::collection::vec(any::<u8>(), 0..6),
        id in prop::collection::vec(any::<u8>(), 1..6),
    ) {
        prop_assert_eq!(is_match(&glob, &id), is_match_by_definition(&glob, &id));
        // And a glob of its own bytes, escaped, matches an id.
        let escaped: Vec<u8> = id.iter().flat_map(|byte| [b'\\', *byte]).collect();
        prop_assert!(is_match(&escaped, &id));
    }
}
