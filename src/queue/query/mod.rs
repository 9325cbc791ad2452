//! Pages, scans and forecasts of a queue, which change nothing. What other rooms read is in
//! `kernel/view.rs`.

pub mod dependencies;
pub mod forecast;
pub mod groups;
pub mod jobs;
