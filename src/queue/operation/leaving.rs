//! Which job leaves next: what a sink has to know before it takes one.

use crate::queue::kernel::queue::Queue;
use crate::queue::lines::lanes::LaneCursor;
use crate::queue::value::ids::Id;
use crate::queue::value::sink::Sink;
use crate::queue::value::state::State;
use crate::queue::value::time::Time;

/// A job that may leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextToLeave<'q> {
    pub id: Id<'q>,
    pub body: &'q [u8],
    /// Of a job with a schedule, the time for which this run is called.
    pub due: Time,
    pub group: Option<Id<'q>>,
}

impl Queue {
    /// Where jobs go that no client waits for.
    pub fn sink(&self) -> Option<&Sink> {
        self.limits.sink()
    }

    /// Whether there may be something for the sink, as of the last [`Queue::advance`]. O(1).
    pub fn has_work_for_sink(&self) -> bool {
        self.sink().is_some() && self.counts().of(State::Ready) > 0
    }

    /// The timer must look at this queue by `time`.
    pub fn wake_by(&mut self, time: Time) {
        self.ledger.wake_by(time);
    }

    /// The job that a NOACK pop at `now` delivers first, after a [`PassOver`] that came to
    /// nothing. O(log n).
    ///
    /// [`PassOver`]: crate::queue::PassOver
    pub fn next_to_leave(&self, now: Time) -> Option<NextToLeave<'_>> {
        if !self.lets_leave(now) {
            return None;
        }
        let slot = self.first_to_leave(now, &mut LaneCursor::default())?.slot;
        let job = self.view(slot)?;
        let due = match job.schedule {
            Some(_) => job.run_state_at(now)?.occurrence,
            None => job.due(),
        };
        Some(NextToLeave { id: job.id, body: job.body, due, group: job.group })
    }

    /// Whether no pause and no limit of the queue holds back a job that needs no lease.
    pub(in crate::queue) fn lets_leave(&self, now: Time) -> bool {
        !self.limits.is_paused(now)
            && self.limits.may_leave_by_rate(now).is_none_or(|jobs| jobs > 0)
            && self.ledger.next_lease(now).is_some()
    }
}
