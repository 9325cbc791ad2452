//! Clients that wait, and timers: as on Valkey, a client that is unblocked gets its reply at once.

use std::ffi::{c_int, c_longlong, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, Ordering};

use super::calls::{string, Ctx};
use super::keys::Place;
use super::world::{with, Callback, World};

type OnFree = unsafe extern "C" fn(*mut Ctx, *mut c_void);
type OnDisconnect = unsafe extern "C" fn(*mut Ctx, usize);
type OnTimer = unsafe extern "C" fn(*mut Ctx, *mut c_void);

#[derive(Clone)]
pub struct Blocked {
    places: Vec<Place>,
    on_ready: Callback,
    on_timeout: Callback,
    on_free: OnFree,
    on_disconnect: Option<OnDisconnect>,
    private: *mut c_void,
    has_gone: bool,
}

#[derive(Clone, Copy)]
pub struct Timer {
    number: u64,
    due_ms: u64,
    run: OnTimer,
    data: *mut c_void,
}

pub fn block(
    places: Vec<Place>,
    on_ready: Callback,
    on_timeout: Callback,
    on_free: OnFree,
    private: *mut c_void,
) -> usize {
    let blocked = Blocked {
        places,
        on_ready,
        on_timeout,
        on_free,
        on_disconnect: None,
        private,
        has_gone: false,
    };
    with(|world| {
        world.clients_ever += 1;
        world.blocked.insert(world.clients_ever, blocked);
        world.clients_ever
    })
}

/// Those who wait at a key that came to be are told.
pub fn tell_of_ready_keys() {
    for place in with(|world| std::mem::take(&mut world.ready)) {
        let waits_there = |blocked: &&Blocked| blocked.places.contains(&place);
        let who: Vec<Blocked> =
            with(|world| world.blocked.values().filter(waits_there).cloned().collect());
        for blocked in who {
            let ready_key = string(&place.1);
            let mut ctx =
                Ctx { database: place.0, private: blocked.private, ready_key, ..Ctx::default() };
            // SAFETY: what a server calls it with.
            let is_served = unsafe { (blocked.on_ready)(&mut ctx, null_mut(), 0) } == 0;
            assert!(!is_served, "the module serves those who wait by itself");
            drop(unsafe { Box::from_raw(ready_key) });
        }
    }
}

/// Once each; what they start meanwhile is for the next turn.
pub fn run_timers() {
    let due: Vec<Timer> = with(|world| {
        let now = world.clock_ms;
        let (due, later) =
            std::mem::take(&mut world.timers).into_iter().partition(|timer| timer.due_ms <= now);
        world.timers = later;
        due
    });
    for timer in due {
        // SAFETY: what a server calls it with.
        unsafe { (timer.run)(&mut Ctx::default(), timer.data) };
    }
    tell_of_ready_keys();
}

/// Whatever their time is: they are due.
pub fn let_timers_come() {
    with(|world| world.timers.iter_mut().for_each(|timer| timer.due_ms = 0));
}

pub fn free_those_who_left() {
    for blocked in with(|world| std::mem::take(&mut world.left)) {
        // SAFETY: the last that is heard of it.
        let mut ctx = Ctx { has_gone: blocked.has_gone, ..Ctx::default() };
        unsafe { (blocked.on_free)(&mut ctx, blocked.private) };
    }
}

pub fn disconnect(which: usize) {
    let nth =
        |world: &mut World| world.blocked.keys().nth(which % world.blocked.len().max(1)).copied();
    let Some(client) = with(nth) else {
        return;
    };
    let Some(blocked) = with(|world| world.blocked.remove(&client)) else {
        return;
    };
    if let Some(on_disconnect) = blocked.on_disconnect {
        // SAFETY: what a server calls it with.
        unsafe { on_disconnect(&mut Ctx::default(), client) };
    }
    with(|world| world.left.push(Blocked { has_gone: true, ..blocked }));
}

pub fn disconnect_all() {
    while with(|world| !world.blocked.is_empty()) {
        disconnect(0);
    }
    free_those_who_left();
}

// ---- what the module calls
// ---------------------------------------------------------------------------------------

pub unsafe extern "C" fn unblock(client: usize, _: *mut c_void) -> c_int {
    let Some(blocked) = with(|world| world.blocked.remove(&client)) else {
        return 0;
    };
    let mut ctx = Ctx { private: blocked.private, ..Ctx::default() };
    unsafe { (blocked.on_timeout)(&mut ctx, null_mut(), 0) };
    assert!(ctx.replied.is_one(), "who waited gets one reply: {:?}", ctx.replied);
    with(|world| world.left.push(blocked));
    0
}

pub unsafe extern "C" fn on_disconnect(client: usize, callback: OnDisconnect) {
    with(|world| {
        if let Some(blocked) = world.blocked.get_mut(&client) {
            blocked.on_disconnect = Some(callback);
        }
    });
}

pub unsafe extern "C" fn private_of(ctx: *mut Ctx) -> *mut c_void {
    unsafe { (*ctx).private }
}

pub unsafe extern "C" fn has_gone(ctx: *mut Ctx) -> c_int {
    c_int::from(unsafe { (*ctx).has_gone })
}

pub unsafe extern "C" fn ready_key_of(ctx: *mut Ctx) -> *mut super::calls::Str {
    unsafe { (*ctx).ready_key }
}

pub unsafe extern "C" fn create_timer(
    _: *mut Ctx,
    after_ms: c_longlong,
    run: OnTimer,
    data: *mut c_void,
) -> u64 {
    static NUMBERS: AtomicU64 = AtomicU64::new(1);
    let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
    with(|world| {
        let due_ms = world.clock_ms.saturating_add(after_ms.max(0) as u64);
        world.timers.push(Timer { number, due_ms, run, data });
    });
    number
}

pub unsafe extern "C" fn stop_timer(_: *mut Ctx, number: u64, _: *mut *mut c_void) -> c_int {
    with(|world| {
        let before = world.timers.len();
        world.timers.retain(|timer| timer.number != number);
        // 1 is an error: there is no such timer.
        c_int::from(world.timers.len() == before)
    })
}
