//! A ring beside a list that is gone through each time.

use super::*;

fn at(ms: u64) -> Time {
    Time::new(ms).unwrap()
}

/// A group of the list: where it stands, and while nothing of it may leave.
#[derive(Clone, Copy, Debug)]
struct Listed {
    seat: Seat,
    rests: Rest,
}

struct Pair {
    ring: Ring,
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

    fn rests(&mut self) -> Rest {
        let since = self.random.u64(0..60);
        let later = at(since + self.random.u64(0..40));
        let until = self.random.choice([later, Time::MAX]).unwrap();
        self.random.choice([Rest::NEVER, Rest { since: at(since), until }]).unwrap()
    }

    fn step(&mut self) {
        let member = self.random.usize(..self.list.len());
        match (self.list[member], self.random.u8(..10)) {
            (None, ..8) => {
                let (seat, rests) = (self.seat(member), self.rests());
                self.ring.insert(member as Slot, seat, Rest::NEVER);
                self.list[member] = Some(Listed { seat, rests });
            }
            (Some(listed), ..4) => {
                assert!(self.ring.remove(member as Slot, &listed.seat));
                assert!(!self.ring.remove(member as Slot, &listed.seat));
                self.list[member] = None;
            }
            (Some(listed), 4..8) => {
                // As when it has had its turn, or another job comes.
                let seat = Seat { turn: self.seat(member).turn, ..listed.seat };
                self.ring.change(member as Slot, &seat, Rest::NEVER);
                self.list[member] = Some(Listed { seat, rests: self.rests() });
            }
            (_, 8) => {
                self.round += 1;
                self.ring.begin_round(self.round);
            }
            _ => (),
        }
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
        let in_round = all.iter().filter(is_open).find(|(_, it)| it.seat.turn <= self.round);
        let met = self.ring.first_in_round(now, self.round, find).map(|met| met.found);
        assert_eq!(met, in_round.map(|((.., member), _)| *member), "in the round {}", self.round);
        let met = self.ring.first(now, find).map(|met| met.found);
        assert_eq!(met, all.iter().find(is_open).map(|((.., member), _)| *member));
        let next = all.iter().map(|((opens, ..), _)| *opens).find(|opens| *opens > now);
        assert_eq!(self.ring.opens_after(now), next);
        assert_eq!(self.ring.is_empty(), all.is_empty());
    }
}

#[test]
fn a_ring_finds_what_a_list_finds_whatever_has_been_noted() {
    for seed in 0..60 {
        let random = fastrand::Rng::with_seed(seed);
        let groups = [3, 40, 200][seed as usize % 3];
        let mut pair = Pair { ring: Ring::default(), list: vec![None; groups], round: 1, random };
        let mut now: u64 = 30;
        for _ in 0..600 {
            (0..pair.random.usize(1..12)).for_each(|_| pair.step());
            // Mostly on; and back.
            now = pair.random.choice([now, now, now + 1, now + 7, now.saturating_sub(9)]).unwrap() % 100;
            pair.compare(at(now));
        }
    }
}
