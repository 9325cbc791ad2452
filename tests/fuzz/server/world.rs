//! What there is: one world a process, as there is one module.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};

use redis_module::raw;

use super::calls::{Ctx, Str};
use super::keys::Place;
use super::waiting::{Blocked, Timer};

pub type Database = i32;
pub type Word = Vec<u8>;
/// A value of the module's type: a pointer that the module gave.
pub type Value = *mut c_void;
pub type Callback = unsafe extern "C" fn(*mut Ctx, *mut *mut Str, c_int) -> c_int;
pub type OnEvent = unsafe extern "C" fn(*mut Ctx, raw::RedisModuleEvent, u64, *mut c_void);

/// How many databases there are.
pub const DATABASES: Database = 2;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Primary,
    /// Commands come from the log.
    Replica,
}

#[derive(Clone)]
pub struct Command {
    pub name: String,
    pub run: Callback,
    pub arity: i64,
}

pub struct World {
    pub clock_ms: u64,
    pub role: Role,
    pub commands: Vec<Command>,
    pub methods: Option<raw::RedisModuleTypeMethods>,
    pub on_event: BTreeMap<u64, OnEvent>,
    pub on_info: Option<unsafe extern "C" fn(*mut c_void, c_int)>,
    pub info: Vec<(String, String)>,
    pub keys: BTreeMap<Place, Value>,
    pub log: Vec<(Database, Vec<Word>)>,
    /// Numbers in replies that may be leases, the latest one last.
    pub leases: Vec<u64>,
    pub timers: Vec<Timer>,
    pub blocked: BTreeMap<usize, Blocked>,
    pub clients_ever: usize,
    /// Keys that came to be, for those who wait there.
    pub ready: Vec<Place>,
    /// Of clients that wait no more.
    pub left: Vec<Blocked>,
}

struct OneThread(RefCell<World>);

// SAFETY: whoever holds `Server` is alone in here.
unsafe impl Sync for OneThread {}

static WORLD: OneThread = OneThread(RefCell::new(World {
    clock_ms: super::BEGIN_MS,
    role: Role::Primary,
    commands: Vec::new(),
    methods: None,
    on_event: BTreeMap::new(),
    on_info: None,
    info: Vec::new(),
    keys: BTreeMap::new(),
    log: Vec::new(),
    leases: Vec::new(),
    timers: Vec::new(),
    blocked: BTreeMap::new(),
    clients_ever: 0,
    ready: Vec::new(),
    left: Vec::new(),
}));

/// Nothing of the module's is called inside: it would come back here.
pub fn with<R>(work: impl FnOnce(&mut World) -> R) -> R {
    work(&mut WORLD.0.borrow_mut())
}

/// The methods of the module's type.
pub fn methods() -> raw::RedisModuleTypeMethods {
    with(|world| world.methods).expect("the module has registered its type")
}
