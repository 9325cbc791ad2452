//! Leases across queues. A queue's leases only grow; but a queue can be deleted and made again, replaced by another, or
//! loaded from a file that is older than the last leases it gave. Its numbers begin with the time, which most often
//! settles it. Where the clock doesn't (it was set back, or more leases were given than there are numbers in a
//! millisecond), what settles it is the highest lease that this process has seen: a queue that may be new at its key is
//! told of it with its first pop.

use std::time::Duration;

use super::value::QueueValue;
use crate::queue::{Lease, Millis, Queue, Time};

/// Clocks of servers differ by less than this. A number that is further ahead was forged (in a RESTORE
/// payload, say): it binds its own queue, not all of them.
const AHEAD_MAX: Millis = Millis::of_secs(366 * 24 * 3_600);

/// After a crash or a failover leases begin with the number of a time that lies so far ahead: a server whose clock was
/// ahead by less has given none above. The margin goes by the clock, which is a later one at the next start: a margin
/// on top of the highest lease that a file knows is the same again when the same file is loaded again.
const MARGIN: Millis = Millis::of_secs(3_600);
const HALF_THE_MARGIN: Millis = Millis::of_secs(1_800);

/// The clock is of no use where it isn't ahead of the highest lease that is known, by what a batch may give at once. So a
/// server that is started again and again goes by the clock, and doesn't run away from it.
const FEW: u64 = 1 << 13;

/// Where the clock is of no use, that many leases above the highest one that is known may have been given and lost: half a
/// second's where a server had just started, and an hour's, as above, where they are further ahead than any server begins;
/// but that no more than up to a day ahead of the clock.
const LOST_MAX: u64 = 1 << 20;
const LOST_MAX_FURTHER_AHEAD: Millis = MARGIN;
const DAY: Millis = Millis::of_secs(24 * 3_600);

/// And two starts with the same file would begin with the same number there but for chance: so many bits, up to half a
/// minute's numbers.
const CHANCE_BITS: u32 = 26;

/// A server that has started within the hour gives leases of the margin; and its clock may be ahead by this besides.
const MARGIN_OF_ANOTHER: Millis = Millis::of_secs(3_660);

/// Whether no server can have given this lease by now. A queue that took it could soon give none.
pub fn is_forged(lease: Lease, wall_clock: Time) -> bool {
    lease > Queue::lease_at(wall_clock.saturating_add(AHEAD_MAX))
}

/// Another number at each start and at each change of the role. It needs to be no secret.
fn chance(wall_clock: Time, uptime: Duration) -> u64 {
    // The golden ratio spreads the lowest bits, in which times differ, over the highest ones.
    let times = wall_clock.unix_ms().rotate_left(32) ^ uptime.subsec_nanos() as u64;
    times.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - CHANCE_BITS)
}

/// So many leases begin within this time.
fn numbers_in(span: Millis) -> u64 {
    Queue::lease_at(Time::ZERO.saturating_add(span)).number()
}

/// Where leases begin when some above the highest known one may have been lost.
fn begin_above(known: Lease, wall_clock: Time, uptime: Duration) -> Lease {
    let ahead = |span| Queue::lease_at(wall_clock.saturating_add(span));
    let above = |number: u64| Lease::new(known.number().saturating_add(number));
    let by_clock = ahead(MARGIN);
    if by_clock >= above(FEW) {
        return by_clock;
    }
    let an_hour = numbers_in(LOST_MAX_FURTHER_AHEAD);
    let is_further_ahead = known > ahead(MARGIN_OF_ANOTHER) && above(an_hour) <= ahead(DAY);
    let lost_max = if is_further_ahead { an_hour } else { LOST_MAX };
    // Not above what binds all queues: nothing would go by it.
    above(lost_max + chance(wall_clock, uptime)).min(ahead(AHEAD_MAX))
}

pub struct Leases {
    highest: Lease,
    /// Goes up whenever a queue may have come to a key at which another one was.
    epoch: u64,
}

impl Leases {
    pub const NONE: Leases = Leases { highest: Lease::new(0), epoch: 1 };

    /// Remembers that this lease exists.
    pub fn saw(&mut self, lease: Lease, now: Time) {
        if lease > self.highest {
            if !is_forged(lease, now) {
                self.highest = lease;
            }
        } else if is_forged(self.highest, now) {
            // The clock was years ahead, and was set back: what was given then is above all that will be given for years.
            self.highest = Queue::lease_at(now.saturating_add(MARGIN));
            self.keys_changed();
        }
    }

    /// Remembers that this lease exists, of which a payload tells that a client brought. Where it is ahead of the clock, it
    /// may be from before a crash: then so may be others, which were given after it.
    pub fn saw_in_payload(&mut self, lease: Lease, wall_clock: Time, uptime: Duration) {
        let ahead = |span| Queue::lease_at(wall_clock.saturating_add(span));
        let floor = if lease <= ahead(Millis::ZERO) {
            return;
        } else if lease <= ahead(MARGIN_OF_ANOTHER) {
            // As from any server whose clock is ahead, or which has just started. By the clock, and not above this lease: else a
            // queue that is moved to and fro would get further ahead each time. Once in half an hour is enough.
            let is_enough = self.highest >= lease && self.highest >= ahead(HALF_THE_MARGIN);
            if is_enough {
                self.highest
            } else {
                ahead(MARGIN).max(lease)
            }
        } else if lease <= ahead(DAY) && lease > self.highest {
            begin_above(lease, wall_clock, uptime)
        } else {
            self.saw(lease, wall_clock);
            return;
        };
        if floor > self.highest {
            self.highest = floor;
            self.keys_changed();
        }
    }

    /// Queues may have come to other keys.
    pub fn keys_changed(&mut self) {
        self.epoch += 1;
    }

    /// Leases may exist that nobody here has seen: also the very first ones.
    pub fn may_have_lost_some(&mut self, wall_clock: Time, uptime: Duration) {
        #[cfg(feature = "planted-faults")]
        if crate::planted::has(crate::planted::Fault::NoLeaseMargin) {
            return;
        }
        self.highest = self.highest.max(begin_above(self.highest, wall_clock, uptime));
        self.keys_changed();
    }

    /// Up to where leases belong to others, when this queue must be told so before it gives one; zero otherwise.
    pub fn floor_for(&self, value: &QueueValue, now: Time) -> Lease {
        let is_told = value.lease_epoch == self.epoch;
        if is_told || self.highest < Queue::lease_at(now) || is_forged(self.highest, now) {
            return Lease::default();
        }
        self.highest
    }

    /// The queue gives none below from here on.
    pub fn has_told(&self, value: &mut QueueValue) {
        value.lease_epoch = self.epoch;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = match Time::new(1_800_000_000_000) {
        Some(now) => now,
        None => Time::MAX,
    };

    fn after(ms: u64) -> Time {
        NOW.saturating_add(Millis::new(ms).unwrap())
    }

    /// What a server that knows of this lease begins with, started then.
    fn begins_with(known: Lease, wall_clock: Time) -> u64 {
        let mut leases = Leases::NONE;
        leases.saw(known, NOW);
        leases.may_have_lost_some(wall_clock, Duration::from_nanos(wall_clock.unix_ms()));
        leases.highest.number()
    }

    /// Each start gave leases that it lost: the file knows none of them, or none but those of the start before.
    #[test]
    fn starts_with_the_same_file_give_no_number_twice() {
        let mut known = Queue::lease_at(NOW);
        for round in 0..3 {
            let starts = (1..20).map(|start| after(round * 10_000 + start * 200));
            let begins: Vec<u64> = starts.map(|now| begins_with(known, now)).collect();
            assert!(begins.windows(2).all(|pair| pair[1] > pair[0] + 10_000), "{begins:?}");
            known = Lease::new(begins[18] + 100);
        }
    }

    #[test]
    fn nor_when_all_that_were_ever_given_are_lost() {
        let given = Queue::lease_at(after(60_000)).number();
        assert!(begins_with(Lease::default(), NOW) > given, "the clock was a minute ahead before");
    }

    #[test]
    fn nor_when_the_clock_was_an_hour_ahead_before() {
        let known = Queue::lease_at(after(2 * 3_600_000));
        let begins: Vec<u64> = (1..20).map(|start| begins_with(known, after(start * 200))).collect();
        for (at, one) in begins.iter().enumerate() {
            assert!(*one > known.number() + 1_000_000);
            assert!(begins.iter().skip(at + 1).all(|other| one.abs_diff(*other) > 10_000), "{begins:?}");
        }
    }

    /// Queues that are made when it is right again can hand out, and go on above what the server gave by the right clock.
    #[test]
    fn a_clock_that_was_years_ahead_uses_no_leases_up() {
        let mut leases = Leases::NONE;
        let ahead = Lease::new(Lease::MAX.number() - 1);
        let value =
            QueueValue::new(Queue::new((1, 2)), crate::services::sums::Share::default(), Default::default());
        for seen in [Queue::lease_at(NOW), ahead] {
            leases.saw(ahead, Time::MAX);
            assert_eq!(leases.floor_for(&value, NOW), Lease::default());
            leases.saw(seen, NOW);
            assert_eq!(leases.floor_for(&value, NOW), Queue::lease_at(after(3_600_000)));
        }
    }

    #[test]
    fn a_lease_is_forged_from_a_year_and_a_day_on() {
        let last = Queue::lease_at(after(366 * 24 * 3_600_000));
        assert_eq!([0, 1].map(|more| is_forged(Lease::new(last.number() + more), NOW)), [false, true]);
    }

    /// A payload that was dumped before a crash, brought to a server that knows nothing of it, with a clock that was set back.
    #[test]
    fn a_payload_from_before_a_crash_gives_no_number_twice() {
        let dumped = Queue::lease_at(after(2 * 3_600_000));
        let floor_behind = |lease: Lease| {
            let mut leases = Leases::NONE;
            leases.may_have_lost_some(NOW, Duration::ZERO);
            leases.saw_in_payload(lease, NOW, Duration::from_nanos(7));
            let value = QueueValue::new(
                Queue::new((1, 2)),
                crate::services::sums::Share::default(),
                Default::default(),
            );
            leases.floor_for(&value, NOW)
        };
        assert!(floor_behind(dumped).number() > dumped.number() + 1_000_000);
        assert!(floor_behind(dumped) > Queue::lease_at(after(3 * 3_600_000)), "an hour's may have been lost");
        let margin = Queue::lease_at(after(3_600_000));
        let (known, passed) = (Lease::new(margin.number() - 1), Queue::lease_at(NOW));
        assert_eq!((floor_behind(known), floor_behind(passed)), (margin, margin));
        assert_eq!(floor_behind(Lease::new(Lease::MAX.number() - 1)), margin, "it binds its own queue");
    }

    /// Between two servers, each of whose clocks is right but for a second. One has just started.
    #[test]
    fn a_queue_that_is_moved_to_and_fro_does_not_run_away() {
        let mut servers = [Leases::NONE, Leases::NONE];
        servers[0].may_have_lost_some(after(1_000), Duration::ZERO);
        let mut lease = Queue::lease_at(NOW);
        for round in 0..7_200 {
            let clock = after(round * 1_000 + (round + 1) % 2 * 1_000);
            let server = &mut servers[round as usize % 2];
            server.saw_in_payload(lease, clock, Duration::ZERO);
            lease = Lease::new(lease.number().max(server.highest.number()) + 1);
            server.saw(lease, clock);
            assert!(lease < Queue::lease_at(clock.saturating_add(MARGIN_OF_ANOTHER)), "round {round}");
        }
    }

    /// Somebody may bring one of almost a year ahead: that moves no floor back.
    #[test]
    fn a_payload_from_far_ahead_takes_no_floor_away() {
        let (mut leases, mut highest) = (Leases::NONE, Lease::default());
        let value =
            QueueValue::new(Queue::new((1, 2)), crate::services::sums::Share::default(), Default::default());
        for hours in [0, 2, 20, 30, 365 * 24, 366 * 24 - 1, 366 * 24] {
            leases.saw_in_payload(Queue::lease_at(after(hours * 3_600_000)), NOW, Duration::ZERO);
            leases.may_have_lost_some(NOW, Duration::ZERO);
            let floor = leases.floor_for(&value, NOW);
            assert!(floor >= highest && !is_forged(floor, NOW), "{hours} hours ahead");
            highest = floor;
        }
    }

    /// What is left of a margin is no news; but what the payload's server gave later may be above it.
    #[test]
    fn a_payload_below_the_rest_of_a_margin_renews_it() {
        let mut leases = Leases::NONE;
        leases.may_have_lost_some(NOW, Duration::ZERO);
        let clock = after(50 * 60_000);
        leases.saw_in_payload(Queue::lease_at(after(55 * 60_000)), clock, Duration::ZERO);
        assert_eq!(leases.highest, Queue::lease_at(clock.saturating_add(MARGIN)));
        let epoch = leases.epoch;
        leases.saw_in_payload(Queue::lease_at(after(56 * 60_000)), clock, Duration::ZERO);
        assert_eq!(leases.epoch, epoch, "it is whole");
        let clock = after(60 * 60_000);
        leases.saw_in_payload(Queue::lease_at(after(65 * 60_000)), clock, Duration::ZERO);
        assert_eq!(leases.epoch, epoch, "what is left is enough for a while");
        leases.saw_in_payload(Queue::lease_at(after(115 * 60_000)), clock, Duration::ZERO);
        assert_eq!(leases.highest, Queue::lease_at(clock.saturating_add(MARGIN)), "it isn't for this one");
    }

    /// Further ahead of the clock than any margin, and given by this server itself.
    #[test]
    fn a_payload_that_tells_nothing_new_raises_nothing() {
        let mut leases = Leases::NONE;
        let known = Queue::lease_at(after(5 * 3_600_000));
        leases.saw(known, NOW);
        let epoch = leases.epoch;
        leases.saw_in_payload(known, NOW, Duration::ZERO);
        assert_eq!((leases.highest, leases.epoch), (known, epoch));
    }

    /// Half a second's, whatever chance adds, where a batch was given above what a start begins with.
    #[test]
    fn what_was_given_since_a_start_and_lost_is_not_given_again() {
        let begin = Queue::lease_at(after(3_600_000)).number();
        for given in [1, 8_191, 10_000] {
            let known = Lease::new(begin - 8_192 + given);
            let ahead = |ns| begin_above(known, NOW, Duration::from_nanos(ns)).number() - known.number();
            assert!((0..1_000).map(ahead).min().unwrap() >= 1 << 20, "{given}");
        }
        let known = Lease::new(begin - 8_192);
        assert_eq!(begin_above(known, NOW, Duration::ZERO).number(), begin, "the clock is far enough ahead");
    }

    /// A server that crashes every second, whose clock was set back by two hours: up to a day it allows for more than it can
    /// have lost.
    #[test]
    fn nor_one_whose_clock_was_set_back() {
        let mut known = Queue::lease_at(after(2 * 3_600_000));
        for start in 1..=3_600 {
            known = Lease::new(begins_with(known, after(start * 1_000)) + 1_000);
        }
        assert!(known < Queue::lease_at(after(3 * 24 * 3_600_000)));
    }

    /// A server that starts every second goes no further ahead of the clock than the margin and some hours.
    #[test]
    fn a_server_that_is_started_again_and_again_does_not_run_away() {
        let mut known = Queue::lease_at(NOW);
        for start in 1..=3_600 {
            known = Lease::new(begins_with(known, after(start * 1_000)) + 1_000);
        }
        assert!(known < Queue::lease_at(after(24 * 3_600_000)));
    }
}
