//! /metrics, for Prometheus: what is known of queues, in seconds and bytes, never an id as a label.
//!
//! Lateness comes twice: as a histogram in coarse steps, which says how late jobs were in any time that
//! somebody asks about, and as the server's own quantiles, which are exact to 1 % and since its start.

use std::fmt::Error;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};

use crate::bytes::Shown;
use crate::server::queue::{Info, Lateness, State, Totals};
use crate::watch::{Known, Watch};

pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

pub fn text(watch: &Arc<Watch>, queues_max: usize) -> Result<String, Error> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Scrape { watch: watch.clone(), queues_max }));
    let mut text = String::new();
    encode(&mut text, &registry)?;
    Ok(text)
}

struct Scrape {
    watch: Arc<Watch>,
    queues_max: usize,
}

impl std::fmt::Debug for Scrape {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.debug_struct("Scrape").field("queues_max", &self.queues_max).finish_non_exhaustive()
    }
}

/// A queue and its name as a label.
type Queue<'k> = (String, &'k Info);

impl Collector for Scrape {
    fn encode(&self, encoder: DescriptorEncoder) -> Result<(), Error> {
        let mut metrics = Metrics(encoder);
        metrics
            .about("dq_board", "The dq-board that tells all this.", MetricType::Info)?
            .encode_info(&[("version", env!("CARGO_PKG_VERSION"))])?;
        let is_up = self.watch.is_up();
        metrics.number("dq_up", "1 while the servers answer, else 0.", u64::from(is_up))?;
        if !is_up {
            // Old figures would look like new ones.
            return Ok(());
        }
        let known = self.watch.known();
        let all = known.iter().filter_map(|(name, reading)| Some((name, reading.info.as_ref()?)));
        let queues: Vec<Queue> = all.take(self.queues_max).map(|(name, info)| (label(name), info)).collect();
        servers(&mut metrics, &known, queues.len())?;
        gauges(&mut metrics, &queues)?;
        lateness(&mut metrics, &queues)?;
        counters(&mut metrics, &queues)
    }
}

fn servers(metrics: &mut Metrics, known: &Known, told: usize) -> Result<(), Error> {
    let all = known.sums.queues as u64 + known.left_out();
    metrics.number("dq_queues", "How many queues there are.", all)?;
    let help = "Queues of which nothing is told here one by one: see --metrics-queues.";
    metrics.number("dq_queues_left_out", help, all.saturating_sub(told as u64))?;
    let help = "1 where the server may throw away whole queues when its memory is full, else 0.";
    let mut family = metrics.about("dq_eviction_risk", help, MetricType::Gauge)?;
    for server in &known.servers {
        let labels = [("server", server.address.as_str())];
        ConstGauge::new(u64::from(server.evicts)).encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}

fn gauges(metrics: &mut Metrics, queues: &[Queue]) -> Result<(), Error> {
    let mut family = metrics.about("dq_jobs", "Jobs by state.", MetricType::Gauge)?;
    for (name, info) in queues {
        for state in State::ALL {
            let labels = [("queue", name.as_str()), ("state", state.name())];
            ConstGauge::new(info.counts.of(state)).encode(family.encode_family(&labels)?)?;
        }
    }
    let help = "For how long the oldest ready job has been ready; 0 when none is.";
    metrics.seconds("dq_oldest_ready", help, queues, |info| info.oldest_ready_ms.unwrap_or(0))?;

    let help = "Workers that wait for a job of the queue.";
    metrics.each("dq_waiting_consumers", help, queues, |info| info.waiting_consumers)?;
    let help = "1 while the queue is paused, else 0.";
    metrics.each("dq_paused", help, queues, |info| u64::from(info.is_paused))?;
    let help = "1 while CONCURRENCY or RATE lets no job of the queue go, else 0.";
    metrics.each("dq_held", help, queues, |info| u64::from(info.limits.held_until.is_some()))?;
    let help = "How many jobs of the queue may be reserved at a time; 0 is no limit.";
    metrics.each("dq_concurrency", help, queues, |info| info.settings.concurrency)?;
    let help = "How many jobs the queue holds at most; 0 is no limit.";
    metrics.each("dq_max_jobs", help, queues, |info| info.settings.max_jobs)?;
    let help = "Jobs that have a schedule.";
    metrics.each("dq_schedules", help, queues, |info| info.schedules)?;
    let mut family =
        metrics.about_unit("dq_memory", "What the queue takes.", &Unit::Bytes, MetricType::Gauge)?;
    for (name, info) in queues {
        ConstGauge::new(info.memory).encode(family.encode_family(&[("queue", name.as_str())])?)?;
    }
    Ok(())
}

fn lateness(metrics: &mut Metrics, queues: &[Queue]) -> Result<(), Error> {
    let help = "How late jobs were handed out, since the server started.";
    let mut family = metrics.about_unit("dq_lateness", help, &Unit::Seconds, MetricType::Histogram)?;
    for (name, info) in queues.iter().filter(|(_, info)| !info.lateness.within.is_empty()) {
        let (sum, count) = (seconds(info.lateness.sum_ms), info.lateness.count);
        let buckets = buckets(&info.lateness);
        let labels = [("queue", name.as_str())];
        family.encode_family(&labels)?.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)?;
    }
    let help = "How late jobs were handed out: this share of them at most so late, since the server started.";
    let mut family = metrics.about_unit("dq_lateness_quantile", help, &Unit::Seconds, MetricType::Gauge)?;
    for (name, info) in queues {
        let late = &info.lateness;
        for (quantile, ms) in [
            ("0.5", late.p50_ms),
            ("0.9", late.p90_ms),
            ("0.99", late.p99_ms),
            ("0.999", late.p999_ms),
            ("1", late.max_ms),
        ] {
            let Some(ms) = ms else { continue };
            let labels = [("queue", name.as_str()), ("quantile", quantile)];
            ConstGauge::new(seconds(ms)).encode(family.encode_family(&labels)?)?;
        }
    }
    Ok(())
}

/// How many jobs were in each step of the histogram, and above all of them.
fn buckets(lateness: &Lateness) -> Vec<(f64, u64)> {
    let mut below = 0;
    let mut steps: Vec<_> = lateness
        .within
        .iter()
        .map(|(ms, within)| (seconds(*ms), within.saturating_sub(std::mem::replace(&mut below, *within))))
        .collect();
    steps.push((f64::MAX, lateness.count.saturating_sub(below)));
    steps
}

fn counters(metrics: &mut Metrics, queues: &[Queue]) -> Result<(), Error> {
    type Total = fn(&Totals) -> u64;
    let totals: [(&str, &str, Total); 12] = [
        ("dq_added", "Jobs added under an id that was free.", |totals| totals.added),
        ("dq_replaced", "Jobs put instead of another.", |totals| totals.replaced),
        ("dq_delivered", "Jobs handed out.", |totals| totals.popped),
        ("dq_finished", "Jobs finished.", |totals| totals.finished),
        ("dq_released", "Jobs given back.", |totals| totals.released),
        ("dq_timed_out", "Leases that ran out.", |totals| totals.timed_out),
        ("dq_buried", "Jobs that a worker buried.", |totals| totals.buried),
        ("dq_dead", "Jobs that died, buried ones among them.", |totals| totals.dead),
        ("dq_kicked", "Jobs kicked.", |totals| totals.kicked),
        ("dq_deleted", "Jobs deleted by id.", |totals| totals.deleted),
        ("dq_purged", "Jobs purged, or gone when their time was over.", |totals| totals.purged),
        ("dq_missed", "Times of schedules that passed without a run of their own.", |totals| totals.missed),
    ];
    for (metric, help, total) in totals {
        let mut family = metrics.about(metric, help, MetricType::Counter)?;
        for (name, info) in queues {
            let counter = ConstCounter::new(total(&info.totals));
            counter.encode(family.encode_family(&[("queue", name.as_str())])?)?;
        }
    }
    let help = "How often a worker wanted a ready job that this limit held back, since the server started.";
    let mut family = metrics.about("dq_limited", help, MetricType::Counter)?;
    for (name, info) in queues {
        for (limit, times) in [("concurrency", info.limits.by_concurrency), ("rate", info.limits.by_rate)] {
            let labels = [("queue", name.as_str()), ("limit", limit)];
            ConstCounter::new(times).encode(family.encode_family(&labels)?)?;
        }
    }
    Ok(())
}

/// Writes one metric after the other.
struct Metrics<'e>(DescriptorEncoder<'e>);

impl Metrics<'_> {
    fn about<'s>(
        &'s mut self,
        name: &'s str,
        help: &str,
        kind: MetricType,
    ) -> Result<MetricEncoder<'s>, Error> {
        self.0.encode_descriptor(name, help, None, kind)
    }

    fn about_unit<'s>(
        &'s mut self,
        name: &'s str,
        help: &str,
        unit: &'s Unit,
        kind: MetricType,
    ) -> Result<MetricEncoder<'s>, Error> {
        self.0.encode_descriptor(name, help, Some(unit), kind)
    }

    fn number(&mut self, name: &str, help: &str, number: u64) -> Result<(), Error> {
        ConstGauge::new(number).encode(self.about(name, help, MetricType::Gauge)?)
    }

    fn each(&mut self, name: &str, help: &str, queues: &[Queue], of: fn(&Info) -> u64) -> Result<(), Error> {
        let mut family = self.about(name, help, MetricType::Gauge)?;
        for (name, info) in queues {
            ConstGauge::new(of(info)).encode(family.encode_family(&[("queue", name.as_str())])?)?;
        }
        Ok(())
    }

    fn seconds(
        &mut self,
        name: &str,
        help: &str,
        queues: &[Queue],
        ms: fn(&Info) -> u64,
    ) -> Result<(), Error> {
        let mut family = self.about_unit(name, help, &Unit::Seconds, MetricType::Gauge)?;
        for (name, info) in queues {
            let labels = [("queue", name.as_str())];
            ConstGauge::new(seconds(ms(info))).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

fn seconds(ms: u64) -> f64 {
    ms as f64 / 1_000.0
}

/// A queue's name as a label: spelled as in the pages, then escaped for the format, which the encoder
/// leaves to us. An empty label would be none: `\empty` is no other name's spelling.
fn label(name: &[u8]) -> String {
    let shown = if name.is_empty() { "\\empty".into() } else { Shown(name).to_string() };
    shown.replace('\\', "\\\\").replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::deployment::Deployment;
    use crate::server::node::Node;
    use crate::server::queue::{Counts, Limits};

    fn scrape(queues_max: usize) -> String {
        let certificates = redis::TlsCertificates { client_tls: None, root_cert: None };
        let deployment = Deployment::new("redis://127.0.0.1:1", &[], certificates).unwrap();
        let client = redis::Client::open("redis://127.0.0.1:1").unwrap();
        let node = Arc::new(Node::new("127.0.0.1:1".into(), client));
        let watch = Arc::new(Watch::new(deployment, 10));
        let info = Info {
            counts: Counts { ready: 3, ..Counts::default() },
            oldest_ready_ms: Some(1_500),
            lateness: Lateness {
                p99_ms: Some(20),
                within: vec![(1, 4), (10, 4), (1_000, 6)],
                count: 7,
                sum_ms: 3_500,
                ..Lateness::default()
            },
            limits: Limits { by_rate: 5, ..Limits::default() },
            totals: Totals { popped: 7, ..Totals::default() },
            ..Info::default()
        };
        for name in ["mail", "a\"b\\c\nd"] {
            watch.note_for_tests(&name.as_bytes().into(), info.clone(), &node);
        }
        text(&watch, queues_max).unwrap()
    }

    #[test]
    fn units_are_in_names_and_hostile_names_are_escaped() {
        let text = scrape(10);
        for line in [
            "dq_up 1",
            "dq_queues 2",
            "dq_queues_left_out 0",
            "dq_jobs{queue=\"mail\",state=\"ready\"} 3",
            "dq_oldest_ready_seconds{queue=\"mail\"} 1.5",
            "dq_lateness_quantile_seconds{queue=\"mail\",quantile=\"0.99\"} 0.02",
            "dq_delivered_total{queue=\"mail\"} 7",
            "dq_limited_total{queue=\"mail\",limit=\"rate\"} 5",
            "dq_lateness_seconds_bucket{le=\"0.001\",queue=\"mail\"} 4",
            "dq_lateness_seconds_bucket{le=\"0.01\",queue=\"mail\"} 4",
            "dq_lateness_seconds_bucket{le=\"1.0\",queue=\"mail\"} 6",
            "dq_lateness_seconds_bucket{le=\"+Inf\",queue=\"mail\"} 7",
            "dq_lateness_seconds_count{queue=\"mail\"} 7",
            "dq_lateness_seconds_sum{queue=\"mail\"} 3.5",
            r#"dq_paused{queue="a\"b\\\\c\\nd"} 0"#,
        ] {
            assert!(text.lines().any(|told| told == line), "{line} isn't in\n{text}");
        }
        assert!(!text.contains("quantile=\"0.5\""), "nothing is told of what isn't known");
        assert_eq!(label(b""), "\\\\empty");
    }

    #[test]
    fn queues_beyond_the_limit_are_counted() {
        let text = scrape(1);
        assert!(text.contains("dq_queues 2\n") && text.contains("dq_queues_left_out 1\n"), "{text}");
        assert!(!text.contains("\"mail\""), "{text}");
    }
}
