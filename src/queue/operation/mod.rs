//! What commands and the timer do to a queue: one operation each.
//!
//! The kernel has seven verbs that give a job its place, and nothing else does: `put_job`, `put_plain`
//! and `put_all_plain` add jobs, `transition` and `lease_plain` give one that stays another state,
//! `remove` and `finish_plain` take one out. An operation says which of them happen, and for what cause; they record it (`kernel/journal.rs`), from
//! which totals, events and checksum follow. What a job carries (its body, note, result and run state) is
//! set beside them, in the store. `Queue::apply` runs the operation, and then carries out what follows
//! for jobs that wait for others.
//!
//! | operation | from | verbs | what else it may change |
//! | --- | --- | --- | --- |
//! | [`Add`](produce::Add) | DQ.ADD | put; remove, of the job that it replaces; transition, by ENSURE | edges, from it and to it |
//! | [`AddMany`](add_many::AddMany) | DQ.MADD | as Add, of each job | likewise |
//! | [`Pop`](consume::Pop) | DQ.POP, DQ.MPOP, the timer for clients that wait | lease; remove, by NOACK; transition, of late runs | the lease counter, RATE, turns of groups |
//! | [`PopById`](consume::PopById) | DQ.POP ID | as Pop, and a delayed or dead job is kicked first | likewise |
//! | [`FinishAndPop`](consume::FinishAndPop) | DQ.POP FINISH | as Finish, then as Pop | likewise |
//! | [`PassOver`](passed_over::PassOver) | the timer, before a sink | transition, of late runs | |
//! | [`Finish`](work::Finish) | DQ.FINISH | remove; transition to done or to the next run | edges to the jobs that wait for it |
//! | [`Done`](done::Done) | DQ.DONE | as Finish, then as Add | likewise, and a result |
//! | [`Release`](work::Release) | DQ.RELEASE | transition to delayed, ready or dead | a checkpoint |
//! | [`Touch`](work::Touch), [`Renew`](renew::Renew) | DQ.TOUCH, DQ.RENEW | transition, of the lease | a checkpoint |
//! | [`Bury`](work::Bury) | DQ.BURY | transition to dead | |
//! | [`KickJob`](manage::KickJob) | DQ.KICK, DQ.KICKJOB | transition to ready | open edges of a held job are dropped |
//! | [`KickSpread`](manage::KickSpread) | DQ.KICK SPREAD (`KICKSPREAD`) | transition to delayed | likewise |
//! | [`Remove`](manage::Remove) | DQ.DEL, DQ.PURGE, the timer (`FORGET`) | remove | edges to the jobs that wait for it |
//! | [`Resume`](manage::Resume) | DQ.RESUME | transition, of held jobs | the pause of the queue or a group |
//! | [`Pause`](manage::Pause), [`Alter`](manage::Alter) | DQ.PAUSE, DQ.ALTER | none | pauses; settings and limits |
//! | [`Settle`](depend::Settle) | the timer (`SETTLE`) | transition, of jobs that waited | edges: deaths by time, and a slice of what is pending |
//! | [`ForgetGroups`](upkeep::ForgetGroups) | the timer (`FORGET`) | none | groups without jobs |
//! | [`Effect`] | a rewritten AOF (DQ.APPLY JOBS, GROUPS, PENDING, EDGES, QUEUE) | put | all that a file keeps |

pub mod add_many;
pub mod admission;
pub mod consume;
pub mod depend;
pub mod done;
pub mod leaving;
pub mod manage;
pub mod new_edges;
pub mod passed_over;
pub mod produce;
pub mod renew;
pub mod scheduled;
pub mod upkeep;
pub mod work;
