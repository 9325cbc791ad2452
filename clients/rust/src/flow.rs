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
//! The server knows no flows: these are jobs with AFTER, added in one transaction by `Queue::start`,
//! so that no step is over before the next one is there. A step needs an id of its own, since others
//! name it.

use crate::commands::NewJob;
use crate::words::Text;

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
