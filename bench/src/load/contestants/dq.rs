//! DQ itself.

use anyhow::{bail, Context, Result};

use crate::load::session::{body, ensure_body, id, Delivery, Verbs, TTR_MS};
use crate::wire::{encode, Token, Tokens};

pub struct Dq;

impl Verbs for Dq {
    fn add(&mut self, out: &mut Vec<u8>, number: u64, delay_ms: u64) -> usize {
        let (id, body, ttr) = (id(number), body(number), TTR_MS.to_string());
        let mut words: Vec<&[u8]> = vec![b"DQ.ADD", b"queue", &id, &body];
        let delay = delay_ms.to_string();
        if delay_ms > 0 {
            words.extend([&b"DELAY"[..], delay.as_bytes(), b"TTR", ttr.as_bytes()]);
        }
        encode(out, &words);
        1
    }

    fn take(&mut self, out: &mut Vec<u8>, count: usize) -> usize {
        match count {
            1 => encode(out, &["DQ.POP", "queue"]),
            count => encode(out, &["DQ.POP", "queue", "COUNT", &count.to_string()]),
        }
        1
    }

    fn finish(&mut self, out: &mut Vec<u8>, deliveries: &[Delivery]) -> usize {
        let mut words: Vec<&[u8]> = vec![b"DQ.FINISH", b"queue"];
        words.extend(deliveries.iter().flat_map(|delivery| [&*delivery.id, &*delivery.lease]));
        encode(out, &words);
        1
    }

    /// [[id, body, lease, attempt] ...] or nil
    fn taken(&mut self, reply: &[u8], into: &mut Vec<Delivery>) -> Result<()> {
        let mut tokens = Tokens::of(reply);
        let jobs = match tokens.next() {
            Some(Ok(Token::Array(jobs))) => jobs,
            Some(Ok(Token::Nil)) => return Ok(()),
            other => bail!("not a list of jobs: {other:?}"),
        };
        let mut next = || -> Result<_> { tokens.next().context("half a job")? };
        for _ in 0..jobs {
            let fields = (next()?, next()?, next()?, next()?, next()?);
            let (Token::Array(4), Token::Bulk(id), Token::Bulk(body), Token::Integer(lease), _) =
                fields
            else {
                bail!("not id, body, lease, attempt");
            };
            ensure_body(body)?;
            into.push(Delivery { id: id.to_vec(), lease: lease.to_vec() });
        }
        Ok(())
    }
}
