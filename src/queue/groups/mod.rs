//! Groups of jobs, which take turns. In each priority, every group with a ready job delivers one
//! job per round, so a group never waits for many jobs of another. The jobs without a group take
//! part as one more group.
//!
//! A group's *turn* is the round in which it may leave next: this round or the next one. A round
//! consists of the groups that could deliver a job when it began. The group that could do so for
//! the longest time goes first; when all had their turn, the round is over. A group that comes
//! later is in the next round: one that opens as time passes, as the round knows when it began; and
//! one that is created, as the round knows the last serial before it. So a round ends however many
//! groups come, and each group waits for at most two jobs of each other group: one for the rest of
//! this round and one for the next.
//!
//! This is start-time fair queueing (P. Goyal, H. Vin, H. Cheng, "Start-time fair queuing", SIGCOMM
//! 1996) with jobs of equal cost, except for new groups. There, a new group starts at the virtual
//! time, which is this round: if each job had its own group, no round would end.
//!
//! | file | what it is |
//! | --- | --- |
//! | `group.rs` | the parts of a group, and when it may deliver a job |
//! | `turns.rs` | which group has its turn |
//! | `placement.rs` | the places of jobs in their group, and how changed limits move them |
//! | `idle.rs` | groups without jobs |
//! | `seats.rs` | the groups of a priority, in the order in which they may leave |
//! | `line.rs` | the jobs of a group, few or many |
//! | `view.rs`, `record.rs` | reading; files |
//! | `defrag.rs` | moving their memory |
//!
//! A job with a group is also in the lines of its lane, and is counted there: see
//! [`lanes`](crate::queue::lines::lanes). This room adds to that, so a queue without groups has no
//! cost.

pub mod defrag;
pub mod group;
pub mod idle;
pub mod line;
pub mod placement;
pub mod record;
pub mod seats;
pub mod turns;
pub mod view;
