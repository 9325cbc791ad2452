//! Slots of time in a ring: the newest one takes the place of the oldest.

/// What a chart shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Span {
    Hour,
    Day,
    Week,
}

impl Span {
    pub const ALL: [Span; 3] = [Span::Hour, Span::Day, Span::Week];

    pub fn name(self) -> &'static str {
        match self {
            Span::Hour => "hour",
            Span::Day => "day",
            Span::Week => "week",
        }
    }

    pub fn named(name: &str) -> Option<Span> {
        Span::ALL.into_iter().find(|span| span.name() == name)
    }

    pub fn slots(self) -> usize {
        match self {
            Span::Hour => 120,
            Span::Day => 288,
            Span::Week => 168,
        }
    }

    pub fn slot_ms(self) -> u64 {
        match self {
            Span::Hour => 30_000,
            Span::Day => 300_000,
            Span::Week => 3_600_000,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ring<T> {
    span: Span,
    slots: Box<[T]>,
    /// The number of the newest slot since 1970.
    newest: u64,
}

impl<T: Copy + Default> Ring<T> {
    pub fn new(span: Span, now_ms: u64) -> Ring<T> {
        let slots = vec![T::default(); span.slots()].into_boxed_slice();
        Ring { span, slots, newest: now_ms / span.slot_ms() }
    }

    /// A ring as it was kept: slots oldest first, the last one of them with this number. `None` when
    /// they aren't as many as the span has.
    pub fn restored(span: Span, newest: u64, slots: &[T]) -> Option<Ring<T>> {
        let mut ring = Ring::new(span, 0);
        ring.newest = newest;
        if slots.len() != ring.slots.len() {
            return None;
        }
        for (age, slot) in slots.iter().rev().enumerate() {
            let place = ring.place(newest.checked_sub(age as u64)?);
            *ring.slots.get_mut(place)? = *slot;
        }
        Some(ring)
    }

    pub fn newest(&self) -> u64 {
        self.newest
    }

    /// Goes on to this time. Whether that begins a slot.
    ///
    /// A clock that was set back goes on in the newest slot; by more than all slots, and the ring
    /// begins anew.
    pub fn advance(&mut self, now_ms: u64) -> bool {
        let (number, many) = (now_ms / self.span.slot_ms(), self.slots.len() as u64);
        if number.saturating_add(many) < self.newest {
            *self = Ring::new(self.span, now_ms);
            return true;
        }
        let passed = number.saturating_sub(self.newest);
        for step in 0..passed.min(many) {
            let place = self.place(number - step);
            if let Some(slot) = self.slots.get_mut(place) {
                *slot = T::default();
            }
        }
        self.newest = self.newest.max(number);
        passed > 0
    }

    pub fn newest_slot(&mut self) -> Option<&mut T> {
        let place = self.place(self.newest);
        self.slots.get_mut(place)
    }

    /// When the first of `slots` begins.
    pub fn start_ms(&self, now_ms: u64) -> u64 {
        let first = self.shown_newest(now_ms).saturating_sub(self.slots.len() as u64 - 1);
        first.saturating_mul(self.span.slot_ms())
    }

    /// All slots up to this time, oldest first.
    pub fn slots(&self, now_ms: u64) -> impl Iterator<Item = T> + '_ {
        let newest = self.shown_newest(now_ms);
        let many = self.slots.len() as u64;
        (0..many).rev().map(move |age| {
            let number = newest.checked_sub(age);
            let kept =
                number.filter(|number| *number <= self.newest && self.newest - number < many);
            kept.and_then(|number| self.slots.get(self.place(number)).copied()).unwrap_or_default()
        })
    }

    /// The same slots of something else.
    pub fn map<U: Copy + Default>(&self, of: impl Fn(&T) -> U) -> Ring<U> {
        Ring { span: self.span, slots: self.slots.iter().map(of).collect(), newest: self.newest }
    }

    fn shown_newest(&self, now_ms: u64) -> u64 {
        let number = now_ms / self.span.slot_ms();
        let is_ahead = number.saturating_add(self.slots.len() as u64) >= self.newest;
        if is_ahead {
            number.max(self.newest)
        } else {
            number
        }
    }

    fn place(&self, number: u64) -> usize {
        (number % self.slots.len().max(1) as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// In the middle of a slot of each span.
    const START: u64 = 1_700_001_900_000;

    #[test]
    fn time_without_readings_is_a_gap() {
        let mut ring: Ring<u32> = Ring::new(Span::Hour, START);
        *ring.newest_slot().unwrap() = 5;
        assert!(ring.advance(START + 90_000) && !ring.advance(START + 95_000));
        *ring.newest_slot().unwrap() = 7;
        let last = |now, many: usize| ring.slots(now).skip(120 - many).collect::<Vec<_>>();
        assert_eq!(last(START + 90_000, 4), [5, 0, 0, 7]);
        assert_eq!(last(START + 120_000, 2), [7, 0]);
        assert!(ring.slots(START + 3_690_000).all(|slot| slot == 0));
    }

    #[test]
    fn a_clock_set_back_goes_on_in_the_newest_slot_and_far_back_begins_anew() {
        let mut ring: Ring<u32> = Ring::new(Span::Hour, START);
        *ring.newest_slot().unwrap() = 5;
        assert!(!ring.advance(START - 600_000));
        assert_eq!(ring.slots(START).last(), Some(5));
        let back = START - 7_200_000;
        assert!(ring.advance(back));
        assert!(ring.slots(back).all(|slot| slot == 0));
        *ring.newest_slot().unwrap() = 6;
        assert_eq!(ring.slots(back).last(), Some(6));
    }

    #[test]
    fn slots_begin_where_the_ring_says() {
        for span in Span::ALL {
            let ring: Ring<u32> = Ring::new(span, START);
            let end = ring.start_ms(START) + span.slots() as u64 * span.slot_ms();
            assert!(end > START && end - START <= span.slot_ms(), "{span:?}");
        }
    }

    proptest! {
        /// A ring holds what a map by slot number would hold of the newest slots.
        #[test]
        fn a_ring_is_the_end_of_a_map(steps in prop::collection::vec(0u64..9_000_000, 1..60)) {
            for span in Span::ALL {
                let mut ring: Ring<u32> = Ring::new(span, START);
                let mut map = BTreeMap::new();
                let mut now = START;
                for (index, step) in steps.iter().enumerate() {
                    now += step;
                    ring.advance(now);
                    *ring.newest_slot().unwrap() += index as u32 + 1;
                    *map.entry(now / span.slot_ms()).or_insert(0) += index as u32 + 1;
                }
                let first = ring.start_ms(now) / span.slot_ms();
                let expected: Vec<u32> = (first..first + span.slots() as u64)
                    .map(|number| map.get(&number).copied().unwrap_or(0)).collect();
                let slots: Vec<u32> = ring.slots(now).collect();
                prop_assert_eq!(&slots, &expected);
                let restored = Ring::restored(span, ring.newest(), &slots).unwrap();
                prop_assert_eq!(restored, ring);
            }
        }
    }
}
