//! State that only the server's main thread touches.

use std::cell::RefCell;

use super::logfile;

/// A static that needs no lock: the server runs commands, timers, events and type callbacks one at a time.
///
/// [`MainThread::with`] must not be re-entered: whoever is inside makes no call into the server, since
/// that could run another callback of ours.
pub struct MainThread<T>(RefCell<T>);

// SAFETY: only callbacks that the server runs on its main thread come here (`free`, the one that may run
// elsewhere, does not), and a forked child has a copy of its own.
unsafe impl<T> Sync for MainThread<T> {}

impl<T> MainThread<T> {
    pub const fn new(value: T) -> Self {
        MainThread(RefCell::new(value))
    }

    /// If somebody is inside already, which would be a bug here and not a reason to stop a server, nothing is done.
    pub fn with<R: Default>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        match self.0.try_borrow_mut() {
            Ok(mut value) => work(&mut value),
            Err(_) => {
                logfile::bug("the main thread's state is used from inside itself");
                R::default()
            }
        }
    }
}
