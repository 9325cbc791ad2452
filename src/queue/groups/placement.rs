//! The places of jobs in their group, which they have besides those in the queue's lines.

use crate::queue::memory::impossible::{impossible, OrImpossible};
use std::cell::Cell;

use super::group::{position_of, Group, GroupLane, GroupNumber, GroupQueue, Groups};
use super::line::BucketsBySlot;
use super::line::GroupLine;
use super::seats::{NothingReady, Seat};
use crate::queue::lines::buckets::NewEntry;
use crate::queue::lines::entry::EntryKind;
use crate::queue::lines::lanes::MainLine;
use crate::queue::lines::placement::Placement;
use crate::queue::lines::window::Window;
use crate::queue::memory::slab::{Slab, Slot};
use crate::queue::value::settings::Settings;
use crate::queue::value::time::Time;

/// If more than 1/16 of a lane's groups moved, rebuild its index.
const RESEATED_ANEW: usize = 16;

/// The former place of a job, as far as its details know it.
#[derive(Clone, Copy)]
pub struct FormerPlacement {
    pub main_line: MainLine,
    pub was_leased: bool,
    /// Whether it was in the line of jobs that expire.
    pub expires: bool,
}

impl Groups {
    /// Puts a job of this group into the group's lines, at `now`. The caller must then call
    /// [`Groups::reindex`].
    pub fn place(
        &mut self,
        number: GroupNumber,
        slot: Slot,
        placement: &Placement,
        now: Time,
    ) -> Option<()> {
        let Placement { main_line, time, kind, window, expiry, lease_end } = *placement;
        if main_line == MainLine::Held {
            return Some(());
        }
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
            MainLine::Lane(_) | MainLine::Dead | MainLine::Done | MainLine::Held => (),
        }
        Some(())
    }

    /// Takes a job of this group out of the group's lines. Returns whether it was there. The caller
    /// must then call [`Groups::reindex`], or [`Groups::reindex_stale`].
    pub fn unplace(&mut self, number: GroupNumber, slot: Slot, former: &FormerPlacement) -> bool {
        let FormerPlacement { main_line, was_leased, expires } = *former;
        if main_line == MainLine::Held {
            return true;
        }
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
                let at = position_among(&group.members, &self.members, priority).ok();
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
            MainLine::Lane(_) | MainLine::Dead | MainLine::Done | MainLine::Held => (),
        }
        self.stale = Some(number);
        was_there
    }

    /// Reindexes the group that lost a job, if that hasn't been done yet.
    pub fn reindex_stale(&mut self, settings: &Settings) -> Option<Time> {
        self.stale.and_then(|number| self.reindex(number, settings))
    }

    /// A group has changed: puts it where it belongs in the seats. Returns when it may deliver a
    /// job, if it has jobs and the time has changed. O(log groups). If the group's limits changed
    /// that time, O(log groups) for each priority up to one with a lasting ready job.
    pub fn reindex(&mut self, number: GroupNumber, settings: &Settings) -> Option<Time> {
        let group = self.table.slab.get(number)?;
        let (opens, serial) = (group.opens(settings), group.serial);
        if opens != group.indexed_opens {
            return self.reindex_fully(number, settings);
        }
        self.clear_stale(number);
        let (mut dirty, mut first) = (std::mem::take(&mut self.dirty), None);
        dirty.retain(|slot| {
            let group = self.members.get(*slot).map(|member| member.group);
            if group == Some(number) {
                let opens = self.reindex_line(number, *slot, (opens, serial));
                first = first.into_iter().chain(opens).min();
            }
            group.is_some_and(|group| group != number)
        });
        self.dirty = dirty;
        first
    }

    /// The group needs no [`Groups::reindex_stale`].
    fn clear_stale(&mut self, number: GroupNumber) {
        if self.stale == Some(number) {
            self.stale = None;
        }
    }

    /// Marks this line as changed. One delivery changes a line several times.
    pub(super) fn touch(&mut self, member: Slot) {
        if self.dirty.last() != Some(&member) {
            self.dirty.push(member);
        }
    }

    /// Reindexes all lines of a group.
    pub(super) fn reindex_fully(
        &mut self,
        number: GroupNumber,
        settings: &Settings,
    ) -> Option<Time> {
        self.clear_stale(number);
        self.dirty
            .retain(|slot| self.members.get(*slot).is_some_and(|member| member.group != number));
        let group = self.table.slab.get_mut(number).or_impossible("a group to reindex is there")?;
        let (group_opens, serial) = (group.opens(settings), group.serial);
        group.indexed_opens = group_opens;
        self.reindex_from(number, 0, (group_opens, serial))
    }

    /// Reindexes one line, which has changed.
    fn reindex_line(&mut self, number: GroupNumber, line: Slot, by: (Time, u64)) -> Option<Time> {
        let priority = self.members.get(line)?.priority;
        let group = self.table.slab.get(number)?;
        let at = position_among(&group.members, &self.members, priority).ok()?;
        let is_last = at + 1 == group.indexed;
        if at >= group.indexed {
            return None;
        }
        if is_last || self.shadows(line) {
            return self.reindex_from(number, at, by);
        }
        self.reindex_member(line, by)
    }

    /// Reindexes the priorities from here on. Those after a priority with a lasting ready job get
    /// no entry.
    fn reindex_from(&mut self, number: GroupNumber, from: usize, by: (Time, u64)) -> Option<Time> {
        let group = self.table.slab.get(number)?;
        // `indexed`: so many lines, from the best priority on, may have a seat now.
        let (len, indexed) = (group.members.len(), group.indexed);
        let line = |groups: &Groups, at| groups.table.slab.get(number)?.members.get(at).copied();
        let (mut first, mut end) = (None, len);
        for at in from..len {
            let member = line(self, at)?;
            first = first.into_iter().chain(self.reindex_member(member, by)).min();
            if self.shadows(member) {
                // Its job stays ready until it is taken. Lines of a worse priority get a seat
                // when this one changes, not before.
                end = at + 1;
                break;
            }
        }
        // Lines that had a seat, and stand in the shadow now.
        for at in end..indexed {
            let member = line(self, at)?;
            self.unseat(member);
        }
        let group = self.table.slab.get_mut(number).or_impossible("a group to reindex is there")?;
        group.indexed = end;
        first
    }

    /// Whether this line has a lasting ready job: then no job of the group with a worse priority
    /// leaves before it.
    fn shadows(&self, line: Slot) -> bool {
        self.members.get(line).is_some_and(|member| member.line.is_ready_for_good(self.now))
    }

    fn unseat(&mut self, slot: Slot) -> Option<()> {
        let member = self.members.get_mut(slot).or_impossible("a line of a group is there")?;
        let (priority, seat) = (member.priority, member.seat.take()?);
        let lane = self.lane_mut(priority).or_impossible("a seat is in a lane")?;
        let was_there = lane.seats.remove(slot, &seat);
        if !was_there {
            impossible("a group is at its seat");
        }
        Some(())
    }

    /// Called before an operation or a read at `now`.
    #[inline]
    pub fn reindex_if_clock_went_back(&mut self, now: Time, settings: &Settings) {
        if now < self.now {
            self.leave_shadows(now, settings);
        }
    }

    /// The clock was set back: a job that was ready may not be ready now, so jobs of a worse
    /// priority may leave before it. O(groups) if any line has no seat for that reason.
    fn leave_shadows(&mut self, now: Time, settings: &Settings) {
        self.now = now;
        let shadowed = |(number, group): (GroupNumber, &mut Group)| {
            let last = group.members.get(group.indexed.checked_sub(1)?)?;
            (group.indexed < group.members.len()).then_some((number, *last))
        };
        let all: Vec<_> = self.table.slab.iter_mut().filter_map(shadowed).collect();
        for (number, last) in all {
            if !self.shadows(last) {
                self.reindex_fully(number, settings);
            }
        }
    }

    fn reindex_member(&mut self, slot: Slot, (group_opens, serial): (Time, u64)) -> Option<Time> {
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
                    if !was_there {
                        impossible("a group is at its seat");
                    }
                }
                if let Some(new) = after {
                    seats.insert(slot, new, nothing_ready);
                }
            }
        }
        opens
    }

    /// Limits or the clock changed: every group may open at another time. O(groups). For each group
    /// that does: O(log groups), or less if there are many.
    pub fn reindex_all(&mut self, settings: &Settings) {
        let (mut moved, mut counts) = (Vec::new(), vec![0; self.lanes.len()]);
        for (slot, member) in self.members.iter_mut() {
            let (Some(seat), Some(group)) = (member.seat, self.table.slab.get(member.group)) else {
                continue;
            };
            let opens = member.since.max(group.opens(settings));
            let lane = position_of(&self.lanes, member.priority).ok();
            if let Some(lane) = lane.filter(|_| opens != seat.opens) {
                moved.push((slot, opens, lane));
                counts.get_mut(lane).into_iter().for_each(|count| *count += 1);
            }
        }
        let is_many = |(lane, moved): (&GroupLane, usize)| moved > lane.seats.len() / RESEATED_ANEW;
        let anew: Vec<bool> = self.lanes.iter().zip(counts).map(is_many).collect();
        let is_anew = |(_, _, lane): &(Slot, Time, usize)| anew.get(*lane) == Some(&true);
        let (many, few): (Vec<_>, Vec<_>) = moved.into_iter().partition(is_anew);
        // By their old seats, while the seats are still in order.
        for (slot, ..) in few {
            if let Some(number) = self.members.get(slot).map(|member| member.group) {
                self.reindex_fully(number, settings);
            }
        }
        for (slot, opens, _) in many {
            if let Some(seat) = self.members.get_mut(slot).and_then(|member| member.seat.as_mut()) {
                seat.opens = opens;
            }
        }
        self.reseat(&anew);
        self.table
            .slab
            .iter_mut()
            .for_each(|(_, group)| group.indexed_opens = group.opens(settings));
    }

    /// Rebuilds the seats of these lanes from the seats stored in the members, in the same memory.
    fn reseat(&mut self, anew: &[bool]) {
        let order = |(lane, is_anew): (&GroupLane, &bool)| {
            is_anew.then(|| Vec::with_capacity(lane.seats.len()))
        };
        let mut orders: Vec<Option<Vec<_>>> = self.lanes.iter().zip(anew).map(order).collect();
        for (slot, member) in self.members.iter_mut() {
            let lane = position_of(&self.lanes, member.priority).ok();
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

    /// The line of a group for this priority, created if there is none.
    pub(super) fn member_of(&mut self, number: GroupNumber, priority: u8) -> Option<Slot> {
        let group = self.table.slab.get(number)?;
        let at = match position_among(&group.members, &self.members, priority) {
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

/// The index of a group's line for this priority, or where to insert it.
fn position_among(
    lines: &[Slot],
    members: &Slab<GroupQueue>,
    priority: u8,
) -> Result<usize, usize> {
    lines.binary_search_by_key(&Some(priority), |slot| {
        members.get(*slot).map(|member| member.priority)
    })
}

fn insert(
    line: &mut GroupLine,
    new_entry: &NewEntry,
    places: &mut BucketsBySlot,
    bytes: &mut usize,
) {
    let before = line.memory();
    line.insert(new_entry, places);
    *bytes = (*bytes + line.memory()).saturating_sub(before);
}

fn remove(line: &mut GroupLine, slot: Slot, places: &mut BucketsBySlot, bytes: &mut usize) -> bool {
    let before = line.memory();
    let was_there = line.remove(slot, places);
    *bytes = (*bytes + line.memory()).saturating_sub(before);
    was_there
}

#[cfg(test)]
mod tests;
