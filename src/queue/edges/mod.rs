//! Dependencies: which jobs a job waits for. An edge leads from a *predecessor* to its *dependent*.
//! Jobs without edges, which are most, aren't mentioned here, and a queue without edges has none of
//! this.

pub mod edge;
mod leaving;
mod lists;
pub mod pending;
pub mod record;
pub mod table;
