//! A line beside a list that is gone through each time, from no job to more than a short line has.

use std::collections::BTreeMap;

use super::*;
use crate::queue::lines::window::Window;

fn at(ms: u64) -> Time {
    Time::new(ms).unwrap()
}

/// What the jobs say themselves.
#[derive(Default)]
struct Jobs(BTreeMap<Slot, Window>);

impl Windows for Jobs {
    fn window_of(&self, slot: Slot) -> Window {
        self.0[&slot]
    }
}

struct Pair {
    line: GroupLine,
    places: BucketsBySlot,
    jobs: Jobs,
    /// In the order of the line.
    list: Vec<(Time, Slot)>,
    random: fastrand::Rng,
    slots: Slot,
}

impl Pair {
    fn insert(&mut self) {
        let time = self.random.u64(1_000..1_400);
        let kind = self
            .random
            .choice([EntryKind::Waiting, EntryKind::Leased, EntryKind::LeasedThenWaiting])
            .unwrap();
        let opens = match kind {
            EntryKind::Leased => time,
            EntryKind::Waiting => self.random.choice([0, time - 50]).unwrap(),
            EntryKind::LeasedThenWaiting => time - self.random.u64(0..200),
        };
        let closes = at(time + self.random.u64(1..200));
        let closes = self.random.choice([closes, Time::MAX]).unwrap();
        let window = Window { opens: at(opens), closes };
        let (slot, time) = (self.slots, at(time));
        self.slots += 1;
        self.jobs.0.insert(slot, window);
        let behind = |(other, _): &(Time, Slot)| *other <= time;
        self.list.insert(self.list.partition_point(behind), (time, slot));
        self.line.insert(&NewEntry { time, slot, kind, window }, &mut self.places);
    }

    fn remove(&mut self) {
        if !self.list.is_empty() {
            let at = self.random.usize(..self.list.len());
            let (_, slot) = self.list.remove(at);
            assert!(self.line.remove(slot, &mut self.places));
            assert!(!self.line.remove(slot, &mut self.places));
        }
    }

    fn compare(&self, now: Time) {
        let passed = self.list.partition_point(|(time, _)| *time <= now);
        let (before, after) = self.list.split_at(passed);
        let closes = |slot: &Slot| self.jobs.0[slot].closes;
        let open = before.iter().find(|(_, slot)| closes(slot) == Time::MAX || closes(slot) > now);
        let (jobs, now_ms) = (self.list.len(), now.unix_ms());
        assert_eq!(self.line.first_open(now, &self.jobs), open.copied(), "of {jobs} at {now_ms}");
        assert_eq!(self.line.first_time(), self.list.first().map(|(time, _)| *time));
        assert_eq!(self.line.first_after(now), after.first().map(|(time, _)| *time));
        assert_eq!((self.line.up_to(now), self.line.after(now)), (before.len(), after.len()));
        for behind in [0, 1, 127, 128, 129] {
            let end = self.list.iter().nth_back(behind).map(|(time, _)| *time);
            assert_eq!(self.line.time_from_end(behind), end);
        }
    }
}

#[test]
fn a_line_is_a_sorted_list_however_many_jobs_it_has() {
    for seed in 0..200 {
        let random = fastrand::Rng::with_seed(seed);
        let (line, places, jobs) = (GroupLine::Empty, BucketsBySlot::default(), Jobs::default());
        let mut pair = Pair { line, places, jobs, list: Vec::new(), random, slots: 0 };
        let most = [1, 2, 5, 128, 129, 140][seed as usize % 6];
        for _ in 0..3 {
            while pair.list.len() < most {
                pair.insert();
                if pair.random.u8(..5) == 0 {
                    pair.remove();
                }
            }
            for now in (900..1_700).step_by(23) {
                pair.compare(at(now));
            }
            // And the end of all windows that have one.
            pair.compare(at(100_000));
            let left = pair.random.usize(..=most);
            while pair.list.len() > left {
                pair.remove();
                pair.compare(at(1_300));
            }
        }
    }
}
