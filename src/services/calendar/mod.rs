//! When CRON comes.
//!
//! | file | what it is |
//! | --- | --- |
//! | `occurrences.rs` | the times of an expression in its time zone; expressions that were parsed lately |
//! | `cron.rs`, `cron_words.rs` | parsing an expression; what of it is refused |
//! | `recording_calendar.rs` | the calendar for one operation: its answers are logged |

mod cron;
mod cron_words;
pub mod occurrences;
pub mod recording_calendar;
