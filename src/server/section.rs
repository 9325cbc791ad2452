//! A section of INFO while the server writes it.

use std::ffi::{CStr, CString};

use redis_module::raw;

/// The section being written.
pub struct Section(*mut raw::RedisModuleInfoCtx);

impl Section {
    pub(super) fn new(raw: *mut raw::RedisModuleInfoCtx) -> Section {
        Section(raw)
    }

    /// The server puts the module's name before the field's name.
    pub fn number(&self, name: &CStr, value: u64) {
        // SAFETY: the context belongs to the callback in which the section lives; the server copies
        // the name.
        unsafe { api!(RedisModule_InfoAddFieldULongLong)(self.0, name.as_ptr(), value) };
    }

    pub fn text(&self, name: &CStr, value: &str) {
        let value = CString::new(value).unwrap_or_default();
        // SAFETY: as above.
        unsafe { api!(RedisModule_InfoAddFieldCString)(self.0, name.as_ptr(), value.as_ptr()) };
    }
}
