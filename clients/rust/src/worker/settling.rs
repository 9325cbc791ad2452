//! Reporting outcomes: all that have piled up in one round trip, FINISH for many at once. The
//! queues of one slot have a settler: a node that is away makes only its own jobs wait.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use redis::{Pipeline, Value};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio_util::sync::CancellationToken;

use crate::errors::{Error, Result};
use crate::replies::Job;
use crate::seam::{cmd, Connection};
use crate::words::Words;
use crate::worker::link::Link;
use crate::worker::outage::Patience;
use crate::worker::settlement::Settlement;

/// In one FINISH and in one round trip, so that it doesn't hold the server up.
const MOST_AT_ONCE: usize = 1_000;
const MOST_BYTES_AT_ONCE: usize = 8 << 20;
/// Of one round trip, those that failed and are looked at for the log.
const MOST_LOOKS: usize = 100;
/// With more that wait, no jobs are taken.
const MOST_UNSENT: usize = 10_000;
const MOST_BYTES_UNSENT: usize = 64 << 20;

/// How much the server doesn't know yet.
#[derive(Default)]
pub(super) struct Unsent {
    count: AtomicUsize,
    bytes: AtomicUsize,
}

impl Unsent {
    pub(super) fn add(&self, settlement: &Settlement) {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(settlement.bytes(), Ordering::Relaxed);
    }

    fn subtract(&self, count: usize, bytes: usize) {
        self.count.fetch_sub(count, Ordering::Relaxed);
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    pub(super) fn is_too_much(&self) -> bool {
        self.count.load(Ordering::Relaxed) >= MOST_UNSENT
            || self.bytes.load(Ordering::Relaxed) >= MOST_BYTES_UNSENT
    }
}

pub(super) struct Settler {
    pub(super) link: Arc<Link>,
    pub(super) unsent: Arc<Unsent>,
}

impl Settler {
    /// Sends what comes, until no more will. What can't be sent now is sent again; what the server
    /// refuses costs its own job an attempt.
    pub(super) async fn run(
        self,
        mut coming: UnboundedReceiver<Settlement>,
        closing: CancellationToken,
        mut patience: Patience,
    ) {
        let mut waiting = VecDeque::new();
        let mut come = Vec::new();
        let mut at_once = MOST_AT_ONCE;
        loop {
            if waiting.is_empty() {
                let is_open = !coming.is_closed();
                tokio::select! {
                    biased;
                    count = coming.recv_many(&mut come, MOST_AT_ONCE) => {
                        if count == 0 {
                            return;
                        }
                    }
                    () = closing.cancelled(), if is_open => coming.close(),
                }
            }
            while let Ok(settlement) = coming.try_recv() {
                come.push(settlement);
            }
            waiting.extend(come.drain(..));
            let batch = next_batch(&mut waiting, at_once);
            let count = batch.len();
            match self.send(batch, &mut waiting).await {
                Some(error) => {
                    // If it is one of them that makes the server close, the others get through.
                    at_once = (count / 2).max(1);
                    patience.failed(&error);
                    patience.pause().await;
                }
                None => {
                    at_once = (at_once * 2).min(MOST_AT_ONCE);
                    patience.answered();
                }
            }
        }
    }

    /// What has to be sent again goes behind what waits. The reply is why, if that is for the
    /// server's sake.
    async fn send(
        &self,
        batch: Vec<Settlement>,
        waiting: &mut VecDeque<Settlement>,
    ) -> Option<Error> {
        let reports = commands(batch);
        if reports.is_empty() {
            return None;
        }
        let replies = match self.link.send_all(pipeline(&reports)).await {
            Ok(replies) => replies,
            Err(error) => {
                waiting.extend(reports.into_iter().flat_map(|report| report.settlements));
                return Some(error.into());
            }
        };
        let mut replies = replies.into_iter();
        let mut away = None;
        for Report { settlements, is_looked_at, .. } in reports {
            let reply = replies.next().unwrap_or_default();
            let shown = if is_looked_at { replies.next() } else { None };
            match reply.extract_error().map_err(Error::from) {
                Ok(reply) => self.heard(settlements, &reply, shown),
                Err(error) if error.passes() => {
                    waiting.extend(settlements);
                    away = Some(error);
                }
                Err(error) => self.refused(settlements, &error, waiting),
            }
        }
        away
    }

    fn heard(&self, settlements: Vec<Settlement>, reply: &Value, shown: Option<Value>) {
        let count = settlements.len();
        if matches!(reply, Value::Int(valid) if usize::try_from(*valid).unwrap_or(0) < count) {
            tracing::info!("of {count} jobs, not all were this worker's");
        } else if let Some(settlement) = settlements.first() {
            settlement.log_failure(shown.and_then(|shown| job(shown, settlement).ok()).as_ref());
        }
        self.let_go(settlements);
    }

    fn refused(
        &self,
        settlements: Vec<Settlement>,
        error: &Error,
        waiting: &mut VecDeque<Settlement>,
    ) {
        let mut lost = Vec::new();
        for settlement in settlements {
            let (queue, id) = (settlement.queue.name.clone(), settlement.id.clone());
            let hand = settlement.hand.clone();
            self.unsent.subtract(1, settlement.bytes());
            match settlement.refused(error) {
                Some(instead) => {
                    self.unsent.add(&instead);
                    waiting.push_back(instead);
                }
                None => {
                    tracing::warn!(
                        "{queue:?} {id:?} can't be given back: it comes when its lease ends"
                    );
                    lost.extend(hand);
                }
            }
        }
        for (hands, number) in lost {
            hands.let_go(&[number]);
        }
    }

    /// The server knows: these leases needn't be kept.
    fn let_go(&self, settlements: Vec<Settlement>) {
        self.unsent.subtract(settlements.len(), settlements.iter().map(Settlement::bytes).sum());
        let mut known = settlements.iter().filter_map(|settlement| settlement.hand.as_ref());
        let Some((hands, first)) = known.next() else { return };
        // All of one command are of one queue.
        let numbers: Vec<u64> =
            std::iter::once(*first).chain(known.map(|(_, number)| *number)).collect();
        hands.let_go(&numbers);
    }
}

fn next_batch(waiting: &mut VecDeque<Settlement>, at_once: usize) -> Vec<Settlement> {
    let mut bytes = 0;
    let fits = waiting.iter().take(at_once).take_while(|settlement| {
        bytes += settlement.bytes();
        bytes <= MOST_BYTES_AT_ONCE
    });
    // One that is longer goes alone.
    let count = fits.count().max(1).min(waiting.len());
    waiting.drain(..count).collect()
}

struct Report {
    words: Words,
    settlements: Vec<Settlement>,
    is_looked_at: bool,
}

/// For each queue one FINISH for all that are finished without a result, and a command for each other.
fn commands(batch: Vec<Settlement>) -> Vec<Report> {
    let mut finishes: Vec<Report> = Vec::new();
    let mut reports = Vec::new();
    let mut looks = 0;
    for settlement in batch {
        if let Some(words) = settlement.words.clone() {
            let is_looked_at = settlement.is_looked_at() && looks < MOST_LOOKS;
            looks += usize::from(is_looked_at);
            reports.push(Report { words, settlements: vec![settlement], is_looked_at });
            continue;
        }
        let name = &settlement.queue.name;
        let is_of =
            |finish: &Report| finish.words.0.get(1).is_some_and(|key| key == name.as_bytes());
        let at = finishes.iter().position(is_of).unwrap_or(finishes.len());
        if at == finishes.len() {
            let words = Words::of("DQ.FINISH", name);
            finishes.push(Report { words, settlements: Vec::new(), is_looked_at: false });
        }
        if let Some(finish) = finishes.get_mut(at) {
            finish.words.text(&settlement.id).lease(settlement.lease);
            finish.settlements.push(settlement);
        }
    }
    reports.extend(finishes);
    reports
}

fn pipeline(reports: &[Report]) -> Pipeline {
    let mut pipeline = Pipeline::with_capacity(reports.len());
    for Report { words, settlements, is_looked_at } in reports {
        pipeline.add_command(cmd(words));
        for settlement in settlements.iter().filter(|_| *is_looked_at) {
            let mut get = Words::of("DQ.GET", &settlement.queue.name);
            pipeline.add_command(cmd(get.text(&settlement.id)));
        }
    }
    pipeline
}

fn job(shown: Value, settlement: &Settlement) -> Result<Job> {
    Job::read(shown, settlement.queue.codec)
}
