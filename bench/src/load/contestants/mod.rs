//! Who takes part, what each can do, and how its server is started.

mod beanstalk;
mod bullmq;
mod dq;
pub mod lua;
mod redis_types;

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use tempfile::TempDir;

use crate::load::session::{Load, Verbs};
use crate::server::{self, Server};
use crate::wire::{Connection, Protocol};

pub use beanstalk::put;
pub use bullmq::BullMq;

const START_WITHIN: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Contestant {
    /// What the others are multiples of.
    Set,
    Dq,
    /// Another build of it, for what a change brought.
    DqBefore,
    List,
    SortedSet,
    Stream,
    Lua,
    Beanstalkd,
    BullMq,
}

use Contestant::{Beanstalkd, BullMq as BullMQ, Dq, DqBefore, List, Lua, Set, SortedSet, Stream};

impl Contestant {
    pub const ALL: [Contestant; 9] =
        [Set, DqBefore, Dq, List, SortedSet, Stream, Lua, Beanstalkd, BullMQ];

    /// As JSON and `--only` name it.
    pub fn name(self) -> &'static str {
        match self {
            Set => "set",
            Dq => "dq",
            DqBefore => "dq-before",
            List => "list",
            SortedSet => "zset",
            Stream => "stream",
            Lua => "lua",
            Beanstalkd => "beanstalkd",
            BullMQ => "bullmq",
        }
    }

    pub fn title(self) -> &'static str {
        match self {
            Set => "SET",
            Dq => "DQ",
            DqBefore => "DQ before",
            List => "LPUSH, RPOP",
            SortedSet => "ZADD, ZPOPMIN",
            Stream => "stream and group",
            Lua => "Lua scripts",
            Beanstalkd => "beanstalkd",
            BullMQ => "BullMQ",
        }
    }

    pub fn of_name(name: &str) -> Option<Contestant> {
        Contestant::ALL.into_iter().find(|contestant| contestant.name() == name)
    }

    pub fn can(self, load: Load) -> bool {
        match self {
            Set => matches!(load, Load::Enqueue),
            Dq | DqBefore | Lua => true,
            List | Stream => matches!(load, Load::Enqueue | Load::Life | Load::Batches),
            SortedSet => !matches!(load, Load::Consume | Load::ConsumeBatches),
            // It has no batches.
            Beanstalkd => !matches!(load, Load::Batches | Load::ConsumeBatches),
            BullMQ => true,
        }
    }

    /// None for BullMQ, whose client is a program of its own.
    pub fn verbs(self) -> Option<Box<dyn Verbs>> {
        Some(match self {
            Set => Box::new(redis_types::Set),
            Dq | DqBefore => Box::new(dq::Dq),
            List => Box::new(redis_types::List),
            SortedSet => Box::new(redis_types::SortedSet),
            Stream => Box::new(redis_types::Stream::default()),
            Lua => Box::new(lua::Lua),
            Beanstalkd => Box::new(beanstalk::Beanstalk),
            BullMQ => return None,
        })
    }

    pub fn protocol(self) -> Protocol {
        if self == Beanstalkd {
            Protocol::Beanstalk
        } else {
            Protocol::Resp
        }
    }
}

/// Whether what is written is kept in a log that is synced every second.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Log {
    None,
    EverySecond,
}

/// What servers are started of.
pub struct Programs {
    pub redis: PathBuf,
    pub module: PathBuf,
    /// That of the build before.
    pub before: Option<PathBuf>,
    pub beanstalkd: Option<PathBuf>,
    pub bullmq: Option<BullMq>,
}

/// A contestant's server, ready.
pub struct Running {
    pub server: Server,
    pub port: u16,
    /// One connection, for whatever isn't the load.
    pub connection: Connection,
}

impl Programs {
    pub fn have(&self, contestant: Contestant) -> bool {
        match contestant {
            DqBefore => self.before.is_some(),
            Beanstalkd => self.beanstalkd.is_some(),
            BullMQ => self.bullmq.is_some(),
            _ => true,
        }
    }

    pub fn start(&self, contestant: Contestant, log: Log) -> Result<Running> {
        self.start_with(contestant, log, &[])
    }

    /// With these lines of redis.conf, where it runs on a Redis.
    pub fn start_with(&self, contestant: Contestant, log: Log, lines: &[&str]) -> Result<Running> {
        if contestant == Beanstalkd {
            return self.start_beanstalkd(log);
        }
        let mut running = self.start_redis(contestant, log, lines, server::new_directory()?)?;
        match contestant {
            Stream => drop(
                running
                    .connection
                    .call(&["XGROUP", "CREATE", "queue", "workers", "$", "MKSTREAM"])?,
            ),
            Lua => lua::prepare(&mut running.connection)?,
            _ => {}
        }
        Ok(running)
    }

    /// On a directory that may hold files of an earlier run.
    pub fn start_redis(
        &self,
        contestant: Contestant,
        log: Log,
        lines: &[&str],
        directory: TempDir,
    ) -> Result<Running> {
        let port = server::free_port()?;
        let mut config = vec![format!("port {port}"), "aof-use-rdb-preamble no".to_owned()];
        config.extend(lines.iter().map(|line| (*line).to_owned()));
        if log == Log::EverySecond {
            config.push("appendonly yes".to_owned());
        }
        let module = match contestant {
            Dq => Some(&self.module),
            DqBefore => self.before.as_ref(),
            _ => None,
        };
        config.extend(module.map(|module| format!("loadmodule \"{}\"", module.display())));
        let mut server = Server::redis_in(directory, &self.redis, None, &config)?;
        let connection = server.connect(START_WITHIN, || {})?;
        Ok(Running { server, port, connection })
    }

    fn start_beanstalkd(&self, log: Log) -> Result<Running> {
        let program = self.beanstalkd.as_ref().context("beanstalkd isn't installed")?;
        let port = server::free_port()?;
        let directory = server::new_directory()?;
        let mut command = Command::new(program);
        command.args(["-l", "127.0.0.1", "-p", &port.to_string()]);
        if log == Log::EverySecond {
            command.arg("-b").arg(directory.path()).args(["-f", "1000"]);
        }
        let mut server = Server::start(directory, command)?;
        let connection = server.connect_to(port, Protocol::Beanstalk, START_WITHIN)?;
        Ok(Running { server, port, connection })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::session::{body, Delivery};
    use crate::wire::encode;

    /// An array of strings, as a server sends it.
    fn array(items: &[&[u8]]) -> Vec<u8> {
        let mut out = Vec::new();
        encode(&mut out, items);
        out
    }

    fn ids_and_leases(contestant: Contestant, reply: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut deliveries = Vec::new();
        contestant.verbs().unwrap().taken(reply, &mut deliveries).unwrap();
        deliveries.into_iter().map(|Delivery { id, lease }| (id, lease)).collect()
    }

    #[test]
    fn each_contestants_reply_to_a_delivery_is_read() {
        let body = body(1);
        let element = [&b"job-000000000001"[..], &body].concat();
        let dq = [&b"*1\r\n*4\r\n$1\r\na\r\n$100\r\n"[..], &body, b"\r\n:77\r\n:1\r\n"].concat();
        let lua = [&b"*3\r\n$1\r\na\r\n$100\r\n"[..], &body, b"\r\n:2\r\n"].concat();
        let entry = array(&[b"id", b"a", b"body", &body]);
        let stream =
            [&b"*1\r\n*2\r\n$5\r\nqueue\r\n*1\r\n*2\r\n$3\r\n1-0\r\n"[..], &entry].concat();
        let beanstalk = [&b"RESERVED 7 100\r\n"[..], &body, b"\r\n"].concat();
        let cases: [(Contestant, Vec<u8>, &str, &str); 6] = [
            (Dq, dq, "a", "77"),
            (Lua, lua, "a", "2"),
            (List, array(&[&element]), "job-000000000001", ""),
            (SortedSet, array(&[&element, b"123"]), "job-000000000001", ""),
            (Stream, stream, "1-0", ""),
            (Beanstalkd, beanstalk, "7", ""),
        ];
        for (contestant, reply, id, lease) in cases {
            let expected = vec![(id.as_bytes().to_vec(), lease.as_bytes().to_vec())];
            assert_eq!(ids_and_leases(contestant, &reply), expected, "{contestant:?}");
        }
    }

    #[test]
    fn a_reply_that_nothing_is_ready_is_no_delivery() {
        let nothing: [(Contestant, &[u8]); 5] = [
            (Dq, b"*-1\r\n"),
            (Lua, b"*0\r\n"),
            (List, b"$-1\r\n"),
            (SortedSet, b"*0\r\n"),
            (Beanstalkd, b"TIMED_OUT\r\n"),
        ];
        for (contestant, reply) in nothing {
            assert_eq!(ids_and_leases(contestant, reply), [], "{contestant:?}");
        }
    }

    #[test]
    fn a_body_that_is_not_ours_is_an_error() {
        let reply = b"*1\r\n*4\r\n$1\r\na\r\n$1\r\nb\r\n:77\r\n:1\r\n";
        assert!(Dq.verbs().unwrap().taken(reply, &mut Vec::new()).is_err());
    }
}
