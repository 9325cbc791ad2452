//! What a command says of itself: flags, arity, key, and what `COMMAND DOCS` shows. Plain
//! constants, next to the command; `command.rs` hands them to the server.

use std::ffi::CStr;

use redis_module::raw;

pub struct Spec {
    pub name: &'static CStr,
    pub summary: &'static CStr,
    pub complexity: &'static CStr,
    pub since: &'static CStr,
    /// As the server writes them: `write deny-oom fast`.
    pub flags: &'static CStr,
    /// Arguments with the name; negative: at least so many.
    pub arity: i32,
    /// What becomes of the key, which is the first argument.
    pub key: KeyUse,
    /// All arguments but the name, as `grammar.rs` reads them.
    pub grammar: &'static str,
}

impl Spec {
    pub const SINCE_0_1: &CStr = c"0.1.0";
    pub const SINCE_0_2: &CStr = c"0.2.0";
    pub const SINCE_0_3: &CStr = c"0.3.0";
}

/// What a command does with its key, for ACL rules and clients.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum KeyUse {
    /// Shows what is in it.
    Read,
    /// Tells only how much is in it.
    Measure,
    /// Adds to it, or replaces what is in it.
    Insert,
    /// Changes what is in it.
    Change,
    /// As `Change`; and after SINK there may be another one, which is added to.
    ChangeWithSink,
    /// Shows what is in it and changes it.
    Take,
    /// As `Take`; and there may be several, whose number is the first argument.
    TakeOfMany,
    /// Removes from it.
    Remove,
    /// There is no key.
    None,
}

impl KeyUse {
    pub(super) fn flags(self) -> u64 {
        let flags = match self {
            KeyUse::Read => raw::REDISMODULE_CMD_KEY_RO | raw::REDISMODULE_CMD_KEY_ACCESS,
            KeyUse::Measure => raw::REDISMODULE_CMD_KEY_RO,
            KeyUse::Insert | KeyUse::Change | KeyUse::ChangeWithSink => {
                raw::REDISMODULE_CMD_KEY_RW | raw::REDISMODULE_CMD_KEY_UPDATE
            }
            KeyUse::Take | KeyUse::TakeOfMany => {
                raw::REDISMODULE_CMD_KEY_RW
                    | raw::REDISMODULE_CMD_KEY_ACCESS
                    | raw::REDISMODULE_CMD_KEY_UPDATE
            }
            KeyUse::Remove => raw::REDISMODULE_CMD_KEY_RW | raw::REDISMODULE_CMD_KEY_DELETE,
            KeyUse::None => 0,
        };
        u64::from(flags)
    }
}
