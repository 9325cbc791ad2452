//! `DQ.SCAN key cursor [STATE state] [MATCH pattern] [SCHEDULED] [COUNT n]`
//!
//! Goes through the jobs of a queue, a part at a time: begin with the cursor 0, go on with the one
//! replied, until that is 0 again. Every job that stays in the queue all the while is seen; one
//! that comes, goes or is replaced meanwhile may be. COUNT, 10 and at most 10,000, is how many jobs
//! a part looks at: with STATE, with MATCH, a pattern of ids as that of the server's SCAN, or with
//! SCHEDULED, those that come back, it may show fewer or none.
//!
//! Replies with the next cursor and an array of ids.
//!
//! O(n) for n jobs looked at. A pattern that is costly to compare ends a part sooner.

use super::arg_reader::{options, ArgReader};
use super::error::Error;
use super::kinds::{Query, QueryContext};
use super::limits::{SCAN_JOBS_DEFAULT, SCAN_JOBS_MAX};
use crate::queue::{Glob, ScanFilter, Scanned, State};
use crate::server::replies::Replies;
use crate::server::spec::{KeyUse, Spec};

pub struct Scan;

impl Query for Scan {
    const SPEC: Spec = Spec {
        name: c"dq.scan",
        summary: c"Iterates over the ids of a queue's jobs",
        complexity: c"O(M) with M being the number of jobs looked at; O(N) for a whole scan",
        since: Spec::SINCE_0_1,
        flags: c"readonly",
        arity: -3,
        key: KeyUse::Read,
        grammar: "key cursor [STATE state] [MATCH pattern] [SCHEDULED] [COUNT n]",
    };

    type Parsed<'c> = ScanPart;

    fn parse<'c>(mut args: ArgReader<'c>) -> Result<ScanPart, Error> {
        let cursor = args.integer("cursor", 0, u32::MAX.into())? as u32;
        let (mut state, mut pattern, mut scheduled, mut count) = (None, None, None, None);
        options!(args, {
            "STATE" => state, state();
            "MATCH" => pattern, parsed(|bytes| Ok(Glob::new(bytes)));
            "SCHEDULED" => scheduled, flag();
            "COUNT" => count, count();
        });
        let (is_scheduled, count) = (scheduled.is_some(), count.unwrap_or(SCAN_JOBS_DEFAULT));
        Ok(ScanPart { cursor, state, pattern, is_scheduled, count: count.min(SCAN_JOBS_MAX) })
    }

    fn reply(part: &ScanPart, context: &QueryContext, replies: Replies) -> Result<(), Error> {
        let queue = context.queue();
        let (state, pattern, is_scheduled) = (part.state, part.pattern.as_ref(), part.is_scheduled);
        let filter = ScanFilter { state, glob: pattern, is_scheduled };
        let Scanned { slots, next } = queue.scan(part.cursor, &filter, part.count);
        replies.page(next, slots.len());
        for slot in slots {
            replies.bulk(queue.id_and_body(slot).map_or(&[], |(id, _)| id.bytes()));
        }
        Ok(())
    }

    fn reply_missing(_part: &ScanPart, replies: Replies) -> Result<(), Error> {
        replies.page(None, 0);
        Ok(())
    }
}

pub struct ScanPart {
    cursor: u32,
    state: Option<State>,
    pattern: Option<Glob>,
    is_scheduled: bool,
    count: usize,
}
