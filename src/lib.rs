//! DQ: a native delay queue for Redis and Valkey, as a server module.
//!
//! Wiring only. [`queue`] is the pure core, [`command`] the commands, [`redis`] the server's side.

pub mod queue;

mod command;
mod redis;

use redis_module::{Context, RedisString, Status};

use redis::{ServerAlloc, QUEUE_TYPE};

fn init(ctx: &Context, args: &[RedisString]) -> Status {
    if redis::load::prepare(ctx, args) && command::register_all(ctx.get_raw()) {
        Status::Ok
    } else {
        Status::Err
    }
}

redis_module::redis_module! {
    name: "dq",
    version: 100,
    allocator: (ServerAlloc, ServerAlloc),
    data_types: [QUEUE_TYPE],
    init: init,
}
