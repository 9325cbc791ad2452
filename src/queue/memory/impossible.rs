//! Branches that can't be reached: debug builds panic there, release builds go on, and say so in the
//! server's log and in `dq_bugs`. What was reached is the one global of the core, as its lower rooms
//! know no queue; nothing that a queue does depends on it.

use std::cell::Cell;

thread_local! {
    static REACHED: Cell<Option<&'static str>> = const { Cell::new(None) };
}

/// A branch that can't be reached was.
#[cold]
#[inline(never)]
pub fn impossible(what: &'static str) {
    REACHED.set(Some(what));
    debug_assert!(false, "{what}");
}

/// What was reached since the last call, if anything.
#[inline]
pub fn take_impossible() -> Option<&'static str> {
    REACHED.take()
}

/// For what is always there.
pub trait OrImpossible {
    /// Reports it if it isn't there.
    fn or_impossible(self, what: &'static str) -> Self;
}

impl<T> OrImpossible for Option<T> {
    #[inline(always)]
    fn or_impossible(self, what: &'static str) -> Option<T> {
        if self.is_none() {
            impossible(what);
        }
        self
    }
}
