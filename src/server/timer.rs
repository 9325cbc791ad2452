//! The module's timers: an alarm, of which there is one, and the end of this turn of the event loop.
//!
//! The server's own timers count in milliseconds, from a time that is rounded, and sleep in milliseconds again: together
//! about one too many. So the alarm is a timer of the kernel's, which the event loop watches like a socket. Its event
//! carries no context in which something could be replicated; a timer of 0 ms, which fires in the same turn, does.

use std::ffi::{c_int, c_void};
use std::mem::size_of_val;
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::time::Duration;

use redis_module::raw;

use super::context::{self, Context};
use super::hooks;

/// Sets the alarm, instead of any that was set before: [`hooks::Hooks::alarm`] is called then, not earlier. (Without a
/// kernel timer, the one that was set before goes off, too.)
pub fn set_alarm(after: Duration) {
    match kernel_timer() {
        Some(fd) => set_kernel_timer(fd, after),
        None => {
            let ms = after.as_millis() + u128::from(after.subsec_nanos() % 1_000_000 > 0);
            create(Duration::from_millis(u64::try_from(ms).unwrap_or(u64::MAX)), on_alarm);
        }
    }
}

/// Calls [`hooks::Hooks::turn_ending`] when the commands of this turn are over; from inside a timer, a millisecond
/// later.
pub fn at_end_of_turn() {
    create(Duration::ZERO, on_turn_ending);
}

type Callback = unsafe extern "C" fn(*mut raw::RedisModuleCtx, *mut c_void);

fn create(after: Duration, callback: Callback) {
    let period = after.as_millis() as raw::mstime_t;
    // SAFETY: on the main thread; the callback needs no data.
    unsafe { api!(RedisModule_CreateTimer)(context::own(), period, Some(callback), null_mut()) };
}

unsafe extern "C" fn on_alarm(ctx: *mut raw::RedisModuleCtx, _data: *mut c_void) {
    // SAFETY: the context is valid while the callback lasts.
    let context = unsafe { Context::new(ctx) };
    hooks::call(|hooks| (hooks.alarm)(context));
}

unsafe extern "C" fn on_turn_ending(_ctx: *mut raw::RedisModuleCtx, _data: *mut c_void) {
    hooks::call(|hooks| (hooks.turn_ending)());
}

/// The kernel's timer, which the event loop watches; `None` where there is none.
fn kernel_timer() -> Option<c_int> {
    static TIMER: OnceLock<Option<c_int>> = OnceLock::new();
    *TIMER.get_or_init(|| {
        // SAFETY: on the main thread; the descriptor stays open as long as the process.
        unsafe {
            let fd = libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_NONBLOCK | libc::TFD_CLOEXEC);
            let mask = raw::REDISMODULE_EVENTLOOP_READABLE as c_int;
            let is_watched = fd >= 0
                && api!(RedisModule_EventLoopAdd)(fd, mask, Some(on_kernel_timer), null_mut())
                    == raw::REDISMODULE_OK as c_int;
            is_watched.then_some(fd)
        }
    })
}

fn set_kernel_timer(fd: c_int, after: Duration) {
    // Zero would switch it off.
    let after = after.max(Duration::from_nanos(1));
    let none = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let value = libc::timespec {
        tv_sec: after.as_secs().min(i32::MAX as u64) as libc::time_t,
        tv_nsec: after.subsec_nanos().into(),
    };
    let setting = libc::itimerspec { it_interval: none, it_value: value };
    // SAFETY: the descriptor is that of a timer; the setting is copied.
    unsafe { libc::timerfd_settime(fd, 0, &setting, null_mut()) };
}

unsafe extern "C" fn on_kernel_timer(fd: c_int, _data: *mut c_void, _mask: c_int) {
    let mut expirations: u64 = 0;
    // SAFETY: as many bytes as there are; the descriptor doesn't block.
    unsafe { libc::read(fd, (&raw mut expirations).cast(), size_of_val(&expirations)) };
    create(Duration::ZERO, on_alarm);
}
