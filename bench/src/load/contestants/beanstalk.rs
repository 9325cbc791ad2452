//! beanstalkd: a work queue of its own, with delays in whole seconds.

use std::io::Write;

use anyhow::{bail, ensure, Context, Result};

use crate::load::session::{body, ensure_body, Delivery, Verbs, BODY_BYTES, TTR_MS};

pub struct Beanstalk;

impl Verbs for Beanstalk {
    /// The server numbers its jobs itself.
    fn add(&mut self, out: &mut Vec<u8>, number: u64, delay_ms: u64) -> usize {
        put(out, &body(number), delay_ms / 1000);
        1
    }

    fn take(&mut self, out: &mut Vec<u8>, count: usize) -> usize {
        for _ in 0..count {
            out.extend_from_slice(b"reserve-with-timeout 0\r\n");
        }
        count
    }

    fn finish(&mut self, out: &mut Vec<u8>, deliveries: &[Delivery]) -> usize {
        for delivery in deliveries {
            out.extend_from_slice(b"delete ");
            out.extend_from_slice(&delivery.id);
            out.extend_from_slice(b"\r\n");
        }
        deliveries.len()
    }

    fn added(&mut self, reply: &[u8]) -> Result<()> {
        ensure!(
            reply.starts_with(b"INSERTED "),
            "beanstalkd says: {}",
            String::from_utf8_lossy(reply).trim_end()
        );
        Ok(())
    }

    fn taken(&mut self, reply: &[u8], into: &mut Vec<Delivery>) -> Result<()> {
        if reply == b"TIMED_OUT\r\n" {
            return Ok(());
        }
        into.push(Delivery { id: reserved(reply)?.to_vec(), lease: Vec::new() });
        Ok(())
    }

    fn finished(&mut self, reply: &[u8]) -> Result<usize> {
        Ok(usize::from(reply == b"DELETED\r\n"))
    }
}

pub fn put(out: &mut Vec<u8>, body: &[u8], delay_s: u64) {
    // A buffer takes whatever is written.
    let _ = write!(out, "put 1024 {delay_s} {} {}\r\n", TTR_MS / 1000, body.len());
    out.extend_from_slice(body);
    out.extend_from_slice(b"\r\n");
}

/// The id in "RESERVED id bytes", whose body has to be ours.
fn reserved(reply: &[u8]) -> Result<&[u8]> {
    let Some(rest) = reply.strip_prefix(b"RESERVED ") else {
        bail!("beanstalkd says: {}", String::from_utf8_lossy(reply).trim_end())
    };
    let line_end = memchr::memchr(b'\r', rest).context("half a line")?;
    ensure_body(rest.get(line_end + 2..line_end + 2 + BODY_BYTES).context("half a body")?)?;
    rest[..line_end].split(|byte| *byte == b' ').next().context("no id")
}
