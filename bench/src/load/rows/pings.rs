//! A client that sends a ping each millisecond, whether or not the last one has been answered.
//!
//! Each is measured from when it should have been sent: a server that stands still for 50 ms makes
//! fifty of them late, and not one (leaving out the others is what wrk2 calls coordinated
//! omission).

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{anyhow, ensure, Context as _, Result};
use hdrhistogram::Histogram;

use crate::wire::Protocol;

const EVERY: Duration = Duration::from_millis(1);
const LONGEST_SILENCE: Duration = Duration::from_secs(60);

/// How long pings take while something else is done, in microseconds.
pub fn ping_while(
    port: u16,
    protocol: Protocol,
    work: impl FnOnce() -> Result<()>,
) -> Result<Histogram<u64>> {
    let stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_nodelay(true)?;
    // Long enough not to matter, short enough to notice that it is over.
    stream.set_read_timeout(Some(Duration::from_millis(50)))?;
    let over = AtomicBool::new(false);
    let sent = AtomicU64::new(0);
    let begin = Instant::now();
    thread::scope(|scope| {
        let sender = scope.spawn(|| send_until(&over, &sent, begin, &stream, protocol));
        let receiver = scope.spawn(|| receive_until(&over, &sent, begin, &stream));
        let worked = work();
        over.store(true, Ordering::SeqCst);
        let broken = |_| anyhow!("the ping client broke down");
        let sending = sender.join().map_err(broken)?;
        let waits = receiver.join().map_err(broken)?;
        worked.and(sending).and(waits)
    })
}

fn due(begin: Instant, number: u64) -> Instant {
    begin + EVERY.saturating_mul(number as u32)
}

fn send_until(
    over: &AtomicBool,
    sent: &AtomicU64,
    begin: Instant,
    mut stream: &TcpStream,
    protocol: Protocol,
) -> Result<()> {
    // Each is answered by a line.
    let command: &[u8] = match protocol {
        Protocol::Resp => b"PING\r\n",
        Protocol::Beanstalk => b"use default\r\n",
    };
    for number in 0.. {
        thread::sleep(due(begin, number).saturating_duration_since(Instant::now()));
        if over.load(Ordering::SeqCst) {
            break;
        }
        sent.fetch_add(1, Ordering::SeqCst);
        stream.write_all(command).context("sending a ping")?;
    }
    Ok(())
}

fn receive_until(
    over: &AtomicBool,
    sent: &AtomicU64,
    begin: Instant,
    mut stream: &TcpStream,
) -> Result<Histogram<u64>> {
    let mut waits = Histogram::new(3)?;
    let mut buffer = [0; 4096];
    let mut answered = 0;
    let mut heard = Instant::now();
    while !over.load(Ordering::SeqCst) || answered < sent.load(Ordering::SeqCst) {
        let count = match stream.read(&mut buffer) {
            Ok(0) => anyhow::bail!("the server closed the ping client's connection"),
            Ok(count) => count,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                ensure!(
                    heard.elapsed() < LONGEST_SILENCE,
                    "no ping was answered for {LONGEST_SILENCE:?}"
                );
                continue;
            }
            Err(error) => return Err(error).context("receiving a ping's answer"),
        };
        heard = Instant::now();
        for _ in memchr::memchr_iter(b'\n', &buffer[..count]) {
            let wait = heard.saturating_duration_since(due(begin, answered));
            waits.record(wait.as_micros() as u64)?;
            answered += 1;
        }
    }
    Ok(waits)
}
