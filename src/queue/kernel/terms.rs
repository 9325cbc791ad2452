//! What a job shares with others that were told the same and are of the same group. So no job has a
//! byte more for its group.

use crate::queue::groups::group::GroupNumber;
use crate::queue::lines::lanes::Home;
use crate::queue::memory::interned::Interned;
use crate::queue::memory::slab::NO_SLOT;
use crate::queue::value::policy::Policy;

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
mod tests;
