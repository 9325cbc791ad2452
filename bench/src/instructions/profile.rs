//! What callgrind wrote: the sums, and, by callgrind_annotate, the functions that take most.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

use anyhow::{ensure, Context, Result};

/// Events by callgrind's names, Ir and, with caches, Dr, D1mr, DLmr and others.
pub fn totals(dump: &Path) -> Result<Vec<(String, u64)>> {
    let text =
        std::fs::read_to_string(dump).with_context(|| format!("reading {}", dump.display()))?;
    let line = |start: &str| {
        let found = text.lines().find_map(|line| line.strip_prefix(start));
        found.with_context(|| format!("no line {start} in {}", dump.display()))
    };
    let names = line("events:")?.split_whitespace().map(str::to_owned);
    let sums =
        line("totals:")?.split_whitespace().map(str::parse).collect::<Result<Vec<u64>, _>>()?;
    Ok(names.zip(sums).collect())
}

pub struct Function {
    pub events: u64,
    pub name: String,
    /// The program or library; empty where callgrind_annotate doesn't say.
    pub object: String,
}

#[derive(Clone, Copy)]
pub enum Cost {
    /// Of the function's own instructions.
    Own,
    /// With those of all that it calls.
    Inclusive,
}

/// The functions that take most of an event, most first.
pub fn top_functions(dump: &Path, cost: Cost, event: &str, count: usize) -> Result<Vec<Function>> {
    let inclusive = match cost {
        Cost::Own => "--inclusive=no",
        Cost::Inclusive => "--inclusive=yes",
    };
    let output = Command::new("callgrind_annotate")
        .args([inclusive, "--threshold=100", "--auto=no", "--show-percs=no"])
        .args([format!("--show={event}"), format!("--sort={event}")])
        .arg(dump)
        .output()
        .context("running callgrind_annotate, of valgrind")?;
    ensure!(
        output.status.success(),
        "callgrind_annotate: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8_lossy(&output.stdout);
    let mut functions = merge(text.lines().filter_map(function), cost);
    functions.sort_by_key(|function| std::cmp::Reverse(function.events));
    functions.truncate(count);
    Ok(functions)
}

/// A function has a line for each source file that was inlined into it, and an object on one of
/// them only.
fn merge(lines: impl Iterator<Item = Function>, cost: Cost) -> Vec<Function> {
    let mut by_name: HashMap<String, Function> = HashMap::new();
    for line in lines {
        match by_name.get_mut(&line.name) {
            None => {
                by_name.insert(line.name.clone(), line);
            }
            Some(function) => {
                function.events = match cost {
                    Cost::Own => function.events + line.events,
                    Cost::Inclusive => function.events.max(line.events),
                };
                if function.object.is_empty() {
                    function.object = line.object;
                }
            }
        }
    }
    by_name.into_values().collect()
}

/// "1,234  file.c:name [object]", as callgrind_annotate prints; other lines are none.
fn function(line: &str) -> Option<Function> {
    let (events, rest) = line.trim_start().split_once(' ')?;
    let events = events.replace(',', "").parse().ok()?;
    let rest = rest.trim_start();
    let (name, object) = match rest.rsplit_once(" [") {
        Some((name, object)) => (name, object.trim_end_matches(']')),
        None => (rest, ""),
    };
    let name = name.split_once(':').map_or(name, |(_, name)| name);
    if name.is_empty() || rest.starts_with("PROGRAM TOTALS") {
        return None;
    }
    let object = object.rsplit('/').next().unwrap_or_default();
    Some(Function { events, name: name.to_owned(), object: object.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_callgrinds_annotation_are_read() {
        let line = "12,345  ./src/x.rs:dq::queue::Queue::add [/tmp/target/libdq.so]";
        let found = function(line).unwrap();
        assert_eq!(
            (found.events, &*found.name, &*found.object),
            (12_345, "dq::queue::Queue::add", "libdq.so")
        );
        let inlined = function("7,000  /rustc/x/raw_vec.rs:dq::queue::Queue::add").unwrap();
        assert_eq!((&*inlined.name, &*inlined.object), ("dq::queue::Queue::add", ""));
        for other in ["", "Ir", "------", "1,000 PROGRAM TOTALS", "Profile data file 'x'"] {
            assert!(function(other).is_none(), "{other:?}");
        }
    }

    #[test]
    fn a_function_is_one_line_with_all_that_was_inlined() {
        let lines = ["5  a.rs:f", "70  b.rs:f [/x/libdq.so]", "1  c.rs:g [/x/libdq.so]"];
        let own = merge(lines.iter().filter_map(|line| function(line)), Cost::Own);
        let f = own.iter().find(|function| function.name == "f").unwrap();
        assert_eq!((f.events, &*f.object), (75, "libdq.so"));
        let inclusive = merge(lines.iter().filter_map(|line| function(line)), Cost::Inclusive);
        assert_eq!(inclusive.iter().find(|function| function.name == "f").unwrap().events, 70);
    }
}
