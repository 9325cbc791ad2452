//! The seats beside a list that is gone through each time.

use super::*;

fn at(ms: u64) -> Time {
    Time::new(ms).unwrap()
}

const NEVER: NothingReady =
    NothingReady { span: Interval { since: Time::MAX, until: Time::MAX }, closed: Time::MAX };

/// A group of the list: where it stands, and while nothing of it may leave.
#[derive(Clone, Copy, Debug)]
struct Listed {
    seat: Seat,
    rests: NothingReady,
}

struct Pair {
    seats: Seats,
    list: Vec<Option<Listed>>,
    round: u64,
    random: fastrand::Rng,
}

impl Pair {
    fn seat(&mut self, member: usize) -> Seat {
        let turn = self.random.choice([0, self.round, self.round + 1]).unwrap();
        // Some share a time, and some a serial.
        Seat { opens: at(self.random.u64(0..60)), number: 1 + member as u64 / 2, turn }
    }

    fn rests(&mut self) -> NothingReady {
        let since = self.random.u64(0..60);
        let later = at(since + self.random.u64(0..40));
        let until = self.random.choice([later, Time::MAX]).unwrap();
        let closed = at(self.random.u64(0..120));
        let closed = self.random.choice([closed, Time::MAX]).unwrap();
        self.random
            .choice([NEVER, NothingReady { span: Interval { since: at(since), until }, closed }])
            .unwrap()
    }

    fn step(&mut self) {
        let member = self.random.usize(..self.list.len());
        match (self.list[member], self.random.u8(..10)) {
            (None, ..8) => {
                let (seat, rests) = (self.seat(member), self.rests());
                self.seats.insert(member as Slot, seat, NEVER);
                self.list[member] = Some(Listed { seat, rests });
            }
            (Some(listed), ..4) => {
                assert!(self.seats.remove(member as Slot, &listed.seat));
                assert!(!self.seats.remove(member as Slot, &listed.seat));
                self.list[member] = None;
            }
            (Some(listed), 4..8) => {
                // As when it has had its turn, or another job comes.
                let seat = Seat { turn: self.seat(member).turn, ..listed.seat };
                self.seats.change(member as Slot, &seat, NEVER);
                self.list[member] = Some(Listed { seat, rests: self.rests() });
            }
            (_, 8) => {
                self.round += 1;
                self.seats.begin_round(self.round);
            }
            (_, 9) => self.fill(),
            _ => (),
        }
    }

    /// Some, many or all may leave at another time.
    fn fill(&mut self) {
        let part = self.random.choice([1, 10, 100]).unwrap();
        for member in 0..self.list.len() {
            let opens = at(self.random.u64(0..60));
            if let Some(listed) =
                self.list[member].as_mut().filter(|_| self.random.u8(..100) < part)
            {
                listed.seat.opens = opens;
            }
        }
        let mut order: Vec<(Key, Seat)> = Vec::new();
        for (member, listed) in self.list.iter().enumerate() {
            order.extend(
                listed.map(|it| ((it.seat.opens, it.seat.number, member as Slot), it.seat)),
            );
        }
        order.sort_by_key(|(key, _)| *key);
        self.seats.fill(order.into_iter().map(|((.., member), seat)| (member, seat, NEVER)));
    }

    fn compare(&mut self, now: Time) {
        let mut all: Vec<(Key, Listed)> = Vec::new();
        for (member, listed) in self.list.iter().enumerate() {
            all.extend(listed.map(|it| ((it.seat.opens, it.seat.number, member as Slot), it)));
        }
        all.sort_by_key(|(key, _)| *key);
        let is_open = |(key, it): &&(Key, Listed)| key.0 <= now && !it.rests.holds(now);
        let find = &mut |member: Slot| {
            let rests = self.list[member as usize].unwrap().rests;
            if rests.holds(now) {
                Err(rests)
            } else {
                Ok(member)
            }
        };
        let began = at(self.random.choice([0, 20, 40, 90]).unwrap());
        let is_in_round = |seat: &Seat| seat.turn <= self.round && seat.opens <= began;
        let in_round = all.iter().filter(is_open).find(|(_, it)| is_in_round(&it.seat));
        let met = self.seats.first_in_round(now, (self.round, began), find).map(|met| met.found);
        assert_eq!(met, in_round.map(|((.., member), _)| *member), "in the round {}", self.round);
        let met = self.seats.first(now, find).map(|met| met.found);
        assert_eq!(met, all.iter().find(is_open).map(|((.., member), _)| *member));
        let next = all.iter().map(|((opens, ..), _)| *opens).find(|opens| *opens > now);
        assert_eq!(self.seats.opens_after(now), next);
        assert_eq!(self.seats.len(), all.len());
    }
}

#[test]
fn a_ring_finds_what_a_list_finds_whatever_has_been_noted() {
    for seed in 0..60 {
        let random = fastrand::Rng::with_seed(seed);
        let groups = [3, 40, 200][seed as usize % 3];
        let mut pair = Pair { seats: Seats::default(), list: vec![None; groups], round: 1, random };
        let mut now: u64 = 30;
        for _ in 0..600 {
            (0..pair.random.usize(1..12)).for_each(|_| pair.step());
            // Mostly on; and back.
            now = pair.random.choice([now, now, now + 1, now + 7, now.saturating_sub(9)]).unwrap()
                % 100;
            pair.compare(at(now));
        }
    }
}

#[test]
fn memory_comes_back_when_most_groups_have_left() {
    let mut seats = Seats::default();
    let seat = |n: u64| Seat { opens: at(n), number: n + 1, turn: 0 };
    (0..2_000).for_each(|n| seats.insert(n as Slot, seat(n), NEVER));
    let before = seats.memory();
    // In each run, some stay.
    for n in (0..2_000).filter(|n| n % 6 != 0) {
        assert!(seats.remove(n as Slot, &seat(n)));
    }
    assert!(seats.memory() < before / 2, "{} after {before}", seats.memory());
}

/// Whatever comes when: while it is known that nothing leaves, nothing does.
#[test]
fn a_rest_is_never_claimed_while_a_job_may_leave() {
    let mut random = fastrand::Rng::with_seed(11);
    let mut rested = 0;
    for _ in 0..20_000 {
        let (mut nothing_ready, mut jobs, mut now) = (NothingReady::ALWAYS, Vec::new(), 10);
        for _ in 0..random.usize(1..6) {
            now += random.u64(..4);
            let time = if random.bool() { now } else { now + random.u64(..12) };
            let expires = if random.bool() { at(time + random.u64(1..9)) } else { Time::MAX };
            nothing_ready = nothing_ready.with(at(time), expires, at(now));
            jobs.push((at(time), expires));
            for moment in (0..50).map(at).filter(|moment| nothing_ready.holds(*moment)) {
                let leaves =
                    jobs.iter().any(|(time, expires)| *time <= moment && moment < *expires);
                assert!(!leaves, "at {moment:?}: {jobs:?}, {nothing_ready:?}");
                rested += u32::from(moment >= at(now));
            }
        }
    }
    assert!(rested > 100_000, "{rested}");
}

#[test]
fn heads_that_expire_are_known_of_before_a_search() {
    let holds = |nothing_ready: NothingReady, moments: [u64; 4]| {
        moments.map(|now| nothing_ready.holds(at(now)))
    };
    let head = NothingReady::ALWAYS.with(at(0), at(5), at(0));
    assert_eq!(holds(head, [4, 5, 49, 99]), [false, true, true, true]);
    let plain = head.with(at(50), Time::MAX, at(0));
    assert_eq!(holds(plain, [4, 5, 49, 50]), [false, true, true, false]);
    // The other way round, too.
    let plain = NothingReady::ALWAYS.with(at(50), Time::MAX, at(0)).with(at(0), at(5), at(0));
    assert_eq!(holds(plain, [4, 5, 49, 50]), [false, true, true, false]);
    let expires = head.with(at(50), at(60), at(0));
    assert_eq!(holds(expires, [5, 49, 50, 60]), [true, true, false, true]);
    let later = expires.with(at(55), at(70), at(55));
    assert_eq!(holds(later, [49, 55, 69, 70]), [false, false, false, true]);
}
