//! Passwords against their argon2 hashes. To check one takes tens of milliseconds and megabytes on
//! purpose, and a browser sends it with every request: one that was right is known again.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use argon2::password_hash::{PasswordHash, PasswordHasher, PasswordVerifier, SaltString};
use argon2::{Argon2, Params};
use ring::hmac;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// Checks at a time: each keeps a core busy, and takes the memory that its hash says.
const CHECKS_MAX: usize = 2;
/// Who isn't checked within so long is told to come again.
const CHECKED_WITHIN: Duration = Duration::from_secs(10);
/// Passwords that are known again.
const KNOWN_MAX: usize = 1_000;
/// Of what a hash may ask for: a gigabyte is for a machine of its own.
const MEMORY_MAX_KIB: u32 = 256 << 10;
/// Memory times passes: some seconds of a core, and there are no more for all readers together than
/// [`CHECKS_MAX`].
const WORK_MAX_KIB: u64 = 1 << 20;

pub struct Passwords {
    /// Of this process: what is known again can't be tried elsewhere.
    key: hmac::Key,
    known: Mutex<HashSet<[u8; 32]>>,
    checks: Arc<Semaphore>,
    /// What names that there aren't are checked against, so that they take as long.
    no_user: String,
}

/// One of few: see [`Passwords::turn`].
pub struct Turn(
    #[expect(dead_code, reason = "it is given back when it is dropped")] OwnedSemaphorePermit,
);

impl Passwords {
    pub fn new() -> Result<Passwords, String> {
        let mut random = [0; 32];
        getrandom::fill(&mut random).map_err(|error| error.to_string())?;
        Ok(Passwords {
            key: hmac::Key::new(hmac::HMAC_SHA256, &random),
            known: Mutex::default(),
            checks: Arc::new(Semaphore::new(CHECKS_MAX)),
            no_user: hash(&random)?,
        })
    }

    /// Whether this password was right for this hash before.
    pub fn knows(&self, hash: &str, password: &[u8]) -> bool {
        self.trace(hash, password).is_some_and(|trace| self.all_known().contains(&trace))
    }

    /// A turn to check one. `None` when there are too many others.
    pub async fn turn(&self) -> Option<Turn> {
        timeout(CHECKED_WITHIN, self.checks.clone().acquire_owned()).await.ok()?.ok().map(Turn)
    }

    /// Whether a password is right; of a name that there isn't, `None`, it never is.
    ///
    /// The turn is over when the check is: also when the reader doesn't wait for that any more, as what runs can't
    /// be stopped.
    pub async fn check(&self, turn: Turn, hash: Option<&str>, password: &[u8]) -> bool {
        let (tried, given) = (hash.unwrap_or(&self.no_user).to_string(), password.to_vec());
        let check = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            is_right(&tried, &given)
        });
        let is_right = check.await.unwrap_or(false);
        let Some(hash) = hash.filter(|_| is_right) else { return false };
        if let Some(trace) = self.trace(hash, password) {
            let mut known = self.all_known();
            if known.len() >= KNOWN_MAX {
                known.clear();
            }
            known.insert(trace);
        }
        true
    }

    /// What stands for a password and what it was tried on, and tells neither.
    pub fn trace(&self, tried_on: &str, password: &[u8]) -> Option<[u8; 32]> {
        let mut both = tried_on.as_bytes().to_vec();
        both.push(0);
        both.extend_from_slice(password);
        hmac::sign(&self.key, &both).as_ref().try_into().ok()
    }

    fn all_known(&self) -> std::sync::MutexGuard<'_, HashSet<[u8; 32]>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_right(hash: &str, password: &[u8]) -> bool {
    PasswordHash::new(hash)
        .is_ok_and(|hash| Argon2::default().verify_password(password, &hash).is_ok())
}

/// A new hash of a password: argon2id with the parameters that OWASP asks for, a salt of its own.
pub fn hash(password: &[u8]) -> Result<String, String> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(|error| error.to_string())?;
    let salt = SaltString::encode_b64(&random).map_err(|error| error.to_string())?;
    let hash = Argon2::default().hash_password(password, &salt);
    hash.map(|hash| hash.to_string()).map_err(|error| error.to_string())
}

fn work_kib(params: &Params) -> u64 {
    u64::from(params.m_cost()) * u64::from(params.t_cost())
}

/// Why a hash can't be one to check passwords against.
pub fn fault_of(hash: &str) -> Option<String> {
    let parsed = match PasswordHash::new(hash) {
        Ok(parsed) if parsed.hash.is_some() && parsed.algorithm.as_str().starts_with("argon2") => {
            parsed
        }
        _ => return Some("isn't an argon2 hash: see dq-board --hash-password".into()),
    };
    match Params::try_from(&parsed) {
        Ok(params) if params.m_cost() > MEMORY_MAX_KIB => {
            Some(format!("takes {} MiB for each check: 256 at most", params.m_cost() >> 10))
        }
        Ok(params) if work_kib(&params) > WORK_MAX_KIB => {
            Some("takes too long for each check: 1024 MiB of memory times passes at most".into())
        }
        Ok(_) => None,
        Err(error) => Some(format!("has parameters that can't be: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_right_password_is_known_again_and_only_for_its_hash() {
        let passwords = Passwords::new().unwrap();
        let (ann, bob) = (hash(b"secret").unwrap(), hash(b"secret").unwrap());
        assert_ne!(ann, bob, "each has a salt of its own");
        assert!(!passwords.knows(&ann, b"secret"));
        assert!(!passwords.check(passwords.turn().await.unwrap(), Some(&ann), b"guess").await);
        assert!(!passwords.knows(&ann, b"guess"), "a wrong one isn't");
        assert!(passwords.check(passwords.turn().await.unwrap(), Some(&ann), b"secret").await);
        assert!(passwords.knows(&ann, b"secret"));
        assert!(!passwords.knows(&bob, b"secret") && !passwords.knows(&ann, b"Secret"));
        assert!(
            !passwords.check(passwords.turn().await.unwrap(), None, b"secret").await,
            "nobody has one"
        );
    }

    #[tokio::test]
    async fn what_is_known_again_is_bounded() {
        let passwords = Passwords::new().unwrap();
        for n in 0..2 * KNOWN_MAX as u32 {
            let mut trace = [0; 32];
            trace[..4].copy_from_slice(&n.to_le_bytes());
            if passwords.all_known().len() < KNOWN_MAX {
                passwords.all_known().insert(trace);
            }
        }
        let ann = hash(b"secret").unwrap();
        assert!(passwords.check(passwords.turn().await.unwrap(), Some(&ann), b"secret").await);
        assert_eq!(passwords.all_known().len(), 1);
    }

    #[test]
    fn only_argon2_hashes_that_can_be_checked_are_taken() {
        assert_eq!(fault_of(&hash(b"secret").unwrap()), None);
        let known =
            "$argon2id$v=19$m=64,t=1,p=1$c29tZXNhbHQ$2BBSVUDDFEGBKUDDFEGBKSVUDDFEGBKSVUDDFEGBKSU";
        assert_eq!(fault_of(known), None);
        for wrong in [
            "",
            "secret",
            "$argon2id$",
            "$2b$12$abcdefghijklmnopqrstuv",
            "$argon2id$v=19$m=64,t=1,p=1$c29tZXNhbHQ",
        ] {
            assert!(fault_of(wrong).is_some_and(|why| why.contains("--hash-password")), "{wrong}");
        }
        let large = known.replace("m=64", "m=1048576");
        assert!(fault_of(&large).is_some_and(|why| why.contains("1024 MiB")));
        // PHP's, and what would keep a core busy for hours.
        assert_eq!(fault_of(&known.replace("m=64,t=1", "m=65536,t=4")), None);
        let long = known.replace("t=1", "t=4294967295");
        assert!(fault_of(&long).is_some_and(|why| why.contains("too long")));
    }

    #[tokio::test]
    async fn a_check_that_nobody_waits_for_keeps_its_turn_until_it_ends() {
        let passwords = Passwords::new().unwrap();
        // Long enough that it still runs when it is given up.
        let slow = "$argon2id$v=19$m=16384,t=20,p=1$c29tZXNhbHQ$2BBSVUDDFEGBKUDDFEGBKSVUDDFEGBKSVUDDFEGBKSU";
        for left in (0..CHECKS_MAX).rev() {
            let turn = passwords.turn().await.unwrap();
            let check = passwords.check(turn, Some(slow), b"guess");
            assert!(timeout(Duration::ZERO, check).await.is_err(), "the reader went away");
            assert_eq!(passwords.checks.available_permits(), left);
        }
        assert!(passwords.turn().await.is_some(), "it comes back");
    }
}
