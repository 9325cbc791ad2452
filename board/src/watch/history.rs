//! What became of a queue during the last hour, in as many bytes for a busy one as for a quiet one.

/// Half a minute each, an hour in all.
pub const SLOTS: usize = 120;
const SLOT_MS: u64 = 30_000;

/// Half a minute: the most jobs that were ready, and how many were handed out. A slot in which
/// nobody looked knows nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Slot {
    pub ready: Option<u32>,
    pub popped: Option<u32>,
}

#[derive(Debug, Clone)]
pub struct History {
    slots: [Slot; SLOTS],
    /// The number of the newest slot since 1970.
    newest: u64,
}

impl History {
    pub fn new(now_ms: u64) -> History {
        History { slots: [Slot::default(); SLOTS], newest: now_ms / SLOT_MS }
    }

    /// Takes down what is to be seen now, and how many were handed out since the last time.
    pub fn note(&mut self, now_ms: u64, ready: u64, popped: u64) {
        self.advance(now_ms / SLOT_MS);
        if let Some(slot) = self.slots.get_mut(place(self.newest)) {
            let ready = u32::try_from(ready).unwrap_or(u32::MAX);
            let popped = u32::try_from(popped).unwrap_or(u32::MAX);
            slot.ready = Some(slot.ready.map_or(ready, |most| most.max(ready)));
            slot.popped = Some(slot.popped.unwrap_or(0).saturating_add(popped));
        }
    }

    /// The last hour, oldest first.
    pub fn slots(&self, now_ms: u64) -> impl Iterator<Item = Slot> + '_ {
        let newest = (now_ms / SLOT_MS).max(self.newest);
        let slot = move |age| {
            let number = newest.checked_sub(age)?;
            let is_kept = number <= self.newest && self.newest - number < SLOTS as u64;
            self.slots.get(place(number)).filter(|_| is_kept).copied()
        };
        (0..SLOTS as u64).rev().map(move |age| slot(age).unwrap_or_default())
    }

    fn advance(&mut self, number: u64) {
        let passed = number.saturating_sub(self.newest).min(SLOTS as u64);
        for step in 0..passed {
            if let Some(slot) = self.slots.get_mut(place(number - step)) {
                *slot = Slot::default();
            }
        }
        self.newest = self.newest.max(number);
    }
}

fn place(number: u64) -> usize {
    (number % SLOTS as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last(history: &History, now_ms: u64, many: usize) -> Vec<(Option<u32>, Option<u32>)> {
        history.slots(now_ms).skip(SLOTS - many).map(|slot| (slot.ready, slot.popped)).collect()
    }

    #[test]
    fn a_slot_keeps_the_most_ready_and_the_sum_of_the_popped() {
        let start = 1_700_000_010_000;
        let mut history = History::new(start);
        history.note(start, 5, 1);
        history.note(start + 2_000, 9, 2);
        history.note(start + 4_000, 3, 0);
        assert_eq!(last(&history, start + 4_000, 2), [(None, None), (Some(9), Some(3))]);
    }

    #[test]
    fn time_without_readings_is_a_gap_and_an_hour_ago_is_forgotten() {
        let start = 1_700_000_010_000;
        let mut history = History::new(start);
        history.note(start, 5, 1);
        history.note(start + 90_000, 7, 4);
        let seen = [(Some(5), Some(1)), (None, None), (None, None), (Some(7), Some(4))];
        assert_eq!(last(&history, start + 90_000, 4), seen);
        assert_eq!(last(&history, start + 120_000, 2), [(Some(7), Some(4)), (None, None)]);
        assert!(last(&history, start + 3_690_000, SLOTS).iter().all(|slot| *slot == (None, None)));

        history.note(start + 100 * 3_600_000, 1, 1);
        let known = last(&history, start + 100 * 3_600_000, SLOTS);
        assert_eq!(known.iter().filter(|slot| slot.0.is_some()).count(), 1);
    }

    #[test]
    fn a_clock_set_back_goes_on_in_the_newest_slot() {
        let start = 1_700_000_010_000;
        let mut history = History::new(start);
        history.note(start, 5, 1);
        history.note(start - 600_000, 6, 1);
        assert_eq!(last(&history, start, 1), [(Some(6), Some(2))]);
    }
}
