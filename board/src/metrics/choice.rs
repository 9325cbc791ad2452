//! Which queues are told of one by one. Each is some fifty series, which a Prometheus has to keep.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use crate::args::Args;
use crate::bytes::Shown;
use crate::server::forecast::Due;
use crate::server::queue::Info;
use crate::server::Name;
use crate::watch::Known;

/// A job that has been ready for so long is one that alerts may be about.
const LONG_READY_MS: u64 = 60_000;

#[derive(Debug)]
pub struct Choice {
    max: usize,
    /// Without any: all.
    patterns: Option<GlobSet>,
}

/// What there is to tell, and of how many queues nothing is told that was asked for.
pub struct Chosen<'k> {
    pub queues: Vec<(&'k Name, &'k Info, Option<Due>)>,
    pub left_out: u64,
}

impl Choice {
    pub fn new(args: &Args) -> Result<Choice, String> {
        let mut patterns = GlobSetBuilder::new();
        for pattern in &args.metrics_match {
            let glob = GlobBuilder::new(pattern).backslash_escape(true).build();
            patterns.add(glob.map_err(|error| format!("--metrics-match: {error}"))?);
        }
        let patterns = patterns.build().map_err(|error| format!("--metrics-match: {error}"))?;
        Ok(Choice {
            max: args.metrics_queues,
            patterns: (!patterns.is_empty()).then_some(patterns),
        })
    }

    /// What needs a look comes first, so that an alert about it doesn't end because other queues
    /// were added.
    pub fn of<'k>(&self, known: &'k Known) -> Chosen<'k> {
        let is_wanted = |name: &Name| {
            self.patterns.as_ref().is_none_or(|patterns| patterns.is_match(Shown(name).to_string()))
        };
        let wanted = known.iter().filter(|(name, _)| is_wanted(name));
        let mut unread = 0;
        let mut queues = Vec::new();
        for (name, reading) in wanted {
            match &reading.info {
                Some(info) => queues.push((name, info, reading.due)),
                None => unread += 1,
            }
        }
        let all = queues.len() as u64 + unread + known.left_out();
        if queues.len() > self.max {
            queues.sort_by_key(|(_, info, _)| rank(info));
            queues.truncate(self.max);
        }
        let left_out = all - queues.len() as u64;
        Chosen { queues, left_out }
    }
}

fn rank(info: &Info) -> u8 {
    let is_stuck = info.oldest_ready_ms.is_some_and(|ms| ms >= LONG_READY_MS);
    let is_busy = info.counts.ready + info.counts.reserved > 0;
    if is_stuck || info.is_full() || info.counts.dead > 0 || info.sink.error.is_some() {
        0
    } else if is_busy || info.is_limited() || info.limits_groups() {
        1
    } else if info.jobs > 0 {
        2
    } else {
        3
    }
}
