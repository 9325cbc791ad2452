//! The options with which DQ.ADD makes a job wait for others: AFTER, BEFORE, ONDEAD, HOLD.

use super::arg_reader::{option, ArgReader, Name};
use super::error::Error;
use crate::queue::{Id, NewEdges, OnDead, EDGES_MAX};

/// What a command said.
#[derive(Default)]
pub struct EdgeOptions<'c> {
    after: Option<Vec<Id<'c>>>,
    before: Option<Vec<Id<'c>>>,
    on_dead: Option<OnDead>,
    hold: Option<()>,
}

impl<'c> EdgeOptions<'c> {
    /// Reads an option, if it is one of these.
    pub fn read(&mut self, name: Name, args: &mut ArgReader<'c>) -> Result<bool, Error> {
        option!(name, args, {
            "AFTER" => self.after, counted_ids(EDGES_MAX);
            "BEFORE" => self.before, counted_ids(EDGES_MAX);
            "ONDEAD" => self.on_dead, parsed(on_dead);
            "HOLD" => self.hold, flag();
        } else Ok(false))
    }

    /// The first of these options, if one is given.
    pub fn first_given(&self) -> Option<&'static str> {
        let given = [
            ("AFTER", self.after.is_some()),
            ("BEFORE", self.before.is_some()),
            ("ONDEAD", self.on_dead.is_some()),
            ("HOLD", self.hold.is_some()),
        ];
        given.into_iter().find(|(_, is_given)| *is_given).map(|(name, _)| name)
    }

    /// What they say together, if one is given.
    pub fn edges(self) -> Result<Option<Box<NewEdges<'c>>>, Error> {
        if self.first_given().is_none() {
            return Ok(None);
        }
        if self.after.is_some() && self.before.is_some() {
            return Err(Error::Exclusive { one: "AFTER", other: "BEFORE" });
        }
        if self.on_dead.is_some() && self.after.is_none() && self.hold.is_none() {
            return Err(Error::NeedsEdges { option: "ONDEAD" });
        }
        Ok(Some(Box::new(NewEdges {
            after: self.after.unwrap_or_default(),
            before: self.before.unwrap_or_default(),
            on_dead: self.on_dead.unwrap_or_default(),
            is_on_hold: self.hold.is_some(),
        })))
    }
}

fn on_dead(word: &[u8]) -> Result<OnDead, Error> {
    match word {
        _ if word.eq_ignore_ascii_case(b"HOLD") => Ok(OnDead::Hold),
        _ if word.eq_ignore_ascii_case(b"RUN") => Ok(OnDead::Run),
        _ => Err(Error::UnknownOnDead(word.to_vec())),
    }
}
