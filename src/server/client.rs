//! How a client that waits is named, by the server and by the module.

use redis_module::raw;

/// What the server calls a client that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Client(*mut raw::RedisModuleBlockedClient);

impl Client {
    pub(super) fn new(raw: *mut raw::RedisModuleBlockedClient) -> Client {
        Client(raw)
    }

    pub(super) fn raw(self) -> *mut raw::RedisModuleBlockedClient {
        self.0
    }
}

// SAFETY: only used on the main thread, like everything here.
unsafe impl Send for Client {}

/// The module's own number of a client that waits: who came first has the smaller one.
pub type Ticket = u64;
