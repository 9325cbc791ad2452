//! `DQ.MADD key n id|* body [id|* body ...] [DELAYS ms [ms ...] | ATS unix-ms [unix-ms ...]]
//! [SPREAD ms] [DELAY ms | AT unix-ms] [TTR ms] [PRIORITY 0..255] [ATTEMPTS n]
//! [BACKOFF base-ms max-ms] [TTL ms] [KEEP ms] [LATE ms] [GROUP name]
//! [AFTER n id [id ...] | BEFORE n id [id ...]] [ONDEAD HOLD|RUN] [HOLD] [NX | REPLACE]`
//!
//! Adds n jobs in one step, in the order of the arguments: all of them, or none. The options are those of
//! DQ.ADD, and said of all. DELAYS and ATS give each job its time, n of them. With SPREAD the jobs are
//! due evenly over that time: the i-th, from 0, at start + i * ms / n, start being DELAY, AT or now.
//!
//! Replies with an array of n ids; nil where NX found the id taken. An error of one of the jobs names
//! it behind the prefix, counted from 1, as in `EXISTS job 3: id is taken in this queue`, and none is
//! added; an id that comes twice is an error of the second.
//!
//! O(log n) in the queue's jobs for each job.

use super::arg_reader::ArgReader;
use super::error::Error;
use super::kinds::{Change, Reply};
use super::new_job;
use crate::queue::{self, AddedMany, Queue, Refusal};
use crate::server::replies::Replies;
use crate::server::spec::{KeyUse, Spec};

pub struct MAdd;

impl Change for MAdd {
    const SPEC: Spec = Spec {
        name: c"dq.madd",
        summary: c"Adds many jobs to a queue in one step, all of them or none",
        complexity: c"O(M*log(N)) with N being the number of jobs in the queue and M the number of jobs added",
        since: Spec::SINCE_0_3,
        flags: c"write deny-oom",
        arity: -5,
        key: KeyUse::Insert,
        grammar: "key n id|* body [id|* body ...] \
            [DELAYS ms [ms ...] | ATS unix-ms [unix-ms ...]] [SPREAD ms] \
            [DELAY ms | AT unix-ms] [TTR ms] [PRIORITY 0..255] [ATTEMPTS n] \
            [BACKOFF base-ms max-ms] [TTL ms] [KEEP ms] [LATE ms] [GROUP name] \
            [AFTER n id [id ...] | BEFORE n id [id ...]] [ONDEAD HOLD|RUN] [HOLD] [NX | REPLACE]",
    };

    const CREATES: bool = true;

    type Operation<'c> = queue::AddMany<'c>;

    fn parse<'c>(mut args: ArgReader<'c>) -> Result<queue::AddMany<'c>, Error> {
        new_job::read_many(&mut args)
    }
}

impl Reply for AddedMany {
    fn reply(&self, queue: &Queue, replies: Replies) -> Result<(), Error> {
        match self {
            AddedMany::Yes(slots) => {
                replies.array(slots.len());
                for slot in slots {
                    match slot.and_then(|slot| queue.id_and_body(slot)) {
                        Some((id, _)) => replies.bulk(id.bytes()),
                        None => replies.null(),
                    }
                }
            }
            AddedMany::Refused { position, why: Refusal::Twice(id) } => {
                return Err(Error::GivenTwice(id.to_vec()).of_job(*position));
            }
            AddedMany::Refused { position, why: Refusal::As(added) } => {
                return added.reply(queue, replies).map_err(|error| error.of_job(*position));
            }
        }
        Ok(())
    }
}
