//! Reading what a job waits for.

use crate::queue::edges::edge::{Dependent, EndKind};
use crate::queue::edges::table::EdgeSight;
use crate::queue::kernel::queue::Queue;
use crate::queue::value::ids::Id;
use crate::queue::value::state::State;
use crate::queue::value::time::Time;

/// The edges of a job, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EdgeCounts {
    /// To the job: open ones and settled ones.
    pub after: usize,
    /// To the job: open ones.
    pub pending: usize,
    /// From the job: open ones.
    pub before: usize,
    pub is_on_hold: bool,
}

/// An edge to a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EdgeView<'q> {
    pub id: Id<'q>,
    pub state: EdgeState,
    /// The result of a job that is done, or the reason of a dead one.
    pub what: Option<&'q [u8]>,
}

/// The predecessor's state; what it was when the edge was settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EdgeState {
    Is(State),
    Was(EndKind),
}

impl EdgeState {
    pub fn name(self) -> &'static str {
        match self {
            EdgeState::Is(state) => state.name(),
            EdgeState::Was(EndKind::Done) => State::Done.name(),
            EdgeState::Was(EndKind::Dead) => State::Dead.name(),
            EdgeState::Was(EndKind::Gone) => "gone",
        }
    }
}

impl Queue {
    /// `None` if the job has no edges. O(log n).
    pub fn edge_counts(&self, id: Id) -> Option<EdgeCounts> {
        let (edges, slot) = (self.edges.as_ref()?, self.store.find(id)?);
        let of = |dependent: &Dependent| EdgeCounts {
            after: dependent.edges_len(),
            pending: dependent.open() as usize,
            before: 0,
            is_on_hold: dependent.is_on_hold(),
        };
        let counts = edges.dependent(slot).map(of).unwrap_or_default();
        Some(EdgeCounts { before: edges.waiting_for(slot), ..counts })
            .filter(|counts| *counts != EdgeCounts::default())
    }

    /// The edges to a job, in the order in which they were named: at most `at_most`, from this one
    /// on. Also returns where to continue, if there are more. O(1) for each.
    pub fn edges_to(
        &self,
        id: Id,
        from: usize,
        at_most: usize,
        now: Time,
    ) -> (Vec<EdgeView<'_>>, Option<usize>) {
        let slot = self.store.find(id);
        let Some((edges, dependent)) = slot.and_then(|slot| {
            let edges = self.edges.as_ref()?;
            Some((edges, edges.dependent(slot)?))
        }) else {
            return (Vec::new(), None);
        };
        let some = edges.edges_of(dependent).skip(from).take(at_most);
        let views = some.filter_map(|edge| self.edge_view(&edge, now)).collect();
        let next = from.saturating_add(at_most);
        (views, (next < dependent.edges_len()).then_some(next))
    }

    fn edge_view<'q>(&'q self, edge: &EdgeSight<'q>, now: Time) -> Option<EdgeView<'q>> {
        Some(match edge {
            EdgeSight::Waits { from, .. } => {
                let job = self.view(*from)?;
                let state = job.state(now);
                let what = if state == State::Dead { job.reason_at(now) } else { None };
                EdgeView { id: job.id, state: EdgeState::Is(state), what }
            }
            EdgeSight::Pending { ending, .. } | EdgeSight::Settled(ending) => EdgeView {
                id: Id::of(&ending.id),
                state: EdgeState::Was(ending.end),
                what: ending.what.as_deref(),
            },
        })
    }
}
