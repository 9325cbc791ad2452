//! Small charts, as SVG without any text in it.

use std::fmt::Write;

use maud::{html, Markup};

use super::words;
use crate::server::forecast::Forecast;

const WIDTH: f64 = 120.0;
const HEIGHT: f64 = 24.0;

/// A line over the last hour. Gaps, in which nobody looked, are left out.
pub fn spark(values: impl Iterator<Item = Option<u32>>, what: &str) -> Markup {
    let values: Vec<_> = values.collect();
    let most = values.iter().flatten().copied().max().unwrap_or(0);
    let step = WIDTH / (values.len().max(2) - 1) as f64;
    let points: Vec<(f64, f64)> = values
        .iter()
        .enumerate()
        .filter_map(|(index, value)| {
            Some((index as f64 * step, height(f64::from((*value)?), most.into())))
        })
        .collect();
    let mut line = String::new();
    points.iter().for_each(|(x, y)| {
        let _ = write!(line, "{x:.1},{y:.1} ");
    });
    let edge = |point: Option<&(f64, f64)>| point.map_or(WIDTH, |(x, _)| *x);
    let area =
        format!("{:.1},{HEIGHT} {line}{:.1},{HEIGHT}", edge(points.first()), edge(points.last()));
    html! {
        svg.spark viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } preserveAspectRatio="none" role="img"
            aria-label={ (what) " in the last hour: at most " (words::number(most.into())) } {
            line x1="0" x2=(WIDTH) y1=(HEIGHT - 0.5) y2=(HEIGHT - 0.5) {}
            @if points.len() > 1 {
                polygon points=(area) {}
                polyline points=(line.trim_end()) {}
            }
        }
    }
}

fn height(value: f64, most: f64) -> f64 {
    HEIGHT - 1.0 - if most > 0.0 { value / most * (HEIGHT - 3.0) } else { 0.0 }
}

/// A bar for each step of a forecast.
pub fn bars(forecast: &Forecast) -> Markup {
    let jobs = &forecast.jobs;
    let most = jobs.iter().copied().max().unwrap_or(0);
    let total: u64 = jobs.iter().sum();
    let (unit, what) =
        if forecast.step_ms >= 3_600_000 { ("h", "an hour") } else { ("min", "a minute") };
    let step = WIDTH / jobs.len().max(1) as f64;
    html! {
        svg.bars viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } preserveAspectRatio="none" role="img"
            aria-label={ (words::jobs(total)) " in the next " (jobs.len()) " " (unit) ": at most "
                (words::number(most)) " " (what) } {
            line x1="0" x2=(WIDTH) y1=(HEIGHT - 0.5) y2=(HEIGHT - 0.5) {}
            @for (index, many) in jobs.iter().enumerate() {
                @let top = height(*many as f64, most as f64).min(HEIGHT - 2.5);
                @if *many > 0 {
                    rect x=(format!("{:.2}", index as f64 * step)) width=(format!("{:.2}", step * 0.8))
                        y=(format!("{top:.1}")) height=(format!("{:.1}", HEIGHT - 1.0 - top)) {
                        title { (words::jobs(*many)) " in " (index) " to " (index + 1) " " (unit) }
                    }
                }
            }
        }
        div.scale aria-hidden="true" {
            @for quarter in 0..4 { span { @if quarter == 0 { "now" } @else { "+" (jobs.len() * quarter / 4) " " (unit) } } }
            @if most > 0 { span.most { "at most " (words::short(most)) " " (what) } }
        }
    }
}

/// The marks of a logarithmic scale of milliseconds.
const MARKS: [(u64, &str); 6] =
    [(1, "1 ms"), (10, "10"), (100, "100"), (1_000, "1 s"), (10_000, "10 s"), (100_000, "100 s")];

/// Where a span stands from 1 ms to 1,000 s on a logarithmic scale: 0 to 100.
fn place(ms: u64) -> f64 {
    ((ms.max(1) as f64).log10() / 6.0 * 100.0).clamp(0.0, 100.0)
}

/// A bar for each span, on a logarithmic scale.
pub fn log_bars(spans: &[(&str, Option<u64>)]) -> Markup {
    html! {
        div.logbars {
            @for (name, ms) in spans {
                span.name { (name) }
                svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true" {
                    @for (mark, _) in MARKS {
                        line x1=(place(mark)) x2=(place(mark)) y1="0" y2="10" {}
                    }
                    @if let Some(ms) = ms {
                        rect x="0" y="3" height="4" width={ (format!("{:.1}", place(*ms).max(1.0))) } {}
                    }
                }
                span.value { (ms.map_or("–".into(), words::span)) }
            }
            span.name {}
            span.marks aria-hidden="true" { @for (_, name) in MARKS { span { (name) } } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_bar_reaches_the_top_and_a_small_one_is_seen() {
        let forecast = Forecast { from_ms: 0, step_ms: 3_600_000, jobs: vec![0, 1_000_000, 1] };
        let svg = bars(&forecast).into_string();
        assert_eq!(svg.matches("<rect").count(), 2, "{svg}");
        assert!(svg.contains("x=\"40.00\" width=\"32.00\" y=\"2.0\" height=\"21.0\""), "{svg}");
        assert!(
            svg.contains("y=\"21.5\" height=\"1.5\"><title>1 job in 2 to 3 h</title>"),
            "{svg}"
        );
        assert!(svg.contains("in the next 3 h: at most 1\u{202f}000\u{202f}000 an hour"), "{svg}");
        let none = Forecast { jobs: vec![0; 24], ..forecast };
        assert!(!bars(&none).into_string().contains("<rect"));
    }

    #[test]
    fn the_time_scale_of_a_chart_is_logarithmic() {
        assert_eq!((place(0), place(1), place(1_000), place(1 << 48)), (0.0, 0.0, 50.0, 100.0));
    }

    #[test]
    fn a_line_reaches_from_the_bottom_to_the_top() {
        let svg = spark([Some(0), None, Some(10)].into_iter(), "ready").into_string();
        assert!(svg.contains("points=\"0.0,23.0 120.0,2.0\""), "{svg}");
        assert!(svg.contains("at most 10"), "{svg}");
        let svg = spark([None, None].into_iter(), "ready").into_string();
        assert!(!svg.contains("<poly"), "{svg}");
    }
}
