//! Sessions as text: a line a command, its words with a space between. A byte that would not stand
//! in such a line is `\xHH`; so is a backslash.

use super::server::Word;

pub type Line = Vec<Word>;

/// What fuzzing makes is longer than what people do, but not endless.
const LINES_MAX: usize = 60;
const WORDS_MAX: usize = 40;

pub fn parse(text: &[u8]) -> Vec<Line> {
    let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.take(LINES_MAX).map(|line| words(line).take(WORDS_MAX).collect()).collect()
}

fn words(line: &[u8]) -> impl Iterator<Item = Word> + '_ {
    line.split(|byte| *byte == b' ').map(unescaped)
}

fn unescaped(word: &[u8]) -> Word {
    let mut bytes = Vec::with_capacity(word.len());
    let mut rest = word;
    while let [first, behind @ ..] = rest {
        rest = behind;
        let escaped = match behind {
            [b'x', high, low, ..] if *first == b'\\' => hex(*high).zip(hex(*low)),
            _ => None,
        };
        if let Some((high, low)) = escaped {
            bytes.push(high << 4 | low);
            rest = &behind[3..];
        } else {
            bytes.push(*first);
        }
    }
    bytes
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|digit| digit as u8)
}

pub fn print(lines: &[Line]) -> Vec<u8> {
    let mut text = Vec::new();
    for line in lines {
        for (at, word) in line.iter().enumerate() {
            if at > 0 {
                text.push(b' ');
            }
            word.iter().for_each(|byte| print_byte(*byte, &mut text));
        }
        text.push(b'\n');
    }
    text
}

fn print_byte(byte: u8, text: &mut Vec<u8>) {
    if byte.is_ascii_graphic() && byte != b'\\' {
        text.push(byte);
    } else {
        text.extend(format!("\\x{byte:02x}").bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fuzz_session_that_is_printed_is_read_as_it_was() {
        let lines =
            vec![vec![b"a".to_vec(), b"".to_vec(), b"\\x00".to_vec()], vec![(0..=255).collect()]];
        assert_eq!(parse(&print(&lines)), lines);
    }
}
