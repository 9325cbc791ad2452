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

/// Reports an impossible branch. The server goes on: INFO counts it in `dq_bugs`, and the log has
/// the message.
#[cold]
pub fn bug(message: &str) {
    debug_assert!(false, "{message}");
    BUGS.fetch_add(1, Ordering::Relaxed);
    warning(&format!("bug in dq: {message}. The server goes on. Please report it with this line"));
}

/// How many were reported.
pub fn bugs() -> u64 {
    BUGS.load(Ordering::Relaxed)
}

/// Ends the process with a message, for impossible states that it can't survive, as the server does
/// for its own assertions.
#[cold]
pub fn abort(message: &str) -> ! {
    eprintln!("dq: {message}");
    std::process::abort()
}

/// Makes a panic write its place to the server's log before it aborts. It must abort: a half-made
/// change would differ from the replicas. No code here panics on purpose.
pub fn log_panics() {
    std::panic::set_hook(Box::new(|panic| {
        warning(&format!("bug in dq, the server stops. Please report it with this line: {panic}"))
    }));
}
