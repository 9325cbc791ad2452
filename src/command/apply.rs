//! `DQ.APPLY key PUT id body record | LEASE leases | MOVE moves | DROP record | QUEUE record`
//!
//! Internal: what a primary sends to its replicas and writes into the AOF instead of the commands whose
//! result depends on the time. `record`, `leases` and `moves` are MessagePack (`queue/record.rs`).
//!
//! - `PUT` puts a job as the record has it, instead of any with that id
//! - `LEASE` gives leases that a POP gave
//! - `MOVE` moves jobs that are still there, as RELEASE, TOUCH, BURY, KICK and others moved them
//! - `DROP` removes jobs that were purged, or handed out and finished at once
//! - `QUEUE` sets what a queue is besides its jobs; it makes the key of an empty queue
//!
//! Replies with OK. O(log n) in the queue's jobs for each job.

use super::error::Error;
use super::words::Words;
use super::SINCE_0_1;
use crate::queue::{DropRecord, Id, JobRecord, LeaseRecord, MoveRecord, QueueRecord, Record};
use crate::redis::call::{Arg, Call};
use crate::redis::command::Command;
use crate::redis::effect::{self, Effect};
use crate::redis::key::OpenQueue;
use crate::redis::spec::{ArgSpec, KeyUse, Spec};

pub struct Apply<'c> {
    key: Arg<'c>,
    change: Change<'c>,
}

enum Change<'c> {
    Put { id: Id<'c>, body: &'c [u8], record: JobRecord },
    Lease(Vec<LeaseRecord>),
    Move(Vec<MoveRecord>),
    Drop(DropRecord),
    Queue(QueueRecord),
}

impl Command for Apply<'_> {
    type Error = Error;
    const SPEC: Spec = Spec {
        name: c"dq.apply",
        summary: c"An internal command: what replicas and the AOF get instead of DQ.ADD and DQ.POP",
        complexity:
            c"O(M*log(N)) with N being the number of jobs in the queue and M the number of jobs changed",
        since: SINCE_0_1,
        flags: c"write admin",
        arity: -4,
        key: KeyUse::Take,
        args: &[
            ArgSpec::KEY,
            ArgSpec::one_of(
                c"effect",
                &[
                    ArgSpec::block(
                        c"put",
                        &[
                            ArgSpec::word(c"put-word", c"PUT"),
                            ArgSpec::string(c"id"),
                            ArgSpec::string(c"body"),
                            ArgSpec::string(c"record"),
                        ],
                    ),
                    ArgSpec::string(c"leases").token(c"LEASE"),
                    ArgSpec::string(c"moves").token(c"MOVE"),
                    ArgSpec::string(c"record").token(c"DROP"),
                    ArgSpec::string(c"record").token(c"QUEUE"),
                ],
            ),
        ],
    };

    fn run(call: &Call) -> Result<(), Error> {
        Apply::parse(call)?.apply(call)
    }
}

impl<'c> Apply<'c> {
    fn parse(call: &Call<'c>) -> Result<Apply<'c>, Error> {
        let mut words = Words::of(call, "dq.apply");
        let key = words.require()?;
        let kind = words.require()?.bytes();
        let change = if kind == effect::PUT.to_bytes() {
            let (id, body) = (words.require_id()?, words.require()?.bytes());
            let record = JobRecord::decode(words.require()?.bytes())?;
            record.job(id.bytes(), body)?;
            Change::Put { id, body, record }
        } else if kind == effect::LEASE.to_bytes() {
            let leases = Vec::<LeaseRecord>::decode(words.require()?.bytes())?;
            leases.iter().try_for_each(|lease| lease.parts().map(drop))?;
            Change::Lease(leases)
        } else if kind == effect::MOVE.to_bytes() {
            let moves = Vec::<MoveRecord>::decode(words.require()?.bytes())?;
            moves.iter().try_for_each(MoveRecord::check)?;
            Change::Move(moves)
        } else if kind == effect::DROP.to_bytes() {
            let record = DropRecord::decode(words.require()?.bytes())?;
            record.check()?;
            Change::Drop(record)
        } else if kind == effect::QUEUE.to_bytes() {
            let record = QueueRecord::decode(words.require()?.bytes())?;
            record.check()?;
            Change::Queue(record)
        } else {
            return Err(Error::UnknownEffect(kind.to_vec()));
        };
        words.end()?;
        Ok(Apply { key, change })
    }

    fn apply(self, call: &Call) -> Result<(), Error> {
        let mut queue = OpenQueue::open_or_create(call, self.key)?;
        match &self.change {
            Change::Put { id, body, record } => {
                queue.put(id.bytes(), body, record)?;
            }
            Change::Lease(leases) => {
                for lease in leases {
                    queue.lease(lease)?;
                    call.saw_lease(lease.parts()?.1, call.now());
                }
            }
            Change::Move(moves) => {
                for record in moves {
                    queue.move_job(record)?;
                }
            }
            Change::Drop(record) => {
                queue.drop_jobs(record)?;
            }
            Change::Queue(record) => queue.restore(record)?,
        }
        call.replies().ok();
        queue.publish(&[Effect::Applied]);
        Ok(())
    }
}
