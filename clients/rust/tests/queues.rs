//! Queues on a real server: what the contract (clients/contract) can't see from outside.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::future::IntoFuture;
use std::pin::pin;
use std::time::{Duration, Instant, SystemTime};

use dq_client::testing::Server;
use dq_client::{
    Added, Body, Codec, Connector, Error, FinishedAndTaken, Lease, Millis, Queue, Raw, State,
    UnixMillis,
};
use futures_util::TryStreamExt;
use redis::aio::MultiplexedConnection;
use serde_json::{json, Value};

const HOUR: Duration = Duration::from_secs(3600);
const WITHIN: Duration = Duration::from_secs(30);

async fn server() -> (Server, redis::Client) {
    let server = Server::start().await.unwrap();
    let client = redis::Client::open(server.url()).unwrap();
    (server, client)
}

/// The machine may have much else to do: by default a connection waits for half a second.
async fn connection(client: &redis::Client, patience: Duration) -> MultiplexedConnection {
    let config = redis::AsyncConnectionConfig::new()
        .set_connection_timeout(Some(WITHIN))
        .set_response_timeout(Some(patience));
    client.get_multiplexed_async_connection_with_config(&config).await.unwrap()
}

async fn queue(client: &redis::Client, name: &str) -> Queue {
    Queue::new(connection(client, WITHIN).await, name)
}

#[test]
fn a_job_is_never_early() {
    assert_eq!(Duration::from_nanos(1).millis(), 1);
    assert_eq!(Duration::from_millis(1500).millis(), 1500);
    assert_eq!(Duration::from_micros(1_500_001).millis(), 1501);
    assert_eq!((SystemTime::UNIX_EPOCH + Duration::from_nanos(1)).unix_millis(), 1);
    assert_eq!((SystemTime::UNIX_EPOCH - Duration::from_nanos(1)).unix_millis(), 0);
}

#[test]
fn raw_bytes_stay_as_they_are() {
    assert_eq!(Raw(b"\x00\xff").encode(Codec::Json).unwrap(), b"\x00\xff");
    assert_eq!("a".encode(Codec::Json).unwrap(), b"\"a\"");
}

#[tokio::test]
async fn refusals_have_types() {
    let (_server, client) = server().await;
    let queue = queue(&client, "q").await;
    assert_eq!(queue.add("a", 1).await.unwrap(), Added::Added("a".into()));
    assert_eq!(queue.add("a", 1).nx().await.unwrap(), Added::Taken("a".into()));
    assert!(matches!(queue.add("a", 1).await, Err(Error::Exists(_))));
    assert!(matches!(queue.add("b", 1).after(["none"]).await, Err(Error::NoJob(_))));
    assert!(matches!(queue.add("b", 1).priority(256).await, Err(Error::Invalid(_))));
    queue.alter().maxjobs(1).await.unwrap();
    assert!(matches!(queue.add("b", 1).await, Err(Error::Full(_))));
}

#[tokio::test]
async fn many_jobs_are_added_in_one_step_or_none() {
    let (_server, client) = server().await;
    let queue = queue(&client, "q").await;
    let jobs = [("*", json!({"n": 1})), ("ann", json!([2])), ("bob", json!(null))];
    let ids = queue.add_many(jobs).delays([Duration::ZERO, HOUR, HOUR]).await.unwrap();
    assert_eq!(ids[1..], [Some("ann".into()), Some("bob".into())]);
    let taken = queue.pop().count(3).await.unwrap();
    assert_eq!(taken.len(), 1);
    assert_eq!((Some(&taken[0].id), taken[0].body().unwrap()), (ids[0].as_ref(), json!({"n": 1})));
    let again = queue.add_many([("bob", 1), ("eve", 2)]).nx().await.unwrap();
    assert_eq!(again, [None, Some("eve".into())]);
    let error = queue.add_many([("c", 1), ("*", 2), ("ann", 3)]).await.unwrap_err();
    assert_eq!(error.to_string(), r#"EXISTS job 3: id is taken in this queue: "ann" in "q""#);
    let twice = queue.add_many([("c", 1), ("c", 2)]).await;
    assert!(matches!(twice, Err(Error::Invalid(text)) if text.starts_with("job 2: ")));
    let nobody = queue.add_many([("c", 1)]).after(["nobody"]).await;
    assert!(matches!(nobody, Err(Error::NoJob(text)) if text.starts_with("job 1: ")));
    let none: [(&str, i64); 0] = [];
    assert!(matches!(queue.add_many(none).await, Err(Error::Invalid(_))));
    assert_eq!(queue.len().await.unwrap(), 4);
}

#[tokio::test]
async fn many_jobs_have_a_time_each_or_come_due_evenly() {
    let (_server, client) = server().await;
    let queue = queue(&client, "q").await;
    let at = SystemTime::UNIX_EPOCH + Duration::from_secs(4_000_000_000);
    queue.add_many([("a", 1), ("b", 2)]).at(at).spread(2 * HOUR).await.unwrap();
    queue.add_many([("c", 1), ("d", 2)]).ats([at, at + HOUR]).await.unwrap();
    for (id, due) in [("a", at), ("b", at + HOUR), ("c", at), ("d", at + HOUR)] {
        assert_eq!(queue.get(id).await.unwrap().unwrap().due, Some(due));
    }
}

#[tokio::test]
async fn jobs_are_finished_and_others_are_taken_in_one_step() {
    let (_server, client) = server().await;
    let queue = queue(&client, "q").await;
    queue.add_many([("a", 1), ("b", 2), ("c", 3)]).ttr(HOUR).await.unwrap();
    let first = queue.pop().count(2).await.unwrap();
    let both = queue.finish_and_pop(&first).count(2).withdue().await.unwrap();
    assert_eq!((both.finished, both.jobs.len()), (2, 1));
    let job = &both.jobs[0];
    assert_eq!((&job.id, job.body::<i64>().unwrap(), job.due.is_some()), (&"c".into(), 3, true));
    let none = |finished| FinishedAndTaken { finished, jobs: Vec::new() };
    assert_eq!(queue.finish_and_pop([job]).await.unwrap(), none(1));
    // Again, as after a broken connection; and the latest lease.
    assert_eq!(queue.finish_and_pop([job.held().unwrap()]).await.unwrap(), none(0));
    assert_eq!(queue.finish_and_pop([("a", Lease::Latest)]).await.unwrap(), none(0));
    assert_eq!(queue.len().await.unwrap(), 0);
}

#[tokio::test]
async fn jobs_of_one_of_several_queues_are_finished() {
    let (_server, client) = server().await;
    let (urgent, bulk) = (queue(&client, "urgent").await, queue(&client, "bulk").await);
    let others = ["bulk".into()];
    bulk.add_many([("a", 1), ("b", 2)]).await.unwrap();
    let jobs = urgent.mpop(&others).await.unwrap();
    let both = urgent.finish_and_mpop(&jobs, &others).count(5).await.unwrap();
    let b = &both.jobs[0];
    assert_eq!((both.finished, &b.key, &b.id), (1, &"bulk".into(), &"b".into()));
    urgent.add("c", 3).await.unwrap();
    let claim = ("bulk", "b", Lease::from(b));
    let both = urgent.finish_and_mpop([claim], &others).await.unwrap();
    let c = &both.jobs[0];
    assert_eq!((both.finished, &c.key, &c.id), (1, &"urgent".into(), &"c".into()));
    // An id with its lease is of the queue itself.
    let last = urgent.finish_and_mpop([c.held().unwrap()], &others).await.unwrap();
    assert_eq!(last, FinishedAndTaken { finished: 1, jobs: Vec::new() });
}

#[tokio::test]
async fn jobs_of_another_queue_none_and_too_many_are_refused() {
    let (_server, client) = server().await;
    let (urgent, bulk) = (queue(&client, "urgent").await, queue(&client, "bulk").await);
    for queue in [&urgent, &bulk] {
        queue.add("a", 1).await.unwrap();
    }
    let (here, there) = (urgent.pop().await.unwrap(), bulk.pop().await.unwrap());
    let both = [&here[0], &there[0]];
    assert!(matches!(urgent.finish_and_pop(&there).await, Err(Error::Misuse(_))));
    assert!(matches!(urgent.finish_and_pop(both).await, Err(Error::Misuse(_))));
    let others = ["bulk".into()];
    assert!(matches!(urgent.finish_and_mpop(both, &others).await, Err(Error::Misuse(_))));
    let mut pipeline = redis::pipe();
    assert!(urgent.finish_and_pop(&there).on(&mut pipeline).is_err());
    let strange = ["strange".into()];
    assert!(matches!(urgent.finish_and_mpop(&there, &strange).await, Err(Error::Invalid(_))));
    let many: Vec<_> = (1..=10_001).map(|lease| ("b", Lease::Number(lease))).collect();
    for jobs in [&many[..0], &many[..]] {
        assert!(matches!(urgent.finish_and_pop(jobs).await, Err(Error::Invalid(_))));
        assert!(matches!(urgent.finish_and_mpop(jobs, &others).await, Err(Error::Invalid(_))));
    }
    assert_eq!(urgent.finish([here[0].held().unwrap()]).await.unwrap(), 1);
    assert_eq!(bulk.finish([there[0].held().unwrap()]).await.unwrap(), 1);
}

#[tokio::test]
async fn a_wait_in_pieces_finishes_once() {
    let (_server, client) = server().await;
    let waiting = Queue::new(connection(&client, Duration::from_secs(1)).await, "q");
    let other = queue(&client, "q").await;
    other.add_many([("a", 1), ("b", 2)]).await.unwrap();
    let jobs = other.pop().count(2).await.unwrap();
    let come_again = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        other.add("a", 3).delay(HOUR).await.unwrap();
        other.pop().id("a").await.unwrap();
    };
    // The latest lease of that id is another worker's by the second piece.
    let claims = [jobs[1].held().unwrap(), (&jobs[0].id, Lease::Latest)];
    let both = waiting.finish_and_pop(claims).block(Duration::from_millis(2500));
    let (both, ()) = tokio::join!(both.into_future(), come_again);
    assert_eq!(both.unwrap(), FinishedAndTaken { finished: 2, jobs: Vec::new() });
    assert_eq!(other.len().state(State::Reserved).await.unwrap(), 1);
}

#[tokio::test]
async fn a_wait_in_pieces_lingers_once() {
    let (_server, client) = server().await;
    let queue = queue(&client, "q").await;
    queue.add_many([("a", 1), ("b", 2)]).await.unwrap();
    let (jobs, begin) = (queue.pop().await.unwrap(), Instant::now());
    let linger = Duration::from_secs(1);
    let both = queue.finish_and_pop(&jobs).count(5).min(3).linger(linger).block(2 * WITHIN);
    let both = both.await.unwrap();
    assert_eq!((both.finished, both.jobs.len(), &both.jobs[0].id), (1, 1, &"b".into()));
    assert!(begin.elapsed() < WITHIN);
    queue.add_many([("c", 1), ("d", 2), ("e", 3)]).await.unwrap();
    assert_eq!(queue.pop().count(5).min(3).linger(HOUR).await.unwrap().len(), 3);
    assert_eq!(queue.mpop(&["other".into()]).count(5).min(1).linger(HOUR).await.unwrap(), []);
}

#[tokio::test]
async fn a_pipeline_finishes_jobs_and_takes_others() {
    let (_server, client) = server().await;
    let queue = queue(&client, "q").await;
    queue.add_many([("a", 1), ("b", 2)]).await.unwrap();
    let jobs = queue.pop().await.unwrap();
    let mut pipeline = redis::pipe();
    let later = queue.finish_and_pop(&jobs).count(1).on(&mut pipeline).unwrap();
    let mut raw = connection(&client, WITHIN).await;
    let replies: Vec<redis::Value> = pipeline.ignore_errors().query_async(&mut raw).await.unwrap();
    let both = later.of(&replies).unwrap();
    assert_eq!((both.finished, &both.jobs[0].id), (1, &"b".into()));
}

#[tokio::test]
async fn dead_jobs_come_back_evenly() {
    let (_server, client) = server().await;
    let queue = queue(&client, "q").await;
    queue.add_many([("a", 1), ("b", 2)]).await.unwrap();
    for job in queue.pop().count(2).await.unwrap() {
        queue.bury(job.id, job.lease.unwrap()).await.unwrap();
    }
    assert_eq!(queue.kick().count(2).spread(HOUR).await.unwrap(), 2);
    assert_eq!(queue.len().state(State::Ready).await.unwrap(), 1);
    assert_eq!(queue.len().state(State::Delayed).await.unwrap(), 1);
}

#[tokio::test]
async fn a_command_that_the_server_does_not_have_says_so() {
    let (_server, client) = server().await;
    let mut connection = connection(&client, WITHIN).await;
    let unknown = redis::cmd("DQ.NOTHING").exec_async(&mut connection).await.unwrap_err();
    assert!(matches!(Error::from(unknown), Error::NoModule(_)));
}

#[tokio::test]
async fn a_wait_may_be_longer_than_the_patience_of_a_connection() {
    let (_server, client) = server().await;
    let queue = Queue::new(connection(&client, Duration::from_secs(3)).await, "q");
    let begun = std::time::Instant::now();
    queue.add("a", "body").delay(Duration::from_millis(3500)).await.unwrap();
    let taken = queue.pop().block(HOUR).await.unwrap();
    // The server's clock has whole milliseconds.
    assert!(begun.elapsed() >= Duration::from_millis(3499));
    assert_eq!(taken[0].body::<String>().unwrap(), "body");
    let over = queue.pop().block(Duration::from_millis(700)).await.unwrap();
    assert!(over.is_empty());
}

#[tokio::test]
async fn a_result_is_waited_for() {
    let (_server, client) = server().await;
    let (queue, own) = (queue(&client, "q").await, client.connect().await.unwrap());
    queue.add("a", ()).keep(HOUR).await.unwrap();
    let waiting = tokio::spawn(Queue::shared(own, "q").result("a").block(HOUR).into_future());
    let taken = queue.pop().await.unwrap();
    queue.done("a", taken[0].lease.unwrap()).result(17).await.unwrap();
    let outcome = waiting.await.unwrap().unwrap().unwrap();
    assert_eq!(outcome.value::<i64>().unwrap(), Some(17));
}

#[tokio::test]
async fn streams_walk_through_all_pages() {
    let (_server, client) = server().await;
    let queue = queue(&client, "q").await;
    let mut ids: Vec<String> = (0..250).map(|number| format!("job:{number:03}")).collect();
    for (number, id) in ids.iter().enumerate() {
        // Several have the same time, also where a page ends.
        let due = HOUR + Duration::from_secs(number as u64 / 7);
        queue.add(id, number).delay(due).group(format!("g{}", number % 3)).await.unwrap();
    }
    let peeked: Vec<_> = queue.peek_all(State::Delayed, None).try_collect().await.unwrap();
    assert_eq!(peeked.iter().map(|job| job.id.to_string()).collect::<Vec<_>>(), ids);
    assert_eq!(peeked[249].body::<usize>().unwrap(), 249);
    let mut scanned: Vec<_> = queue
        .scan_all(|scan| scan.count(20))
        .map_ok(|id| id.to_string())
        .try_collect()
        .await
        .unwrap();
    scanned.sort();
    scanned.dedup();
    ids.sort();
    assert_eq!(scanned, ids);
    let mut groups = pin!(queue.groups_all(|groups| groups.count(1)));
    let mut delayed = 0;
    while let Some(group) = groups.try_next().await.unwrap() {
        delayed += group.delayed;
    }
    assert_eq!(delayed, 250);
}

#[tokio::test]
async fn commands_go_onto_a_pipeline() {
    let (_server, client) = server().await;
    let mut connection = connection(&client, WITHIN).await;
    let queue = queue(&client, "q").await;
    let mut pipeline = redis::pipe();
    pipeline.atomic();
    let first = queue.add("a", json!({"n": 1})).on(&mut pipeline).unwrap();
    pipeline.set("paid", "no");
    let second = queue.add("a", json!({"n": 2})).on(&mut pipeline).unwrap();
    let info = queue.info().on(&mut pipeline).unwrap();
    let replies: Vec<redis::Value> =
        pipeline.ignore_errors().query_async(&mut connection).await.unwrap();
    assert_eq!(first.of(&replies).unwrap(), Added::Added("a".into()));
    assert!(matches!(second.of(&replies), Err(Error::Exists(_))));
    assert_eq!(info.of(&replies).unwrap().unwrap().ready, 1);
    let job = queue.get("a").await.unwrap().unwrap();
    assert_eq!(job.body::<Value>().unwrap(), json!({"n": 1}));
}
