//! The sources as the rules see them: words, imports, methods and calls.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::rc::Rc;

use proc_macro2::{TokenStream, TokenTree};

/// The sources, by their paths below `src/`.
pub type Sources = BTreeMap<String, Rc<Source>>;

pub struct Source {
    pub text: String,
    pub words: Vec<Word>,
    /// Every path that begins with `crate`, `super` or a module of the file, from the root of the
    /// crate, and its line.
    pub imports: Vec<(usize, Vec<String>)>,
    pub methods: Vec<Method>,
    pub calls: Vec<Call>,
}

/// A function in an `impl` block.
pub struct Method {
    /// The type that the block is for.
    pub of: String,
    pub name: String,
}

/// `on.name(…)`, in an `impl` block for the type `inside`.
pub struct Call {
    pub on: String,
    pub name: String,
    pub inside: String,
    pub line: usize,
}

#[derive(Debug)]
pub struct Word {
    pub text: String,
    pub line: usize,
}

impl Source {
    pub fn read(file: &str, text: &str) -> Rc<Source> {
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
        let (methods, calls) = methods_and_calls(&words);
        Rc::new(Source { text: text.to_string(), words, imports, methods, calls })
    }
}

pub fn methods_and_calls(words: &[Word]) -> (Vec<Method>, Vec<Call>) {
    let (mut methods, mut calls) = (Vec::new(), Vec::new());
    let (mut depth, mut inside) = (0_usize, String::new());
    for (at, word) in words.iter().enumerate() {
        match word.text.as_str() {
            "{" => depth += 1,
            "}" => depth -= 1,
            "impl" if depth == 0 => inside = implemented(&words[at + 1..]),
            "fn" if depth == 1 => {
                let name = words[at + 1].text.clone();
                methods.push(Method { of: inside.clone(), name });
            }
            "(" if at > 2 && words[at - 2].text == "." => calls.push(Call {
                on: words[at - 3].text.clone(),
                name: words[at - 1].text.clone(),
                inside: if depth == 0 { String::new() } else { inside.clone() },
                line: word.line,
            }),
            _ => (),
        }
    }
    (methods, calls)
}

/// The type that an `impl` block is for: the last name before its brace that stands outside of
/// `<…>`, or that behind `for`.
pub fn implemented(words: &[Word]) -> String {
    let (mut depth, mut name) = (0_usize, String::new());
    for word in words.iter().take_while(|word| word.text != "{" && word.text != "where") {
        match word.text.as_str() {
            "<" => depth += 1,
            ">" => depth = depth.saturating_sub(1),
            text if depth == 0 && text.starts_with(char::is_alphabetic) => name = text.to_string(),
            _ => (),
        }
    }
    name
}

/// Reads a path, or a tree of them in braces; returns where it ends.
pub fn read_path(
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
pub fn read_tree(
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

pub fn is(words: &[Word], at: usize, text: &str) -> bool {
    words.get(at).is_some_and(|word| word.text == text)
}

pub fn from_root(file: &str, path: &[String]) -> Vec<String> {
    let is_absolute = path[0] == "crate";
    let mut root = if is_absolute { Vec::new() } else { module_of(file) };
    let mut rest = path.iter().skip(usize::from(is_absolute)).peekable();
    while rest.next_if(|word| *word == "super").is_some() {
        root.pop();
    }
    root.extend(rest.cloned());
    root
}

pub fn module_of(file: &str) -> Vec<String> {
    let names =
        file.trim_end_matches(".rs").split('/').filter(|name| !["mod", "lib"].contains(name));
    names.map(ToString::to_string).collect()
}

pub fn is_test(file: &str) -> bool {
    file.contains("/tests/") || file.ends_with("tests.rs")
}

pub fn floor_of(file: &str) -> &str {
    file.split('/').next().unwrap().trim_end_matches(".rs")
}

/// The words of a source, without comments. A `::` is one word; a literal is one, in its quotes;
/// lifetimes are left out.
pub fn words_of(text: &str) -> Vec<Word> {
    let mut words = Vec::new();
    flatten(text.parse().expect("Rust"), &mut words);
    words
}

pub fn flatten(tokens: TokenStream, words: &mut Vec<Word>) {
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

pub fn read_sources() -> Sources {
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
