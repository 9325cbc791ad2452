//! Passwords that were wrong: who has given some must wait before the next one.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// This many wrong passwords in a row cost no wait: people mistype.
const FREE: u32 = 10;
/// The wait after the next one. Each further one doubles it.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// This long after its last wrong password, an address is forgotten.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(15 * 60);
/// At most this many addresses are remembered.
const ADDRESSES_MAX: usize = 10_000;

#[derive(Default)]
pub struct Guesses(Mutex<HashMap<IpAddr, Wrong>>);

#[derive(Clone, Copy)]
struct Wrong {
    times: u32,
    last: Instant,
    /// What was tried then.
    trace: Option<Trace>,
}

/// Stands for what was given, and doesn't tell it.
pub type Trace = [u8; 32];

impl Wrong {
    fn wait(&self) -> Duration {
        let doublings = self.times.checked_sub(FREE);
        doublings.map_or(Duration::ZERO, |doublings| {
            FIRST_WAIT.saturating_mul(1 << doublings.min(10)).min(LONGEST_WAIT)
        })
    }
}

impl Guesses {
    /// How long this reader has to wait before a password of theirs is looked at; `None` when it is
    /// now.
    pub fn wait(&self, reader: IpAddr, now: Instant) -> Option<Duration> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let wrong = all.get(&home(reader))?;
        let left = wrong.wait().checked_sub(now.saturating_duration_since(wrong.last))?;
        (!left.is_zero()).then_some(left)
    }

    /// Whether the last wrong one of this reader was the same.
    pub fn was_last(&self, reader: IpAddr, trace: Option<Trace>) -> bool {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(&home(reader)).is_some_and(|wrong| trace.is_some() && wrong.trace == trace)
    }

    pub fn was_wrong(&self, reader: IpAddr, trace: Option<Trace>, now: Instant) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= ADDRESSES_MAX {
            all.retain(|_, wrong| now.saturating_duration_since(wrong.last) < FORGOTTEN_AFTER);
        }
        if all.len() >= ADDRESSES_MAX {
            all.clear();
        }
        let wrong = all.entry(home(reader)).or_insert(Wrong { times: 0, last: now, trace });
        if now.saturating_duration_since(wrong.last) >= FORGOTTEN_AFTER {
            wrong.times = 0;
        }
        *wrong = Wrong { times: wrong.times.saturating_add(1), last: now, trace };
    }

    pub fn was_right(&self, reader: IpAddr) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&home(reader));
    }
}

/// A host in an IPv6 network can use any of its 2^64 addresses, so they count as one.
fn home(reader: IpAddr) -> IpAddr {
    match reader {
        IpAddr::V4(_) => reader,
        IpAddr::V6(address) => {
            let bits = u128::from(address) >> 64 << 64;
            Ipv6Addr::from(bits).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn an_address_that_guesses_passwords_waits_ever_longer() {
        let (guesses, reader, start) = (Guesses::default(), address("10.0.0.1"), Instant::now());
        for _ in 0..FREE - 1 {
            guesses.was_wrong(reader, None, start);
            assert_eq!(guesses.wait(reader, start), None);
        }
        let waits: Vec<_> = (0..8)
            .map(|_| {
                guesses.was_wrong(reader, None, start);
                guesses.wait(reader, start).map(|wait| wait.as_secs())
            })
            .collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60].map(Some));
        assert_eq!(guesses.wait(address("10.0.0.2"), start), None, "another one doesn't");
        assert_eq!(
            guesses.wait(reader, start + Duration::from_secs(59)),
            Some(Duration::from_secs(1))
        );
        assert_eq!(guesses.wait(reader, start + Duration::from_secs(60)), None);
        guesses.was_wrong(reader, None, start + FORGOTTEN_AFTER);
        assert_eq!(guesses.wait(reader, start + FORGOTTEN_AFTER), None, "long ago is forgotten");
        (0..FREE).for_each(|_| guesses.was_wrong(reader, None, start));
        guesses.was_right(reader);
        assert_eq!(guesses.wait(reader, start), None);
    }

    #[test]
    fn the_last_guess_of_an_address_is_known_again() {
        let (guesses, reader, now) = (Guesses::default(), address("10.0.0.1"), Instant::now());
        let guess = |n| Some([n; 32]);
        assert!(!guesses.was_last(reader, guess(1)));
        guesses.was_wrong(reader, guess(1), now);
        assert!(guesses.was_last(reader, guess(1)) && !guesses.was_last(reader, guess(2)));
        assert!(!guesses.was_last(address("10.0.0.2"), guess(1)));
        guesses.was_wrong(reader, None, now);
        assert!(!guesses.was_last(reader, guess(1)) && !guesses.was_last(reader, None));
    }

    #[test]
    fn ipv6_neighbours_count_as_one_guesser_and_memory_is_bounded() {
        let (guesses, now) = (Guesses::default(), Instant::now());
        (0..FREE).for_each(|n| guesses.was_wrong(address(&format!("2001:db8::{n}")), None, now));
        assert!(guesses.wait(address("2001:db8::ffff"), now).is_some());
        assert!(guesses.wait(address("2001:db8:0:1::"), now).is_none());
        (0..20_000_u32).for_each(|n| guesses.was_wrong(IpAddr::V4(n.into()), None, now));
        assert!(guesses.0.lock().unwrap().len() <= ADDRESSES_MAX);
    }
}
