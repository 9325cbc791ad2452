//! What charts are drawn from: an hour, a day and a week of queues, and of all queues together.
//!
//! | file | what it is |
//! | --- | --- |
//! | `rings.rs` | slots of time |
//! | `figures.rs` | what a slot holds, and what two readings of a queue tell |
//! | `file.rs` | the charts as bytes |
//!
//! A chart takes the same memory whatever happens in its queue, and there are at most so many: a
//! queue gets one when something happens in it or a reader opens its page. When there is no place,
//! it takes that of the queue in which nothing has happened for longest, and for at least an hour.

mod figures;
mod file;
mod rings;

use std::collections::BTreeMap;

pub use figures::{Count, Figure, Row, Step, Table};
pub use file::{decode, Encoder};
pub use rings::{Ring, Span};

use figures::{quantile_us, Late, Slot};

use crate::server::queue::Info;
use crate::server::Name;

/// A queue in which something happened more recently keeps its place.
const QUIET_MS: u64 = 3_600_000;
/// When no queue has been quiet for so long, none is sought again for a while.
const SEEK_AGAIN_MS: u64 = 60_000;
/// After that all slots of a chart are empty.
const FORGET_MS: u64 = 8 * 86_400_000;

/// An hour, a day and a week.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chart {
    spans: [Slots; 3],
    /// When something last happened, or a reader first looked.
    active_ms: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Slots {
    ring: Ring<Slot>,
    /// Of the newest slot.
    late: Late,
    /// How late the latest of these was at most; `None` where a server doesn't say.
    most_late_ms: Option<u64>,
}

impl Slots {
    fn of(ring: Ring<Slot>) -> Slots {
        Slots { ring, late: Late::default(), most_late_ms: Some(0) }
    }

    fn advance(&mut self, now_ms: u64) {
        if self.ring.advance(now_ms) {
            self.late = Late::default();
            self.most_late_ms = Some(0);
        }
    }

    fn add(&mut self, step: &Step) {
        let Some(slot) = self.ring.newest_slot() else { return };
        // The figures that are sums are the first ones.
        slot.0.iter_mut().zip(step.sums).for_each(|(count, sum)| count.add(sum));
        self.late.iter_mut().zip(step.late).for_each(|(late, more)| *late += more);
        if step.late != Late::default() {
            self.most_late_ms =
                self.most_late_ms.zip(step.most_late_ms).map(|(was, is)| was.max(is));
        }
        for (figure, share) in [(Figure::LateP50, 0.5), (Figure::LateP99, 0.99)] {
            let late = quantile_us(&self.late, share, self.most_late_ms);
            if let (Some(count), Some(us)) = (slot.of(figure), late) {
                *count = Some(u32::try_from(us).unwrap_or(u32::MAX)).into();
            }
        }
    }

    fn see(&mut self, ready: u64, oldest_ready_ms: u64) {
        let Some(slot) = self.ring.newest_slot() else { return };
        for (figure, value) in [(Figure::Ready, ready), (Figure::OldestReady, oldest_ready_ms)] {
            if let Some(count) = slot.of(figure) {
                count.most(value);
            }
        }
    }
}

impl Chart {
    pub fn new(now_ms: u64) -> Chart {
        let slots = |span| Slots::of(Ring::new(span, now_ms));
        Chart { spans: Span::ALL.map(slots), active_ms: now_ms }
    }

    fn add(&mut self, now_ms: u64, step: &Step) {
        for slots in &mut self.spans {
            slots.advance(now_ms);
            slots.add(step);
        }
        if !step.is_quiet() {
            self.active_ms = now_ms;
        }
    }

    fn see(&mut self, now_ms: u64, ready: u64, oldest_ready_ms: u64) {
        for slots in &mut self.spans {
            slots.advance(now_ms);
            slots.see(ready, oldest_ready_ms);
        }
    }

    fn ring(&self, span: Span) -> &Ring<Slot> {
        let [hour, day, week] = &self.spans;
        match span {
            Span::Hour => &hour.ring,
            Span::Day => &day.ring,
            Span::Week => &week.ring,
        }
    }

    pub fn table(&self, span: Span, now_ms: u64) -> Table {
        let ring = self.ring(span);
        let row = |slot: Slot| Figure::ALL.map(|figure| slot.value(figure));
        Table {
            start_ms: ring.start_ms(now_ms),
            slot_ms: span.slot_ms(),
            rows: ring.slots(now_ms).map(row).collect(),
        }
    }

    /// Two figures of the hour.
    pub fn hour<T: Copy + Default>(&self, of: impl Fn(Count, Count) -> T) -> Ring<T> {
        let of = |slot: &Slot| of(slot.get(Figure::Ready), slot.get(Figure::Delivered));
        self.ring(Span::Hour).map(of)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Charts {
    all: Chart,
    queues: BTreeMap<Name, Chart>,
    max: usize,
    seek_at_ms: u64,
}

impl Charts {
    pub fn new(now_ms: u64, max: usize) -> Charts {
        Charts { all: Chart::new(now_ms), queues: BTreeMap::new(), max, seek_at_ms: 0 }
    }

    pub fn all(&self) -> &Chart {
        &self.all
    }

    pub fn of(&self, queue: &[u8]) -> Option<&Chart> {
        self.queues.get(queue)
    }

    /// A reading of a queue, and what has happened since the one before, where that can be told.
    pub fn note(&mut self, queue: &Name, now_ms: u64, step: Option<&Step>, info: &Info) {
        if let Some(step) = step {
            self.all.add(now_ms, step);
        }
        if step.is_some_and(|step| !step.is_quiet()) || info.counts.ready > 0 {
            self.make(queue, now_ms);
        }
        let Some(chart) = self.queues.get_mut(queue) else { return };
        if let Some(step) = step {
            chart.add(now_ms, step);
        }
        chart.see(now_ms, info.counts.ready, info.oldest_ready_ms.unwrap_or(0));
    }

    /// How all queues stand.
    pub fn see_all(&mut self, now_ms: u64, ready: u64, oldest_ready_ms: u64) {
        self.all.see(now_ms, ready, oldest_ready_ms);
    }

    /// Makes a chart, if there is a place for it.
    pub fn make(&mut self, queue: &Name, now_ms: u64) {
        if self.queues.contains_key(queue) {
            return;
        }
        if self.queues.len() >= self.max && !self.make_place(now_ms) {
            return;
        }
        self.queues.insert(queue.clone(), Chart::new(now_ms));
    }

    fn make_place(&mut self, now_ms: u64) -> bool {
        if now_ms < self.seek_at_ms {
            return false;
        }
        let quiet = self.queues.iter().min_by_key(|(_, chart)| chart.active_ms);
        let quiet = quiet.filter(|(_, chart)| chart.active_ms.saturating_add(QUIET_MS) <= now_ms);
        let Some(name) = quiet.map(|(name, _)| name.clone()) else {
            self.seek_at_ms = now_ms.saturating_add(SEEK_AGAIN_MS);
            return false;
        };
        self.queues.remove(&name).is_some()
    }

    /// Forgets what is long over.
    pub fn forget(&mut self, now_ms: u64) {
        self.queues.retain(|_, chart| chart.active_ms.saturating_add(FORGET_MS) > now_ms);
    }

    /// Takes the place of these, as charts that were kept. Of more than there is room for, those in
    /// which something happened last.
    pub fn restore(&mut self, kept: Charts, now_ms: u64) {
        let mut queues: Vec<_> = kept.queues.into_iter().collect();
        queues.sort_by_key(|(_, chart)| std::cmp::Reverse(chart.active_ms));
        queues.truncate(self.max);
        self.queues = queues.into_iter().collect();
        self.all = kept.all;
        self.forget(now_ms);
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.queues.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::queue::Counts;

    const START: u64 = 1_700_000_000_000;
    const HOUR: u64 = 3_600_000;

    fn name(name: &str) -> Name {
        Name::from(name.as_bytes())
    }

    fn step(added: u64) -> Step {
        Step { sums: [added, 0, 0, 0, 0], ..Step::default() }
    }

    fn known(chart: &Chart, span: Span, now_ms: u64, figure: Figure) -> Vec<f64> {
        chart.table(span, now_ms).column(figure).flatten().collect()
    }

    #[test]
    fn an_hour_a_day_and_a_week_hold_the_same_jobs() {
        let mut charts = Charts::new(START, 10);
        let queue = name("mail");
        for minute in 0..180 {
            let info = Info { oldest_ready_ms: Some(minute), ..Info::default() };
            charts.note(&queue, START + minute * 60_000, Some(&step(1)), &info);
        }
        let now = START + 179 * 60_000;
        let chart = charts.of(b"mail").unwrap();
        let sum = |span| known(chart, span, now, Figure::Added).iter().sum::<f64>();
        assert_eq!((sum(Span::Hour), sum(Span::Day), sum(Span::Week)), (60.0, 180.0, 180.0));
        let table = chart.table(Span::Week, now);
        assert_eq!(table.all_in_all(Figure::OldestReady), Some(179.0));
        assert_eq!(table.all_in_all(Figure::Added), Some(180.0));
        assert_eq!(table.all_in_all(Figure::LateP50), None);
        assert_eq!(
            chart.table(Span::Hour, now).column(Figure::Added).filter(Option::is_none).count(),
            60
        );
        // A day later the hour is over, and a week later all is.
        let later = |span, after| known(chart, span, now + after, Figure::Added).len();
        assert_eq!(later(Span::Hour, 24 * HOUR), 0);
        assert!(later(Span::Week, 24 * HOUR) > 0);
        assert_eq!(later(Span::Week, 8 * 24 * HOUR), 0);
    }

    #[test]
    fn lateness_is_of_the_jobs_of_a_slot() {
        let mut charts = Charts::new(START, 10);
        let queue = name("mail");
        let late = |steps: [u64; 3]| {
            let [a, b, c] = steps;
            let late = [a, b, c, 0, 0, 0, 0, 0, 0];
            Step { sums: [0, a + b + c, 0, 0, 0], late, most_late_ms: None }
        };
        charts.note(&queue, START, Some(&late([10, 0, 0])), &Info::default());
        charts.note(&queue, START + 1_000, Some(&late([0, 10, 0])), &Info::default());
        charts.note(&queue, START + 60_000, Some(&late([0, 0, 10])), &Info::default());
        charts.note(&queue, START + 62_000, Some(&late([0, 0, 0])), &Info::default());
        let now = START + 90_000;
        let chart = charts.of(b"mail").unwrap();
        assert_eq!(known(chart, Span::Hour, now, Figure::LateP50), [1.0, 55.0]);
        let p99 = known(chart, Span::Hour, now, Figure::LateP99);
        assert!(p99.iter().zip([9.8, 99.1]).all(|(is, about)| (is - about).abs() < 0.1), "{p99:?}");
    }

    #[test]
    fn a_queue_in_which_something_happens_takes_the_place_of_one_that_is_long_quiet() {
        let mut charts = Charts::new(START, 2);
        let info = Info::default();
        charts.note(&name("idle"), START, Some(&step(0)), &info);
        assert_eq!(charts.len(), 0);
        charts.note(&name("a"), START, Some(&step(1)), &info);
        charts.note(&name("b"), START + HOUR / 2, Some(&step(1)), &info);
        charts.note(&name("c"), START + HOUR - 1, Some(&step(1)), &info);
        assert!(charts.of(b"c").is_none());
        // Not sought again at once.
        charts.note(&name("c"), START + HOUR, Some(&step(1)), &info);
        assert!(charts.of(b"c").is_none());
        charts.note(&name("c"), START + HOUR + SEEK_AGAIN_MS, Some(&step(1)), &info);
        assert!(
            charts.of(b"a").is_none() && charts.of(b"b").is_some() && charts.of(b"c").is_some()
        );
        assert_eq!(
            known(charts.all(), Span::Day, START + 2 * HOUR, Figure::Added).iter().sum::<f64>(),
            5.0
        );
    }

    #[test]
    fn a_queue_that_has_ready_jobs_or_a_reader_has_a_chart() {
        let mut charts = Charts::new(START, 10);
        let info = Info { counts: Counts { ready: 4, ..Counts::default() }, ..Info::default() };
        charts.note(&name("full"), START, None, &info);
        let chart = charts.of(b"full").unwrap();
        assert_eq!(known(chart, Span::Hour, START, Figure::Ready), [4.0]);
        assert!(known(chart, Span::Hour, START, Figure::Added).is_empty(), "nobody knows");
        charts.make(&name("read"), START);
        assert!(charts.of(b"read").is_some());
        charts.forget(START + FORGET_MS);
        assert_eq!(charts.len(), 0);
    }

    #[test]
    fn of_too_many_kept_charts_the_last_active_ones_stay() {
        let mut kept = Charts::new(START, 10);
        for (queue, at) in [("a", 3), ("b", 1), ("c", 2)] {
            kept.note(&name(queue), START + at, Some(&step(1)), &Info::default());
        }
        let mut charts = Charts::new(START, 2);
        charts.restore(kept, START + 10);
        assert!(charts.of(b"a").is_some() && charts.of(b"c").is_some() && charts.len() == 2);
    }
}
