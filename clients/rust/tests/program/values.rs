//! The contract's values in Rust's types, and back.

use base64::prelude::{Engine, BASE64_STANDARD};
use dq_client::{
    Added, Backoff, Cron, Delivery, Deps, Error, Job, Millis, Outcome, Rate, Shown, Sink,
    UnixMillis,
};
use redis::{Cmd, Value as Reply};
use serde_json::{json, Map, Value};

/// A duration of the contract, which may be one that Rust's own type can't say.
pub struct Ms(pub i64);

impl Millis for Ms {
    fn millis(&self) -> i64 {
        self.0
    }
}

impl UnixMillis for Ms {
    fn unix_millis(&self) -> i64 {
        self.0
    }
}

pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

pub fn bytes(value: &Value) -> Vec<u8> {
    match value {
        Value::String(text) => text.clone().into_bytes(),
        Value::Object(told) => BASE64_STANDARD.decode(text(&told["base64"])).unwrap(),
        _ => Vec::new(),
    }
}

pub fn ms(value: &Value) -> Option<Ms> {
    Some(Ms(value.get("ms").or(value.get("unix-ms"))?.as_i64()?))
}

pub fn backoff(value: &Value) -> Option<Backoff<Ms>> {
    Some(Backoff { base: ms(&value["base"])?, max: ms(&value["max"])? })
}

pub fn rate(value: &Value) -> Option<Rate<Ms>> {
    Some(Rate { n: value["n"].as_i64()?, per: ms(&value["per"])?, burst: value["burst"].as_i64() })
}

pub fn cron(value: &Value) -> Cron {
    let tz = value.get("tz").map(|tz| bytes(tz).into());
    Cron { expression: bytes(&value["expression"]).into(), tz }
}

pub fn sink(value: &Value) -> Sink {
    Sink { stream: bytes(&value["stream"]).into(), maxlen: value["maxlen"].as_i64() }
}

/// Each char is a byte.
pub fn command_of(words: &Value) -> Cmd {
    let mut command = Cmd::new();
    for word in words.as_array().unwrap() {
        let bytes: Vec<u8> = text(word).chars().map(|char| char as u8).collect();
        command.arg(bytes);
    }
    command
}

// ---- back ----------------------------------------------------------------------------------------

pub fn tell(line: &Value) {
    // One write, under the lock of stdout.
    println!("{line}");
}

pub fn bytes_out(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(_) => json!({"base64": BASE64_STANDARD.encode(bytes)}),
    }
}

pub fn plain_out(reply: Reply) -> Value {
    match reply {
        Reply::Nil => Value::Null,
        Reply::Int(number) => number.into(),
        Reply::BulkString(bytes) => bytes_out(&bytes),
        Reply::SimpleString(text) => text.into(),
        Reply::Okay => "OK".into(),
        Reply::Array(items) | Reply::Set(items) => items.into_iter().map(plain_out).collect(),
        Reply::Map(pairs) => {
            let pairs = pairs.into_iter().map(|(name, value)| {
                (plain_out(name).as_str().unwrap_or_default().to_owned(), plain_out(value))
            });
            Value::Object(pairs.collect())
        }
        Reply::Double(number) => number.into(),
        Reply::Boolean(is) => is.into(),
        Reply::VerbatimString { text, .. } => text.into(),
        other => panic!("{other:?}"),
    }
}

pub fn shown_out(shown: Vec<(&'static str, Shown)>, optional: &[&str]) -> Map<String, Value> {
    let there = shown
        .into_iter()
        .filter(|(name, value)| *value != Shown::Nothing || !optional.contains(name));
    there
        .map(|(name, value)| {
            let value = match value {
                Shown::Nothing => Value::Null,
                Shown::Number(number) => number.into(),
                Shown::Flag(is) => is.into(),
                Shown::Bytes(bytes) => bytes_out(&bytes),
            };
            (name.to_owned(), value)
        })
        .collect()
}

pub fn job_out(job: &Job) -> Value {
    let mut told = shown_out(job.shown(), &["group", "note", "result"]);
    for part in [
        job.edges.as_ref().map(|part| part.shown()),
        job.schedule.as_ref().map(|part| part.shown()),
    ] {
        told.extend(shown_out(part.unwrap_or_default(), &[]));
    }
    told.into()
}

pub fn added_out(added: &Added) -> Value {
    match added {
        Added::Added(id) => json!({"added": bytes_out(id.as_bytes())}),
        _ => json!({}),
    }
}

pub fn deliveries_out(taken: &[Delivery]) -> Value {
    let one = |job: &Delivery| {
        json!({
            "key": bytes_out(job.key.as_bytes()), "id": bytes_out(job.id.as_bytes()),
            "body": bytes_out(&job.payload), "lease": job.lease, "attempt": job.attempt,
            "due": job.due.map(|due| due.unix_millis()),
        })
    };
    taken.iter().map(one).collect()
}

pub fn outcome_out(outcome: &Outcome) -> Value {
    let what = outcome.payload.as_ref().map(|bytes| bytes_out(bytes));
    json!({"state": outcome.state.to_string(), "what": what})
}

pub fn deps_out(deps: &Deps) -> Value {
    let items = deps.items.iter().map(|dep| {
        let mut told = outcome_out(&dep.outcome);
        told["id"] = bytes_out(dep.id.as_bytes());
        told
    });
    json!({"next": deps.next, "items": items.collect::<Value>()})
}

pub fn error_out(error: &Error) -> Value {
    let name = format!("{error:?}");
    let name = name.split(['(', ' ']).next().unwrap_or_default();
    let message = error.message().map_or_else(|| error.to_string(), str::to_owned);
    json!({"type": name, "code": error.code(), "message": message})
}
