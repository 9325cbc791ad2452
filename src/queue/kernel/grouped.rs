//! What a queue does with its groups: adds jobs to them, asks which group has its turn, and forgets
//! groups without jobs.

use crate::queue::groups::group::{GroupNumber, Groups};
use crate::queue::groups::turns::NextJob;
use crate::queue::lines::lanes::LaneCursor;
use crate::queue::lines::placement::Placement;
use crate::queue::memory::impossible::impossible;
use crate::queue::memory::slab::Slot;
use crate::queue::value::ids::Id;
use crate::queue::value::settings::Settings;
use crate::queue::value::time::{Millis, Time};

use super::limits::Limits;
use super::queue::Queue;

/// The timer looks at groups without jobs once the last change is this long ago. Before that, each
/// change looks at some of them.
const QUIET: Millis = Millis::of_ms(1_000);

impl Queue {
    /// The job to deliver at `now`, if one is ready and no limit holds it back. Searches from the
    /// lane `from` on, and leaves the lane where the search ended there.
    #[inline(always)]
    pub(in crate::queue) fn first_to_leave(
        &self,
        now: Time,
        from: &mut LaneCursor,
    ) -> Option<NextJob> {
        match &self.groups {
            None => {
                let (due, slot) = self.lanes.first_ready(now, from, &self.store)?;
                Some(NextJob::without_group(due, slot))
            }
            Some(groups) => groups.first_ready(now, from, &self.lanes, &self.store),
        }
    }

    /// Counts the turn of the group whose job is delivered.
    #[inline]
    pub(in crate::queue) fn take_turn(&mut self, next: &NextJob, now: Time) {
        if next.is_counted() {
            self.count_turn(next, now);
        }
    }

    #[inline(never)]
    fn count_turn(&mut self, next: &NextJob, now: Time) {
        let Some(groups) = &mut self.groups else {
            return impossible("a turn is of a queue with groups");
        };
        if let Some((serial, tat)) = groups.take(next, now, self.limits.settings()) {
            let departures =
                self.limits.settings().group_rate.map_or((0, 0), |rate| rate.parts_of(tat));
            self.ledger.checksum_mut().turn(serial, departures);
        }
    }

    /// Whether GROUPCONCURRENCY allows that the expired lease of this job lives again.
    pub(in crate::queue) fn has_place_in_group(&self, slot: Slot, now: Time) -> bool {
        let (Some(groups), Some(number)) = (&self.groups, self.group_number_of(slot)) else {
            return true;
        };
        groups.has_free_place(number, now, self.limits.settings())
    }

    /// Whether no limit holds back the group of this job. True for a job without a group.
    pub(in crate::queue) fn may_leave_its_group(&self, slot: Slot, now: Time) -> bool {
        let (Some(groups), Some(number)) = (&self.groups, self.group_number_of(slot)) else {
            return true;
        };
        groups.is_open(number, now, self.limits.settings())
    }

    /// A delivery of this job by its id. It doesn't use the turn of its group, but GROUPRATE counts
    /// it.
    pub(in crate::queue) fn out_of_turn(&self, due: Time, slot: Slot) -> NextJob {
        NextJob::by_id(due, slot, self.group_number_of(slot))
    }

    /// The queue's groups, created if it has none yet.
    pub(in crate::queue) fn groups_or_new(&mut self) -> (&mut Groups, &Limits) {
        let Queue { groups, store, limits, .. } = self;
        let new = || Box::new(Groups::new(store.pool().hash_state()));
        (groups.get_or_insert_with(new), limits)
    }

    /// The number of a job's group, if it has one.
    pub(in crate::queue) fn group_number_of(&self, slot: Slot) -> Option<GroupNumber> {
        self.store.terms_of(slot)?.group
    }

    /// A job of this group, if of any, is gone.
    #[inline]
    pub(in crate::queue) fn leave_group(&mut self, number: Option<GroupNumber>) {
        if let Some(number) = number {
            self.leave(number);
        }
    }

    #[inline(never)]
    fn leave(&mut self, number: GroupNumber) {
        let Some(groups) = &mut self.groups else {
            return impossible("a job's group was not found");
        };
        let opens = groups.reindex_stale(self.limits.settings());
        groups.leave(number);
        if let Some(opens) = opens {
            self.wake_for_group(opens);
        }
    }

    /// Puts a job into the lines of its group.
    #[inline(never)]
    pub(in crate::queue) fn enter_group_lines(
        &mut self,
        number: GroupNumber,
        slot: Slot,
        placement: &Placement,
    ) {
        let now = self.ledger.clock();
        let Some(groups) = &mut self.groups else {
            return impossible("a job's group was not found");
        };
        if groups.place(number, slot, placement, now).is_none() {
            return impossible("a job could not be put into its group");
        }
        if let Some(opens) = groups.reindex(number, self.limits.settings()) {
            self.wake_for_group(opens);
        }
    }

    /// Called before an operation or a read at `now`.
    #[inline]
    pub(in crate::queue) fn reindex_if_clock_went_back(&mut self, now: Time) {
        if let Some(groups) = &mut self.groups {
            groups.reindex_if_clock_went_back(now, self.limits.settings());
        }
    }

    /// A group may deliver a job at `opens`: the timer must wake by then.
    pub(in crate::queue) fn wake_for_group(&mut self, opens: Time) {
        if opens > self.lanes.horizon() {
            self.ledger.wake_by(opens);
        }
    }

    /// The first time after the horizon at which another group may deliver a job.
    pub(in crate::queue) fn group_opens(&self) -> Option<Time> {
        self.groups.as_ref()?.opens_after(self.lanes.horizon())
    }

    /// Whether the group may be paused: see [`PAUSED_GROUPS_MAX`](crate::queue::PAUSED_GROUPS_MAX).
    pub(in crate::queue) fn may_pause_group(&self, name: Id, now: Time) -> bool {
        self.groups.as_ref().is_none_or(|groups| groups.may_be_paused(name, now))
    }

    pub(in crate::queue) fn is_group_paused(&self, name: Id) -> bool {
        self.groups.as_ref().is_some_and(|groups| groups.is_paused(name))
    }

    pub(in crate::queue) fn pause_group(&mut self, name: Id, until: Time) {
        let (groups, limits) = self.groups_or_new();
        if let Some(opens) = groups.pause(name, until, limits.settings()) {
            self.wake_for_group(opens);
        }
    }

    /// Applies changed limits of groups; `before` are the old settings.
    pub(in crate::queue) fn limit_groups(&mut self, before: &Settings, now: Time) {
        let limits = |settings: &Settings| (settings.group_concurrency, settings.group_rate);
        let is_same = limits(before) == limits(self.limits.settings());
        if let Some(groups) = self.groups.as_mut().filter(|_| !is_same) {
            groups.change_rate(before.group_rate, self.limits.settings(), now);
        }
    }

    /// Runs after each operation that changed the queue.
    pub(in crate::queue) fn check_idle_groups(&mut self, now: Time) {
        if self.groups.is_some() {
            self.tidy_groups(now);
        }
    }

    /// Whether the clock was set back since the last change, which shortens the waits of groups.
    /// That counts as a change even if the operation changed nothing else.
    #[inline(never)]
    pub(in crate::queue) fn notices_set_back(&mut self) -> bool {
        let is_noticed = self.groups_len() > 0 && self.is_set_back();
        if is_noticed {
            let now = self.ledger.clock();
            self.ledger.checksum_mut().set_back(now);
        }
        is_noticed
    }

    /// Whether the clock was set back since the last change, and groups have a rate.
    fn is_set_back(&self) -> bool {
        self.ledger.clock() < self.ledger.clock_before()
            && self.limits.settings().group_rate.is_some()
    }

    /// When the timer is to forget groups without jobs, or to ask again. The queue must have been
    /// advanced to `now`. O(1) until the queue was quiet for a second; then it looks at a bounded
    /// number of groups.
    pub fn forgets_groups_at(&self, now: Time) -> Option<Time> {
        let groups = self.groups.as_ref().filter(|groups| groups.has_idle())?;
        let quiet = self.ledger.clock().saturating_add(QUIET);
        if now < quiet {
            return Some(quiet);
        }
        groups.forgets_at(self.limits.settings()).map(|end| end.max(quiet))
    }

    /// Forgets groups without jobs. The timer calls it while there are no commands; each command
    /// that changes the queue looks at some of them, too. Returns how many were forgotten. O(log n)
    /// for each of a bounded number.
    pub(in crate::queue) fn forget_groups(&mut self, now: Time) -> usize {
        let Some(groups) = &mut self.groups else {
            return 0;
        };
        let forgotten = groups.forget_by_timer(now, self.limits.settings());
        if forgotten > 0 {
            self.ledger.checksum_mut().forgotten(forgotten);
        }
        forgotten
    }

    #[inline(never)]
    fn tidy_groups(&mut self, now: Time) {
        let is_set_back = self.is_set_back();
        let Some(groups) = &mut self.groups else {
            return;
        };
        if is_set_back {
            groups.set_back(now, self.limits.settings());
            self.ledger.wake_now();
        }
        groups.forget_some(now, self.limits.settings());
        if groups.has_idle() {
            self.ledger.wake_by(now.saturating_add(QUIET));
        }
        if groups.len() == 0 {
            self.groups = None;
        }
    }
}
