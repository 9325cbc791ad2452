//! A word of a client as an error shows it.

use std::fmt;

use super::limits::QUOTED_BYTES_MAX;

/// A word in quotes that may be shown: cut when it is long, what isn't printable escaped, since an
/// error is one line.
pub struct Quoted<'w>(pub &'w [u8]);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.0.get(..QUOTED_BYTES_MAX).unwrap_or(self.0);
        write!(f, "'{}", shown.escape_ascii())?;
        f.write_str(if shown.len() < self.0.len() { "...'" } else { "'" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quoted_word_stays_on_one_line() {
        assert_eq!(Quoted(b"FOO").to_string(), "'FOO'");
        assert_eq!(Quoted(b"a\r\nb\xff'").to_string(), r"'a\r\nb\xff\''");
        let long = [b'x'; 100];
        assert_eq!(Quoted(&long).to_string(), format!("'{}...'", "x".repeat(64)));
    }
}
