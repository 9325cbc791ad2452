//! Where a queue is, and other words that the server's floor and the services share: types, and
//! nothing that calls the server.

pub use crate::server::client::Ticket;
pub use crate::server::context::Database;
pub use crate::server::key::{Access, Closed, QueueKey};

/// A key in a database.
pub type KeyRef = (Database, Box<[u8]>);
