//! Saying what came of jobs: all that has piled up in one round trip, FINISH for many at once.

use std::sync::Arc;

use redis::{Pipeline, Value};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio_util::sync::CancellationToken;

use crate::errors::{Error, Result};
use crate::seam::Connection;
use crate::words::{Text, Words};
use crate::worker::link::Pauses;
use crate::worker::outcomes::Settlement;

/// In one FINISH and in one round trip, so that it doesn't hold the server up.
const MOST_AT_ONCE: usize = 1_000;

pub(super) struct Settler {
    pub(super) link: Arc<dyn Connection>,
    /// A pipeline can't go to several nodes.
    pub(super) is_cluster: bool,
}

impl Settler {
    /// Sends what comes, until no more will. What the server can't be told now is sent again.
    pub(super) async fn run(
        self,
        mut coming: UnboundedReceiver<Settlement>,
        closing: CancellationToken,
    ) -> Result<()> {
        let mut unsent = Vec::new();
        let mut pauses = Pauses::new();
        loop {
            if unsent.is_empty() {
                pauses = Pauses::new();
                let is_open = !coming.is_closed();
                let count = tokio::select! {
                    biased;
                    count = coming.recv_many(&mut unsent, MOST_AT_ONCE) => Some(count),
                    () = closing.cancelled(), if is_open => None,
                };
                match count {
                    Some(0) => return Ok(()),
                    Some(_) => {}
                    None => {
                        coming.close();
                        continue;
                    }
                }
            }
            let (again, is_away) = self.send(std::mem::take(&mut unsent)).await?;
            unsent = again;
            if is_away {
                tracing::warn!("the server can't be told what came of {} jobs", unsent.len());
                pauses.pause().await;
            }
        }
    }

    /// What has to be sent again, and whether that is for the server's sake.
    async fn send(&self, batch: Vec<Settlement>) -> Result<(Vec<Settlement>, bool)> {
        let mut again = Vec::new();
        let mut is_away = false;
        for told in self.parted(batch) {
            match self.link.send_all(pipeline(&told)).await.map_err(Error::from) {
                Ok(replies) => {
                    for ((_, settlements), reply) in told.into_iter().zip(replies) {
                        is_away |= heard(settlements, reply, &mut again)?;
                    }
                }
                Err(error) if error.passes() => {
                    is_away = true;
                    again.extend(told.into_iter().flat_map(|(_, settlements)| settlements));
                }
                Err(error) => return Err(error),
            }
        }
        Ok((again, is_away))
    }

    /// Commands with what they say, by round trips.
    fn parted(&self, batch: Vec<Settlement>) -> Vec<Vec<Told>> {
        let mut trips: Vec<(Text, Vec<Settlement>)> = Vec::new();
        for settlement in batch {
            let name = &settlement.queue.name;
            match trips.iter_mut().find(|(known, _)| known == name) {
                Some((_, of_queue)) => of_queue.push(settlement),
                None => trips.push((name.clone(), vec![settlement])),
            }
        }
        let told = trips.into_iter().map(|(name, of_queue)| commands(&name, of_queue));
        if self.is_cluster {
            told.collect()
        } else {
            vec![told.flatten().collect()]
        }
    }
}

type Told = (Words, Vec<Settlement>);

/// One FINISH for all of a queue that are finished without a result, and a command for each other.
fn commands(name: &Text, of_queue: Vec<Settlement>) -> Vec<Told> {
    let mut finish = (Words::of("DQ.FINISH", name), Vec::new());
    let mut told = Vec::new();
    for settlement in of_queue {
        match settlement.words.clone() {
            Some(words) => told.push((words, vec![settlement])),
            None => {
                finish.0.text(&settlement.id).lease(settlement.lease);
                finish.1.push(settlement);
            }
        }
    }
    if !finish.1.is_empty() {
        told.push(finish);
    }
    told
}

fn pipeline(told: &[Told]) -> Pipeline {
    let mut pipeline = Pipeline::with_capacity(told.len());
    for (words, _) in told {
        pipeline.add_command(crate::seam::cmd(words));
    }
    pipeline
}

/// Whether the server is away; what is to be said again goes to `again`.
fn heard(settlements: Vec<Settlement>, reply: Value, again: &mut Vec<Settlement>) -> Result<bool> {
    let error = match reply.extract_error() {
        Ok(Value::Int(count)) if usize::try_from(count).unwrap_or(0) < settlements.len() => {
            tracing::info!("of {} jobs, not all were this worker's", settlements.len());
            return Ok(false);
        }
        Ok(_) => return Ok(false),
        Err(error) => Error::from(error),
    };
    if error.passes() {
        again.extend(settlements);
        return Ok(true);
    }
    if !settlements.iter().all(|settlement| settlement.is_done) {
        return Err(error);
    }
    again.extend(settlements.into_iter().map(|settlement| settlement.refused(&error)));
    Ok(false)
}
