//! How many jobs come due in the next hour and in the next day, as DQ.FORECAST says.

use std::sync::Arc;

use redis::{Cmd, Pipeline};

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

fn command(queue: &[u8], from_ms: u64, step_ms: u64, steps: usize) -> Cmd {
    let mut command = redis::cmd("DQ.FORECAST");
    command.arg(queue).arg("FROM").arg(from_ms).arg("STEP").arg(step_ms).arg("COUNT").arg(steps);
    command
}
