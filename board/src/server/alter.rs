//! What DQ.ALTER sets: a queue's limits, its defaults for jobs added later, its sink.

use redis::Cmd;

use super::queue::{Info, Rate};

/// `None` leaves a setting as it is. In what is set 0 is no limit, as in [`super::queue::Settings`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Change {
    pub concurrency: Option<u64>,
    pub rate: Option<Rate>,
    pub group_concurrency: Option<u64>,
    pub group_rate: Option<Rate>,
    pub max_jobs: Option<u64>,
    pub dead_keep_ms: Option<u64>,
    pub ttr_ms: Option<u64>,
    pub attempts: Option<u64>,
    pub backoff_ms: Option<Backoff>,
    pub keep_ms: Option<u64>,
    pub late_ms: Option<u64>,
    pub sink: Option<Exit>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Backoff {
    pub base: u64,
    pub max: u64,
}

/// Where jobs leave to: workers, or a stream that is trimmed to so many entries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exit {
    pub stream: Option<Vec<u8>>,
    pub maxlen: u64,
}

impl Exit {
    pub fn of(info: &Info) -> Exit {
        Exit { stream: info.sink.stream.clone(), maxlen: info.sink.maxlen }
    }
}

impl Backoff {
    pub fn of(info: &Info) -> Backoff {
        Backoff { base: info.settings.backoff_base_ms, max: info.settings.backoff_max_ms }
    }
}

impl Change {
    /// Only what would be otherwise than it is.
    pub fn unlike(self, info: &Info) -> Change {
        let now = &info.settings;
        let other = |wanted: Option<u64>, now: u64| wanted.filter(|wanted| *wanted != now);
        let other_rate = |wanted: Option<Rate>, now: &Rate| {
            wanted.filter(|rate| *rate != *now && (rate.jobs > 0 || now.jobs > 0))
        };
        let exit = Exit::of(info);
        Change {
            concurrency: other(self.concurrency, now.concurrency),
            rate: other_rate(self.rate, &now.rate),
            group_concurrency: other(self.group_concurrency, now.group_concurrency),
            group_rate: other_rate(self.group_rate, &now.group_rate),
            max_jobs: other(self.max_jobs, now.max_jobs),
            dead_keep_ms: other(self.dead_keep_ms, now.dead_keep_ms),
            ttr_ms: other(self.ttr_ms, now.ttr_ms),
            attempts: other(self.attempts, now.attempts),
            backoff_ms: self.backoff_ms.filter(|wanted| *wanted != Backoff::of(info)),
            keep_ms: other(self.keep_ms, now.keep_ms),
            late_ms: other(self.late_ms, now.late_ms),
            sink: self.sink.filter(|wanted| {
                wanted.stream != exit.stream
                    || (wanted.stream.is_some() && wanted.maxlen != exit.maxlen)
            }),
        }
    }

    pub fn is_empty(&self) -> bool {
        *self == Change::default()
    }

    /// Whether it speaks of jobs that are added later.
    pub fn has_defaults(&self) -> bool {
        self.ttr_ms.or(self.attempts).or(self.keep_ms).or(self.late_ms).is_some()
            || self.backoff_ms.is_some()
    }

    pub fn command(&self, queue: &[u8]) -> Cmd {
        let mut command = redis::cmd("DQ.ALTER");
        command.arg(queue);
        for (option, number) in [
            ("CONCURRENCY", self.concurrency),
            ("GROUPCONCURRENCY", self.group_concurrency),
            ("MAXJOBS", self.max_jobs),
            ("DEADKEEP", self.dead_keep_ms),
            ("TTR", self.ttr_ms),
            ("ATTEMPTS", self.attempts),
            ("KEEP", self.keep_ms),
            ("LATE", self.late_ms),
        ] {
            if let Some(number) = number {
                command.arg(option).arg(number);
            }
        }
        for (option, rate) in [("RATE", &self.rate), ("GROUPRATE", &self.group_rate)] {
            match rate {
                Some(rate) if rate.jobs == 0 => {
                    command.arg(option).arg(0).arg(0);
                }
                Some(rate) => {
                    command.arg(option).arg(rate.jobs).arg(rate.per_ms);
                    command.arg("BURST").arg(rate.burst);
                }
                None => {}
            }
        }
        if let Some(backoff) = &self.backoff_ms {
            command.arg("BACKOFF").arg(backoff.base).arg(backoff.max);
        }
        match &self.sink {
            Some(Exit { stream: Some(stream), maxlen }) => {
                command.arg("SINK").arg(stream).arg("MAXLEN").arg(*maxlen);
            }
            Some(Exit { stream: None, .. }) => {
                command.arg("NOSINK");
            }
            None => {}
        }
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::queue::{Settings, Sink};

    fn packed(change: &Change) -> String {
        let bytes = change.command(b"q").get_packed_command();
        let words = String::from_utf8(bytes).unwrap();
        words
            .split("\r\n")
            .filter(|word| !word.starts_with(['$', '*']))
            .collect::<Vec<_>>()
            .join(" ")
    }

    #[test]
    fn only_what_differs_is_sent() {
        let rate = Rate { jobs: 5, per_ms: 1_000, burst: 1 };
        let settings =
            Settings { ttr_ms: 60_000, attempts: 25, rate: rate.clone(), ..Settings::default() };
        let info = Info { settings, ..Info::default() };
        let same = Change {
            ttr_ms: Some(60_000),
            attempts: Some(25),
            rate: Some(rate.clone()),
            // None, spelled in another way.
            group_rate: Some(Rate { jobs: 0, per_ms: 1_000, burst: 1 }),
            backoff_ms: Some(Backoff::default()),
            sink: Some(Exit { stream: None, maxlen: 7 }),
            ..Change::default()
        };
        assert!(same.clone().unlike(&info).is_empty());
        let faster = Change { rate: Some(Rate { burst: 3, ..rate }), ..same.clone() };
        assert_eq!(packed(&faster.unlike(&info)).trim(), "DQ.ALTER q RATE 5 1000 BURST 3");
        let none = Change { rate: Some(Rate::default()), ..same };
        assert_eq!(packed(&none.unlike(&info)).trim(), "DQ.ALTER q RATE 0 0");
    }

    #[test]
    fn a_sink_is_set_and_ended() {
        let out = Exit { stream: Some(b"out".to_vec()), maxlen: 9 };
        let set = Change { sink: Some(out), ..Change::default() };
        assert_eq!(packed(&set).trim(), "DQ.ALTER q SINK out MAXLEN 9");
        let sink = Sink { stream: Some(b"out".to_vec()), maxlen: 9, error: None };
        let info = Info { sink, ..Info::default() };
        assert!(set.unlike(&info).is_empty());
        let end = Change { sink: Some(Exit::default()), ..Change::default() }.unlike(&info);
        assert_eq!(packed(&end).trim(), "DQ.ALTER q NOSINK");
    }
}
