//! What a group looks like in a file, besides its jobs.

use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;

use super::group::SERIAL_MAX;
use super::group::{Group, GroupLane, Groups, FIRST_ROUND};
use crate::queue::value::ids::Id;
use crate::queue::value::rate::{Rate, Tat, TatParts};
use crate::queue::value::record::{Record, RecordError};
use crate::queue::value::settings::Settings;
use crate::queue::value::time::Time;

/// How many records of groups there are, the serial of the last one made, and up to which they were
/// looked at.
pub type GroupSerials = (u64, u64, u64);

/// Everything about a group but its jobs. Without a name, of jobs that have no group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupRecord {
    name: ByteBuf,
    serial: u64,
    /// The priorities in which it has had its turn in this round.
    turns: ByteBuf,
    /// The theoretical arrival time of its rate, and how many parts a millisecond has there. All
    /// are 0 without a rate.
    arrival: TatParts,
    parts: u32,
    paused_until: Time,
    /// Until when its rate held it back last, where that isn't what the arrival time says.
    blocked_until: Option<Time>,
    /// In the record without a name, the rounds that have begun.
    rounds: Vec<RoundRecord>,
}

/// A round of a priority: when it began, and the last serial that had been given by then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct RoundRecord {
    priority: u8,
    began: Time,
    last_serial: u64,
}

impl Record for Vec<GroupRecord> {}

impl GroupRecord {
    fn tat(&self) -> Result<Tat, RecordError> {
        let is_none = (self.arrival, self.parts) == Default::default();
        let tat = is_none.then(Tat::default).or_else(|| Tat::of(self.arrival, self.parts));
        tat.ok_or(RecordError::Impossible)
    }

    /// Whether all that it says is possible.
    pub fn check(&self) -> Result<(), RecordError> {
        let is_of_none = self.name.is_empty() && self.serial == 0;
        let is_one = Id::new(&self.name).is_some() && (1..=SERIAL_MAX).contains(&self.serial);
        if is_of_none || is_one {
            self.tat().map(drop)
        } else {
            Err(RecordError::Impossible)
        }
    }
}

impl Group {
    /// Its record has told where its rate has got to; and that of the queue, which rate that is.
    fn take_over_rate(&mut self, rate: Option<Rate>) {
        self.tat = rate.and_then(|rate| rate.tat(rate.parts_of(self.tat))).unwrap_or_default();
        let opens = rate.map(|rate| rate.open(self.tat)).unwrap_or_default();
        self.blocked_until = self.blocked_until.min(opens);
    }
}

impl Groups {
    /// What isn't of one group: of those without one, in which priorities they have had their turn;
    /// and the rounds.
    fn record_of_rounds(&self) -> GroupRecord {
        let own = self.lanes.iter().filter(|lane| lane.own_turn > lane.round);
        let turns = ByteBuf::from(own.map(|lane| lane.priority).collect::<Vec<u8>>());
        let rounds = self.lanes.iter().filter(|lane| lane.has_begun()).map(|lane| RoundRecord {
            priority: lane.priority,
            began: lane.began,
            last_serial: lane.last_of_round,
        });
        GroupRecord { turns, rounds: rounds.collect(), ..GroupRecord::default() }
    }

    pub fn records(&self, rate: Option<Rate>) -> Vec<GroupRecord> {
        let mut records: Vec<GroupRecord> = Vec::with_capacity(self.len() + 1);
        if self.lanes.iter().any(GroupLane::has_begun) {
            records.push(self.record_of_rounds());
        }
        let (slots, _) = self.table.slab.scan(0, usize::MAX, usize::MAX);
        for group in slots.into_iter().filter_map(|slot| self.table.slab.get(slot)) {
            let had = group.members.iter().filter(|slot| self.has_had_turn(**slot));
            let mut turns: Vec<u8> = had
                .filter_map(|slot| self.members.get(*slot))
                .map(|member| member.priority)
                .collect();
            turns.sort_unstable();
            let arrival = rate.map_or((0, 0), |rate| rate.parts_of(group.tat));
            let parts = rate.filter(|_| arrival != (0, 0)).map_or(0, |rate| rate.jobs());
            let is_held_as_told =
                rate.is_none_or(|rate| rate.open(group.tat) == group.blocked_until);
            records.push(GroupRecord {
                name: ByteBuf::from(&group.name[..]),
                serial: group.serial,
                turns: ByteBuf::from(turns),
                arrival,
                parts,
                paused_until: group.paused_until,
                blocked_until: (!is_held_as_told).then_some(group.blocked_until),
                rounds: Vec::new(),
            });
        }
        records.sort_by(|one, other| (one.serial, &one.name).cmp(&(other.serial, &other.name)));
        records
    }

    fn take_over_rates(&mut self, rate: Option<Rate>) {
        self.table.slab.iter_mut().for_each(|(_, group)| group.take_over_rate(rate));
    }

    fn restore_rounds(&mut self, record: &GroupRecord) {
        for RoundRecord { priority, began, last_serial } in record.rounds.iter().copied() {
            if let Some(lane) = self.lane_mut(priority) {
                (lane.began, lane.last_of_round) = (began, last_serial);
            }
        }
        for priority in record.turns.iter() {
            if let Some(lane) = self.lane_mut(*priority) {
                lane.own_turn = lane.round + 1;
            }
        }
    }

    pub fn restore(
        &mut self,
        record: &GroupRecord,
        settings: &Settings,
    ) -> Result<(), RecordError> {
        record.check()?;
        let Some(name) = Id::new(&record.name) else {
            self.restore_rounds(record);
            return Ok(());
        };
        let last_serial = self.last_serial;
        let number = self.find_or_make(name).ok_or(RecordError::TooMany)?;
        // One that is made by this has the serial that is told, whatever the order of the records.
        self.last_serial = last_serial;
        // Its jobs were there before its record, and came as to a group that is made then.
        let members = self.table.slab.get(number).map_or(Vec::new(), |group| group.members.clone());
        for member in members {
            self.set_turn(member, 0);
        }
        for priority in record.turns.iter() {
            let next = self.lane_mut(*priority).map_or(FIRST_ROUND, |lane| lane.round) + 1;
            if let Some(member) = self.member_of(number, *priority) {
                self.set_turn(member, next);
            }
        }
        let was_idle = self.take_idle(number);
        if let Some(group) = self.table.slab.get_mut(number) {
            group.serial = record.serial;
            group.tat = record.tat()?;
            // Where nothing else is said, as its arrival time says: when it is known which rate
            // that belongs to.
            group.blocked_until = record.blocked_until.unwrap_or(Time::MAX);
            if group.tat == Tat::default() {
                group.blocked_until = Time::ZERO;
            }
            if settings.group_rate.is_some() {
                group.take_over_rate(settings.group_rate);
            }
            group.paused_until = record.paused_until;
        }
        if was_idle {
            self.add_idle(number);
        }
        self.last_serial = self.last_serial.max(record.serial);
        self.reindex_fully(number, settings);
        Ok(())
    }

    /// Where they have got to: how many records there are, the last serial, and up to which one
    /// those without jobs were looked at.
    pub fn serials(&self) -> GroupSerials {
        let own = self.lanes.iter().any(GroupLane::has_begun);
        ((self.len() + usize::from(own)) as u64, self.last_serial, self.swept)
    }

    /// The settings are those of a record, and so are the serials.
    pub fn restore_serials(&mut self, (_, last_serial, swept): GroupSerials, settings: &Settings) {
        // Not those that its groups had until their records came.
        let serials = self.table.slab.iter_mut().map(|(_, group)| group.serial);
        let last_serial = serials.fold(last_serial.min(SERIAL_MAX), u64::max);
        (self.last_serial, self.swept) = (last_serial, swept);
        self.idle_before = self.idle.len();
        self.take_over_rates(settings.group_rate);
        self.reindex_all(settings);
    }
}
