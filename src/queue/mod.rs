//! The queue as a state machine over explicit time: no server, no clock, no randomness, no globals.
//!
//! ```
//! use dq::queue::*;
//!
//! let at = |ms| Time::new(ms).unwrap();
//! let ms = |ms| Millis::new(ms).unwrap();
//! let told = |now| Circumstances { now: at(now), ..Circumstances::default() };
//! let id = Id::new(b"a").unwrap();
//! let mut queue = Queue::new((0, 0));
//!
//! let due = Due::In(ms(500));
//! let added = queue.apply(&told(0), &Add { due, ttr: Some(ms(200)), ..Add::plain(id, b"hello") });
//! assert!(matches!(added, Added::New { .. }));
//! assert!(queue.apply(&told(499), &Pop::ONE).is_empty());
//! let lease = queue.apply(&told(500), &Pop::ONE).iter().next().unwrap().lease;
//! let finished = queue.apply(&told(501), &Finish { claims: &[Claim { id, lease: Some(lease) }] });
//! assert_eq!(finished, Finished { jobs: 1 });
//! ```
//!
//! | file | what it is |
//! | --- | --- |
//! | `mod.rs` | what a queue consists of, and how a job comes to where it stands |
//! | `door.rs` | the one way to change a queue: an operation and its circumstances in, an outcome out |
//! | `produce.rs`, `consume.rs`, `claims.rs`, `manage.rs` | the operations, one a command; |
//! | `lease.rs` | the numbers of leases; the most frequent hand-out, by a shorter way |
//! | `passed_over.rs` | occurrences of schedules that nobody took in time |
//! | `upkeep.rs` | those that no client says, and when the timer has to come |
//! | `look.rs` | looking |
//! | `pattern.rs` | patterns of ids |
//! | `forecast.rs` | how many jobs come due when |
//! | `replay.rs` | records of a file, and of an AOF that was rewritten |
//! | `record.rs`, `job_record.rs`, `schedule_record.rs`, `queue_record.rs`, `block.rs` | what is in files and in the log |
//! | `ids.rs`, `job.rs`, `policy.rs`, `terms.rs`, `details.rs`, `interned.rs` | what a job consists of, and how it is kept |
//! | `shift.rs`, `tally.rs` | how a job gets another place, and what happened to it on its way |
//! | `recurrence.rs`, `recurring.rs` | schedules: when a job comes back; what becomes of one that does |
//! | `pool.rs`, `index.rs`, `slab.rs` | the job pool: by id, by slot |
//! | `removed.rs` | what has left it, to be freed by whoever has time |
//! | `relocate.rs`, `mover.rs` | putting its memory elsewhere, allocation by allocation |
//! | `schedule.rs`, `schedule/order.rs`, `buckets.rs`, `buckets/*.rs`, `bucket.rs`, `entry.rs` | the lines of sorted buckets: by priority and time |
//! | `recent.rs` | how much happened in the last minute |
//! | `settings.rs`, `limits.rs`, `rate.rs` | what an operator sets for a queue; what may leave it now |
//! | `groups/*.rs` | groups of jobs, which take turns |
//! | `time.rs` | points and lengths of time |

#![forbid(unsafe_code)]

mod block;
mod bucket;
mod buckets;
mod claims;
mod consume;
mod details;
mod door;
mod entry;
mod forecast;
mod groups;
mod ids;
mod index;
mod interned;
mod job;
mod job_record;
mod lease;
mod limits;
mod look;
mod manage;
mod mover;
mod passed_over;
mod pattern;
mod policy;
mod pool;
mod produce;
mod queue_record;
mod rate;
mod recent;
mod record;
mod recurrence;
mod recurring;
mod relocate;
mod removed;
mod replay;
mod schedule;
mod schedule_record;
mod settings;
mod shift;
mod slab;
mod tally;
mod terms;
mod time;
mod upkeep;
mod window;

use buckets::{Arrival, Window, Windows};
use details::{Details, Expiring, Leased, Rare, Standing};
use pool::{Found, Pool};
use queue_record::count;
use schedule::{Aside, Home, Schedule};
use shift::{Reason, Shift};
use slab::{Slab, Slot};
use terms::Terms;

pub use block::{read_block, BlockWriter};
pub use claims::{Accepted, Bury, Claim, Finish, Finished, Release, Touch, WhenReleased};
pub use consume::{Deliveries, Delivery, Mode, Pop, PopById, POP_BYTES_MAX, POP_JOBS_MAX};
pub use door::{Changed, Circumstances, Defaults, Heading, Operation};
pub use forecast::Forecast;
pub use groups::{GroupRecord, GroupView, PAUSED_GROUPS_MAX};
pub use ids::{Id, Lease, Names, ID_BYTES_MAX};
pub use job::{JobView, Progress, Stage, State};
pub use job_record::JobRecord;
pub use look::{After, Scanned, Sought};
pub use manage::{Alter, Altered, Delete, Deleted, KickJob, Kicked, Pause, Paused, Resume, Resumed};
pub use mover::Mover;
pub use pattern::{Compared, Pattern};
pub use policy::{Attempts, Backoff, Policy};
pub use produce::{Add, Added, Due, IfTaken, Naming};
pub use queue_record::{QueueRecord, Totals};
pub use rate::{Rate, Tat};
pub use recent::Happened;
pub use record::{Record, RecordError};
pub use recurrence::{
    Answers, Calendar, Cron, Following, Misfire, NewSchedule, NoCalendar, Recurrence, Round, Scheduled,
    Starts, Timing, CRON_BYTES_MAX, ZONE_BYTES_MAX,
};
pub use relocate::Walk;
pub use removed::Removed;
pub use replay::{Effect, Replayed};
pub use schedule::Counts;
pub use settings::{Limit, Settings};
pub use tally::Tally;
pub use time::{Millis, Time};
pub use upkeep::{Forget, ForgetGroups, Forgotten, ForgottenGroups};

/// A delay queue.
#[derive(Clone)]
pub struct Queue {
    pool: Pool,
    policies: terms::Policies,
    rules: interned::Interned<Recurrence>,
    details: Slab<Details>,
    /// Bytes that details own elsewhere.
    details_bytes: usize,
    schedule: Schedule,
    /// Most queues have none.
    groups: Option<Box<groups::Groups>>,
    /// What the log told last, and what has come of it.
    heading: Heading,
    last_lease: Lease,
    last_serial: produce::Serial,
    settings: Settings,
    /// When the next job would leave by the rate, in whose parts it counts.
    tat: Tat,
    /// Until then nothing is handed out.
    paused_until: Time,
    totals: Totals,
    recent: recent::Recent,
    /// Up to here, what time did is in the totals.
    counted: Time,
    news: News,
    removed: removed::Removed,
    /// The timer need not come earlier: see [`Queue::wake_at`].
    wake_at: Time,
}

/// What has become of jobs that somebody may want to hear of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct News {
    pub is_any_ready: bool,
    pub is_any_dead: bool,
    /// Something was met that can't be, and stepped over.
    pub bug: Option<&'static str>,
}

const _: () = assert!(align_of::<Queue>() <= 8, "some servers' allocators align to 8 bytes");

impl Queue {
    /// An empty queue. The seed keys the hash of the ids; it shows in nothing that a queue says or does.
    pub fn new(seed: (u64, u64)) -> Queue {
        Queue {
            pool: Pool::new(seed),
            policies: terms::Policies::new(seed),
            rules: interned::Interned::new(seed),
            details: Slab::default(),
            details_bytes: 0,
            schedule: Schedule::default(),
            groups: None,
            heading: Heading::default(),
            last_lease: Lease::default(),
            last_serial: produce::Serial::default(),
            settings: Settings::default(),
            tat: Tat::default(),
            paused_until: Time::ZERO,
            totals: Totals::default(),
            recent: recent::Recent::default(),
            counted: Time::ZERO,
            news: News::default(),
            removed: removed::Removed::default(),
            wake_at: Time::MAX,
        }
    }

    /// Lets time pass up to `now` for those who look and for the counts, or takes it back when the clock was set
    /// back. What an operation does doesn't depend on it. O(1) while nothing happens.
    #[inline]
    pub fn advance(&mut self, now: Time) {
        self.recent.pass(now, &self.totals);
        // Most often somebody was here in the same millisecond.
        if now != self.schedule.horizon() {
            self.move_on(now);
        }
    }

    fn move_on(&mut self, now: Time) {
        if now < self.schedule.horizon() {
            // What had passed is to come again.
            self.wake_at = Time::ZERO;
        }
        self.leave_shadows_if_set_back(now);
        let passed = self.schedule.advance(now, self.counted);
        self.counted = self.counted.max(now);
        count(&mut self.totals.timed_out, passed.uncounted.timed_out);
        count(&mut self.totals.died, passed.uncounted.died);
        self.news.is_any_ready |= passed.became_ready > 0;
        self.news.is_any_dead |= passed.died > 0;
    }

    /// The time up to which [`Queue::advance`] let time pass last.
    pub fn horizon(&self) -> Time {
        self.schedule.horizon()
    }

    /// What has happened since this was asked last.
    pub fn take_news(&mut self) -> News {
        std::mem::take(&mut self.news)
    }

    /// A branch that can't be taken is: told with the news, where it isn't an end at once.
    #[cold]
    fn bug(&mut self, what: &'static str) {
        self.news.bug = Some(what);
        debug_assert!(false, "{what}");
    }

    /// Puts a job as it is seen, instead of the one that was found under its id; `None` when there is no slot left.
    fn put_job(&mut self, job: &JobView, naming: Naming, found: Found) -> Option<Slot> {
        let is_gone = found.slot.is_some_and(|slot| self.was_kept_until(slot, job.created));
        if let Some(slot) = found.slot {
            self.discard(slot);
        }
        let rare = self.rare_of(job);
        let group = self.join_group(job.group)?;
        let policy = self.policies.take(&Terms { policy: job.policy, group })?;
        let Some(slot) = self.pool.insert(job.id, job.body, job.created, policy, found) else {
            self.policies.release(policy);
            self.leave_group(group);
            return None;
        };
        self.last_lease = self.last_lease.max(job.progress.lease.unwrap_or_default());
        if naming == Naming::ByQueue {
            self.last_serial = self.last_serial.max(produce::Serial::of(job.id).unwrap_or_default());
        }
        self.place(slot, job.time, &job.progress, rare);
        match found.slot {
            Some(_) if !is_gone => count(&mut self.totals.replaced, 1),
            None | Some(_) => count(&mut self.totals.added, 1),
        }
        count(&mut self.totals.purged, usize::from(is_gone));
        Some(slot)
    }

    /// Whether this is a finished job that had been kept long enough by `now`: its id is free.
    fn was_kept_until(&self, slot: Slot, now: Time) -> bool {
        let is_over = |details: &Details| details.progress().stage == Stage::Done && details.time <= now;
        self.details_of(slot).is_some_and(is_over)
    }

    /// Takes a job out of the queue.
    fn remove(&mut self, slot: Slot) -> Option<job::Job> {
        if let Some(schedule) = self.unplace(slot).as_ref().and_then(Details::schedule) {
            self.rules.release(schedule.rule);
        }
        let job = self.pool.remove(slot)?;
        self.heading.mix_removal(&job);
        let number = job.policy().unwrap_or(slab::NO_SLOT);
        let group = self.policies.get(number).map_or(slab::NO_SLOT, |terms| terms.group);
        self.policies.release(number);
        self.leave_group(group);
        Some(job)
    }

    /// Takes a job out of the queue, to be freed: see [`Queue::take_removed`].
    fn discard(&mut self, slot: Slot) -> Option<()> {
        let job = self.remove(slot)?;
        self.removed.add(job);
        Some(())
    }

    /// Puts a job into the lines in which it stands from here on. It has no details.
    fn place(&mut self, slot: Slot, time: Time, progress: &Progress, rare: Option<Box<Rare>>) {
        let schedule = rare.as_ref().and_then(|rare| rare.schedule());
        let comes_back = schedule.and_then(|schedule| self.comes_back(slot, schedule));
        let Some(job) = self.pool.get_mut(slot) else {
            return self.bug("a job that is placed is in the pool");
        };
        let number = job.policy().unwrap_or(slab::NO_SLOT);
        let Some(terms) = self.policies.get(number) else {
            return self.bug("a job's policy is kept as long as the job");
        };
        let (policy, group) = (&terms.policy, terms.group);
        self.heading.mix_place(time, progress);
        if let Some(schedule) = schedule {
            self.heading.mix_round(&schedule.round, job.created());
        }
        // What may be late stands in one more line, and its details know where.
        let is_plain = *progress == Progress::default() && policy.late.is_zero();
        let mut standing = if is_plain {
            Standing::waiting(policy, time)
        } else {
            Standing::of(policy, time, progress, comes_back)
        };
        standing.home = terms.home(standing.home);
        if !is_plain || rare.is_some() {
            let mut details = Details::new(number, time, progress, rare);
            details.stand(&standing);
            self.details_bytes += details.size();
            match self.details.insert(details) {
                Some(number) => job.set_details(number),
                None => self.bug("there are fewer jobs than details may be"),
            }
        }
        self.stand(slot, &standing);
        if group != slab::NO_SLOT {
            self.stand_in_group(group, slot, &standing);
        }
    }

    #[inline]
    fn stand(&mut self, slot: Slot, standing: &Standing) {
        let Standing { home, time, hold, window, expiry, lease_end } = *standing;
        let horizon = self.schedule.horizon();
        let in_lane = home.is_lane();
        self.news.is_any_ready |= in_lane && time <= horizon;
        self.news.is_any_dead |= home == Home::Dead;
        self.wake_at = self.wake_at.min(match home {
            Home::Lane(_) | Home::Grouped(_) | Home::Dying if time > horizon => lease_end.unwrap_or(time),
            Home::Lane(_) | Home::Grouped(_) => Time::MAX,
            Home::Dying | Home::Dead => self.settings.forgets_dead_at(time).unwrap_or(Time::MAX),
            Home::Done => time,
        });
        if self.settings.rate.is_some() && in_lane && time <= horizon {
            self.expect_next_by_rate();
        }
        let arrival = Arrival { time, slot, hold, window };
        self.schedule.insert(home, &arrival, &mut self.pool);
        let aside = |time| Arrival { time, slot, hold: entry::Hold::Waiting, window: Window::ALWAYS };
        if let Some(time) = expiry {
            self.wake_at = self.wake_at.min(time);
            let expiring = &mut Expiring(&self.pool, &mut self.details);
            self.schedule.insert_aside(Aside::Expiring, &aside(time), expiring);
        }
        if let Some(time) = lease_end {
            let leased = &mut Leased(&self.pool, &mut self.details);
            self.schedule.insert_aside(Aside::Leases, &aside(time), leased);
        }
    }

    /// Takes a job out of the lines in which it stands, and from it its details.
    fn unplace(&mut self, slot: Slot) -> Option<Details> {
        self.leave_lines(slot);
        // Most often there are none.
        let number = self.pool.get(slot)?.details()?;
        let details = self.details.remove(number)?;
        let job = self.pool.get_mut(slot)?;
        job.set_policy(details.policy);
        self.details_bytes -= details.size();
        Some(details)
    }

    fn leave_lines(&mut self, slot: Slot) {
        let Some(job) = self.pool.get(slot) else {
            return self.bug("a job that leaves is there");
        };
        let bucket = job.bucket;
        let details = job.details().and_then(|number| self.details.get(number));
        let policy = details.map(|details| details.policy).or(job.policy());
        let Some(policy) = policy.and_then(|number| self.policies.get(number)) else {
            return self.bug("a job's policy is kept as long as the job");
        };
        let group = policy.group;
        let home = policy.home(details.map_or(Home::Lane(policy.priority), |details| details.home(policy)));
        let is_leased = |details: &Details| details.progress().stage == Stage::Leased;
        let was_leased = group != slab::NO_SLOT && details.is_some_and(is_leased);
        let expiry_bucket = details.and_then(Details::expiry_bucket);
        let lease_bucket = details.and_then(Details::lease_bucket);
        let mut was_there = self.schedule.remove(home, slot, bucket, &mut self.pool);
        if let Some(bucket) = expiry_bucket {
            let expiring = &mut Expiring(&self.pool, &mut self.details);
            was_there &= self.schedule.remove_aside(Aside::Expiring, slot, bucket, expiring);
        }
        if let Some(bucket) = lease_bucket {
            let leased = &mut Leased(&self.pool, &mut self.details);
            was_there &= self.schedule.remove_aside(Aside::Leases, slot, bucket, leased);
        }
        if let Some(groups) = self.groups.as_mut().filter(|_| group != slab::NO_SLOT) {
            let stood = groups::Stood { home, was_leased, expires: expiry_bucket.is_some() };
            was_there &= groups.unplace(group, slot, &stood);
        }
        if !was_there {
            self.bug("a job stands in the lines that its details say");
        }
    }

    /// Whether the job is dead as of the horizon; one without details isn't.
    fn is_dead(&self, slot: Slot) -> bool {
        let has_details = self.pool.get(slot).is_some_and(|job| job.details().is_some());
        has_details && self.view(slot).is_some_and(|job| job.state(self.schedule.horizon()) == State::Dead)
    }

    fn details_of(&self, slot: Slot) -> Option<&Details> {
        self.details.get(self.pool.get(slot)?.details()?)
    }

    fn policy_of(&self, slot: Slot) -> Option<&Policy> {
        self.terms_of(slot).map(|terms| &terms.policy)
    }

    fn terms_of(&self, slot: Slot) -> Option<&Terms> {
        let job = self.pool.get(slot)?;
        let number = match job.details() {
            Some(number) => self.details.get(number)?.policy,
            None => job.policy()?,
        };
        self.policies.get(number)
    }

    fn standing(&self, slot: Slot) -> Option<Standing> {
        let policy = self.terms_of(slot)?;
        let mut standing = match self.details_of(slot) {
            Some(details) => {
                let comes_back = details.schedule().and_then(|schedule| self.comes_back(slot, schedule));
                Standing::of(policy, details.time, &details.progress(), comes_back)
            }
            // Of one without details, only the time is in the line alone; and that isn't asked for.
            None => Standing::waiting(policy, Time::ZERO),
        };
        standing.home = policy.home(standing.home);
        Some(standing)
    }

    fn progress(&self, slot: Slot) -> Option<Progress> {
        Some(self.details_of(slot).map(Details::progress).unwrap_or_default())
    }
}

impl Windows for Queue {
    fn window_of(&self, slot: Slot) -> Window {
        let has_details = self.pool.get(slot).is_some_and(|job| job.details().is_some());
        let standing = has_details.then(|| self.standing(slot)).flatten();
        standing.map_or(Window::ALWAYS, |standing| standing.window)
    }
}

#[cfg(test)]
#[allow(clippy::string_slice, reason = "scripts are ASCII")]
mod tests;
