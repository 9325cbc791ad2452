//! The contract's calls as those of this client.

use std::future::IntoFuture;

use dq_client::commands::*;
use dq_client::{Error, Later, Lease, NewJob, Queue, Raw, State, Text};
use futures_util::future::BoxFuture;
use redis::{Pipeline, Value as Reply};
use serde_json::{json, Value};

use crate::values::*;

/// What reads a reply among those of a pipeline.
pub type Called = Box<dyn FnOnce(&[Reply]) -> Result<Value, Error> + Send>;

/// A command that can be sent, or put on a pipeline.
pub trait Prepared: Send {
    fn reply(self: Box<Self>) -> BoxFuture<'static, Result<Value, Error>>;
    fn on(self: Box<Self>, pipeline: &mut Pipeline) -> Result<Called, Error>;
}

trait Builder: IntoFuture<Output = Result<Self::Reply, Error>> {
    type Reply: 'static;
    fn put(self, pipeline: &mut Pipeline) -> Result<Later<Self::Reply>, Error>;
}

macro_rules! builders {
    ($($name:ident -> $reply:ty),* $(,)?) => {
        $(impl Builder for $name {
            type Reply = $reply;
            fn put(self, pipeline: &mut Pipeline) -> Result<Later<$reply>, Error> {
                self.on(pipeline)
            }
        })*
    };
}

builders! {
    Add -> dq_client::Added, AddMany -> Vec<Option<Text>>, Alter -> (), Bury -> bool, Del -> i64,
    Depends -> Option<dq_client::Deps>, Done -> Option<Vec<dq_client::Added>>, Finish -> i64,
    FinishAndMpop -> dq_client::FinishedAndTaken, FinishAndPop -> dq_client::FinishedAndTaken,
    Forecast -> Vec<i64>, Get -> Option<dq_client::Job>, Groups -> dq_client::Page<dq_client::Group>,
    GetInfo -> Option<dq_client::Info>, Kick -> i64, KickJob -> i64, Len -> i64,
    Mpop -> Vec<dq_client::Delivery>, Next -> Vec<std::time::SystemTime>, Pause -> (),
    Peek -> Vec<dq_client::Job>, Pop -> Vec<dq_client::Delivery>, Purge -> i64, Release -> bool,
    Renew -> Vec<Text>, GetResult -> Option<dq_client::Outcome>, Resume -> Option<i64>,
    Scan -> dq_client::Page<Text>, Touch -> bool,
}

struct Call<B: Builder>(B, fn(B::Reply) -> Value);

impl<B> Prepared for Call<B>
where
    B: Builder + Send + 'static,
    B::IntoFuture: Send,
{
    fn reply(self: Box<Self>) -> BoxFuture<'static, Result<Value, Error>> {
        Box::pin(async move { self.0.await.map(self.1) })
    }

    fn on(self: Box<Self>, pipeline: &mut Pipeline) -> Result<Called, Error> {
        let (later, out) = (self.0.put(pipeline)?, self.1);
        Ok(Box::new(move |replies| later.of(replies).map(out)))
    }
}

fn call<B>(builder: B, out: fn(B::Reply) -> Value) -> Box<dyn Prepared>
where
    B: Builder + Send + 'static,
    B::IntoFuture: Send,
{
    Box::new(Call(builder, out))
}

/// Options of a builder, where they are told: `set!(pop, told, count: int, nx: flag)`.
macro_rules! set {
    ($builder:expr, $told:expr, $($method:ident: $kind:ident),* $(,)?) => {{
        let mut builder = $builder;
        $(
            let value = &$told[stringify!($method).trim_end_matches('_')];
            if !value.is_null() {
                builder = set!(@one builder, $method, $kind, value);
            }
        )*
        builder
    }};
    (@one $builder:ident, $method:ident, int, $value:ident) => {
        $builder.$method($value.as_i64().expect("an integer of 64 bits"))
    };
    (@one $builder:ident, $method:ident, time, $value:ident) => {
        $builder.$method(ms($value).expect("milliseconds"))
    };
    (@one $builder:ident, $method:ident, times, $value:ident) => {
        $builder.$method($value.as_array().into_iter().flatten().filter_map(ms))
    };
    (@one $builder:ident, $method:ident, text, $value:ident) => { $builder.$method(bytes($value)) };
    (@one $builder:ident, $method:ident, texts, $value:ident) => { $builder.$method(texts($value)) };
    (@one $builder:ident, $method:ident, body, $value:ident) => { $builder.$method(Raw(bytes($value))) };
    (@one $builder:ident, $method:ident, flag, $value:ident) => { $builder.$method() };
    (@one $builder:ident, $method:ident, choice, $value:ident) => {
        $builder.$method(text($value).parse().expect("one of the grammar's values"))
    };
    (@one $builder:ident, $method:ident, each, $value:ident) => {
        texts($value).into_iter().fold($builder, |builder, id| builder.$method(id))
    };
    (@one $builder:ident, $method:ident, backoff, $value:ident) => {
        $builder.$method(backoff($value).expect("a record"))
    };
    (@one $builder:ident, $method:ident, rate, $value:ident) => {
        $builder.$method(rate($value).expect("a record"))
    };
    (@one $builder:ident, $method:ident, cron, $value:ident) => { $builder.$method(cron($value)) };
    (@one $builder:ident, $method:ident, sink, $value:ident) => { $builder.$method(sink($value)) };
}

macro_rules! job_options {
    ($builder:expr, $told:expr, $($more:tt)*) => {
        set!(
            $builder, $told, delay: time, at: time, ttr: time, priority: int, attempts: int,
            backoff: backoff, ttl: time, keep: time, late: time, group: text, after: texts,
            before: texts, ondead: choice, hold: flag, nx: flag, replace: flag, $($more)*
        )
    };
}

macro_rules! add_options {
    ($builder:expr, $told:expr) => {
        job_options!(
            $builder, $told, every: time, cron: cron, misfire: choice, jitter: time, runs: int,
            until: time, ensure: flag,
        )
    };
}

macro_rules! pop_options {
    ($builder:expr, $told:expr) => {
        set!(
            $builder, $told, count: int, min: int, linger: time, ttr: time, noack: flag,
            withdue: flag, block: time,
        )
    };
}

/// The options of DQ.ADD besides NX, REPLACE and ENSURE, which a topic has words for.
pub fn new_job_options(job: NewJob, told: &Value) -> NewJob {
    let mut told = told.clone();
    for flag in ["nx", "replace", "ensure"] {
        told[flag] = Value::Null;
    }
    add_options!(job, told)
}

fn texts(value: &Value) -> Vec<Vec<u8>> {
    value.as_array().map(|items| items.iter().map(bytes).collect()).unwrap_or_default()
}

fn id_of(told: &Value) -> Vec<u8> {
    if told["id"].is_null() {
        b"*".to_vec()
    } else {
        bytes(&told["id"])
    }
}

fn lease(value: &Value) -> Lease {
    value.as_i64().map_or(Lease::Latest, Lease::Number)
}

fn leased(jobs: &Value) -> Vec<(Vec<u8>, Lease)> {
    let jobs = jobs.as_array().unwrap();
    jobs.iter().map(|job| (bytes(&job["id"]), lease(&job["lease"]))).collect()
}

fn int(value: &Value) -> i64 {
    value.as_i64().expect("an integer of 64 bits")
}

fn state(value: &Value) -> State {
    text(value).parse().expect("a state")
}

pub fn prepared(
    command: &str,
    queue: impl Fn(&Value) -> Queue,
    key: &Value,
    told: &Value,
) -> Box<dyn Prepared> {
    if command == "mpop" {
        let keys = texts(key);
        let others: Vec<Text> = keys[1..].iter().map(|key| key.clone().into()).collect();
        let first = queue(&key[0]);
        if told["finish"].is_null() {
            return call(pop_options!(first.mpop(&others), told), keyed);
        }
        let of = bytes(&told["finish"]["key"]);
        let jobs = leased(&told["finish"]["job"]).into_iter();
        let jobs = jobs.map(|(id, lease)| (of.clone(), id, lease));
        return call(
            pop_options!(first.finish_and_mpop(jobs, &others), told),
            |both| json!({"finished": both.finished, "taken": keyed(both.jobs)}),
        );
    }
    let queue = queue(key);
    match command {
        "add" | "madd" | "done" => producing(command, &queue, told),
        "pop" | "finish" | "release" | "touch" | "renew" | "bury" => {
            consuming(command, &queue, told)
        }
        "get" | "result" | "deps" | "peek" | "scan" | "groups" | "len" | "forecast" | "info"
        | "next" => looking(command, &queue, told),
        _ => managing(command, &queue, told),
    }
}

fn producing(command: &str, queue: &Queue, told: &Value) -> Box<dyn Prepared> {
    if command == "add" {
        let add = queue.add(id_of(told), Raw(bytes(&told["body"])));
        return call(add_options!(add, told), |added| added_out(&added));
    }
    if command == "madd" {
        let jobs = told["job"].as_array().into_iter().flatten();
        let many = queue.add_many(jobs.map(|job| (id_of(job), Raw(bytes(&job["body"])))));
        let many = job_options!(many, told, delays: times, ats: times, spread: time);
        return call(many, |ids| {
            let shown = |id: &Text| bytes_out(id.as_bytes());
            ids.iter().map(|id| id.as_ref().map_or(Value::Null, shown)).collect()
        });
    }
    let done = queue.done(bytes(&told["id"]), lease(&told["lease"]));
    let done = set!(done, told, result: body, keep: time);
    let following = told["add"].as_array().into_iter().flatten();
    let done = following.fold(done, |done, each| {
        let job = NewJob::new(id_of(each), Raw(bytes(&each["body"])));
        done.add(&add_options!(job, each))
    });
    call(done, |added| {
        added.map_or(
            Value::Null,
            |added| json!({"added": added.iter().map(added_out).collect::<Value>()}),
        )
    })
}

fn keyed(taken: Vec<dq_client::Delivery>) -> Value {
    let Some(first) = taken.first() else { return Value::Null };
    json!({"key": bytes_out(first.key.as_bytes()), "jobs": deliveries_out(&taken)})
}

fn consuming(command: &str, queue: &Queue, told: &Value) -> Box<dyn Prepared> {
    let id = bytes(&told["id"]);
    match command {
        "pop" if told["finish"].is_null() => {
            let pop = set!(queue.pop(), told, id: each);
            call(pop_options!(pop, told), |taken| deliveries_out(&taken))
        }
        "pop" => {
            let both = queue.finish_and_pop(leased(&told["finish"]));
            call(
                pop_options!(both, told),
                |both| json!({"finished": both.finished, "taken": deliveries_out(&both.jobs)}),
            )
        }
        "finish" => call(queue.finish(leased(&told["job"])), Value::from),
        "release" => {
            let release = queue.release(id, lease(&told["lease"]));
            let release = set!(
                release, told, delay: time, unbegun: flag, priority: int, reason: text, body: body,
                note: text,
            );
            call(release, Value::from)
        }
        "touch" => {
            let touch = queue.touch(id, lease(&told["lease"]));
            call(set!(touch, told, ttr: time, body: body, note: text), Value::from)
        }
        "renew" => {
            let (ttr, block) = (ms(&told["ttr"]).unwrap(), ms(&told["block"]).unwrap());
            call(queue.renew(ttr, block, leased(&told["job"])), |void| {
                void.iter().map(|id| bytes_out(id.as_bytes())).collect()
            })
        }
        _ => {
            let bury = queue.bury(id, lease(&told["lease"]));
            call(set!(bury, told, reason: text), Value::from)
        }
    }
}

fn looking(command: &str, queue: &Queue, told: &Value) -> Box<dyn Prepared> {
    let id = bytes(&told["id"]);
    let cursor = told["cursor"].as_u64();
    match command {
        "get" => call(queue.get(id), |job| job.map_or(Value::Null, |job| job_out(&job))),
        "result" => call(set!(queue.result(id), told, block: time), |outcome| {
            outcome.map_or(Value::Null, |outcome| outcome_out(&outcome))
        }),
        "deps" => call(set!(queue.deps(id), told, from: int, count: int), |deps| {
            deps.map_or(Value::Null, |deps| deps_out(&deps))
        }),
        "peek" => {
            let peek = set!(queue.peek(), told, state: choice, after: text, from: time, count: int);
            call(peek, |jobs| jobs.iter().map(job_out).collect())
        }
        "scan" => {
            let scan = queue.scan(cursor.expect("a cursor"));
            let scan = set!(scan, told, state: choice, match_: text, scheduled: flag, count: int);
            call(scan, |page| {
                let items: Value = page.items.iter().map(|id| bytes_out(id.as_bytes())).collect();
                json!({"cursor": page.cursor, "items": items})
            })
        }
        "groups" => {
            let groups = set!(queue.groups(cursor.expect("a cursor")), told, count: int);
            call(groups, |page| {
                let items = page.items.iter().map(|group| shown_out(group.shown(), &[]));
                json!({"cursor": page.cursor, "items": items.collect::<Vec<_>>()})
            })
        }
        "len" => call(set!(queue.len(), told, state: choice), Value::from),
        "forecast" => {
            let forecast = queue.forecast(ms(&told["step"]).unwrap(), int(&told["count"]));
            call(set!(forecast, told, from: time), Value::from)
        }
        "info" => call(queue.info(), |info| {
            info.map_or(Value::Null, |info| shown_out(info.shown(), &[]).into())
        }),
        _ => {
            let next = queue.next(bytes(&told["expression"]));
            call(set!(next, told, tz: text, from: time, count: int), |times| {
                times.iter().map(dq_client::UnixMillis::unix_millis).collect()
            })
        }
    }
}

fn managing(command: &str, queue: &Queue, told: &Value) -> Box<dyn Prepared> {
    match command {
        "del" => call(queue.del(texts(&told["id"])), Value::from),
        "kick" => call(set!(queue.kick(), told, count: int, spread: time), Value::from),
        "kickjob" => call(queue.kickjob(texts(&told["id"])), Value::from),
        "pause" => call(set!(queue.pause(), told, group: text, for_: time), |()| Value::Null),
        "resume" => call(set!(queue.resume(), told, group: text, id: each), Value::from),
        "purge" => {
            let purge = queue.purge(state(&told["state"]));
            call(set!(purge, told, older: time, count: int), Value::from)
        }
        "alter" => {
            let alter = set!(
                queue.alter(), told, ttr: time, attempts: int, backoff: backoff, keep: time,
                late: time, maxjobs: int, deadkeep: time, concurrency: int, rate: rate,
                groupconcurrency: int, grouprate: rate, sink: sink, nosink: flag,
            );
            call(alter, |()| Value::Null)
        }
        other => panic!("no such command: {other}"),
    }
}
