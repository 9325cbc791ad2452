//! The server's log.

use std::ffi::CString;
use std::ptr::null_mut;

pub fn warning(message: &str) {
    let Ok(message) = CString::new(format!("<dq> {message}")) else {
        return;
    };
    let (level, format) = (c"warning".as_ptr(), c"%s".as_ptr());
    // SAFETY: no context is needed to log; all strings end with a NUL, and the format takes one.
    unsafe { api!(RedisModule_Log)(null_mut(), level, format, message.as_ptr()) };
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
    std::panic::set_hook(Box::new(|panic| warning(&format!("bug in dq, the server has to stop: {panic}"))));
}
