//! Reading a queue, which changes nothing.

pub mod dependencies;
pub mod forecast;
pub mod groups;
pub mod jobs;
