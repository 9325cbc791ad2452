//! Jobs that follow each other: [`chain`] and [`group`], which nest.
//!
//! ```
//! use dq_client::{chain, group, Flow, NewJob};
//!
//! let flow = chain([
//!     NewJob::new("pay:17", "charge the card").into(),
//!     group([
//!         NewJob::new("ship:17", "send the parcel").into(),
//!         NewJob::new("mail:17", "say thanks").into(),
//!     ]),
//!     NewJob::new("close:17", "close the order").into(),
//! ]);
//! assert_eq!(flow.last(), ["close:17"]);
//! ```
//!
//! The server knows no flows: these are jobs with AFTER. A step needs an id of its own, since others
//! name it.

use redis::{Pipeline, Value};

use crate::commands::{Add, NewJob};
use crate::errors::Result;
use crate::queue::Queue;
use crate::replies::Added;
use crate::seam::{cmd, Later};
use crate::words::{Text, Words};

/// Steps in the order in which they are added, each with those that it waits for.
#[derive(Default)]
pub struct Flow {
    pub(crate) steps: Vec<(NewJob, Vec<Text>)>,
    first: Vec<Text>,
    last: Vec<Text>,
}

impl Flow {
    /// The steps, and the ids that each of them waits for.
    pub fn steps(&self) -> impl Iterator<Item = (&Text, &[Text])> {
        self.steps.iter().map(|(step, before)| (step.id(), before.as_slice()))
    }

    /// The ids of the steps that no other one waits for: their results are those of the flow.
    pub fn last(&self) -> &[Text] {
        &self.last
    }
}

impl From<NewJob> for Flow {
    fn from(step: NewJob) -> Self {
        let id = step.id.clone();
        Self { first: vec![id.clone()], last: vec![id], steps: vec![(step, Vec::new())] }
    }
}

/// All of these at the same time.
pub fn group(parts: impl IntoIterator<Item = Flow>) -> Flow {
    parts.into_iter().fold(Flow::default(), |mut whole, part| {
        whole.steps.extend(part.steps);
        whole.first.extend(part.first);
        whole.last.extend(part.last);
        whole
    })
}

/// One after the other. What follows a group waits for all of it.
pub fn chain(parts: impl IntoIterator<Item = Flow>) -> Flow {
    let mut parts = parts.into_iter();
    let whole = parts.next().unwrap_or_default();
    parts.fold(whole, |mut whole, part| {
        let following = after(&whole.last, part);
        whole.steps.extend(following.steps);
        whole.last = following.last;
        whole
    })
}

/// A flow, or a job, that waits for these jobs of the queue.
pub fn after(ids: impl IntoIterator<Item = impl AsRef<[u8]>>, part: impl Into<Flow>) -> Flow {
    let named: Vec<Text> = ids.into_iter().map(|id| id.as_ref().to_vec().into()).collect();
    let mut flow = part.into();
    for (step, before) in &mut flow.steps {
        if flow.first.contains(&step.id) {
            before.splice(..0, named.iter().cloned());
        }
    }
    flow
}

impl Queue {
    /// Adds all jobs of a flow, or none of them. They are held until all of them are there, so no step
    /// runs before that; when one is refused, those that were added are deleted. A step with NX whose
    /// id is taken stays as it is.
    ///
    /// A program that dies meanwhile, or loses its connection, may leave a flow that is held: delete
    /// its jobs, or let it run by `resume`.
    pub async fn start(&self, flow: impl Into<Flow>) -> Result<Vec<Added>> {
        let flow = flow.into();
        let mut pipeline = Pipeline::new();
        pipeline.atomic();
        let mut steps: Vec<Later<Added>> = Vec::new();
        for (step, before) in &flow.steps {
            let add = Add::of(self, step);
            let add = if step.has("HOLD") { add } else { add.hold() };
            let add = if before.is_empty() { add } else { add.after(before) };
            steps.push(add.on(&mut pipeline)?);
        }
        if steps.is_empty() {
            return Ok(Vec::new());
        }
        let replies: Vec<Value> = self.connection.send_all(pipeline).await?;
        let added: Vec<Result<Added>> = steps.into_iter().map(|step| step.of(&replies)).collect();
        let is_refused = added.iter().any(Result::is_err);
        let ours = added.iter().zip(&flow.steps).filter_map(|(added, (step, _))| {
            let id = added.as_ref().ok().filter(|added| added.is_added())?.id();
            (is_refused || !step.has("HOLD")).then_some(id)
        });
        let mut ours: Vec<&Text> = ours.collect();
        if is_refused {
            // What waits for others goes before them: without them it would be dead, or run.
            ours.reverse();
            if let Err(error) = self.for_each("DQ.DEL", None, &ours).await {
                tracing::warn!(
                    "{:?}: a refused flow stays held, delete {ours:?}: {error}",
                    self.name
                );
            }
        } else {
            self.for_each("DQ.RESUME", Some("ID"), &ours).await?;
        }
        added.into_iter().collect()
    }

    async fn for_each(&self, command: &str, token: Option<&str>, ids: &[&Text]) -> Result<()> {
        if ids.is_empty() {
            return Ok(());
        }
        let mut words = Words::of(command, &self.name);
        token.map(|token| words.token(token));
        for id in ids {
            words.text(id);
        }
        self.connection.send(cmd(&words)).await?;
        Ok(())
    }
}
