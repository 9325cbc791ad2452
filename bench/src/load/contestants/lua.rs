//! A queue in Lua scripts, of the kind that many have written: a pool of jobs, a bucket sorted by
//! time, a ready list.
//!
//! As careful as we can: ids are unique; a lease is checked when a job is finished, and one that
//! ran out brings its job back; jobs are moved in bounded batches, with one command a batch;
//! scripts are cached and called by EVALSHA; nothing is looked up twice. What time has to move is
//! moved by a promoter on a connection of its own and not by each call.

use std::sync::LazyLock;

use anyhow::{bail, Context, Result};
use sha1_smol::Sha1;

use crate::load::session::{body, ensure_body, id, Delivery, Verbs, TTR_MS};
use crate::wire::{encode, Connection, Reply, Token, Tokens};

pub struct Script {
    source: &'static str,
    sha: LazyLock<String>,
}

impl Script {
    const fn new(source: &'static str, sha: fn() -> String) -> Script {
        Script { source, sha: LazyLock::new(sha) }
    }

    pub fn load(&self, connection: &mut Connection) -> Result<()> {
        connection.call(&["SCRIPT", "LOAD", self.source])?;
        Ok(())
    }

    /// Appends a call; all keys of the queue are passed, in one order.
    fn call(&self, out: &mut Vec<u8>, arguments: &[&[u8]]) {
        let mut words: Vec<&[u8]> = vec![b"EVALSHA", self.sha.as_bytes(), b"5"];
        words.extend(KEYS.iter().map(|key| key.as_bytes()));
        words.extend(arguments);
        encode(out, &words);
    }
}

/// Bodies by id; how often each was handed out; due times; ids that are ready; when leases end.
const KEYS: [&str; 5] =
    ["{queue}:pool", "{queue}:attempts", "{queue}:bucket", READY, "{queue}:leases"];
pub const READY: &str = "{queue}:ready";
/// Where a blocked consumer's job is between its BLMOVE and its claim.
pub const CLAIMED: &str = "{queue}:claimed";

macro_rules! script {
    ($name:ident, $file:literal) => {
        pub static $name: Script = Script::new(include_str!($file), || {
            Sha1::from(include_str!($file)).digest().to_string()
        });
    };
}

script!(ADD, "lua/add.lua");
script!(TAKE, "lua/take.lua");
script!(CLAIM, "lua/claim.lua");
script!(FINISH, "lua/finish.lua");
script!(PROMOTE, "lua/promote.lua");

/// The promoter asks at least so often, for jobs that were added since and are due sooner than all
/// others.
pub const LONGEST_SLEEP_MS: u64 = 10;

pub fn prepare(connection: &mut Connection) -> Result<()> {
    [&ADD, &TAKE, &CLAIM, &FINISH, &PROMOTE]
        .into_iter()
        .try_for_each(|script| script.load(connection))
}

pub fn now_ms() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |now| now.as_millis() as u64)
}

pub struct Lua;

/// Appends what adds these jobs by one call: ready now, or due at a time.
pub fn add_at(out: &mut Vec<u8>, ids: std::ops::Range<u64>, due_ms: Option<u64>) {
    let jobs: Vec<_> = ids.map(|number| (id(number), body(number))).collect();
    let jobs: Vec<(&[u8], &[u8])> = jobs.iter().map(|(id, body)| (&id[..], &body[..])).collect();
    add_jobs(out, &jobs, due_ms);
}

pub fn add_jobs(out: &mut Vec<u8>, jobs: &[(&[u8], &[u8])], due_ms: Option<u64>) {
    let due = due_ms.map_or(String::new(), |due| due.to_string());
    let mut arguments: Vec<&[u8]> = vec![due.as_bytes()];
    arguments.extend(jobs.iter().flat_map(|(id, body)| [id, body]));
    ADD.call(out, &arguments);
}

impl Verbs for Lua {
    fn add(&mut self, out: &mut Vec<u8>, id: u64, delay_ms: u64) -> usize {
        add_at(out, id..id + 1, (delay_ms > 0).then(|| now_ms() + delay_ms));
        1
    }

    fn add_all(&mut self, out: &mut Vec<u8>, ids: std::ops::Range<u64>) -> usize {
        add_at(out, ids, None);
        1
    }

    fn take(&mut self, out: &mut Vec<u8>, count: usize) -> usize {
        let lease_ends = (now_ms() + TTR_MS).to_string();
        TAKE.call(out, &[count.to_string().as_bytes(), lease_ends.as_bytes()]);
        1
    }

    fn finish(&mut self, out: &mut Vec<u8>, deliveries: &[Delivery]) -> usize {
        let words: Vec<&[u8]> =
            deliveries.iter().flat_map(|delivery| [&*delivery.id, &*delivery.lease]).collect();
        finish(out, &words);
        1
    }

    /// A flat list: id, body, attempt.
    fn taken(&mut self, reply: &[u8], into: &mut Vec<Delivery>) -> Result<()> {
        let mut tokens = Tokens::of(reply);
        let Some(Ok(Token::Array(length))) = tokens.next() else { bail!("not a list of jobs") };
        let mut next = || -> Result<_> { tokens.next().context("half a job")? };
        for _ in 0..length / 3 {
            let (Token::Bulk(id), Token::Bulk(body), Token::Integer(attempt)) =
                (next()?, next()?, next()?)
            else {
                bail!("not id, body, attempt");
            };
            ensure_body(body)?;
            into.push(Delivery { id: id.to_vec(), lease: attempt.to_vec() });
        }
        Ok(())
    }
}

/// Makes ready what is due. Returns when it should be called again, in milliseconds; 0: there is
/// more.
pub fn promote(connection: &mut Connection) -> Result<u64> {
    let mut command = Vec::new();
    PROMOTE.call(&mut command, &[now_ms().to_string().as_bytes()]);
    connection.send(&command)?;
    Ok(connection.receive()?.integer()?.max(0) as u64)
}

/// A job that BLMOVE has put into the list of what is being claimed becomes leased. Returns id,
/// body, attempt.
pub fn claim(connection: &mut Connection, id: &[u8]) -> Result<Vec<Reply>> {
    let mut command = Vec::new();
    let lease_ends = (now_ms() + TTR_MS).to_string();
    CLAIM.call(&mut command, &[id, lease_ends.as_bytes()]);
    connection.send(&command)?;
    connection.receive()?.array()
}

/// Appends what finishes jobs: id, attempt, ...
pub fn finish(out: &mut Vec<u8>, words: &[&[u8]]) {
    FINISH.call(out, words);
}
