//! Where jobs of groups stand, besides in the lines in which all jobs do.

use std::cell::Cell;

use super::group::{place_of, Group, GroupLane, GroupNumber, GroupQueue, Groups};
use super::line::GroupLine;
use super::line::Places;
use super::seats::{NothingReady, Seat};
use crate::queue::lines::buckets::NewEntry;
use crate::queue::lines::entry::EntryKind;
use crate::queue::lines::lanes::MainLine;
use crate::queue::lines::placement::Placement;
use crate::queue::lines::window::Window;
use crate::queue::memory::slab::{Slab, Slot};
use crate::queue::value::settings::Settings;
use crate::queue::value::time::Time;

/// Where more groups than one in so many leave at another time, the seats are made anew.
const RESEATED_ANEW: usize = 16;

/// Where a job was placed, when no more is known.
#[derive(Clone, Copy)]
pub struct FormerPlacement {
    pub main_line: MainLine,
    pub was_leased: bool,
    /// In the line of those that do.
    pub expires: bool,
}

impl Groups {
    /// A job of this group stands like this from `now` on. The group is to be resolved_at after that.
    pub fn place(
        &mut self,
        number: GroupNumber,
        slot: Slot,
        placement: &Placement,
        now: Time,
    ) -> Option<()> {
        let Placement { main_line, time, kind, window, expiry, lease_end } = *placement;
        self.now = now;
        let aside =
            |time| NewEntry { time, slot, kind: EntryKind::Waiting, window: Window::ALWAYS };
        if kind != EntryKind::Waiting {
            let end = aside(lease_end.unwrap_or(time));
            let group = self.table.slab.get_mut(number)?;
            insert(&mut group.leases, &end, &mut self.leases, &mut self.bytes);
        }
        if let Some(expiry) = expiry {
            let group = self.table.slab.get_mut(number)?;
            insert(&mut group.expiring, &aside(expiry), &mut self.expiring, &mut self.bytes);
        }
        let new_entry = NewEntry { time, slot, kind, window };
        match main_line {
            MainLine::Grouped(priority) => {
                let member = self.member_of(number, priority)?;
                self.touch(member);
                let member = self.members.get_mut(member)?;
                let is_first = member.line.first_time().is_none();
                insert(&mut member.line, &new_entry, &mut self.main_lines, &mut self.bytes);
                member.nothing_ready.set(member.nothing_ready.get().with(time, window.closes, now));
                if is_first {
                    self.lane_mut(priority)?.lines += 1;
                }
            }
            MainLine::Dying => {
                let group = self.table.slab.get_mut(number)?;
                insert(&mut group.dying, &new_entry, &mut self.main_lines, &mut self.bytes);
            }
            MainLine::Lane(_) | MainLine::Dead | MainLine::Done => (),
        }
        Some(())
    }

    /// A job of this group, which was placed there, doesn't any more. Whether it did. The group is to be
    /// resolved_at after that.
    pub fn unplace(&mut self, number: GroupNumber, slot: Slot, former: &FormerPlacement) -> bool {
        let FormerPlacement { main_line, was_leased, expires } = *former;
        let Some(group) = self.table.slab.get_mut(number) else {
            return false;
        };
        let mut was_there = true;
        if was_leased {
            was_there &= remove(&mut group.leases, slot, &mut self.leases, &mut self.bytes);
        }
        if expires {
            was_there &= remove(&mut group.expiring, slot, &mut self.expiring, &mut self.bytes);
        }
        match main_line {
            MainLine::Grouped(priority) => {
                let at = place_among(&group.members, &self.members, priority).ok();
                let number = at.and_then(|at| group.members.get(at).copied());
                if let Some(number) = number {
                    self.touch(number);
                }
                let Some(member) = number.and_then(|number| self.members.get_mut(number)) else {
                    return false;
                };
                was_there &= remove(&mut member.line, slot, &mut self.main_lines, &mut self.bytes);
                if was_there && member.line.first_time().is_none() {
                    member.nothing_ready.set(NothingReady::ALWAYS);
                    let lane = self.lane_mut(priority);
                    lane.into_iter().for_each(|lane| lane.lines = lane.lines.saturating_sub(1));
                }
            }
            MainLine::Dying => {
                was_there &= remove(&mut group.dying, slot, &mut self.main_lines, &mut self.bytes)
            }
            MainLine::Lane(_) | MainLine::Dead | MainLine::Done => (),
        }
        self.stale = Some(number);
        was_there
    }

    /// The group whose job was taken from where it former is resolved_at, unless that has been done.
    pub fn reindex_stale(&mut self, settings: &Settings) -> Option<Time> {
        self.stale.and_then(|number| self.reindex(number, settings))
    }

    /// Something about a group has changed: it stands where it belongs from here on. Says when it
    /// may leave, as far as that has changed, if it has anything. O(log groups); where something
    /// else holds it back, for each priority up to the one in which a job is ready.
    pub fn reindex(&mut self, number: GroupNumber, settings: &Settings) -> Option<Time> {
        let group = self.table.slab.get(number)?;
        let (opens, serial) = (group.opens(settings), group.serial);
        if opens != group.told_opens {
            return self.settle_fully(number, settings);
        }
        self.has_settled(number);
        let (mut dirty, mut first) = (std::mem::take(&mut self.dirty), None);
        dirty.retain(|slot| {
            let group = self.members.get(*slot).map(|member| member.group);
            if group == Some(number) {
                let opens = self.settle_line(number, *slot, (opens, serial));
                first = first.into_iter().chain(opens).min();
            }
            group.is_some_and(|group| group != number)
        });
        self.dirty = dirty;
        first
    }

    /// It is no longer the one that is to be resolved_at.
    fn has_settled(&mut self, number: GroupNumber) {
        if self.stale == Some(number) {
            self.stale = None;
        }
    }

    /// The seats are to hear of this line. A delivery changes one several times.
    pub(super) fn touch(&mut self, member: Slot) {
        if self.dirty.last() != Some(&member) {
            self.dirty.push(member);
        }
    }

    /// The same, whatever has changed.
    pub(super) fn settle_fully(
        &mut self,
        number: GroupNumber,
        settings: &Settings,
    ) -> Option<Time> {
        self.has_settled(number);
        self.dirty
            .retain(|slot| self.members.get(*slot).is_some_and(|member| member.group != number));
        let group = self.table.slab.get_mut(number)?;
        let (group_opens, serial) = (group.opens(settings), group.serial);
        group.told_opens = group_opens;
        self.settle_from(number, 0, (group_opens, serial))
    }

    /// The same for one line, which has changed.
    fn settle_line(&mut self, number: GroupNumber, line: Slot, by: (Time, u64)) -> Option<Time> {
        let priority = self.members.get(line)?.priority;
        let group = self.table.slab.get(number)?;
        let at = place_among(&group.members, &self.members, priority).ok()?;
        let is_last = at + 1 == group.indexed;
        if at >= group.indexed {
            return None;
        }
        if is_last || self.shadows(line) {
            return self.settle_from(number, at, by);
        }
        self.settle_member(line, by)
    }

    /// The same for the lines from this one on: those up to one in whose shadow the others stand
    /// have seats, these have none.
    fn settle_from(&mut self, number: GroupNumber, from: usize, by: (Time, u64)) -> Option<Time> {
        let group = self.table.slab.get(number)?;
        let (len, indexed) = (group.members.len(), group.indexed);
        let line = |groups: &Groups, at| groups.table.slab.get(number)?.members.get(at).copied();
        let (mut first, mut end) = (None, len);
        for at in from..len {
            let member = line(self, at)?;
            first = first.into_iter().chain(self.settle_member(member, by)).min();
            if self.shadows(member) {
                end = at + 1;
                break;
            }
        }
        for at in end..indexed {
            let member = line(self, at)?;
            self.unseat(member);
        }
        self.table.slab.get_mut(number)?.indexed = end;
        first
    }

    /// Whether no job of the same group and a worse priority leaves before one of these.
    fn shadows(&self, line: Slot) -> bool {
        self.members.get(line).is_some_and(|member| member.line.is_ready_for_good(self.now))
    }

    fn unseat(&mut self, slot: Slot) -> Option<()> {
        let member = self.members.get_mut(slot)?;
        let (priority, seat) = (member.priority, member.seat.take()?);
        let was_there = self.lane_mut(priority)?.seats.remove(slot, &seat);
        debug_assert!(was_there, "a group stands where it knows that it does");
        Some(())
    }

    /// Before an operation, or a look, at this time.
    #[inline]
    pub fn reindex_if_clock_went_back(&mut self, now: Time, settings: &Settings) {
        if now < self.now {
            self.leave_shadows(now, settings);
        }
    }

    /// The clock was set back: what was ready may not be, so that what stands behind it leaves
    /// before. O(groups), where any stands behind another.
    fn leave_shadows(&mut self, now: Time, settings: &Settings) {
        self.now = now;
        let shadowed = |(number, group): (GroupNumber, &mut Group)| {
            let last = group.members.get(group.indexed.checked_sub(1)?)?;
            (group.indexed < group.members.len()).then_some((number, *last))
        };
        let all: Vec<_> = self.table.slab.iter_mut().filter_map(shadowed).collect();
        for (number, last) in all {
            if !self.shadows(last) {
                self.settle_fully(number, settings);
            }
        }
    }

    fn settle_member(&mut self, slot: Slot, (group_opens, serial): (Time, u64)) -> Option<Time> {
        let member = self.members.get_mut(slot)?;
        let (priority, turn, before, nothing_ready) =
            (member.priority, member.turn, member.seat, member.nothing_ready.get());
        let since = member.line.first_time();
        member.since = since.unwrap_or_default();
        let opens = since.map(|since| since.max(group_opens));
        let after = opens.map(|opens| Seat { opens, number: serial, turn });
        if before == after && member.indexed_nothing_ready.get() == nothing_ready {
            return opens;
        }
        member.seat = after;
        member.indexed_nothing_ready.set(nothing_ready);
        let seats = &mut self.lane_mut(priority)?.seats;
        match (before, after) {
            (Some(old), Some(new)) if (old.opens, old.number) == (new.opens, new.number) => {
                seats.change(slot, &new, nothing_ready);
            }
            (before, after) => {
                if let Some(old) = before {
                    let was_there = seats.remove(slot, &old);
                    debug_assert!(was_there, "a group stands where it knows that it does");
                }
                if let Some(new) = after {
                    seats.insert(slot, new, nothing_ready);
                }
            }
        }
        opens
    }

    /// Other limits, or another clock: every group may leave at another time. O(groups); and for
    /// those that do, O(log groups), or less where they are many.
    pub fn settle_all(&mut self, settings: &Settings) {
        let (mut moved, mut counts) = (Vec::new(), vec![0; self.lanes.len()]);
        for (slot, member) in self.members.iter_mut() {
            let (Some(seat), Some(group)) = (member.seat, self.table.slab.get(member.group)) else {
                continue;
            };
            let opens = member.since.max(group.opens(settings));
            let lane = place_of(&self.lanes, member.priority).ok();
            if let Some(lane) = lane.filter(|_| opens != seat.opens) {
                moved.push((slot, opens, lane));
                counts.get_mut(lane).into_iter().for_each(|count| *count += 1);
            }
        }
        let is_many = |(lane, moved): (&GroupLane, usize)| moved > lane.seats.len() / RESEATED_ANEW;
        let anew: Vec<bool> = self.lanes.iter().zip(counts).map(is_many).collect();
        let is_anew = |(_, _, lane): &(Slot, Time, usize)| anew.get(*lane) == Some(&true);
        let (many, few): (Vec<_>, Vec<_>) = moved.into_iter().partition(is_anew);
        // By their seats, while all of these are in order.
        for (slot, ..) in few {
            if let Some(number) = self.members.get(slot).map(|member| member.group) {
                self.settle_fully(number, settings);
            }
        }
        for (slot, opens, _) in many {
            if let Some(seat) = self.members.get_mut(slot).and_then(|member| member.seat.as_mut()) {
                seat.opens = opens;
            }
        }
        self.reseat(&anew);
        self.table.slab.iter_mut().for_each(|(_, group)| group.told_opens = group.opens(settings));
    }

    /// Puts the seats of these lanes in order by the seats of their members, in the memory that
    /// they have.
    fn reseat(&mut self, anew: &[bool]) {
        let order = |(lane, is_anew): (&GroupLane, &bool)| {
            is_anew.then(|| Vec::with_capacity(lane.seats.len()))
        };
        let mut orders: Vec<Option<Vec<_>>> = self.lanes.iter().zip(anew).map(order).collect();
        for (slot, member) in self.members.iter_mut() {
            let lane = place_of(&self.lanes, member.priority).ok();
            if let Some(order) = lane.and_then(|lane| orders.get_mut(lane)?.as_mut()) {
                order.extend(member.seat.map(|seat| (seat.opens, seat.number, slot)));
            }
        }
        for (lane, order) in self.lanes.iter_mut().zip(orders) {
            let Some(mut order) = order else {
                continue;
            };
            order.sort_unstable();
            let entries = order.into_iter().filter_map(|(_, _, slot)| {
                let member = self.members.get(slot)?;
                Some((slot, member.seat?, member.indexed_nothing_ready.get()))
            });
            lane.seats.fill(entries);
        }
    }

    /// The line of a group for this priority, made if there is none.
    pub(super) fn member_of(&mut self, number: GroupNumber, priority: u8) -> Option<Slot> {
        let group = self.table.slab.get(number)?;
        let at = match place_among(&group.members, &self.members, priority) {
            Ok(at) => return group.members.get(at).copied(),
            Err(at) => at,
        };
        let serial = group.serial;
        let turn = self.lane_mut(priority)?.first_turn(serial);
        let group = self.table.slab.get_mut(number)?;
        let line = GroupLine::Empty;
        let (nothing_ready, indexed_nothing_ready) =
            (Cell::new(NothingReady::ALWAYS), Cell::new(NothingReady::ALWAYS));
        let since = Time::ZERO;
        let member = GroupQueue {
            group: number,
            priority,
            line,
            since,
            turn,
            nothing_ready,
            indexed_nothing_ready,
            seat: None,
        };
        let slot = self.members.insert(member)?;
        let last_shadows = group.members.last().is_some_and(|last| {
            self.members.get(*last).is_some_and(|member| member.line.is_ready_for_good(self.now))
        });
        let before = group.members.capacity();
        let is_behind_none = group.indexed == group.members.len() && !last_shadows;
        group.indexed += usize::from(at < group.indexed || is_behind_none);
        group.members.reserve_exact(1);
        group.members.insert(at, slot);
        self.bytes += (group.members.capacity() - before) * size_of::<Slot>();
        Some(slot)
    }
}

/// Where the line for this priority is among those of a group, or is to be.
fn place_among(lines: &[Slot], members: &Slab<GroupQueue>, priority: u8) -> Result<usize, usize> {
    lines.binary_search_by_key(&Some(priority), |slot| {
        members.get(*slot).map(|member| member.priority)
    })
}

fn insert(line: &mut GroupLine, new_entry: &NewEntry, places: &mut Places, bytes: &mut usize) {
    let before = line.memory();
    line.insert(new_entry, places);
    *bytes = (*bytes + line.memory()).saturating_sub(before);
}

fn remove(line: &mut GroupLine, slot: Slot, places: &mut Places, bytes: &mut usize) -> bool {
    let before = line.memory();
    let was_there = line.remove(slot, places);
    *bytes = (*bytes + line.memory()).saturating_sub(before);
    was_there
}

#[cfg(test)]
mod tests;
