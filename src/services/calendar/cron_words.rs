//! The words of a cron expression, checked before croner reads them. croner takes some for another
//! thing than they say: a name of a day in the field for months is a number there, `15W5` is 15W,
//! and a step that is longer than its field is none.

use std::borrow::Cow;

/// A field: what it is called, its numbers, and the names of these, if they have any.
struct Field {
    name: &'static str,
    kind: Kind,
    first: u32,
    last: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    OfClock,
    Day,
    Month,
    Weekday,
}

const FIELDS: [Field; 6] = [
    Field { name: "seconds", kind: Kind::OfClock, first: 0, last: 59 },
    Field { name: "minutes", kind: Kind::OfClock, first: 0, last: 59 },
    Field { name: "hours", kind: Kind::OfClock, first: 0, last: 23 },
    Field { name: "days of the month", kind: Kind::Day, first: 1, last: 31 },
    Field { name: "months", kind: Kind::Month, first: 1, last: 12 },
    Field { name: "days of the week", kind: Kind::Weekday, first: 0, last: 7 },
];

const MONTHS: [&str; 12] =
    ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const WEEKDAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];
const DAYS_OF_WEEK: u32 = 7;
/// A month has no sixth Monday.
const WEEKS: std::ops::RangeInclusive<u32> = 1..=5;

/// The fields of an expression as croner is to read them: a list with a `*` is that `*`. Or why it
/// can't be read, in words that repeat nothing of it.
pub fn checked(expression: &str) -> Result<String, String> {
    let words: Vec<&str> = expression.split_ascii_whitespace().collect();
    let fields = match words.len() {
        5 => FIELDS.get(1..),
        6 => FIELDS.get(..),
        _ => None,
    };
    let fields = fields.ok_or("it needs five fields, or six with seconds first")?;
    let read = fields.iter().zip(words).map(|(field, word)| field.read(word));
    Ok(read.collect::<Result<Vec<_>, _>>()?.join(" "))
}

impl Field {
    fn read<'w>(&self, word: &'w str) -> Result<Cow<'w, str>, String> {
        let (both, list) = match word.strip_prefix('+') {
            Some(list) if self.kind == Kind::Weekday => ("+", list),
            Some(_) | None => ("", word),
        };
        let (mut has_wildcard, mut has_sundays) = (false, false);
        for item in list.split(',') {
            self.check(item)?;
            has_wildcard |= self.is_wildcard(item);
            has_sundays |= self.is_of_sundays(item);
        }
        Ok(match (has_wildcard, has_sundays) {
            (true, _) => Cow::Owned(format!("{both}*")),
            // croner takes it for 0-7.
            (false, true) => Cow::Owned(word.to_ascii_uppercase().replace("SUN-SUN", "0-0")),
            (false, false) => Cow::Borrowed(word),
        })
    }

    fn is_wildcard(&self, word: &str) -> bool {
        word == "*" || word == "?" && matches!(self.kind, Kind::Day | Kind::Weekday)
    }

    /// `SUN-SUN`, and what may stand behind it.
    fn is_of_sundays(&self, item: &str) -> bool {
        let start = item.get(.."SUN-SUN".len());
        self.kind == Kind::Weekday && start.is_some_and(|days| days.eq_ignore_ascii_case("SUN-SUN"))
    }

    /// An item of a list.
    fn check(&self, item: &str) -> Result<(), String> {
        if item.split(['-', '/', '#']).any(str::is_empty) {
            return Err("a part of a list, a range or a step is missing".to_string());
        }
        if self.is_wildcard(item) || self.is_special_day(item)? {
            return Ok(());
        }
        match item.split_once('/') {
            Some((range, step)) => self.check_step(range, step),
            None => self.range(self.without_week(item)?).map(drop),
        }
    }

    /// `L`, `LW` or `15W`.
    fn is_special_day(&self, item: &str) -> Result<bool, String> {
        if self.kind != Kind::Day {
            return Ok(false);
        }
        if item.eq_ignore_ascii_case("L") || item.eq_ignore_ascii_case("LW") {
            return Ok(true);
        }
        let day = item.strip_suffix(['W', 'w']);
        day.map_or(Ok(false), |day| self.value(day).map(|_| true))
    }

    /// A day of the week without what says which one of a month: `5L`, `MON#1`.
    fn without_week<'i>(&self, item: &'i str) -> Result<&'i str, String> {
        if self.kind != Kind::Weekday {
            return Ok(item);
        }
        if item.eq_ignore_ascii_case("L") {
            return Err("a day of the week needs a number before L, as 5L".to_string());
        }
        if let Some((days, week)) = item.split_once('#') {
            let is_week = week.eq_ignore_ascii_case("L")
                || number(week).is_some_and(|week| WEEKS.contains(&week));
            let refused = || "behind # goes 1 to 5, or L for the last one".to_string();
            return is_week.then_some(days).ok_or_else(refused);
        }
        let day = item.strip_suffix(['L', 'l']);
        Ok(day.filter(|day| self.value(day).is_ok()).unwrap_or(item))
    }

    fn check_step(&self, range: &str, step: &str) -> Result<(), String> {
        let of_field = match self.kind {
            // 0 and 7 are one day.
            Kind::Weekday => DAYS_OF_WEEK,
            Kind::OfClock | Kind::Day | Kind::Month => self.last - self.first + 1,
        };
        let values = match self.is_wildcard(range) {
            true => of_field,
            false if range.contains('-') => self.range(range)?,
            false => return Err("a step needs * or a range before it".to_string()),
        };
        match number(step) {
            Some(0) => Err("a step can't be 0".to_string()),
            Some(step) if step <= values => Ok(()),
            Some(_) => {
                let s = if values == 1 { "" } else { "s" };
                Err(format!("{} have {values} value{s} there: a step is longer", self.name))
            }
            None => Err("a step is no number".to_string()),
        }
    }

    /// How many values a number or a range has.
    fn range(&self, item: &str) -> Result<u32, String> {
        let Some((first, last)) = item.split_once('-') else {
            return self.value(item).map(|_| 1);
        };
        let (first, mut end) = (self.value(first)?, self.value(last)?);
        if self.kind == Kind::Weekday && last.eq_ignore_ascii_case("SUN") && first > 0 {
            end = DAYS_OF_WEEK;
        }
        match end.checked_sub(first) {
            Some(more) => Ok(more + 1),
            None => Err(format!("{}: a range ends before it begins", self.name)),
        }
    }

    fn value(&self, word: &str) -> Result<u32, String> {
        if word.bytes().all(|byte| byte.is_ascii_digit()) && !word.is_empty() {
            let in_range = number(word).filter(|it| (self.first..=self.last).contains(it));
            let refused = || format!("{} are {} to {}", self.name, self.first, self.last);
            return in_range.ok_or_else(refused);
        }
        let names: &[&str] = match self.kind {
            Kind::Month => &MONTHS,
            Kind::Weekday => &WEEKDAYS,
            Kind::OfClock | Kind::Day => &[],
        };
        let position = names.iter().position(|name| name.eq_ignore_ascii_case(word));
        let position = position.and_then(|position| u32::try_from(position).ok());
        position.map(|position| position + self.first).ok_or_else(|| self.refused())
    }

    /// What is none of its values.
    fn refused(&self) -> String {
        let takes = match self.kind {
            Kind::OfClock => "numbers: names stand for months and days of the week only",
            Kind::Day => "numbers, L, LW and 15W",
            Kind::Month => "numbers and JAN to DEC",
            Kind::Weekday => "numbers, SUN to SAT, 5L and MON#1",
        };
        format!("{} take {takes}", self.name)
    }
}

/// One or two digits.
fn number(word: &str) -> Option<u32> {
    let is_number = (1..=2).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| word.parse().ok()).flatten()
}
