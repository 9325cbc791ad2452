//! The rules. Each gets the sources and names the faults in them.

use std::collections::{BTreeMap, BTreeSet};

use super::sources::{floor_of, is_test, Sources};

/// Below each floor, those it may import from. A floor may always import from itself.
pub const BELOW: [(&str, &[&str]); 5] = [
    ("lib", &["command", "services", "server", "queue"]),
    ("command", &["services", "server", "queue"]),
    ("services", &["server", "queue"]),
    ("server", &["queue"]),
    ("queue", &[]),
];

/// The rooms of the core. Each imports from those before it only; the last three don't know each
/// other.
pub const ROOMS: [(&str, &[&str]); 9] = [
    ("memory", &[]),
    ("value", &["memory"]),
    ("lines", &["memory", "value"]),
    ("groups", &["memory", "value", "lines"]),
    ("edges", &["memory", "value"]),
    ("kernel", &["memory", "value", "lines", "groups", "edges"]),
    ("record", &["memory", "value", "lines", "groups", "edges", "kernel"]),
    ("operation", &["memory", "value", "lines", "groups", "edges", "kernel"]),
    ("query", &["memory", "value", "lines", "groups", "edges", "kernel"]),
];

/// The rooms of the services.
pub const SERVICE_ROOMS: [&str; 6] = ["calendar", "change", "keys", "timer", "waiting", "tests"];

/// What concerns all of them.
pub const BESIDE_THE_ROOMS: [&str; 7] =
    ["config.rs", "host.rs", "info.rs", "key_ref.rs", "live.rs", "mod.rs", "state.rs"];

/// The services of the real server, and `key_ref`, which takes over types. The others run without one.
pub const WITH_A_SERVER: [&str; 8] = [
    "services/change/divergence.rs",
    "services/config.rs",
    "services/info.rs",
    "services/keys/opened.rs",
    "services/keys/persistence.rs",
    "services/live.rs",
    "services/key_ref.rs",
    "services/waiting/reply.rs",
];

/// Outside `server/`, who names the crate of the module API: where the module is declared and its
/// commands registered.
pub const NAMES_THE_API: [&str; 2] = ["command/table.rs", "lib.rs"];

/// Registers them.
pub const KNOWS_ALL_COMMANDS: [&str; 1] = ["command/table.rs"];

/// What would make an outcome depend on something else than the queue, the operation and its
/// circumstances; and maps whose order is random.
pub const IMPURE: [&str; 18] = [
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

/// The one global of the core.
const REPORTS_BUGS: &str = "queue/memory/impossible.rs";

/// Methods of `Queue` that types of the standard library have, too.
pub const OF_THE_STANDARD_LIBRARY: [&str; 2] = ["finish", "peek"];

/// Floors whose files import each other in no circle.
pub const WITHOUT_CIRCLES: [&str; 4] = ["queue", "server", "services", "command"];

pub const LINES_MAX: usize = 500;

pub type Rule = fn(&Sources) -> Vec<String>;

pub const RULES: [Rule; 13] = [
    imports_run_one_way,
    rooms_import_from_those_before_them,
    rooms_call_those_before_them,
    services_stand_in_rooms,
    services_run_without_a_server,
    the_api_is_named_by_the_server_floor,
    commands_stand_alone,
    unsafe_stands_on_one_floor,
    the_core_is_pure,
    files_are_short,
    files_form_no_circle,
    types_have_names_of_their_own,
    operations_stand_in_the_table,
];

pub fn imports_run_one_way(sources: &Sources) -> Vec<String> {
    let is_wrong = |file: &str, target: &str| {
        let (_, below) = BELOW.iter().find(|(floor, _)| *floor == floor_of(file)).unwrap();
        let is_floor = BELOW.iter().any(|(floor, _)| *floor == target);
        is_floor && target != floor_of(file) && !below.contains(&target)
    };
    imports(sources, |file, target| is_wrong(file, target.first()?).then(|| target.join("::")))
}

pub fn rooms_import_from_those_before_them(sources: &Sources) -> Vec<String> {
    let room_of =
        |path: &str| ROOMS.iter().find(|(room, _)| path.starts_with(&format!("queue/{room}/")));
    imports(sources, |file, target| {
        let (room, before) = room_of(file).filter(|_| !is_test(file))?;
        let [floor, other, ..] = target else { return None };
        let is_wrong = floor == "queue" && other != room && !before.contains(&other.as_str());
        is_wrong.then(|| target.join("::"))
    })
}

/// A method has no import, so calls of `Queue`'s methods count as imports of their file. Which calls
/// are its methods: those on `queue`, on `self` inside `impl Queue`, and those of a name that no
/// other type of the core has.
pub fn rooms_call_those_before_them(sources: &Sources) -> Vec<String> {
    let core = || sources.iter().filter(|(file, _)| floor_of(file) == "queue" && !is_test(file));
    let mut of_queue: BTreeMap<&str, &str> = BTreeMap::new();
    let mut defined: BTreeMap<&str, usize> = BTreeMap::new();
    for (file, source) in core() {
        for method in &source.methods {
            *defined.entry(&method.name).or_default() += 1;
            if method.of == "Queue" {
                of_queue.insert(&method.name, file);
            }
        }
    }
    let mut faults = Vec::new();
    for (file, source) in core() {
        for call in &source.calls {
            let is_on_queue = call.on == "queue" || (call.on == "self" && call.inside == "Queue");
            let is_unmistakable = defined.get(call.name.as_str()) == Some(&1)
                && !OF_THE_STANDARD_LIBRARY.contains(&call.name.as_str());
            let Some(home) = of_queue.get(call.name.as_str()) else { continue };
            if (is_on_queue || is_unmistakable) && !may_import(file, home) {
                faults.push(format!("{file}:{} calls {}, of {home}", call.line, call.name));
            }
        }
    }
    faults
}

/// Whether a file of the core may import another: it is in the same room, or in one before it.
pub fn may_import(file: &str, other: &str) -> bool {
    let room_of = |file: &str| {
        let name = file.strip_prefix("queue/").and_then(|rest| rest.split('/').next());
        ROOMS.iter().find(|(room, _)| name == Some(room))
    };
    match (room_of(file), room_of(other)) {
        (Some((room, before)), Some((other, _))) => room == other || before.contains(other),
        _ => true,
    }
}

pub fn services_stand_in_rooms(sources: &Sources) -> Vec<String> {
    let is_wrong = |file: &str| {
        let inside = file.strip_prefix("services/")?;
        Some(match inside.split_once('/') {
            Some((room, _)) => !SERVICE_ROOMS.contains(&room),
            None => !BESIDE_THE_ROOMS.contains(&inside),
        })
    };
    let wrong = sources.keys().filter(|file| is_wrong(file) == Some(true));
    wrong.map(|file| format!("{file} is in no room")).collect()
}

pub fn services_run_without_a_server(sources: &Sources) -> Vec<String> {
    imports(sources, |file, target| {
        let is_wrong = floor_of(file) == "services"
            && !WITH_A_SERVER.contains(&file)
            && target.first()? == "server";
        is_wrong.then(|| target.join("::"))
    })
}

pub fn the_api_is_named_by_the_server_floor(sources: &Sources) -> Vec<String> {
    let may = |file: &str| floor_of(file) == "server" || NAMES_THE_API.contains(&file);
    words_in(sources, |file, word| word == "redis_module" && !may(file))
}

/// But for the files that the table in `command/mod.rs` names as shared.
pub fn commands_stand_alone(sources: &Sources) -> Vec<String> {
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

pub fn unsafe_stands_on_one_floor(sources: &Sources) -> Vec<String> {
    let mut faults = words_in(sources, |file, word| word == "unsafe" && floor_of(file) != "server");
    for floor in ["queue", "services", "command"] {
        let file = format!("{floor}/mod.rs");
        if !sources[&file].text.contains("\n#![forbid(unsafe_code)]\n") {
            faults.push(format!("{file} doesn't forbid unsafe code"));
        }
    }
    faults
}

pub fn the_core_is_pure(sources: &Sources) -> Vec<String> {
    // A test may measure how long something takes.
    words_in(sources, |file, word| {
        let is_impure = IMPURE.contains(&word) || word.starts_with("Atomic");
        is_impure && floor_of(file) == "queue" && !is_test(file) && file != REPORTS_BUGS
    })
}

pub fn files_are_short(sources: &Sources) -> Vec<String> {
    let long = sources.iter().filter(|(_, source)| source.text.lines().count() > LINES_MAX);
    long.map(|(file, _)| format!("{file} has more than {LINES_MAX} lines")).collect()
}

pub fn files_form_no_circle(sources: &Sources) -> Vec<String> {
    let circles: BTreeSet<Vec<String>> = WITHOUT_CIRCLES
        .iter()
        .flat_map(|floor| circles_of(&imports_within(sources, floor)))
        .collect();
    circles.iter().map(|circle| format!("circle: {}", circle.join(", "))).collect()
}

/// On a floor, no two types share a name. Those that belong to a trait or stand in a test don't
/// count.
pub fn types_have_names_of_their_own(sources: &Sources) -> Vec<String> {
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
pub fn imports_within<'s>(
    sources: &'s Sources,
    floor: &str,
) -> BTreeMap<&'s str, BTreeSet<String>> {
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
pub fn file_of(sources: &Sources, path: &[String]) -> Option<String> {
    (1..=path.len()).rev().find_map(|len| {
        let module = path[..len].join("/");
        let files = [format!("{module}.rs"), format!("{module}/mod.rs")];
        files.into_iter().find(|file| sources.contains_key(file))
    })
}

/// Modules each of which leads to all others of its circle.
pub fn circles_of(edges: &BTreeMap<&str, BTreeSet<String>>) -> BTreeSet<Vec<String>> {
    let reached: BTreeMap<&str, BTreeSet<String>> =
        edges.keys().map(|module| (*module, reached_from(module, edges))).collect();
    let leads = |from: &str, to: &str| reached.get(from).is_some_and(|all| all.contains(to));
    let circle_of = |module: &str| -> Vec<String> {
        let others = reached.keys().filter(|other| leads(module, other) && leads(other, module));
        others.map(ToString::to_string).collect()
    };
    edges.keys().map(|module| circle_of(module)).filter(|circle| !circle.is_empty()).collect()
}

pub fn reached_from(module: &str, edges: &BTreeMap<&str, BTreeSet<String>>) -> BTreeSet<String> {
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
pub fn imports(
    sources: &Sources,
    fault: impl Fn(&str, &[String]) -> Option<String>,
) -> Vec<String> {
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
pub fn words_in(sources: &Sources, is_wrong: impl Fn(&str, &str) -> bool) -> Vec<String> {
    let mut faults = Vec::new();
    for (file, source) in sources {
        let wrong = source.words.iter().filter(|word| is_wrong(file, &word.text));
        faults.extend(wrong.map(|word| format!("{file}:{} has {}", word.line, word.text)));
    }
    faults
}

/// The head of `queue/operation/mod.rs` lists every operation, and what it may change.
pub fn operations_stand_in_the_table(sources: &Sources) -> Vec<String> {
    let table = &sources["queue/operation/mod.rs"].text;
    let mut faults = Vec::new();
    for (file, source) in sources.iter().filter(|(file, _)| !is_test(file)) {
        for (at, line) in source.text.lines().enumerate() {
            let Some((_, name)) = line.split_once("Operation for ") else { continue };
            let name = name.split(['<', ' ']).next().unwrap();
            if line.starts_with("impl") && !table.contains(&format!("[`{name}`]")) {
                faults.push(format!("{file}:{} implements {name}, which no table has", at + 1));
            }
        }
    }
    faults
}
