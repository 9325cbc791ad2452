//! `DQ.NEXT expression [TZ zone] [FROM unix-ms] [COUNT n]`
//!
//! Tells the next `n` (1), at most 1,000, times of a cron expression after FROM, or after now.
//! Makes and changes nothing.
//!
//! Replies with an array of unix milliseconds; shorter where the expression names no more times
//! within a hundred years.
//!
//! O(n) for n times; and a few nanoseconds for each month of up to a hundred years that is looked
//! at.

use super::arg_reader::{options, ArgReader};
use super::error::Error;
use super::kinds::Handler;
use super::limits::NEXT_TIMES_MAX;
use super::schedule_options::{expression, zone};
use crate::queue::{Cron, Time};
use crate::server::call::Call;
use crate::server::context::wall_clock;
use crate::server::spec::{KeyUse, Spec};
use crate::services::change::frame::Source;
use crate::services::live;

pub struct Next;

impl Handler for Next {
    type Error = Error;
    const SPEC: Spec = Spec {
        name: c"dq.next",
        summary: c"Tells when a cron expression comes next",
        complexity: c"O(N) with N being the number of times",
        since: Spec::SINCE_0_2,
        flags: c"readonly fast",
        arity: -2,
        key: KeyUse::None,
        grammar: "expression [TZ zone] [FROM unix-ms] [COUNT n]",
    };

    fn run(call: &Call) -> Result<(), Error> {
        let mut args = ArgReader::of(call, &Self::SPEC, Source::Client);
        let expression = expression(args.require()?.bytes())?;
        let (mut named_zone, mut from, mut count) = (None, None, None);
        options!(args, {
            "TZ" => named_zone, parsed(zone);
            "FROM" => from, time();
            "COUNT" => count, count();
        });
        let reading = live::read_cron(&Cron { expression, zone: named_zone.unwrap_or_default() })?;
        let times = reading.times_after(from.unwrap_or_else(wall_clock));
        let times: Vec<Time> = times.take(count.unwrap_or(1).min(NEXT_TIMES_MAX)).collect();
        if times.is_empty() {
            return Err(Error::NeverComes);
        }
        call.replies().array(times.len());
        times.iter().for_each(|time| call.replies().integer(time.unix_ms()));
        Ok(())
    }
}
