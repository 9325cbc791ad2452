//! Scales of charts: round ticks from the bottom to the top.

use crate::web::words;

/// Ticks above the lowest one, at most.
const TICKS: f64 = 3.0;

#[derive(Debug, Clone, PartialEq)]
pub struct Scale {
    bottom: f64,
    top: f64,
    is_log: bool,
    pub ticks: Vec<Tick>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Tick {
    /// Percent, from the bottom.
    pub height: f64,
    pub text: String,
}

impl Scale {
    pub fn jobs(most: f64) -> Scale {
        let mut steps = (0..20).flat_map(|power| [1.0, 2.0, 5.0].map(|n| n * 10f64.powi(power)));
        let step = steps.find(|step| step * TICKS >= most).unwrap_or(1e20);
        Scale::even(most, step, |jobs| words::short(jobs as u64))
    }

    pub fn time(most_ms: f64) -> Scale {
        const SECOND: f64 = 1e3;
        const MINUTE: f64 = 6e4;
        const HOUR: f64 = 3.6e6;
        const DAY: f64 = 8.64e7;
        let of = |unit: f64, steps: &'static [f64]| steps.iter().map(move |step| step * unit);
        let mut steps = of(1.0, &[1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0])
            .chain(of(SECOND, &[1.0, 2.0, 5.0, 10.0, 20.0]))
            .chain(of(MINUTE, &[1.0, 2.0, 5.0, 10.0, 20.0]))
            .chain(of(HOUR, &[1.0, 2.0, 4.0, 8.0]))
            .chain(of(DAY, &[1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0]));
        let step = steps.find(|step| step * TICKS >= most_ms).unwrap_or(1_000.0 * DAY);
        Scale::even(most_ms, step, |ms| if ms > 0.0 { words::span(ms as u64) } else { "0".into() })
    }

    /// Each tick is ten times the one below.
    pub fn log_time(most_ms: f64) -> Scale {
        const NAMES: [&str; 9] =
            ["0.1 ms", "1 ms", "10 ms", "100 ms", "1 s", "10 s", "100 s", "1000 s", "3 h"];
        let decades = (1..NAMES.len()).find(|n| 10f64.powi(*n as i32 - 1) >= most_ms);
        let decades = decades.unwrap_or(NAMES.len() - 1).max(2);
        // All of them don't fit in.
        let every = decades.div_ceil(4);
        let tick = |(n, text): (usize, &&str)| Tick {
            height: n as f64 / decades as f64 * 100.0,
            text: (*text).into(),
        };
        let names = NAMES.iter().enumerate().take(decades + 1);
        let ticks = names.filter(|(n, _)| (decades - n) % every == 0).map(tick).collect();
        Scale { bottom: 0.1, top: 10f64.powi(decades as i32 - 1), is_log: true, ticks }
    }

    fn even(most: f64, step: f64, text: impl Fn(f64) -> String) -> Scale {
        let many = (most / step).ceil().clamp(1.0, TICKS) as u64;
        let tick =
            |n: u64| Tick { height: n as f64 / many as f64 * 100.0, text: text(n as f64 * step) };
        let ticks = (0..=many).map(tick).collect();
        Scale { bottom: 0.0, top: many as f64 * step, is_log: false, ticks }
    }

    /// Percent, from the bottom.
    pub fn height(&self, value: f64) -> f64 {
        let part = if self.is_log {
            (value.max(self.bottom) / self.bottom).log10() / (self.top / self.bottom).log10()
        } else {
            value / self.top
        };
        (part * 100.0).clamp(0.0, 100.0)
    }
}

/// Moments at whole multiples of a step, from one until before another.
pub fn whole(from_ms: u64, until_ms: u64, step_ms: u64) -> impl Iterator<Item = u64> {
    let first = from_ms.div_ceil(step_ms.max(1)).saturating_mul(step_ms);
    std::iter::successors(Some(first), move |ms| ms.checked_add(step_ms.max(1)))
        .take_while(move |ms| *ms < until_ms)
        .take(24)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(scale: &Scale) -> Vec<&str> {
        scale.ticks.iter().map(|tick| tick.text.as_str()).collect()
    }

    #[test]
    fn ticks_are_round_and_reach_over_the_most() {
        assert_eq!(texts(&Scale::jobs(0.0)), ["0", "1"]);
        assert_eq!(texts(&Scale::jobs(2.0)), ["0", "1", "2"]);
        assert_eq!(texts(&Scale::jobs(7.0)), ["0", "5", "10"]);
        assert_eq!(texts(&Scale::jobs(1_234_567.0)), ["0", "500k", "1.0M", "1.5M"]);
        assert_eq!(texts(&Scale::time(0.0)), ["0", "1 ms"]);
        assert_eq!(texts(&Scale::time(2_500.0)), ["0", "1 s", "2 s", "3 s"]);
        assert_eq!(texts(&Scale::time(50_000.0)), ["0", "20 s", "40 s", "1 min"]);
        assert_eq!(texts(&Scale::time(5e7)), ["0", "8 h", "16 h"]);
        assert_eq!(texts(&Scale::log_time(0.0)), ["0.1 ms", "1 ms", "10 ms"]);
        assert_eq!(texts(&Scale::log_time(99.0)), ["0.1 ms", "1 ms", "10 ms", "100 ms"]);
        assert_eq!(texts(&Scale::log_time(3.6e6)), ["0.1 ms", "10 ms", "1 s", "100 s", "3 h"]);
    }

    #[test]
    fn no_value_is_outside_and_no_scale_has_many_ticks() {
        for power in -3..15 {
            for factor in [1.0, 1.9, 3.1, 7.7] {
                let most = factor * 10f64.powi(power);
                for scale in [Scale::jobs(most), Scale::time(most), Scale::log_time(most)] {
                    assert!((2..=5).contains(&scale.ticks.len()), "{most}: {scale:?}");
                    assert_eq!(scale.ticks.last().map(|tick| tick.height), Some(100.0));
                    if !scale.is_log && most < 1e11 {
                        assert!(
                            scale.top >= most && most < 1.0 || scale.top <= most * 3.1 + 3.0,
                            "{most}: {scale:?}"
                        );
                    }
                }
            }
        }
        let scale = Scale::log_time(1_000.0);
        assert_eq!(
            (scale.height(0.0), scale.height(1_000.0), scale.height(1e9)),
            (0.0, 100.0, 100.0)
        );
        assert!((scale.height(10.0) - 50.0).abs() < 1e-9);
        assert_eq!(Scale::jobs(10.0).height(5.0), 50.0);
    }

    #[test]
    fn moments_are_whole() {
        assert_eq!(whole(1_000, 3_000, 1_000).collect::<Vec<_>>(), [1_000, 2_000]);
        assert_eq!(whole(1, 3_000, 1_000).collect::<Vec<_>>(), [1_000, 2_000]);
    }
}
