//! The lines of jobs, sorted by time: buckets, and lanes by priority.

pub mod bucket;
pub mod buckets;
pub mod counts;
pub mod entry;
pub mod lanes;
pub mod placement;
pub mod window;
