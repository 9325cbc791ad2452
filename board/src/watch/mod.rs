//! What is known of all queues: found by SCAN, read by DQ.INFO, kept in memory within bounds.
//!
//! | file | what it is |
//! | --- | --- |
//! | `known.rs` | what is known, and what a reading adds to it |
//! | `history.rs` | the last hour of one queue |
//! | `charts/` | an hour, a day and a week of those queues in which something happens |
//! | `keeper.rs` | keeps charts in a file |
//! | `poller.rs` | finds queues and reads them, a part each turn |
//! | `survey.rs` | finds the jobs of all queues that come back, while a page shows them |
//!
//! A page reads the queues that it shows by itself, so that they are fresh however many there are.

mod charts;
mod history;
mod keeper;
mod known;
mod poller;
mod survey;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, RwLock, RwLockReadGuard};
use std::time::{Duration, Instant};

use redis::Pipeline;

pub use charts::{Figure, Row, Span, Table};
pub use history::Slot;
pub use keeper::Keeper;
pub use known::{Known, Rates, Reading, ServerFacts};
pub use survey::{Found, Key, Rank};

use charts::Charts;

pub use crate::server::now_ms;

use crate::server::deaths::Deaths;
use crate::server::deployment::{outcome, Deployment};
use crate::server::forecast::{self, Due, DUE_HORIZON_MS};
use crate::server::node::Node;
use crate::server::queue::Info;
use crate::server::{Name, Result, Trouble};

/// How often pages and metrics are brought up to date.
pub const TURN: Duration = Duration::from_secs(2);
/// What was read less long ago is taken as it is.
const FRESH: Duration = Duration::from_secs(1);

pub struct Watch {
    /// What --redis calls it; empty where there is only one, without a name.
    pub name: String,
    pub deployment: Deployment,
    pub survey: survey::Survey,
    pub deaths: Deaths,
    known: RwLock<Known>,
    trouble: Mutex<Option<Outage>>,
    has_heard: AtomicBool,
}

/// Since when the servers can't be asked, and why.
#[derive(Debug, Clone)]
pub struct Outage {
    pub since_ms: u64,
    pub trouble: Trouble,
}

impl Watch {
    pub fn new(
        name: String,
        deployment: Deployment,
        max_queues: usize,
        max_charts: usize,
    ) -> Watch {
        Watch {
            name,
            deployment,
            known: RwLock::new(Known::new(max_queues, Charts::new(now_ms(), max_charts))),
            survey: survey::Survey::default(),
            deaths: Deaths::default(),
            trouble: Mutex::new(None),
            has_heard: AtomicBool::new(false),
        }
    }

    pub fn known(&self) -> RwLockReadGuard<'_, Known> {
        self.known.read().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn change<T>(&self, change: impl FnOnce(&mut Known) -> T) -> T {
        change(&mut self.known.write().unwrap_or_else(|poisoned| poisoned.into_inner()))
    }

    #[cfg(test)]
    pub fn note_for_tests(&self, name: &Name, info: Info, node: &Arc<Node>) {
        self.change(|known| {
            known.note(name, Some(info), node, Asked::now());
            known.add_up();
        });
        self.heard(Ok(()));
    }

    pub fn outage(&self) -> Option<Outage> {
        self.trouble.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
    }

    /// Whether a server answers and has no module DQ.
    pub fn lacks_dq(&self) -> bool {
        self.outage().is_some_and(|outage| matches!(outage.trouble, Trouble::NoModule { .. }))
    }

    /// Whether the servers answered when they were last asked, and have DQ.
    pub fn is_up(&self) -> bool {
        self.has_heard.load(Ordering::Relaxed) && self.outage().is_none()
    }

    /// Takes down whether the servers can be asked, and says so in the log when that changes.
    fn heard(&self, heard: std::result::Result<(), Trouble>) {
        let mut outage = self.trouble.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        self.has_heard.fetch_or(heard.is_ok(), Ordering::Relaxed);
        let redis = Some(self.name.as_str()).filter(|name| !name.is_empty());
        match (heard, outage.as_mut()) {
            (Ok(()), None) => {}
            (Ok(()), Some(_)) => {
                tracing::info!(redis, "the servers answer again");
                *outage = None;
            }
            (Err(trouble), None) => {
                tracing::warn!(redis, why = trouble.to_string(), "the queues can't be read");
                *outage = Some(Outage { since_ms: now_ms(), trouble });
            }
            (Err(trouble), Some(outage)) => {
                let is_other =
                    std::mem::discriminant(&trouble) != std::mem::discriminant(&outage.trouble);
                if is_other && matches!(trouble, Trouble::NoModule { .. }) {
                    tracing::warn!(redis, why = trouble.to_string(), "the queues can't be read");
                }
                outage.trouble = trouble;
            }
        }
    }

    /// Reads queues that a page is about to show, those that weren't read just now.
    pub async fn refresh(&self, names: &[Name]) {
        if self.outage().is_some() {
            return;
        }
        let stale: Vec<_> = {
            let known = self.known();
            let is_stale =
                |name: &&Name| known.get(name).is_none_or(|reading| !reading.is_fresh(FRESH));
            names.iter().filter(is_stale).cloned().collect()
        };
        let _ = self.read(&stale).await;
    }

    /// Reads one queue for its own page. `None` when there is no such queue.
    pub async fn read_one(&self, name: &[u8]) -> Result<Option<(Info, Arc<Node>)>> {
        let hint = self.node_of(name);
        let mut commands = Pipeline::new();
        commands.add_command(Info::command(name));
        let asked = Asked::now();
        let (node, replies) = self.deployment.ask(hint, &mut commands).await?;
        let info = Info::read(outcome(replies.into_iter().next())?)?;
        let name = Name::from(name);
        self.change(|known| {
            known.note(&name, info.clone(), &node, asked);
            if info.is_some() {
                known.charts.make(&name, asked.ms);
            }
        });
        Ok(info.map(|info| (info, node)))
    }

    /// What a chart of a queue, or of all queues, is drawn from. `None` where there is nothing yet.
    pub fn table(&self, queue: Option<&[u8]>, span: Span) -> Option<Table> {
        let (known, now) = (self.known(), now_ms());
        let chart = match queue {
            Some(queue) => known.charts.of(queue)?,
            None => known.charts.all(),
        };
        Some(chart.table(span, now))
    }

    pub fn node_of(&self, name: &[u8]) -> Option<Arc<Node>> {
        self.known().get(name).map(|reading| reading.node.clone())
    }

    /// Reads queues, those of a node in one go.
    async fn read(&self, names: &[Name]) -> Result<()> {
        let mut by_node: Vec<(Arc<Node>, Vec<Name>)> = Vec::new();
        {
            let known = self.known();
            for name in names {
                let Some(node) = known.get(name).map(|reading| &reading.node) else { continue };
                match by_node.iter_mut().find(|(other, _)| Arc::ptr_eq(other, node)) {
                    Some((_, names)) => names.push(name.clone()),
                    None => by_node.push((node.clone(), vec![name.clone()])),
                }
            }
        }
        let mut trouble = Ok(());
        for (node, names) in by_node {
            let mut commands = Pipeline::new();
            names.iter().for_each(|name| {
                commands.add_command(Info::command(name));
            });
            let asked = Asked::now();
            let replies = match node.ask(&mut commands).await {
                Ok(replies) => replies,
                Err(error) => {
                    trouble = Err(error);
                    continue;
                }
            };
            let now = asked.ms;
            let mut soon = Vec::new();
            self.change(|known| {
                for (name, reply) in names.iter().zip(replies) {
                    match outcome(Some(reply)).and_then(Info::read) {
                        Ok(Some(info)) if info.is_due_before(now + DUE_HORIZON_MS) => {
                            soon.push(name.clone());
                            known.note(name, Some(info), &node, asked);
                        }
                        Ok(Some(info)) => {
                            known.note(name, Some(info), &node, asked);
                            known.note_due(name, Some(Due::default()));
                        }
                        Ok(None) => known.forget(name),
                        Err(error) if error.is("NOPERM") => known.deny(name),
                        // It has become something else, or moved away.
                        Err(error) if error.is("WRONGTYPE") || error.is("MOVED") => {
                            known.forget(name)
                        }
                        // A server that is loading, for one: all stays as it was.
                        Err(error) => trouble = Err(error),
                    }
                }
            });
            trouble = trouble.and(self.read_due(&node, &soon).await);
        }
        trouble
    }

    /// Forecasts for queues of a node of which a job is due soon. A server that refuses, for lack of
    /// a right for one, leaves them unknown.
    async fn read_due(&self, node: &Node, names: &[Name]) -> Result<()> {
        if names.is_empty() {
            return Ok(());
        }
        let mut commands = Pipeline::new();
        names.iter().for_each(|name| {
            commands.add_command(forecast::due_command(name));
        });
        let replies = node.ask(&mut commands).await?;
        self.change(|known| {
            for (name, reply) in names.iter().zip(replies) {
                known.note_due(name, outcome(Some(reply)).and_then(forecast::due).ok());
            }
        });
        Ok(())
    }
}

/// When a queue was asked about.
#[derive(Debug, Clone, Copy)]
pub struct Asked {
    pub at: Instant,
    pub ms: u64,
}

impl Asked {
    fn now() -> Asked {
        Asked { at: Instant::now(), ms: now_ms() }
    }
}
