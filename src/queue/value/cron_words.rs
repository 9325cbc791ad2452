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

/// The place of the days of the week among six fields.
const WEEKDAYS: usize = 5;
const DAYS_OF_WEEK: u32 = 7;
/// No field has a greater number.
const NUMBER_MAX: u32 = 59;

/// White space, letter case, names of expressions, months and days, leading zeroes, the order of a
/// list, `1-3` for `1,2,3`, 7 for Sunday, `5#L` for `5L`, `?` for `*` and seconds of 0 make no
/// difference. A `*` does: it says more than its numbers.
pub(super) fn is_same_expression(one: &str, other: &str) -> bool {
    one == other || fields(one) == fields(other)
}

#[derive(Default, PartialEq, Eq)]
struct Field {
    has_plus: bool,
    /// A bit for each number.
    numbers: u64,
    /// Other items, and numbers with what is behind them, as `1#L`.
    others: BTreeSet<String>,
}

fn fields(expression: &str) -> Vec<Field> {
    let named =
        CRON_NAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(expression.trim_ascii()));
    let words = named.map_or(expression, |(_, fields)| fields);
    let mut words: Vec<&str> = words.split_ascii_whitespace().collect();
    if words.len() == 5 {
        words.insert(0, "0");
    }
    let fields = words.iter().enumerate();
    fields.map(|(place, word)| Field::of(word, place == WEEKDAYS)).collect()
}

impl Field {
    fn of(word: &str, of_week: bool) -> Field {
        let list = word.strip_prefix('+').filter(|_| of_week);
        let mut field = Field { has_plus: list.is_some(), ..Field::default() };
        for item in list.unwrap_or(word).split(',') {
            field.add(numbered(item), of_week);
        }
        if field.others.contains("*") {
            // A list with a `*` is that `*`.
            field.numbers = 0;
            field.others.retain(|item| item == "*");
        }
        field
    }

    fn add(&mut self, item: String, of_week: bool) {
        let last = || item.strip_suffix('L').zip(Some("L"));
        let of_month = item.split_once('#').or_else(last).filter(|_| of_week);
        let (days, week) = of_month.map_or((&*item, None), |(days, week)| (days, Some(week)));
        let Some(numbers) = range(days) else {
            self.others.insert(item);
            return;
        };
        for number in numbers {
            let number = if of_week { number % DAYS_OF_WEEK } else { number };
            match week {
                Some(week) => drop(self.others.insert(format!("{number}#{week}"))),
                None => self.numbers |= 1 << number,
            }
        }
    }
}

/// An item in capital letters, with numbers for names and without leading zeroes.
fn numbered(item: &str) -> String {
    let item = item.to_ascii_uppercase().replace('?', "*");
    let mut item = item.replace("SUN-SUN", "0-0").replace("-SUN", "-7");
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

/// `3`, `1-5` or `1-5/2`; `None` also if it ends before it begins.
fn range(item: &str) -> Option<impl Iterator<Item = u32>> {
    let number = |word: &str| word.parse().ok().filter(|number| *number <= NUMBER_MAX);
    let (ends, step) = item.split_once('/').unwrap_or((item, "1"));
    let (first, last) = match ends.split_once('-') {
        Some(ends) => ends,
        None if ends == item => (ends, ends),
        None => return None,
    };
    let step = usize::try_from(number(step)?).ok().filter(|step| *step > 0)?;
    let numbers = number(first)?..=number(last)?;
    (!numbers.is_empty()).then(|| numbers.step_by(step))
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
            ("0 0 * * 1-5", "0 0 * * FRI,1,2,3,4"),
            ("8-18/5 0 * * *", "8,13,18 0 * * *"),
            ("0 0 * * 6-7", "0 0 * * 0,6"),
            ("0 0 * * 0-6", "0 0 * * MON-SUN"),
            ("0 0 * * sun-sun", "0 0 * * 0"),
            ("0 0 * * 7#1", "0 0 * * sun#1"),
            ("0 0 * * 7L", "0 0 * * SUNL"),
            ("0 0 * * 5#L", "0 0 * * 5L"),
            ("0 0 * * 1-2#1", "0 0 * * 2#1,1#1"),
            ("0 0 1 * +1,7", "0 0 1 * +0,1"),
            ("0 0 1 * +?", "0 0 1 * +*"),
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
            ("*/15 2 * * *", "0,15,30,45 2 * * *"),
            ("0 0 1 * *", "0 0 1 * 0-6"),
            ("0 0 1 * 1", "0 0 1 * +1"),
            ("0 0 * * 1-5#1", "0 0 * * 1-5#2"),
            ("0 0 * * 1-5#1", "0 0 * * 1-5"),
            ("0 0 L * *", "0 0 LW * *"),
            ("0 0 15 * *", "0 0 15W * *"),
            ("5-1 0 * * *", "5-2 0 * * *"),
            ("1-99999999999 0 * * *", "1 0 * * *"),
            ("1-5/0 0 * * *", "1-5 0 * * *"),
        ] {
            assert!(!is_same_expression(one, other), "{one:?} and {other:?}");
        }
    }
}
