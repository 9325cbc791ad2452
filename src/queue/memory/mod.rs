//! What jobs are kept in: without a pointer, so without `unsafe`.

pub mod defrag;
pub mod index;
pub mod interned;
pub mod slab;
