//! Charts as bytes, for the file of --history.
//!
//! ```text
//! file    magic (8 bytes)  version (1 byte)  many servers  checksum (CRC-32, 4 bytes)
//! many    number, then so many
//! server  title (number of bytes, bytes)  chart of all queues  many queues
//! queue   name (number of bytes, bytes)  chart
//! chart   active-ms  hour  day  week
//! hour …  the newest slot's number, then runs until there are as many slots as it has, oldest first
//! run     how many slots are alike, then nine figures: 0 when not known, else one more than it is
//! ```
//!
//! Numbers are LEB128. A quiet queue takes a few dozen bytes, and none more than [`CHART_MAX`].

use std::collections::BTreeMap;
use std::fmt;

use super::figures::{Count, Slot, FIGURES};
use super::rings::{Ring, Span};
use super::{Chart, Charts, Slots};
use crate::server::Name;

const MAGIC: &[u8; 8] = b"dqcharts";
const VERSION: u8 = 1;
const CHECKSUM_BYTES: usize = 4;

/// A chart without its queue's name: 576 slots of at most nine figures of five bytes each, and a
/// few bytes more.
#[cfg(test)]
const CHART_MAX: usize = 576 * (2 + 5 * FIGURES) + 64;

/// Why bytes aren't charts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wrong {
    Foreign,
    Version(u8),
    Damaged,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Wrong::Foreign => f.write_str("it isn't a history of dq-board"),
            Wrong::Version(version) => {
                write!(f, "it is of version {version}, and this dq-board reads version {VERSION}")
            }
            Wrong::Damaged => f.write_str("it is damaged"),
        }
    }
}

/// Writes the charts of so many servers, each under its title.
pub struct Encoder(Vec<u8>);

impl Encoder {
    pub fn new(servers: usize) -> Encoder {
        let mut bytes = MAGIC.to_vec();
        bytes.push(VERSION);
        put(&mut bytes, servers as u64);
        Encoder(bytes)
    }

    pub fn put(&mut self, title: &str, charts: &Charts) {
        let bytes = &mut self.0;
        put_bytes(bytes, title.as_bytes());
        put_chart(bytes, &charts.all);
        put(bytes, charts.queues.len() as u64);
        for (name, chart) in &charts.queues {
            put_bytes(bytes, name);
            put_chart(bytes, chart);
        }
    }

    pub fn finish(self) -> Vec<u8> {
        let mut bytes = self.0;
        let checksum = crc32fast::hash(&bytes);
        bytes.extend(checksum.to_le_bytes());
        bytes
    }
}

fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn put_bytes(bytes: &mut Vec<u8>, text: &[u8]) {
    put(bytes, text.len() as u64);
    bytes.extend(text);
}

fn put_chart(bytes: &mut Vec<u8>, chart: &Chart) {
    put(bytes, chart.active_ms);
    for (slots, span) in chart.spans.iter().zip(Span::ALL) {
        let newest = slots.ring.newest();
        put(bytes, newest);
        let all: Vec<Slot> = slots.ring.slots(newest.saturating_mul(span.slot_ms())).collect();
        for run in all.chunk_by(|one, next| one == next) {
            put(bytes, run.len() as u64);
            let figures = run.first().map(|slot| slot.0).unwrap_or_default();
            figures.iter().for_each(|count| {
                put(bytes, count.get().map_or(0, |number| u64::from(number) + 1));
            });
        }
    }
}

/// The charts of servers, by title.
pub fn decode(bytes: &[u8]) -> Result<BTreeMap<String, Charts>, Wrong> {
    if !bytes.starts_with(MAGIC) {
        return Err(Wrong::Foreign);
    }
    let end = bytes.len().checked_sub(CHECKSUM_BYTES).ok_or(Wrong::Damaged)?;
    let (body, checksum) = bytes.split_at_checked(end).ok_or(Wrong::Damaged)?;
    if checksum != crc32fast::hash(body).to_le_bytes() {
        return Err(Wrong::Damaged);
    }
    let body = body.get(MAGIC.len()..).unwrap_or_default();
    match body.split_first() {
        Some((&VERSION, rest)) => Cursor(rest).servers().ok_or(Wrong::Damaged),
        Some((version, _)) => Err(Wrong::Version(*version)),
        None => Err(Wrong::Damaged),
    }
}

/// Nothing is taken for granted of what it reads: it makes no more than the bytes tell one by one.
struct Cursor<'b>(&'b [u8]);

impl Cursor<'_> {
    fn servers(mut self) -> Option<BTreeMap<String, Charts>> {
        let mut servers = BTreeMap::new();
        for _ in 0..self.number()? {
            let title = String::from_utf8(self.bytes()?.to_vec()).ok()?;
            let mut charts = Charts::new(0, 0);
            charts.all = self.chart()?;
            for _ in 0..self.number()? {
                let name = Name::from(self.bytes()?);
                let chart = self.chart()?;
                charts.queues.insert(name, chart);
            }
            servers.insert(title, charts);
        }
        self.0.is_empty().then_some(servers)
    }

    fn chart(&mut self) -> Option<Chart> {
        let active_ms = self.number()?;
        let spans = [self.slots(Span::Hour)?, self.slots(Span::Day)?, self.slots(Span::Week)?];
        Some(Chart { spans, active_ms })
    }

    fn slots(&mut self, span: Span) -> Option<Slots> {
        let newest = self.number()?;
        let mut slots = Vec::with_capacity(span.slots());
        while slots.len() < span.slots() {
            let run = usize::try_from(self.number()?).ok()?;
            if run == 0 || run > span.slots() - slots.len() {
                return None;
            }
            let slot = self.slot()?;
            slots.extend(std::iter::repeat_n(slot, run));
        }
        Some(Slots::of(Ring::restored(span, newest, &slots)?))
    }

    fn slot(&mut self) -> Option<Slot> {
        let mut figures = [Count::default(); FIGURES];
        for count in &mut figures {
            *count = match self.number()? {
                0 => None,
                number => Some(u32::try_from(number - 1).ok()?),
            }
            .into();
        }
        Some(Slot(figures))
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            number |= u64::from(byte & 0x7f).checked_mul(1u64 << shift)?;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn bytes(&mut self) -> Option<&[u8]> {
        let many = usize::try_from(self.number()?).ok()?;
        let (bytes, rest) = self.0.split_at_checked(many)?;
        self.0 = rest;
        Some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::figures::Late;
    use super::super::figures::Step;
    use super::*;
    use crate::server::queue::{Counts, Info};

    const START: u64 = 1_700_000_000_000;

    /// Readings of a few queues: which, how much later, what happened.
    type Reading = (Vec<u8>, u64, [u32; 5], [u16; 9], u32);

    fn charts_of(readings: &[Reading]) -> Charts {
        let mut charts = Charts::new(START, 10);
        let mut now = START;
        for (name, later, sums, late, ready) in readings {
            now += later;
            let (sums, late) = (sums.map(u64::from), late.map(u64::from));
            let step = Step { sums, late, most_late_ms: Some(*later) };
            let counts = Counts { ready: u64::from(*ready), ..Counts::default() };
            let info = Info { counts, oldest_ready_ms: Some(*later), ..Info::default() };
            charts.note(&Name::from(name.as_slice()), now, Some(&step), &info);
            charts.see_all(now, u64::from(*ready), *later);
        }
        charts
    }

    /// What isn't kept: the histogram of the newest slot, and what a place takes.
    fn kept(charts: &Charts) -> Charts {
        let mut kept = Charts { max: 0, seek_at_ms: 0, ..charts.clone() };
        for chart in kept.queues.values_mut().chain([&mut kept.all]) {
            chart.spans.iter_mut().for_each(|slots| {
                (slots.late, slots.most_late_ms) = (Late::default(), Some(0));
            });
        }
        kept
    }

    fn encode(servers: &[(&str, &Charts)]) -> Vec<u8> {
        let mut encoder = Encoder::new(servers.len());
        servers.iter().for_each(|(title, charts)| encoder.put(title, charts));
        encoder.finish()
    }

    fn small() -> Vec<u8> {
        let one = (b"mail".to_vec(), 1_000, [3, 2, 1, 0, 0], [2, 0, 0, 0, 0, 0, 0, 0, 0], 1);
        encode(&[("127.0.0.1:6379", &charts_of(&[one]))])
    }

    #[test]
    fn a_quiet_queue_takes_few_bytes_and_no_queue_more_than_the_most() {
        assert!(small().len() < 300, "{}", small().len());
        let mut worst = Vec::new();
        let readings: Vec<Reading> = (0..576 * 12)
            .map(|n: u32| (b"q".to_vec(), 105_000, [u32::MAX - n; 5], [u16::MAX; 9], u32::MAX - n))
            .collect();
        put_chart(&mut worst, charts_of(&readings).of(b"q").unwrap());
        assert!(worst.len() < CHART_MAX, "{}", worst.len());
    }

    #[test]
    fn a_file_that_is_damaged_at_any_byte_or_cut_anywhere_is_refused() {
        let whole = small();
        assert!(decode(&whole).is_ok());
        for at in 0..whole.len() {
            assert!(decode(&whole[..at]).is_err(), "cut at {at}");
            for bit in 0..8 {
                let mut damaged = whole.clone();
                damaged[at] ^= 1 << bit;
                assert!(decode(&damaged).is_err(), "bit {bit} of {at}");
            }
        }
        assert_eq!(decode(&[&whole[..], b"x"].concat()), Err(Wrong::Damaged));
        assert_eq!(decode(b"REDIS0011"), Err(Wrong::Foreign));
        assert_eq!(decode(b""), Err(Wrong::Foreign));
    }

    #[test]
    fn a_later_version_is_told_from_damage() {
        let mut later = small();
        later.truncate(later.len() - CHECKSUM_BYTES);
        later[MAGIC.len()] = 2;
        let checksum = crc32fast::hash(&later);
        later.extend(checksum.to_le_bytes());
        assert_eq!(decode(&later), Err(Wrong::Version(2)));
    }

    /// Files of one dq-board are read by the next: what is written otherwise needs a new version.
    #[test]
    fn the_format_is_as_it_was() {
        assert_eq!(crc32fast::hash(&small()), 558_161_692, "{:02x?}", small());
    }

    fn readings() -> impl Strategy<Value = Vec<Reading>> {
        let name = prop::collection::vec(any::<u8>(), 0..3);
        prop::collection::vec(
            (name, 0u64..400_000_000, any::<[u32; 5]>(), any::<[u16; 9]>(), any::<u32>()),
            0..30,
        )
    }

    proptest! {
        #[test]
        fn charts_come_back_from_their_bytes(one in readings(), two in readings()) {
            let (one, two) = (charts_of(&one), charts_of(&two));
            let bytes = encode(&[("one", &one), ("two", &two)]);
            let servers = decode(&bytes).unwrap();
            prop_assert_eq!(servers.len(), 2);
            prop_assert_eq!(&servers["one"], &kept(&one));
            prop_assert_eq!(&servers["two"], &kept(&two));
        }

        /// Even with a checksum that fits: no panic, no more memory than the bytes tell of.
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..400), at in 0usize..300) {
            let _ = Cursor(&bytes).servers();
            let mut mixed = small();
            let at = at.clamp(MAGIC.len() + 1, mixed.len());
            mixed.splice(at.., bytes);
            let _ = Cursor(&mixed[MAGIC.len() + 1..]).servers();
        }
    }
}
