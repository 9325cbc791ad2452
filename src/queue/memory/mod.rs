//! Containers for jobs: without pointers, so without `unsafe`.

pub mod defrag;
pub mod impossible;
pub mod index;
pub mod interned;
pub mod slab;
