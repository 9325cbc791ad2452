//! A moment by the clock of a schedule's time zone: that is where its rule has its hours.

use jiff::tz::TimeZone;
use jiff::Timestamp;
use maud::{html, Markup};

use super::words;
use crate::server::job::Schedule;

/// In the zone of a cron expression, and how far away. A period has no zone: its times are in the
/// reader's, as all others are.
pub fn moment(ms: u64, zone: Option<&[u8]>, now_ms: u64) -> Markup {
    match zone {
        None => words::moment(ms, now_ms),
        Some(zone) => html! {
            span.clock { (by_clock(ms, zone)) } span.soft { " (" (words::brief(ms, now_ms)) ")" }
        },
    }
}

/// The zone of a schedule's cron expression; without TZ it is UTC.
pub fn zone_of(schedule: &Schedule) -> Option<&[u8]> {
    schedule.cron.as_ref().map(|_| schedule.zone.as_deref().unwrap_or(b"UTC"))
}

/// `Tue 2026-12-01 02:30 CET, Europe/Berlin`. In UTC where the zone isn't known here.
fn by_clock(ms: u64, zone: &[u8]) -> String {
    let Some(at) = i64::try_from(ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok())
    else {
        return words::utc(ms);
    };
    let name = std::str::from_utf8(zone).unwrap_or_default();
    let known = TimeZone::get(name).ok().filter(|_| !name.eq_ignore_ascii_case("UTC"));
    let form = if ms % 60_000 == 0 { "%a %Y-%m-%d %H:%M" } else { "%a %Y-%m-%d %H:%M:%S" };
    match known {
        Some(zone) => {
            let at = at.to_zoned(zone);
            format!("{} {}, {name}", at.strftime(form), at.strftime("%Z"))
        }
        None => format!("{} UTC", at.to_zoned(TimeZone::UTC).strftime(form)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_told_by_the_clock_of_its_zone() {
        let summer_ends = 1_792_891_800_000; // 2026-10-25 01:30 UTC
        for (ms, zone, told) in [
            (1_796_088_600_000, "Europe/Berlin", "Tue 2026-12-01 02:30 CET, Europe/Berlin"),
            (1_796_088_600_000, "UTC", "Tue 2026-12-01 01:30 UTC"),
            (1_796_088_600_000, "Mars/Olympus", "Tue 2026-12-01 01:30 UTC"),
            (summer_ends, "Europe/Berlin", "Sun 2026-10-25 02:30 CET, Europe/Berlin"),
            (summer_ends - 3_600_000, "Europe/Berlin", "Sun 2026-10-25 02:30 CEST, Europe/Berlin"),
            (1_796_088_607_000, "Asia/Kolkata", "Tue 2026-12-01 07:00:07 IST, Asia/Kolkata"),
        ] {
            assert_eq!(by_clock(ms, zone.as_bytes()), told);
        }
        assert_eq!(by_clock((1 << 48) - 1, b"Europe/Berlin"), "+10889-08-02 05:31:50.655 UTC");
    }
}
