//! What happened to a job on its way, for those who look at it. Nothing depends on it.
//!
//! A lease runs out by time alone, so that isn't written when it happens: it is added when the job gets another place, and
//! whoever looks before adds it for himself ([`super::JobView::tally_at`]).

use super::job_record::Cause;

/// How often a job had what happen to it since it was added; each up to [`u16::MAX`], where it stops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// A lease ran out.
    pub timed_out: u16,
    /// A worker gave it back. UNBEGUN doesn't count: then it was as if nobody had had it.
    pub released: u16,
    pub buried: u16,
    pub kicked: u16,
}

/// What becomes of the tally of a job that gets another place.
#[derive(Clone, Copy)]
pub(super) enum Counted {
    /// The cause counts.
    ByCause,
    /// It doesn't.
    No,
    /// It is this one.
    Is(Tally),
}

impl Tally {
    pub(super) fn with_time_out(self) -> Tally {
        Tally { timed_out: self.timed_out.saturating_add(1), ..self }
    }

    pub(super) fn without_time_out(self) -> Tally {
        Tally { timed_out: self.timed_out.saturating_sub(1), ..self }
    }

    pub(super) fn with(self, cause: Cause) -> Tally {
        match cause {
            Cause::Released => Tally { released: self.released.saturating_add(1), ..self },
            Cause::Buried => Tally { buried: self.buried.saturating_add(1), ..self },
            Cause::Kicked => Tally { kicked: self.kicked.saturating_add(1), ..self },
            Cause::Popped | Cause::Touched | Cause::Finished | Cause::Returned => self,
        }
    }
}
