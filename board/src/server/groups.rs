//! Pages of a queue's groups, as DQ.GROUPS gives them: in no order that means anything, by a
//! cursor.

use std::time::Instant;

use redis::{Cmd, Value};

use super::jobs::{Place, PAGE, SEEK_WITHIN};
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

/// A page of groups, and the cursor of those behind them; `None` at the end.
pub struct Groups {
    pub groups: Vec<Group>,
    pub next: Option<u64>,
}

impl Place<'_> {
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
}
