//! /metrics, for Prometheus: what is known of queues, in seconds and bytes, never an id as a label.
//!
//! Lateness comes twice: as a histogram in coarse steps, which says how late jobs were in any time
//! that somebody asks about, and as the server's own quantiles, which are exact to 1 % and since
//! its start.

mod choice;
mod format;
mod write;

use std::fmt::Error;
use std::sync::{Arc, Mutex, PoisonError, RwLockReadGuard};
use std::time::{Duration, Instant};

use axum::body::Bytes;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, NoLabelSet};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};

use choice::Choice;
pub use format::Format;
pub use write::label;
use write::{seconds, Labels, Metrics, Queue, Server};

use crate::args::Args;
use crate::server::forecast::{Due, DUE_WITHIN};
use crate::server::queue::{Info, Lateness, State, Totals};
use crate::watch::{Known, ServerFacts, Watch};

/// The text is kept for so long: those who scrape at the same time share it in memory.
const KEPT: Duration = Duration::from_secs(1);

/// What is told to those who scrape.
pub struct Scrapes {
    choice: Arc<Choice>,
    kept: Mutex<Vec<Kept>>,
}

struct Kept {
    format: Format,
    at: Instant,
    text: Bytes,
}

impl Scrapes {
    pub fn new(args: &Args) -> Result<Scrapes, String> {
        Ok(Scrapes { choice: Arc::new(Choice::new(args)?), kept: Mutex::default() })
    }

    pub fn text(&self, servers: &Arc<[Arc<Watch>]>, format: Format) -> Result<Bytes, Error> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|kept| kept.at.elapsed() < KEPT);
        if let Some(same) = kept.iter().find(|kept| kept.format == format) {
            return Ok(same.text.clone());
        }
        let text = Bytes::from(format.of(text(servers, &self.choice)?));
        kept.push(Kept { format, at: Instant::now(), text: text.clone() });
        Ok(text)
    }
}

fn text(servers: &Arc<[Arc<Watch>]>, choice: &Arc<Choice>) -> Result<String, Error> {
    let mut registry = Registry::default();
    let scrape = Scrape { servers: servers.clone(), choice: choice.clone() };
    registry.register_collector(Box::new(scrape));
    let mut text = String::new();
    encode(&mut text, &registry)?;
    Ok(text)
}

struct Scrape {
    servers: Arc<[Arc<Watch>]>,
    choice: Arc<Choice>,
}

impl std::fmt::Debug for Scrape {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.debug_struct("Scrape").field("choice", &self.choice).finish_non_exhaustive()
    }
}

impl Collector for Scrape {
    fn encode(&self, encoder: DescriptorEncoder) -> Result<(), Error> {
        let mut metrics = Metrics(encoder);
        metrics
            .about("dq_board", "The dq-board that tells all this.", MetricType::Info)?
            .encode_info(&[("version", env!("CARGO_PKG_VERSION"))])?;
        let is_up = self.servers.iter().map(|watch| (named(watch), u64::from(watch.is_up())));
        let is_up: Vec<_> = is_up.collect();
        metrics.of_all("dq_up", "1 while the servers answer and have DQ, else 0.", &is_up)?;
        modules(&mut metrics, &self.servers)?;
        // Old figures would look like new ones.
        let up: Vec<_> = self.servers.iter().filter(|watch| watch.is_up()).collect();
        if up.is_empty() {
            return Ok(());
        }
        let known: Vec<_> = up.iter().map(|watch| (named(watch), watch.known())).collect();
        let chosen: Vec<_> = known
            .iter()
            .map(|(labels, known)| {
                let chosen = self.choice.of(known);
                let names = chosen.queues.iter().map(|(name, ..)| label(name));
                let names: Vec<String> = names.collect();
                (*labels, chosen, names)
            })
            .collect();
        let queues: Vec<(Labels, &Info, Option<Due>)> = chosen
            .iter()
            .flat_map(|(labels, chosen, names)| {
                let queues = chosen.queues.iter().zip(names);
                queues.map(|((_, info, due), name)| (labels.about("queue", name), *info, *due))
            })
            .collect();
        let due: Vec<_> = queues.iter().filter_map(|(of, _, due)| Some((*of, (*due)?))).collect();
        let queues: Vec<Queue> = queues.iter().map(|(labels, info, _)| (*labels, *info)).collect();
        let left_out = chosen.iter().map(|(labels, chosen, _)| (*labels, chosen.left_out));
        all_queues(&mut metrics, &known, &left_out.collect::<Vec<_>>())?;
        servers(&mut metrics, &known)?;
        gauges(&mut metrics, &queues)?;
        due_within(&mut metrics, &due)?;
        lateness(&mut metrics, &queues)?;
        counters(&mut metrics, &queues)
    }
}

fn named(watch: &Watch) -> Labels<'_> {
    Labels::of_server(&watch.name)
}

/// Also while a server without DQ has nothing else to tell.
fn modules(metrics: &mut Metrics, servers: &[Arc<Watch>]) -> Result<(), Error> {
    let heard = servers.iter().filter(|watch| watch.is_up() || watch.lacks_dq());
    let loaded: Vec<(Labels, String, bool)> = heard
        .flat_map(|watch| {
            let known = watch.known();
            let facts = known.servers.iter();
            facts
                .map(|facts| (named(watch), facts.address.clone(), facts.has_dq))
                .collect::<Vec<_>>()
        })
        .collect();
    let series = loaded
        .iter()
        .map(|(labels, address, has_dq)| (labels.about("server", address), u64::from(*has_dq)));
    let help = "1 where the server knows DQ's commands, 0 where it answers and doesn't.";
    metrics.of_all("dq_module_loaded", help, &series.collect::<Vec<_>>())
}

type AllKnown<'k> = [(Labels<'k>, RwLockReadGuard<'k, Known>)];

fn all_queues(
    metrics: &mut Metrics,
    known: &AllKnown,
    left_out: &[(Labels, u64)],
) -> Result<(), Error> {
    let queues = |known: &Known| known.sums.queues as u64 + known.left_out();
    let all: Vec<_> = known.iter().map(|(labels, known)| (*labels, queues(known))).collect();
    metrics.of_all("dq_queues", "How many queues there are.", &all)?;
    let help = "Queues of which nothing is told here one by one: see --metrics-queues.";
    metrics.of_all("dq_queues_left_out", help, left_out)?;
    let help = "Of all queues, for how long the oldest ready job has been ready; 0 when none is.";
    let longest = known.iter().map(|(labels, known)| (*labels, known.sums.oldest_ready_ms));
    metrics.of_all_seconds("dq_longest_ready", help, &longest.collect::<Vec<_>>())
}

/// What the servers themselves say of all their queues, however many there are.
fn servers(metrics: &mut Metrics, known: &AllKnown) -> Result<(), Error> {
    let servers: Vec<Server> = known
        .iter()
        .flat_map(|(labels, known)| {
            let facts = known.servers.iter();
            facts.map(|facts| (labels.about("server", &facts.address), facts))
        })
        .collect();
    let help = "1 where the server may throw away whole queues when its memory is full, else 0.";
    metrics.of_servers("dq_eviction_risk", help, &servers, |server| u64::from(server.evicts))?;
    let mut family =
        metrics.about("dq_server_jobs", "Jobs of all queues, by state.", MetricType::Gauge)?;
    for (labels, server) in &servers {
        for state in State::ALL {
            let labels = labels.and("state", state.name());
            ConstGauge::new(server.totals.counts.of(state))
                .encode(family.encode_family(&labels)?)?;
        }
    }
    let help = "Workers that wait for a job.";
    metrics.of_servers("dq_server_waiting_consumers", help, &servers, |server| {
        server.totals.waiting_consumers
    })?;
    let help = "Clients that wait for what becomes of a job or of a lease.";
    metrics.of_servers("dq_server_watchers", help, &servers, |server| server.totals.watchers)?;
    type Total = fn(&ServerFacts) -> u64;
    let totals: [(&str, &str, Total); 7] = [
        ("dq_server_added", "Jobs added.", |server| server.totals.added),
        ("dq_server_delivered", "Jobs handed out.", |server| server.totals.popped),
        ("dq_server_finished", "Jobs finished.", |server| server.totals.finished),
        ("dq_server_deleted", "Jobs deleted by id.", |server| server.totals.deleted),
        ("dq_server_sunk", "Jobs that left for the streams of sinks.", |server| server.totals.sunk),
        ("dq_server_diverged", "How often a queue differed from its log.", |server| {
            server.totals.diverged
        }),
        ("dq_server_bugs", "How often something happened in DQ that can't.", |server| {
            server.totals.bugs
        }),
    ];
    for (metric, help, total) in totals {
        let mut family = metrics.about(metric, help, MetricType::Counter)?;
        for (labels, server) in &servers {
            ConstCounter::new(total(server)).encode(family.encode_family(labels)?)?;
        }
    }
    Ok(())
}

fn gauges(metrics: &mut Metrics, queues: &[Queue]) -> Result<(), Error> {
    let mut family = metrics.about("dq_jobs", "Jobs by state.", MetricType::Gauge)?;
    for (labels, info) in queues {
        for state in State::ALL {
            let labels = labels.and("state", state.name());
            ConstGauge::new(info.counts.of(state)).encode(family.encode_family(&labels)?)?;
        }
    }
    let help = "For how long the oldest ready job has been ready; 0 when none is.";
    metrics.seconds("dq_oldest_ready", help, queues, |info| info.oldest_ready_ms.unwrap_or(0))?;

    let help = "For how long the oldest ready job has waited for a worker; 0 when none is or while the queue is paused.";
    metrics.seconds("dq_backlog", help, queues, Info::backlog_ms)?;

    let help = "Workers that wait for a job of the queue.";
    metrics.each("dq_waiting_consumers", help, queues, |info| info.waiting_consumers)?;
    let help = "Clients that wait for what becomes of a job or of a lease of the queue.";
    metrics.each("dq_watchers", help, queues, |info| info.watchers)?;
    let help = "Held jobs that wait for a dead one.";
    metrics.each("dq_held_behind_dead", help, queues, |info| info.held_behind_dead)?;
    let help = "1 while jobs can't leave for the stream of the queue's sink, else 0.";
    metrics.each("dq_sink_error", help, queues, |info| u64::from(info.sink.error.is_some()))?;
    let help = "1 while the queue is paused, else 0.";
    metrics.each("dq_paused", help, queues, |info| u64::from(info.is_paused))?;
    let help = "1 while a limit of the queue, or of all its groups with ready jobs, lets no job go, else 0.";
    metrics.each("dq_blocked", help, queues, |info| u64::from(info.is_blocked()))?;
    let help = "How many jobs of the queue may be reserved at a time; 0 is no limit.";
    metrics.each("dq_concurrency", help, queues, |info| info.settings.concurrency)?;
    let help = "How many jobs the queue holds at most; 0 is no limit.";
    metrics.each("dq_max_jobs", help, queues, |info| info.settings.max_jobs)?;
    let help = "Jobs that have a schedule.";
    metrics.each("dq_schedules", help, queues, |info| info.schedules)?;
    let mut family = metrics.about_unit(
        "dq_memory",
        "What the queue takes.",
        &Unit::Bytes,
        MetricType::Gauge,
    )?;
    for (labels, info) in queues {
        ConstGauge::new(info.memory).encode(family.encode_family(labels)?)?;
    }
    Ok(())
}

/// Ready jobs have come due: they are told as such.
fn due_within(metrics: &mut Metrics, queues: &[(Labels, Due)]) -> Result<(), Error> {
    let help = "Delayed jobs that come due within so many seconds; ready ones don't count.";
    let mut family = metrics.about("dq_due_within", help, MetricType::Gauge)?;
    for (labels, due) in queues {
        for (seconds, jobs) in DUE_WITHIN.iter().zip(due) {
            let seconds = seconds.to_string();
            ConstGauge::new(*jobs)
                .encode(family.encode_family(&labels.and("seconds", &seconds))?)?;
        }
    }
    Ok(())
}

fn lateness(metrics: &mut Metrics, queues: &[Queue]) -> Result<(), Error> {
    let help = "How late jobs were handed out, since the server started.";
    let mut family =
        metrics.about_unit("dq_lateness", help, &Unit::Seconds, MetricType::Histogram)?;
    for (labels, info) in queues.iter().filter(|(_, info)| !info.lateness.within.is_empty()) {
        let (sum, count) = (seconds(info.lateness.sum_ms), info.lateness.count);
        let buckets = buckets(&info.lateness);
        family.encode_family(labels)?.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)?;
    }
    let help = "How late jobs were handed out: this share of them at most so late, since the server started.";
    let mut family =
        metrics.about_unit("dq_lateness_quantile", help, &Unit::Seconds, MetricType::Gauge)?;
    for (labels, info) in queues {
        let late = &info.lateness;
        for (quantile, ms) in [
            ("0.5", late.p50_ms),
            ("0.9", late.p90_ms),
            ("0.99", late.p99_ms),
            ("0.999", late.p999_ms),
            ("1", late.max_ms),
        ] {
            let Some(ms) = ms else { continue };
            let labels = labels.and("quantile", quantile);
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
        .map(|(ms, within)| {
            (seconds(*ms), within.saturating_sub(std::mem::replace(&mut below, *within)))
        })
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
        ("dq_missed", "Times of schedules that passed without a run of their own.", |totals| {
            totals.missed
        }),
    ];
    for (metric, help, total) in totals {
        let mut family = metrics.about(metric, help, MetricType::Counter)?;
        for (labels, info) in queues {
            let counter = ConstCounter::new(total(&info.totals));
            counter.encode(family.encode_family(labels)?)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::Args;
    use crate::server::deployment::Deployment;
    use crate::server::node::Node;
    use crate::server::queue::{Counts, Settings, Sink};

    fn text_of(queues: &[(&str, Info)], options: &[&str]) -> String {
        let certificates = redis::TlsCertificates { client_tls: None, root_cert: None };
        let deployment = Deployment::new("redis://127.0.0.1:1", &[], certificates).unwrap();
        let client = redis::Client::open("redis://127.0.0.1:1").unwrap();
        let node = Arc::new(Node::new("127.0.0.1:1".into(), client));
        let watch = Arc::new(Watch::new(String::new(), deployment, 10, 10));
        let args = Args::parse_from([&["dq-board"], options].concat());
        for (name, info) in queues {
            watch.note_for_tests(&name.as_bytes().into(), info.clone(), &node);
        }
        text(&[watch].into(), &Arc::new(Choice::new(&args).unwrap())).unwrap()
    }

    #[test]
    fn units_are_in_names_and_hostile_names_are_escaped() {
        let info = Info {
            counts: Counts { ready: 3, held: 5, ..Counts::default() },
            held_behind_dead: 2,
            sink: Sink { error: Some(b"OOM".into()), ..Sink::default() },
            oldest_ready_ms: Some(1_500),
            lateness: Lateness {
                p99_ms: Some(20),
                within: vec![(1, 4), (10, 4), (1_000, 6)],
                count: 7,
                sum_ms: 3_500,
                ..Lateness::default()
            },
            totals: Totals { popped: 7, ..Totals::default() },
            ..Info::default()
        };
        let text = text_of(&[("mail", info.clone()), ("a\"b\\c\nd", info)], &[]);
        for line in [
            "dq_up 1",
            "dq_queues 2",
            "dq_queues_left_out 0",
            "dq_jobs{queue=\"mail\",state=\"ready\"} 3",
            "dq_jobs{queue=\"mail\",state=\"held\"} 5",
            "dq_held_behind_dead{queue=\"mail\"} 2",
            "dq_sink_error{queue=\"mail\"} 1",
            "dq_watchers{queue=\"mail\"} 0",
            "dq_oldest_ready_seconds{queue=\"mail\"} 1.5",
            "dq_backlog_seconds{queue=\"mail\"} 1.5",
            "dq_lateness_quantile_seconds{queue=\"mail\",quantile=\"0.99\"} 0.02",
            "dq_delivered_total{queue=\"mail\"} 7",
            "dq_longest_ready_seconds 1.5",
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

    /// The queues of which something is told, and of how many nothing.
    fn told(queues: &[(&str, Info)], options: &[&str]) -> (Vec<String>, String) {
        let text = text_of(queues, options);
        let of =
            |start: &'static str| text.lines().filter_map(move |line| line.strip_prefix(start));
        let names = of("dq_paused{queue=\"")
            .filter_map(|rest| rest.split_once('"'))
            .map(|(name, _)| name.into());
        (names.collect(), of("dq_queues_left_out ").collect())
    }

    #[test]
    fn queues_that_need_a_look_come_before_those_beyond_the_limit() {
        let with = |counts| Info { counts, ..Info::default() };
        let error = Some(b"OOM".to_vec());
        let queues = [
            ("a-empty", Info::default()),
            ("b-delayed", Info { jobs: 1, ..with(Counts { delayed: 1, ..Counts::default() }) }),
            (
                "c-limited",
                Info {
                    settings: Settings { concurrency: 1, ..Settings::default() },
                    ..Info::default()
                },
            ),
            ("d-dead", with(Counts { dead: 1, ..Counts::default() })),
            ("e-stuck", Info { oldest_ready_ms: Some(60_000), ..Info::default() }),
            ("f-sink", Info { sink: Sink { error, ..Sink::default() }, ..Info::default() }),
        ];
        let names = |many: &str| told(&queues, &["--metrics-queues", many]).0;
        assert_eq!(names("3"), ["d-dead", "e-stuck", "f-sink"]);
        assert_eq!(names("4"), ["d-dead", "e-stuck", "f-sink", "c-limited"]);
        assert_eq!(names("5"), ["d-dead", "e-stuck", "f-sink", "c-limited", "b-delayed"]);
        assert_eq!(told(&queues, &["--metrics-queues", "5"]).1, "1");
        let text = text_of(&queues, &["--metrics-queues", "0"]);
        assert!(
            text.contains("dq_longest_ready_seconds 60.0\n") && text.contains("dq_queues 6\n"),
            "{text}"
        );
    }

    #[test]
    fn queues_that_do_not_match_are_not_left_out() {
        let queues = ["mail", "mail:dead", "reports", "tmp-1"].map(|name| (name, Info::default()));
        let told = |options: &[&str]| told(&queues, options);
        assert_eq!(
            told(&["--metrics-match", "mail*"]),
            (vec!["mail".into(), "mail:dead".into()], "0".into())
        );
        let options = [
            "--metrics-match",
            "{mail,reports}",
            "--metrics-match",
            "tmp-?",
            "--metrics-queues",
            "2",
        ];
        assert_eq!(told(&options), (vec!["mail".into(), "reports".into()], "1".into()));
    }

    #[test]
    fn a_queue_is_blocked_by_the_limits_of_its_groups_while_workers_wait_beside_ready_jobs() {
        let info = Info {
            counts: Counts { ready: 2, ..Counts::default() },
            settings: Settings { group_concurrency: 1, ..Settings::default() },
            waiting_consumers: 1,
            ..Info::default()
        };
        assert!(info.is_blocked());
        assert!(!Info { is_paused: true, ..info.clone() }.is_blocked());
        assert!(!Info { waiting_consumers: 0, ..info.clone() }.is_blocked());
        assert!(!Info { settings: Settings::default(), ..info }.is_blocked());
    }
}
