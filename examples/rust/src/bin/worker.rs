//! Sends the mail that is due: in batches, renewing its leases while it works, until it is told to
//! stop.
//!
//! It survives outages of its server: it waits and tries again. Its leases stay valid.

use std::env;
use std::error::Error;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use redis::{cmd, Client, Cmd, Connection, ErrorKind, FromRedisValue, RedisError, RedisResult};
use signal_hook::consts::{SIGINT, SIGTERM};

const QUEUE: &str = "mail";
const BATCH: usize = 10;
/// How late a signal may be noticed.
const BLOCK_MS: u64 = 1_000;
/// Well below the TTR of any job in the queue.
const HEARTBEAT: Duration = Duration::from_millis(500);
/// For a reply: more than `BLOCK_MS`.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Between two tries.
const PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// How long a worker that stops tries to say what came of its jobs.
const GRACE: Duration = Duration::from_secs(5);
/// A reason has 512 bytes, a character up to four.
const REASON_CHARS: usize = 128;
/// Errors that waiting doesn't mend. Others pass: LOADING, READONLY, UNBLOCKED, CLUSTERDOWN and so
/// on.
const MISTAKES: [&str; 5] = ["ERR", "WRONGTYPE", "NOAUTH", "NOPERM", "WRONGPASS"];

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

/// The work; here it is pretended. It may be done twice, so it has to be idempotent.
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
    let stopping = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGINT] {
        signal_hook::flag::register(signal, Arc::clone(&stopping))?;
    }
    // The main thread takes the signals. In the worker's thread they would break off DQ.POP, whose
    // reply may be on the way, with jobs.
    let worker = thread::spawn(move || run(&stopping));
    worker.join().map_err(|_| "the worker panicked")??;
    println!("stopped");
    Ok(())
}

fn run(stopping: &Arc<AtomicBool>) -> RedisResult<()> {
    let url = env::var("REDIS_URL").unwrap_or_else(|_| "redis://127.0.0.1:6379".into());
    let mut server = Server::new(&url, stopping)?;
    let mut pulse = Server::new(&url, stopping)?;

    while !server.is_stopping() {
        let jobs = pop(&mut server)?;
        thread::scope(|scope| {
            // Its end is the end of the batch, also of one that an error cuts short.
            let (_batch, end) = mpsc::channel();
            scope.spawn(|| heartbeat(&mut pulse, &jobs, end));
            jobs.iter().try_for_each(|job| {
                if server.is_stopping() {
                    job.settle(&mut server, "given back", "DQ.RELEASE", &["UNBEGUN"])
                } else {
                    job.work(&mut server)
                }
            })
        })?;
    }
    Ok(())
}

fn pop(server: &mut Server) -> RedisResult<Vec<Job>> {
    let mut command = cmd("DQ.POP");
    command.arg(QUEUE).arg("COUNT").arg(BATCH).arg("BLOCK").arg(BLOCK_MS);
    let (popped, _) = server.ask::<Option<Vec<_>>>("DQ.POP", &command, Server::is_stopping)?;
    Ok(popped.flatten().unwrap_or_default().into_iter().map(Job::new).collect())
}

/// A connection that is opened anew after each error: its address may lead to another server by
/// then.
struct Server {
    client: Client,
    connection: Option<Connection>,
    stopping: Arc<AtomicBool>,
    stopping_since: Option<Instant>,
}

impl Server {
    fn new(url: &str, stopping: &Arc<AtomicBool>) -> RedisResult<Server> {
        let client = Client::open(url)?;
        Ok(Server {
            client,
            connection: None,
            stopping: Arc::clone(stopping),
            stopping_since: None,
        })
    }

    fn is_stopping(&mut self) -> bool {
        self.stopping.load(Relaxed)
    }

    fn is_out_of_time(&mut self) -> bool {
        self.is_stopping() && self.stopping_since.get_or_insert_with(Instant::now).elapsed() > GRACE
    }

    fn send<T: FromRedisValue>(&mut self, command: &Cmd) -> RedisResult<T> {
        let connection = match &mut self.connection {
            Some(connection) => connection,
            None => {
                let connection = self.client.get_connection_with_timeout(TIMEOUT)?;
                connection.set_read_timeout(Some(TIMEOUT))?;
                self.connection.insert(connection)
            }
        };
        command.query(connection).inspect_err(|_| self.connection = None)
    }

    /// Sends a command until it is answered: the reply, `None` when it gave up, and how many tries
    /// it took.
    fn ask<T: FromRedisValue>(
        &mut self,
        name: &str,
        command: &Cmd,
        gives_up: fn(&mut Server) -> bool,
    ) -> RedisResult<(Option<T>, u32)> {
        let mut pause = PAUSE;
        let mut tries = 1;
        loop {
            match self.send(command) {
                Ok(reply) => return Ok((Some(reply), tries)),
                Err(error) if is_mistake(&error) => return Err(error),
                Err(error) => complain(name, &error),
            }
            if gives_up(self) {
                return Ok((None, tries));
            }
            thread::sleep(pause.mul_f64(0.5 + fastrand::f64() / 2.0)); // not all workers at once
            pause = LONGEST_PAUSE.min(pause * 2);
            tries += 1;
        }
    }
}

/// In one write. `eprintln!` makes several, and the other thread's lines get between them.
fn complain(name: &str, error: &RedisError) {
    _ = io::stderr().write_all(format!("{name}: {error}\n").as_bytes());
}

fn is_mistake(error: &RedisError) -> bool {
    match error.code() {
        Some(code) => MISTAKES.contains(&code),
        None => error.kind() != ErrorKind::Io,
    }
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

    fn work(&self, server: &mut Server) -> RedisResult<()> {
        match self.check().and_then(|()| mail(self)) {
            Ok(()) => self.settle(server, "finished", "DQ.FINISH", &[]),
            Err(Failure::LeaseLost) => {
                self.report("lost");
                Ok(())
            }
            Err(Failure::Hopeless(why)) => self.settle(
                server,
                &format!("buried, {why}"),
                "DQ.BURY",
                &["REASON", &reason(&why)],
            ),
            // It comes back after its backoff.
            Err(Failure::Passing(why)) => self.settle(
                server,
                &format!("failed, {why}"),
                "DQ.RELEASE",
                &["REASON", &reason(&why)],
            ),
        }
    }

    /// Reports what came of the job, with its lease. 0 means that it isn't ours any more.
    fn settle(
        &self,
        server: &mut Server,
        outcome: &str,
        name: &str,
        options: &[&str],
    ) -> RedisResult<()> {
        self.is_mine.store(false, Relaxed);
        let mut command = cmd(name);
        command.arg(QUEUE).arg(&self.id).arg(self.lease).arg(options);
        match server.ask(name, &command, Server::is_out_of_time)? {
            (Some(true), _) => self.report(outcome),
            (Some(false), 1) => self.report("lost"),
            // A try whose reply was lost may have been accepted.
            (Some(false), _) => self.report(&format!("{outcome} before, or lost")),
            // When its lease runs out, it comes back.
            (None, _) => self.report(&format!("{outcome}, but the server can't be told")),
        }
        Ok(())
    }

    fn report(&self, outcome: &str) {
        println!("{}: {outcome}, attempt {}", self.id, self.attempt);
    }
}

fn reason(why: &str) -> String {
    why.chars().take(REASON_CHARS).collect()
}

/// Renews the leases of a batch, also of the jobs not yet begun, on a connection of its own.
fn heartbeat(server: &mut Server, jobs: &[Job], end: Receiver<()>) {
    while end.recv_timeout(HEARTBEAT) == Err(RecvTimeoutError::Timeout) {
        for job in jobs.iter().filter(|job| job.is_mine.load(Relaxed)) {
            match server.send(cmd("DQ.TOUCH").arg(QUEUE).arg(&job.id).arg(job.lease)) {
                Ok(is_held) => _ = job.is_mine.fetch_and(is_held, Relaxed),
                Err(error) => {
                    complain("heartbeat", &error);
                    break; // the next beat may get through
                }
            }
        }
    }
}
