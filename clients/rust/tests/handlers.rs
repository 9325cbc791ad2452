//! What handlers do to their worker: nothing. Neither does what the server refuses.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::Duration;

use common::{eventually, place, work, Lines, Place, HOUR};
use dq_client::worker::{Done, Failure, RunningJob, Worker};
use dq_client::{Connector, Error, Millis, NewJob, Queue, Raw, State};
use serde::{Serialize, Serializer};
use tokio_util::sync::CancellationToken;

/// A time that `Duration` can't say.
struct Ms(i64);

impl Millis for Ms {
    fn millis(&self) -> i64 {
        self.0
    }
}

/// A value that can't be written.
struct Unwritable(bool);

impl Serialize for Unwritable {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        assert!(!self.0, "no words for it");
        Err(serde::ser::Error::custom("no words for it"))
    }
}

/// An error that can't be shown.
#[derive(Debug)]
struct Unspeakable;

impl fmt::Display for Unspeakable {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Err(fmt::Error)
    }
}

impl std::error::Error for Unspeakable {}

/// It panics again when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("a bomb");
    }
}

async fn odd(job: RunningJob) -> Result<Done, Failure> {
    let id = job.id().to_string();
    match id.as_str() {
        "past" => Err(Failure::retry("x").after(Ms(-1))),
        "never" => Err(Failure::retry("x").after(Ms(i64::MAX))),
        "duration" => Err(Failure::retry("x").after(Duration::MAX)),
        "priority" => Err(Failure::retry("x").priority(300)),
        "keep" => Ok(Done::new().keep(Ms(-5))),
        "taken" => Ok(Done::new().add(NewJob::new("good:past:0", ()))),
        "missing" => Ok(Done::new().add(NewJob::new("b", ()).after(["no such job"]))),
        "unwritable" => Ok(Done::new().result(Unwritable(false))),
        "panics" => Ok(Done::new().result(Unwritable(true))),
        "added" => Ok(Done::new().add(NewJob::new("c", Unwritable(true)))),
        "unspeakable" => Err(Unspeakable.into()),
        "message" => panic!("not this {}", "one"),
        "bomb" => std::panic::panic_any(Bomb),
        "number" => std::panic::panic_any(17),
        "bury" => Err(Failure::bury("\0\u{ffff}".repeat(1000))),
        _ => Ok(Done::new()),
    }
}

const ODD: [(&str, &str); 14] = [
    ("past", "outcome refused: ERR DELAY must be an integer"),
    ("never", "outcome refused: ERR DELAY must be an integer"),
    ("duration", "outcome refused: ERR DELAY must be an integer"),
    ("priority", "outcome refused: ERR PRIORITY must be an integer"),
    ("keep", "outcome refused: ERR KEEP must be an integer"),
    ("taken", "outcome refused: EXISTS id is taken"),
    ("missing", "outcome refused: NOJOB"),
    ("unwritable", "outcome refused: no words for it"),
    ("panics", "outcome refused: panicked: no words for it"),
    ("added", "outcome refused: panicked: no words for it"),
    ("unspeakable", "panicked: a Display implementation returned an error"),
    ("message", "panicked: not this one"),
    ("bomb", "panicked"),
    ("number", "panicked"),
];

#[tokio::test]
async fn an_outcome_that_cannot_be_told_costs_its_own_job_an_attempt_and_no_other_job() {
    let place = place().await;
    let mut pipeline = redis::pipe();
    for (id, _) in ODD {
        for number in 0..5 {
            let good = format!("good:{id}:{number}");
            place.queue.add(good, ()).keep(HOUR).on(&mut pipeline).unwrap();
        }
        place.queue.add(id, ()).attempts(1).on(&mut pipeline).unwrap();
    }
    place.client.connect().await.unwrap().send_all(pipeline).await.unwrap();
    let worker = Worker::new(place.client.clone(), odd).queue(&place.queue).concurrency(100);
    let working = work(worker);
    place.counts(State::Dead, ODD.len() as i64).await;
    place.counts(State::Done, 5 * ODD.len() as i64).await;
    for (id, reason) in ODD {
        let job = place.job(id).await;
        let said = job.reason.clone().unwrap_or_default().to_string();
        assert!(said.starts_with(reason), "{id}: {said}");
        assert_eq!((job.attempt, job.timed_out), (1, 0), "{id}");
    }
    assert_eq!(place.queue.info().await.unwrap().unwrap().total_timed_out, 0);
    working.end().await;
}

#[tokio::test]
async fn a_result_that_is_too_long_is_not_tried_again() {
    let place = place().await;
    place.call(&["CONFIG", "SET", "dq.max-body-bytes", "50"]).await.unwrap();
    let long = |job: RunningJob| async move {
        let text = "x".repeat(100);
        let done = Done::new();
        Ok::<_, Failure>(if *job.id() == "a" {
            done.result(text)
        } else {
            done.add(NewJob::new("c", text))
        })
    };
    place.queue.add("a", ()).await.unwrap();
    place.queue.add("b", ()).await.unwrap();
    let working = work(Worker::new(place.client.clone(), long).queue(&place.queue));
    place.counts(State::Dead, 2).await;
    for (id, size) in [("a", "the result has 102 bytes"), ("b", "an added job")] {
        let job = place.job(id).await;
        let reason = job.reason.clone().unwrap_or_default().to_string();
        assert!(reason.contains(size) && reason.contains("at most 50 bytes"), "{reason}");
        assert_eq!(job.attempt, 1);
    }
    working.end().await;
}

#[tokio::test]
async fn an_outcome_that_the_worker_may_not_say_is_a_failed_attempt() {
    let place = place().await;
    let words =
        ["ACL", "SETUSER", "w", "on", "nopass", "~*", "+@all", "-dq.bury", "-dq.done", "-dq.get"];
    place.call(&words).await.unwrap();
    let client = redis::Client::open(place.server.url().replace("://", "://w:x@")).unwrap();
    let handler = |job: RunningJob| async move {
        match job.id().to_string().as_str() {
            "bury" => Err(Failure::bury("no such address")),
            "done" => Ok(Some(1)),
            _ => Ok(None),
        }
    };
    for id in ["bury", "done", "good"] {
        place.queue.add(id, ()).attempts(1).keep(HOUR).await.unwrap();
    }
    let working = work(Worker::new(client, handler).queue(&place.queue));
    place.counts(State::Dead, 2).await;
    place.counts(State::Done, 1).await;
    for id in ["bury", "done"] {
        let reason = place.job(id).await.reason.clone().unwrap_or_default().to_string();
        assert!(reason.starts_with("outcome refused: "), "{reason}");
        assert!(reason.contains("NoPerm") || reason.contains("permissions"), "{reason}");
    }
    working.end().await;
}

/// An outcome that can't even be taken back is left to the end of its lease.
#[tokio::test]
async fn a_job_that_cannot_be_given_back_comes_back_when_its_lease_ends() {
    let place = place().await;
    let words = ["ACL", "SETUSER", "w", "on", "nopass", "~*", "+@all", "-dq.release", "-dq.finish"];
    place.call(&words).await.unwrap();
    let client = redis::Client::open(place.server.url().replace("://", "://w:x@")).unwrap();
    let good = |_: RunningJob| async { Ok::<(), Failure>(()) };
    place.queue.add("a", ()).attempts(1).await.unwrap();
    let worker = Worker::new(client, good).queue(&place.queue).ttr(Duration::from_millis(300));
    let working = work(worker);
    place.counts(State::Dead, 1).await;
    assert_eq!(place.job("a").await.timed_out, 1);
    working.end().await;
}

#[tokio::test]
async fn hooks_that_panic_cost_no_place() {
    let place = place().await;
    for number in 0..20 {
        place.queue.add(format!("{number}"), ()).keep(HOUR).await.unwrap();
    }
    place.queue.add("before", ()).attempts(1).await.unwrap();
    let good = |_: RunningJob| async { Ok::<(), Failure>(()) };
    let worker = Worker::new(place.client.clone(), good)
        .queue(&place.queue)
        .concurrency(2)
        .before(|job| {
            assert!(*job.id() != "before", "no licence");
            Ok(())
        })
        .after(|_, _| std::panic::panic_any(Bomb));
    let working = work(worker);
    place.counts(State::Done, 20).await;
    place.counts(State::Dead, 1).await;
    let reason = place.job("before").await.reason.clone().unwrap();
    assert_eq!(reason, "panicked: no licence");
    working.end().await;
}

#[tokio::test]
async fn ids_and_names_are_bytes() {
    let place = place().await;
    let queue = Queue::shared(place.client.connect().await.unwrap(), b"q\xff\x00");
    let id = b"\x00\xff\n\xc3\x28 raw".to_vec();
    queue.add(&id, ()).keep(HOUR).attempts(1).await.unwrap();
    queue.add("text", Raw(b"\xff\xfe")).keep(HOUR).attempts(1).await.unwrap();
    let handler = |job: RunningJob| async move {
        job.body::<Option<i64>>()?;
        // Longer than a lease, which a busy machine renews in time.
        tokio::time::sleep(Duration::from_secs(3)).await;
        Ok::<(), Failure>(())
    };
    let worker = Worker::new(place.client.clone(), handler).queue(&queue);
    let working = work(worker.ttr(Duration::from_secs(2)));
    let is_done = || async { queue.result(&id).await.unwrap().unwrap().is_done() };
    eventually(is_done).await;
    assert_eq!(queue.get(&id).await.unwrap().unwrap().attempt, 1);
    let is_dead = || async { queue.result("text").await.unwrap().unwrap().is_dead() };
    eventually(is_dead).await;
    working.end().await;
}

#[tokio::test]
async fn what_a_worker_cannot_be_is_said_at_its_start() {
    let place = place().await;
    let idle = |_: RunningJob| async { Ok::<(), Failure>(()) };
    let worker = || Worker::new(place.client.clone(), idle).queue(&place.queue);
    let said = |ended: Result<(), Error>| ended.unwrap_err().to_string();
    let stop = CancellationToken::new;
    assert!(said(worker().concurrency(0).serve(stop()).await).contains("concurrency is 0"));
    assert!(said(worker().ttr(Duration::ZERO).serve(stop()).await).contains("ttr"));
    assert!(said(worker().ttr(Duration::MAX).serve(stop()).await).contains("ttr"));
    let none = Worker::new(place.client.clone(), idle).serve(stop()).await;
    assert!(said(none).contains("needs a queue"));

    // What is only large is allowed.
    let large = worker().concurrency(usize::MAX).grace(Duration::MAX).ttr(300 * 24 * HOUR);
    place.queue.add("a", ()).await.unwrap();
    let working = work(large);
    eventually(|| async { place.queue.len().await.unwrap() == 0 }).await;
    working.end().await;
}

#[tokio::test]
async fn a_worker_that_is_stopped_before_it_serves_takes_no_job() {
    let place = place().await;
    place.queue.add("a", ()).await.unwrap();
    let idle = |_: RunningJob| async { Ok::<(), Failure>(()) };
    let stop = CancellationToken::new();
    stop.cancel();
    Worker::new(place.client.clone(), idle).queue(&place.queue).serve(stop).await.unwrap();
    assert_eq!(place.job("a").await.attempt, 0);
}

#[tokio::test]
async fn a_server_without_the_module_is_named_so() {
    let place = place().await;
    place.call(&["ACL", "SETUSER", "default", "on"]).await.unwrap();
    let unknown = redis::cmd("DQ.NOTHING");
    let error = Error::from(place.client.connect().await.unwrap().send(unknown).await.unwrap_err());
    assert!(error.to_string().contains("has no module DQ"), "{error}");
    let mut pipeline = redis::pipe();
    pipeline.atomic().cmd("DQ.NOTHING").arg("q");
    let error = place.client.connect().await.unwrap().send_all(pipeline).await.unwrap_err();
    assert!(Error::from(error).to_string().contains("has no module DQ"));
}

async fn fails(job: RunningJob) -> Result<(), Failure> {
    let cause = std::io::Error::other("connection reset");
    match job.id().to_string().as_str() {
        "bury" => Err(Failure::bury("no such address")),
        _ => Err(std::io::Error::other(Wrapped(cause)).into()),
    }
}

#[derive(Debug)]
struct Wrapped(std::io::Error);

impl fmt::Display for Wrapped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no route")
    }
}

impl std::error::Error for Wrapped {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

#[tokio::test]
async fn a_failure_is_one_line_that_says_what_comes_next_and_the_cause_of_its_cause() {
    let lines = Lines::default();
    let _listening = lines.listen();
    let place = place().await;
    let hour = dq_client::Backoff { base: HOUR, max: HOUR };
    place.queue.add("later", ()).attempts(3).backoff(hour).await.unwrap();
    place.queue.add("twice", ()).attempts(2).await.unwrap();
    place.queue.add("bury", ()).attempts(9).await.unwrap();
    let failed = Arc::new(AtomicUsize::new(0));
    let counting = failed.clone();
    let worker =
        Worker::new(place.client.clone(), fails).queue(&place.queue).on_error(move |_, failure| {
            assert!(!failure.to_string().is_empty());
            counting.fetch_add(1, Ordering::Relaxed);
        });
    let working = work(worker);
    place.counts(State::Dead, 2).await;
    place.counts(State::Delayed, 1).await;
    working.end().await;
    let only = |part: &str| {
        let with = lines.with(part);
        assert_eq!(with.len(), 1, "{part}: {:?}", lines.with(""));
        with[0].clone()
    };
    let later = only("\"later\"");
    assert!(later.contains("\"q\"") && later.contains("attempt 1 of 3"), "{later}");
    assert!(later.contains("no route: connection reset"), "{later}");
    assert!(later.contains("; again in "), "{later}");
    assert!(lines.with("\"twice\"")[0].contains("again at once"));
    assert!(lines.with("\"twice\"")[1].contains("attempt 2 of 2"));
    assert!(lines.with("\"twice\"")[1].contains("dead"));
    assert!(only("\"bury\"").contains("dead"));
    assert_eq!(failed.load(Ordering::Relaxed), 4);
}

#[tokio::test]
async fn a_queue_whose_jobs_are_tried_again_at_once_is_named_with_the_cure() {
    let lines = Lines::default();
    let _listening = lines.listen();
    let place: Place = place().await;
    let later = Queue::shared(place.client.connect().await.unwrap(), "later");
    let idle = |_: RunningJob| async { Ok::<(), Failure>(()) };
    later.add("a", ()).delay(HOUR).await.unwrap();
    let second = Duration::from_secs(1);
    later.alter().backoff(dq_client::Backoff { base: second, max: HOUR }).await.unwrap();
    place.queue.add("a", ()).delay(HOUR).await.unwrap();
    let worker = Worker::new(place.client.clone(), idle).queue(&place.queue).queue(&later);
    let working = work(worker);
    eventually(|| async { !lines.with("DQ.ALTER").is_empty() }).await;
    place.queue.add("b", ()).await.unwrap();
    eventually(|| async { place.queue.len().await.unwrap() == 1 }).await;
    working.end().await;
    assert_eq!(lines.with("DQ.ALTER \"q\" BACKOFF 1000 600000").len(), 1);
    assert_eq!(lines.with("DQ.ALTER").len(), 1);
}

#[tokio::test]
async fn a_handler_that_blocks_its_thread_is_named() {
    let lines = Lines::default();
    let _listening = lines.listen();
    let place = place().await;
    let blocks = |_: RunningJob| async {
        std::thread::sleep(Duration::from_millis(500));
        Ok::<(), Failure>(())
    };
    place.queue.add("a", ()).await.unwrap();
    let worker = Worker::new(place.client.clone(), blocks).queue(&place.queue);
    let working = work(worker.ttr(Duration::from_millis(900)));
    eventually(|| async { place.queue.len().await.unwrap() == 0 }).await;
    working.end().await;
    let line = &lines.with("spawn_blocking")[0];
    assert!(line.contains("\"q\"") && line.contains("\"a\""), "{line}");
}

/// Ask again later, without using up attempts: docs in README.md.
#[tokio::test]
async fn a_job_can_ask_again_later_without_using_up_attempts() {
    let place = place().await;
    place.queue.add("poll", 0).attempts(1).keep(HOUR).await.unwrap();
    let handler = |job: RunningJob| async move {
        let asked: i64 = job.body()?;
        if asked == 5 {
            return Ok(Done::new());
        }
        let again = NewJob::new(job.id(), asked + 1).attempts(1).keep(HOUR);
        let again = again.delay(Duration::from_millis(10));
        Ok::<_, Failure>(Done::new().keep(Duration::ZERO).add(again))
    };
    let working = work(Worker::new(place.client.clone(), handler).queue(&place.queue));
    place.counts(State::Done, 1).await;
    let job = place.job("poll").await;
    assert_eq!((job.body::<i64>().unwrap(), job.attempt), (5, 1));
    working.end().await;
}

/// A server closes the connection for a word that is longer than it takes.
#[tokio::test]
async fn a_result_that_makes_the_server_close_the_connection_costs_no_other_job() {
    let place = place().await;
    for number in 0..20 {
        place.queue.add(format!("{number}"), ()).keep(HOUR).await.unwrap();
    }
    place.queue.add("long", ()).attempts(1).await.unwrap();
    place.call(&["CONFIG", "SET", "proto-max-bulk-len", "1mb"]).await.unwrap();
    let handler = |job: RunningJob| async move {
        Ok::<_, Failure>((*job.id() == "long").then(|| "x".repeat(3 << 20)))
    };
    let worker = Worker::new(place.client.clone(), handler).queue(&place.queue).concurrency(50);
    let working = work(worker);
    place.counts(State::Done, 20).await;
    for number in 0..20 {
        assert_eq!(place.job(&number.to_string()).await.attempt, 1);
    }
    working.end().await;
}
