//! Groups of jobs, which take turns. In each priority the groups that have something ready are
//! handed out one job each in a round, so none waits for the others' many; what has no group takes
//! part as one of them.
//!
//! A group's *turn* is the round in which it may leave next: this one, or the one behind it. A
//! round takes in the groups that could leave when it began. Of those, the one leaves first that
//! could have left for longest; when all had their turn, the round is over. What comes later has
//! the next round: a group that opens by the passing of time, since the round knows when it began;
//! and a group that is made, since the round knows which one had been made last. So a round has an
//! end however many groups come, and each group waits for at most two jobs of each other one: for
//! the rest of a round and for the next.
//!
//! That is start-time fair queueing (P. Goyal, H. Vin, H. Cheng, "Start-time fair queuing", SIGCOMM
//! 1996) where all jobs cost the same, but for newcomers. There, one starts at the virtual time,
//! which is this round: where each job has a group of its own, no round would end.
//!
//! | file | what it is |
//! | --- | --- |
//! | `group.rs` | what a group consists of, and when it may leave |
//! | `turns.rs` | whose turn it is; |
//! | `placement.rs` | where jobs of groups stand; what other limits do to that |
//! | `idle.rs` | what becomes of groups without jobs |
//! | `seats.rs` | the groups of a priority, in the order in which they may leave |
//! | `line.rs` | the jobs of a group, few or many |
//! | `view.rs`, `record.rs` | looking; files |
//! | `defrag.rs` | putting their memory elsewhere |
//!
//! Jobs of groups stand in lines of their lane as all others do, and are counted there: see
//! [`super::lines::lanes`]. What is here comes on top, so a queue without groups pays nothing.

pub mod defrag;
pub mod group;
pub mod idle;
pub mod line;
pub mod placement;
pub mod record;
pub mod seats;
pub mod turns;
pub mod view;
