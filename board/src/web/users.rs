//! --users: a file of names, hashes and rights, a user a line. It is read anew when it has changed.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tokio::time::sleep;

use super::passwords;
use crate::args::Verb;

const READ_EVERY: Duration = Duration::from_secs(2);
const FILE_MAX: u64 = 4 << 20;
/// The line that is about all whom the proxy names and no other line does.
const OTHERS: &str = "*";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// None has no password: only the proxy can name this user.
    pub hash: Option<String>,
    pub verbs: Vec<Verb>,
}

pub struct Users {
    path: PathBuf,
    now: RwLock<Arc<Reading>>,
    readings: AtomicU64,
}

#[derive(Debug, Default)]
struct Reading {
    text: String,
    users: HashMap<String, User>,
}

impl Users {
    pub fn read(path: &Path) -> Result<Users, String> {
        let text = read(path).map_err(|why| told(path, &why))?;
        let users = parse(&text).map_err(|why| told(path, &why))?;
        let now = RwLock::new(Arc::new(Reading { text, users }));
        Ok(Users { path: path.into(), now, readings: AtomicU64::new(0) })
    }

    /// A user with a line of their own.
    pub fn get(&self, name: &str) -> Option<User> {
        Some(name).filter(|name| *name != OTHERS).and_then(|name| self.line(name))
    }

    /// A user whom the proxy names.
    pub fn get_or_others(&self, name: &str) -> Option<User> {
        self.get(name).or_else(|| self.line(OTHERS))
    }

    /// How many readings brought something new.
    pub fn readings(&self) -> u64 {
        self.readings.load(Ordering::Acquire)
    }

    /// Goes on for ever.
    pub async fn follow(self: Arc<Users>) {
        let mut last_fault = None;
        loop {
            sleep(READ_EVERY).await;
            let fault = self.read_anew().err();
            if let Some(why) = fault.as_ref().filter(|_| fault != last_fault) {
                tracing::error!("{}: users stay as they were", told(&self.path, why));
            }
            last_fault = fault;
        }
    }

    /// A file with a fault changes nothing.
    fn read_anew(&self) -> Result<(), String> {
        let text = read(&self.path)?;
        if text == self.reading().text {
            return Ok(());
        }
        let users = parse(&text)?;
        tracing::info!("{} has changed: {} lines of users", self.path.display(), users.len());
        *self.now.write().unwrap_or_else(PoisonError::into_inner) =
            Arc::new(Reading { text, users });
        self.readings.fetch_add(1, Ordering::Release);
        Ok(())
    }

    fn line(&self, name: &str) -> Option<User> {
        self.reading().users.get(name).cloned()
    }

    fn reading(&self) -> Arc<Reading> {
        self.now.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn told(path: &Path, why: &str) -> String {
    format!("--users {}: {why}", path.display())
}

fn read(path: &Path) -> Result<String, String> {
    let size = std::fs::metadata(path).map_err(|error| error.to_string())?.len();
    if size > FILE_MAX {
        return Err("is larger than 4 MiB".into());
    }
    std::fs::read_to_string(path).map_err(|error| error.to_string())
}

/// Lines of `name:hash:rights`; empty ones and those that begin with `#` say nothing.
fn parse(text: &str) -> Result<HashMap<String, User>, String> {
    let mut users = HashMap::new();
    let lines = text.lines().map(str::trim).zip(1_u32..);
    for (line, number) in lines.filter(|(line, _)| !line.is_empty() && !line.starts_with('#')) {
        let (name, user) = user(line).map_err(|why| format!("line {number} {why}"))?;
        if users.insert(name.clone(), user).is_some() {
            return Err(format!("line {number} is about {name} again"));
        }
    }
    if users.is_empty() {
        return Err("has no users".into());
    }
    Ok(users)
}

/// The words of the error have nothing of the line: what is in the wrong place could be a password.
fn user(line: &str) -> Result<(String, User), String> {
    let [name, hash, rights] = <[&str; 3]>::try_from(line.split(':').collect::<Vec<_>>())
        .map_err(|_| "isn't name:hash:rights")?;
    if name.is_empty() {
        return Err("has no name".into());
    }
    let hash = (hash != "-").then_some(hash);
    if name == OTHERS && hash.is_some() {
        return Err("is about all others: its hash must be -".into());
    }
    if let Some(why) = hash.and_then(passwords::fault_of) {
        return Err(format!("has a hash that {why}"));
    }
    Ok((name.into(), User { hash: hash.map(str::to_string), verbs: verbs(rights)? }))
}

fn verbs(rights: &str) -> Result<Vec<Verb>, String> {
    match rights {
        "all" => Ok(Verb::ALL.to_vec()),
        "read" => Ok(Vec::new()),
        list => list
            .split(',')
            .map(|verb| Verb::named(verb.trim().as_bytes()))
            .collect::<Option<_>>()
            .ok_or_else(|| {
                let all = Verb::ALL.map(Verb::name).join(", ");
                format!("has rights that aren't read, all or some of {all}")
            }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_user_with_rights() {
        let hash = passwords::hash(b"secret").unwrap();
        let text =
            format!("# people\n\nann:{hash}:all\n bob:{hash}:kick, pause\ncid:-:read\n*:-:read\n");
        let users = parse(&text).unwrap();
        let verbs = |name: &str| users[name].verbs.clone();
        assert_eq!(verbs("ann"), Verb::ALL);
        assert_eq!(verbs("bob"), [Verb::Kick, Verb::Pause]);
        assert_eq!((verbs("cid"), &users["cid"].hash), (vec![], &None));
        assert_eq!(users["ann"].hash.as_ref(), Some(&hash));
    }

    #[test]
    fn a_file_with_a_fault_is_refused_with_its_line_and_without_what_is_in_it() {
        let hash = passwords::hash(b"secret").unwrap();
        for (text, why) in [
            ("ann:HASH".into(), "line 1 isn't name:hash:rights"),
            ("#\nann:HASH:all:read".into(), "line 2 isn't name:hash:rights"),
            ("ann:pässword:all".into(), "line 1 has a hash that isn't an argon2 hash"),
            (":HASH:all".into(), "line 1 has no name"),
            ("ann:HASH:fly".into(), "line 1 has rights that aren't read, all or some of add, kick"),
            ("ann:HASH:".into(), "line 1 has rights"),
            ("ann:HASH:all\nann:HASH:read".into(), "line 2 is about ann again"),
            ("*:HASH:read".into(), "line 1 is about all others"),
            ("# nobody".to_string(), "has no users"),
        ] {
            let told = parse(&text.replace("HASH", &hash)).unwrap_err();
            assert!(told.starts_with(why) && !told.contains("pässword"), "{told}");
        }
    }

    #[test]
    fn the_line_of_all_others_is_no_name() {
        let text = "ann:-:all\n*:-:read\n".to_string();
        let now = RwLock::new(Arc::new(Reading { users: parse(&text).unwrap(), text }));
        let users = Users { path: "users".into(), now, readings: AtomicU64::new(0) };
        assert_eq!(users.get("*"), None);
        assert_eq!(users.get("bob"), None);
        assert_eq!(users.get_or_others("bob").unwrap().verbs, []);
        assert_eq!(users.get_or_others("ann").unwrap().verbs, Verb::ALL);
    }
}
