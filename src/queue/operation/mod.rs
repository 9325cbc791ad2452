//! What commands and the timer do to a queue: one operation each.

pub mod consume;
pub mod depend;
pub mod done;
pub mod leaving;
pub mod manage;
pub mod new_edges;
pub mod passed_over;
pub mod produce;
pub mod renew;
pub mod scheduled;
pub mod upkeep;
pub mod work;
