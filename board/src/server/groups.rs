//! Pages of a queue's groups, as DQ.GROUPS gives them: in no order that means anything, by a
//! cursor.

use std::sync::Arc;
use std::time::Instant;

use redis::{Cmd, Value};

use super::deployment::Deployment;
use super::jobs::{ask_one, Place, PAGE, SEEK_WITHIN};
use super::node::Node;
use super::replies::{fields, scanned_values, Field};
use super::{Result, Trouble};

/// A group that has jobs or is paused.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Group {
    pub name: Vec<u8>,
    pub ready: u64,
    pub reserved: u64,
    pub delayed: u64,
    pub is_paused: bool,
    /// `None` also when its pause has no end.
    pub paused_until: Option<u64>,
    /// Until when its limits or its pause let no job of it go.
    pub blocked_until: Option<u64>,
}

impl Group {
    fn read(reply: Value) -> Result<Group> {
        let mut group = Group::default();
        let mut is_named = false;
        for (name, field) in fields(reply)?.unwrap_or_default() {
            is_named |= name == "group";
            group.take(&name, field);
        }
        is_named.then_some(group).ok_or(Trouble::Strange("a group without a name"))
    }

    fn take(&mut self, name: &str, field: Field) {
        let maybe = field.number();
        let number = maybe.unwrap_or(0);
        match name {
            "group" => self.name = field.bytes().unwrap_or_default(),
            "ready" => self.ready = number,
            "reserved" => self.reserved = number,
            "delayed" => self.delayed = number,
            "paused" => self.is_paused = number != 0,
            "paused-until" => self.paused_until = maybe,
            "blocked-until" => self.blocked_until = maybe,
            // What a later DQ says besides has no place in a row.
            _ => {}
        }
    }
}

/// Ready jobs of groups that let none of them go.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeldBack {
    pub ready: u64,
    /// How many groups are at their limits, and how many are paused.
    pub limited: u64,
    pub paused: u64,
    /// When the first of them may go; `None` where that is no time.
    pub until: Option<u64>,
}

impl HeldBack {
    fn of(groups: &[Group]) -> HeldBack {
        let mut held = HeldBack::default();
        for group in groups.iter().filter(|group| group.ready > 0) {
            if !group.is_paused && group.blocked_until.is_none() {
                continue;
            }
            held.ready += group.ready;
            held.paused += u64::from(group.is_paused);
            held.limited += u64::from(!group.is_paused);
            held.until = held.until.into_iter().chain(group.blocked_until).min();
        }
        held
    }
}

/// How many groups are looked at for [`HeldBack`]: with more, only waiting workers tell that all
/// ready jobs are held back.
const HELD_BACK_MAX: usize = 1_000;

/// A page of groups, and the cursor of those behind them; `None` at the end.
pub struct Groups {
    pub groups: Vec<Group>,
    pub next: Option<u64>,
}

impl Place<'_> {
    /// Of the groups that one call gives.
    pub async fn held_back(&self) -> Result<HeldBack> {
        let (_, found) = scanned_values(self.ask(command(self.queue, 0, HELD_BACK_MAX)).await?)?;
        let groups: Vec<Group> = found.into_iter().map(Group::read).collect::<Result<_>>()?;
        Ok(HeldBack::of(&groups))
    }

    /// A page of groups from a cursor on. One reply may have few of them, or none: the page goes on
    /// until it is full, or there are no more.
    pub async fn groups(&self, from: u64) -> Result<Groups> {
        let (mut groups, mut cursor) = (Vec::new(), from);
        let began = Instant::now();
        loop {
            let count = PAGE.saturating_sub(groups.len());
            let (next, found) =
                scanned_values(self.ask(command(self.queue, cursor, count)).await?)?;
            for group in found {
                groups.push(Group::read(group)?);
            }
            cursor = next;
            if cursor == 0 || groups.len() >= PAGE || began.elapsed() > SEEK_WITHIN {
                return Ok(Groups { groups, next: (cursor != 0).then_some(cursor) });
            }
        }
    }
}

/// How many groups one DQ.GROUPS gives at most.
pub const ALL_MAX: u64 = 1_000;

/// Those of a queue that are paused, where one reply has all groups.
pub async fn paused(
    deployment: &Deployment,
    node: Option<Arc<Node>>,
    queue: &[u8],
) -> Result<Vec<Vec<u8>>> {
    let reply = ask_one(deployment, node, command(queue, 0, ALL_MAX as usize)).await?;
    let groups = scanned_values(reply)?.1.into_iter().map(Group::read);
    let groups: Vec<Group> = groups.collect::<Result<_>>()?;
    Ok(groups.into_iter().filter(|group| group.is_paused).map(|group| group.name).collect())
}

fn command(queue: &[u8], cursor: u64, count: usize) -> Cmd {
    let mut command = redis::cmd("DQ.GROUPS");
    command.arg(queue).arg(cursor).arg("COUNT").arg(count);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &[u8]) -> Value {
        Value::BulkString(text.to_vec())
    }

    fn pairs(name: &[u8]) -> Vec<(Value, Value)> {
        vec![
            (text(b"group"), text(name)),
            (text(b"ready"), Value::Int(3)),
            (text(b"reserved"), Value::Int(2)),
            (text(b"delayed"), Value::Int(1)),
            (text(b"paused"), Value::Int(1)),
            (text(b"paused-until"), Value::Int(1_795_300_000_123)),
            (text(b"blocked-until"), Value::Nil),
            (text(b"of-a-later-version"), Value::Array(vec![Value::Int(1)])),
        ]
    }

    #[test]
    fn a_group_is_read_from_both_protocols() {
        let name = b"<b>\xff\0";
        let group = Group {
            name: name.to_vec(),
            ready: 3,
            reserved: 2,
            delayed: 1,
            is_paused: true,
            paused_until: Some(1_795_300_000_123),
            blocked_until: None,
        };
        let flat = pairs(name).into_iter().flat_map(|(name, value)| [name, value]).collect();
        for reply in [Value::Map(pairs(name)), Value::Array(flat)] {
            assert_eq!(Group::read(reply).unwrap(), group);
        }
    }

    #[test]
    fn a_reply_that_is_no_group_is_refused() {
        for reply in [Value::Nil, Value::Map(Vec::new()), Value::Int(1), text(b"ann")] {
            assert!(Group::read(reply.clone()).is_err(), "{reply:?}");
        }
        assert!(scanned_values(Value::Array(vec![text(b"0")])).is_err());
        let empty = Value::Array(vec![text(b"7"), Value::Array(Vec::new())]);
        assert_eq!(scanned_values(empty).unwrap(), (7, Vec::new()));
    }

    #[test]
    fn what_is_held_back_is_what_groups_at_a_limit_or_paused_have_ready() {
        let group = |ready, blocked_until, is_paused| Group {
            ready,
            blocked_until,
            is_paused,
            ..Group::default()
        };
        let groups = [
            group(3, Some(900), false),
            group(2, Some(700), false),
            group(4, None, true),
            group(5, None, false),
            group(0, Some(1), false),
        ];
        let held = HeldBack { ready: 9, limited: 2, paused: 1, until: Some(700) };
        assert_eq!(HeldBack::of(&groups), held);
        assert_eq!(HeldBack::of(&[]), HeldBack::default());
    }
}
