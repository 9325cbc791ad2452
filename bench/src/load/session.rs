//! What one connection does, turn after turn: a pipeline is sent, all its replies come, the next
//! one is sent.

use std::cell::Cell;
use std::rc::Rc;

use anyhow::{bail, ensure, Result};

use crate::wire::{Token, Tokens};

pub const BODY_BYTES: usize = 100;
/// How long a job may be worked on. None takes so long.
pub const TTR_MS: u64 = 120_000;
/// In how long a delayed job is due: not while anything is measured.
pub const DELAY_MS: u64 = 3_600_000;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Load {
    /// Jobs that are due now are added.
    Enqueue,
    /// Jobs that are due in an hour are added.
    Delayed,
    /// Jobs are added, taken and finished, a command a job.
    Life,
    /// The same, in as few commands as there are for a whole pipeline's jobs.
    Batches,
    /// Jobs that are there are taken and finished, a command a job.
    Consume,
    /// The same, a pipeline's jobs in a command.
    ConsumeBatches,
}

impl Load {
    fn begins_with(self) -> Stage {
        match self {
            Load::Consume | Load::ConsumeBatches => Stage::Taking,
            Load::Enqueue | Load::Delayed | Load::Life | Load::Batches => Stage::Adding,
        }
    }
}

/// A job that was handed out, by what names it when it is finished.
pub struct Delivery {
    pub id: Vec<u8>,
    pub lease: Vec<u8>,
}

/// How a contestant says it: what appends commands returns how many replies they have.
pub trait Verbs {
    fn add(&mut self, out: &mut Vec<u8>, id: u64, delay_ms: u64) -> usize;

    /// All at once, where there is a command for that.
    fn add_all(&mut self, out: &mut Vec<u8>, ids: std::ops::Range<u64>) -> usize {
        ids.map(|id| self.add(out, id, 0)).sum()
    }

    fn take(&mut self, out: &mut Vec<u8>, count: usize) -> usize;

    /// Of at least one job.
    fn finish(&mut self, out: &mut Vec<u8>, deliveries: &[Delivery]) -> usize;

    /// Whether a job that was taken is still there, until it is finished.
    fn keeps_what_is_taken(&self) -> bool {
        true
    }

    /// Whether a reply to `add` says that it was added.
    fn added(&mut self, reply: &[u8]) -> Result<()> {
        ensure!(matches!(reply.first(), Some(b'+' | b'$' | b':')), "not added: {}", text(reply));
        Ok(())
    }

    /// What a reply to `take` hands out.
    fn taken(&mut self, reply: &[u8], into: &mut Vec<Delivery>) -> Result<()>;

    /// How many jobs a reply to `finish` says are finished.
    fn finished(&mut self, reply: &[u8]) -> Result<usize> {
        match Tokens::of(reply).next() {
            Some(Ok(Token::Integer(digits))) => Ok(std::str::from_utf8(digits)?.parse()?),
            other => bail!("not a number: {other:?}"),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Adding,
    Taking,
    Finishing,
}

pub struct Session {
    verbs: Box<dyn Verbs>,
    load: Load,
    depth: usize,
    /// The next job's number, of all sessions.
    next_id: Rc<Cell<u64>>,
    /// No job of this number or a higher one is added.
    end_of_ids: u64,
    stage: Stage,
    deliveries: Vec<Delivery>,
    finished: usize,
}

impl Session {
    pub fn new(verbs: Box<dyn Verbs>, load: Load, depth: usize, next_id: Rc<Cell<u64>>) -> Session {
        let stage = load.begins_with();
        Session {
            verbs,
            load,
            depth,
            next_id,
            end_of_ids: u64::MAX,
            stage,
            deliveries: Vec::new(),
            finished: 0,
        }
    }

    pub fn add_at_most(&mut self, jobs: u64) {
        self.end_of_ids = jobs;
    }

    /// Appends the next pipeline; returns how many replies it will have. None: there is no more to
    /// do.
    pub fn send(&mut self, out: &mut Vec<u8>) -> usize {
        let depth = self.depth;
        if self.stage == Stage::Adding && self.next_id.get() >= self.end_of_ids {
            return 0;
        }
        match (self.stage, self.load) {
            (Stage::Adding, Load::Batches) => {
                let ids = self.take_ids(depth);
                self.verbs.add_all(out, ids)
            }
            (Stage::Adding, load) => {
                let delay_ms = if load == Load::Delayed { DELAY_MS } else { 0 };
                self.take_ids(depth).map(|id| self.verbs.add(out, id, delay_ms)).sum()
            }
            (Stage::Taking, Load::Batches | Load::ConsumeBatches) => self.verbs.take(out, depth),
            (Stage::Taking, _) => (0..depth).map(|_| self.verbs.take(out, 1)).sum(),
            (Stage::Finishing, Load::Batches | Load::ConsumeBatches) => {
                self.verbs.finish(out, &self.deliveries)
            }
            (Stage::Finishing, _) => {
                let each = self.deliveries.chunks(1);
                each.map(|delivery| self.verbs.finish(out, delivery)).sum()
            }
        }
    }

    pub fn receive(&mut self, reply: &[u8]) -> Result<()> {
        ensure!(!reply.starts_with(b"-"), "the server says: {}", text(reply));
        match self.stage {
            Stage::Adding => self.verbs.added(reply)?,
            Stage::Taking => self.verbs.taken(reply, &mut self.deliveries)?,
            Stage::Finishing => self.finished += self.verbs.finished(reply)?,
        }
        Ok(())
    }

    /// All replies are there: returns how many jobs that completes.
    pub fn end_turn(&mut self) -> Result<usize> {
        match (self.stage, self.load) {
            (Stage::Adding, Load::Enqueue | Load::Delayed) => Ok(self.depth),
            (Stage::Adding, _) => {
                self.stage = Stage::Taking;
                Ok(0)
            }
            (Stage::Taking, _) => {
                ensure!(
                    self.load.begins_with() == Stage::Taking || self.deliveries.len() == self.depth,
                    "{} jobs were handed out instead of {}",
                    self.deliveries.len(),
                    self.depth
                );
                if self.verbs.keeps_what_is_taken() && !self.deliveries.is_empty() {
                    self.stage = Stage::Finishing;
                    return Ok(0);
                }
                Ok(self.start_over())
            }
            (Stage::Finishing, _) => {
                let (finished, delivered) = (self.finished, self.deliveries.len());
                ensure!(finished == delivered, "{finished} jobs were finished of {delivered}");
                Ok(self.start_over())
            }
        }
    }

    /// Returns how many jobs this round of stages was about.
    fn start_over(&mut self) -> usize {
        let jobs = self.deliveries.len();
        self.deliveries.clear();
        self.finished = 0;
        self.stage = self.load.begins_with();
        jobs
    }

    fn take_ids(&self, count: usize) -> std::ops::Range<u64> {
        let first = self.next_id.get();
        self.next_id.set(first + count as u64);
        first..first + count as u64
    }
}

fn text(reply: &[u8]) -> String {
    String::from_utf8_lossy(reply).trim_end().to_owned()
}

/// A body of its own for each job, which can't be compressed: who keeps many bodies in one piece
/// gains nothing by it when files are written.
pub fn body(number: u64) -> [u8; BODY_BYTES] {
    let mut body = [0; BODY_BYTES];
    fill_body(&mut body, number);
    body
}

/// The same of any length.
pub fn fill_body(body: &mut [u8], number: u64) {
    const DIGITS: &[u8; 64] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_";
    let mut random = fastrand::Rng::with_seed(number);
    for bytes in body.chunks_mut(10) {
        let bits = random.u64(..);
        for (place, byte) in bytes.iter_mut().enumerate() {
            *byte = DIGITS[(bits >> (6 * place)) as usize % DIGITS.len()];
        }
    }
}

/// What comes back has to be a body of ours; which one is looked at in tests, not while anything is
/// measured.
pub fn ensure_body(bytes: &[u8]) -> Result<()> {
    ensure!(
        bytes.len() == BODY_BYTES,
        "a job came back with {} bytes of {BODY_BYTES}",
        bytes.len()
    );
    Ok(())
}

/// 16 bytes, as every contestant names its jobs. (BullMQ takes no colon.)
pub fn id(number: u64) -> [u8; 16] {
    let mut id = *b"job-000000000000";
    let mut rest = number;
    for digit in id[4..].iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    id
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes and finishes whatever is asked of it, and keeps a record.
    struct Recorder {
        keeps: bool,
    }

    impl Verbs for Recorder {
        fn add(&mut self, out: &mut Vec<u8>, _id: u64, delay_ms: u64) -> usize {
            out.push(if delay_ms > 0 { b'd' } else { b'a' });
            1
        }

        fn take(&mut self, out: &mut Vec<u8>, count: usize) -> usize {
            out.extend_from_slice(format!("t{count}").as_bytes());
            1
        }

        fn finish(&mut self, out: &mut Vec<u8>, deliveries: &[Delivery]) -> usize {
            out.extend_from_slice(format!("f{}", deliveries.len()).as_bytes());
            1
        }

        fn keeps_what_is_taken(&self) -> bool {
            self.keeps
        }

        fn taken(&mut self, reply: &[u8], into: &mut Vec<Delivery>) -> Result<()> {
            into.extend(reply.iter().map(|byte| Delivery { id: vec![*byte], lease: vec![] }));
            Ok(())
        }
    }

    fn session(load: Load, keeps: bool) -> Session {
        Session::new(Box::new(Recorder { keeps }), load, 2, Rc::default())
    }

    /// One turn: what was sent, with these replies; how many jobs that completed.
    fn turn(session: &mut Session, replies: &[&[u8]]) -> (String, usize) {
        let mut out = Vec::new();
        assert_eq!(session.send(&mut out), replies.len());
        for reply in replies {
            session.receive(reply).unwrap();
        }
        (String::from_utf8(out).unwrap(), session.end_turn().unwrap())
    }

    #[test]
    fn a_life_is_added_taken_finished_and_then_done() {
        let mut session = session(Load::Life, true);
        for _ in 0..2 {
            assert_eq!(turn(&mut session, &[b"+", b"+"]), ("aa".into(), 0));
            assert_eq!(turn(&mut session, &[b"x", b"y"]), ("t1t1".into(), 0));
            assert_eq!(turn(&mut session, &[b":1\r\n", b":1\r\n"]), ("f1f1".into(), 2));
        }
    }

    #[test]
    fn a_batch_is_taken_and_finished_by_one_command_each() {
        let mut session = session(Load::Batches, true);
        assert_eq!(turn(&mut session, &[b"+", b"+"]), ("aa".into(), 0));
        assert_eq!(turn(&mut session, &[b"xy"]), ("t2".into(), 0));
        assert_eq!(turn(&mut session, &[b":2\r\n"]), ("f2".into(), 2));
    }

    #[test]
    fn a_load_without_finish_is_done_with_a_job_when_it_takes_it() {
        let mut session = session(Load::Life, false);
        assert_eq!(turn(&mut session, &[b"+", b"+"]).1, 0);
        assert_eq!(turn(&mut session, &[b"x", b"y"]).1, 2);
    }

    #[test]
    fn a_consumer_goes_on_asking_when_nothing_is_ready() {
        let mut session = session(Load::Consume, true);
        assert_eq!(turn(&mut session, &[b"", b""]).1, 0);
        assert_eq!(turn(&mut session, &[b"x", b""]).1, 0);
        assert_eq!(turn(&mut session, &[b":1\r\n"]), ("f1".into(), 1));
    }

    #[test]
    fn a_job_that_is_not_finished_is_an_error() {
        let mut session = session(Load::Life, true);
        turn(&mut session, &[b"+", b"+"]);
        turn(&mut session, &[b"x", b"y"]);
        session.receive(b":1\r\n").unwrap();
        session.receive(b":0\r\n").unwrap();
        assert!(session.end_turn().is_err());
    }

    #[test]
    fn an_error_and_a_refusal_are_errors() {
        assert!(session(Load::Life, true).receive(b"-ERR no\r\n").is_err());
        assert!(session(Load::Life, true).receive(b"*-1\r\n").is_err());
    }

    #[test]
    fn a_load_adds_no_more_jobs_than_wanted() {
        let mut session = session(Load::Enqueue, true);
        session.add_at_most(2);
        assert_eq!(turn(&mut session, &[b"+", b"+"]), ("aa".into(), 2));
        assert_eq!(session.send(&mut Vec::new()), 0);
    }

    #[test]
    fn each_job_has_a_body_of_its_own() {
        assert_eq!(body(1), body(1));
        assert_ne!(body(1), body(2));
        assert!(body(7).iter().all(|byte| byte.is_ascii_graphic()));
    }

    #[test]
    fn job_ids_have_sixteen_bytes() {
        assert_eq!(&id(0), b"job-000000000000");
        assert_eq!(&id(12_345), b"job-000000012345");
    }
}
