//! What people send: jobs with a delay and a TTR, in the forms in which they differ, beside SETs of
//! as many bytes, sent in the same way.

use std::cell::Cell;
use std::rc::Rc;

use anyhow::{bail, Result};

use super::memory::info;
use super::throughput::{measured, speed};
use super::{Environment, Row, Sample};
use crate::load::contestants::{Contestant, Log, Running};
use crate::load::session::{fill_body, id, Delivery, Load, Session, Verbs, BODY_BYTES};
use crate::wire::{encode, Reply};

const HOUR_MS: u64 = 3_600_000;
const MONTH_MS: u64 = 30 * 24 * HOUR_MS;

/// One of these loads. It is a row of its own.
#[derive(Clone, Copy)]
pub struct Sent {
    pub name: &'static str,
    pub title: &'static str,
    /// Delays are drawn from 1 to so many milliseconds; all are 0 without.
    within_ms: Option<u64>,
    ids: Ids,
    body_bytes: usize,
    /// How many commands of a connection are under way; as the others have it, without.
    depth: Option<usize>,
    /// Lines of redis.conf.
    config: &'static [&'static str],
}

#[derive(Clone, Copy)]
enum Ids {
    /// 16 bytes that count up.
    Counted,
    /// 36 bytes, drawn.
    Uuids,
}

const WITHIN_AN_HOUR: Sent = Sent {
    name: "hour",
    title: "due within an hour",
    within_ms: Some(HOUR_MS),
    ids: Ids::Counted,
    body_bytes: BODY_BYTES,
    depth: None,
    config: &[],
};

pub const ALL: [Sent; 7] = [
    Sent { name: "now", title: "`DELAY 0`", within_ms: None, ..WITHIN_AN_HOUR },
    WITHIN_AN_HOUR,
    Sent {
        name: "month",
        title: "due within 30 days",
        within_ms: Some(MONTH_MS),
        ..WITHIN_AN_HOUR
    },
    Sent {
        name: "uuids", title: "… an hour, ids of 36 bytes", ids: Ids::Uuids, ..WITHIN_AN_HOUR
    },
    Sent { name: "1k", title: "… an hour, bodies of 1 KiB", body_bytes: 1024, ..WITHIN_AN_HOUR },
    Sent { name: "depth-1", title: "… an hour, depth 1", depth: Some(1), ..WITHIN_AN_HOUR },
    Sent {
        name: "io-threads",
        title: "… an hour, `io-threads 4`",
        config: &["io-threads 4", "io-threads-do-reads yes"],
        ..WITHIN_AN_HOUR
    },
];

impl Row for Sent {
    fn name(&self) -> &'static str {
        self.name
    }

    fn takes_part(&self, contestant: Contestant) -> bool {
        matches!(contestant, Contestant::Set | Contestant::DqBefore | Contestant::Dq)
    }

    fn logs(&self) -> &'static [Log] {
        &[Log::None]
    }

    fn ratios(&self) -> &'static [&'static str] {
        &["jobs_per_s", "server_us", "main_us", "bytes_a_job"]
    }

    fn sample(
        &self,
        environment: &Environment,
        contestant: Contestant,
        log: Log,
    ) -> Result<Sample> {
        let mut running = environment.programs.start_with(contestant, log, self.config)?;
        let before = info(&mut running.connection, "memory", "used_memory")?;
        let (outcome, usage) =
            measured(environment, contestant, &running, self.sessions(environment, contestant))?;
        let mut metrics = speed(outcome.jobs, outcome.took.as_secs_f64(), &usage);
        let bytes = bytes_a_job(contestant, &mut running, before)?;
        metrics.insert("bytes_a_job".into(), bytes);
        Ok(Sample { metrics, usage: Some(usage) })
    }
}

impl Sent {
    fn sessions(&self, environment: &Environment, contestant: Contestant) -> Vec<Session> {
        let depth = self.depth.unwrap_or(environment.scale.depth);
        let next_id = Rc::new(Cell::new(0));
        let session = |_| {
            let verbs = Box::new(Sender { sent: *self, contestant });
            Session::new(verbs, Load::Enqueue, depth, Rc::clone(&next_id))
        };
        (0..environment.scale.connections).map(session).collect()
    }
}

/// By the server's own count, of all that are there.
fn bytes_a_job(contestant: Contestant, running: &mut Running, before: u64) -> Result<f64> {
    // The connections that brought them are gone when the server has heard of it.
    std::thread::sleep(std::time::Duration::from_millis(300));
    let after = info(&mut running.connection, "memory", "used_memory")?;
    let count: &[&str] = match contestant {
        Contestant::DqBefore | Contestant::Dq => &["DQ.LEN", "queue"],
        _ => &["DBSIZE"],
    };
    match running.connection.call(count)? {
        Reply::Integer(jobs) => Ok(after.saturating_sub(before) as f64 / jobs as f64),
        other => bail!("not a number: {other:?}"),
    }
}

/// Says it as DQ or as SET.
struct Sender {
    sent: Sent,
    contestant: Contestant,
}

impl Verbs for Sender {
    fn add(&mut self, out: &mut Vec<u8>, number: u64, _delay_ms: u64) -> usize {
        let mut body = [0; 1024];
        let body = &mut body[..self.sent.body_bytes];
        fill_body(body, number);
        let mut random = fastrand::Rng::with_seed(number);
        let id = match self.sent.ids {
            Ids::Counted => id(number).to_vec(),
            Ids::Uuids => uuid(random.u128(..)).into_bytes(),
        };
        if self.contestant == Contestant::Set {
            encode(out, &[&b"SET"[..], &*id, body]);
            return 1;
        }
        let mut delay = itoa::Buffer::new();
        let delay = delay.format(self.sent.within_ms.map_or(0, |most| random.u64(1..=most)));
        let delay = delay.as_bytes();
        encode(out, &[&b"DQ.ADD"[..], b"queue", &*id, body, b"DELAY", delay, b"TTR", b"60000"]);
        1
    }

    fn take(&mut self, _out: &mut Vec<u8>, _count: usize) -> usize {
        0
    }

    fn finish(&mut self, _out: &mut Vec<u8>, _deliveries: &[Delivery]) -> usize {
        0
    }

    fn taken(&mut self, _reply: &[u8], _into: &mut Vec<Delivery>) -> Result<()> {
        bail!("nothing is taken here")
    }
}

fn uuid(bits: u128) -> String {
    let hex = format!("{bits:032x}");
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(name: &str, contestant: Contestant) -> String {
        let sent = *ALL.iter().find(|sent| sent.name == name).unwrap();
        let mut out = Vec::new();
        Sender { sent, contestant }.add(&mut out, 7, 0);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn what_is_sent() {
        assert!(said("now", Contestant::Dq)
            .ends_with("$5\r\nDELAY\r\n$1\r\n0\r\n$3\r\nTTR\r\n$5\r\n60000\r\n"));
        assert!(said("uuids", Contestant::Dq)
            .starts_with("*8\r\n$6\r\nDQ.ADD\r\n$5\r\nqueue\r\n$36\r\n"));
        assert!(said("1k", Contestant::Set).contains("\r\n$1024\r\n"));
        assert_eq!(said("hour", Contestant::Set), said("month", Contestant::Set));
        assert_ne!(said("hour", Contestant::Dq), said("month", Contestant::Dq));
    }
}
