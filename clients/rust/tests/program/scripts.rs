//! Handlers that do what the body of their job says: clients/contract/README.md lists the steps.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dq_client::worker::{Done, Failure, RunningJob};
use dq_client::{Error, NewJob};
use serde_json::{json, Value};

use crate::calls::new_job_options;
use crate::values::{tell, text, Ms};

const LOOK: Duration = Duration::from_millis(5);

#[derive(Clone, Default)]
pub struct Scripts(Arc<Mutex<HashSet<String>>>);

impl Scripts {
    pub fn go(&self, name: &str) {
        self.0.lock().unwrap().insert(name.to_owned());
    }

    fn is_gone(&self, name: &str) -> bool {
        self.0.lock().unwrap().contains(name)
    }

    pub async fn play(self, job: RunningJob) -> Result<Done, Failure> {
        let steps = steps_of(&job)?;
        let (id, queue) = (job.id().to_string(), job.queue().name().to_string());
        tell(&json!({"event": "begun", "id": id, "attempt": job.attempt(), "queue": queue}));
        let ended = self.steps(&job, steps).await;
        let how = match &ended {
            Ok(_) => "returned",
            Err(failure) if failure.is_lost() => "cancelled",
            Err(_) => "raised",
        };
        tell(&json!({"event": "ended", "id": id, "how": how}));
        ended
    }

    async fn steps(&self, job: &RunningJob, steps: Vec<Vec<Value>>) -> Result<Done, Failure> {
        for step in steps {
            let given = |at: usize| step.get(at).cloned().unwrap_or_default();
            match text(&given(0)).as_str() {
                "wait" => {
                    while !self.is_gone(&text(&given(1))) {
                        let look = job.lost().run_until_cancelled(tokio::time::sleep(LOOK)).await;
                        look.ok_or(Error::LeaseLost)?;
                    }
                }
                "checkpoint" => {
                    job.checkpoint(given(1), text(&given(2))).await?;
                    tell(&json!({"event": "noted", "id": job.id().to_string()}));
                }
                "deps" => {
                    let deps = job.deps().await?.into_iter();
                    let shown = deps
                        .map(|dep| Ok(json!([dep.id.to_string(), dep.outcome.value::<Value>()?])));
                    return Ok(Done::new().result(shown.collect::<Result<Vec<_>, Error>>()?));
                }
                "return" => return Ok(Done::new().result(given(1))),
                "repeat" => {
                    let times = given(2).as_u64().unwrap() as usize;
                    return Ok(Done::new().result(text(&given(1)).repeat(times)));
                }
                "done" => return Ok(done(&given(1))),
                "raise" => return Err(std::io::Error::other(text(&given(1))).into()),
                "retry" => {
                    let delay = Ms(given(1).as_i64().unwrap());
                    return Err(Failure::retry(text(&given(2))).after(delay));
                }
                "bury" => return Err(Failure::bury(text(&given(1)))),
                other => panic!("no such step: {other}"),
            }
        }
        Ok(Done::new())
    }
}

/// Other languages have half of a surrogate pair in their text, which is none here.
fn steps_of(job: &RunningJob) -> Result<Vec<Vec<Value>>, Error> {
    let text = std::str::from_utf8(&job.delivery().payload).unwrap_or_default();
    let text = text.replace("\\ud800", "\u{fffd}");
    job.body().or_else(|error| serde_json::from_str(&text).map_err(|_| error))
}

fn done(told: &Value) -> Done {
    let mut done = Done::new();
    if let Some(result) = told.get("result") {
        done = done.result(result.clone());
    }
    if let Some(keep) = told["keep"].as_u64() {
        done = done.keep(Duration::from_millis(keep));
    }
    let add = told["add"].as_array().cloned().unwrap_or_default();
    add.iter().fold(done, |done, each| {
        let job = NewJob::new(text(&each["id"]), each["body"].clone());
        done.add(new_job_options(job, each))
    })
}
