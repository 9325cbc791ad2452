//! Ids, names and bodies are any bytes, chosen by anybody: here they become text to look at, and
//! parts of a URL, and text that a person typed becomes bytes again.

use std::fmt;

use percent_encoding::{percent_decode, percent_encode, AsciiSet, NON_ALPHANUMERIC};

/// What needs no escape in a URL's query.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Bytes as text that is one line, shows all that is there, and can be read back by [`bytes_of`]:
/// what isn't printable is `\xff`, a backslash is two. Characters that turn or hide their
/// neighbours are not printable here.
pub struct Shown<'a>(pub &'a [u8]);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        for chunk in self.0.utf8_chunks() {
            for (char, is_seen) in seen(chunk.valid()) {
                match char {
                    '\\' => f.write_str("\\\\")?,
                    '\n' => f.write_str("\\n")?,
                    '\r' => f.write_str("\\r")?,
                    '\t' => f.write_str("\\t")?,
                    char if !is_seen => write_hex(f, char.encode_utf8(&mut [0; 4]).as_bytes())?,
                    char => write!(f, "{char}")?,
                }
            }
            write_hex(f, chunk.invalid())?;
        }
        Ok(())
    }
}

fn write_hex(f: &mut fmt::Formatter, bytes: &[u8]) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "\\x{byte:02x}"))
}

/// The characters of a text, and whether each is seen. What isn't seen by itself is, as a part of an
/// emoji: what makes ✉ a picture, and what joins two pictures to one.
pub fn seen(text: &str) -> impl Iterator<Item = (char, bool)> + '_ {
    let mut rest = text.chars().peekable();
    let mut before = None;
    std::iter::from_fn(move || {
        let char = rest.next()?;
        let after = rest.peek().copied();
        let is_seen = !is_unseen(char) || is_part_of_emoji(before, char, after);
        // Of several in a row only the first is a part.
        before = is_seen.then_some(char);
        Some((char, is_seen))
    })
}

fn is_part_of_emoji(before: Option<char>, char: char, after: Option<char>) -> bool {
    const PICTURE: char = '\u{fe0f}';
    let Some(before) = before else { return false };
    match char {
        '\u{fe0e}' | PICTURE => {
            let is_key = matches!(before, '0'..='9' | '#' | '*') && after == Some('\u{20e3}');
            is_emoji(before) || is_key
        }
        '\u{200d}' => (is_emoji(before) || before == PICTURE) && after.is_some_and(is_emoji),
        _ => false,
    }
}

/// What may be drawn as a picture.
fn is_emoji(char: char) -> bool {
    matches!(char,
        '©' | '®' | '\u{203c}' | '\u{2049}' | '\u{2122}' | '\u{2139}' | '\u{2194}'..='\u{21aa}'
        | '\u{231a}'..='\u{23ff}' | '\u{24c2}' | '\u{25aa}'..='\u{25fe}' | '\u{2600}'..='\u{27bf}'
        | '\u{2934}'..='\u{2935}' | '\u{2b05}'..='\u{2b55}' | '\u{3030}' | '\u{303d}' | '\u{3297}'
        | '\u{3299}' | '\u{1f000}'..='\u{1faff}')
}

/// Control characters, and those of Unicode that are not seen themselves: they would let two ids
/// look alike, or turn a line around.
fn is_unseen(char: char) -> bool {
    char.is_control()
        || matches!(char,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

/// Bytes as a form carries them: its fields are text, and a browser would change what isn't.
pub struct Hex<'a>(pub &'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

pub fn unhex(hex: &[u8]) -> Option<Vec<u8>> {
    let digits: Vec<u8> = hex.iter().map(|byte| hex_digit(*byte)).collect::<Option<_>>()?;
    let pairs = digits.chunks(2).map(|pair| match pair {
        [high, low] => Some(high * 16 + low),
        _ => None,
    });
    pairs.collect()
}

/// The first characters of some bytes as [`Shown`], with an ellipsis where there is more.
pub fn excerpt(bytes: &[u8], characters_max: usize) -> String {
    let head = bytes.get(..characters_max * 4).unwrap_or(bytes);
    let text = Shown(head).to_string();
    let mut excerpt: String = text.chars().take(characters_max).collect();
    if head.len() < bytes.len() || excerpt.len() < text.len() {
        excerpt.push('…');
    }
    excerpt
}

/// The first characters of a text that a client wrote, on one line, with `⏎` where it had line ends:
/// to be read, not to be read back.
pub fn line(bytes: &[u8], characters_max: usize) -> String {
    let head = bytes.get(..characters_max * 4).unwrap_or(bytes);
    let mut line = String::new();
    for chunk in head.utf8_chunks() {
        let text = chunk.valid().replace("\r\n", "\n");
        for (char, is_seen) in seen(&text) {
            match char {
                '\n' | '\r' => line.push_str(" ⏎ "),
                '\t' | ' ' if line.ends_with(' ') => {}
                '\t' => line.push(' '),
                char if !is_seen => {
                    char.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| push_hex(&mut line, byte))
                }
                char => line.push(char),
            }
        }
        chunk.invalid().iter().for_each(|byte| push_hex(&mut line, *byte));
    }
    let mut excerpt: String = line.trim().chars().take(characters_max).collect();
    if head.len() < bytes.len() || excerpt.len() < line.trim().len() {
        excerpt.push('…');
    }
    excerpt
}

fn push_hex(line: &mut String, byte: u8) {
    line.push_str(&format!("\\x{byte:02x}"));
}

/// A queue's name to look at: an empty one, too, needs something that can be clicked.
pub fn title(name: &[u8]) -> String {
    if name.is_empty() {
        return "(empty name)".into();
    }
    excerpt(name, 200)
}

/// What [`Shown`] shows, as bytes again. `None` when it isn't such text.
pub fn bytes_of(shown: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(shown.len());
    let mut rest = shown.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'\\' => match rest.next()? {
                b'\\' => b'\\',
                b'n' => b'\n',
                b'r' => b'\r',
                b't' => b'\t',
                b'x' => hex_digit(rest.next()?)? * 16 + hex_digit(rest.next()?)?,
                _ => return None,
            },
            byte => byte,
        });
    }
    Some(bytes)
}

fn hex_digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).map(|digit| digit as u8)
}

/// `path?name=value&…`, the values any bytes.
pub fn link(path: &str, fields: &[(&str, &[u8])]) -> String {
    let mut link = String::from(path);
    for (index, (name, value)) in fields.iter().enumerate() {
        link.push(if index == 0 { '?' } else { '&' });
        link.push_str(name);
        link.push('=');
        link.extend(percent_encode(value, PLAIN));
    }
    link
}

/// The fields of a URL's query or of a form, their values any bytes.
#[derive(Debug, Default)]
pub struct Fields(Vec<(Vec<u8>, Vec<u8>)>);

impl Fields {
    pub fn parse(encoded: &[u8]) -> Fields {
        let decode = |part: &[u8]| {
            let spaced: Vec<u8> =
                part.iter().map(|byte| if *byte == b'+' { b' ' } else { *byte }).collect();
            percent_decode(&spaced).collect()
        };
        let pairs = encoded.split(|byte| *byte == b'&').filter(|pair| !pair.is_empty());
        Fields(
            pairs
                .map(|pair| {
                    let mut halves = pair.splitn(2, |byte| *byte == b'=');
                    (
                        decode(halves.next().unwrap_or_default()),
                        decode(halves.next().unwrap_or_default()),
                    )
                })
                .collect(),
        )
    }

    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.0.iter().find(|(key, _)| key == name.as_bytes()).map(|(_, value)| value.as_slice())
    }

    /// All fields of that name, in their order.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        let named = self.0.iter().filter(move |(key, _)| key == name.as_bytes());
        named.map(|(_, value)| value.as_slice())
    }

    /// A field of any bytes, which may be given in hex as `name.hex`: see [`Hex`].
    pub fn bytes(&self, name: &str) -> Option<Vec<u8>> {
        let in_hex = || self.get(&format!("{name}.hex")).and_then(unhex);
        self.get(name).map(<[u8]>::to_vec).or_else(in_hex)
    }

    /// A field of any bytes: in hex from a form that knows them, as the pages spell them from a
    /// person.
    pub fn spelled(&self, name: &str) -> Option<Vec<u8>> {
        let typed = self.text(name);
        match typed.is_empty() {
            true => self.bytes(name),
            false => Some(bytes_of(typed).unwrap_or_else(|| typed.into())),
        }
    }

    /// Whether such a field is there, whatever is in it.
    pub fn has_bytes(&self, name: &str) -> bool {
        self.get(name).is_some() || self.get(&format!("{name}.hex")).is_some()
    }

    /// The text of a field; empty when it isn't there, or isn't text.
    pub fn text(&self, name: &str) -> &str {
        self.get(name).and_then(|value| std::str::from_utf8(value).ok()).unwrap_or_default()
    }

    /// `path` with these fields, without one that tells what came of an action, and with another value
    /// of one.
    pub fn link(&self, path: &str, name: &str, value: &str) -> String {
        let others = self.0.iter().filter(|(key, _)| key != name.as_bytes() && key != b"outcome");
        let mut fields: Vec<(&str, &[u8])> = others
            .filter_map(|(key, value)| Some((std::str::from_utf8(key).ok()?, value.as_slice())))
            .filter(|(key, _)| key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'.'))
            .collect();
        fields.push((name, value.as_bytes()));
        link(path, &fields)
    }

    pub fn number(&self, name: &str) -> Option<u64> {
        self.text(name).parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shown_bytes_are_readable_and_can_be_read_back() {
        for (bytes, shown) in [
            (&b"order:17"[..], "order:17"),
            ("Grüße, 東京 🙂".as_bytes(), "Grüße, 東京 🙂"),
            (b"a\\b", "a\\\\b"),
            (b"\0\x1b[31m\n\r\t\x7f", "\\x00\\x1b[31m\\n\\r\\t\\x7f"),
            (b"\xff\xfe\xc3", "\\xff\\xfe\\xc3"),
            ("user\u{202e}gpj".as_bytes(), "user\\xe2\\x80\\xaegpj"),
            ("zero\u{200b}width".as_bytes(), "zero\\xe2\\x80\\x8bwidth"),
            (
                "✉\u{fe0f} 1\u{fe0f}\u{20e3} 👩🏽\u{200d}🚒 ❤\u{fe0f}\u{200d}🔥".as_bytes(),
                "✉\u{fe0f} 1\u{fe0f}\u{20e3} 👩🏽\u{200d}🚒 ❤\u{fe0f}\u{200d}🔥",
            ),
            // No part of an emoji: it would hide in what looks like another id.
            ("✉\u{fe0f}\u{fe0f}a\u{fe0f}".as_bytes(), "✉\u{fe0f}\\xef\\xb8\\x8fa\\xef\\xb8\\x8f"),
            ("🔥\u{200d}a 1\u{fe0f}".as_bytes(), "🔥\\xe2\\x80\\x8da 1\\xef\\xb8\\x8f"),
            (b"", ""),
        ] {
            assert_eq!(Shown(bytes).to_string(), shown);
            assert_eq!(bytes_of(shown).as_deref(), Some(bytes), "{shown}");
        }
        assert_eq!(bytes_of("C:\\dir"), None);
        assert_eq!(bytes_of("\\x4"), None);
    }

    #[test]
    fn any_bytes_come_back_from_a_link() {
        let every: Vec<u8> = (0..=255).collect();
        let link = link("job", &[("queue", &every), ("id", b"a&b=c+d %2e")]);
        let fields = Fields::parse(link.strip_prefix("job?").unwrap().as_bytes());
        assert_eq!(fields.get("queue"), Some(every.as_slice()));
        assert_eq!(fields.get("id"), Some(&b"a&b=c+d %2e"[..]));
        assert_eq!(fields.get("none"), None);
        assert_eq!(Fields::parse(b"id=a+b&&x").get("id"), Some(&b"a b"[..]));
        let fields = Fields::parse(b"name=a%26b&span=day&outcome=7&%22%3E=x&state=dead");
        assert_eq!(fields.link("queue", "span", "week"), "queue?name=a%26b&state=dead&span=week");

        let form = format!("id.hex={}&odd.hex=abc&no.hex=zz", Hex(&every));
        let fields = Fields::parse(form.as_bytes());
        assert_eq!(fields.bytes("id"), Some(every));
        assert_eq!(
            (fields.bytes("odd"), fields.bytes("no"), fields.bytes("none")),
            (None, None, None)
        );
    }

    #[test]
    fn a_text_on_one_line_shows_where_its_lines_end() {
        for (bytes, told) in [
            (&b"one line"[..], "one line"),
            (b"Traceback:\n  File \"C:\\x\"\r\n\tError\n", "Traceback: ⏎ File \"C:\\x\" ⏎ Error ⏎"),
            (b"a\xff\x1b[0m", "a\\xff\\x1b[0m"),
            ("a\u{202e}b".as_bytes(), "a\\xe2\\x80\\xaeb"),
            (b"12345678901", "1234567890…"),
            (b"", ""),
        ] {
            let max = if bytes.len() == 11 { 10 } else { 100 };
            assert_eq!(line(bytes, max), told);
        }
        assert_eq!(line(&[b'x'; 100_000], 3), "xxx…");
    }

    #[test]
    fn an_excerpt_says_that_there_is_more() {
        assert_eq!(excerpt(b"abc", 3), "abc");
        assert_eq!(excerpt(b"abcd", 3), "abc…");
        assert_eq!(excerpt("äöüß".as_bytes(), 3), "äöü…");
        assert_eq!(excerpt(&[b'x'; 100_000], 5), "xxxxx…");
    }
}
