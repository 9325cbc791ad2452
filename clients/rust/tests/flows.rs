//! A flow is added as a whole, or not at all.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use common::{place, HOUR};
use dq_client::{chain, group, Error, Flow, NewJob, OnDead, State};

fn step(id: &str) -> NewJob {
    NewJob::new(id, "body")
}

fn abc(b: NewJob) -> Flow {
    chain([step("a").into(), b.into(), step("c").into()])
}

#[tokio::test]
async fn a_flow_that_is_refused_leaves_nothing() {
    let place = place().await;
    place.call(&["CONFIG", "SET", "dq.max-body-bytes", "20000"]).await.unwrap();
    let wide: Vec<Flow> = (0..10_001).map(|number| step(&format!("{number}")).into()).collect();
    let refused: [(Flow, &str); 9] = [
        (abc(step("taken")), "EXISTS"),
        (abc(step("done")), "EXISTS"),
        (abc(NewJob::new("b", "x".repeat(30_000))), "ERR"),
        (abc(step("b").priority(300)), "ERR"),
        (abc(step("b").ondead(OnDead::Hold).every(HOUR)), "ERR"),
        (abc(step("a")), "EXISTS"),
        (chain([group(wide), step("end").into()]), "ERR"),
        (group([step("a").into(), step("b").into(), step("taken").into()]), "EXISTS"),
        (dq_client::after(["no such job"], abc(step("b"))), "NOJOB"),
    ];
    for (flow, code) in refused {
        place.server.flush().await.unwrap();
        place.queue.add("taken", ()).delay(HOUR).await.unwrap();
        place.queue.add("done", ()).keep(HOUR).await.unwrap();
        let taken = place.queue.pop().await.unwrap();
        place.queue.finish([taken[0].held().unwrap()]).await.unwrap();
        let error = place.queue.start(flow).await.unwrap_err();
        assert_eq!(error.code(), Some(code), "{error}");
        assert_eq!(place.queue.len().await.unwrap(), 2, "{error}");
        assert!(place.queue.pop().await.unwrap().is_empty());
    }
}

#[tokio::test]
async fn a_flow_that_does_not_fit_leaves_nothing() {
    let place = place().await;
    place.queue.alter().maxjobs(2).await.unwrap();
    let error = place.queue.start(abc(step("b"))).await.unwrap_err();
    assert!(matches!(error, Error::Full(_)), "{error}");
    assert_eq!(place.queue.len().await.unwrap(), 0);
}

#[tokio::test]
async fn no_step_runs_before_the_whole_flow_is_there() {
    let place = place().await;
    // The stranger's job is done and kept: what waits for it would run at once.
    place.queue.add("b", ()).keep(HOUR).await.unwrap();
    let taken = place.queue.pop().await.unwrap();
    place.queue.finish([taken[0].held().unwrap()]).await.unwrap();
    place.queue.start(abc(step("b"))).await.unwrap_err();
    assert_eq!(place.queue.info().await.unwrap().unwrap().total_popped, 1);
    assert_eq!(place.queue.len().state(State::Done).await.unwrap(), 1);
    assert_eq!(place.queue.len().await.unwrap(), 1);
}

#[tokio::test]
async fn a_flow_that_is_added_runs_in_its_order_and_keeps_its_options() {
    let place = place().await;
    let flow = chain([
        group([step("a").group("HOLD").into(), step("b").into(), step("x").hold().into()]),
        step("c").ondead(OnDead::Hold).into(),
        step("d").delay(HOUR).into(),
    ]);
    let added = place.queue.start(flow).await.unwrap();
    assert_eq!(added.len(), 5);
    assert_eq!(place.queue.len().state(State::Ready).await.unwrap(), 2);
    assert_eq!(place.queue.len().state(State::Held).await.unwrap(), 3);
    assert!(place.job("x").await.edges.as_ref().unwrap().on_hold);
    place.queue.resume().id("x").await.unwrap();
    let taken = place.queue.pop().count(10).await.unwrap();
    assert_eq!(taken.len(), 3);
    place.queue.finish(taken.iter().map(|job| job.held().unwrap())).await.unwrap();
    let taken = place.queue.pop().count(10).await.unwrap();
    assert_eq!(taken[0].id, "c");
    place.queue.finish([taken[0].held().unwrap()]).await.unwrap();
    assert_eq!(place.state("d").await.as_deref(), Some("delayed"));
}

#[tokio::test]
async fn steps_that_are_there_already_stay_as_they_are() {
    let place = place().await;
    place.queue.add("b", ()).hold().await.unwrap();
    let added = place.queue.start(abc(step("b").nx())).await.unwrap();
    assert_eq!(added.iter().map(|each| each.is_added()).collect::<Vec<_>>(), [true, false, true]);
    assert!(place.job("b").await.edges.as_ref().unwrap().on_hold);
    assert_eq!(place.queue.pop().count(10).await.unwrap()[0].id, "a");
}

#[tokio::test]
async fn an_id_that_is_taken_is_named_with_its_queue() {
    let place = place().await;
    place.queue.add("order:17", ()).await.unwrap();
    let error = place.queue.add("order:17", ()).await.unwrap_err();
    let said = error.to_string();
    assert!(said.contains("\"order:17\"") && said.contains("\"q\""), "{said}");
    let mut pipeline = redis::pipe();
    let added = place.queue.add("order:17", ()).on(&mut pipeline).unwrap();
    use dq_client::Connector;
    let replies = place.client.connect().await.unwrap().send_all(pipeline).await.unwrap();
    let said = added.of(&replies).unwrap_err().to_string();
    assert!(said.contains("\"order:17\"") && said.contains("\"q\""), "{said}");
}
