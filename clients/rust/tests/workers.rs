//! Workers on a real server: what the contract (clients/contract) can't see from outside.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use dq_client::testing::Server;
use dq_client::worker::{Done, Failure, RunningJob, Worker};
use dq_client::{Connector, Error, Queue};
use tokio_util::sync::CancellationToken;

const WITHIN: Duration = Duration::from_secs(30);

struct Place {
    _server: Server,
    client: redis::Client,
    queue: Queue,
}

async fn place() -> Place {
    let server = Server::start().await.unwrap();
    let client = redis::Client::open(server.url()).unwrap();
    let queue = Queue::shared(client.connect().await.unwrap(), "q");
    Place { _server: server, client, queue }
}

/// Works until the job has come to this state.
async fn until(place: &Place, worker: Worker, id: &str, state: &str) {
    let stop = CancellationToken::new();
    let working = tokio::spawn(worker.serve(stop.clone()));
    let deadline = Instant::now() + WITHIN;
    loop {
        let outcome = place.queue.result(id).await.unwrap();
        if outcome.as_ref().is_some_and(|outcome| outcome.state == state) {
            break;
        }
        assert!(Instant::now() < deadline && !working.is_finished(), "{outcome:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    stop.cancel();
    working.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_panic_is_a_failure_of_its_job() {
    let place = place().await;
    place.queue.add("a", ()).attempts(1).await.unwrap();
    place.queue.add("b", ()).keep(WITHIN).await.unwrap();
    let handler = |job: RunningJob| async move {
        assert!(*job.id() != "a", "not this one");
        Ok::<_, Failure>("fine")
    };
    let worker = Worker::new(place.client.clone(), handler).queue(&place.queue);
    until(&place, worker, "a", "dead").await;
    let dead = place.queue.result("a").await.unwrap().unwrap();
    assert_eq!(dead.reason().unwrap(), "panicked: not this one");
    let done = place.queue.result("b").await.unwrap().unwrap();
    assert_eq!(done.value::<String>().unwrap().as_deref(), Some("fine"));
}

#[tokio::test]
async fn a_hook_that_fails_is_a_failure_of_the_job_and_the_other_one_is_told() {
    let place = place().await;
    place.queue.add("a", ()).attempts(1).await.unwrap();
    let told = Arc::new(Mutex::new(Vec::new()));
    let telling = told.clone();
    let handler = |_: RunningJob| async { Ok::<_, Failure>(Done::new()) };
    let worker = Worker::new(place.client.clone(), handler)
        .queue(&place.queue)
        .before(|_| Err(Failure::retry("no licence")))
        .after(move |_, failed| telling.lock().unwrap().push(failed.map(ToString::to_string)));
    until(&place, worker, "a", "dead").await;
    assert_eq!(place.queue.result("a").await.unwrap().unwrap().reason().unwrap(), "no licence");
    assert_eq!(*told.lock().unwrap(), [Some("no licence".to_owned())]);
}

#[tokio::test]
async fn what_a_worker_cannot_be_is_told_at_its_start() {
    let place = place().await;
    let handler = |_: RunningJob| async { Ok::<(), Failure>(()) };
    let idle = Worker::new(place.client.clone(), handler).serve(CancellationToken::new()).await;
    assert!(matches!(idle, Err(Error::Misuse(_))));
}

#[tokio::test]
async fn no_handler_goes_on_behind_the_end_of_its_worker() {
    let place = place().await;
    place.queue.add("a", ()).await.unwrap();
    let held = Arc::new(());
    let (stop, mine) = (CancellationToken::new(), held.clone());
    let stopping = stop.clone();
    let handler = move |_: RunningJob| {
        let (mine, stopping) = (mine.clone(), stopping.clone());
        async move {
            stopping.cancel();
            // It doesn't look whether it is lost.
            std::future::pending::<()>().await;
            drop(mine);
            Ok::<(), Failure>(())
        }
    };
    let worker = Worker::new(place.client.clone(), handler).queue(&place.queue);
    worker.grace(Duration::from_millis(20)).serve(stop).await.unwrap();
    let deadline = Instant::now() + WITHIN;
    while Arc::strong_count(&held) > 1 {
        assert!(Instant::now() < deadline);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(place.queue.get("a").await.unwrap().unwrap().attempt, 0);
}
