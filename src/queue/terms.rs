//! What a job shares with others that were told the same and are of the same group. So no job has a byte more for its group.

use super::groups::GroupNumber;
use super::interned::Interned;
use super::policy::Policy;
use super::schedule::Home;
use super::slab::NO_SLOT;

/// What a job was told that it shares with others: its policy, and of which group it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Terms {
    pub policy: Policy,
    pub group: GroupNumber,
}

impl Terms {
    pub fn has_group(&self) -> bool {
        self.group != NO_SLOT
    }

    /// The line in which a job with this policy stands, where that has a group.
    #[inline]
    pub fn home(&self, home: Home) -> Home {
        match home {
            Home::Lane(priority) if self.has_group() => Home::Grouped(priority),
            Home::Lane(_) | Home::Grouped(_) | Home::Dying | Home::Dead | Home::Done => home,
        }
    }
}

impl std::ops::Deref for Terms {
    type Target = Policy;

    fn deref(&self) -> &Policy {
        &self.policy
    }
}

/// All terms that some job has, once.
pub type Policies = Interned<Terms>;

#[cfg(test)]
mod tests {
    use super::super::time::Millis;
    use super::*;

    fn policy(ttr: u64) -> Terms {
        Terms { policy: Policy::plain(Millis::new(ttr).unwrap()), group: NO_SLOT }
    }

    #[test]
    fn equal_policies_are_kept_once_and_go_with_their_last_user() {
        let mut policies = Policies::new((1, 2));
        let a = policies.take(&policy(1)).unwrap();
        let b = policies.take(&policy(2)).unwrap();
        assert_eq!(policies.take(&policy(1)), Some(a));
        assert_ne!(a, b);
        policies.release(a);
        assert_eq!(policies.get(a), Some(&policy(1)));
        policies.release(a);
        assert_eq!(policies.get(a), None);
        assert_eq!(policies.get(b), Some(&policy(2)));
        assert_eq!(policies.len(), 1);
    }
}
