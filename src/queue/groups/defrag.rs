//! Moves the memory of groups, in parts: see [`kernel::defrag`](crate::queue::kernel::defrag). The
//! sets of idle groups are not moved: the library gives no access to the allocations of a tree.
//! They hold little.

use super::group::Groups;
use super::line::GroupLine;
use crate::queue::lines::buckets::Buckets;
use crate::queue::memory::defrag::Defragmenter;
use crate::queue::memory::slab::Slot;

/// The parts before the lanes. After these come at most 256 lanes, and the long lines.
const FIRST_LANE: u32 = 6;
const FIRST_LINE: u32 = FIRST_LANE + 256;
/// Each group has three lines, besides those of its members.
const LINES_A_GROUP: u32 = 3;

impl Groups {
    /// Most of the last parts have no group, or are empty.
    pub fn part_count(&self) -> u32 {
        let of_groups = (self.table.slab.places() as u32).saturating_mul(LINES_A_GROUP);
        FIRST_LINE.saturating_add(self.members.places() as u32).saturating_add(of_groups)
    }

    /// Hands the memory of a part to a defragmenter: see
    /// [`Slab::defrag`](crate::queue::memory::slab::Slab::defrag).
    pub fn defrag(
        &mut self,
        part: u32,
        from: Slot,
        defragmenter: &mut impl Defragmenter,
    ) -> Option<Slot> {
        match part {
            0 => self.table.slab.defrag(from, defragmenter, |group, defragmenter| {
                defragmenter.bytes(&mut group.name);
                defragmenter.vec(&mut group.members);
                group.dying.defrag(defragmenter);
                group.leases.defrag(defragmenter);
                group.expiring.defrag(defragmenter);
            }),
            1 => self.index.defrag(from, defragmenter),
            2 => self.members.defrag(from, defragmenter, |member, defragmenter| {
                member.line.defrag(defragmenter)
            }),
            3 => self.main_lines.defrag(from, defragmenter),
            4 => self.leases.defrag(from, defragmenter),
            5 => self.expiring.defrag(from, defragmenter),
            FIRST_LANE..FIRST_LINE => {
                self.defrag_lane((part - FIRST_LANE) as usize, from, defragmenter)
            }
            line => self.long_line(line - FIRST_LINE)?.defrag(from, defragmenter),
        }
    }

    fn defrag_lane(
        &mut self,
        lane: usize,
        from: Slot,
        defragmenter: &mut impl Defragmenter,
    ) -> Option<Slot> {
        if lane == 0 && from == 0 {
            defragmenter.vec(&mut self.lanes);
            defragmenter.vec(&mut self.dirty);
        }
        self.lanes.get_mut(lane)?.seats.defrag(from, defragmenter)
    }

    fn long_line(&mut self, number: u32) -> Option<&mut Buckets> {
        let of_members = self.members.places() as u32;
        let line = match number.checked_sub(of_members) {
            None => &mut self.members.get_mut(number)?.line,
            Some(number) => {
                let group = self.table.slab.get_mut(number / LINES_A_GROUP)?;
                match number % LINES_A_GROUP {
                    0 => &mut group.dying,
                    1 => &mut group.leases,
                    _ => &mut group.expiring,
                }
            }
        };
        match line {
            GroupLine::Many(buckets) => Some(buckets),
            GroupLine::Empty | GroupLine::One(_) | GroupLine::Few(_) => None,
        }
    }
}
