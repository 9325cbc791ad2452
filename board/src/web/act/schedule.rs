//! Jobs that come back: added, or changed.

use super::{Act, Done, No};
use crate::bytes::Shown;
use crate::server::job::Job;
use crate::server::replies::optional_bytes;
use crate::web::schedule;

impl Act<'_> {
    /// A change is DQ.ADD … ENSURE: it leaves a run that is under way to its worker.
    pub(super) async fn schedule(&self) -> std::result::Result<Done, No> {
        let plan = schedule::read(self.fields).map_err(No::Form)?;
        let id = plan.id.clone();
        if self.fields.text("change") != "1" {
            self.ask(plan.add(self.queue)).await?;
            let words = format!("Added the schedule “{}”.", Shown(&id));
            return Ok(Done::to_job(words, Some(id)));
        }
        let job = Job::read(self.ask(Job::command(self.queue, &id)).await?)?;
        let Some(job) = job.filter(|job| job.schedule.is_some()) else {
            return Err(No::Form(
                "Nothing was saved: the job is gone, or has no schedule any more.",
            ));
        };
        let reply = optional_bytes(self.ask(plan.ensure(self.queue, &job.body)).await?)?;
        let words = match reply {
            Some(_) => "Saved the schedule.",
            None => "Saved: no run is left, so the schedule is over.",
        };
        Ok(Done::to_job(words.into(), Some(id)))
    }
}
