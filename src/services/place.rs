//! Where a queue is.

/// The number of a database.
pub type Database = i32;

/// A key in a database.
pub type KeyRef = (Database, Box<[u8]>);
