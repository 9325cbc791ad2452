//! The commands, one file each: its grammar in the head, its description for the server, then what
//! is its own: parse and reply. No command file uses another; what they share is here:
//!
//! | file | what it is |
//! | --- | --- |
//! | `kinds.rs` | the two kinds of commands, those that change and those that look, and how each is carried out |
//! | `arg_reader.rs`, `limits.rs` | reading arguments; how much a command takes or gives |
//! | `table.rs` | every command, and of which kind it is |
//! | `error.rs`, `quoted.rs` | every error, with its wording; how it shows what a client sent |
//! | `new_job.rs` | a job as DQ.ADD and DQ.DONE take it |
//! | `consumer.rs` | what DQ.POP and DQ.MPOP share |
//! | `schedule_options.rs`, `edge_options.rs` | the options of a schedule; those of a job that waits for others |
//! | `job_reply.rs` | a job as it is shown |

#![forbid(unsafe_code)]

mod add;
mod alter;
mod apply;
mod arg_reader;
mod bury;
mod consumer;
mod del;
mod deps;
mod done;
mod edge_options;
mod error;
mod finish;
mod forecast;
mod get;
mod groups;
mod info;
mod job_reply;
mod kick;
mod kickjob;
mod kinds;
mod len;
mod limits;
mod madd;
mod mpop;
mod new_job;
mod next;
mod pause;
mod peek;
mod pop;
mod purge;
mod quoted;
mod release;
mod renew;
mod result;
mod resume;
mod scan;
mod schedule_options;
mod table;
mod touch;

pub use table::register_all;
