//! A command being executed: its words, its replies, what it logs.

use std::ffi::{c_char, c_int, c_long, c_longlong, c_void, CStr};

use super::keys::Place;
use super::world::{with, Callback, Database, Role, Word};
use super::{waiting, Answer};

/// What the module sees as a `RedisModuleString`.
pub struct Str(pub Word);

pub fn string(bytes: &[u8]) -> *mut Str {
    Box::into_raw(Box::new(Str(bytes.to_vec())))
}

/// What the module sees as a `RedisModuleCtx`.
#[repr(C)]
pub struct Ctx {
    /// Where `OnLoad` looks for it.
    pub get_api: *const c_void,
    pub database: Database,
    pub replied: Replied,
    pub argv: Argv,
    pub asks_for_keys: bool,
    /// Of a client that waited.
    pub private: *mut c_void,
    pub ready_key: *mut Str,
    pub has_gone: bool,
    pub client: Option<usize>,
}

impl Default for Ctx {
    fn default() -> Ctx {
        Ctx {
            get_api: super::api::get_api as *const c_void,
            database: 0,
            replied: Replied::default(),
            argv: Argv(Vec::new()),
            asks_for_keys: false,
            private: std::ptr::null_mut(),
            ready_key: std::ptr::null_mut(),
            has_gone: false,
            client: None,
        }
    }
}

pub struct Argv(Vec<*mut Str>);

impl Drop for Argv {
    fn drop(&mut self) {
        for string in std::mem::take(&mut self.0) {
            // SAFETY: made in `of_command`, for this context alone.
            drop(unsafe { Box::from_raw(string) });
        }
    }
}

impl Ctx {
    pub fn of_command(database: Database, words: &[Word]) -> Ctx {
        let argv = Argv(words.iter().map(|word| string(word)).collect());
        Ctx { database, argv, ..Ctx::default() }
    }

    fn words(&self) -> Vec<Word> {
        // SAFETY: as above; alive.
        self.argv.0.iter().map(|word| unsafe { (**word).0.clone() }).collect()
    }

    fn call(&mut self, run: Callback) {
        let (argv, argc) = (self.argv.0.as_mut_ptr(), self.argv.0.len() as c_int);
        // SAFETY: what a server calls a command with.
        unsafe { run(self, argv, argc) };
    }
}

/// Replies, and whether they are whole.
#[derive(Clone, Debug, Default)]
pub struct Replied {
    /// Without what is inside of others.
    whole: usize,
    /// Of each that isn't at its end, how many are missing.
    open: Vec<usize>,
    pub error: Option<String>,
    /// Short ones, for those who look for something.
    pub bulks: Vec<Word>,
    pub numbers: Vec<i64>,
}

impl Replied {
    fn add(&mut self, inside: usize) {
        match self.open.last_mut() {
            None => self.whole += 1,
            Some(missing) => *missing -= 1,
        }
        if inside > 0 {
            self.open.push(inside);
        }
        while self.open.last() == Some(&0) {
            self.open.pop();
        }
    }

    /// Whether there is exactly one, whole reply.
    pub fn is_one(&self) -> bool {
        self.whole == 1 && self.open.is_empty()
    }
}

/// The command with this name, if it takes so many words.
pub fn command(name: &[u8], words: usize) -> Option<impl FnOnce(Ctx) -> Answer> {
    let name = String::from_utf8(name.to_ascii_lowercase()).ok()?;
    let command = with(|world| world.commands.iter().find(|one| one.name == name).cloned())?;
    let words = words as i64;
    let takes = if command.arity < 0 { words >= -command.arity } else { words == command.arity };
    takes.then_some(move |mut ctx: Ctx| {
        if ["dq.mpop", "dq.alter"].contains(&command.name.as_str()) {
            // As a cluster's node does, to find the slot.
            ctx.asks_for_keys = true;
            ctx.call(command.run);
            ctx.asks_for_keys = false;
        }
        ctx.call(command.run);
        if ctx.client.is_some() {
            assert_eq!(
                (ctx.replied.whole, ctx.replied.open.len()),
                (0, 0),
                "a client that waits is told nothing"
            );
            return Answer::Waits;
        }
        assert!(
            ctx.replied.is_one(),
            "one reply, which is whole: {:?} {:?}",
            ctx.replied,
            ctx.words()
        );
        Answer::Replied(std::mem::take(&mut ctx.replied))
    })
}

// ---- what the module calls: contexts and strings are those that it was given
// ----------------------------------------

pub unsafe extern "C" fn string_ptr_len(string: *const Str, len: *mut usize) -> *const c_char {
    unsafe {
        if !len.is_null() {
            *len = (*string).0.len();
        }
        (*string).0.as_ptr().cast()
    }
}

pub unsafe extern "C" fn create_string(_: *mut Ctx, start: *const u8, len: usize) -> *mut Str {
    string(unsafe { std::slice::from_raw_parts(start, len) })
}

pub unsafe extern "C" fn free_string(_: *mut Ctx, string: *mut Str) {
    drop(unsafe { Box::from_raw(string) });
}

pub unsafe extern "C" fn reply_long_long(ctx: *mut Ctx, number: c_longlong) -> c_int {
    const MAY_BE_A_LEASE: c_longlong = 1 << 20;
    if number >= MAY_BE_A_LEASE {
        with(|world| world.leases.push(number as u64));
    }
    let replied = unsafe { &mut (*ctx).replied };
    replied.numbers.push(number);
    replied.add(0);
    0
}

pub unsafe extern "C" fn reply_string_buffer(ctx: *mut Ctx, start: *const u8, len: usize) -> c_int {
    const SHORT: usize = 600;
    let replied = unsafe { &mut (*ctx).replied };
    let bytes = unsafe { std::slice::from_raw_parts(start, len) };
    if len <= SHORT {
        replied.bulks.push(bytes.to_vec());
    }
    replied.add(0);
    0
}

pub unsafe extern "C" fn reply_simple_string(ctx: *mut Ctx, text: *const c_char) -> c_int {
    assert_is_a_line(unsafe { CStr::from_ptr(text) });
    unsafe { (*ctx).replied.add(0) };
    0
}

pub unsafe extern "C" fn reply_error(ctx: *mut Ctx, text: *const c_char) -> c_int {
    let text = unsafe { CStr::from_ptr(text) };
    assert_is_a_line(text);
    let replied = unsafe { &mut (*ctx).replied };
    replied.error = Some(text.to_string_lossy().into_owned());
    replied.add(0);
    0
}

fn assert_is_a_line(text: &CStr) {
    assert!(
        !text.to_bytes().iter().any(|byte| [b'\r', b'\n'].contains(byte)),
        "not a line: {text:?}"
    );
}

pub unsafe extern "C" fn reply_null(ctx: *mut Ctx) -> c_int {
    unsafe { (*ctx).replied.add(0) };
    0
}

pub unsafe extern "C" fn reply_array(ctx: *mut Ctx, len: c_long) -> c_int {
    unsafe { (*ctx).replied.add(usize::try_from(len).expect("lengths are not negative")) };
    0
}

pub unsafe extern "C" fn reply_map(ctx: *mut Ctx, len: c_long) -> c_int {
    unsafe { (*ctx).replied.add(2 * usize::try_from(len).expect("lengths are not negative")) };
    0
}

pub unsafe extern "C" fn replicate_verbatim(ctx: *mut Ctx) -> c_int {
    let (database, words) = unsafe { ((*ctx).database, (*ctx).words()) };
    log(database, words);
    0
}

/// What is told a command in words.
pub trait LoggedCircumstances {
    fn tell(&mut self, words: Vec<Word>);
}

impl LoggedCircumstances for Ctx {
    fn tell(&mut self, words: Vec<Word>) {
        log(self.database, words);
    }
}

/// `Replicate` and `EmitAOF`. The real ones take any number of arguments. These are as many as the
/// module ever gives; those that it doesn't give are not looked at.
#[allow(clippy::too_many_arguments)]
pub unsafe extern "C" fn tell<T: LoggedCircumstances>(
    told: *mut T,
    command: *const c_char,
    format: *const c_char,
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    f: usize,
    g: usize,
    h: usize,
) -> c_int {
    let mut words = vec![unsafe { CStr::from_ptr(command) }.to_bytes().to_vec()];
    words.extend(unsafe { arguments(CStr::from_ptr(format), &[a, b, c, d, e, f, g, h]) });
    unsafe { (*told).tell(words) };
    0
}

/// Arguments of these types: `s` a string, `c` one of C's, `b` bytes with their number, `l` a
/// number, `v` several strings.
pub unsafe fn arguments(format: &CStr, given: &[usize]) -> Vec<Word> {
    let mut given = given.iter().copied();
    let mut next = || given.next().expect("as many as the format says");
    let mut words = Vec::new();
    for kind in format.to_bytes() {
        unsafe {
            match kind {
                b's' => words.push((*(next() as *const Str)).0.clone()),
                b'c' => words.push(CStr::from_ptr(next() as *const c_char).to_bytes().to_vec()),
                b'l' => words.push((next() as c_longlong).to_string().into_bytes()),
                b'b' => {
                    let (start, len) = (next() as *const u8, next());
                    words.push(std::slice::from_raw_parts(start, len).to_vec());
                }
                b'v' => {
                    let (start, len) = (next() as *const *const Str, next());
                    let all = std::slice::from_raw_parts(start, len);
                    words.extend(all.iter().map(|word| (**word).0.clone()));
                }
                _ => panic!("the module uses a format that this server doesn't know: {format:?}"),
            }
        }
    }
    words
}

pub fn log(database: Database, words: Vec<Word>) {
    with(|world| {
        // What comes from the log goes on to sub-replicas as it came.
        if world.role == Role::Primary {
            world.log.push((database, words));
        }
    });
}

pub unsafe extern "C" fn asks_for_keys(ctx: *mut Ctx) -> c_int {
    unsafe { (*ctx).asks_for_keys.into() }
}

pub unsafe extern "C" fn key_at(ctx: *mut Ctx, at: c_int) {
    let words = unsafe { (*ctx).argv.0.len() };
    assert!((1..words).contains(&(at as usize)), "there is no key at {at}");
}

pub unsafe extern "C" fn selected_database(ctx: *mut Ctx) -> c_int {
    unsafe { (*ctx).database }
}

pub unsafe extern "C" fn select_database(ctx: *mut Ctx, database: c_int) -> c_int {
    if !(0..super::world::DATABASES).contains(&database) {
        return 1;
    }
    unsafe { (*ctx).database = database };
    0
}

/// The place of this name in the context's database.
pub unsafe fn place_of(ctx: *const Ctx, name: *const Str) -> Place {
    unsafe { ((*ctx).database, (*name).0.clone()) }
}

#[allow(clippy::too_many_arguments)]
pub unsafe extern "C" fn block_on_keys(
    ctx: *mut Ctx,
    on_ready: Callback,
    on_timeout: Callback,
    on_free: unsafe extern "C" fn(*mut Ctx, *mut c_void),
    _timeout_ms: c_longlong,
    keys: *const *const Str,
    len: c_int,
    private: *mut c_void,
) -> usize {
    let keys = unsafe { std::slice::from_raw_parts(keys, len as usize) };
    let places = keys.iter().map(|name| unsafe { place_of(ctx, *name) }).collect();
    let client = waiting::block(places, on_ready, on_timeout, on_free, private);
    unsafe { (*ctx).client = Some(client) };
    client
}
