//! A job's body to look at: as text, as indented JSON, or in hex. Bodies are hostile: whatever is
//! in them becomes text in the page.

use std::fmt::Write;

use maud::{html, Markup};
use serde::de::IgnoredAny;

use crate::bytes::seen;

/// What is shown of a body; the whole can be downloaded.
pub const SHOWN_MAX: usize = 64 << 10;
/// Indenting can make much of little.
const INDENTED_MAX: usize = 512 << 10;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum View {
    Text,
    Json,
    Hex,
}

impl View {
    pub const ALL: [View; 3] = [View::Text, View::Json, View::Hex];

    pub fn name(self) -> &'static str {
        match self {
            View::Text => "text",
            View::Json => "json",
            View::Hex => "hex",
        }
    }

    pub fn named(name: &str) -> Option<View> {
        View::ALL.into_iter().find(|view| view.name() == name)
    }

    /// What suits a body.
    pub fn of(body: &[u8]) -> View {
        let is_text =
            |text: &str| !text.chars().any(|char| char.is_control() && !"\n\r\t".contains(char));
        match std::str::from_utf8(head(body)) {
            _ if is_json(body) && matches!(body.trim_ascii_start().first(), Some(b'{' | b'[')) => {
                View::Json
            }
            Ok(text) if is_text(text) => View::Text,
            // A character cut in two by the limit is no reason for hex.
            Err(error) if error.error_len().is_none() && body.len() > SHOWN_MAX => View::Text,
            _ => View::Hex,
        }
    }
}

fn head(body: &[u8]) -> &[u8] {
    body.get(..SHOWN_MAX).unwrap_or(body)
}

/// Only a whole body is JSON: of a large one that isn't found out.
pub fn is_json(body: &[u8]) -> bool {
    body.len() <= SHOWN_MAX && serde_json::from_slice::<IgnoredAny>(body).is_ok()
}

pub fn show(body: &[u8], view: View) -> Markup {
    html! {
        pre.body {
            @match view {
                View::Text => (text(head(body))),
                View::Json => (text(indented(head(body)).as_bytes())),
                View::Hex => (hex(head(body))),
            }
        }
    }
}

/// As it is, but what can't be seen is spelled out and set apart.
fn text(bytes: &[u8]) -> Markup {
    let mut parts: Vec<(bool, String)> = Vec::new();
    let mut push = |is_escape: bool, text: &str| match parts.last_mut() {
        Some((is_same, last)) if *is_same == is_escape => last.push_str(text),
        _ => parts.push((is_escape, text.into())),
    };
    for chunk in bytes.utf8_chunks() {
        for (char, is_seen) in seen(chunk.valid()) {
            if !is_seen && !matches!(char, '\n' | '\t') {
                push(true, &format!("\\u{{{:x}}}", u32::from(char)));
            } else {
                push(false, char.encode_utf8(&mut [0; 4]));
            }
        }
        chunk.invalid().iter().for_each(|byte| push(true, &format!("\\x{byte:02x}")));
    }
    html! {
        @for (is_escape, text) in &parts {
            @if *is_escape { i.esc { (text) } } @else { (text) }
        }
    }
}

/// Indents JSON without touching what is in it: numbers keep their digits, keys their order.
fn indented(json: &[u8]) -> String {
    let (mut out, mut depth, mut is_string, mut is_escaped) = (Vec::new(), 0_usize, false, false);
    let mut bytes = json.trim_ascii().iter().peekable();
    let new_line = |out: &mut Vec<u8>, depth: usize| {
        out.push(b'\n');
        out.resize(out.len() + depth * 2, b' ');
    };
    while let Some(byte) = bytes.next() {
        if out.len() > INDENTED_MAX {
            out.extend_from_slice("\n…".as_bytes());
            break;
        }
        if is_string {
            out.push(*byte);
            is_string = is_escaped || *byte != b'"';
            is_escaped = !is_escaped && *byte == b'\\';
            continue;
        }
        match byte {
            b' ' | b'\n' | b'\r' | b'\t' => {}
            b'{' | b'[' => {
                out.push(*byte);
                while bytes.next_if(|byte| byte.is_ascii_whitespace()).is_some() {}
                if let Some(end) = bytes.next_if(|byte| matches!(byte, b'}' | b']')) {
                    out.push(*end);
                } else {
                    depth += 1;
                    new_line(&mut out, depth);
                }
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                new_line(&mut out, depth);
                out.push(*byte);
            }
            b',' => {
                out.push(b',');
                new_line(&mut out, depth);
            }
            b':' => out.extend_from_slice(b": "),
            byte => {
                is_string = *byte == b'"';
                out.push(*byte);
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Offset, sixteen bytes, and the same as ASCII.
fn hex(bytes: &[u8]) -> String {
    let mut out = String::new();
    for (index, line) in bytes.chunks(16).enumerate() {
        let mut hex = String::new();
        for (place, byte) in line.iter().enumerate() {
            let _ = write!(hex, "{}{byte:02x}", if place == 8 { "  " } else { " " });
        }
        let ascii: String = line
            .iter()
            .map(|byte| if (32..127).contains(byte) { char::from(*byte) } else { '.' })
            .collect();
        let _ = writeln!(out, "{:08x} {hex:<49}  {ascii}", index * 16);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_view_suits_the_body() {
        assert_eq!(View::of(b"Hello, Ann"), View::Text);
        assert_eq!(View::of(b""), View::Text);
        assert_eq!(View::of(b"line\r\n\tline"), View::Text);
        assert_eq!(View::of(b" {\"a\": [1]} "), View::Json);
        assert_eq!(View::of(b"{\"a\": "), View::Text);
        assert_eq!(View::of(b"17"), View::Text);
        assert_eq!(View::of(b"\x00\x01"), View::Hex);
        assert_eq!(View::of(b"\xff"), View::Hex);
        assert_eq!(View::of("ü".repeat(SHOWN_MAX).as_bytes()), View::Text);
        assert_eq!(View::of(format!("x{}", "ü".repeat(SHOWN_MAX)).as_bytes()), View::Text);
    }

    #[test]
    fn json_is_indented_and_stays_what_it_was() {
        let json = br#" {"b":1.00000000000000000001,"a":[], "a":[1,{"x":"a\"{,:\\"}],"e":{ } } "#;
        let lines = [
            "{",
            "  \"b\": 1.00000000000000000001,",
            "  \"a\": [],",
            "  \"a\": [",
            "    1,",
            "    {",
            "      \"x\": \"a\\\"{,:\\\\\"",
            "    }",
            "  ],",
            "  \"e\": {}",
            "}",
        ];
        assert_eq!(indented(json), lines.join("\n"));
    }

    #[test]
    fn indenting_of_json_is_bounded() {
        let deep = format!("{}{}{}", "[".repeat(120), "1,".repeat(20_000) + "1", "]".repeat(120));
        assert!(is_json(deep.as_bytes()));
        assert!(indented(deep.as_bytes()).len() < INDENTED_MAX + 1_000);
    }

    #[test]
    fn invisible_bytes_are_spelled_out_and_no_body_is_markup() {
        let shown = show("a<b>&\u{202e}\u{1b}[0m\n".as_bytes(), View::Text).into_string();
        let escapes = "<i class=\"esc\">\\u{202e}\\u{1b}</i>";
        assert_eq!(shown, format!("<pre class=\"body\">a&lt;b&gt;&amp;{escapes}[0m\n</pre>"));
        assert_eq!(text(b"a\xff\xfeb").into_string(), "a<i class=\"esc\">\\xff\\xfe</i>b");
    }

    #[test]
    fn a_hex_view_has_sixteen_bytes_a_line() {
        let bytes: Vec<u8> = (0x3e..0x50).collect();
        let line = "00000000  3e 3f 40 41 42 43 44 45  46 47 48 49 4a 4b 4c 4d  >?@ABCDEFGHIJKLM";
        assert_eq!(hex(&bytes).lines().next(), Some(line));
        let rest = format!("00000010  4e 4f{}  NO", " ".repeat(43));
        assert_eq!(hex(&bytes).lines().nth(1), Some(rest.as_str()));
    }
}
