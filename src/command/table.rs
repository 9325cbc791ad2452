//! Every command, once: what is registered, and what DQ.APPLY finds by its name.

use redis_module::raw;

use super::apply::{Apply, LoggedCommands};
use super::arg_reader::ArgReader;
use super::error::Error;
use super::kinds::{replay, Change, ChangeHandler, Handler, QueryHandler};
use super::{
    add, alter, bury, del, deps, done, finish, forecast, get, groups, info, kick, kickjob, len,
    madd, mpop, next, pause, peek, pop, purge, release, renew, result, resume, scan, touch,
};
use crate::server::arg::Arg;
use crate::server::call::Call;
use crate::server::command::register;
use crate::services::change::log::LoggedCircumstances;

/// Each command is of a kind:
///
/// - `change`: it changes a queue, and an entry of the log may name it;
/// - `pop`: likewise, and it may wait;
/// - `query`: it reads a queue;
/// - `own`: it is of no kind, and is logged as others, if at all.
macro_rules! commands {
    ($($kind:ident $module:ident::$command:ident,)*) => {
        /// Registers all commands. False, with a word in the log, when the server won't have one.
        pub fn register_all(ctx: *mut raw::RedisModuleCtx) -> bool {
            $(register::<commands!(@handler $kind $module::$command)>(ctx) &&)*
            register::<Apply<Table>>(ctx)
        }

        impl LoggedCommands for Table {
            fn replay(
                name: &[u8],
                (call, key, args, logged): (&Call, Arg, ArgReader, &LoggedCircumstances),
            ) -> Option<Result<bool, Error>> {
                $(commands!(@replay $kind $module::$command, name, (call, key, args, logged));)*
                None
            }
        }
    };
    (@handler change $module:ident::$command:ident) => { ChangeHandler<$module::$command> };
    (@handler query $module:ident::$command:ident) => { QueryHandler<$module::$command> };
    (@handler $kind:ident $module:ident::$command:ident) => { $module::$command };
    (@replay change $module:ident::$command:ident, $name:ident, ($($given:ident),*)) => {
        if $name.eq_ignore_ascii_case(<$module::$command as Change>::SPEC.name.to_bytes()) {
            return Some(replay::<$module::$command>($($given),*));
        }
    };
    (@replay pop $module:ident::$command:ident, $name:ident, ($($given:ident),*)) => {
        if $name.eq_ignore_ascii_case(<$module::$command as Handler>::SPEC.name.to_bytes()) {
            return Some($module::$command::replay($($given),*));
        }
    };
    (@replay $kind:ident $module:ident::$command:ident, $name:ident, ($($given:ident),*)) => {};
}

struct Table;

commands! {
    change add::Add,
    change madd::MAdd,
    pop pop::Pop,
    own mpop::MPop,
    change finish::Finish,
    change done::Done,
    change release::Release,
    change touch::Touch,
    pop renew::Renew,
    change bury::Bury,
    change del::Del,
    own kick::Kick,
    change kickjob::KickJob,
    change pause::Pause,
    change resume::Resume,
    own purge::Purge,
    change alter::Alter,
    query get::Get,
    own result::JobResult,
    query deps::Deps,
    query peek::Peek,
    query scan::Scan,
    query groups::Groups,
    query len::Len,
    query info::Info,
    query forecast::Forecasting,
    own next::Next,
}
