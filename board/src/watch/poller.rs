//! Finds queues and reads them, a part each turn: so a server with very many keys or queues is
//! asked for no more at a time than one with few.

use std::sync::Arc;

use redis::Pipeline;
use tokio::time::{self, MissedTickBehavior};

use super::known::{ServerFacts, ServerTotals};
use super::{now_ms, Watch, TURN};
use crate::server::deployment::outcome;
use crate::server::health::Health;
use crate::server::node::Node;
use crate::server::queue::{Counts, Info};
use crate::server::replies::{bytes, scanned};
use crate::server::{Name, Result, Trouble};

/// The type of DQ's keys, for SCAN.
const TYPE: &str = "delayq-dq";
/// Keys that one SCAN looks at, and how many such calls a node gets in a turn.
const SCAN_COUNT: usize = 1_000;
const SCANS_A_TURN: usize = 100;
/// Queues read in a turn; of those never read before, more.
const READS_A_TURN: usize = 2_000;
const FIRST_READS_A_TURN: usize = 10_000;
/// Commands in one pipeline.
const READS_AT_ONCE: usize = 500;
/// Turns after which nodes are looked for anew, and asked about themselves.
const NODES_EVERY: u64 = 5;

struct Poller {
    watch: Arc<Watch>,
    turn: u64,
    /// Where SCAN goes on: nodes not finished in this pass.
    scans: Vec<(Arc<Node>, u64)>,
    last_read: Option<Name>,
}

impl Watch {
    /// Goes on for ever.
    pub async fn poll(self: Arc<Watch>) {
        let mut poller = Poller { watch: self, turn: 0, scans: Vec::new(), last_read: None };
        let mut turns = time::interval(TURN);
        turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            turns.tick().await;
            let heard = poller.take_turn().await;
            if heard.is_err() {
                // Half of a pass tells nothing about what is gone.
                poller.scans.clear();
            }
            poller.watch.change(|known| {
                known.add_up();
                if heard.is_ok() {
                    known.note_sums(now_ms());
                }
            });
            poller.watch.heard(heard);
            poller.turn += 1;
        }
    }
}

impl Poller {
    async fn take_turn(&mut self) -> Result<()> {
        let is_down = self.watch.outage().is_some();
        if self.turn % NODES_EVERY == 0 || is_down {
            self.watch.deployment.find_nodes().await?;
            self.ask_servers().await;
        }
        // A node of a cluster that doesn't answer keeps no client from asking the others.
        let (found, read) = (self.find().await, self.read().await);
        self.have_dq().and(found).and(read)
    }

    /// A server without the module has no queue, and looks like one that has none yet.
    fn have_dq(&self) -> Result<()> {
        let known = self.watch.known();
        match known.servers.iter().find(|server| !server.has_dq) {
            Some(server) => Err(Trouble::NoModule { address: server.address.clone() }),
            None => Ok(()),
        }
    }

    async fn find(&mut self) -> Result<()> {
        if self.scans.is_empty() {
            self.scans = self.watch.deployment.nodes().into_iter().map(|node| (node, 0)).collect();
        }
        let mut unfinished = Vec::new();
        let mut trouble = Ok(());
        for (node, cursor) in std::mem::take(&mut self.scans) {
            match self.scan(&node, cursor).await {
                Ok(Some(next)) => unfinished.push((node, next)),
                Ok(None) => {}
                Err(error) => trouble = Err(error),
            }
        }
        trouble?;
        self.scans = unfinished;
        if self.scans.is_empty() {
            self.watch.change(|known| known.end_pass());
        }
        Ok(())
    }

    /// Where to go on; `None` when the node has been gone through.
    async fn scan(&self, node: &Arc<Node>, mut cursor: u64) -> Result<Option<u64>> {
        for _ in 0..SCANS_A_TURN {
            let mut command = redis::cmd("SCAN");
            command.arg(cursor).arg("COUNT").arg(SCAN_COUNT).arg("TYPE").arg(TYPE);
            let (next, names) = scanned(node.ask_one(command).await?)?;
            let now = now_ms();
            self.watch
                .change(|known| names.into_iter().for_each(|name| known.found(name, node, now)));
            cursor = next;
            if cursor == 0 {
                return Ok(None);
            }
        }
        Ok(Some(cursor))
    }

    async fn read(&mut self) -> Result<()> {
        let (mut names, round) = {
            let known = self.watch.known();
            (
                known.unread(FIRST_READS_A_TURN),
                known.names_after(self.last_read.as_ref(), READS_A_TURN),
            )
        };
        self.last_read = round.last().cloned().or(self.last_read.take());
        names.extend(round);
        let mut trouble = Ok(());
        for names in names.chunks(READS_AT_ONCE) {
            trouble = trouble.and(self.watch.read(names).await);
        }
        trouble
    }

    /// What can't be had, for lack of a right, isn't shown.
    async fn ask_servers(&self) {
        let mut servers = Vec::new();
        for node in self.watch.deployment.nodes() {
            let mut commands = Pipeline::new();
            for section in ["server", "dq", "replication", "memory", "persistence"] {
                commands.cmd("INFO").arg(section);
            }
            // Any queue will do: what matters is whether the command is known.
            commands.add_command(Info::command(b"dq-board"));
            let asked = now_ms();
            let Ok(mut replies) = node.ask(&mut commands).await else { continue };
            let heard = now_ms();
            let info = outcome(replies.pop());
            let texts = replies.into_iter().filter_map(|reply| bytes(reply.ok()?).ok());
            let text =
                texts.map(|text| String::from_utf8_lossy(&text).into_owned()).collect::<String>();
            let has_dq = !info.is_err_and(|trouble| trouble.is_unknown_command());
            servers.push(ServerFacts { has_dq, ..facts(&node.address, &text, asked, heard) });
        }
        self.watch.change(|known| known.servers = servers);
    }
}

/// `asked` and `heard` are when INFO was asked for and when it came.
fn facts(address: &str, info: &str, asked: u64, heard: u64) -> ServerFacts {
    let field = |name: &str| {
        let mut lines = info.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(key, _)| *key == name).map(|(_, value)| value.trim().to_string())
    };
    let number = |name: &str| field(name).and_then(|number| number.parse().ok()).unwrap_or(0);
    let totals = ServerTotals {
        counts: Counts {
            ready: number("dq_jobs_ready"),
            delayed: number("dq_jobs_delayed"),
            reserved: number("dq_jobs_reserved"),
            dead: number("dq_jobs_dead"),
            done: number("dq_jobs_done"),
            held: number("dq_jobs_held"),
        },
        waiting_consumers: number("dq_waiting_consumers"),
        watchers: number("dq_watchers"),
        added: number("dq_jobs_added"),
        popped: number("dq_jobs_popped"),
        finished: number("dq_jobs_finished"),
        deleted: number("dq_jobs_deleted"),
        sunk: number("dq_jobs_sunk"),
        diverged: number("dq_diverged"),
        bugs: number("dq_bugs"),
    };
    let version = match (field("valkey_version"), field("redis_version")) {
        (Some(valkey), _) => format!("Valkey {valkey}"),
        (None, Some(redis)) => format!("Redis {redis}"),
        (None, None) => String::new(),
    };
    ServerFacts {
        address: address.into(),
        version,
        dq_version: field("dq_version"),
        has_dq: true,
        evicts: field("dq_eviction_risk").is_some_and(|risk| risk == "1"),
        clock_ahead_ms: ahead_ms(number("server_time_usec") / 1_000, asked, heard),
        health: Health::read(info),
        totals,
    }
}

/// By how much a clock is ahead that showed this time at some moment between two others. A server
/// that doesn't tell its time is taken to be right.
fn ahead_ms(shown: u64, from: u64, to: u64) -> i64 {
    let right = shown.clamp(from, to.max(from));
    let signed = |ms: u64| i64::try_from(ms).unwrap_or(i64::MAX);
    match shown {
        0 => 0,
        shown => signed(shown).saturating_sub(signed(right)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_called_by_its_own_name() {
        let of = |info| facts("h:1", info, 0, 0).version;
        assert_eq!(
            of("redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.1.8\r\n"),
            "Valkey 8.1.8"
        );
        assert_eq!(of("# Server\r\nredis_version:7.0.15\r\n"), "Redis 7.0.15");
        assert_eq!(of(""), "");
        let facts = facts("h:1", "# dq\r\ndq_version:0.1.0\r\ndq_eviction_risk:1\r\n", 0, 0);
        assert_eq!((facts.dq_version.as_deref(), facts.evicts), (Some("0.1.0"), true));
    }

    #[test]
    fn a_clock_is_wrong_only_by_more_than_the_answer_took() {
        let of = |us: u64| {
            facts("h:1", &format!("server_time_usec:{us}\r\n"), 10_000, 12_000).clock_ahead_ms
        };
        assert_eq!([10_000_000, 11_000_000, 12_000_999].map(of), [0, 0, 0]);
        assert_eq!([612_000_000, 4_000_000].map(of), [600_000, -6_000]);
        assert_eq!(facts("h:1", "", 10_000, 12_000).clock_ahead_ms, 0);
    }
}
