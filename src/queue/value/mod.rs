//! What is said and told: values that know nothing of a queue.

pub mod cron_words;
pub mod due;
pub mod fate;
pub mod glob;
pub mod ids;
pub mod policy;
pub mod rate;
pub mod record;
pub mod recurrence;
pub mod serial;
pub mod settings;
pub mod sink;
pub mod state;
pub mod tally;
pub mod time;
