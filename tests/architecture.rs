//! The rules of ARCHITECTURE.md that a reader of the sources can check: imports run one way and in
//! no circle, `unsafe` stands on one floor, the core knows no clock, files are short.
//!
//! A rule gets the sources and names the faults in them. So each is also shown a planted fault
//! (`each_rule_sees_a_planted_fault`): one that sees nothing would pass for ever.

// A test may panic.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::rc::Rc;

use proc_macro2::{TokenStream, TokenTree};

/// Below each floor, those it may import from. A floor may always import from itself.
const BELOW: [(&str, &[&str]); 5] = [
    ("lib", &["command", "services", "server", "queue"]),
    ("command", &["services", "server", "queue"]),
    ("services", &["server", "queue"]),
    ("server", &["queue"]),
    ("queue", &[]),
];

/// The rooms of the core. Each imports from those before it only; the last three don't know each
/// other.
const ROOMS: [(&str, &[&str]); 9] = [
    ("memory", &[]),
    ("value", &["memory"]),
    ("lines", &["memory", "value"]),
    ("groups", &["memory", "value", "lines"]),
    ("edges", &["memory", "value"]),
    ("kernel", &["memory", "value", "lines", "groups", "edges"]),
    ("record", &["memory", "value", "lines", "groups", "edges", "kernel"]),
    ("operation", &["memory", "value", "lines", "groups", "edges", "kernel"]),
    ("look", &["memory", "value", "lines", "groups", "edges", "kernel"]),
];

/// The services of the real server, and `place`, which takes over types. The others run without one.
const WITH_A_SERVER: [&str; 7] =
    ["config", "divergence", "info", "live", "opened", "persistence", "place"];

/// Outside `server/`, who names the crate of the module API: where the module is declared and its
/// commands registered.
const NAMES_THE_API: [&str; 2] = ["command/table.rs", "lib.rs"];

/// Registers them.
const KNOWS_ALL_COMMANDS: [&str; 1] = ["command/table.rs"];

/// What would make an outcome depend on something else than the queue, the operation and its
/// circumstances; and maps whose order is random.
const IMPURE: [&str; 18] = [
    "HashMap",
    "HashSet",
    "Instant",
    "LazyCell",
    "LazyLock",
    "Mutex",
    "OnceCell",
    "OnceLock",
    "RwLock",
    "SystemTime",
    "UnsafeCell",
    "env",
    "fs",
    "net",
    "process",
    "static",
    "thread",
    "thread_local",
];

/// Floors whose files import each other in no circle.
const WITHOUT_CIRCLES: [&str; 4] = ["queue", "server", "services", "command"];

const LINES_MAX: usize = 500;

/// The sources, by their paths below `src/`.
type Sources = BTreeMap<String, Rc<Source>>;

struct Source {
    text: String,
    words: Vec<Word>,
    /// Every path that begins with `crate`, `super` or a module of the file, from the root of the
    /// crate, and its line.
    imports: Vec<(usize, Vec<String>)>,
}

#[derive(Debug)]
struct Word {
    text: String,
    line: usize,
}

type Rule = fn(&Sources) -> Vec<String>;

const RULES: [Rule; 10] = [
    imports_run_one_way,
    rooms_import_from_those_before_them,
    services_run_without_a_server,
    the_api_is_named_by_the_server_floor,
    commands_stand_alone,
    unsafe_stands_on_one_floor,
    the_core_is_pure,
    files_are_short,
    files_form_no_circle,
    types_have_names_of_their_own,
];

fn imports_run_one_way(sources: &Sources) -> Vec<String> {
    let is_wrong = |file: &str, target: &str| {
        let (_, below) = BELOW.iter().find(|(floor, _)| *floor == floor_of(file)).unwrap();
        let is_floor = BELOW.iter().any(|(floor, _)| *floor == target);
        is_floor && target != floor_of(file) && !below.contains(&target)
    };
    imports(sources, |file, target| is_wrong(file, target.first()?).then(|| target.join("::")))
}

fn rooms_import_from_those_before_them(sources: &Sources) -> Vec<String> {
    let room_of =
        |path: &str| ROOMS.iter().find(|(room, _)| path.starts_with(&format!("queue/{room}/")));
    imports(sources, |file, target| {
        let (room, before) = room_of(file).filter(|_| !is_test(file))?;
        let [floor, other, ..] = target else { return None };
        let is_wrong = floor == "queue" && other != room && !before.contains(&other.as_str());
        is_wrong.then(|| target.join("::"))
    })
}

fn services_run_without_a_server(sources: &Sources) -> Vec<String> {
    imports(sources, |file, target| {
        let is_wrong = floor_of(file) == "services"
            && !WITH_A_SERVER.contains(&name_of(file))
            && target.first()? == "server";
        is_wrong.then(|| target.join("::"))
    })
}

fn the_api_is_named_by_the_server_floor(sources: &Sources) -> Vec<String> {
    let may = |file: &str| floor_of(file) == "server" || NAMES_THE_API.contains(&file);
    words_in(sources, |file, word| word == "redis_module" && !may(file))
}

/// But for the files that the table in `command/mod.rs` names as shared.
fn commands_stand_alone(sources: &Sources) -> Vec<String> {
    let table = sources["command/mod.rs"].text.lines().filter(|line| line.starts_with("//! | `"));
    let shared: BTreeSet<&str> = table
        .flat_map(|line| line.split('`'))
        .filter_map(|name| name.strip_suffix(".rs"))
        .collect();
    imports(sources, |file, target| {
        let (floor, name) = (target.first()?, target.get(1)?);
        let is_file = sources.contains_key(&format!("command/{name}.rs"));
        let is_wrong = floor_of(file) == "command"
            && floor == "command"
            && is_file
            && !shared.contains(name.as_str())
            && !KNOWS_ALL_COMMANDS.contains(&file);
        is_wrong.then(|| target.join("::"))
    })
}

fn unsafe_stands_on_one_floor(sources: &Sources) -> Vec<String> {
    let mut faults = words_in(sources, |file, word| word == "unsafe" && floor_of(file) != "server");
    for floor in ["queue", "services", "command"] {
        let file = format!("{floor}/mod.rs");
        if !sources[&file].text.contains("\n#![forbid(unsafe_code)]\n") {
            faults.push(format!("{file} doesn't forbid unsafe code"));
        }
    }
    faults
}

fn the_core_is_pure(sources: &Sources) -> Vec<String> {
    // A test may measure how long something takes.
    words_in(sources, |file, word| {
        let is_impure = IMPURE.contains(&word) || word.starts_with("Atomic");
        is_impure && floor_of(file) == "queue" && !is_test(file)
    })
}

fn files_are_short(sources: &Sources) -> Vec<String> {
    let long = sources.iter().filter(|(_, source)| source.text.lines().count() > LINES_MAX);
    long.map(|(file, _)| format!("{file} has more than {LINES_MAX} lines")).collect()
}

fn files_form_no_circle(sources: &Sources) -> Vec<String> {
    let circles: BTreeSet<Vec<String>> = WITHOUT_CIRCLES
        .iter()
        .flat_map(|floor| circles_of(&imports_within(sources, floor)))
        .collect();
    circles.iter().map(|circle| format!("circle: {}", circle.join(", "))).collect()
}

/// On a floor, no two types share a name. Those that belong to a trait or stand in a test don't
/// count.
fn types_have_names_of_their_own(sources: &Sources) -> Vec<String> {
    let mut first: BTreeMap<(&str, &str), &str> = BTreeMap::new();
    let mut faults = Vec::new();
    for (file, source) in sources.iter().filter(|(file, _)| !is_test(file)) {
        let mut depth = 0_usize;
        for (word, next) in source.words.iter().zip(source.words.iter().skip(1)) {
            match word.text.as_str() {
                "{" => depth += 1,
                "}" => depth -= 1,
                "enum" | "struct" | "trait" | "type" | "union" if depth == 0 => {
                    if let Some(other) = first.insert((floor_of(file), &next.text), file) {
                        faults.push(format!("{other} and {file} have a type {}", next.text));
                    }
                }
                _ => (),
            }
        }
    }
    faults
}

/// Which files of a floor import which others of it, by their paths. Tests may look at all of them.
fn imports_within<'s>(sources: &'s Sources, floor: &str) -> BTreeMap<&'s str, BTreeSet<String>> {
    let mut edges: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for (file, source) in
        sources.iter().filter(|(file, _)| floor_of(file) == floor && !is_test(file))
    {
        let targets = source.imports.iter().filter_map(|(_, target)| file_of(sources, target));
        for target in targets.filter(|target| target != file && floor_of(target) == floor) {
            edges.entry(file).or_default().insert(target);
        }
    }
    edges
}

/// The file in which what has this path is defined, or from which it is exported.
fn file_of(sources: &Sources, path: &[String]) -> Option<String> {
    (1..=path.len()).rev().find_map(|len| {
        let module = path[..len].join("/");
        let files = [format!("{module}.rs"), format!("{module}/mod.rs")];
        files.into_iter().find(|file| sources.contains_key(file))
    })
}

/// Modules each of which leads to all others of its circle.
fn circles_of(edges: &BTreeMap<&str, BTreeSet<String>>) -> BTreeSet<Vec<String>> {
    let reached: BTreeMap<&str, BTreeSet<String>> =
        edges.keys().map(|module| (*module, reached_from(module, edges))).collect();
    let leads = |from: &str, to: &str| reached.get(from).is_some_and(|all| all.contains(to));
    let circle_of = |module: &str| -> Vec<String> {
        let others = reached.keys().filter(|other| leads(module, other) && leads(other, module));
        others.map(ToString::to_string).collect()
    };
    edges.keys().map(|module| circle_of(module)).filter(|circle| !circle.is_empty()).collect()
}

fn reached_from(module: &str, edges: &BTreeMap<&str, BTreeSet<String>>) -> BTreeSet<String> {
    let (mut reached, mut to_visit) = (BTreeSet::new(), vec![module.to_string()]);
    while let Some(module) = to_visit.pop() {
        for next in edges.get(module.as_str()).into_iter().flatten() {
            if reached.insert(next.clone()) {
                to_visit.push(next.clone());
            }
        }
    }
    reached
}

/// What `fault` says of imports, with their places.
fn imports(sources: &Sources, fault: impl Fn(&str, &[String]) -> Option<String>) -> Vec<String> {
    let mut faults = Vec::new();
    for (file, source) in sources {
        for (line, target) in &source.imports {
            faults
                .extend(fault(file, target).map(|fault| format!("{file}:{line} imports {fault}")));
        }
    }
    faults
}

/// The places of words that are wrong in their file.
fn words_in(sources: &Sources, is_wrong: impl Fn(&str, &str) -> bool) -> Vec<String> {
    let mut faults = Vec::new();
    for (file, source) in sources {
        let wrong = source.words.iter().filter(|word| is_wrong(file, &word.text));
        faults.extend(wrong.map(|word| format!("{file}:{} has {}", word.line, word.text)));
    }
    faults
}

impl Source {
    fn read(file: &str, text: &str) -> Rc<Source> {
        let words = words_of(text);
        // What a file declares as its own modules is named without `crate` and `super`.
        let declared: BTreeSet<&str> = words
            .windows(3)
            .filter(|three| three[0].text == "mod" && three[2].text == ";")
            .map(|three| three[1].text.as_str())
            .collect();
        let mut imports = Vec::new();
        for (at, word) in words.iter().enumerate() {
            let is_inside = at > 0 && words[at - 1].text == "::";
            let is_visibility = at > 1
                && ["pub", "("].contains(&words[at - 2].text.as_str())
                && ["in", "("].contains(&words[at - 1].text.as_str());
            let is_own = declared.contains(word.text.as_str()) && is(&words, at + 1, "::");
            if !is_inside
                && !is_visibility
                && (is_own || ["crate", "super"].contains(&word.text.as_str()))
            {
                let mut paths = Vec::new();
                read_path(&words, at, &mut Vec::new(), &mut paths);
                // `super::*` is how a file's own tests see it.
                let others = paths.into_iter().filter(|path| *path != ["super", "*"]);
                imports.extend(others.map(|path| (word.line, from_root(file, &path))));
            }
        }
        Rc::new(Source { text: text.to_string(), words, imports })
    }
}

/// Reads a path, or a tree of them in braces; returns where it ends.
fn read_path(
    words: &[Word],
    mut at: usize,
    path: &mut Vec<String>,
    paths: &mut Vec<Vec<String>>,
) -> usize {
    let depth = path.len();
    loop {
        if is(words, at, "{") {
            at = read_tree(words, at + 1, path, paths);
            break;
        }
        path.extend(words.get(at).map(|word| word.text.clone()));
        at += 1;
        if !is(words, at, "::") || is(words, at + 1, "<") {
            paths.push(path.clone());
            break;
        }
        at += 1;
    }
    path.truncate(depth);
    at
}

/// Reads paths with commas between them, up to the brace at the end.
fn read_tree(
    words: &[Word],
    mut at: usize,
    path: &mut Vec<String>,
    paths: &mut Vec<Vec<String>>,
) -> usize {
    while at < words.len() && !is(words, at, "}") {
        at = read_path(words, at, path, paths);
        // Past `as name`.
        while at < words.len() && !is(words, at, ",") && !is(words, at, "}") {
            at += 1;
        }
        at += usize::from(is(words, at, ","));
    }
    at + 1
}

fn is(words: &[Word], at: usize, text: &str) -> bool {
    words.get(at).is_some_and(|word| word.text == text)
}

fn from_root(file: &str, path: &[String]) -> Vec<String> {
    let is_absolute = path[0] == "crate";
    let mut root = if is_absolute { Vec::new() } else { module_of(file) };
    let mut rest = path.iter().skip(usize::from(is_absolute)).peekable();
    while rest.next_if(|word| *word == "super").is_some() {
        root.pop();
    }
    root.extend(rest.cloned());
    root
}

fn module_of(file: &str) -> Vec<String> {
    let names =
        file.trim_end_matches(".rs").split('/').filter(|name| !["mod", "lib"].contains(name));
    names.map(ToString::to_string).collect()
}

fn is_test(file: &str) -> bool {
    file.contains("/tests/") || file.ends_with("tests.rs")
}

fn floor_of(file: &str) -> &str {
    file.split('/').next().unwrap().trim_end_matches(".rs")
}

fn name_of(file: &str) -> &str {
    file.rsplit('/').next().unwrap().trim_end_matches(".rs")
}

/// The words of a source, without comments. A `::` is one word; a literal is one, in its quotes;
/// lifetimes are left out.
fn words_of(text: &str) -> Vec<Word> {
    let mut words = Vec::new();
    flatten(text.parse().expect("Rust"), &mut words);
    words
}

fn flatten(tokens: TokenStream, words: &mut Vec<Word>) {
    let mut is_lifetime = false;
    for token in tokens {
        let line = token.span().start().line;
        if let TokenTree::Group(group) = token {
            let (open, close) = match group.delimiter() {
                proc_macro2::Delimiter::Parenthesis => ("(", ")"),
                proc_macro2::Delimiter::Brace => ("{", "}"),
                proc_macro2::Delimiter::Bracket => ("[", "]"),
                proc_macro2::Delimiter::None => ("", ""),
            };
            words.push(Word { text: open.to_string(), line });
            flatten(group.stream(), words);
            words.push(Word { text: close.to_string(), line });
            continue;
        }
        let text = token.to_string();
        match words.last_mut() {
            _ if std::mem::take(&mut is_lifetime) => (),
            Some(last) if text == ":" && last.text == ":" => last.text = "::".to_string(),
            Some(_) | None if text == "'" => is_lifetime = true,
            Some(_) | None => words.push(Word { text, line }),
        }
    }
}

fn read_sources() -> Sources {
    let mut sources = Sources::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(&root).unwrap().to_str().unwrap().to_string();
                let source = Source::read(&name, &fs::read_to_string(path).unwrap());
                sources.insert(name, source);
            }
        }
    }
    sources
}

#[test]
fn the_sources_keep_the_rules() {
    let sources = read_sources();
    let floors: BTreeSet<&str> = sources.keys().map(|file| floor_of(file)).collect();
    assert_eq!(floors, BELOW.iter().map(|(floor, _)| *floor).collect(), "every folder is a floor");
    let faults: Vec<String> = RULES.iter().flat_map(|rule| rule(&sources)).collect();
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn each_rule_sees_a_planted_fault() {
    let long = "\n".repeat(LINES_MAX + 1);
    let planted: [(&str, &str, &str); 24] = [
        ("queue/new.rs", "use crate::server::logfile;", "queue/new.rs:1 imports server::logfile"),
        (
            "queue/new.rs",
            "\nuse super::super::services::log as l;",
            "queue/new.rs:2 imports services::log",
        ),
        (
            "server/new.rs",
            "fn f() { crate::command::add::x::<u8>() }",
            "server/new.rs:1 imports command::add::x",
        ),
        (
            "server/new.rs",
            "use crate::{queue::Time, services::{log, live}};",
            "server/new.rs:1 imports services::log",
        ),
        ("services/new.rs", "use crate::command::Add;", "services/new.rs:1 imports command::Add"),
        (
            "services/sums.rs",
            "use crate::server::logfile;",
            "services/sums.rs:1 imports server::logfile",
        ),
        ("services/new.rs", "use redis_module::raw;", "services/new.rs:1 has redis_module"),
        (
            "command/len.rs",
            "use super::{error::Error, peek::Peek};",
            "command/len.rs:1 imports command::peek::Peek",
        ),
        (
            "command/arg_reader.rs",
            "use crate::command::len::Len;",
            "command/arg_reader.rs:1 imports command::len::Len",
        ),
        ("services/new.rs", "fn f() { unsafe { g() } }", "services/new.rs:1 has unsafe"),
        (
            "services/mod.rs",
            "// #![forbid(unsafe_code)]",
            "services/mod.rs doesn't forbid unsafe code",
        ),
        ("queue/new.rs", "use std::time::{Duration, Instant};", "queue/new.rs:1 has Instant"),
        ("queue/new.rs", "static X: &'static str = \"\";", "queue/new.rs:1 has static"),
        ("queue/new.rs", "thread_local! {}", "queue/new.rs:1 has thread_local"),
        ("queue/new.rs", "struct X(std::sync::atomic::AtomicU64);", "queue/new.rs:1 has AtomicU64"),
        (
            "queue/new.rs",
            "type X = std::collections::HashMap<u8, u8>;",
            "queue/new.rs:1 has HashMap",
        ),
        ("queue/new.rs", &long, "queue/new.rs has more than 500 lines"),
        (
            "services/sums.rs",
            "use super::value::QueueValue;",
            "circle: services/sums.rs, services/value.rs",
        ),
        (
            "queue/memory/slab.rs",
            "use super::index::Index;",
            "circle: queue/memory/index.rs, queue/memory/slab.rs",
        ),
        (
            "server/section.rs",
            "use crate::server::info::register;",
            "circle: server/hooks.rs, server/info.rs, server/section.rs",
        ),
        (
            "queue/value/new.rs",
            "use crate::queue::lines::entry::Entry;",
            "queue/value/new.rs:1 imports queue::lines::entry::Entry",
        ),
        (
            "queue/look/new.rs",
            "use crate::queue::operation::work::Claim;",
            "queue/look/new.rs:1 imports queue::operation::work::Claim",
        ),
        (
            "services/new.rs",
            "trait Of { type QueueValue; } struct QueueValue;",
            "services/new.rs and services/value.rs have a type QueueValue",
        ),
        // Also by what puts a folder's files together.
        (
            "queue/value/time.rs",
            "use crate::queue::Queue;",
            "queue/value/time.rs:1 imports queue::Queue",
        ),
    ];
    let sources = read_sources();
    let all_faults = |sources: &Sources| -> BTreeSet<String> {
        RULES.iter().flat_map(|rule| rule(sources)).collect()
    };
    let before = all_faults(&sources);
    for (file, text, fault) in planted {
        let mut sources = sources.clone();
        sources.insert(file.to_string(), Source::read(file, text));
        let new: Vec<String> = all_faults(&sources).difference(&before).cloned().collect();
        assert!(new.iter().any(|new| new == fault), "{file}: {text}\n{new:#?}");
    }
}

/// What looks like a fault and is none.
#[test]
fn comments_strings_and_lifetimes_are_no_faults() {
    let sources = read_sources();
    let text = "//! unsafe, Instant, crate::server\n/* static */ fn f(x: &'static str) -> &str { \"crate::server unsafe\" }";
    let mut planted = sources.clone();
    planted.insert("queue/new.rs".to_string(), Source::read("queue/new.rs", text));
    for rule in RULES {
        assert_eq!(rule(&planted), rule(&sources));
    }
}
