//! DQ: a native delay queue for Redis and Valkey, as a server module.
//!
//! Wiring only. [`queue`] is the pure core, `command` the commands, `services` what happens
//! around a queue, `server` the module API. Imports run one way: command → services → server, all
//! of them → queue.

pub mod queue;

mod command;
mod server;
mod services;

use redis_module::{Context, RedisString, Status};

use server::{load, ServerAlloc};
use services::config::CONFIGS;
use services::keys::persistence::QUEUE_TYPE;
use services::live::{self, HOOKS};

fn init(ctx: &Context, args: &[RedisString]) -> Status {
    if !load::prepare(ctx, &CONFIGS, args, HOOKS) {
        return Status::Err;
    }
    live::starts_as(load::is_primary(ctx));
    if command::register_all(ctx.get_raw()) {
        Status::Ok
    } else {
        Status::Err
    }
}

redis_module::redis_module! {
    name: "dq",
    version: load::VERSION,
    allocator: (ServerAlloc, ServerAlloc),
    data_types: [QUEUE_TYPE],
    init: init,
}
