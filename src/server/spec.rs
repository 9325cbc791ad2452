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
    /// All arguments but the name.
    pub args: &'static [ArgSpec],
}

impl Spec {
    /// Whether this option, or one with the same word, is among the arguments.
    pub fn takes(&self, option: ArgSpec) -> bool {
        self.args.iter().any(|arg| arg.token.is_some() && arg.token == option.token)
    }
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
            KeyUse::Insert | KeyUse::Change => {
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

/// An argument, or a group of them.
#[derive(Clone, Copy)]
pub struct ArgSpec {
    pub(super) name: &'static CStr,
    pub(super) kind: ArgKind,
    pub(super) token: Option<&'static CStr>,
    pub(super) is_optional: bool,
    pub(super) is_multiple: bool,
}

#[derive(Clone, Copy)]
pub(super) enum ArgKind {
    Key,
    String,
    Integer,
    UnixTime,
    Pattern,
    PureToken,
    OneOf(&'static [ArgSpec]),
    Block(&'static [ArgSpec]),
}

impl ArgSpec {
    const fn new(name: &'static CStr, kind: ArgKind) -> ArgSpec {
        ArgSpec { name, kind, token: None, is_optional: false, is_multiple: false }
    }

    pub const KEY: ArgSpec = ArgSpec::new(c"key", ArgKind::Key);
    pub const ID: ArgSpec = ArgSpec::string(c"id");
    pub const LEASE: ArgSpec = ArgSpec::string(c"lease");

    pub const STATE: ArgSpec = ArgSpec::one_of(
        c"state",
        &[
            ArgSpec::word(c"delayed", c"delayed"),
            ArgSpec::word(c"ready", c"ready"),
            ArgSpec::word(c"reserved", c"reserved"),
            ArgSpec::word(c"dead", c"dead"),
            ArgSpec::word(c"done", c"done"),
        ],
    )
    .token(c"STATE");

    pub const PRIORITY: ArgSpec = ArgSpec::integer(c"0..255").token(c"PRIORITY").optional();

    pub const BACKOFF: ArgSpec =
        ArgSpec::block(c"backoff", &[ArgSpec::integer(c"base-ms"), ArgSpec::integer(c"max-ms")])
            .token(c"BACKOFF")
            .optional();

    pub const fn string(name: &'static CStr) -> ArgSpec {
        ArgSpec::new(name, ArgKind::String)
    }

    pub const fn integer(name: &'static CStr) -> ArgSpec {
        ArgSpec::new(name, ArgKind::Integer)
    }

    pub const fn unix_time(name: &'static CStr) -> ArgSpec {
        ArgSpec::new(name, ArgKind::UnixTime)
    }

    /// A pattern of names, with stars and brackets.
    pub const fn pattern(name: &'static CStr) -> ArgSpec {
        ArgSpec::new(name, ArgKind::Pattern)
    }

    /// A word that stands for itself.
    pub const fn word(name: &'static CStr, word: &'static CStr) -> ArgSpec {
        ArgSpec::new(name, ArgKind::PureToken).token(word)
    }

    pub const fn one_of(name: &'static CStr, options: &'static [ArgSpec]) -> ArgSpec {
        ArgSpec::new(name, ArgKind::OneOf(options))
    }

    pub const fn block(name: &'static CStr, parts: &'static [ArgSpec]) -> ArgSpec {
        ArgSpec::new(name, ArgKind::Block(parts))
    }

    /// The word that stands before the value.
    pub const fn token(self, word: &'static CStr) -> ArgSpec {
        ArgSpec { token: Some(word), ..self }
    }

    pub const fn optional(self) -> ArgSpec {
        ArgSpec { is_optional: true, ..self }
    }

    pub const fn multiple(self) -> ArgSpec {
        ArgSpec { is_multiple: true, ..self }
    }
}
