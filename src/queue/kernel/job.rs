//! A job: the types that the core and its callers share, and the 32 bytes in which a job is stored.

use crate::queue::lines::buckets::BucketNumber;
use crate::queue::memory::defrag::Defragmenter;
use crate::queue::memory::index::{Link, Linked};
use crate::queue::memory::slab::{Slot, SLOT_MAX};
use crate::queue::value::fate::{Fate, Why};
use crate::queue::value::ids::Id;
use crate::queue::value::policy::{Policy, PolicyNumber};
use crate::queue::value::recurrence::{RunState, ScheduleView};
use crate::queue::value::state::Progress;
use crate::queue::value::state::Stage;
use crate::queue::value::state::State;
use crate::queue::value::tally::Tally;
use crate::queue::value::time::Time;

/// A job with everything stored about it. What it says at a time is computed by its methods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobView<'a> {
    pub id: Id<'a>,
    pub body: &'a [u8],
    /// By stage: the due time, the end of the lease, the time of death, or until when a finished
    /// job is kept.
    pub time: Time,
    pub created: Time,
    pub policy: Policy,
    pub progress: Progress,
    /// The reason that a worker gave when it released or buried the job last.
    pub reason: Option<&'a [u8]>,
    /// What time did since the job got its place is not included: see [`JobView::tally_at`].
    pub tally: Tally,
    /// The group in which the job takes turns, if any.
    pub group: Option<Id<'a>>,
    /// Its schedule, if it has one.
    pub schedule: Option<ScheduleView<'a>>,
    /// What its worker noted last.
    pub note: Option<&'a [u8]>,
    /// What its worker finished it with; of a job with a schedule, the last run's.
    pub result: Option<&'a [u8]>,
}

impl<'a> JobView<'a> {
    /// A new job with nothing else said of it.
    pub(in crate::queue) fn plain(
        id: Id<'a>,
        body: &'a [u8],
        due: Time,
        created: Time,
        policy: Policy,
    ) -> JobView<'a> {
        JobView {
            id,
            body,
            time: due,
            created,
            policy,
            progress: Progress::default(),
            reason: None,
            tally: Tally::default(),
            group: None,
            schedule: None,
            note: None,
            result: None,
        }
    }

    /// What becomes of it, if no command changes it.
    fn fate(&self) -> Fate {
        let next_run = self.next_run().map(|(due, _)| due);
        Fate::of(&self.policy, self.time, &self.progress, next_run)
    }

    /// Its state at `now`.
    pub fn state(&self, now: Time) -> State {
        self.fate().state(now)
    }

    /// From when on the job may be delivered, if no command changes it before.
    pub fn due(&self) -> Time {
        self.fate().due
    }

    /// What came of the job by `now`: its state; and the result of a done job, the reason of a dead
    /// one.
    pub fn outcome_at(&self, now: Time) -> (State, Option<&'a [u8]>) {
        let state = self.state(now);
        let what = match state {
            State::Done => self.result,
            State::Dead => self.reason_at(now),
            State::Delayed | State::Ready | State::Reserved | State::Held => None,
        };
        (state, what)
    }

    /// When the job dies, or died, if no command changes it before.
    pub fn dies_at(&self) -> Option<Time> {
        self.fate().death.map(|(time, _)| time)
    }

    /// When the job dies, or died, if no command changes it before; and the reason.
    fn death(&self) -> Option<(Time, Option<&'a [u8]>)> {
        let (time, why) = self.fate().death?;
        let reason = match why {
            Why::Expired => Some(REASON_EXPIRED),
            Why::Late => Some(REASON_LATE),
            Why::LastAttempt => Some(REASON_NO_ATTEMPTS_LEFT),
            Why::Command if self.is_at_its_last_attempt() => {
                self.reason.or(Some(REASON_NO_ATTEMPTS_LEFT))
            }
            Why::Command => self.reason,
        };
        Some((time, reason))
    }

    /// Since when the job is ready, dead or done at `now`. The time of ADD in the other states.
    pub fn since(&self, now: Time) -> Time {
        let fate = self.fate();
        match fate.state(now) {
            State::Ready => fate.due,
            State::Done => self.time.saturating_sub(self.policy.keep),
            State::Dead => fate.death.map_or(self.time, |(time, _)| time),
            State::Delayed | State::Reserved | State::Held => self.created,
        }
    }

    /// If the lease of the last attempt runs out: when a job with a schedule is ready again, and
    /// its schedule state then. (A job without one is dead.)
    fn next_run(&self) -> Option<(Time, RunState)> {
        let schedule = self.schedule.filter(|_| self.progress.stage == Stage::Leased)?;
        let run_state = schedule.run_state.failed().filter(|_| self.is_at_its_last_attempt())?;
        let ready = schedule.rule.ready_at(self.id, run_state.occurrence);
        Some((ready.max(self.time), run_state))
    }

    /// Whether a schedule brings the job back after its last attempt has timed out.
    pub fn outlives_its_attempts(&self) -> bool {
        self.next_run().is_some()
    }

    /// Its schedule state at `now`. If the last attempt has timed out, the state for the next
    /// occurrence.
    pub fn run_state_at(&self, now: Time) -> Option<RunState> {
        let has_failed = self.time <= now;
        let next_run = self.next_run().filter(|_| has_failed);
        next_run
            .map(|(_, run_state)| run_state)
            .or(self.schedule.map(|schedule| schedule.run_state))
    }

    /// Whether its last attempt has timed out and it waits for its next occurrence.
    pub fn has_come_back(&self, now: Time) -> bool {
        self.time <= now && self.next_run().is_some()
    }

    /// Its counts at `now`, with a lease that has run out by then.
    pub fn tally_at(&self, now: Time) -> Tally {
        let end = self.progress.expires_at.map_or(self.time, |expiry| expiry.min(self.time));
        let has_timed_out = self.progress.stage == Stage::Leased && end <= now;
        if has_timed_out {
            self.tally.with_time_out()
        } else {
            self.tally
        }
    }

    pub fn is_at_its_last_attempt(&self) -> bool {
        self.policy.attempts.end_with(self.progress.attempt)
    }

    /// Why the job is dead at `now`. For a job that isn't dead: why it was released last.
    pub fn reason_at(&self, now: Time) -> Option<&'a [u8]> {
        match (self.state(now), self.death()) {
            (State::Dead, Some((_, reason))) => reason,
            _ if self.has_come_back(now) => Some(REASON_NO_ATTEMPTS_LEFT),
            _ => self.reason,
        }
    }

    /// How far its run is. A run whose last attempt has timed out is over where another is to come.
    pub fn note_at(&self, now: Time) -> Option<&'a [u8]> {
        self.note.filter(|_| !self.has_come_back(now))
    }

    /// The same job with its state at `now` as its stage, so that another policy or other limits no
    /// longer change that state. A lease that has run out is dropped.
    pub(in crate::queue) fn resolved_at(self, now: Time) -> JobView<'a> {
        let Progress { stage, attempt, expires_at, .. } = self.progress;
        let is_leased = match stage {
            Stage::Dead | Stage::Done => return self,
            Stage::Waiting | Stage::Held => false,
            Stage::Leased => true,
        };
        if let Some((time, reason)) = self.death().filter(|(time, _)| *time <= now) {
            let progress = Progress { stage: Stage::Dead, attempt, ..Progress::default() };
            return JobView { time, progress, reason, tally: self.tally_at(now), ..self };
        }
        if !is_leased || self.time > now {
            return self;
        }
        let attempt = if self.has_come_back(now) { 0 } else { attempt };
        let run_state = self.run_state_at(now);
        JobView {
            time: self.due(),
            progress: Progress { attempt, expires_at, ..Progress::default() },
            reason: self.reason_at(now),
            tally: self.tally_at(now),
            schedule: self
                .schedule
                .zip(run_state)
                .map(|(schedule, run_state)| ScheduleView { run_state, ..schedule }),
            note: self.note_at(now),
            ..self
        }
    }
}

/// The reasons of a death for which no worker gave one.
pub const REASON_BURIED: &[u8] = b"buried";
pub const REASON_EXPIRED: &[u8] = b"its time to live is over";
pub const REASON_LATE: &[u8] = b"late";
pub const REASON_NO_ATTEMPTS_LEFT: &[u8] = b"no attempts left";

/// A job as stored, in 32 bytes. Its time is in its bucket, next to the times it is compared with.
#[derive(Clone)]
pub(in crate::queue) struct Job {
    /// The stamp, the id and the body in one allocation. The stamp rarely changes its size class.
    bytes: Box<[u8]>,
    /// By the id.
    link: Link,
    pub bucket: BucketNumber,
    more: More,
}

impl Linked for Job {
    fn link(&self) -> &Link {
        &self.link
    }

    fn link_mut(&mut self) -> &mut Link {
        &mut self.link
    }
}

/// The number of the job's details, which name its policy; or, of a job without, that of its
/// policy.
#[derive(Clone, Copy)]
struct More(u32);

/// A bit that no slot uses.
const HAS_DETAILS: u32 = SLOT_MAX + 1;

/// When the job was created (48 bits), and the length of its id.
#[derive(Clone, Copy)]
struct Stamp(u64);

const STAMP_BYTES: usize = size_of::<u64>();
const ID_LEN_SHIFT: u32 = 48;

impl Stamp {
    fn new(created: Time, id: Id) -> Stamp {
        Stamp(created.unix_ms() | (id.bytes().len() as u64) << ID_LEN_SHIFT)
    }

    fn created(self) -> Time {
        Time::new(self.0 & Time::MAX.unix_ms()).unwrap_or_default()
    }

    fn id_len(self) -> usize {
        (self.0 >> ID_LEN_SHIFT) as usize
    }
}

impl Job {
    pub fn new(id: Id, body: &[u8], created: Time, policy: PolicyNumber, link: Link) -> Job {
        Job { bytes: Job::packed(id, body, created), link, bucket: 0, more: More(policy) }
    }

    /// Bytes outside the struct of a job with these.
    pub fn size_of(id: Id, body: &[u8]) -> usize {
        STAMP_BYTES + id.bytes().len() + body.len()
    }

    fn packed(id: Id, body: &[u8], created: Time) -> Box<[u8]> {
        let mut bytes = Vec::with_capacity(Job::size_of(id, body));
        bytes.extend_from_slice(&Stamp::new(created, id).0.to_le_bytes());
        bytes.extend_from_slice(id.bytes());
        bytes.extend_from_slice(body);
        bytes.into_boxed_slice()
    }

    /// The same job with another body.
    pub fn with_body(&self, body: &[u8]) -> Job {
        let (id, _) = self.id_and_body();
        let created = self.created();
        let Job { link, bucket, more, .. } = *self;
        Job { bytes: Job::packed(id, body, created), link, bucket, more }
    }

    fn parts(&self) -> (Stamp, &[u8]) {
        // A job always has a stamp.
        let (stamp, rest) =
            self.bytes.split_first_chunk::<STAMP_BYTES>().unwrap_or((&[0; STAMP_BYTES], &[]));
        (Stamp(u64::from_le_bytes(*stamp)), rest)
    }

    pub fn id_and_body(&self) -> (Id<'_>, &[u8]) {
        let (stamp, rest) = self.parts();
        let (id, body) = rest.split_at_checked(stamp.id_len()).unwrap_or_default();
        (Id::of(id), body)
    }

    /// The length of the body, at most `u32::MAX`.
    pub fn body_bytes(&self) -> u32 {
        let (stamp, rest) = self.parts();
        u32::try_from(rest.len().saturating_sub(stamp.id_len())).unwrap_or(u32::MAX)
    }

    pub fn created(&self) -> Time {
        self.parts().0.created()
    }

    pub fn details(&self) -> Option<Slot> {
        (self.more.0 & HAS_DETAILS != 0).then_some(self.more.0 & SLOT_MAX)
    }

    /// The policy of a job without details.
    pub fn policy(&self) -> Option<PolicyNumber> {
        (self.more.0 & HAS_DETAILS == 0).then_some(self.more.0)
    }

    pub fn set_details(&mut self, number: Slot) {
        self.more = More(number | HAS_DETAILS);
    }

    pub fn set_policy(&mut self, number: PolicyNumber) {
        self.more = More(number);
    }

    /// Bytes outside this struct.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    pub fn defrag(&mut self, defragmenter: &mut impl Defragmenter) {
        defragmenter.bytes(&mut self.bytes);
    }
}

const _: () = assert!(size_of::<Job>() == 32, "bytes per job are a feature");

#[cfg(test)]
mod tests;
