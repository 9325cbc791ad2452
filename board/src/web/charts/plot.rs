//! One chart, as SVG that stretches: lines are drawn in units of slots and percent, and only texts
//! keep their form.

use std::fmt::Write;

use maud::{html, Markup};

use super::scale::{whole, Scale};
use crate::watch::{Figure, Table};
use crate::web::words;

/// The drawing's top and height in pixels; board.css has the height of the whole.
const TOP: f64 = 6.0;
const HEIGHT: f64 = 84.0;
/// Of the times below.
const TIMES_AT: f64 = TOP + HEIGHT + 13.0;

pub struct Plot {
    pub title: &'static str,
    /// What is explained of it.
    pub about: &'static str,
    /// Each with its short name.
    pub figures: &'static [(Figure, &'static str)],
    pub scale: fn(f64) -> Scale,
}

impl Plot {
    pub fn draw(&self, table: &Table, title: &str, of_what: &str) -> Markup {
        let known = self.figures.iter().flat_map(|(figure, _)| table.column(*figure).flatten());
        let scale = (self.scale)(known.fold(0.0, f64::max));
        let sums = self.figures.iter().map(|(figure, _)| {
            let most = if figure.is_sum() { "" } else { "at most " };
            format!("{} {most}{}", figure.name(), value(*figure, table.all_in_all(*figure)))
        });
        let label = format!("{title}, {of_what}: {}", sums.collect::<Vec<_>>().join(", "));
        html! {
            figure.chart {
                figcaption { h3 title=(self.about) { (title) } (self.key(table)) }
                svg.scale-y aria-hidden="true" {
                    @for tick in &scale.ticks {
                        text x="100%" y=(px(y_of(tick.height) + 3.5)) { (tick.text) }
                    }
                }
                svg.plot role="img" aria-label=(label) {
                    g { @for tick in &scale.ticks {
                        line.grid x1="0" x2="100%" y1=(px(y_of(tick.height))) y2=(px(y_of(tick.height))) {}
                    } }
                    g { (times(table)) }
                    svg x="0" y=(px(TOP)) width="100%" height=(px(HEIGHT)) preserveAspectRatio="none"
                        viewBox={ "0 0 " (table.rows.len().max(1)) " 100" } {
                        @for (index, (figure, name)) in self.figures.iter().enumerate() {
                            @let lines = Lines::of(table.column(*figure), &scale);
                            @if index == 0 { path.{ "area " (name) } d=(lines.area) {} }
                            path.{ "line " (name) } d=(lines.line) {}
                        }
                    }
                    line.cross y1=(px(TOP)) y2=(px(TOP + HEIGHT)) {}
                }
            }
        }
    }

    /// The figures by name: all in all, and in data-values those of each slot, for charts.js.
    fn key(&self, table: &Table) -> Markup {
        html! {
            ul.key {
                @for (figure, name) in self.figures {
                    // What isn't known is left out: an hour has many such slots.
                    @let each = table.column(*figure).map(|one| match one {
                        Some(_) => value(*figure, one),
                        None => String::new(),
                    });
                    li {
                        span.swatch.{ (name) } {} (name) " "
                        b data-values=(each.collect::<Vec<_>>().join("|")) {
                            (value(*figure, table.all_in_all(*figure)))
                        }
                    }
                }
            }
        }
    }
}

fn y_of(height: f64) -> f64 {
    TOP + HEIGHT * (1.0 - height / 100.0)
}

fn px(y: f64) -> String {
    format!("{y:.1}")
}

/// Below the drawing, at whole hours and the like. charts.js puts them into the reader's zone.
fn times(table: &Table) -> Markup {
    let span_ms = table.slot_ms.saturating_mul(table.rows.len() as u64).max(1);
    let end_ms = table.start_ms.saturating_add(span_ms);
    let every_ms = match span_ms {
        0..=7_200_000 => 900_000,
        7_200_001..=172_800_000 => 21_600_000,
        _ => 86_400_000,
    };
    html! {
        @for ms in whole(table.start_ms, end_ms, every_ms) {
            @let x = (ms - table.start_ms) as f64 / span_ms as f64 * 100.0;
            text.time x=(format!("{x:.2}%")) y=(px(TIMES_AT)) data-tick=(ms) data-every=(every_ms) {
                (words::tick(ms, every_ms))
            }
        }
    }
}

/// A step for each slot: the first and the last, and one between gaps, are seen like others.
#[derive(Default)]
struct Lines {
    line: String,
    /// The same down to the bottom.
    area: String,
}

impl Lines {
    fn of(values: impl Iterator<Item = Option<f64>>, scale: &Scale) -> Lines {
        let mut lines = Lines::default();
        let mut last: Option<String> = None;
        let mut end = 0;
        for (slot, value) in values.enumerate() {
            let y = value.map(|value| format!("{:.1}", 100.0 - scale.height(value)));
            if y != last {
                lines.turn(slot, last.as_deref(), y.as_deref());
            }
            (last, end) = (y, slot + 1);
        }
        lines.turn(end, last.as_deref(), None);
        lines
    }

    /// From one height to another; `None` is a gap.
    fn turn(&mut self, slot: usize, from: Option<&str>, to: Option<&str>) {
        // To write to a string can't fail.
        let _ = match (from, to) {
            (None, None) => Ok(()),
            (None, Some(to)) => write!(self.line, "M{slot} {to}")
                .and_then(|()| write!(self.area, "M{slot} 100V{to}")),
            (Some(_), Some(to)) => {
                write!(self.line, "H{slot}V{to}").and_then(|()| write!(self.area, "H{slot}V{to}"))
            }
            (Some(_), None) => {
                write!(self.line, "H{slot}").and_then(|()| write!(self.area, "H{slot}V100Z"))
            }
        };
    }
}

/// A figure in words.
pub fn value(figure: Figure, value: Option<f64>) -> String {
    match value {
        None => "–".into(),
        Some(ms) if figure.is_time() && ms > 0.0 && ms < 10.0 => format!("{ms:.1} ms"),
        Some(ms) if figure.is_time() => words::span(ms.round() as u64),
        // Prometheus estimates what happened between two scrapes.
        Some(jobs) if (jobs - jobs.round()).abs() >= 0.05 && jobs < 100.0 => format!("{jobs:.1}"),
        Some(jobs) => words::number(jobs.round() as u64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(values: &[Option<f64>]) -> (String, String) {
        let lines = Lines::of(values.iter().copied(), &Scale::jobs(10.0));
        (lines.line, lines.area)
    }

    #[test]
    fn a_slot_is_a_step_and_a_gap_is_a_gap() {
        let (line, area) = lines(&[Some(0.0), Some(0.0), Some(10.0), None, None, Some(5.0)]);
        assert_eq!(line, "M0 100.0H2V0.0H3M5 50.0H6");
        assert_eq!(area, "M0 100V100.0H2V0.0H3V100ZM5 100V50.0H6V100Z");
        assert_eq!(lines(&[None, None]), (String::new(), String::new()));
        assert_eq!(lines(&[]), (String::new(), String::new()));
    }

    #[test]
    fn figures_are_in_words() {
        let jobs = |jobs| value(Figure::Added, Some(jobs));
        assert_eq!([jobs(0.0), jobs(2.5), jobs(1_234.4)], ["0", "2.5", "1\u{202f}234"]);
        let late = |ms| value(Figure::LateP99, Some(ms));
        assert_eq!(
            [late(0.0), late(0.51), late(12.6), late(75_000.0)],
            ["0 ms", "0.5 ms", "13 ms", "1 min 15 s"]
        );
        assert_eq!(value(Figure::Dead, None), "–");
    }
}
