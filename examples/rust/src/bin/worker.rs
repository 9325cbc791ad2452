//! Mails what is due: in batches, keeping its leases while it works, until it is told to stop.

use std::env;
use std::error::Error;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use redis::{cmd, Connection, RedisResult};
use signal_hook::consts::{SIGINT, SIGTERM};

const QUEUE: &str = "mail";
const BATCH: usize = 10;
/// How late a signal may be noticed.
const BLOCK_MS: u64 = 1_000;
/// Well below the TTR of any job in the queue.
const HEARTBEAT: Duration = Duration::from_millis(500);
/// A reason has 512 bytes, a character up to four.
const REASON_CHARS: usize = 128;

struct Job {
    id: String,
    body: String,
    lease: u64,
    attempt: u32,
    is_mine: AtomicBool,
}

enum Failure {
    /// The job was cancelled, or another worker has it.
    LeaseLost,
    /// Another attempt would fail as well.
    Hopeless(String),
    /// Another attempt may do better.
    Passing(String),
}

/// The work; here it is pretended.
fn mail(job: &Job) -> Result<(), Failure> {
    for address in job.body.split_whitespace() {
        if !address.contains('@') {
            return Err(Failure::Hopeless(format!("not an address: {address}")));
        }
        if address.ends_with("@down.example") {
            return Err(Failure::Passing("down.example does not answer".into()));
        }
        thread::sleep(Duration::from_millis(200));
        println!("sent {} to {address}", job.id);
        job.check()?;
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let url = env::var("REDIS_URL").unwrap_or_else(|_| "redis://127.0.0.1:6379".into());
    let client = redis::Client::open(url)?;
    let (mut server, mut pulse) = (client.get_connection()?, client.get_connection()?);
    let stopping = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGINT] {
        signal_hook::flag::register(signal, Arc::clone(&stopping))?;
    }

    while !stopping.load(Relaxed) {
        let jobs = pop(&mut server)?;
        thread::scope(|scope| {
            // Its end is the end of the batch, also of one that an error cuts short.
            let (_batch, end) = mpsc::channel();
            scope.spawn(|| heartbeat(&mut pulse, &jobs, end));
            jobs.iter().try_for_each(|job| {
                if stopping.load(Relaxed) {
                    job.settle(&mut server, "given back", "DQ.RELEASE", &["UNBEGUN"])
                } else {
                    job.work(&mut server)
                }
            })
        })?;
    }
    println!("stopped");
    Ok(())
}

fn pop(server: &mut Connection) -> RedisResult<Vec<Job>> {
    // Not broken off by a signal: its reply may be under way, with jobs.
    let popped: Option<Vec<(String, String, u64, u32)>> =
        cmd("DQ.POP").arg(QUEUE).arg("COUNT").arg(BATCH).arg("BLOCK").arg(BLOCK_MS).query(server)?;
    Ok(popped.unwrap_or_default().into_iter().map(Job::new).collect())
}

impl Job {
    fn new((id, body, lease, attempt): (String, String, u64, u32)) -> Job {
        Job { id, body, lease, attempt, is_mine: AtomicBool::new(true) }
    }

    fn check(&self) -> Result<(), Failure> {
        if self.is_mine.load(Relaxed) {
            Ok(())
        } else {
            Err(Failure::LeaseLost)
        }
    }

    fn work(&self, server: &mut Connection) -> RedisResult<()> {
        match self.check().and_then(|()| mail(self)) {
            Ok(()) => self.settle(server, "finished", "DQ.FINISH", &[]),
            Err(Failure::LeaseLost) => {
                self.report("lost");
                Ok(())
            }
            Err(Failure::Hopeless(why)) => {
                self.settle(server, &format!("buried, {why}"), "DQ.BURY", &["REASON", &reason(&why)])
            }
            // It comes back after its backoff.
            Err(Failure::Passing(why)) => {
                self.settle(server, &format!("failed, {why}"), "DQ.RELEASE", &["REASON", &reason(&why)])
            }
        }
    }

    /// Tells the queue what came of the job, by the lease: 0 says that it isn't ours any more.
    fn settle(
        &self,
        server: &mut Connection,
        outcome: &str,
        command: &str,
        options: &[&str],
    ) -> RedisResult<()> {
        self.is_mine.store(false, Relaxed);
        let is_accepted: bool =
            cmd(command).arg(QUEUE).arg(&self.id).arg(self.lease).arg(options).query(server)?;
        self.report(if is_accepted { outcome } else { "lost" });
        Ok(())
    }

    fn report(&self, outcome: &str) {
        println!("{}: {outcome}, attempt {}", self.id, self.attempt);
    }
}

fn reason(why: &str) -> String {
    why.chars().take(REASON_CHARS).collect()
}

/// Keeps the leases of a batch, also of the jobs not yet begun, on a connection of its own.
fn heartbeat(server: &mut Connection, jobs: &[Job], end: Receiver<()>) {
    while end.recv_timeout(HEARTBEAT) == Err(RecvTimeoutError::Timeout) {
        for job in jobs.iter().filter(|job| job.is_mine.load(Relaxed)) {
            match cmd("DQ.TOUCH").arg(QUEUE).arg(&job.id).arg(job.lease).query(server) {
                Ok(is_held) => _ = job.is_mine.fetch_and(is_held, Relaxed),
                // The next beat may get through.
                Err(error) => eprintln!("heartbeat: {error}"),
            }
        }
    }
}
