//! Writes metrics: each with its help and its type, and a series for each set of labels.

use std::fmt::Error;

use prometheus_client::encoding::{
    DescriptorEncoder, EncodeGaugeValue, EncodeLabel, EncodeLabelSet, EncodeMetric,
    LabelSetEncoder, MetricEncoder,
};
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;

use crate::bytes::Shown;
use crate::server::queue::Info;
use crate::watch::ServerFacts;

type Pair<'l> = (&'static str, &'l str);

/// The labels of a series: the name that --redis gives, where it gives one, what the series is
/// about, and what of that it tells.
#[derive(Clone, Copy, Debug)]
pub struct Labels<'l> {
    redis: &'l str,
    about: Option<Pair<'l>>,
    and: Option<Pair<'l>>,
}

impl<'l> Labels<'l> {
    pub fn of_server(name: &'l str) -> Labels<'l> {
        Labels { redis: name, about: None, and: None }
    }

    pub fn about(self, name: &'static str, value: &'l str) -> Labels<'l> {
        Labels { about: Some((name, value)), ..self }
    }

    pub fn and(self, name: &'static str, value: &'l str) -> Labels<'l> {
        Labels { and: Some((name, value)), ..self }
    }

    fn pairs(&self) -> impl Iterator<Item = Pair<'l>> {
        let redis = (!self.redis.is_empty()).then_some(("redis", self.redis));
        [redis, self.about, self.and].into_iter().flatten()
    }
}

impl EncodeLabelSet for Labels<'_> {
    fn encode(&self, encoder: &mut LabelSetEncoder) -> Result<(), Error> {
        self.pairs().try_for_each(|pair| pair.encode(encoder.encode_label()))
    }
}

/// A queue, what is known of it, and its labels.
pub type Queue<'k> = (Labels<'k>, &'k Info);
/// A server that a deployment has, and its labels.
pub type Server<'k> = (Labels<'k>, &'k ServerFacts);

/// Writes one metric after the other.
pub struct Metrics<'e>(pub DescriptorEncoder<'e>);

impl Metrics<'_> {
    pub fn about<'s>(
        &'s mut self,
        name: &'s str,
        help: &str,
        kind: MetricType,
    ) -> Result<MetricEncoder<'s>, Error> {
        self.0.encode_descriptor(name, help, None, kind)
    }

    pub fn about_unit<'s>(
        &'s mut self,
        name: &'s str,
        help: &str,
        unit: &'s Unit,
        kind: MetricType,
    ) -> Result<MetricEncoder<'s>, Error> {
        self.0.encode_descriptor(name, help, Some(unit), kind)
    }

    /// A gauge with a series for each server of --redis.
    pub fn of_all(&mut self, name: &str, help: &str, all: &[(Labels, u64)]) -> Result<(), Error> {
        each_server(self.about(name, help, MetricType::Gauge)?, all, |value| value)
    }

    pub fn of_all_seconds(
        &mut self,
        name: &str,
        help: &str,
        all: &[(Labels, u64)],
    ) -> Result<(), Error> {
        each_server(self.about_unit(name, help, &Unit::Seconds, MetricType::Gauge)?, all, seconds)
    }

    pub fn of_servers(
        &mut self,
        name: &str,
        help: &str,
        servers: &[Server],
        figure: fn(&ServerFacts) -> u64,
    ) -> Result<(), Error> {
        let mut family = self.about(name, help, MetricType::Gauge)?;
        for (labels, server) in servers {
            ConstGauge::new(figure(server)).encode(family.encode_family(labels)?)?;
        }
        Ok(())
    }

    pub fn each(
        &mut self,
        name: &str,
        help: &str,
        queues: &[Queue],
        figure: fn(&Info) -> u64,
    ) -> Result<(), Error> {
        let mut family = self.about(name, help, MetricType::Gauge)?;
        for (labels, info) in queues {
            ConstGauge::new(figure(info)).encode(family.encode_family(labels)?)?;
        }
        Ok(())
    }

    pub fn seconds(
        &mut self,
        name: &str,
        help: &str,
        queues: &[Queue],
        ms: fn(&Info) -> u64,
    ) -> Result<(), Error> {
        let mut family = self.about_unit(name, help, &Unit::Seconds, MetricType::Gauge)?;
        for (labels, info) in queues {
            ConstGauge::new(seconds(ms(info))).encode(family.encode_family(labels)?)?;
        }
        Ok(())
    }
}

/// The only server, without a name, has no labels: the encoder would write an empty set of them.
fn each_server<N: EncodeGaugeValue + Copy>(
    mut family: MetricEncoder,
    all: &[(Labels, u64)],
    figure: fn(u64) -> N,
) -> Result<(), Error> {
    if let [(labels, value)] = all {
        if labels.pairs().next().is_none() {
            return ConstGauge::new(figure(*value)).encode(family);
        }
    }
    for (labels, value) in all {
        ConstGauge::new(figure(*value)).encode(family.encode_family(labels)?)?;
    }
    Ok(())
}

pub fn seconds(ms: u64) -> f64 {
    ms as f64 / 1_000.0
}

/// A queue's name as a label: spelled as in the pages, then escaped for the format, which the
/// encoder leaves to us. An empty label would be none: `\empty` is no other name's spelling.
pub fn label(name: &[u8]) -> String {
    let shown = if name.is_empty() { "\\empty".into() } else { Shown(name).to_string() };
    shown.replace('\\', "\\\\").replace('"', "\\\"")
}
