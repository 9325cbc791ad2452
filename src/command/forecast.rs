//! `DQ.FORECAST key [FROM unix-ms] STEP ms COUNT n`
//!
//! Tells how many jobs come due in each of `n` steps of time, at most 1,000, from FROM or from now
//! on: those that are delayed now, unless their TTL ends first. What is ready has come due; what is
//! reserved may be finished.
//!
//! Replies with an array of `n` integers; zeros when there is no such key.
//!
//! O(n + b) for n steps in which there are b buckets of some hundred jobs each, for each priority.

use super::arg_reader::{options, ArgReader};
use super::error::Error;
use super::kinds::{Query, QueryContext};
use super::limits::FORECAST_STEPS_MAX;
use crate::queue::{Forecast, Millis, Time};
use crate::server::context::wall_clock;
use crate::server::replies::Replies;
use crate::server::spec::{KeyUse, Spec};

pub struct Forecasting;

impl Query for Forecasting {
    const SPEC: Spec = Spec {
        name: c"dq.forecast",
        summary: c"Tells how many jobs come due in each of the next steps of time",
        complexity: c"O(N+B) with N being the number of steps and B that of a priority's buckets of some hundred jobs in them, for each priority",
        since: Spec::SINCE_0_2,
        flags: c"readonly",
        arity: -6,
        key: KeyUse::Read,
        grammar: "key [FROM unix-ms] STEP ms COUNT n",
    };

    type Parsed<'c> = Steps;

    fn parse(args: ArgReader) -> Result<Steps, Error> {
        let (mut from, mut step, mut count) = (None, None, None);
        options!(args, {
            "FROM" => from, time();
            "STEP" => step, millis(1);
            "COUNT" => count, integer(1, FORECAST_STEPS_MAX);
        });
        let step = step.ok_or(Error::Missing { option: "STEP" })?;
        let count = count.ok_or(Error::Missing { option: "COUNT" })? as usize;
        let steps = Steps { from, step, count };
        steps.from(wall_clock())?;
        Ok(steps)
    }

    fn reply(steps: &Steps, context: &QueryContext, replies: Replies) -> Result<(), Error> {
        show(&context.queue().forecast(&steps.from(context.now)?), replies);
        Ok(())
    }

    fn reply_missing(steps: &Steps, replies: Replies) -> Result<(), Error> {
        show(&vec![0; steps.count], replies);
        Ok(())
    }
}

fn show(jobs: &[u64], replies: Replies) {
    replies.array(jobs.len());
    jobs.iter().for_each(|jobs| replies.integer(*jobs));
}

pub struct Steps {
    from: Option<Time>,
    step: Millis,
    count: usize,
}

impl Steps {
    fn from(&self, now: Time) -> Result<Forecast, Error> {
        let forecast = Forecast::new(self.from.unwrap_or(now), self.step, self.count);
        forecast.ok_or(Error::PastTheEnd { option: "STEP" })
    }
}
