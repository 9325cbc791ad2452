//! What a job shares with other jobs of the same policy and group. So a group costs a job no
//! memory.

use crate::queue::groups::group::GroupNumber;
use crate::queue::lines::lanes::MainLine;
use crate::queue::memory::interned::Interned;
use crate::queue::value::policy::Policy;

/// What jobs share: their policy and their group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Terms {
    pub policy: Policy,
    pub group: Option<GroupNumber>,
}

impl Terms {
    pub fn has_group(&self) -> bool {
        self.group.is_some()
    }

    /// The main line of a job with these terms. A job with a group is in the lane of grouped jobs
    /// of its priority.
    #[inline]
    pub fn main_line(&self, main_line: MainLine) -> MainLine {
        match main_line {
            MainLine::Lane(priority) if self.has_group() => MainLine::Grouped(priority),
            MainLine::Lane(_)
            | MainLine::Grouped(_)
            | MainLine::Dying
            | MainLine::Dead
            | MainLine::Done
            | MainLine::Held => main_line,
        }
    }
}

impl std::ops::Deref for Terms {
    type Target = Policy;

    fn deref(&self) -> &Policy {
        &self.policy
    }
}

/// All terms in use, each stored once.
pub type Policies = Interned<Terms>;

#[cfg(test)]
mod tests;
