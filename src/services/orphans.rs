//! Queues that have left their keys, and may be somewhere else.

use std::sync::Weak;
use std::time::Duration;

/// How long a value that is being freed may take for it before it is looked for.
pub const GRACE: Duration = Duration::from_millis(200);
/// More values than this that left their keys within the grace are not told apart: then there is a sweep.
const ORPHANS_MAX: usize = 1_024;
/// A queue that left its key: freed, or somewhere else.
struct Orphan {
    life: Weak<()>,
    since: Duration,
}

pub struct Sweep {
    orphans: Vec<Orphan>,
    /// Another sweep has to begin, from the first key.
    pub is_wanted: bool,
    pub is_under_way: bool,
}

impl Sweep {
    pub const NONE: Sweep = Sweep { orphans: Vec::new(), is_wanted: false, is_under_way: false };

    /// Whether a sweep has to begin now. Forgets the orphans that are dead, and those that it is for.
    pub fn take_begin(&mut self, uptime: Duration) -> bool {
        self.orphans.retain(|orphan| orphan.life.strong_count() > 0);
        let before = self.orphans.len();
        self.orphans.retain(|orphan| uptime.saturating_sub(orphan.since) < GRACE);
        let begins = self.is_wanted || self.orphans.len() < before;
        self.is_wanted = false;
        begins
    }

    /// A value has left its key.
    pub fn add(&mut self, life: Weak<()>, since: Duration) {
        if self.orphans.len() < ORPHANS_MAX {
            self.orphans.push(Orphan { life, since });
        } else {
            self.is_wanted = true;
        }
    }

    /// Whether there is something to come back for.
    pub fn has_more(&self) -> bool {
        !self.orphans.is_empty() || self.is_wanted
    }
}
