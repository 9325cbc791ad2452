//! The version in which a command came.

use std::ffi::CStr;

pub const SINCE_0_1: &CStr = c"0.1.0";
pub const SINCE_0_2: &CStr = c"0.2.0";
