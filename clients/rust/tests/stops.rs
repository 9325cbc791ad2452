//! A signal ends the process of a worker, whatever its handlers do.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use common::{place, Place, WITHIN};

struct Stubborn {
    process: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl Stubborn {
    /// With a handler that has begun.
    async fn start(place: &Place, runtime: &str, handler: &str) -> Self {
        place.queue.add("a", handler).attempts(1).await.unwrap();
        let built = std::env::current_exe().unwrap();
        let program = built.ancestors().nth(2).unwrap().join("examples/stubborn");
        let mut command = Command::new(program);
        command.args([&place.server.url(), runtime]).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let mut started = Self { process, lines };
        assert_eq!(started.line(), "begun a");
        started
    }

    fn line(&mut self) -> String {
        self.lines.next().unwrap().unwrap()
    }

    fn signal(&self) {
        let pid = self.process.id().to_string();
        assert!(Command::new("kill").args(["-s", "TERM", &pid]).status().unwrap().success());
    }

    async fn end(&mut self) -> ExitStatus {
        let deadline = Instant::now() + WITHIN;
        loop {
            if let Some(status) = self.process.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < deadline, "it goes on");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

impl Drop for Stubborn {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[tokio::test]
async fn a_handler_that_does_not_look_whether_its_job_is_lost_ends_with_its_worker() {
    let place = place().await;
    let mut worker = Stubborn::start(&place, "many", "deaf").await;
    worker.signal();
    assert_eq!(worker.line(), "ended");
    assert!(worker.end().await.success());
    assert_eq!(place.job("a").await.attempt, 0);
}

#[tokio::test]
async fn a_handler_that_blocks_a_thread_does_not_keep_the_process_alive() {
    for handler in ["blocks", "blocking"] {
        let place = place().await;
        let mut worker = Stubborn::start(&place, "many", handler).await;
        worker.signal();
        assert_eq!(worker.line(), "ended");
        assert_eq!(worker.end().await.code(), Some(1), "{handler}");
        // The job was given back.
        assert_eq!(place.job("a").await.attempt, 0, "{handler}");
    }
}

#[tokio::test]
async fn a_handler_that_blocks_the_whole_runtime_does_not_keep_the_process_alive() {
    let place = place().await;
    let mut worker = Stubborn::start(&place, "one", "blocks").await;
    let begun = Instant::now();
    worker.signal();
    tokio::time::sleep(Duration::from_millis(200)).await;
    worker.signal();
    tokio::time::sleep(Duration::from_millis(200)).await;
    worker.signal();
    assert_eq!(worker.end().await.code(), Some(1));
    // Without the other signals it would take fifteen seconds.
    assert!(begun.elapsed() < Duration::from_secs(12));
    let mut worker = Stubborn::start(&self::place().await, "one", "blocks").await;
    worker.signal();
    assert_eq!(worker.end().await.code(), Some(1));
}
