//! RDB, AOF and digest. What is in a file of a module's value: numbers and strings, each behind a
//! byte that says which.

use std::ffi::{c_char, c_int, c_void};

use super::calls::{string, LoggedCircumstances, Str};
use super::keys::Place;
use super::world::{methods, with, Value, Word};

/// Of what the module writes.
pub const ENCODING_VERSION: i32 = 2;

const END: u64 = 0;
const UNSIGNED: u64 = 2;
const STRING: u64 = 5;

/// What the module sees as a `RedisModuleIO`.
pub struct Io {
    input: Vec<u8>,
    at: usize,
    has_failed: bool,
    output: Vec<u8>,
    place: Place,
    name: *mut Str,
    /// Of an AOF.
    commands: Vec<Vec<Word>>,
}

impl Io {
    fn new(place: &Place, input: &[u8]) -> Io {
        Io {
            input: input.to_vec(),
            at: 0,
            has_failed: false,
            output: Vec::new(),
            place: place.clone(),
            name: string(&place.1),
            commands: Vec::new(),
        }
    }

    fn take(&mut self, len: usize) -> Option<&[u8]> {
        let end = self.at.checked_add(len)?;
        let bytes = self.input.get(self.at..end)?;
        self.at = end;
        Some(bytes)
    }

    /// A length, as an RDB has it: in the two highest bits of the first byte, how long it is.
    fn length(&mut self) -> Option<Length> {
        let first = self.take(1)?[0];
        let number =
            |bytes: &[u8]| bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
        Some(match first {
            0..=0x3f => Length::Is(first.into()),
            0x40..=0x7f => Length::Is(u64::from(first & 0x3f) << 8 | u64::from(self.take(1)?[0])),
            0x80 => Length::Is(number(self.take(4)?)),
            0x81 => Length::Is(number(self.take(8)?)),
            0xc0 => Length::IsInteger(i64::from(self.take(1)?[0] as i8)),
            0xc1 => {
                Length::IsInteger(i64::from(i16::from_le_bytes(self.take(2)?.try_into().ok()?)))
            }
            0xc2 => {
                Length::IsInteger(i64::from(i32::from_le_bytes(self.take(4)?.try_into().ok()?)))
            }
            // Compressed, or nothing that there is.
            _ => return None,
        })
    }

    fn unsigned(&mut self) -> Option<u64> {
        match (self.length()?, self.length()?) {
            (Length::Is(UNSIGNED), Length::Is(number)) => Some(number),
            _ => None,
        }
    }

    fn string(&mut self) -> Option<Vec<u8>> {
        match (self.length()?, self.length()?) {
            (Length::Is(STRING), Length::Is(len)) => {
                Some(self.take(usize::try_from(len).ok()?)?.to_vec())
            }
            (Length::Is(STRING), Length::IsInteger(number)) => {
                Some(number.to_string().into_bytes())
            }
            _ => None,
        }
    }
}

impl Drop for Io {
    fn drop(&mut self) {
        // SAFETY: made in `new`, for this alone.
        drop(unsafe { Box::from_raw(self.name) });
    }
}

enum Length {
    Is(u64),
    /// A string that is a number, and written as one.
    IsInteger(i64),
}

/// What a value in a file consists of.
#[derive(Clone, Debug)]
pub enum Item {
    Unsigned(u64),
    String(Vec<u8>),
}

impl Item {
    /// The items of a value as far as it can be read.
    pub fn all(value: &[u8]) -> Vec<Item> {
        let mut io = Io::new(&(0, Vec::new()), value);
        let mut items = Vec::new();
        loop {
            let begin = io.at;
            if let Some(number) = io.unsigned() {
                items.push(Item::Unsigned(number));
                continue;
            }
            io.at = begin;
            match io.string() {
                Some(bytes) => items.push(Item::String(bytes)),
                None => return items,
            }
        }
    }

    pub fn write(&self, value: &mut Vec<u8>) {
        match self {
            Item::Unsigned(number) => {
                write_length(UNSIGNED, value);
                write_length(*number, value);
            }
            Item::String(bytes) => {
                write_length(STRING, value);
                write_length(bytes.len() as u64, value);
                value.extend(bytes);
            }
        }
    }
}

fn write_length(number: u64, value: &mut Vec<u8>) {
    match number {
        0..=0x3f => value.push(number as u8),
        0x40..=0x3fff => value.extend((number as u16 | 0x4000).to_be_bytes()),
        0x4000..=0xffff_ffff => {
            value.push(0x80);
            value.extend((number as u32).to_be_bytes());
        }
        _ => {
            value.push(0x81);
            value.extend(number.to_be_bytes());
        }
    }
}

pub fn save(value: Value) -> Vec<u8> {
    let mut io = Io::new(&(0, Vec::new()), &[]);
    // SAFETY: a value of the type's, and the io of this callback; so in all that follow.
    unsafe {
        methods().rdb_save.expect("the type has it")(std::ptr::from_mut(&mut io).cast(), value)
    };
    write_length(END, &mut io.output);
    std::mem::take(&mut io.output)
}

/// `None` when the module refuses it, or when it isn't at its end then.
pub fn load(place: &Place, encoding_version: i32, value: &[u8]) -> Option<Value> {
    let mut io = Io::new(place, value);
    let load = methods().rdb_load.expect("the type has it");
    let value = unsafe { load(std::ptr::from_mut(&mut io).cast(), encoding_version) };
    if value.is_null() {
        return None;
    }
    assert!(!io.has_failed, "what could be read in part was taken for the whole");
    if matches!(io.length(), Some(Length::Is(END))) {
        return Some(value);
    }
    // As the server does with what has more behind it.
    unsafe { methods().free.expect("the type has it")(value) };
    None
}

pub fn rewrite(place: &Place, value: Value) -> Vec<Vec<Word>> {
    let mut io = Io::new(place, &[]);
    let (rewrite, name) = (methods().aof_rewrite.expect("the type has it"), io.name);
    unsafe { rewrite(std::ptr::from_mut(&mut io).cast(), name.cast(), value) };
    std::mem::take(&mut io.commands)
}

pub fn digest(value: Value) -> Vec<u8> {
    let mut bytes: Vec<u8> = Vec::new();
    let digest = methods().digest.expect("the type has it");
    unsafe { digest(std::ptr::from_mut(&mut bytes).cast(), value) };
    bytes
}

// ---- what the module calls
// ---------------------------------------------------------------------------------------

pub unsafe extern "C" fn load_unsigned(io: *mut Io) -> u64 {
    let io = unsafe { &mut *io };
    let number = if io.has_failed { None } else { io.unsigned() };
    io.has_failed |= number.is_none();
    number.unwrap_or_default()
}

pub unsafe extern "C" fn load_string_buffer(io: *mut Io, len: *mut usize) -> *mut c_void {
    let io = unsafe { &mut *io };
    let bytes = if io.has_failed { None } else { io.string() };
    io.has_failed |= bytes.is_none();
    let Some(bytes) = bytes else {
        return std::ptr::null_mut();
    };
    // SAFETY: `RedisModule_Free`, which frees it, is the C library's.
    unsafe {
        *len = bytes.len();
        let start = libc::malloc(bytes.len().max(1));
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), start.cast(), bytes.len());
        start
    }
}

pub unsafe extern "C" fn is_io_error(io: *mut Io) -> c_int {
    unsafe { (*io).has_failed.into() }
}

pub unsafe extern "C" fn save_unsigned(io: *mut Io, number: u64) {
    Item::Unsigned(number).write(unsafe { &mut (*io).output });
}

pub unsafe extern "C" fn save_string_buffer(io: *mut Io, start: *const u8, len: usize) {
    let bytes = unsafe { std::slice::from_raw_parts(start, len) };
    Item::String(bytes.to_vec()).write(unsafe { &mut (*io).output });
}

pub unsafe extern "C" fn name_of_io(io: *mut Io) -> *mut Str {
    unsafe { (*io).name }
}

pub unsafe extern "C" fn database_of_io(io: *mut Io) -> c_int {
    unsafe { (*io).place.0 }
}

impl LoggedCircumstances for Io {
    fn tell(&mut self, words: Vec<Word>) {
        self.commands.push(words);
    }
}

pub unsafe extern "C" fn digest_add(digest: *mut Vec<u8>, start: *const u8, len: usize) {
    let bytes = unsafe { std::slice::from_raw_parts(start, len) };
    let digest = unsafe { &mut *digest };
    digest.extend((len as u64).to_le_bytes());
    digest.extend(bytes);
}

pub unsafe extern "C" fn digest_end(digest: *mut Vec<u8>) {
    unsafe { (*digest).push(b'.') };
}

/// The type's methods, as it registers them.
pub unsafe extern "C" fn create_type(
    _: *mut c_void,
    _name: *const c_char,
    version: c_int,
    methods: *const redis_module::raw::RedisModuleTypeMethods,
) -> *mut c_void {
    assert_eq!(version, ENCODING_VERSION);
    with(|world| world.methods = Some(unsafe { *methods }));
    super::keys::THE_TYPE
}
