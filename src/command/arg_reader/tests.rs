//! How arguments are read.

use super::*;

#[test]
fn integers_are_digits() {
    assert_eq!(parse_integer(b"0"), Some(0));
    assert_eq!(parse_integer(b"18446744073709551615"), Some(u64::MAX));
    for word in ["", "-1", "+1", " 1", "1 ", "01", "1.0", "1e3", "0x1", "18446744073709551616", "١"]
    {
        assert_eq!(parse_integer(word.as_bytes()), None, "{word}");
    }
}

#[test]
fn integers_of_any_length_are_what_the_standard_library_reads() {
    let bytes = b"0123456789/:9 +x\xff".as_slice();
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..200_000 {
        let kinds = if random.bool() { 10 } else { bytes.len() };
        let word: Vec<u8> =
            (0..random.usize(0..=21)).map(|_| bytes[random.usize(..kinds)]).collect();
        let is_plain =
            word.iter().all(u8::is_ascii_digit) && (word.len() == 1 || !word.starts_with(b"0"));
        let expected =
            std::str::from_utf8(&word).ok().filter(|_| is_plain).and_then(|word| word.parse().ok());
        assert_eq!(parse_integer(&word), expected, "{}", word.escape_ascii());
    }
}

#[test]
fn names_are_of_letters_in_any_case() {
    for word in ["DELAY", "delay", "DeLaY"] {
        assert!(Name::read(word.as_bytes()) == Some(Name::of("DELAY")), "{word}");
    }
    for word in ["", "DELA", "DELAYS", "DELAY ", "DELAY\0", "$ELAY", "\u{4}ELAY", "DELA9"] {
        assert!(Name::read(word.as_bytes()) != Some(Name::of("DELAY")), "{word}");
    }
    assert!(Name::read(b"GROUPCONCURRENCY") == Some(Name::of("GROUPCONCURRENCY")));
    assert!(Name::read(b"GROUPCONCURRENCYS").is_none());
}

#[test]
fn leases_are_positive_or_a_star() {
    assert_eq!(parse_lease(b"*"), Ok(None));
    assert_eq!(parse_lease(b"7"), Ok(Some(Lease::new(7))));
    for word in ["0", "-1", "**", "", "18446744073709551616"] {
        assert_eq!(parse_lease(word.as_bytes()), Err(Error::Lease), "{word}");
    }
}
