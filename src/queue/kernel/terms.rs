//! What a job shares with others that were told the same and are of the same group. So no job has a
//! byte more for its group.

use crate::queue::groups::group::GroupNumber;
use crate::queue::lines::lanes::MainLine;
use crate::queue::memory::interned::Interned;
use crate::queue::value::policy::Policy;

/// What a job was told that it shares with others: its policy, and of which group it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Terms {
    pub policy: Policy,
    pub group: Option<GroupNumber>,
}

impl Terms {
    pub fn has_group(&self) -> bool {
        self.group.is_some()
    }

    /// The line in which a job with this policy stands, where that has a group.
    #[inline]
    pub fn main_line(&self, main_line: MainLine) -> MainLine {
        match main_line {
            MainLine::Lane(priority) if self.has_group() => MainLine::Grouped(priority),
            MainLine::Lane(_)
            | MainLine::Grouped(_)
            | MainLine::Dying
            | MainLine::Dead
            | MainLine::Done => main_line,
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
