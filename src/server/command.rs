//! Registering commands with the server, and the way from the server into them.

use std::ffi::{c_int, CStr, CString};
use std::fmt::Display;
use std::ptr::{null, null_mut};

use redis_module::raw;

use super::call::Call;
use super::grammar::{self, Argument};
use super::logfile;
use super::slots;
use super::spec::{KeyUse, Spec};

/// The word before the key of a sink.
pub const SINK: &str = "SINK";
const SINK_WORD: &CStr = c"SINK";

/// A command, as the server sees it.
pub trait Handler {
    const SPEC: Spec;
    /// Shown as the error line, prefix included.
    type Error: Display;

    /// Parses, applies, replies. With an error nothing has been replied and nothing has changed.
    fn run(call: &Call) -> Result<(), Self::Error>;

    /// What else is done when it fails, before the error is replied.
    const ON_ERROR: fn(&Call, &Self::Error) = |_, _| ();
}

/// Registers a command. False, with a word in the log, when the server won't have it.
pub fn register<C: Handler>(ctx: *mut raw::RedisModuleCtx) -> bool {
    let spec = &C::SPEC;
    let tells_keys = has_several_keys(spec.key) && !slots::has_key_slots();
    let flags = if tells_keys {
        &[spec.flags.to_bytes(), b" getkeys-api"].concat()
    } else {
        spec.flags.to_bytes()
    };
    let Ok(flags) = CString::new(flags) else {
        return false;
    };
    // Where the keys of one with several are, `describe` says.
    let has_none_there = matches!(spec.key, KeyUse::TakeOfMany | KeyUse::None);
    let (first_key, last_key, step) = if has_none_there { (0, 0, 0) } else { (1, 1, 1) };
    let (name, flags) = (spec.name.as_ptr(), flags.as_ptr());
    // SAFETY: `ctx` is the one of OnLoad; the server copies the strings; `enter` is a command
    // function.
    let status = unsafe {
        api!(RedisModule_CreateCommand)(
            ctx,
            name,
            Some(enter::<C>),
            flags,
            first_key,
            last_key,
            step,
        )
    };
    let is_done =
        status == raw::REDISMODULE_OK as c_int && describe(ctx, spec) && categorize(ctx, spec);
    if !is_done {
        logfile::warning(&format!("can't register {:?}", spec.name));
    }
    is_done
}

unsafe extern "C" fn enter<C: Handler>(
    ctx: *mut raw::RedisModuleCtx,
    argv: *mut *mut raw::RedisModuleString,
    argc: c_int,
) -> c_int {
    // SAFETY: what the server calls a command with; the call ends with this function.
    let call = unsafe { Call::new(ctx, argv, argc) };
    // SAFETY: as above.
    let asks_for_keys = || unsafe { api!(RedisModule_IsKeysPositionRequest)(ctx) } != 0;
    if has_several_keys(C::SPEC.key) && asks_for_keys() {
        report_keys(&call, C::SPEC.key);
        return raw::REDISMODULE_OK as c_int;
    }
    if let Err(error) = C::run(&call) {
        reply_error::<C>(&call, &error);
    }
    raw::REDISMODULE_OK as c_int
}

#[cold]
fn reply_error<C: Handler>(call: &Call, error: &C::Error) {
    (C::ON_ERROR)(call, error);
    call.replies().error(&error.to_string());
}

/// Whether a key may be elsewhere than at the first argument.
const fn has_several_keys(key: KeyUse) -> bool {
    matches!(key, KeyUse::TakeOfMany | KeyUse::ChangeWithSink)
}

/// Where the keys of a command are that has several. A cluster routes it by this; it doesn't look
/// at key specs. (Where this can't be asked for, it is routed by its first key: the
/// server checks nothing of the others, so DQ does: [`Call::are_of_one_slot`].)
fn report_keys(call: &Call, key: KeyUse) {
    if key == KeyUse::ChangeWithSink {
        let sink = call.args().position_behind(SINK);
        for at in [Some(1), sink].into_iter().flatten() {
            // SAFETY: as below.
            unsafe { api!(RedisModule_KeyAtPos)(call.ctx(), at as c_int) };
        }
        return;
    }
    let number =
        call.args().get(1).and_then(|word| std::str::from_utf8(word.bytes()).ok()?.parse().ok());
    let (first, number): (usize, usize) = (2, number.unwrap_or_default());
    for at in (first..call.args().len()).take(number) {
        // SAFETY: the context is that of a request for positions, which is what `call` was made
        // for.
        unsafe { api!(RedisModule_KeyAtPos)(call.ctx(), at as c_int) };
    }
}

/// Puts the command into the server's ACL categories, as its flags say. Redis 7.0 has no way to do
/// so: there, ACL rules name module commands one by one.
fn categorize(ctx: *mut raw::RedisModuleCtx, spec: &Spec) -> bool {
    // SAFETY: the pointer was written before OnLoad goes on.
    let Some(set_categories) = (unsafe { raw::RedisModule_SetCommandACLCategories }) else {
        return true;
    };
    let flags = spec.flags.to_string_lossy();
    let has = |flag| flags.split(' ').any(|one| one == flag);
    let mut categories = vec![if has("fast") { "fast" } else { "slow" }];
    categories.extend(has("write").then_some("write"));
    categories.extend(has("readonly").then_some("read"));
    categories.extend(has("blocking").then_some("blocking"));
    categories.extend(has("admin").then_some("admin dangerous"));
    let Ok(categories) = CString::new(categories.join(" ")) else {
        return false;
    };
    // SAFETY: `ctx` is the one of OnLoad; the server reads the strings at once.
    unsafe {
        let command = api!(RedisModule_GetCommand)(ctx, spec.name.as_ptr());
        !command.is_null()
            && set_categories(command, categories.as_ptr()) == raw::REDISMODULE_OK as c_int
    }
}

/// Tells the server arity, key and documentation.
fn describe(ctx: *mut raw::RedisModuleCtx, spec: &Spec) -> bool {
    let version = raw::RedisModuleCommandInfoVersion {
        version: 1,
        sizeof_historyentry: size_of::<raw::RedisModuleCommandHistoryEntry>(),
        sizeof_keyspec: size_of::<raw::RedisModuleCommandKeySpec>(),
        sizeof_arg: size_of::<raw::RedisModuleCommandArg>(),
    };
    let mut keys = match spec.key {
        KeyUse::None => [NO_KEY; 3],
        KeyUse::TakeOfMany if slots::has_key_slots() => {
            let not_key = u64::from(raw::REDISMODULE_CMD_KEY_NOT_KEY);
            [counted_keys(spec), the_key(spec.key.flags() | not_key, 2), NO_KEY]
        }
        KeyUse::TakeOfMany => [counted_keys(spec), NO_KEY, NO_KEY],
        KeyUse::Read
        | KeyUse::Measure
        | KeyUse::Insert
        | KeyUse::Change
        | KeyUse::Take
        | KeyUse::Remove => [the_key(spec.key.flags(), 1), NO_KEY, NO_KEY],
        KeyUse::ChangeWithSink => {
            let flags = spec.key.flags();
            [the_key(flags, 1), the_key_behind(SINK_WORD, flags), NO_KEY]
        }
    };
    let Some(arguments) = grammar::read(spec.grammar) else {
        return false;
    };
    let mut arrays = Vec::new();
    let args = raw_args(&arguments, &mut arrays);
    let info = raw::RedisModuleCommandInfo {
        version: &version,
        summary: spec.summary.as_ptr(),
        complexity: spec.complexity.as_ptr(),
        since: spec.since.as_ptr(),
        history: null_mut(),
        tips: null(),
        arity: spec.arity,
        key_specs: keys.as_mut_ptr(),
        args,
    };
    // SAFETY: all that `info` points to lives until the end of this function, and the server copies
    // it; its lists end with a zeroed element.
    unsafe {
        let command = api!(RedisModule_GetCommand)(ctx, spec.name.as_ptr());
        !command.is_null()
            && api!(RedisModule_SetCommandInfo)(command, &info) == raw::REDISMODULE_OK as c_int
    }
}

/// The key is this argument. With the flag NOT_KEY it is one that a cluster routes the command by,
/// and no more: the keys are told besides.
fn the_key(flags: u64, pos: c_int) -> raw::RedisModuleCommandKeySpec {
    let range = raw::RedisModuleCommandKeySpec__bindgen_ty_2__bindgen_ty_1 {
        lastkey: 0,
        keystep: 1,
        limit: 0,
    };
    raw::RedisModuleCommandKeySpec {
        notes: null(),
        flags,
        begin_search_type: raw::RedisModuleKeySpecBeginSearchType_REDISMODULE_KSPEC_BS_INDEX,
        bs: raw::RedisModuleCommandKeySpec__bindgen_ty_1 {
            index: raw::RedisModuleCommandKeySpec__bindgen_ty_1__bindgen_ty_1 { pos },
        },
        find_keys_type: raw::RedisModuleKeySpecFindKeysType_REDISMODULE_KSPEC_FK_RANGE,
        fk: raw::RedisModuleCommandKeySpec__bindgen_ty_2 { range },
    }
}

/// The key follows this word, if that is there.
fn the_key_behind(word: &'static CStr, flags: u64) -> raw::RedisModuleCommandKeySpec {
    let keyword = raw::RedisModuleCommandKeySpec__bindgen_ty_1__bindgen_ty_2 {
        keyword: word.as_ptr(),
        startfrom: 2,
    };
    raw::RedisModuleCommandKeySpec {
        begin_search_type: raw::RedisModuleKeySpecBeginSearchType_REDISMODULE_KSPEC_BS_KEYWORD,
        bs: raw::RedisModuleCommandKeySpec__bindgen_ty_1 { keyword },
        ..the_key(flags, 1)
    }
}

/// The first argument is the number of keys, which follow.
fn counted_keys(spec: &Spec) -> raw::RedisModuleCommandKeySpec {
    let keynum = raw::RedisModuleCommandKeySpec__bindgen_ty_2__bindgen_ty_2 {
        keynumidx: 0,
        firstkey: 1,
        keystep: 1,
    };
    raw::RedisModuleCommandKeySpec {
        find_keys_type: raw::RedisModuleKeySpecFindKeysType_REDISMODULE_KSPEC_FK_KEYNUM,
        fk: raw::RedisModuleCommandKeySpec__bindgen_ty_2 { keynum },
        ..the_key(spec.key.flags(), 1)
    }
}

// SAFETY: plain data, for which the server defines all zeroes as the end of a list.
const NO_KEY: raw::RedisModuleCommandKeySpec = unsafe { std::mem::zeroed() };
// SAFETY: as above.
const NO_ARG: raw::RedisModuleCommandArg = unsafe { std::mem::zeroed() };

/// The server's form of a list of arguments, its end marked; `arrays` keeps all lists alive.
fn raw_args(
    arguments: &[Argument],
    arrays: &mut Vec<Box<[raw::RedisModuleCommandArg]>>,
) -> *mut raw::RedisModuleCommandArg {
    let mut list: Vec<_> = arguments.iter().map(|argument| raw_arg(argument, arrays)).collect();
    list.push(NO_ARG);
    let mut list = list.into_boxed_slice();
    let start = list.as_mut_ptr();
    arrays.push(list);
    start
}

fn raw_arg(
    argument: &Argument,
    arrays: &mut Vec<Box<[raw::RedisModuleCommandArg]>>,
) -> raw::RedisModuleCommandArg {
    let Argument { name, kind, token, parts, .. } = argument;
    let is_key = *kind == raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_KEY;
    let is_sink = name.as_c_str() == grammar::STREAM;
    let flags = [
        (argument.is_optional, raw::REDISMODULE_CMD_ARG_OPTIONAL),
        (argument.is_multiple, raw::REDISMODULE_CMD_ARG_MULTIPLE),
        (argument.repeats_token, raw::REDISMODULE_CMD_ARG_MULTIPLE_TOKEN),
    ];
    let flags = flags.into_iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| flag);
    raw::RedisModuleCommandArg {
        name: name.as_ptr(),
        type_: *kind,
        key_spec_index: if is_key { is_sink.into() } else { -1 },
        token: token.as_ref().map_or(null(), |token| token.as_ptr()),
        summary: null(),
        since: null(),
        flags: flags.sum::<u32>() as c_int,
        deprecated_since: null(),
        subargs: if parts.is_empty() { null_mut() } else { raw_args(parts, arrays) },
        display_text: null(),
    }
}
