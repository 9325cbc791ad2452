//! One thread that drives many connections, each with one pipeline under way, as redis-benchmark
//! does.
//!
//! A closed loop: it asks what a server can do, and who waits for whom doesn't matter. Latencies
//! under such a load would be those of the pipelines, so none is measured here; the rows that speak
//! of latency have a schedule of their own.

use std::io::{ErrorKind, Read, Write};
use std::time::{Duration, Instant};

use anyhow::{ensure, Context, Result};
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};

use super::session::Session;
use crate::wire::Protocol;

const SILENCE: Duration = Duration::from_secs(60);
const READ_BYTES: usize = 128 * 1024;

pub struct Goal {
    /// Jobs that are done before the measurement begins.
    pub warm_up: usize,
    /// Jobs that are measured.
    pub jobs: usize,
    /// After so long it is over, however many were done.
    pub at_most: Duration,
}

pub struct Outcome {
    pub jobs: usize,
    pub took: Duration,
}

struct Client {
    stream: TcpStream,
    session: Session,
    /// What is still to be sent.
    unsent: Vec<u8>,
    replies_missing: usize,
    buffer: Vec<u8>,
    filled: usize,
}

/// Runs until the goal is reached. `begin` is called when the warm-up is over, `end` when the last
/// job is done.
pub fn run(
    port: u16,
    protocol: Protocol,
    sessions: Vec<Session>,
    goal: &Goal,
    begin: impl FnOnce() -> Result<()>,
    end: impl FnOnce() -> Result<()>,
) -> Result<Outcome> {
    run_at(&[port], protocol, sessions, goal, begin, end)
}

/// The same at several servers, to which the sessions are dealt out.
pub fn run_at(
    ports: &[u16],
    protocol: Protocol,
    sessions: Vec<Session>,
    goal: &Goal,
    begin: impl FnOnce() -> Result<()>,
    end: impl FnOnce() -> Result<()>,
) -> Result<Outcome> {
    let mut poll = Poll::new()?;
    let mut clients = Vec::new();
    for ((number, session), port) in sessions.into_iter().enumerate().zip(ports.iter().cycle()) {
        clients.push(Client::connect(*port, session, &poll, Token(number))?);
    }
    let mut begin = Some(begin);
    let mut began = Instant::now();
    if goal.warm_up == 0 {
        begin.take().context("begins once")?()?;
        began = Instant::now();
    }
    for client in &mut clients {
        client.next_turn()?;
    }

    let mut events = Events::with_capacity(clients.len());
    let (mut done, mut warm) = (0, 0);
    loop {
        poll.poll(&mut events, Some(SILENCE))?;
        ensure!(!events.is_empty(), "the server has been silent for {SILENCE:?}");
        for event in &events {
            done += clients[event.token().0].go_on(protocol)?;
        }
        if begin.is_some() && done >= goal.warm_up {
            begin.take().context("begins once")?()?;
            (warm, began) = (done, Instant::now());
        }
        if begin.is_none() && (done - warm >= goal.jobs || began.elapsed() >= goal.at_most) {
            let took = began.elapsed();
            end()?;
            return Ok(Outcome { jobs: done - warm, took });
        }
    }
}

impl Client {
    fn connect(port: u16, session: Session, poll: &Poll, token: Token) -> Result<Client> {
        let stream = std::net::TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let mut stream = TcpStream::from_std(stream);
        poll.registry().register(&mut stream, token, Interest::READABLE | Interest::WRITABLE)?;
        let buffer = vec![0; READ_BYTES];
        Ok(Client { stream, session, unsent: Vec::new(), replies_missing: 0, buffer, filled: 0 })
    }

    fn next_turn(&mut self) -> Result<()> {
        self.replies_missing = self.session.send(&mut self.unsent);
        self.write()
    }

    fn write(&mut self) -> Result<()> {
        while !self.unsent.is_empty() {
            match self.stream.write(&self.unsent) {
                Ok(count) => drop(self.unsent.drain(..count)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error).context("sending"),
            }
        }
        Ok(())
    }

    /// Reads and writes what can be; returns how many jobs were completed.
    fn go_on(&mut self, protocol: Protocol) -> Result<usize> {
        self.write()?;
        let mut done = 0;
        // Events tell of changes only: all there is has to be read.
        loop {
            if self.filled == self.buffer.len() {
                self.buffer.resize(self.buffer.len() * 2, 0);
            }
            match self.stream.read(&mut self.buffer[self.filled..]) {
                Ok(0) => anyhow::bail!("the server closed a connection"),
                Ok(count) => self.filled += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(done),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error).context("receiving"),
            }
            done += self.take_replies(protocol)?;
        }
    }

    fn take_replies(&mut self, protocol: Protocol) -> Result<usize> {
        let mut at = 0;
        while self.replies_missing > 0 {
            let bytes = &self.buffer[..self.filled];
            let Some(end) = protocol.end_of_reply(bytes, at)? else { break };
            self.session.receive(&bytes[at..end])?;
            self.replies_missing -= 1;
            at = end;
        }
        self.buffer.copy_within(at..self.filled, 0);
        self.filled -= at;
        if self.replies_missing > 0 {
            return Ok(0);
        }
        let done = self.session.end_turn()?;
        self.next_turn()?;
        Ok(done)
    }
}
