//! Spans of time in forms: a number with its unit beside it.

use maud::{html, Markup};

use crate::bytes::Fields;

const UNITS: [(&str, u64); 5] =
    [("ms", 1), ("s", 1_000), ("min", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

/// What can't be meant, in words.
type Told<T> = std::result::Result<T, &'static str>;

/// In milliseconds; `None` when the field is empty.
pub fn read(fields: &Fields, name: &str) -> Told<Option<u64>> {
    let text = fields.text(name).trim();
    if text.is_empty() {
        return Ok(None);
    }
    let unit = fields.text(&format!("{name}-unit"));
    let (_, unit) =
        UNITS.iter().find(|(name, _)| *name == unit).ok_or("That is no unit of time.")?;
    let span = text.parse::<u64>().ok().and_then(|number| number.checked_mul(*unit));
    span.map(Some).ok_or("A span of time must be a whole number.")
}

/// A field that shows a span in the largest unit in which it is whole; empty for `None`.
pub fn field(name: &str, label: &str, ms: Option<u64>) -> Markup {
    let unit = |ms: u64| UNITS.iter().rev().find(|(_, unit)| ms > 0 && ms % unit == 0);
    let (chosen, size) = ms.and_then(unit).copied().unwrap_or(("s", 1_000));
    html! {
        span.span {
            input name=(name) type="number" min="0" max="281474976710655" aria-label=(label) value=[ms.map(|ms| ms / size)];
            " "
            select name={ (name) "-unit" } aria-label={ (label) ", unit" } {
                @for (unit, _) in UNITS { option selected[unit == chosen] { (unit) } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_read_in_its_unit() {
        let span = |form: &str| read(&Fields::parse(form.as_bytes()), "ttr");
        assert_eq!(span("ttr=90&ttr-unit=min"), Ok(Some(5_400_000)));
        assert_eq!(span("ttr=+7+&ttr-unit=ms"), Ok(Some(7)));
        assert_eq!(span("ttr=&ttr-unit=ms"), Ok(None));
        assert_eq!(span(""), Ok(None));
        assert_eq!(span("ttr=7&ttr-unit=week"), Err("That is no unit of time."));
        assert_eq!(span("ttr=7"), Err("That is no unit of time."));
        for text in ["-1", "1.5", "x", "18446744073709551615"] {
            assert!(span(&format!("ttr={text}&ttr-unit=d")).is_err(), "{text}");
        }
    }

    #[test]
    fn a_field_has_the_largest_unit_that_fits() {
        for (ms, value, unit) in
            [(5_400_000, "90", "min"), (86_400_000, "1", "d"), (1_500, "1500", "ms"), (0, "0", "s")]
        {
            let field = field("ttr", "time", Some(ms)).into_string();
            assert!(field.contains(&format!("value=\"{value}\"")), "{field}");
            assert!(field.contains(&format!("<option selected>{unit}</option>")), "{field}");
        }
        assert!(!field("ttr", "time", None).into_string().contains("value="));
    }
}
