//! The two formats of metrics: OpenMetrics, and the older text of Prometheus for what doesn't read
//! that.

use std::collections::HashMap;

const OPEN_METRICS: &str = "application/openmetrics-text";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    OpenMetrics,
    Text,
}

impl Format {
    /// What the reader likes best of an Accept header; OpenMetrics where it doesn't care. One that
    /// sends none may not have heard of it: KEDA's metrics-api scaler reads only the older text.
    pub fn accepted(accept: &str) -> Format {
        if accept.trim().is_empty() {
            return Format::Text;
        }
        let mut best: HashMap<&str, f32> = HashMap::new();
        for range in accept.split(',') {
            let mut parts = range.split(';').map(str::trim);
            let name = parts.next().unwrap_or_default();
            let weight =
                parts.find_map(|part| part.strip_prefix("q=")?.parse().ok()).unwrap_or(1.0);
            let known = best.entry(name).or_insert(0.0);
            *known = known.max(weight);
        }
        let weight =
            |names: &[&str]| names.iter().find_map(|name| best.get(name)).copied().unwrap_or(0.0);
        let open = weight(&[OPEN_METRICS, "application/*", "*/*"]);
        let text = weight(&["text/plain", "text/*", "*/*"]);
        if text > open {
            Format::Text
        } else {
            Format::OpenMetrics
        }
    }

    pub fn content_type(self) -> &'static str {
        match self {
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Format::Text => "text/plain; version=0.0.4; charset=utf-8",
        }
    }

    /// OpenMetrics, in this format.
    pub fn of(self, open_metrics: String) -> String {
        match self {
            Format::OpenMetrics => open_metrics,
            Format::Text => as_text(&open_metrics),
        }
    }
}

/// A counter has its whole name there, an info is a gauge, and there are no units and no end.
fn as_text(open_metrics: &str) -> String {
    let types =
        open_metrics.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    let types: HashMap<&str, &str> = types.collect();
    let mut text = String::with_capacity(open_metrics.len());
    for line in open_metrics.lines() {
        let about = line.strip_prefix("# ").and_then(|about| about.split_once(' '));
        let (word, rest) = match about {
            Some((word @ ("HELP" | "TYPE"), rest)) => (word, rest),
            Some(_) => continue,
            None if line.starts_with('#') => continue,
            None => {
                text.push_str(line);
                text.push('\n');
                continue;
            }
        };
        let (name, said) = rest.split_once(' ').unwrap_or((rest, ""));
        let (end, type_) = match types.get(name) {
            Some(&"counter") => ("_total", "counter"),
            Some(&"info") => ("_info", "gauge"),
            Some(type_) => ("", *type_),
            None => ("", "untyped"),
        };
        let said = if word == "TYPE" { type_ } else { said };
        text.push_str(&format!("# {word} {name}{end} {said}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_accept_header_chooses_the_metrics_format() {
        use Format::{OpenMetrics, Text};
        for (accept, format) in [
            ("", Text),
            ("*/*", OpenMetrics),
            ("text/plain", Text),
            ("text/plain;version=0.0.4;q=0.3,*/*;q=0.2", Text),
            (
                "application/openmetrics-text;version=1.0.0;q=0.5, text/plain;version=0.0.4;q=0.4",
                OpenMetrics,
            ),
            ("application/openmetrics-text;q=0.4,text/plain;q=0.6", Text),
            ("text/html,application/xhtml+xml,*/*;q=0.8", OpenMetrics),
        ] {
            assert_eq!(Format::accepted(accept), format, "{accept}");
        }
    }

    #[test]
    fn the_older_metrics_text_names_counters_in_full() {
        let open = "# HELP dq_board The board.\n# TYPE dq_board info\ndq_board_info{version=\"1\"} 1\n\
            # HELP dq_added Jobs.\n# TYPE dq_added counter\ndq_added_total{queue=\"a # b\"} 3\n\
            # HELP dq_late_seconds How late.\n# TYPE dq_late_seconds histogram\n# UNIT dq_late_seconds seconds\n\
            dq_late_seconds_bucket{le=\"+Inf\"} 1\n# EOF\n";
        let text =
            "# HELP dq_board_info The board.\n# TYPE dq_board_info gauge\ndq_board_info{version=\"1\"} 1\n\
            # HELP dq_added_total Jobs.\n# TYPE dq_added_total counter\ndq_added_total{queue=\"a # b\"} 3\n\
            # HELP dq_late_seconds How late.\n# TYPE dq_late_seconds histogram\n\
            dq_late_seconds_bucket{le=\"+Inf\"} 1\n";
        assert_eq!(Format::Text.of(open.into()), text);
        assert_eq!(Format::OpenMetrics.of(open.into()), open);
    }
}
