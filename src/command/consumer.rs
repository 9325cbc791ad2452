//! What DQ.POP and DQ.MPOP share: the options of a consumer, and delivering to it.

use std::time::Duration;

use super::arg_reader::{once, options, ArgReader, CountedClaims, Name};
use super::error::Error;
use crate::queue::{
    Batch, Deliveries, Finish, FinishAndPop, Id, Millis, Mode, Operation, Pop, PopById, Queue,
    POP_JOBS_MAX,
};
use crate::server::arg::Arg;
use crate::server::call::Call;
use crate::services::change::frame::Source;
use crate::services::change::log::{self, LogForm};
use crate::services::keys::opened::{self, OpenedKey};
use crate::services::waiting::pending::DeliveredJob;
use crate::services::waiting::reply;
use crate::services::waiting::wish::{Class, Shape};

pub struct Consumer<'c> {
    pub pop: Pop,
    /// These jobs, and not the first ones.
    ids: Vec<Id<'c>>,
    /// For how long it waits; zero is without end.
    block: Option<Millis>,
    /// It takes nothing until that is worth it.
    batch: Option<Batch>,
    /// What it is done with, which it finishes before it takes others.
    finish: Option<FinishFirst<'c>>,
    shape: Shape,
}

/// FINISH: these jobs, at this one of the command's keys. DQ.POP has only one.
struct FinishFirst<'c> {
    key: Option<Arg<'c>>,
    claims: CountedClaims<'c>,
}

/// At how many keys a consumer asks. At one, it may ask for jobs by their ids; of several, the reply
/// names the one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Keys {
    One,
    Several,
}

/// The options of a consumer: these names end a list of ids.
const OPTIONS: [&str; 9] =
    ["COUNT", "BLOCK", "TTR", "NOACK", "WITHDUE", "ID", "FINISH", "MIN", "LINGER"];

impl<'c> Consumer<'c> {
    pub fn parse(args: ArgReader<'c>, keys: Keys) -> Result<Consumer<'c>, Error> {
        let mut ids = Vec::new();
        let (mut count, mut block, mut ttr, mut noack, mut withdue, mut finish) =
            (None, None, None, None, None, None);
        let (mut min, mut linger) = (None, None);
        let source = args.source();
        options!(args, {
            "COUNT" => count, count();
            "BLOCK" => block, millis(0);
            "TTR" => ttr, span(1);
            "NOACK" => noack, flag();
            "WITHDUE" => withdue, flag();
            "MIN" => min, count();
            "LINGER" => linger, millis(1);
        } else |name, args| match name {
            id if id == Name::of("ID") && keys == Keys::One => args.ids_up_to("ID", &OPTIONS, &mut ids).map(|()| true),
            it if it == Name::of("FINISH") => {
                let key = (keys == Keys::Several).then(|| args.argument("FINISH")).transpose()?;
                once("FINISH", &mut finish, FinishFirst { key, claims: args.counted_claims("FINISH")? })
            }
            _ => Ok(false),
        });
        // Earlier versions took both, and logs hold it.
        if noack.is_some() && ttr.is_some() && source == Source::Client {
            return Err(Error::Exclusive { one: "TTR", other: "NOACK" });
        }
        let given = [
            ("COUNT", count.is_some()),
            ("BLOCK", block.is_some()),
            ("FINISH", finish.is_some()),
            ("MIN", min.is_some()),
            ("LINGER", linger.is_some()),
        ];
        if let Some((other, _)) =
            given.into_iter().find(|(_, is_given)| *is_given && !ids.is_empty())
        {
            return Err(Error::Exclusive { one: other, other: "ID" });
        }
        let count = count.unwrap_or(1);
        let batch = match (min, linger) {
            (Some(min), Some(linger)) => Some(Batch { min, linger }),
            (Some(_), None) => return Err(Error::Missing { option: "LINGER" }),
            (None, Some(_)) => return Err(Error::Missing { option: "MIN" }),
            (None, None) => None,
        };
        if min.is_some_and(|min| min > count.min(POP_JOBS_MAX)) {
            let max = count.min(POP_JOBS_MAX) as u64;
            return Err(Error::NotInRange { option: "MIN", min: 1, max });
        }
        let mode = if noack.is_some() { Mode::NoAck } else { Mode::Lease };
        let shape = Shape {
            with_key: keys == Keys::Several,
            with_due: withdue.is_some(),
            finished: finish.as_ref().map(|_| 0),
        };
        Ok(Consumer { pop: Pop { count, ttr, mode }, ids, block, batch, finish, shape })
    }

    /// The jobs that it asks for by their ids, if it does.
    pub fn by_id(&self) -> Option<PopById<'_>> {
        let Pop { ttr, mode, .. } = self.pop;
        (!self.ids.is_empty()).then(|| PopById { ids: &self.ids, ttr, mode })
    }

    /// Whether it takes nothing until that is worth it.
    pub fn has_batch(&self) -> bool {
        self.batch.is_some()
    }

    pub fn has_finish(&self) -> bool {
        self.finish.is_some()
    }

    /// FINISH and what can be had then, in one change.
    pub fn into_finish_and_pop(self) -> Option<FinishAndPop<'c>> {
        let claims = self.finish?.claims.claims;
        Some(FinishAndPop { finish: Finish { claims }, pop: self.pop })
    }

    /// Where FINISH of DQ.MPOP finishes.
    pub fn finish_key(&self) -> Option<Arg<'c>> {
        self.finish.as_ref().and_then(|finish| finish.key)
    }

    /// Whether that, if it is there, is one of these keys.
    pub fn finishes_at_one_of(&self, keys: &[Arg]) -> bool {
        self.finish_key().is_none_or(|key| keys.iter().any(|one| one.bytes() == key.bytes()))
    }

    /// Delivers what can be had; false, without a reply, when nothing can.
    pub fn deliver(
        &self,
        call: &Call,
        (key, opened): (Arg, &mut OpenedKey),
        source: Source,
        pop: &impl Operation<Outcome = Deliveries>,
        log_as: LogForm,
    ) -> bool {
        let would_wait = || self.block.is_some() && call.may_block();
        let reply = |taken: &Deliveries, queue: &Queue| self.reply(call, key, taken, queue);
        let class = Class { mode: self.pop.mode, batch: self.batch };
        opened.frame_for(source).deliver(pop, class, would_wait, log_as, reply)
    }

    /// The same, logged as a DQ.POP that says no more than what it takes.
    pub fn deliver_and_log_pop(&self, call: &Call, opened: (Arg, &mut OpenedKey)) -> bool {
        let args = log::pop_args(&self.pop);
        let args: Vec<&[u8]> = args.iter().map(String::as_bytes).collect();
        let log_as = LogForm::Command(log::POP, &args);
        self.deliver(call, opened, Source::Client, &self.pop, log_as)
    }

    /// Finishes, and delivers what can be had then; false, without a reply, when nothing can. It is
    /// one change, and one entry of the log. Where clients wait at the key it is two: what the first
    /// sets free is theirs. So it is where the second is made only if it is worth it.
    pub fn finish_and_deliver(
        &mut self,
        call: &Call,
        (key, opened): (Arg, &mut OpenedKey),
        source: Source,
    ) -> bool {
        if source == Source::Client && (opened.consumers() > 0 || self.batch.is_some()) {
            self.finish(opened);
            return self.deliver_and_log_pop(call, (key, opened));
        }
        let claims = self.finish.take().map(|finish| finish.claims.claims).unwrap_or_default();
        let both = FinishAndPop { finish: Finish { claims }, pop: self.pop };
        opened.frame_for(source).change(&both, LogForm::AsSent, |outcome, queue| {
            self.shape.finished = Some(outcome.finished.0);
            let has_any = !outcome.taken.is_empty();
            if has_any {
                self.reply(call, key, &outcome.taken, queue);
            }
            has_any
        })
    }

    /// Finishes, in a change of its own: every reply says how many it were.
    pub fn finish(&mut self, opened: &mut OpenedKey) {
        let Some(FinishFirst { claims: CountedClaims { claims, args }, .. }) = self.finish.take()
        else {
            return;
        };
        let args = args.bytes_of_next(2 * claims.len());
        let (finish, log_as) = (Finish { claims }, LogForm::Command(log::FINISH, &args));
        let frame = opened.frame_for(Source::Client);
        self.shape.finished = Some(frame.change(&finish, log_as, |finished, _| finished.0));
    }

    fn reply(&self, call: &Call, key: Arg, taken: &Deliveries, queue: &Queue) {
        let jobs = taken.iter().map(|delivery| DeliveredJob::of(delivery, queue));
        reply::deliveries(call.replies(), self.shape, self.pop.mode, key.bytes(), jobs);
    }

    /// There was nothing: waits, or replies so.
    pub fn wait(&self, call: &Call, keys: &[Arg], source: Source) {
        match self.block {
            Some(block) if source == Source::Client => {
                let timeout = (!block.is_zero()).then(|| Duration::from_millis(block.as_u64()));
                opened::wait(call, keys, (&self.pop, self.batch), self.shape, timeout);
            }
            Some(_) | None => reply::nothing(call.replies(), self.shape),
        }
    }
}
