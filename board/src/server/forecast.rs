//! How many jobs come due, as DQ.FORECAST says: in the next hour and in the next day for a page, in
//! the next minutes for what starts workers.

use std::sync::Arc;

use redis::{Cmd, Pipeline, Value};

use super::deployment::{outcome, Deployment};
use super::node::Node;
use super::replies::{array, number};
use super::Result;

/// Equal steps of time, and how many jobs come due in each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forecast {
    pub from_ms: u64,
    pub step_ms: u64,
    pub jobs: Vec<u64>,
}

/// Length and number of steps: an hour, a day.
const SPANS: [(u64, usize); 2] = [(60_000, 60), (3_600_000, 24)];

/// The next hour by minutes and the next day by hours. They begin with the minute and the hour that
/// it is, so that the steps stay where they are while time passes.
pub async fn read(
    deployment: &Deployment,
    node: Option<Arc<Node>>,
    queue: &[u8],
    now_ms: u64,
) -> Result<Vec<Forecast>> {
    let begin = |step_ms| now_ms - now_ms % step_ms;
    let mut commands = Pipeline::new();
    for (step_ms, steps) in SPANS {
        commands.add_command(command(queue, begin(step_ms), step_ms, steps));
    }
    let (_, replies) = deployment.ask(node, &mut commands).await?;
    let spans = SPANS.into_iter().zip(replies);
    spans
        .map(|((step_ms, _), reply)| {
            let jobs =
                array(outcome(Some(reply))?)?.into_iter().map(number).collect::<Result<_>>()?;
            Ok(Forecast { from_ms: begin(step_ms), step_ms, jobs })
        })
        .collect()
}

/// How many delayed jobs come due within so long from now on.
pub fn within_command(queue: &[u8], ms: u64) -> Cmd {
    let mut command = redis::cmd("DQ.FORECAST");
    command.arg(queue).arg("STEP").arg(ms).arg("COUNT").arg(1);
    command
}

/// The reply to [`within_command`].
pub fn within(reply: Value) -> Result<u64> {
    array(reply)?.into_iter().map(number).sum()
}

/// The spans of [`Due`], in seconds. Each is a whole number of the steps in which they are asked.
pub const DUE_WITHIN: [u64; 3] = [60, 300, 900];
const DUE_STEP_MS: u64 = 60_000;
const DUE_STEPS: usize = 15;
/// A queue whose next job is due later than that needs no forecast for [`Due`].
pub const DUE_HORIZON_MS: u64 = DUE_STEP_MS * DUE_STEPS as u64;

/// How many delayed jobs come due within each of `DUE_WITHIN` from the reading on.
pub type Due = [u64; DUE_WITHIN.len()];

pub fn due_command(queue: &[u8]) -> Cmd {
    let mut command = redis::cmd("DQ.FORECAST");
    command.arg(queue).arg("STEP").arg(DUE_STEP_MS).arg("COUNT").arg(DUE_STEPS);
    command
}

pub fn due(reply: Value) -> Result<Due> {
    let steps = array(reply)?.into_iter().map(number).collect::<Result<Vec<_>>>()?;
    Ok(DUE_WITHIN.map(|seconds| {
        let many = seconds * 1_000 / DUE_STEP_MS;
        steps.iter().zip(0..many).map(|(jobs, _)| jobs).sum()
    }))
}

fn command(queue: &[u8], from_ms: u64, step_ms: u64, steps: usize) -> Cmd {
    let mut command = redis::cmd("DQ.FORECAST");
    command.arg(queue).arg("FROM").arg(from_ms).arg("STEP").arg(step_ms).arg("COUNT").arg(steps);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_due_within_a_span_counts_in_the_longer_ones_too() {
        let steps = (1..=15).map(Value::Int).collect();
        assert_eq!(due(Value::Array(steps)).unwrap(), [1, 15, 120]);
        assert!(due(Value::Int(1)).is_err());
        assert_eq!(DUE_WITHIN.last().map(|seconds| seconds * 1_000), Some(DUE_HORIZON_MS));
    }
}
