//! The server's handle and the module's number of a waiting client.

use redis_module::raw;

/// The server's handle of a waiting client.
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

/// The module's own number of a waiting client. A client that came earlier has a smaller number.
pub type Ticket = u64;
