//! A command's grammar, as its page in the docs has it, read into what `COMMAND DOCS` tells of each
//! argument.
//!
//! | written | what it is |
//! | --- | --- |
//! | `TTR ms` | a word in capitals and the value behind it; in a group, all that follows is its value |
//! | `[TTR ms]` | may be left out |
//! | `[TTR ms \| NOACK]`, `(A b \| C d)`, `ONE\|ALL` | one of these |
//! | `id [id ...]`, `[id ...]` | one or more; any number |
//! | `[ID id [id ...]]`, `[ADD id ...]` | the word once, before all values; before each |
//!
//! The type of a value follows from its name. `state` is one of the states.

use std::ffi::{CStr, CString};
use std::iter::Peekable;
use std::str::SplitWhitespace;

use redis_module::raw::{
    RedisModuleCommandArgType as Type,
    RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_BLOCK as BLOCK,
    RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_INTEGER as INTEGER,
    RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_KEY as KEY,
    RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_ONEOF as ONE_OF,
    RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_PATTERN as PATTERN,
    RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_PURE_TOKEN as PURE_TOKEN,
    RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_STRING as STRING,
    RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_UNIX_TIME as UNIX_TIME,
};

use crate::queue::State;

/// What a second key is called.
pub(super) const STREAM: &CStr = c"stream";

/// An argument, or a group of them.
pub(super) struct Argument {
    pub name: CString,
    pub kind: Type,
    pub token: Option<CString>,
    pub is_optional: bool,
    pub is_multiple: bool,
    /// With its token before each.
    pub repeats_token: bool,
    /// Of a group.
    pub parts: Vec<Argument>,
}

/// All arguments; `None` when a group has no end, or there is an end too many.
pub(super) fn read(grammar: &str) -> Option<Vec<Argument>> {
    let spaced = ["[", "]", "(", ")"]
        .iter()
        .fold(grammar.to_owned(), |text, bracket| text.replace(bracket, &format!(" {bracket} ")));
    let mut words = spaced.split_whitespace().peekable();
    let arguments = read_list(&mut words, read_value)?;
    words.next().is_none().then_some(arguments)
}

type Words<'g> = Peekable<SplitWhitespace<'g>>;
type Read = fn(&mut Words) -> Option<Vec<Argument>>;

/// Arguments up to the end of the group; `behind` reads what belongs to a word in capitals.
fn read_list(words: &mut Words, behind: Read) -> Option<Vec<Argument>> {
    let mut list: Vec<Argument> = Vec::new();
    while let Some(word) = words.next_if(|word| !["]", ")", "|", "..."].contains(word)) {
        let argument = match word {
            "(" => read_group(words, ")")?,
            "[" => {
                let group = read_group(words, "]")?;
                let same = |before: &&mut Argument| group.is_multiple && before.name == group.name;
                if let Some(before) = list.last_mut().filter(same) {
                    before.is_multiple = true;
                    continue;
                }
                Argument { is_optional: true, ..group }
            }
            _ if is_token(word) => Argument::behind(word, behind(words)?),
            _ => Argument::value(word),
        };
        list.push(argument);
    }
    Some(list)
}

fn read_value(words: &mut Words) -> Option<Vec<Argument>> {
    words.next().map(|word| vec![Argument::value(word)])
}

fn read_in_group(words: &mut Words) -> Option<Vec<Argument>> {
    read_list(words, read_in_group)
}

fn read_group(words: &mut Words, end: &str) -> Option<Argument> {
    let mut options = Vec::new();
    loop {
        let parts = read_in_group(words)?;
        options.push(Argument::group(BLOCK, &titles(&parts, "-"), parts));
        if words.next_if_eq(&"|").is_none() {
            break;
        }
    }
    let mut group = Argument::one_of(options);
    if words.next_if_eq(&"...").is_some() {
        group.is_multiple = true;
        group.repeats_token = group.token.is_some();
    }
    words.next_if_eq(&end)?;
    Some(group)
}

fn is_token(word: &str) -> bool {
    word == "*" || word.bytes().all(|byte| byte.is_ascii_uppercase())
}

impl Argument {
    fn new(name: &str, kind: Type) -> Argument {
        Argument {
            name: CString::new(name).unwrap_or_default(),
            kind,
            token: None,
            is_optional: false,
            is_multiple: false,
            repeats_token: false,
            parts: Vec::new(),
        }
    }

    fn value(word: &str) -> Argument {
        let kind = match word {
            "state" => {
                let parts = State::ALL.map(|state| Argument::behind(state.name(), Vec::new()));
                return Argument { parts: parts.into(), ..Argument::new(word, ONE_OF) };
            }
            _ if word.contains('|') => {
                return Argument::one_of(word.split('|').map(Argument::value).collect());
            }
            _ if is_token(word) => return Argument::behind(word, Vec::new()),
            "key" | "stream" => KEY,
            "pattern" => PATTERN,
            "unix-ms" => UNIX_TIME,
            "n" | "m" | "b" | "ms" | "cursor" | "numkeys" | "0..255" => INTEGER,
            _ if word.ends_with("-ms") => INTEGER,
            _ => STRING,
        };
        Argument::new(word, kind)
    }

    fn one_of(options: Vec<Argument>) -> Argument {
        Argument::group(ONE_OF, &titles(&options, "-or-"), options)
    }

    /// What stands behind a word in capitals, if anything does; with that word.
    fn behind(token: &str, values: Vec<Argument>) -> Argument {
        let kind = if values.is_empty() { PURE_TOKEN } else { BLOCK };
        let argument = Argument::group(kind, &token.to_ascii_lowercase(), values);
        Argument { token: CString::new(token).ok(), ..argument }
    }

    /// Where it is one, that one.
    fn group(kind: Type, name: &str, mut parts: Vec<Argument>) -> Argument {
        match parts.pop() {
            Some(only) if parts.is_empty() => only,
            last => {
                parts.extend(last);
                Argument { parts, ..Argument::new(name, kind) }
            }
        }
    }
}

fn titles(arguments: &[Argument], between: &str) -> String {
    let title = |argument: &Argument| {
        let title = argument.token.as_ref().unwrap_or(&argument.name);
        title.to_string_lossy().to_ascii_lowercase()
    };
    arguments.iter().map(title).collect::<Vec<_>>().join(between)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(argument: &Argument) -> String {
        let kind = match argument.kind {
            BLOCK => "block",
            INTEGER => "integer",
            KEY => "key",
            ONE_OF => "one of",
            PATTERN => "pattern",
            PURE_TOKEN => "word",
            STRING => "string",
            UNIX_TIME => "time",
            _ => "?",
        };
        let optional = if argument.is_optional { "?" } else { "" };
        let multiple = match (argument.is_multiple, argument.repeats_token) {
            (false, _) => "",
            (true, false) => "+",
            (true, true) => "++",
        };
        let token = argument.token.as_ref().map_or(String::new(), |token| format!("{token:?} "));
        let name = argument.name.to_str().unwrap();
        let parts: Vec<_> = argument.parts.iter().map(shown).collect();
        let parts =
            if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) };
        format!("{token}{name}: {kind}{optional}{multiple}{parts}")
    }

    #[test]
    fn grammars_are_read() {
        for (grammar, arguments) in [
            ("", ""),
            ("key id [id ...]", "key: key, id: string+"),
            ("[id ...]", "id: string?+"),
            ("STEP ms COUNT n", r#""STEP" ms: integer, "COUNT" n: integer"#),
            ("[BACKOFF base-ms max-ms]", r#""BACKOFF" backoff: block? (base-ms: integer, max-ms: integer)"#),
            (
                "[RATE n per-ms [BURST b]] [UNTIL unix-ms]",
                r#""RATE" rate: block? (n: integer, per-ms: integer, "BURST" b: integer?), "UNTIL" unix-ms: time?"#,
            ),
            ("id|*", r#"id-or-*: one of (id: string, "*" *: word)"#),
            ("[MISFIRE ONE|ALL]", r#""MISFIRE" one-or-all: one of? ("ONE" one: word, "ALL" all: word)"#),
            ("[TTR ms | NOACK]", r#"ttr-or-noack: one of? ("TTR" ms: integer, "NOACK" noack: word)"#),
            (
                "[EVERY ms | CRON expression [TZ zone]]",
                r#"every-or-cron: one of? ("EVERY" ms: integer, "CRON" cron: block (expression: string, "TZ" zone: string?))"#,
            ),
            (
                "id [lease [id lease ...]]",
                "id: string, lease-id-lease: block? (lease: string, id-lease: block?+ (id: string, lease: string))",
            ),
            ("[ID id [id ...]]", r#""ID" id: string?+"#),
            ("[ADD id ...]", r#""ADD" id: string?++"#),
            (
                "key (unix-ms [word ...] | PUT id body | GROUPS records)",
                r#"key: key, unix-ms-word-or-put-or-groups: one of (unix-ms-word: block (unix-ms: time, word: string?+), "PUT" put: block (id: string, body: string), "GROUPS" records: string)"#,
            ),
        ] {
            let read: Vec<_> = read(grammar).unwrap().iter().map(shown).collect();
            assert_eq!(read.join(", "), arguments, "{grammar}");
        }
        let states: Vec<_> = read("STATE state").unwrap().iter().map(shown).collect();
        assert!(states[0].starts_with(r#""STATE" state: one of ("delayed" delayed: word, "#));
        for grammar in ["[key", "key]", "(id | key", "key | id", "[key)", "key ..."] {
            assert!(read(grammar).is_none(), "{grammar}");
        }
    }
}
