//! State that only the server's main thread touches.

use std::cell::RefCell;

use super::logfile;

/// A static that needs no lock: the server runs commands, timers, events and type callbacks one at
/// a time.
///
/// [`MainThread::with`] must not be re-entered: whoever is inside makes no call into the server,
/// since that could run another callback of ours.
pub struct MainThread<T>(RefCell<T>);

// SAFETY: only callbacks that the server runs on its main thread come here (`free`, the one that
// may run elsewhere, does not), and a forked child has a copy of its own.
unsafe impl<T> Sync for MainThread<T> {}

impl<T> MainThread<T> {
    pub const fn new(value: T) -> Self {
        MainThread(RefCell::new(value))
    }

    /// Ends the server when this is called from inside `work`: a bug here, after which what is
    /// remembered of clients and queues could be wrong without anybody noticing.
    pub fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        self.try_with(work).unwrap_or_else(|| {
            logfile::bug("the main thread's state is used from inside itself");
            std::process::abort()
        })
    }

    /// `None` when this is called from inside `work`, as by the server's report of a crash there.
    pub fn try_with<R>(&self, work: impl FnOnce(&mut T) -> R) -> Option<R> {
        self.0.try_borrow_mut().ok().map(|mut value| work(&mut value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_use_cannot_be_had() {
        let state = MainThread::new(1);
        assert_eq!(state.with(|_| state.try_with(|value| *value)), None);
        assert_eq!(state.try_with(|value| *value), Some(1));
    }
}
