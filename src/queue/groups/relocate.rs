//! Putting the groups' memory elsewhere, in parts: see [`super::super::relocate`]. Only the sets of groups without jobs stay
//! where they are: the library gives no allocation of a tree out of its hands. They hold what is remembered of a few.

use super::super::buckets::Buckets;
use super::super::mover::{Mover, STEP_ALLOCATIONS};
use super::super::slab::Slot;
use super::line::Line;
use super::Groups;

/// Before the lanes, of which there are at most so many, and the long lines.
const FIRST_LANE: u32 = 6;
const FIRST_LINE: u32 = FIRST_LANE + 256;
/// Each group has three lines, besides those of its members.
const LINES_A_GROUP: u32 = 3;

impl Groups {
    /// Most of the last ones are of nobody, or hold nothing.
    pub fn part_count(&self) -> u32 {
        let of_groups = (self.shelf.slab.places() as u32).saturating_mul(LINES_A_GROUP);
        FIRST_LINE.saturating_add(self.members.places() as u32).saturating_add(of_groups)
    }

    /// Hands the memory of a part to a mover, as [`super::super::slab::Slab::relocate`].
    pub fn relocate(&mut self, part: u32, from: Slot, mover: &mut impl Mover) -> Option<Slot> {
        match part {
            0 => self.shelf.slab.relocate(from, mover, |group, mover| {
                mover.bytes(&mut group.name);
                mover.vec(&mut group.members);
                group.dying.relocate(mover);
                group.leases.relocate(mover);
                group.expiring.relocate(mover);
            }),
            1 => self.index.relocate(from, mover),
            2 => self.members.relocate(from, mover, |member, mover| member.line.relocate(mover)),
            3 => self.homes.relocate(from, mover),
            4 => self.leases.relocate(from, mover),
            5 => self.expiring.relocate(from, mover),
            FIRST_LANE..FIRST_LINE => self.relocate_lane((part - FIRST_LANE) as usize, from, mover),
            line => self.long_line(line - FIRST_LINE)?.relocate(from, mover),
        }
    }

    fn relocate_lane(&mut self, lane: usize, from: Slot, mover: &mut impl Mover) -> Option<Slot> {
        if lane == 0 && from == 0 {
            mover.vec(&mut self.lanes);
            mover.vec(&mut self.touched);
        }
        self.lanes.get_mut(lane)?.ring.relocate(from, mover)
    }

    fn long_line(&mut self, number: u32) -> Option<&mut Buckets> {
        let of_members = self.members.places() as u32;
        let line = match number.checked_sub(of_members) {
            None => &mut self.members.get_mut(number)?.line,
            Some(number) => {
                let group = self.shelf.slab.get_mut(number / LINES_A_GROUP)?;
                match number % LINES_A_GROUP {
                    0 => &mut group.dying,
                    1 => &mut group.leases,
                    _ => &mut group.expiring,
                }
            }
        };
        match line {
            Line::Many(buckets) => Some(buckets),
            Line::Empty | Line::One(_) | Line::Few(_) => None,
        }
    }
}

/// Hands a list's values to a mover, one after the other, and the list itself: from there on.
pub(super) fn relocate_each<T, M: Mover>(
    list: &mut Vec<T>,
    from: Slot,
    mover: &mut M,
    relocate: impl Fn(&mut T, &mut M),
) -> Option<Slot> {
    let from = from as usize;
    for (at, value) in list.iter_mut().enumerate().skip(from) {
        if at > from && at % STEP_ALLOCATIONS == 0 && mover.is_over() {
            return Some(at as Slot);
        }
        relocate(value, mover);
    }
    mover.vec(list);
    None
}

#[cfg(test)]
mod tests {
    use super::super::super::mover::Everything;
    use super::*;

    /// From one look at the clock to the next.
    #[test]
    fn each_value_of_a_list_is_moved_once_however_many_calls_it_takes() {
        let (step, len) = (STEP_ALLOCATIONS, 3 * STEP_ALLOCATIONS + 5);
        let calls = |a_call: usize| {
            let (mut list, mut from, mut ends) = (vec![0; len], 0, Vec::new());
            let mut mover = Everything::in_calls_of(a_call);
            while let Some(next) = relocate_each(&mut list, from, &mut mover, |value, _| *value += 1) {
                assert_eq!(mover.moved, 0, "the list itself comes last");
                assert!(next > from, "it stands still");
                from = next;
                ends.push(next as usize);
            }
            assert_eq!((list, mover.moved), (vec![1; len], 1));
            ends
        };
        assert_eq!(calls(0), [step, 2 * step, 3 * step], "no time is left");
        assert_eq!(calls(usize::MAX), [], "there is time");
    }
}
