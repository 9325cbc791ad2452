//! A section of INFO, while the server shows it.

use std::ffi::{CStr, CString};

use redis_module::raw;

/// The section that is being shown.
pub struct Section(*mut raw::RedisModuleInfoCtx);

impl Section {
    pub(super) fn new(raw: *mut raw::RedisModuleInfoCtx) -> Section {
        Section(raw)
    }

    /// The server puts the module's name before the field's.
    pub fn number(&self, name: &CStr, value: u64) {
        // SAFETY: the context is that of the callback in which the section lives; the server copies
        // the name.
        unsafe { api!(RedisModule_InfoAddFieldULongLong)(self.0, name.as_ptr(), value) };
    }

    pub fn text(&self, name: &CStr, value: &str) {
        let value = CString::new(value).unwrap_or_default();
        // SAFETY: as above.
        unsafe { api!(RedisModule_InfoAddFieldCString)(self.0, name.as_ptr(), value.as_ptr()) };
    }
}
