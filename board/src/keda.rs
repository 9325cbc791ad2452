//! KEDA's external scaler, by gRPC: how many jobs a queue has and is about to have.
//!
//! | file | what it is |
//! | --- | --- |
//! | `trigger.rs` | the metadata of a ScaledObject's trigger |
//!
//! Each call reads the one queue that it is about. It tells numbers, never an id or a body.

mod trigger;

use std::pin::Pin;
use std::sync::Arc;

use axum::Router;
use futures_util::stream::{self, Stream};
use redis::Pipeline;
use tokio::time::sleep;
use tonic::service::Routes;
use tonic::{Request, Response, Status};

use crate::server::deployment::outcome;
use crate::server::forecast;
use crate::server::queue::Info;
use crate::server::Trouble;
use crate::watch::{Watch, TURN};
use proto::external_scaler_server::{ExternalScaler, ExternalScalerServer};
use proto::{
    GetMetricSpecResponse, GetMetricsRequest, GetMetricsResponse, IsActiveResponse, MetricSpec,
    MetricValue, ScaledObjectRef,
};
use trigger::Trigger;

/// What `build.rs` makes of `proto/externalscaler.proto`.
#[allow(clippy::all)]
mod proto {
    tonic::include_proto!("externalscaler");
}

/// What KEDA and the HPA call the only metric of a trigger.
const METRIC: &str = "dq-jobs";

/// What answers the calls, each a POST of HTTP/2.
pub fn router(servers: Arc<[Arc<Watch>]>) -> Router {
    Routes::new(ExternalScalerServer::new(Scaler { servers })).into_axum_router()
}

struct Scaler {
    servers: Arc<[Arc<Watch>]>,
}

impl Scaler {
    /// The server that a trigger is about.
    fn watch(&self, trigger: &Trigger) -> Result<&Arc<Watch>, Status> {
        let names: Vec<_> = self.servers.iter().map(|watch| watch.name.as_str()).collect();
        let place = trigger.place_in(&names)?;
        self.servers.get(place).ok_or_else(|| Status::internal("no server"))
    }
}

type Answer<T> = Result<Response<T>, Status>;
type Told = Pin<Box<dyn Stream<Item = Result<IsActiveResponse, Status>> + Send>>;

#[tonic::async_trait]
impl ExternalScaler for Scaler {
    type StreamIsActiveStream = Told;

    async fn is_active(&self, request: Request<ScaledObjectRef>) -> Answer<IsActiveResponse> {
        let trigger = Trigger::read(&request.into_inner().scaler_metadata)?;
        let result = work(self.watch(&trigger)?, &trigger).await? > 0;
        Ok(Response::new(IsActiveResponse { result }))
    }

    /// Tells it at once and whenever it changes. An error ends the stream: KEDA opens another.
    async fn stream_is_active(&self, request: Request<ScaledObjectRef>) -> Answer<Told> {
        let trigger = Trigger::read(&request.into_inner().scaler_metadata)?;
        let watch = self.watch(&trigger)?.clone();
        let told = stream::unfold(Some(None), move |was: Option<Option<bool>>| {
            let (watch, trigger) = (watch.clone(), trigger.clone());
            async move {
                let was = was?;
                loop {
                    let result = match work(&watch, &trigger).await {
                        Ok(jobs) => jobs > 0,
                        Err(status) => return Some((Err(status), None)),
                    };
                    if was != Some(result) {
                        return Some((Ok(IsActiveResponse { result }), Some(Some(result))));
                    }
                    sleep(TURN).await;
                }
            }
        });
        Ok(Response::new(Box::pin(told)))
    }

    async fn get_metric_spec(
        &self,
        request: Request<ScaledObjectRef>,
    ) -> Answer<GetMetricSpecResponse> {
        let trigger = Trigger::read(&request.into_inner().scaler_metadata)?;
        self.watch(&trigger)?;
        let spec = MetricSpec {
            metric_name: METRIC.into(),
            target_size: trigger.jobs_per_worker,
            target_size_float: trigger.jobs_per_worker as f64,
        };
        Ok(Response::new(GetMetricSpecResponse { metric_specs: vec![spec] }))
    }

    async fn get_metrics(&self, request: Request<GetMetricsRequest>) -> Answer<GetMetricsResponse> {
        let about = request.into_inner().scaled_object_ref.unwrap_or_default();
        let trigger = Trigger::read(&about.scaler_metadata)?;
        let jobs = work(self.watch(&trigger)?, &trigger).await?;
        let value = MetricValue {
            metric_name: METRIC.into(),
            metric_value: i64::try_from(jobs).unwrap_or(i64::MAX),
            metric_value_float: jobs as f64,
        };
        Ok(Response::new(GetMetricsResponse { metric_values: vec![value] }))
    }
}

/// The jobs that need a worker now or within the trigger's span. Those in hand count, or workers
/// would be stopped in the middle of them.
async fn work(watch: &Watch, trigger: &Trigger) -> Result<u64, Status> {
    let queue = trigger.queue.as_bytes();
    let mut commands = Pipeline::new();
    commands.add_command(Info::command(queue));
    commands.add_command(forecast::within_command(queue, trigger.within_ms));
    let read = async {
        let (_, replies) = watch.deployment.ask(watch.node_of(queue), &mut commands).await?;
        let mut replies = replies.into_iter();
        let info = Info::read(outcome(replies.next())?)?;
        Ok::<_, Trouble>((info, forecast::within(outcome(replies.next())?)?))
    };
    let (info, due) = read.await.map_err(status_of)?;
    // Before its first job a queue isn't there.
    Ok(info.map_or(0, |info| jobs_to_do(&info, due)))
}

/// While a queue is paused, no worker gets what is ready or due.
fn jobs_to_do(info: &Info, due: u64) -> u64 {
    let waiting = if info.is_paused { 0 } else { info.counts.ready.saturating_add(due) };
    info.counts.reserved.saturating_add(waiting)
}

fn status_of(trouble: Trouble) -> Status {
    let words = trouble.to_string();
    match trouble {
        Trouble::Refused(_) if trouble.is("NOPERM") => Status::permission_denied(words),
        Trouble::Refused(_) if trouble.is("WRONGTYPE") => Status::failed_precondition(words),
        _ => Status::unavailable(words),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::queue::Counts;

    #[test]
    fn what_is_in_hand_counts_and_what_a_pause_holds_back_does_not() {
        let counts = Counts { ready: 3, reserved: 2, dead: 9, held: 9, done: 9, delayed: 9 };
        let info = Info { counts, ..Info::default() };
        assert_eq!(jobs_to_do(&info, 4), 9);
        assert_eq!(jobs_to_do(&Info { is_paused: true, ..info }, 4), 2);
    }
}
