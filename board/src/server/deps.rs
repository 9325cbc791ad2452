//! What a job waits for, as DQ.DEPS says: part after part, in the order in which it was named.

use redis::{Cmd, Value};

use super::replies::{array, optional_bytes, optional_number, text};
use super::{Result, Trouble};

/// What one call shows: each may bring a result of some size.
const PART: usize = 20;

/// A job that another waits for, or has waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dep {
    pub id: Vec<u8>,
    /// That of a job, or `gone`.
    pub state: String,
    /// The result of one that is done, or why it is dead.
    pub what: Option<Vec<u8>>,
}

impl Dep {
    fn read(reply: Value) -> Result<Dep> {
        let [id, state, what] =
            <[Value; 3]>::try_from(array(reply)?).map_err(|_| Trouble::Strange("no edge"))?;
        let id = optional_bytes(id)?.ok_or(Trouble::Strange("an edge from no job"))?;
        Ok(Dep { id, state: text(state)?, what: optional_bytes(what)? })
    }

    pub fn is_gone(&self) -> bool {
        self.state == "gone"
    }
}

/// Some of them, and the place at which the next ones begin; `None` at the end.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Deps {
    pub found: Vec<Dep>,
    pub next: Option<u64>,
}

impl Deps {
    pub fn command(queue: &[u8], id: &[u8], from: u64) -> Cmd {
        let mut command = redis::cmd("DQ.DEPS");
        command.arg(queue).arg(id).arg("FROM").arg(from).arg("COUNT").arg(PART);
        command
    }

    /// Nothing when the job has gone meanwhile.
    pub fn read(reply: Value) -> Result<Deps> {
        if reply == Value::Nil {
            return Ok(Deps::default());
        }
        let [next, found] =
            <[Value; 2]>::try_from(array(reply)?).map_err(|_| Trouble::Strange("no edges"))?;
        let found = array(found)?.into_iter().map(Dep::read).collect::<Result<_>>()?;
        Ok(Deps { found, next: optional_number(next)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(bytes: &[u8]) -> Value {
        Value::BulkString(bytes.to_vec())
    }

    #[test]
    fn edges_are_read_with_what_came_of_them() {
        let edge = |id: &[u8], state: &[u8], what| Value::Array(vec![bulk(id), bulk(state), what]);
        let edges = vec![
            edge(b"a\xff", b"done", bulk(b"2 kg")),
            edge(b"b", b"reserved", Value::Nil),
            edge(b"c", b"gone", Value::Nil),
        ];
        let deps = Deps::read(Value::Array(vec![Value::Int(3), Value::Array(edges)])).unwrap();
        let told: Vec<_> = deps
            .found
            .iter()
            .map(|dep| (&dep.id[..], dep.state.as_str(), dep.what.as_deref(), dep.is_gone()))
            .collect();
        assert_eq!(
            told,
            [
                (&b"a\xff"[..], "done", Some(&b"2 kg"[..]), false),
                (b"b", "reserved", None, false),
                (b"c", "gone", None, true),
            ]
        );
        assert_eq!(deps.next, Some(3));
    }

    #[test]
    fn a_job_that_has_gone_waits_for_nothing_and_what_is_no_edge_is_refused() {
        assert_eq!(Deps::read(Value::Nil).unwrap(), Deps::default());
        let none = Value::Array(vec![Value::Nil, Value::Array(Vec::new())]);
        assert_eq!(Deps::read(none).unwrap(), Deps::default());
        for edge in [Value::Int(1), Value::Array(vec![bulk(b"a"), bulk(b"done")])] {
            let reply = Value::Array(vec![Value::Nil, Value::Array(vec![edge])]);
            assert!(Deps::read(reply).is_err());
        }
    }
}
