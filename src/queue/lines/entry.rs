//! The entry of a job in a bucket, and its part in the bucket's counts.

use std::ops::{AddAssign, Sub};

use super::window::Window;
use crate::queue::memory::slab::Slot;
use crate::queue::value::time::{Millis, Time};

/// What the job does until the entry's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// It waits.
    Waiting,
    /// A worker has it.
    Leased,
    /// A worker has it until an earlier time, and then it waits.
    LeasedThenWaiting,
}

/// The entry of a job in a bucket, in 12 bytes: the highest bits of the time's upper half hold the
/// kind, whether the job expires, and a span.
///
/// The span says roughly when the job's window opens or closes, so that most searches needn't look
/// at the job. If the window opens before the entry's time, and the job doesn't expire or is leased
/// first, the span is how long before. Otherwise it is how long after the entry's time the window
/// closes. It is rounded up to a [`Span`].
#[derive(Clone, Copy)]
pub struct Entry {
    pub slot: Slot,
    high: u32,
    low: u32,
}

const LEASED_BIT: u32 = 1 << 31;
const THEN_WAITING_BIT: u32 = 1 << 30;
const EXPIRES_BIT: u32 = 1 << 29;
const SPAN_SHIFT: u32 = 16;
const SPAN_BITS: u32 = (1 << Span::BITS) - 1;
const TIME_BITS: u32 = (1 << SPAN_SHIFT) - 1;

const _: () = assert!(
    SPAN_SHIFT + Span::BITS == EXPIRES_BIT.trailing_zeros(),
    "no bit is free, none is taken twice"
);

impl Entry {
    pub fn new(time: Time, slot: Slot, kind: EntryKind, window: Window) -> Entry {
        let kind_bits = match kind {
            EntryKind::Waiting => 0,
            EntryKind::Leased => LEASED_BIT,
            EntryKind::LeasedThenWaiting => THEN_WAITING_BIT,
        };
        let high = (time.unix_ms() >> 32) as u32 | kind_bits;
        let mut entry = Entry { slot, high, low: time.unix_ms() as u32 };
        debug_assert!(
            kind != EntryKind::Leased || window.opens == time,
            "what is leased opens when it is not"
        );
        let opens_at_once = kind == EntryKind::Leased || window.opens == Time::ZERO;
        if window.closes < Time::MAX || !opens_at_once {
            entry.add_window(window);
        }
        entry
    }

    #[cold]
    fn add_window(&mut self, window: Window) {
        if window.closes < Time::MAX {
            self.high |= EXPIRES_BIT;
        }
        let span = if self.knows_closing() {
            window.closes.since(self.time())
        } else if window.opens > Time::ZERO {
            self.time().since(window.opens)
        } else {
            return;
        };
        self.high |= Span::at_least(span).0 << SPAN_SHIFT;
    }

    fn knows_closing(&self) -> bool {
        self.expires() && self.high & THEN_WAITING_BIT == 0
    }

    fn span(&self) -> Millis {
        Span(self.high >> SPAN_SHIFT & SPAN_BITS).length()
    }

    pub fn time(&self) -> Time {
        let high = self.high & TIME_BITS;
        Time::new(u64::from(high) << 32 | u64::from(self.low)).unwrap_or(Time::MAX)
    }

    pub fn expires(&self) -> bool {
        self.high & EXPIRES_BIT != 0
    }

    /// The window doesn't open before this time.
    pub fn opens_from(&self) -> Time {
        match self.kind() {
            EntryKind::Leased => self.time(),
            EntryKind::Waiting if self.expires() => Time::ZERO,
            _ if self.span().is_zero() => Time::ZERO,
            EntryKind::Waiting | EntryKind::LeasedThenWaiting => {
                self.time().saturating_sub(self.span())
            }
        }
    }

    /// The window has closed by this time. [`Time::MAX`] if that isn't known, or if it never
    /// closes.
    pub fn closes_by(&self) -> Time {
        if self.knows_closing() {
            self.time().saturating_add(self.span())
        } else {
            Time::MAX
        }
    }

    /// An upper bound of the window of a waiting entry. If the job expires, the window closes
    /// before [`Time::MAX`].
    pub fn widest(&self) -> Window {
        let at_last = Time::MAX.saturating_sub(Millis::of_ms(1));
        let closes = if self.expires() { self.closes_by().min(at_last) } else { Time::MAX };
        Window { opens: Time::ZERO, closes }
    }

    /// Whether the window may be open at `now`. If not, the job needn't be looked at.
    pub fn may_be_open(&self, now: Time) -> bool {
        Window { opens: self.opens_from(), closes: self.closes_by() }.is_open(now)
    }

    pub fn kind(&self) -> EntryKind {
        match (self.high & LEASED_BIT, self.high & THEN_WAITING_BIT) {
            (0, 0) => EntryKind::Waiting,
            (_, 0) => EntryKind::Leased,
            _ => EntryKind::LeasedThenWaiting,
        }
    }

    pub fn parts(&self) -> (Time, Slot, EntryKind) {
        (self.time(), self.slot, self.kind())
    }

    /// The entry's part in the counts. No entry has both bits.
    pub fn tally(&self) -> JobCounts {
        JobCounts {
            jobs: 1,
            leased: usize::from(self.high & LEASED_BIT != 0),
            leased_then_waiting: usize::from(self.high & THEN_WAITING_BIT != 0),
        }
    }
}

/// A length of time in 13 bits, eight of them significant: rounded up, by less than one part in
/// 128. (The buckets of an HDR histogram: G. Tene, "HdrHistogram", 2012.)
#[derive(Clone, Copy)]
struct Span(u32);

impl Span {
    const BITS: u32 = 13;
    const MANTISSA_BITS: u32 = 7;

    fn at_least(length: Millis) -> Span {
        let length = length.as_u64();
        let exponent = (length >> Span::MANTISSA_BITS).checked_ilog2().map_or(0, |log| log + 1);
        if exponent == 0 {
            return Span(length as u32);
        }
        let shift = exponent - 1;
        let rounded = (length + (1 << shift) - 1) >> shift;
        // A mantissa rounded up to the next power of two becomes the first one of the next
        // exponent.
        Span((exponent << Span::MANTISSA_BITS) + (rounded as u32 - (1 << Span::MANTISSA_BITS)))
    }

    fn length(self) -> Millis {
        let mantissa = u64::from(self.0 & ((1 << Span::MANTISSA_BITS) - 1));
        let length = match self.0 >> Span::MANTISSA_BITS {
            0 => mantissa,
            exponent => (mantissa + (1 << Span::MANTISSA_BITS)) << (exponent - 1),
        };
        Millis::new(length).unwrap_or(Millis::MAX)
    }
}

/// A number of jobs, and how many of them have which kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobCounts {
    pub jobs: usize,
    pub leased: usize,
    pub leased_then_waiting: usize,
}

impl JobCounts {
    pub fn waiting(&self) -> usize {
        self.jobs - self.leased - self.leased_then_waiting
    }
}

impl AddAssign for JobCounts {
    fn add_assign(&mut self, other: JobCounts) {
        self.jobs += other.jobs;
        self.leased += other.leased;
        self.leased_then_waiting += other.leased_then_waiting;
    }
}

impl Sub for JobCounts {
    type Output = JobCounts;

    fn sub(self, other: JobCounts) -> JobCounts {
        JobCounts {
            jobs: self.jobs - other.jobs,
            leased: self.leased - other.leased,
            leased_then_waiting: self.leased_then_waiting - other.leased_then_waiting,
        }
    }
}

pub fn tally_of(entries: &[Entry]) -> JobCounts {
    let mut tally = JobCounts::default();
    entries.iter().for_each(|entry| tally += entry.tally());
    tally
}

#[cfg(test)]
mod tests;
