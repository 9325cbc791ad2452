//! What DQ.POP and DQ.MPOP share: the options of a consumer, and handing out to it.

use std::time::Duration;

use super::arg_reader::{options, ArgReader, Name};
use super::error::Error;
use crate::queue::{Deliveries, Id, Millis, Mode, Operation, Pop, PopById};
use crate::server::arg::Arg;
use crate::server::call::Call;
use crate::server::key::Access;
use crate::services::change::frame::Source;
use crate::services::change::log::LogForm;
use crate::services::keys::opened::{self, OpenedKey};
use crate::services::waiting::pending::DeliveredJob;
use crate::services::waiting::reply;
use crate::services::waiting::wish::Shape;

pub struct Consumer<'c> {
    pub pop: Pop,
    /// These jobs, and not the first ones.
    ids: Vec<Id<'c>>,
    /// For how long it waits; zero is without end.
    block: Option<Millis>,
    shape: Shape,
}

/// At how many keys a consumer asks. At one, it may ask for jobs by their ids; of several, the reply
/// names the one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Keys {
    One,
    Several,
}

/// The options of a consumer: these words end a list of ids.
const OPTIONS: [&str; 6] = ["COUNT", "BLOCK", "TTR", "NOACK", "WITHDUE", "ID"];

impl<'c> Consumer<'c> {
    pub fn parse(args: ArgReader<'c>, keys: Keys) -> Result<Consumer<'c>, Error> {
        let mut ids = Vec::new();
        let (mut count, mut block, mut ttr, mut noack, mut withdue) =
            (None, None, None, None, None);
        let source = args.source();
        options!(args, {
            "COUNT" => count, count();
            "BLOCK" => block, millis(0);
            "TTR" => ttr, span(1);
            "NOACK" => noack, flag();
            "WITHDUE" => withdue, flag();
        } else |name, args| match name {
            id if id == Name::of("ID") && keys == Keys::One => args.ids_up_to("ID", &OPTIONS, &mut ids).map(|()| true),
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
        let shape = Shape { with_key: keys == Keys::Several, with_due: withdue.is_some() };
        Ok(Consumer { pop: Pop { count: count.unwrap_or(1), ttr, mode }, ids, block, shape })
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
        key: Arg,
        source: Source,
        pop: &impl Operation<Outcome = Deliveries>,
        log_as: LogForm,
    ) -> Result<bool, Error> {
        let Some(mut opened) = OpenedKey::at(call, key, Access::Write)? else {
            return Ok(false);
        };
        let would_wait = || self.block.is_some() && call.may_block();
        Ok(opened.queue_for(source).deliver(pop, would_wait, log_as, |deliveries, queue| {
            let jobs = deliveries.iter().map(|delivery| DeliveredJob::of(delivery, queue));
            reply::deliveries(call.replies(), self.shape, self.pop.mode, key.bytes(), jobs);
        }))
    }

    /// There was nothing: waits, or replies so.
    pub fn wait(&self, call: &Call, keys: &[Arg], source: Source) {
        match self.block {
            Some(block) if source == Source::Client => {
                let timeout = (!block.is_zero()).then(|| Duration::from_millis(block.as_u64()));
                opened::wait(call, keys, &self.pop, self.shape, timeout);
            }
            Some(_) | None => call.replies().null(),
        }
    }
}
