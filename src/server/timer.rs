//! The module's timers: the one alarm, and the end of this turn of the event loop.
//!
//! The server's own timers round the current time to milliseconds and sleep in milliseconds, so
//! they come about one millisecond late. So the alarm is a kernel timer, which the event loop
//! watches like a socket. Its event has no context that can replicate; a server timer of 0 ms,
//! which fires in the same turn, has one.
//!
//! The server's timers use the wall clock: if it is set back by an hour while a timer waits, the
//! timer comes an hour late. A second kernel timer notices that it hasn't come, and then it is
//! created again.

use std::ffi::{c_int, c_void};
use std::mem::size_of_val;
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::time::Duration;

use redis_module::raw;

use super::blocking;
use super::context::{self, Context};
use super::hooks;
use super::main_thread::MainThread;

/// A timer of 0 ms that hasn't come within this time is created again.
const COMES_WITHIN: Duration = Duration::from_millis(20);

/// Sets the alarm: [`hooks::Hooks::alarm`] is called after this time, not earlier. It replaces the
/// alarm that was set before. (Without a kernel timer, the earlier one goes off, too.)
pub fn set_alarm(after: Duration) {
    static TIMER: OnceLock<Option<c_int>> = OnceLock::new();
    match kernel_timer(&TIMER, on_kernel_timer) {
        Some(fd) => set_kernel_timer(fd, after),
        None => {
            let ms = after.as_millis() + u128::from(after.subsec_nanos() % 1_000_000 > 0);
            create(Duration::from_millis(u64::try_from(ms).unwrap_or(u64::MAX)), on_alarm);
        }
    }
}

/// Calls [`hooks::Hooks::turn_ending`] when the commands of this turn are over; a millisecond later
/// if called inside a timer.
pub fn at_end_of_turn() {
    TURN_END.ask();
}

type Callback = unsafe extern "C" fn(*mut raw::RedisModuleCtx, *mut c_void);

fn create(after: Duration, callback: Callback) -> raw::RedisModuleTimerID {
    let period = after.as_millis() as raw::mstime_t;
    // SAFETY: on the main thread; the callback needs no data.
    unsafe { api!(RedisModule_CreateTimer)(context::own(), period, Some(callback), null_mut()) }
}

/// A server timer of 0 ms.
struct Soon {
    callback: Callback,
    /// The timer that hasn't come yet.
    asked: MainThread<Option<raw::RedisModuleTimerID>>,
}

static ALARM: Soon = Soon { callback: on_alarm, asked: MainThread::new(None) };
static TURN_END: Soon = Soon { callback: on_turn_ending, asked: MainThread::new(None) };
static IS_WATCHED: MainThread<bool> = MainThread::new(false);

impl Soon {
    fn ask(&self) {
        self.ask_anew();
        if !IS_WATCHED.with(|is_watched| std::mem::replace(is_watched, true)) {
            watch();
        }
    }

    /// Replaces the timer that was created before.
    fn ask_anew(&self) {
        if let Some(before) = self.asked.with(Option::take) {
            // SAFETY: on the main thread. It hasn't come yet: its callback calls `has_come` first.
            unsafe { api!(RedisModule_StopTimer)(context::own(), before, null_mut()) };
        }
        let timer = create(Duration::ZERO, self.callback);
        self.asked.with(|asked| *asked = Some(timer));
    }

    fn has_come(&self) {
        self.asked.with(Option::take);
    }
}

fn watch() {
    static TIMER: OnceLock<Option<c_int>> = OnceLock::new();
    if let Some(fd) = kernel_timer(&TIMER, on_watch) {
        set_kernel_timer(fd, COMES_WITHIN);
    }
}

unsafe extern "C" fn on_watch(fd: c_int, _data: *mut c_void, _mask: c_int) {
    read_kernel_timer(fd);
    let is_asked = |soon: &&Soon| soon.asked.with(|asked| asked.is_some());
    let late: Vec<&Soon> = [&ALARM, &TURN_END].into_iter().filter(is_asked).collect();
    late.iter().for_each(|soon| soon.ask_anew());
    IS_WATCHED.with(|is_watched| *is_watched = !late.is_empty());
    if !late.is_empty() {
        watch();
    }
}

unsafe extern "C" fn on_alarm(ctx: *mut raw::RedisModuleCtx, _data: *mut c_void) {
    ALARM.has_come();
    // SAFETY: the context is valid while the callback runs.
    let context = unsafe { Context::new(ctx) };
    hooks::call(|hooks| (hooks.alarm)(context));
    blocking::rest();
}

unsafe extern "C" fn on_turn_ending(_ctx: *mut raw::RedisModuleCtx, _data: *mut c_void) {
    TURN_END.has_come();
    hooks::call(|hooks| (hooks.turn_ending)());
}

type Watcher = unsafe extern "C" fn(c_int, *mut c_void, c_int);

/// A kernel timer that the event loop watches; `None` if there is none.
fn kernel_timer(timer: &OnceLock<Option<c_int>>, callback: Watcher) -> Option<c_int> {
    *timer.get_or_init(|| {
        // SAFETY: on the main thread; the descriptor stays open as long as the process.
        unsafe {
            let fd =
                libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_NONBLOCK | libc::TFD_CLOEXEC);
            let mask = raw::REDISMODULE_EVENTLOOP_READABLE as c_int;
            let is_watched = fd >= 0
                && api!(RedisModule_EventLoopAdd)(fd, mask, Some(callback), null_mut())
                    == raw::REDISMODULE_OK as c_int;
            is_watched.then_some(fd)
        }
    })
}

fn set_kernel_timer(fd: c_int, after: Duration) {
    // Zero would disarm it.
    let after = after.max(Duration::from_nanos(1));
    let none = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let value = libc::timespec {
        tv_sec: i32::try_from(after.as_secs()).unwrap_or(i32::MAX).into(),
        tv_nsec: after.subsec_nanos().into(),
    };
    let setting = libc::itimerspec { it_interval: none, it_value: value };
    // SAFETY: the descriptor is a timer; the setting is copied.
    unsafe { libc::timerfd_settime(fd, 0, &setting, null_mut()) };
}

fn read_kernel_timer(fd: c_int) {
    let mut expirations: u64 = 0;
    // SAFETY: the buffer has as many bytes as are read; the descriptor doesn't block.
    unsafe { libc::read(fd, (&raw mut expirations).cast(), size_of_val(&expirations)) };
}

unsafe extern "C" fn on_kernel_timer(fd: c_int, _data: *mut c_void, _mask: c_int) {
    read_kernel_timer(fd);
    ALARM.ask();
}
