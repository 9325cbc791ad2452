//! Workers while the server is away, is another one, or refuses: no job runs twice for that.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::Duration;

use common::{eventually, place, work, Fault, Gate, Lines, Place, HOUR};
use dq_client::testing::Server;
use dq_client::worker::{Failure, RunningJob, Worker};
use dq_client::{Connector, NewJob, Queue, State};
use tokio::sync::Semaphore;

const TTR: Duration = Duration::from_millis(900);

fn ids(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("job:{number}")).collect()
}

async fn add(place: &Place, queue: &Queue, count: usize) {
    let mut pipeline = redis::pipe();
    for id in ids(count) {
        queue.add(id, ()).keep(HOUR).on(&mut pipeline).unwrap();
    }
    place.client.connect().await.unwrap().send_all(pipeline).await.unwrap();
}

/// Each job is done, at its first attempt.
async fn each_ran_once(queue: &Queue, count: usize) {
    let is_done = || async { queue.len().state(State::Done).await.unwrap() == count as i64 };
    eventually(is_done).await;
    for id in ids(count) {
        let job = queue.get(&id).await.unwrap().unwrap();
        assert_eq!((job.attempt, job.timed_out), (1, 0), "{id}");
    }
}

/// Works for a while.
async fn slow(_: RunningJob) -> Result<(), Failure> {
    tokio::time::sleep(TTR / 2).await;
    Ok(())
}

#[tokio::test]
async fn an_outage_longer_than_the_ttr_costs_no_job_an_attempt() {
    let place = place().await;
    let gate = Gate::new(&place.client);
    gate.set("", Fault::Cut);
    let working = work(Worker::new(gate.clone(), slow).queue(&place.queue).ttr(TTR));
    add(&place, &place.queue, 10).await;
    tokio::time::sleep(2 * TTR).await;
    gate.open();
    each_ran_once(&place.queue, 10).await;
    working.end().await;
}

#[tokio::test]
async fn a_command_that_is_carried_out_later_than_the_ttr_costs_no_job_an_attempt() {
    let place = place().await;
    let gate = Gate::new(&place.client);
    gate.set("DQ.POP", Fault::Late(2 * TTR));
    add(&place, &place.queue, 10).await;
    let working = work(Worker::new(gate.clone(), slow).queue(&place.queue).ttr(TTR));
    each_ran_once(&place.queue, 10).await;
    gate.open();
    working.end().await;
}

/// What waits for permits that the test gives.
fn waiting(
    goes: &Arc<Semaphore>,
) -> impl Fn(RunningJob) -> futures_util::future::BoxFuture<'static, Result<(), Failure>> {
    let goes = goes.clone();
    move |_| {
        let goes = goes.clone();
        Box::pin(async move {
            goes.acquire().await.unwrap().forget();
            Ok(())
        })
    }
}

#[tokio::test]
async fn after_a_planned_failover_the_new_primary_hears_what_came_of_the_jobs() {
    let (old, new) = (place().await, place().await);
    add(&old, &old.queue, 11).await;
    let gate = Gate::new(&old.client);
    let goes = Arc::new(Semaphore::new(0));
    let working = work(Worker::new(gate.clone(), waiting(&goes)).queue(&old.queue).ttr(10 * TTR));
    old.counts(State::Reserved, 10).await;
    // All its connections are there, and stay.
    goes.add_permits(1);
    old.counts(State::Done, 1).await;
    old.counts(State::Reserved, 10).await;
    new.call(&["REPLICAOF", "127.0.0.1", &port(&old.server)]).await.unwrap();
    let is_there = || async { new.queue.len().await.unwrap_or(0) == 11 };
    eventually(is_there).await;
    new.call(&["REPLICAOF", "NO", "ONE"]).await.unwrap();
    old.call(&["REPLICAOF", "127.0.0.1", &port(&new.server)]).await.unwrap();
    gate.lead_to(&new.client);
    goes.add_permits(10);
    each_ran_once(&new.queue, 11).await;
    working.end().await;
}

fn port(server: &Server) -> String {
    server.url().trim_end_matches('/').rsplit(':').next().unwrap().to_owned()
}

#[tokio::test]
async fn a_node_that_is_away_costs_the_jobs_of_the_others_nothing() {
    let place = place().await;
    let (well, away) =
        (place.queue.clone(), Queue::shared(place.client.connect().await.unwrap(), "b"));
    let gate = Gate::of_cluster(&place.client);
    let goes = Arc::new(Semaphore::new(0));
    let worker = Worker::new(gate.clone(), waiting(&goes)).queue(&well).queue(&away);
    let working = work(worker.concurrency(40).ttr(TTR));
    add(&place, &away, 10).await;
    eventually(|| async { away.len().state(State::Reserved).await.unwrap() == 10 }).await;
    gate.set("b", Fault::Silent);
    // Those of the node end first, and their outcomes can't be sent.
    goes.add_permits(10);
    tokio::time::sleep(TTR / 4).await;
    goes.add_permits(10);
    add(&place, &well, 10).await;
    each_ran_once(&well, 10).await;
    gate.open();
    working.end().await;
}

#[tokio::test]
async fn a_finished_job_keeps_its_lease_until_the_server_is_told() {
    let place = place().await;
    let gate = Gate::new(&place.client);
    gate.set("DQ.FINISH", Fault::Cut);
    add(&place, &place.queue, 10).await;
    let fast = |_: RunningJob| async { Ok::<(), Failure>(()) };
    let working = work(Worker::new(gate.clone(), fast).queue(&place.queue).ttr(TTR));
    place.counts(State::Reserved, 10).await;
    tokio::time::sleep(3 * TTR).await;
    gate.open();
    each_ran_once(&place.queue, 10).await;
    working.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn more_jobs_in_hand_than_one_renew_takes_keep_their_leases() {
    const MANY: usize = 35_000;
    let ttr = Duration::from_secs(3);
    let place = place().await;
    let mut pipeline = redis::pipe();
    for id in ids(MANY) {
        place.queue.add(id, ()).on(&mut pipeline).unwrap();
    }
    place.client.connect().await.unwrap().send_all(pipeline).await.unwrap();
    let goes = Arc::new(Semaphore::new(0));
    let worker = Worker::new(place.client.clone(), waiting(&goes)).queue(&place.queue);
    let working = work(worker.concurrency(MANY).ttr(ttr));
    place.counts(State::Reserved, MANY as i64).await;
    tokio::time::sleep(3 * ttr).await;
    goes.add_permits(MANY);
    eventually(|| async { place.queue.len().await.unwrap() == 0 }).await;
    let info = place.queue.info().await.unwrap();
    assert_eq!(info.map_or(0, |info| info.total_timed_out), 0);
    working.end().await;
}

#[tokio::test]
async fn a_worker_that_cannot_tell_takes_no_more_jobs_than_it_can_keep() {
    const MANY: usize = 15_000;
    let place = place().await;
    let gate = Gate::new(&place.client);
    gate.set("DQ.FINISH", Fault::Cut);
    add(&place, &place.queue, MANY).await;
    let begun = Arc::new(AtomicUsize::new(0));
    let counting = begun.clone();
    let count = move |_: RunningJob| {
        counting.fetch_add(1, Ordering::Relaxed);
        async { Ok::<(), Failure>(()) }
    };
    let worker = Worker::new(gate.clone(), count).queue(&place.queue).concurrency(500);
    let working = work(worker);
    let is_full = || async { begun.load(Ordering::Relaxed) >= 10_000 };
    eventually(is_full).await;
    tokio::time::sleep(TTR).await;
    assert!(begun.load(Ordering::Relaxed) <= 10_500);
    gate.open();
    each_ran_once(&place.queue, MANY).await;
    working.end().await;
}

#[tokio::test]
async fn declared_schedules_come_back_when_the_data_is_lost() {
    let place = place().await;
    let idle = |_: RunningJob| async { Ok::<(), Failure>(()) };
    let tick = NewJob::new("tick", ()).every(HOUR);
    let worker = Worker::new(place.client.clone(), idle).queue(&place.queue);
    let working = work(worker.schedule(&place.queue, tick));
    let is_there = || async { place.queue.get("tick").await.unwrap().is_some() };
    eventually(is_there).await;
    place.server.flush().await.unwrap();
    place.call(&["CLIENT", "KILL", "TYPE", "normal"]).await.unwrap();
    let queue = Queue::shared(place.client.connect().await.unwrap(), "q");
    eventually(|| async { queue.get("tick").await.unwrap().is_some() }).await;
    working.end().await;
}

#[tokio::test]
async fn a_server_without_room_for_clients_is_waited_for() {
    for (protocol, password) in
        [("resp2", ""), ("resp3", ""), ("resp2", ":secret@"), ("resp3", ":secret@")]
    {
        let place = place().await;
        if !password.is_empty() {
            place.call(&["CONFIG", "SET", "requirepass", "secret"]).await.unwrap();
        }
        let url = place.server.url().replace("redis://", &format!("redis://{password}"));
        let client = redis::Client::open(format!("{url}?protocol={protocol}")).unwrap();
        let observer = client.connect().await.unwrap();
        let queue = Queue::shared(observer.clone(), "q");
        let idle = |_: RunningJob| async { Ok::<(), Failure>(()) };
        let working = work(Worker::new(client.clone(), idle).queue(&queue).ttr(TTR));
        queue.add("a", ()).keep(HOUR).await.unwrap();
        eventually(|| async { queue.result("a").await.unwrap().unwrap().is_done() }).await;

        let mut limit = redis::cmd("CONFIG");
        observer.send(limit.arg(&["SET", "maxclients", "1"]).to_owned()).await.unwrap();
        let mut kill = redis::cmd("CLIENT");
        observer
            .send(kill.arg(&["KILL", "TYPE", "normal", "SKIPME", "yes"]).to_owned())
            .await
            .unwrap();
        tokio::time::sleep(Duration::from_millis(700)).await;
        assert!(working.is_up(), "{protocol} {password}");
        let mut limit = redis::cmd("CONFIG");
        observer.send(limit.arg(&["SET", "maxclients", "100"]).to_owned()).await.unwrap();
        queue.add("b", ()).keep(HOUR).await.unwrap();
        eventually(|| async { queue.result("b").await.unwrap().unwrap().is_done() }).await;
        working.end().await;
    }
}

#[tokio::test]
async fn an_outage_is_a_line_at_its_begin_and_one_at_its_end_with_the_address() {
    let lines = Lines::default();
    let _listening = lines.listen();
    let place = place().await;
    let gate = Gate::new(&place.client);
    gate.set("DQ.FINISH", Fault::Cut);
    let idle = |_: RunningJob| async { Ok::<(), Failure>(()) };
    let working = work(Worker::new(gate.clone(), idle).queue(&place.queue).ttr(10 * TTR));
    add(&place, &place.queue, 50).await;
    place.counts(State::Reserved, 50).await;
    gate.set("", Fault::Cut);
    tokio::time::sleep(2 * TTR).await;
    gate.open();
    each_ran_once(&place.queue, 50).await;
    eventually(|| async { !lines.with("answers again").is_empty() }).await;
    assert_eq!(lines.with("db.example:6379 doesn't answer").len(), 1, "{:?}", lines.with(""));
    assert_eq!(lines.with("db.example:6379 answers again").len(), 1);
    working.end().await;
}
