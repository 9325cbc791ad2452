//! What people build queues of when they have nothing but Redis: a list, a sorted set, a stream.
//! And SET, for scale.

use anyhow::{bail, ensure, Context, Result};

use crate::load::contestants::lua::now_ms;
use crate::load::session::{body, ensure_body, id, Delivery, Verbs};
use crate::wire::{encode, Token, Tokens};

/// A key for each job, and nothing else. Not a queue.
pub struct Set;

impl Verbs for Set {
    fn add(&mut self, out: &mut Vec<u8>, number: u64, _delay_ms: u64) -> usize {
        encode(out, &[&b"SET"[..], &id(number), &body(number)]);
        1
    }

    fn take(&mut self, _out: &mut Vec<u8>, _count: usize) -> usize {
        0
    }

    fn finish(&mut self, _out: &mut Vec<u8>, _deliveries: &[Delivery]) -> usize {
        0
    }

    fn keeps_what_is_taken(&self) -> bool {
        false
    }

    fn taken(&mut self, _reply: &[u8], _into: &mut Vec<Delivery>) -> Result<()> {
        bail!("nothing is taken from plain keys")
    }
}

/// LPUSH and RPOP: a job that was taken is gone, whatever becomes of its worker.
pub struct List;

/// As a list and a sorted set know no ids, the job's stands before its body.
fn element(number: u64) -> [u8; 116] {
    let mut element = [0; 116];
    element[..16].copy_from_slice(&id(number));
    element[16..].copy_from_slice(&body(number));
    element
}

fn delivery_of(element: &[u8]) -> Result<Delivery> {
    let (id, body) = element.split_at_checked(16).context("half a job")?;
    ensure_body(body)?;
    Ok(Delivery { id: id.to_vec(), lease: Vec::new() })
}

impl Verbs for List {
    fn add(&mut self, out: &mut Vec<u8>, number: u64, _delay_ms: u64) -> usize {
        encode(out, &[&b"LPUSH"[..], b"queue", &element(number)]);
        1
    }

    fn add_all(&mut self, out: &mut Vec<u8>, ids: std::ops::Range<u64>) -> usize {
        let elements: Vec<_> = ids.map(element).collect();
        let mut words: Vec<&[u8]> = vec![b"LPUSH", b"queue"];
        words.extend(elements.iter().map(|element| &element[..]));
        encode(out, &words);
        1
    }

    fn take(&mut self, out: &mut Vec<u8>, count: usize) -> usize {
        match count {
            1 => encode(out, &["RPOP", "queue"]),
            count => encode(out, &["RPOP", "queue", &count.to_string()]),
        }
        1
    }

    fn finish(&mut self, _out: &mut Vec<u8>, _deliveries: &[Delivery]) -> usize {
        0
    }

    fn keeps_what_is_taken(&self) -> bool {
        false
    }

    fn taken(&mut self, reply: &[u8], into: &mut Vec<Delivery>) -> Result<()> {
        for token in Tokens::of(reply) {
            if let Token::Bulk(element) = token? {
                into.push(delivery_of(element)?);
            }
        }
        Ok(())
    }
}

/// ZADD with the due time, and ZPOPMIN: it hands out what isn't due yet, and a job that was taken
/// is gone.
pub struct SortedSet;

impl Verbs for SortedSet {
    fn add(&mut self, out: &mut Vec<u8>, number: u64, delay_ms: u64) -> usize {
        let due = (now_ms() + delay_ms).to_string();
        encode(out, &[&b"ZADD"[..], b"queue", due.as_bytes(), &element(number)]);
        1
    }

    fn add_all(&mut self, out: &mut Vec<u8>, ids: std::ops::Range<u64>) -> usize {
        let due = now_ms().to_string();
        let elements: Vec<_> = ids.map(element).collect();
        let mut words: Vec<&[u8]> = vec![b"ZADD", b"queue"];
        words.extend(elements.iter().flat_map(|element| [due.as_bytes(), &element[..]]));
        encode(out, &words);
        1
    }

    fn take(&mut self, out: &mut Vec<u8>, count: usize) -> usize {
        match count {
            1 => encode(out, &["ZPOPMIN", "queue"]),
            count => encode(out, &["ZPOPMIN", "queue", &count.to_string()]),
        }
        1
    }

    fn finish(&mut self, _out: &mut Vec<u8>, _deliveries: &[Delivery]) -> usize {
        0
    }

    fn keeps_what_is_taken(&self) -> bool {
        false
    }

    /// Element and score in turn.
    fn taken(&mut self, reply: &[u8], into: &mut Vec<Delivery>) -> Result<()> {
        let mut is_element = true;
        for token in Tokens::of(reply) {
            if let Token::Bulk(bytes) = token? {
                if is_element {
                    into.push(delivery_of(bytes)?);
                }
                is_element = !is_element;
            }
        }
        Ok(())
    }
}

/// XADD, XREADGROUP of one group, XACK and XDEL: at least once, but nothing is delayed.
#[derive(Default)]
pub struct Stream {
    /// Half finished: of the two replies, one has come.
    halves: usize,
}

impl Verbs for Stream {
    fn add(&mut self, out: &mut Vec<u8>, number: u64, _delay_ms: u64) -> usize {
        encode(out, &[&b"XADD"[..], b"queue", b"*", b"id", &id(number), b"body", &body(number)]);
        1
    }

    fn take(&mut self, out: &mut Vec<u8>, count: usize) -> usize {
        let count = count.to_string();
        encode(
            out,
            &["XREADGROUP", "GROUP", "workers", "one", "COUNT", &count, "STREAMS", "queue", ">"],
        );
        1
    }

    fn finish(&mut self, out: &mut Vec<u8>, deliveries: &[Delivery]) -> usize {
        let ids = || deliveries.iter().map(|delivery| &*delivery.id);
        encode(
            out,
            &[&b"XACK"[..], b"queue", b"workers"].into_iter().chain(ids()).collect::<Vec<_>>(),
        );
        encode(out, &[&b"XDEL"[..], b"queue"].into_iter().chain(ids()).collect::<Vec<_>>());
        2
    }

    /// [[queue, [[entry's id, ["id", id, "body", body]] ...]]]
    fn taken(&mut self, reply: &[u8], into: &mut Vec<Delivery>) -> Result<()> {
        let mut strings = Vec::new();
        for token in Tokens::of(reply) {
            if let Token::Bulk(bytes) = token? {
                strings.push(bytes);
            }
        }
        for entry in strings.get(1..).unwrap_or_default().chunks(5) {
            ensure!(entry.len() == 5, "half an entry");
            ensure_body(entry[4])?;
            into.push(Delivery { id: entry[0].to_vec(), lease: Vec::new() });
        }
        Ok(())
    }

    /// XACK and XDEL both say how many: a job is finished by the two.
    fn finished(&mut self, reply: &[u8]) -> Result<usize> {
        let count: usize = match Tokens::of(reply).next() {
            Some(Ok(Token::Integer(digits))) => std::str::from_utf8(digits)?.parse()?,
            other => bail!("not a number: {other:?}"),
        };
        self.halves += count;
        let whole = self.halves / 2;
        self.halves %= 2;
        Ok(whole)
    }
}
