//! The last hour of a queue, for the small charts of the list of all queues: a kilobyte each.

use super::charts::{Chart, Count, Ring, Span};

/// Half a minute: the most jobs that were ready, and how many were handed out. A slot in which
/// nobody looked knows nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Slot {
    pub ready: Count,
    pub popped: Count,
}

#[derive(Debug, Clone)]
pub struct History(Ring<Slot>);

impl History {
    pub fn new(now_ms: u64) -> History {
        History(Ring::new(Span::Hour, now_ms))
    }

    /// As a chart that was kept tells.
    pub fn of(chart: &Chart) -> History {
        History(chart.hour(|ready, popped| Slot { ready, popped }))
    }

    /// Takes down what is to be seen now, and how many were handed out since the last time.
    pub fn note(&mut self, now_ms: u64, ready: u64, popped: u64) {
        self.0.advance(now_ms);
        if let Some(slot) = self.0.newest_slot() {
            slot.ready.most(ready);
            slot.popped.add(popped);
        }
    }

    /// The last hour, oldest first.
    pub fn slots(&self, now_ms: u64) -> impl Iterator<Item = Slot> + '_ {
        self.0.slots(now_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_keeps_the_most_ready_and_the_sum_of_the_popped() {
        let start = 1_700_000_010_000;
        let mut history = History::new(start);
        history.note(start, 5, 1);
        history.note(start + 2_000, 9, 2);
        history.note(start + 4_000, 3, 0);
        let slots: Vec<_> = history.slots(start + 4_000).collect();
        let known = |slot: &Slot| (slot.ready.get(), slot.popped.get());
        assert_eq!(slots.last().map(known), Some((Some(9), Some(3))));
        assert!(slots.iter().rev().skip(1).all(|slot| known(slot) == (None, None)));
    }
}
