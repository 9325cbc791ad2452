//! Why jobs died, as patterns: what differs from job to job in a reason becomes `#`, so that jobs
//! that died of the same can be counted together.
//!
//! Folded are numbers, addresses, ids (hex, UUIDs, words of letters and digits), names with an `@`,
//! and quoted strings, but those of an object of JSON. Kept is what says what happened: words, units, and a number of up to three
//! digits behind a word such as `HTTP`, `status` or `errno`.

/// A longer pattern is cut: it goes into links, and two that differ only behind that are one.
const CHARS_MAX: usize = 400;
/// Behind these a short number is the name of an error, not a quantity.
const BEFORE_A_CODE: [&str; 6] = ["http", "status", "code", "error", "errno", "response"];
const QUOTES: [(char, char); 6] =
    [('"', '"'), ('\'', '\''), ('`', '`'), ('“', '”'), ('‘', '’'), ('«', '»')];

/// The pattern of a reason: text in one line, whatever bytes the reason has. Empty for an empty one.
pub fn pattern(reason: &[u8]) -> String {
    let text = String::from_utf8_lossy(reason);
    let text = if is_object(&text) { text.into_owned() } else { without_quoted(&text) };
    let mut folded = Folded::default();
    for (index, word) in text.split_whitespace().enumerate() {
        if index > 0 {
            folded.text.push(' ');
        }
        folded.word(word);
    }
    without_lists(&folded.text).chars().take(CHARS_MAX).collect()
}

/// An object of JSON or of Python: all its words are quoted, also those that say what happened.
fn is_object(text: &str) -> bool {
    let text = text.trim_start().trim_start_matches('[');
    text.strip_prefix('{').is_some_and(|rest| rest.trim_start().starts_with(['"', '\'']))
}

/// Each quoted string is `#` in its quotes. An apostrophe is no quote: one that opens has no letter
/// before it, one that closes has none behind it.
fn without_quoted(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let (mut out, mut at) = (String::new(), 0);
    while let Some(char) = chars.get(at) {
        out.push(*char);
        let before = at.checked_sub(1).and_then(|before| chars.get(before));
        let close = QUOTES.iter().find(|(open, _)| open == char).map(|(_, close)| *close);
        let close = close.filter(|_| !before.is_some_and(|before| before.is_alphanumeric()));
        match close.and_then(|close| end_of_quoted(&chars, at + 1, close)) {
            Some(end) => {
                out.push('#');
                out.extend(chars.get(end));
                at = end + 1;
            }
            None => at += 1,
        }
    }
    out
}

fn end_of_quoted(chars: &[char], from: usize, close: char) -> Option<usize> {
    let mut at = from;
    loop {
        match chars.get(at)? {
            '\\' => at += 1,
            char if *char == close => {
                let is_inside = chars.get(at + 1).is_some_and(|next| next.is_alphanumeric());
                if !is_inside {
                    return Some(at);
                }
            }
            _ => {}
        }
        at += 1;
    }
}

/// Text without spaces becomes its pattern, token by token.
#[derive(Default)]
struct Folded {
    text: String,
    /// The last word, which tells what a number behind it is.
    last: String,
}

impl Folded {
    fn word(&mut self, word: &str) {
        let mut rest = word;
        while let Some(char) = rest.chars().next() {
            let token = rest.split(|char| !is_of_token(char)).next().unwrap_or_default();
            if token.is_empty() {
                self.text.push(char);
                rest = rest.get(char.len_utf8()..).unwrap_or_default();
            } else {
                self.token(token);
                rest = rest.get(token.len()..).unwrap_or_default();
            }
        }
    }

    fn token(&mut self, token: &str) {
        let core = token.trim_end_matches(['.', ':', '-']);
        if is_address(core) || is_ipv6(core) {
            self.text.push('#');
        } else if let Some(at) = uuid_in(core) {
            self.runs(core.get(..at).unwrap_or_default());
            self.text.push('#');
            self.runs(core.get(at + UUID.len()..).unwrap_or_default());
        } else {
            self.runs(core);
        }
        self.text.push_str(token.get(core.len()..).unwrap_or_default());
    }

    /// Runs of letters and digits, and what joins them.
    fn runs(&mut self, token: &str) {
        let mut rest = token;
        while let Some(char) = rest.chars().next() {
            let run = rest.split(|char: char| !char.is_alphanumeric()).next().unwrap_or_default();
            if run.is_empty() {
                self.text.push(char);
                rest = rest.get(char.len_utf8()..).unwrap_or_default();
            } else {
                self.run(run);
                rest = rest.get(run.len()..).unwrap_or_default();
            }
        }
    }

    fn run(&mut self, run: &str) {
        if !run.contains(is_digit) {
            self.text.push_str(run);
            self.last = run.to_lowercase();
        } else if self.is_code(run) {
            self.text.push_str(run);
            // HTTP/1.1 502: all three.
            if self.last != "http" {
                self.last.clear();
            }
        } else if is_id(run) {
            self.text.push('#');
            self.last.clear();
        } else {
            let mut was_digit = false;
            for char in run.chars() {
                match (is_digit(char), was_digit) {
                    (true, false) => self.text.push('#'),
                    (true, true) => {}
                    (false, _) => self.text.push(char),
                }
                was_digit = is_digit(char);
            }
            self.last.clear();
        }
    }

    fn is_code(&self, run: &str) -> bool {
        run.len() <= 3 && run.chars().all(is_digit) && BEFORE_A_CODE.contains(&self.last.as_str())
    }
}

fn is_digit(char: char) -> bool {
    char.is_ascii_digit()
}

fn is_hex(char: char) -> bool {
    char.is_ascii_hexdigit()
}

fn is_of_token(char: char) -> bool {
    char.is_alphanumeric() || "_-.:@+".contains(char)
}

fn is_address(token: &str) -> bool {
    token.split_once('@').is_some_and(|(user, host)| !user.is_empty() && !host.is_empty())
}

fn is_ipv6(token: &str) -> bool {
    token.matches(':').count() >= 2
        && token.contains(is_digit)
        && token.chars().all(|char| is_hex(char) || char == ':' || char == '.')
}

const UUID: &str = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";

fn uuid_in(token: &str) -> Option<usize> {
    let is_uuid = |window: &[u8]| {
        window.iter().zip(UUID.bytes()).all(|(byte, of)| match of {
            b'-' => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
    };
    token.as_bytes().windows(UUID.len()).position(is_uuid)
}

/// Whether letters and digits are mixed as only a machine mixes them. `30s` and `sha256` are no ids.
fn is_id(run: &str) -> bool {
    let many = run.chars().count();
    if run.starts_with("0x") || (many >= 6 && run.chars().all(is_hex)) {
        return true;
    }
    let kinds: Vec<bool> = run.chars().map(is_digit).collect();
    let changes = kinds.windows(2).filter(|pair| pair.first() != pair.last()).count();
    (many >= 8 && changes >= 2) || changes >= 3
}

/// `#.#:#` is one `#`: an address with its port, a date, a number with its decimals, a list.
fn without_lists(text: &str) -> String {
    let mut out: Vec<char> = Vec::with_capacity(text.len());
    for char in text.chars() {
        if char == '#' {
            match out.as_slice() {
                [.., '#'] => continue,
                [.., '#', joiner] if ".:-+,/".contains(*joiner) => {
                    out.pop();
                    continue;
                }
                _ => {}
            }
        }
        out.push(char);
    }
    out.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_from_job_to_job_is_folded() {
        for (reason, folded) in [
            ("no such mailbox", "no such mailbox"),
            ("", ""),
            ("   ", ""),
            ("timeout after 3012 ms", "timeout after # ms"),
            ("timeout after 30.5s", "timeout after #s"),
            ("connect to 10.0.0.17:5432: refused", "connect to #: refused"),
            ("connect to [fe80::1ff:2]:80 failed", "connect to [#]:# failed"),
            ("no user ann.lee+x@example.com.", "no user #."),
            ("card cus_NffrFeUfNV2Hib declined", "card cus_# declined"),
            ("job-550e8400-e29b-41d4-a716-446655440000 gone", "job-# gone"),
            ("job-550E8400-e29b-abcd-dead-446655440000 gone", "job-# gone"),
            ("<Order object at 0x7fff5694dc58>", "<Order object at #>"),
            ("commit 3f2a9bc not found", "commit # not found"),
            ("web-7d4b9c6f5-x2k8p is gone", "web-# is gone"),
            ("room 7f3a, lane b12, mp3, utf16le", "room #, lane b#, mp#, utf#le"),
            ("order:17 of worker-3 isn't paid", "order:# of worker-# isn't paid"),
            ("ids 1,2,3/4 of 2026-11-25", "ids # of #"),
            ("table orders_2026_11 is full", "table orders_#_# is full"),
            ("KeyError: 'a b'", "KeyError: '#'"),
            ("unknown state \"ol\\\"d\" in `x`", "unknown state \"#\" in `#`"),
            ("„x“ ist nicht “y z”", "„x“ ist nicht “#”"),
            ("can't read the workers' list", "can't read the workers' list"),
            ("'tis half a quote", "'tis half a quote"),
            (r#"{"code":"ETIMEDOUT","ms":312}"#, r#"{"code":"ETIMEDOUT","ms":#}"#),
            ("[{'status': 502, 'id': 'a1b2c3d4'}]", "[{'status': 502, 'id': '#'}]"),
            ("{x} isn't 'a b'", "{x} isn't '#'"),
            ("Traceback:\n  File \"a.py\", line 17\n  boom", "Traceback: File \"#\", line # boom"),
            ("std::io::Error in abc::def", "std::io::Error in abc::def"),
            ("Verbindung verweigert: Größe 17", "Verbindung verweigert: Größe #"),
        ] {
            assert_eq!(pattern(reason.as_bytes()), folded, "{reason}");
        }
    }

    #[test]
    fn the_number_of_an_error_is_kept() {
        for (reason, folded) in [
            ("HTTP/1.1 502 Bad Gateway after 712 ms", "HTTP/1.1 502 Bad Gateway after # ms"),
            ("HTTP 429", "HTTP 429"),
            ("Request failed with status code 503", "Request failed with status code 503"),
            ("status=404 url=/orders/17", "status=404 url=/orders/#"),
            ("[Errno 111] Connection refused", "[Errno 111] Connection refused"),
            ("error 1205 in line 40", "error # in line #"),
            ("code 12, 13", "code 12, #"),
        ] {
            assert_eq!(pattern(reason.as_bytes()), folded, "{reason}");
        }
    }

    /// Pieces that a reason may be made of, hostile ones too, in an order that a number decides.
    fn reason_of(seed: u64) -> Vec<u8> {
        const PIECES: [&[u8]; 16] = [
            b"\"",
            b"'",
            b"\\",
            b" ",
            b"\n",
            b"17",
            b"a",
            b"@",
            b"::",
            b"\xff\xfe",
            b"#",
            b"-",
            "ü”“".as_bytes(),
            b"0x",
            b"550e8400-e29b-41d4-a716-446655440000",
            b"\0\x1b[31m",
        ];
        let mut seed = seed;
        let mut reason = Vec::new();
        for _ in 0..seed % 23 {
            // Knuth's generator: the same reasons in every run.
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            reason.extend_from_slice(PIECES[(seed >> 60) as usize]);
        }
        reason
    }

    #[test]
    fn any_bytes_have_a_pattern_in_one_line_without_long_numbers() {
        for seed in 0..20_000 {
            let reason = reason_of(seed);
            let folded = pattern(&reason);
            assert!(!folded.contains(['\n', '\t']) && folded.chars().count() <= CHARS_MAX);
            let numbers = folded.split(|char| !is_digit(char));
            assert!(numbers.map(str::len).max() <= Some(3), "{reason:?}: {folded}");
        }
        assert_eq!(pattern(&[b'x'; 5_000]).len(), CHARS_MAX);
    }

    #[test]
    fn reasons_that_differ_in_their_numbers_only_have_one_pattern() {
        for seed in 1..2_000_u64 {
            let other = seed.wrapping_mul(7_919) + 1_000;
            let reason =
                |n: u64| format!("order {n} of 10.{}.0.1:{n} took {n} ms: \"{n} x\"", n % 256);
            assert_eq!(pattern(reason(seed).as_bytes()), pattern(reason(other).as_bytes()));
        }
    }
}
