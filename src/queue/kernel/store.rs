//! What is stored for each job: the pool, values that jobs share, and details that few jobs have.

use super::attached::Attachments;
use super::details::{Details, JobSchedule, RareDetails, Residents};
use super::job::{Job, JobView, REASON_NO_ATTEMPTS_LEFT};
use super::pool::{Lookup, Pool};
use super::removed::Removed;
use super::terms::{Policies, Terms};
use crate::queue::groups::group::GroupNumber;
use crate::queue::groups::placement::FormerPlacement;
use crate::queue::lines::buckets::{BucketListener, BucketNumber};
use crate::queue::lines::lanes::{MainLine, SideLine};
use crate::queue::lines::placement::Placement;
use crate::queue::lines::window::{Window, Windows};
use crate::queue::memory::defrag::Defragmenter;
use crate::queue::memory::impossible::impossible;
use crate::queue::memory::interned::Interned;
use crate::queue::memory::slab::{Slab, Slot};
use crate::queue::value::fate::Fate;
use crate::queue::value::ids::{Id, Lease};
use crate::queue::value::policy::Policy;
use crate::queue::value::recurrence::{Recurrence, RunState, ScheduleView};
use crate::queue::value::state::{Progress, Stage};
use crate::queue::value::time::{Millis, Time};

/// Every operation is O(1).
#[derive(Clone)]
pub(in crate::queue) struct Store {
    pool: Pool,
    policies: Policies,
    rules: Interned<Recurrence>,
    details: Slab<Details>,
    /// Bytes that details own outside their slab.
    details_bytes: usize,
    attachments: Attachments,
    removed: Removed,
}

/// The lines of a job, and its bucket in each.
pub(in crate::queue) struct LineLocations {
    pub group: Option<GroupNumber>,
    pub bucket: BucketNumber,
    pub expiry_bucket: Option<BucketNumber>,
    pub lease_bucket: Option<BucketNumber>,
    pub former: FormerPlacement,
}

/// A job leased by [`Store::lease_plain`], and its place.
pub(in crate::queue) struct PlainLease {
    pub priority: u8,
    pub bucket: BucketNumber,
    pub progress: Progress,
    pub end: Time,
    pub body_bytes: u32,
}

impl Store {
    pub fn new(seed: (u64, u64)) -> Store {
        Store {
            pool: Pool::new(seed),
            policies: Policies::new(seed),
            rules: Interned::new(seed),
            details: Slab::default(),
            details_bytes: 0,
            attachments: Attachments::default(),
            removed: Removed::default(),
        }
    }

    /// The jobs themselves, to be found and read.
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// Bytes requested from the allocator.
    pub fn memory(&self) -> usize {
        self.pool.memory()
            + self.policies.memory()
            + self.rules.memory()
            + self.details.memory()
            + self.details_bytes
            + self.attachments.memory()
    }

    #[cfg(test)]
    pub fn details_bytes(&self) -> usize {
        self.details_bytes
    }

    /// Makes room in the index for `jobs` more jobs.
    pub fn reserve(&mut self, jobs: usize) {
        self.pool.reserve(jobs);
    }

    /// How many jobs have a schedule.
    pub fn schedules(&self) -> u32 {
        self.rules.users()
    }

    pub fn details_of(&self, slot: Slot) -> Option<&Details> {
        self.details.get(self.pool.get(slot)?.details()?)
    }

    /// The job's terms, and its details if it has any.
    pub fn terms_and_details(&self, slot: Slot) -> Option<(&Terms, Option<&Details>)> {
        let job = self.pool.get(slot)?;
        let (number, details) = match job.details() {
            Some(number) => {
                let details = self.details.get(number)?;
                (details.policy, Some(details))
            }
            None => (job.policy()?, None),
        };
        Some((self.policies.get(number)?, details))
    }

    pub fn terms_of(&self, slot: Slot) -> Option<&Terms> {
        self.terms_and_details(slot).map(|(terms, _)| terms)
    }

    pub fn policy_of(&self, slot: Slot) -> Option<&Policy> {
        self.terms_of(slot).map(|terms| &terms.policy)
    }

    pub fn progress(&self, slot: Slot) -> Progress {
        self.details_of(slot).map(Details::progress).unwrap_or_default()
    }

    /// The lines of the job, computed from its details.
    pub fn placement(&self, slot: Slot) -> Option<Placement> {
        let (terms, details) = self.terms_and_details(slot)?;
        let mut placement = match details {
            Some(details) => {
                let next_run =
                    details.schedule().and_then(|schedule| self.next_run(slot, schedule));
                Placement::of(terms, &Fate::of(terms, details.time, &details.progress(), next_run))
            }
            // Only the line knows the time of a job without details, and no caller needs it here.
            None => Placement::waiting(terms, Time::ZERO),
        };
        placement.main_line = terms.main_line(placement.main_line);
        Some(placement)
    }

    /// The places from which the job must be removed.
    pub fn line_locations(&self, slot: Slot) -> Option<LineLocations> {
        let bucket = self.pool.get(slot)?.bucket;
        let (terms, details) = self.terms_and_details(slot)?;
        let expiry_bucket = details.and_then(Details::expiry_bucket);
        let is_leased = |details: &Details| details.progress().stage == Stage::Leased;
        let former = FormerPlacement {
            main_line: terms.main_line(
                details.map_or(MainLine::Lane(terms.priority), |details| details.main_line(terms)),
            ),
            was_leased: terms.has_group() && details.is_some_and(is_leased),
            expires: expiry_bucket.is_some(),
        };
        let lease_bucket = details.and_then(Details::lease_bucket);
        Some(LineLocations { group: terms.group, bucket, expiry_bucket, lease_bucket, former })
    }

    /// Whether this is a finished job whose KEEP was over by `now`: its id is free.
    pub fn was_kept_until(&self, slot: Slot, now: Time) -> bool {
        let is_over =
            |details: &Details| details.progress().stage == Stage::Done && details.time <= now;
        self.details_of(slot).is_some_and(is_over)
    }

    /// Adds a job that is in no line yet. `None` if the store is full.
    #[inline]
    pub fn insert(
        &mut self,
        id: Id,
        body: &[u8],
        created: Time,
        terms: &Terms,
        found: Lookup,
    ) -> Option<Slot> {
        let number = self.policies.take(terms)?;
        let slot = self.pool.insert(id, body, created, number, found);
        if slot.is_none() {
            self.policies.drop_reference(number);
        }
        slot
    }

    /// Adds many jobs with these terms that are in no line yet, in their order. `None`, with nothing
    /// done, if an id is taken or comes twice, or the store is full.
    pub fn insert_all<'j>(
        &mut self,
        mut jobs: impl ExactSizeIterator<Item = (Id<'j>, &'j [u8])>,
        created: Time,
        terms: &Terms,
    ) -> Option<Vec<Slot>> {
        // A reference of our own, until the jobs have theirs.
        let number = self.policies.take(terms)?;
        let mut slots = Vec::with_capacity(jobs.len());
        let are_free = jobs.all(|(id, body)| {
            let slot = self.pool.insert_unless_taken(id, body, created, number);
            slot.map(|slot| slots.push(slot)).is_some()
        });
        if are_free {
            self.policies.take_again(number, slots.len() as u32);
        } else {
            slots.iter().rev().for_each(|slot| drop(self.pool.remove(*slot)));
        }
        self.policies.drop_reference(number);
        are_free.then_some(slots)
    }

    /// Removes a job that is in no line and has no details. Also returns its group.
    pub fn remove(&mut self, slot: Slot) -> Option<(Job, Option<GroupNumber>)> {
        let job = self.pool.remove(slot)?;
        if let Some(result) = self.attachments.remove(slot) {
            self.removed.add_result(result);
        }
        let number = job.policy()?;
        let group = self.policies.get(number)?.group;
        self.policies.drop_reference(number);
        Some((job, group))
    }

    /// Stores the job's details, if it needs any. Returns its placement and group.
    #[inline]
    pub fn attach(
        &mut self,
        slot: Slot,
        time: Time,
        progress: &Progress,
        extras: Option<Box<RareDetails>>,
    ) -> Option<(Placement, Option<GroupNumber>)> {
        let schedule = extras.as_ref().and_then(|extras| extras.schedule());
        let next_run = schedule.and_then(|schedule| self.next_run(slot, schedule));
        let job = self.pool.get_mut(slot)?;
        let number = job.policy()?;
        let terms = self.policies.get(number)?;
        // A job that may be late is in a second line, and its details know its bucket there.
        let is_plain = *progress == Progress::default() && terms.late.is_zero();
        let mut placement = if is_plain {
            Placement::waiting(terms, time)
        } else {
            Placement::of(terms, &Fate::of(terms, time, progress, next_run))
        };
        placement.main_line = terms.main_line(placement.main_line);
        if !is_plain || extras.is_some() {
            let mut details = Details::new(number, time, progress, extras);
            details.set_placement(&placement);
            self.details_bytes += details.size();
            job.set_details(self.details.insert(details)?);
        }
        Some((placement, terms.group))
    }

    /// Takes the details from a job. Most jobs have none.
    pub fn detach(&mut self, slot: Slot) -> Option<Details> {
        let job = self.pool.get_mut(slot)?;
        let details = self.details.remove(job.details()?)?;
        job.set_policy(details.policy);
        self.details_bytes -= details.size();
        Some(details)
    }

    /// Leases a job that was never delivered, doesn't expire, has no group and will be ready when
    /// its lease runs out. `None`, with nothing done, for any other job.
    #[inline(always)]
    pub fn lease_plain(
        &mut self,
        slot: Slot,
        lease: Lease,
        now: Time,
        ttr: Option<Millis>,
    ) -> Option<PlainLease> {
        let job = self.pool.get_mut(slot)?;
        let number = job.policy()?;
        let terms = self
            .policies
            .get(number)
            .filter(|terms| terms.is_ready_again() && !terms.has_group())?;
        let priority = terms.priority;
        let end = now.saturating_add(ttr.unwrap_or(terms.ttr));
        let progress =
            Progress { stage: Stage::Leased, attempt: 1, lease: Some(lease), expires_at: None };
        let details = self.details.insert(Details::new(number, end, &progress, None))?;
        job.set_details(details);
        Some(PlainLease {
            priority,
            bucket: job.bucket,
            progress,
            end,
            body_bytes: job.body_bytes(),
        })
    }

    /// Takes the lease from a job of [`Store::lease_plain`] that isn't kept once it is finished.
    /// `None`, with nothing done, for any other job.
    #[inline]
    pub fn end_plain_lease(&mut self, slot: Slot) -> Option<(u8, BucketNumber, Option<Lease>)> {
        let job = self.pool.get_mut(slot)?;
        let number = job.details()?;
        let details = self.details.get(number).filter(|details| details.are_plain_lease())?;
        let (policy, lease) = (details.policy, details.progress().lease);
        let terms = self.policies.get(policy)?;
        if terms.has_group() || !terms.keep.is_zero() {
            return None;
        }
        job.set_policy(policy);
        self.details.remove(number);
        Some((terms.priority, job.bucket, lease))
    }

    /// Changes the policy of a job without details.
    pub fn change_policy(
        &mut self,
        slot: Slot,
        change: impl FnOnce(Policy) -> Policy,
    ) -> Option<()> {
        let before = self.pool.get(slot)?.policy()?;
        let terms = *self.policies.get(before)?;
        let policy = change(terms.policy);
        let number = self.policies.take(&Terms { policy, ..terms })?;
        self.pool.get_mut(slot)?.set_policy(number);
        self.policies.drop_reference(before);
        Some(())
    }

    /// The rare details of a job that is being added.
    pub fn extras_of(&mut self, job: &JobView) -> Option<Box<RareDetails>> {
        let recurring = job.schedule.and_then(|schedule| {
            let rule = self.rules.take(schedule.rule)?;
            Some(JobSchedule { rule, run_state: schedule.run_state })
        });
        RareDetails::of(job.reason, job.tally, recurring)
    }

    /// Releases the shared rule of a job with these details, which is gone.
    pub fn drop_rule(&mut self, details: &Details) {
        if let Some(schedule) = details.schedule() {
            self.rules.drop_reference(schedule.rule);
        }
    }

    pub fn scheduled(&self, schedule: &JobSchedule) -> Option<ScheduleView<'_>> {
        Some(ScheduleView { rule: self.rules.get(schedule.rule)?, run_state: schedule.run_state })
    }

    pub fn schedule_of(&self, slot: Slot) -> Option<ScheduleView<'_>> {
        self.scheduled(self.details_of(slot)?.schedule()?)
    }

    /// When the job is ready for its next occurrence, if that is known.
    pub fn next_run(&self, slot: Slot, schedule: &JobSchedule) -> Option<Time> {
        let (rule, next) = (self.rules.get(schedule.rule)?, schedule.run_state.next()?);
        Some(rule.ready_at(self.pool.get(slot)?.id_and_body().0, next))
    }

    /// Sets the schedule state of a job. Returns by how much its count of missed occurrences grew.
    pub fn set_run_state(&mut self, slot: Slot, run_state: RunState) -> u32 {
        let number = self.pool.get(slot).and_then(|job| job.details());
        let Some(details) = number.and_then(|number| self.details.get_mut(number)) else {
            impossible("a job with a schedule has details");
            return 0;
        };
        let before =
            details.schedule().map_or(run_state.missed, |schedule| schedule.run_state.missed);
        details.set_run_state(run_state);
        run_state.missed.saturating_sub(before)
    }

    /// The last attempt has timed out: the attempts are counted from 0 again, and the reason says
    /// why.
    pub fn begin_anew(&mut self, slot: Slot) {
        let number = self.pool.get(slot).and_then(|job| job.details());
        if let Some(details) = number.and_then(|number| self.details.get_mut(number)) {
            self.details_bytes -= details.size();
            details.begin_anew(REASON_NO_ATTEMPTS_LEFT);
            self.details_bytes += details.size();
        }
        self.attachments.set_note(slot, None);
    }

    /// What is attached to jobs.
    pub fn attachments(&self) -> &Attachments {
        &self.attachments
    }

    /// An empty note is none.
    pub fn set_note(&mut self, slot: Slot, note: Option<&[u8]>) {
        self.attachments.set_note(slot, note);
    }

    pub fn set_result(&mut self, slot: Slot, result: Option<&[u8]>) {
        if let Some(before) = self.attachments.set_result(slot, result) {
            self.removed.add_result(before);
        }
    }

    /// Gives a job another body.
    pub fn set_body(&mut self, slot: Slot, body: &[u8]) {
        if let Some(before) = self.pool.set_body(slot, body) {
            self.removed.add(before);
        }
    }

    /// Stores bucket numbers for a side line.
    pub fn residents_of(&mut self, line: SideLine) -> Residents<'_> {
        Residents { line, pool: &self.pool, details: &mut self.details }
    }

    /// The large jobs that were removed last.
    pub fn removed(&self) -> &Removed {
        &self.removed
    }

    pub fn removed_mut(&mut self) -> &mut Removed {
        &mut self.removed
    }

    /// How many parts [`Store::defrag`] has.
    pub const PARTS: u32 = 5;

    /// Hands the memory of a part to a defragmenter: see [`Slab::defrag`].
    pub fn defrag(
        &mut self,
        part: u32,
        from: Slot,
        defragmenter: &mut impl Defragmenter,
    ) -> Option<Slot> {
        match part {
            0 => self.pool.defrag_jobs(from, defragmenter),
            1 => self.pool.defrag_ids(from, defragmenter),
            2 => self
                .details
                .defrag(from, defragmenter, |details, defragmenter| details.defrag(defragmenter)),
            3 => self.policies.defrag(from, defragmenter),
            _ => self.rules.defrag(from, defragmenter),
        }
    }

    pub fn find(&self, id: Id) -> Option<Slot> {
        self.pool.find(id)
    }

    /// The job in a slot.
    pub fn get(&self, slot: Slot) -> Option<&Job> {
        self.pool.get(slot)
    }
}

impl BucketListener for Store {
    fn moved_to(&mut self, slot: Slot, bucket: BucketNumber) {
        self.pool.moved_to(slot, bucket);
    }
}

impl Windows for Store {
    fn window_of(&self, slot: Slot) -> Window {
        let has_details = self.pool.get(slot).is_some_and(|job| job.details().is_some());
        let placement = has_details.then(|| self.placement(slot)).flatten();
        placement.map_or(Window::ALWAYS, |placement| placement.window)
    }
}
