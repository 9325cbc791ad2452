//! `DQ.GROUPS key cursor [COUNT n]`
//!
//! Goes through the groups of a queue, a part at a time, as DQ.SCAN goes through its jobs: begin
//! with the cursor 0, go on with the one replied, until that is 0 again. Shown are groups that have
//! jobs, in whatever state, and those that are paused. COUNT, 10 and at most 1,000, is how many
//! groups a part shows; it may show fewer or none.
//!
//! Replies with the next cursor and an array of groups, each a map, whose fields
//! docs/commands/groups.md explains.
//!
//! O(g) for g groups looked at. One with many jobs costs a step for some hundred of them.

use super::arg_reader::{options, ArgReader};
use super::error::Error;
use super::kinds::{Query, QueryContext};
use super::limits::{GROUPS_DEFAULT, GROUPS_MAX};
use crate::queue::{GroupView, Time};
use crate::server::replies::{Fields, Replies};
use crate::server::spec::{KeyUse, Spec};

pub struct Groups;

impl Query for Groups {
    const SPEC: Spec = Spec {
        name: c"dq.groups",
        summary: c"Iterates over the groups of a queue, with the counts of their jobs",
        complexity: c"O(G) with G being the number of groups looked at, and a step for some hundred jobs of one with many",
        since: Spec::SINCE_0_2,
        flags: c"readonly",
        arity: -3,
        key: KeyUse::Read,
        grammar: "key cursor [COUNT n]",
    };

    type Parsed<'c> = GroupsPart;

    fn parse<'c>(mut args: ArgReader<'c>) -> Result<GroupsPart, Error> {
        let cursor = args.integer("cursor", 0, u32::MAX.into())? as u32;
        let mut count = None;
        options!(args, {
            "COUNT" => count, count();
        });
        Ok(GroupsPart { cursor, count: count.unwrap_or(GROUPS_DEFAULT).min(GROUPS_MAX) })
    }

    fn reply(part: &GroupsPart, context: &QueryContext, replies: Replies) -> Result<(), Error> {
        let (groups, next) = context.queue().scan_groups(part.cursor, part.count);
        replies.page(next, groups.len());
        groups.iter().for_each(|group| reply_group(group, context.now, replies));
        Ok(())
    }

    fn reply_missing(_part: &GroupsPart, replies: Replies) -> Result<(), Error> {
        replies.page(None, 0);
        Ok(())
    }
}

fn reply_group(group: &GroupView, now: Time, replies: Replies) {
    // A job that is ready and could leave since then isn't held back.
    let blocked_until = group.opens.filter(|opens| group.ready > 0 && *opens > now);
    let mut fields = Fields::default();
    fields.add("group", group.name.bytes());
    fields.add("ready", group.ready as u64);
    fields.add("reserved", group.reserved as u64);
    fields.add("delayed", group.delayed as u64);
    fields.add("paused", u64::from(group.paused_until.is_some()));
    fields.add(
        "paused-until",
        group.paused_until.filter(|until| *until < Time::MAX).map(Time::unix_ms),
    );
    fields
        .add("blocked-until", blocked_until.filter(|until| *until < Time::MAX).map(Time::unix_ms));
    replies.fields(&fields);
}

pub struct GroupsPart {
    cursor: u32,
    count: usize,
}
