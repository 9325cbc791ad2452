//! Reading and writing values: RDB, AOF rewrite, and the digest that compares.

use std::ffi::{c_char, c_int, c_void, CStr};

use redis_module::raw;
use thiserror::Error;

/// Why a value could not be loaded.
#[derive(Debug, Error)]
pub enum LoadError {
    /// The file ended, or could not be read.
    #[error("it ends before its end")]
    Input,
    /// A newer module wrote it: its version, and the last one that can be read.
    #[error("it has version {0}, this module reads up to {1}: a newer dq wrote it")]
    Version(c_int, c_int),
    /// What is in it can't be.
    #[error("{0}")]
    Content(String),
}

/// An RDB being read. A read that fails is an error here, not the end of the server
/// (`HANDLE_IO_ERRORS`).
pub struct Input(*mut raw::RedisModuleIO);

impl Input {
    /// `io` must belong to the callback in which this lives.
    pub(super) fn new(io: *mut raw::RedisModuleIO) -> Input {
        Input(io)
    }

    pub fn unsigned(&self) -> Result<u64, LoadError> {
        // SAFETY: `io` belongs to the callback in which this lives.
        let number = unsafe { api!(RedisModule_LoadUnsigned)(self.0) };
        self.check().map(|()| number)
    }

    pub fn buffer(&self) -> Result<ServerBuffer, LoadError> {
        let mut len = 0;
        // SAFETY: as above.
        let start = unsafe { api!(RedisModule_LoadStringBuffer)(self.0, &mut len) };
        self.check()?;
        if start.is_null() {
            return Err(LoadError::Input);
        }
        Ok(ServerBuffer { start, len })
    }

    fn check(&self) -> Result<(), LoadError> {
        // SAFETY: as above.
        match unsafe { api!(RedisModule_IsIOError)(self.0) } {
            0 => Ok(()),
            _ => Err(LoadError::Input),
        }
    }
}

/// Bytes that the server allocated for us; freed when dropped.
pub struct ServerBuffer {
    start: *mut c_char,
    len: usize,
}

impl ServerBuffer {
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: start and length describe an allocation that the server gave us, and that is ours
        // until dropped.
        unsafe { std::slice::from_raw_parts(self.start.cast::<u8>(), self.len) }
    }
}

impl Drop for ServerBuffer {
    fn drop(&mut self) {
        // SAFETY: as above; not used again.
        unsafe { api!(RedisModule_Free)(self.start.cast::<c_void>()) };
    }
}

/// An RDB being written.
pub struct Output(*mut raw::RedisModuleIO);

impl Output {
    /// `io` must belong to the callback in which this lives.
    pub(super) fn new(io: *mut raw::RedisModuleIO) -> Output {
        Output(io)
    }

    pub fn unsigned(&self, number: u64) {
        // SAFETY: `io` belongs to this callback.
        unsafe { api!(RedisModule_SaveUnsigned)(self.0, number) };
    }

    pub fn buffer(&self, bytes: &[u8]) {
        // SAFETY: as above; the server copies the bytes.
        unsafe {
            api!(RedisModule_SaveStringBuffer)(self.0, bytes.as_ptr().cast::<c_char>(), bytes.len())
        };
    }
}

/// An AOF being rewritten, for one key.
pub struct Aof {
    io: *mut raw::RedisModuleIO,
    key: *mut raw::RedisModuleString,
}

impl Aof {
    /// Both must belong to the callback in which this lives.
    pub(super) fn new(io: *mut raw::RedisModuleIO, key: *mut raw::RedisModuleString) -> Aof {
        Aof { io, key }
    }

    /// `command key word bytes`
    pub fn emit(&self, command: &CStr, word: &CStr, bytes: &[u8]) {
        // SAFETY: `io` and `key` belong to this callback; the format gives the types of the other
        // arguments.
        unsafe {
            api!(RedisModule_EmitAOF)(
                self.io,
                command.as_ptr(),
                c"scb".as_ptr(),
                self.key,
                word.as_ptr(),
                bytes.as_ptr(),
                bytes.len(),
            )
        };
    }
}

/// The sum that DEBUG DIGEST-VALUE computes.
pub struct Digest(*mut raw::RedisModuleDigest);

impl Digest {
    /// `digest` must belong to the callback in which this lives.
    pub(super) fn new(digest: *mut raw::RedisModuleDigest) -> Digest {
        Digest(digest)
    }

    pub fn add(&self, bytes: &[u8]) {
        // SAFETY: `digest` belongs to this callback; the server reads the bytes at once.
        unsafe {
            api!(RedisModule_DigestAddStringBuffer)(
                self.0,
                bytes.as_ptr().cast::<c_char>(),
                bytes.len(),
            );
        };
    }

    /// Ends a sequence: the order of what was added since the last end counts.
    pub fn end_sequence(&self) {
        // SAFETY: as above.
        unsafe { api!(RedisModule_DigestEndSequence)(self.0) };
    }
}
