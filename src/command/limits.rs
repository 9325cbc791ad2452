//! How much a command takes or gives in one go. More would hold up the others. What is part of the
//! log has its limits in the core: [`crate::queue::POP_JOBS_MAX`], [`crate::queue::ID_BYTES_MAX`].

/// The bodies of DQ.MADD together.
pub const ADD_MANY_BYTES_MAX: usize = 16 << 20;
/// Of FINISH in DQ.POP.
pub const CLAIMS_MAX: u64 = 10_000;
pub const KICK_JOBS_MAX: usize = 10_000;
pub const PURGE_JOBS_DEFAULT: usize = 1_000;
pub const PURGE_JOBS_MAX: usize = 10_000;
pub const PEEK_JOBS_MAX: usize = 1_000;
/// No further job is shown once a reply has so many bytes of what clients wrote: ids, bodies,
/// results, notes, reasons. A list of at most 10,000 ids, which are short, needs no such limit.
pub const REPLY_BYTES_MAX: usize = 16 << 20;
pub const SCAN_JOBS_DEFAULT: usize = 10;
pub const SCAN_JOBS_MAX: usize = 10_000;
/// Of DQ.GROUPS.
pub const GROUPS_DEFAULT: usize = 10;
pub const GROUPS_MAX: usize = 1_000;
/// Of DQ.NEXT.
pub const NEXT_TIMES_MAX: usize = 1_000;
/// Of DQ.FORECAST.
pub const FORECAST_STEPS_MAX: u64 = 1_000;
/// Of DQ.DEPS.
pub const DEPS_DEFAULT: usize = 100;
/// Of a worker's reason.
pub const REASON_BYTES_MAX: usize = 512;
/// Of a worker's note.
pub const NOTE_BYTES_MAX: usize = 512;
/// Of a word that an error quotes.
pub const QUOTED_BYTES_MAX: usize = 64;
