//! The commands, one file each: its grammar in the head, its description for the server, then what is its own: parse
//! and reply. No command file uses another (but DQ.APPLY, which repeats the others); what they share is here:
//!
//! | file | what it is |
//! | --- | --- |
//! | `kinds.rs` | the two kinds of commands, those that change and those that look, and how each is carried out |
//! | `words.rs`, `limits.rs` | reading arguments; how much a command takes or gives |
//! | `error.rs`, `quoted.rs` | every error, with its wording; how it shows what a client sent |
//! | `consumer.rs` | what DQ.POP and DQ.MPOP share |
//! | `schedule_words.rs` | the words of a schedule |
//! | `job_reply.rs` | a job as it is shown |

#![forbid(unsafe_code)]

mod add;
mod alter;
mod apply;
mod bury;
mod consumer;
mod del;
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
mod mpop;
mod next;
mod pause;
mod peek;
mod pop;
mod purge;
mod quoted;
mod release;
mod resume;
mod scan;
mod schedule_words;
mod touch;
mod words;

use redis_module::raw;

use crate::server::arg::Arg;
use crate::server::call::Call;
use crate::server::command::{register, Handler};
use crate::server::logfile::warning;
use crate::server::spec::Spec;
use crate::services::frame::Source;
use crate::services::live::{source_of, tell_of_divergence};
use error::Error;
use kinds::{Changing, LookingAt};

/// Registers all commands. False, with a word in the log, when the server won't have one.
pub fn register_all(ctx: *mut raw::RedisModuleCtx) -> bool {
    register::<Logged<Changing<add::Add>>>(ctx)
        && register::<Logged<pop::Pop>>(ctx)
        && register::<mpop::MPop>(ctx)
        && register::<Logged<Changing<finish::Finish>>>(ctx)
        && register::<Logged<Changing<release::Release>>>(ctx)
        && register::<Logged<Changing<touch::Touch>>>(ctx)
        && register::<Logged<Changing<bury::Bury>>>(ctx)
        && register::<Logged<Changing<del::Del>>>(ctx)
        && register::<kick::Kick>(ctx)
        && register::<Logged<Changing<kickjob::KickJob>>>(ctx)
        && register::<Logged<Changing<pause::Pause>>>(ctx)
        && register::<Logged<Changing<resume::Resume>>>(ctx)
        && register::<purge::Purge>(ctx)
        && register::<Logged<Changing<alter::Alter>>>(ctx)
        && register::<LookingAt<get::Get>>(ctx)
        && register::<LookingAt<peek::Peek>>(ctx)
        && register::<LookingAt<scan::Scan>>(ctx)
        && register::<LookingAt<groups::Groups>>(ctx)
        && register::<LookingAt<len::Len>>(ctx)
        && register::<LookingAt<info::Info>>(ctx)
        && register::<LookingAt<forecast::Forecasting>>(ctx)
        && register::<next::Next>(ctx)
        && register::<Logged<apply::Apply>>(ctx)
}

/// A command that may be an entry of the log. One that can't be applied, most often because a newer dq wrote it, is told
/// in this server's own log: nobody reads the error that a replica answers its primary.
struct Logged<C>(std::marker::PhantomData<C>);

impl<C: Handler<Error = Error>> Handler for Logged<C> {
    const SPEC: Spec = C::SPEC;
    type Error = Error;

    fn run(call: &Call) -> Result<(), Error> {
        let done = C::run(call);
        if let Err(error) = &done {
            if source_of(call) == Source::Log && !matches!(error, Error::Differs) {
                let name = C::SPEC.name.to_string_lossy();
                warning(&format!("an entry of the log, {name}, can't be applied here: {error}"));
                let key = call.args().get(1).map_or(&[][..], Arg::bytes);
                tell_of_divergence(key);
            }
        }
        done
    }
}

/// The version in which a command came.
const SINCE_0_1: &std::ffi::CStr = c"0.1.0";
const SINCE_0_2: &std::ffi::CStr = c"0.2.0";
