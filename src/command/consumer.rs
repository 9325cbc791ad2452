//! What DQ.POP and DQ.MPOP share: the options of a consumer, and handing out to it.

use std::time::Duration;

use super::arg_reader::{options, ArgReader, Name};
use super::error::Error;
use crate::queue::{Deliveries, Id, Millis, Mode, Operation, Pop, PopById, Queue};
use crate::server::arg::Arg;
use crate::server::call::Call;
use crate::server::key::Access;
use crate::server::replies::{JobReply, Replies};
use crate::services::change::frame::Source;
use crate::services::change::log::LogForm;
use crate::services::keys::opened::{self, OpenedKey};
use crate::services::{Around, JobShape, Shape};

pub struct Consumer<'c> {
    pub pop: Pop,
    /// These jobs, and not the first ones.
    ids: Vec<Id<'c>>,
    /// For how long it waits; zero is without end.
    block: Option<Millis>,
    job_shape: JobShape,
}

/// Which jobs a consumer may ask for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Asks {
    ForTheFirst,
    /// Or for some by their ids.
    ForAny,
}

/// The options of a consumer: these words end a list of ids.
const OPTIONS: [&str; 6] = ["COUNT", "BLOCK", "TTR", "NOACK", "WITHDUE", "ID"];

impl<'c> Consumer<'c> {
    pub fn parse(words: ArgReader<'c>, asks: Asks) -> Result<Consumer<'c>, Error> {
        let mut ids = Vec::new();
        let (mut count, mut block, mut ttr, mut noack, mut withdue) =
            (None, None, None, None, None);
        let source = words.source();
        options!(words, {
            "COUNT" => count, count();
            "BLOCK" => block, millis(0);
            "TTR" => ttr, span(1);
            "NOACK" => noack, flag();
            "WITHDUE" => withdue, flag();
        } else |name, words| match name {
            id if id == Name::of("ID") && asks == Asks::ForAny => words.ids_up_to("ID", &OPTIONS, &mut ids).map(|()| true),
            _ => Ok(false),
        });
        // Earlier versions took both, and logs hold it.
        if noack.is_some() && ttr.is_some() && source == Source::Client {
            return Err(Error::Exclusive { one: "TTR", other: "NOACK" });
        }
        let given = [("COUNT", count.is_some()), ("BLOCK", block.is_some())];
        if let Some((other, _)) =
            given.into_iter().find(|(_, is_given)| *is_given && !ids.is_empty())
        {
            return Err(Error::Exclusive { one: other, other: "ID" });
        }
        let mode = if noack.is_some() { Mode::NoAck } else { Mode::Lease };
        let job_shape = if withdue.is_some() { JobShape::WithDue } else { JobShape::Plain };
        Ok(Consumer { pop: Pop { count: count.unwrap_or(1), ttr, mode }, ids, block, job_shape })
    }

    /// The jobs that it asks for by their ids, if it does.
    pub fn by_id(&self) -> Option<PopById<'_>> {
        let Pop { ttr, mode, .. } = self.pop;
        (!self.ids.is_empty()).then(|| PopById { ids: &self.ids, ttr, mode })
    }

    /// Hands out what can be had; false, without a reply, when nothing can.
    pub fn deliver(
        &self,
        call: &Call,
        (key, around): (Arg, Around),
        source: Source,
        pop: &impl Operation<Outcome = Deliveries>,
        words: LogForm,
    ) -> Result<bool, Error> {
        let Some(mut opened) = OpenedKey::at(call, key, Access::Write)? else {
            return Ok(false);
        };
        let would_wait = || self.block.is_some() && call.may_block();
        Ok(opened.queue_for(source).deliver(pop, would_wait, words, |deliveries, queue| {
            let shape = Shape { around, job: self.job_shape };
            reply(call.replies(), key, shape, deliveries, queue);
        }))
    }

    /// There was nothing: waits, or replies so.
    pub fn wait(&self, call: &Call, keys: &[Arg], around: Around, source: Source) {
        match self.block {
            Some(block) if source == Source::Client => {
                let timeout = (!block.is_zero()).then(|| Duration::from_millis(block.as_u64()));
                let shape = Shape { around, job: self.job_shape };
                opened::wait(call, keys, &self.pop, shape, timeout);
            }
            Some(_) | None => call.replies().null(),
        }
    }
}

fn reply(replies: Replies, key: Arg, shape: Shape, deliveries: &Deliveries, queue: &Queue) {
    let jobs = deliveries.iter().map(|delivery| {
        let (id, body) = delivery.id_and_body(queue);
        JobReply {
            id: id.bytes(),
            body,
            lease: (!deliveries.are_finished()).then(|| delivery.lease.number()),
            attempt: delivery.attempt,
            due: (shape.job == JobShape::WithDue).then(|| delivery.occurrence().unix_ms()),
        }
    });
    replies.deliveries((shape.around == Around::KeyAndJobs).then(|| key.bytes()), jobs);
}
