//! `DQ.DEPS key id [FROM place] [COUNT n]`
//!
//! Shows the jobs that a job waits for or has waited for, in the order in which they were named: at
//! most `n` (100) and at most 10,000, from this place on (0). A worker reads there what the jobs
//! before its own came to.
//!
//! Replies with the place at which to go on, nil when there are no more, and an array of `[id,
//! state, what]`: what is the result of a job that is done, the reason of a dead one, nil otherwise.
//! A job that was removed is `gone`. The reply ends early once it has 16 MiB of ids and results. Replies
//! with nil when there is no such job.
//!
//! O(n) for n jobs shown.

use super::arg_reader::{options, ArgReader};
use super::error::Error;
use super::kinds::{Query, QueryContext};
use super::limits::{DEPS_DEFAULT, REPLY_BYTES_MAX};
use crate::queue::{Id, EDGES_MAX};
use crate::server::replies::Replies;
use crate::server::spec::{KeyUse, Spec};

pub struct Deps;

pub struct DepsArgs<'c> {
    id: Id<'c>,
    from: usize,
    count: usize,
}

impl Query for Deps {
    const SPEC: Spec = Spec {
        name: c"dq.deps",
        summary: c"Shows what a job waits for, and what came of it",
        complexity: c"O(M) with M being the number of jobs shown",
        since: Spec::SINCE_0_3,
        flags: c"readonly",
        arity: -3,
        key: KeyUse::Read,
        grammar: "key id [FROM place] [COUNT n]",
    };

    type Parsed<'c> = DepsArgs<'c>;

    fn parse<'c>(mut args: ArgReader<'c>) -> Result<DepsArgs<'c>, Error> {
        let id = args.require_id()?;
        let (mut from, mut count) = (None, None);
        options!(args, {
            "FROM" => from, small_integer(0);
            "COUNT" => count, count();
        });
        let count = count.unwrap_or(DEPS_DEFAULT).min(EDGES_MAX);
        Ok(DepsArgs { id, from: from.unwrap_or(0) as usize, count })
    }

    fn reply(args: &DepsArgs, context: &QueryContext, replies: Replies) -> Result<(), Error> {
        let DepsArgs { id, from, count } = *args;
        let queue = context.queue();
        if queue.get(id).is_none() {
            replies.null();
            return Ok(());
        }
        let (mut edges, mut next) = queue.edges_to(id, from, count, context.now);
        let mut bytes = 0;
        let mut is_within = |edge: &crate::queue::EdgeView| {
            let has_room = bytes < REPLY_BYTES_MAX;
            bytes += edge.id.bytes().len() + edge.what.map_or(0, <[u8]>::len);
            has_room
        };
        let shown = edges.iter().take_while(|edge| is_within(edge)).count();
        if shown < edges.len() {
            edges.truncate(shown);
            next = Some(from + shown);
        }
        replies.array(2);
        match next {
            Some(next) => replies.integer(next as u64),
            None => replies.null(),
        }
        replies.array(edges.len());
        for edge in &edges {
            replies.array(3);
            replies.bulk(edge.id.bytes());
            replies.bulk(edge.state.name().as_bytes());
            match edge.what {
                Some(what) => replies.bulk(what),
                None => replies.null(),
            }
        }
        Ok(())
    }
}
