//! The server's log.

use std::ffi::CString;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, Ordering};

pub fn warning(message: &str) {
    let Ok(message) = CString::new(format!("<dq> {message}")) else {
        return;
    };
    let (level, format) = (c"warning".as_ptr(), c"%s".as_ptr());
    // SAFETY: no context is needed to log; all strings end with a NUL, and the format takes one.
    unsafe { api!(RedisModule_Log)(null_mut(), level, format, message.as_ptr()) };
}

static BUGS: AtomicU64 = AtomicU64::new(0);

/// Something happened here that can't. The server goes on: INFO counts it, and the log has the
/// words.
#[cold]
pub fn bug(message: &str) {
    debug_assert!(false, "{message}");
    BUGS.fetch_add(1, Ordering::Relaxed);
    warning(&format!("a bug in dq, please report it: {message}"));
}

/// How often that was.
pub fn bugs() -> u64 {
    BUGS.load(Ordering::Relaxed)
}

/// Ends the process with a word: for what can't be, as the server does for its own assertions.
#[cold]
pub fn abort(message: &str) -> ! {
    eprintln!("dq: {message}");
    std::process::abort()
}

/// A panic aborts: half a change must not live on, it would differ from the replicas. No code here
/// panics on purpose; if it happens all the same, its place is written where the operator looks.
pub fn log_panics() {
    std::panic::set_hook(Box::new(|panic| {
        warning(&format!("bug in dq, the server has to stop: {panic}"))
    }));
}
