//! Strings from the server: the arguments of a command, and the names of keys.

use std::marker::PhantomData;
use std::ptr::null_mut;

use redis_module::raw;

/// One argument, valid while the command runs.
#[derive(Clone, Copy)]
pub struct Arg<'c> {
    raw: *mut raw::RedisModuleString,
    life: PhantomData<&'c ()>,
}

impl<'c> Arg<'c> {
    pub fn bytes(self) -> &'c [u8] {
        // SAFETY: an argument is a valid string until the command ends, which 'c does not outlive.
        unsafe { string_bytes(self.raw) }
    }

    pub(super) fn raw(self) -> *mut raw::RedisModuleString {
        self.raw
    }
}

impl<'c> From<&Arg<'c>> for Box<[u8]> {
    fn from(arg: &Arg<'c>) -> Box<[u8]> {
        arg.bytes().into()
    }
}

/// The arguments of a command; the first is its name.
#[derive(Clone, Copy)]
pub struct Args<'c> {
    argv: *const *mut raw::RedisModuleString,
    len: usize,
    life: PhantomData<&'c ()>,
}

impl<'c> Args<'c> {
    /// # Safety
    /// There are `len` of them, valid during `'c`.
    pub(super) unsafe fn new(argv: *const *mut raw::RedisModuleString, len: usize) -> Args<'c> {
        Args { argv, len, life: PhantomData }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// Where the argument is that follows this word, in whichever case; looked for after the
    /// command's key.
    pub(super) fn position_behind(&self, word: &str) -> Option<usize> {
        let word = word.as_bytes();
        let is_it =
            |at: &usize| self.get(*at).is_some_and(|arg| arg.bytes().eq_ignore_ascii_case(word));
        (2..self.len).find(is_it).map(|at| at + 1).filter(|at| *at < self.len)
    }

    /// The arguments from index `first` on, in the server's form.
    pub(super) fn raw_from(&self, first: usize) -> (*const *mut raw::RedisModuleString, usize) {
        let skipped = first.min(self.len);
        // SAFETY: the server gave `len` arguments, and no more are skipped.
        (unsafe { self.argv.add(skipped) }, self.len - skipped)
    }

    pub fn get(&self, at: usize) -> Option<Arg<'c>> {
        if at >= self.len {
            return None;
        }
        // SAFETY: the server gave `len` arguments, and `at` is below that.
        let raw = unsafe { *self.argv.add(at) };
        Some(Arg { raw, life: PhantomData })
    }
}

/// A new string of the server's.
///
/// # Safety
/// The caller frees it.
pub(super) unsafe fn new_string(bytes: &[u8]) -> *mut raw::RedisModuleString {
    // SAFETY: the server copies the bytes.
    unsafe { api!(RedisModule_CreateString)(null_mut(), bytes.as_ptr().cast(), bytes.len()) }
}

/// The bytes of a server's string.
///
/// # Safety
/// `string` is valid and unchanged during `'s`.
pub(super) unsafe fn string_bytes<'s>(string: *const raw::RedisModuleString) -> &'s [u8] {
    let mut len = 0;
    // SAFETY: the caller's promise.
    unsafe {
        let start = api!(RedisModule_StringPtrLen)(string, &mut len);
        std::slice::from_raw_parts(start.cast::<u8>(), len)
    }
}

/// The bytes of a key's name; none when there is no name.
///
/// # Safety
/// `name` is null or valid during `'s`.
pub(super) unsafe fn name_bytes<'s>(name: *const raw::RedisModuleString) -> &'s [u8] {
    if name.is_null() {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { string_bytes(name) }
}
