//! Whether two cron expressions say the same in other words. The core reads none: it compares their
//! words in one form. So all versions come to the same, whatever reads the expressions.

use std::collections::BTreeSet;

/// Names of expressions, and the same in fields.
pub const CRON_NAMES: [(&str, &str); 7] = [
    ("@hourly", "0 * * * *"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@weekly", "0 0 * * 0"),
    ("@monthly", "0 0 1 * *"),
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
];

/// As numbers, in the fields for months and for days of the week.
const NAMED_NUMBERS: [(&str, &str); 19] = [
    ("JAN", "1"),
    ("FEB", "2"),
    ("MAR", "3"),
    ("APR", "4"),
    ("MAY", "5"),
    ("JUN", "6"),
    ("JUL", "7"),
    ("AUG", "8"),
    ("SEP", "9"),
    ("OCT", "10"),
    ("NOV", "11"),
    ("DEC", "12"),
    ("SUN", "0"),
    ("MON", "1"),
    ("TUE", "2"),
    ("WED", "3"),
    ("THU", "4"),
    ("FRI", "5"),
    ("SAT", "6"),
];

/// White space, letter case, names of expressions, months and days, leading zeroes, the order of a
/// list, `?` for `*` and seconds of 0 make no difference.
pub(super) fn is_same_expression(one: &str, other: &str) -> bool {
    one == other || fields(one) == fields(other)
}

fn fields(expression: &str) -> Vec<BTreeSet<String>> {
    let named =
        CRON_NAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(expression.trim_ascii()));
    let words = named.map_or(expression, |(_, fields)| fields);
    let mut fields: Vec<_> = words.split_ascii_whitespace().map(items).collect();
    if fields.len() == 5 {
        fields.insert(0, items("0"));
    }
    if let Some(weekdays) = fields.get_mut(5) {
        // Sunday is both.
        if weekdays.remove("7") {
            weekdays.insert("0".to_string());
        }
    }
    fields
}

/// The items of a list, or its `*`.
fn items(field: &str) -> BTreeSet<String> {
    let items: BTreeSet<String> = field.split(',').map(item).collect();
    if items.contains("*") {
        return BTreeSet::from(["*".to_string()]);
    }
    items
}

fn item(item: &str) -> String {
    let mut item = item.to_ascii_uppercase().replace('?', "*").replace("-SUN", "-7");
    for (name, number) in NAMED_NUMBERS {
        item = item.replace(name, number);
    }
    let is_digit = |c: char| c.is_ascii_digit();
    let mut read = String::new();
    for part in item.split_inclusive(|c: char| !is_digit(c)) {
        let digits = part.find(|c: char| !is_digit(c)).unwrap_or(part.len());
        let (number, rest) = part.split_at(digits);
        let short = number.trim_start_matches('0');
        read.push_str(if short.is_empty() && !number.is_empty() { "0" } else { short });
        read.push_str(rest);
    }
    read
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_that_say_the_same_are_the_same() {
        for (one, other) in [
            ("0 0 * * *", "0 0 * * *"),
            ("0 0 * * *", "0\t0  * * *\r\n"),
            ("0 0 * * *", "@daily"),
            ("@DAILY", " @midnight "),
            ("0 0 * * *", "0 0 0 * * *"),
            ("00 05 * * *", "0 5 * * *"),
            ("0 0 * jan mon", "0 0 * 1 1"),
            ("0 0 * * 7", "0 0 * * SUN"),
            ("0 0 * * FRI-SUN", "0 0 * * 5-7"),
            ("0 0 * * mon#1,5l", "0 0 * * 5L,1#1"),
            ("0 0 15w * ?", "0 0 15W * *"),
            ("1,2 0 * * *", "2,1,1 0 * * *"),
            ("*,0 0 * * *", "* 0 * * *"),
        ] {
            assert!(is_same_expression(one, other), "{one:?} and {other:?}");
        }
    }

    #[test]
    fn expressions_that_say_something_else_are_others() {
        for (one, other) in [
            ("0 0 * * *", "0 1 * * *"),
            ("0 0 * * *", "0 0 0 0 * *"),
            ("1 0 * * *", "10 0 * * *"),
            ("0 0 * * 0", "0 0 * * *"),
            ("0 0 * * 0", "0 0 * * 0L"),
            ("0 0 * * 1", "0 0 * * +1"),
            ("0 0 1 * 1", "0 0 1 1 *"),
            ("@daily", "@hourly"),
            ("@daily", "@daily 1"),
            ("", "0 0 * * *"),
            ("é", "è"),
        ] {
            assert!(!is_same_expression(one, other), "{one:?} and {other:?}");
        }
    }
}
