//! Times and other numbers as scripts write them.

use super::Time;

/// From here on, the numbers of leases are used up.
const END: u64 = 1 << 42;

pub fn number(text: &str) -> u64 {
    let (word, less) = text.split_once('-').unwrap_or((text, "0"));
    let named = match word {
        "MAX" => Time::MAX.unix_ms(),
        "END" => END,
        digits => digits.parse().unwrap_or_else(|_| panic!("{text} is no number")),
    };
    named - less.parse::<u64>().unwrap()
}

/// Times in the last second there is are shown as they are written.
pub fn shown(time: Time) -> String {
    match Time::MAX.since(time).as_u64() {
        0 => "MAX".into(),
        less @ 1..=1_000 => format!("MAX-{less}"),
        _ => time.unix_ms().to_string(),
    }
}
