//! Reads a command's arguments: a cursor over its arguments that ends with [`ArgReader::options`].
//!
//! Everything is read and checked before the key is touched.

#![allow(
    clippy::unnecessary_lazy_evaluations,
    reason = "an error that is made for nothing is dropped by a call, for each word"
)]

use std::collections::BTreeSet;

use super::error::Error;
use super::limits::{CLAIMS_MAX, NOTE_BYTES_MAX, REASON_BYTES_MAX};
use crate::queue::{Attempts, Backoff, Claim, Claims, Due, Id, Ids, Lease, Millis, State, Time};
use crate::server::arg::{Arg, Args};
use crate::server::call::Call;
use crate::server::context::wall_clock;
use crate::server::spec::Spec;
use crate::services::change::frame::Source;
use crate::services::config;

/// No clock is so close to the last time, in the year 10889, that a span up to this could end after
/// it. So the clock isn't read for such a span.
const SHORT: Millis = Millis::of_secs(100 * 366 * 24 * 60 * 60);

/// What an option that finishes jobs says: the claims, and where the arguments begin that give them.
pub struct CountedClaims<'c> {
    pub claims: Claims<'c>,
    pub args: ArgReader<'c>,
}

/// The arguments after the command's name, from left to right.
#[derive(Clone, Copy)]
pub struct ArgReader<'c> {
    args: Args<'c>,
    at: usize,
    spec: &'static Spec,
    source: Source,
}

impl<'c> ArgReader<'c> {
    /// Those of a command, behind its name.
    pub fn of(call: &Call<'c>, spec: &'static Spec, source: Source) -> ArgReader<'c> {
        ArgReader { args: call.args(), at: 1, spec, source }
    }

    pub fn source(&self) -> Source {
        self.source
    }

    fn wrong_arity(&self) -> Error {
        Error::WrongArity { command: self.spec.name.to_str().unwrap_or_default() }
    }

    pub fn next(&mut self) -> Option<Arg<'c>> {
        let arg = self.args.get(self.at)?;
        self.at += 1;
        Some(arg)
    }

    /// Takes the next word if it is this one, in any letter case.
    pub fn take(&mut self, word: &str) -> bool {
        let is_it = self
            .args
            .get(self.at)
            .is_some_and(|arg| arg.bytes().eq_ignore_ascii_case(word.as_bytes()));
        self.at += usize::from(is_it);
        is_it
    }

    pub fn remaining(&self) -> usize {
        self.args.len().saturating_sub(self.at)
    }

    /// The next word, which has to be there.
    pub fn require(&mut self) -> Result<Arg<'c>, Error> {
        self.next().ok_or_else(|| self.wrong_arity())
    }

    pub fn require_id(&mut self) -> Result<Id<'c>, Error> {
        Id::new(self.require()?.bytes()).ok_or_else(|| Error::IdLength)
    }

    /// An id; none for `*`.
    #[inline(always)]
    pub fn require_id_or_star(&mut self) -> Result<Option<Id<'c>>, Error> {
        match self.require()?.bytes() {
            b"*" => Ok(None),
            id => Id::new(id).map(Some).ok_or_else(|| Error::IdLength),
        }
    }

    /// All arguments that are left, of which there has to be one: ids.
    pub fn require_ids(&mut self) -> Result<Ids<'c>, Error> {
        let mut ids = Ids::with_capacity(self.remaining());
        ids.push(self.require_id()?);
        while self.remaining() > 0 {
            ids.push(self.require_id()?);
        }
        Ok(ids)
    }

    /// An id and its lease, or `*`.
    #[inline(always)]
    pub fn require_claim(&mut self) -> Result<Claim<'c>, Error> {
        Ok(Claim { id: self.require_id()?, lease: parse_lease(self.require()?.bytes())? })
    }

    /// The number of keys that follow.
    pub fn num_keys(&mut self) -> Result<usize, Error> {
        let number =
            parse_integer(self.require()?.bytes()).and_then(|number| usize::try_from(number).ok());
        number
            .filter(|number| (1..=self.remaining()).contains(number))
            .ok_or_else(|| Error::NumKeys)
    }

    /// No more arguments may follow.
    pub fn end(mut self) -> Result<(), Error> {
        match self.next() {
            None => Ok(()),
            Some(_) => Err(self.wrong_arity()),
        }
    }

    /// The rest are options: reads each with `read`, which gets its name; false says that it is
    /// none.
    pub fn options(
        mut self,
        read: impl FnMut(Name, &mut ArgReader<'c>) -> Result<bool, Error>,
    ) -> Result<(), Error> {
        self.options_up_to(None, read)
    }

    /// The same, up to an option with the name `end`, which is left.
    pub fn options_up_to(
        &mut self,
        end: Option<Name>,
        mut read: impl FnMut(Name, &mut ArgReader<'c>) -> Result<bool, Error>,
    ) -> Result<(), Error> {
        loop {
            let before = *self;
            let Some(word) = self.next() else {
                return Ok(());
            };
            if end.is_some_and(|end| Name::read(word.bytes()) == Some(end)) {
                *self = before;
                return Ok(());
            }
            let is_option = match Name::read(word.bytes()) {
                Some(name) => read(name, self)?,
                None => false,
            };
            if !is_option {
                let takes_state = self.spec.grammar.contains("STATE state");
                let is_bare = takes_state && state_of(word.bytes()).is_some();
                let error = if is_bare { Error::BareState } else { Error::UnknownOption };
                return Err(error(word.bytes().to_vec()));
            }
        }
    }

    /// The value of an option, as an argument that a key may be.
    pub fn argument(&mut self, option: &'static str) -> Result<Arg<'c>, Error> {
        self.next().ok_or_else(|| Error::NoValue { option })
    }

    /// The value of an option.
    pub fn value(&mut self, option: &'static str) -> Result<&'c [u8], Error> {
        self.argument(option).map(Arg::bytes)
    }

    /// Whether both values of an option are there, which are called so.
    pub fn pair(&self, option: &'static str, values: &'static str) -> Result<(), Error> {
        if self.remaining() < 2 {
            return Err(Error::NoPair { option, values });
        }
        Ok(())
    }

    /// The value of an option: an integer from `min` to `max`. Not inlined: many options share it.
    #[inline(never)]
    pub fn integer(&mut self, option: &'static str, min: u64, max: u64) -> Result<u64, Error> {
        let number = parse_integer(self.value(option)?);
        let in_range = number.filter(|number| (min..=max).contains(number));
        in_range.ok_or_else(|| Error::NotInRange { option, min, max })
    }

    /// The value of an option: an integer from `min` to the last one of 32 bits.
    pub fn small_integer(&mut self, option: &'static str, min: u64) -> Result<u32, Error> {
        self.integer(option, min, u32::MAX.into()).map(|number| number as u32)
    }

    /// The value of an option: a span of at least `min` milliseconds.
    pub fn millis(&mut self, option: &'static str, min: u64) -> Result<Millis, Error> {
        let max = Millis::MAX.as_u64();
        let ms = self.integer(option, min, max)?;
        Millis::new(ms).ok_or_else(|| Error::NotInRange { option, min, max })
    }

    /// The same, of a span from now on: for a client, it ends before time does.
    pub fn span(&mut self, option: &'static str, min: u64) -> Result<Millis, Error> {
        let span = self.millis(option, min)?;
        let is_checked = self.source == Source::Client && span > SHORT;
        if is_checked && wall_clock().checked_add(span).is_none() {
            return Err(Error::PastTheEnd { option });
        }
        Ok(span)
    }

    /// The value of an option: unix milliseconds.
    pub fn time(&mut self, option: &'static str) -> Result<Time, Error> {
        let max = Time::MAX.unix_ms();
        let unix_ms = self.integer(option, 0, max)?;
        Time::new(unix_ms).ok_or_else(|| Error::NotInRange { option, min: 0, max })
    }

    /// So many values of an option: spans from now on.
    pub fn delays(&mut self, option: &'static str, count: usize) -> Result<Vec<Due>, Error> {
        self.each(count, |args| args.span(option, 0).map(Due::In))
    }

    /// So many values of an option: unix milliseconds.
    pub fn times(&mut self, option: &'static str, count: usize) -> Result<Vec<Due>, Error> {
        self.each(count, |args| args.time(option).map(Due::At))
    }

    /// So many values, with room for all from the start.
    fn each<T>(
        &mut self,
        count: usize,
        mut read: impl FnMut(&mut Self) -> Result<T, Error>,
    ) -> Result<Vec<T>, Error> {
        let mut values = Vec::with_capacity(count.min(self.remaining()));
        for _ in 0..count {
            values.push(read(self)?);
        }
        Ok(values)
    }

    /// An option without a value.
    pub fn flag(&mut self, _option: &'static str) -> Result<(), Error> {
        Ok(())
    }

    /// The value of an option, as `parse` reads it.
    pub fn parsed<T>(
        &mut self,
        option: &'static str,
        parse: impl FnOnce(&'c [u8]) -> Result<T, Error>,
    ) -> Result<T, Error> {
        parse(self.value(option)?)
    }

    /// Several values of an option, as `read` reads them.
    pub fn by<T>(
        &mut self,
        option: &'static str,
        read: impl FnOnce(&'static str, &mut Self) -> Result<T, Error>,
    ) -> Result<T, Error> {
        read(option, self)
    }

    /// The value of an option: a job's id.
    pub fn id(&mut self, option: &'static str) -> Result<Id<'c>, Error> {
        Id::new(self.value(option)?).ok_or_else(|| Error::IdLength)
    }

    /// The value of COUNT.
    pub fn count(&mut self, option: &'static str) -> Result<usize, Error> {
        self.integer(option, 1, u32::MAX.into()).map(|count| count as usize)
    }

    /// The value of ATTEMPTS.
    pub fn attempts(&mut self, option: &'static str) -> Result<Attempts, Error> {
        self.integer(option, 0, u32::MAX.into()).map(|limit| Attempts::new(limit as u32))
    }

    /// The value of PRIORITY.
    pub fn priority(&mut self, option: &'static str) -> Result<u8, Error> {
        self.integer(option, 0, u8::MAX.into()).map(|priority| priority as u8)
    }

    /// The ids behind an option, at least one: all arguments that are left.
    pub fn rest_as_ids(&mut self, option: &'static str) -> Result<Ids<'c>, Error> {
        if self.remaining() == 0 {
            return Err(Error::NoValue { option });
        }
        self.require_ids()
    }

    /// The ids behind an option: at least one, and all arguments up to one of `options`, which the
    /// first one may be.
    pub fn ids_up_to(
        &mut self,
        option: &'static str,
        options: &[&str],
        ids: &mut Vec<Id<'c>>,
    ) -> Result<(), Error> {
        let mut word = Some(self.value(option)?);
        while let Some(bytes) = word {
            ids.push(Id::new(bytes).ok_or_else(|| Error::IdLength)?);
            let is_option =
                |word: &[u8]| options.iter().any(|name| word.eq_ignore_ascii_case(name.as_bytes()));
            let mut ahead = *self;
            word = ahead.next().map(Arg::bytes).filter(|word| !is_option(word));
            if word.is_some() {
                *self = ahead;
            }
        }
        Ok(())
    }

    /// The ids behind an option that says how many there are: none of them twice.
    pub fn counted_ids(&mut self, option: &'static str, max: usize) -> Result<Vec<Id<'c>>, Error> {
        let count = self.integer(option, 1, max as u64)?;
        let mut seen = BTreeSet::new();
        let read = |_| {
            let id = self.id(option)?;
            if !seen.insert(id.bytes()) {
                return Err(Error::NamedTwice { option, id: id.bytes().to_vec() });
            }
            Ok(id)
        };
        (0..count).map(read).collect()
    }

    /// The claims behind an option that says how many there are.
    pub fn counted_claims(&mut self, option: &'static str) -> Result<CountedClaims<'c>, Error> {
        let count = self.integer(option, 1, CLAIMS_MAX)? as usize;
        let (mut claims, args) = (Claims::with_capacity(count), *self);
        if self.remaining() < 2 * count {
            return Err(Error::TooFewClaims { option, count });
        }
        for _ in 0..count {
            claims.push(self.require_claim()?);
        }
        Ok(CountedClaims { claims, args })
    }

    /// The next arguments, so many or as there are.
    pub fn bytes_of_next(mut self, count: usize) -> Vec<&'c [u8]> {
        (0..count).map_while(|_| self.next().map(Arg::bytes)).collect()
    }

    /// The two values of BACKOFF.
    pub fn backoff(&mut self, option: &'static str) -> Result<Backoff, Error> {
        self.pair(option, "base-ms max-ms")?;
        let (base, max) = (self.millis(option, 0)?, self.millis(option, 0)?);
        if base > max {
            return Err(Error::BackoffOrder);
        }
        Ok(Backoff { base, max })
    }

    /// The value of GROUP.
    pub fn group(&mut self, option: &'static str) -> Result<Id<'c>, Error> {
        Id::new(self.value(option)?).ok_or_else(|| Error::GroupLength)
    }

    /// The value of REASON.
    pub fn reason(&mut self, option: &'static str) -> Result<&'c [u8], Error> {
        let reason = self.value(option)?;
        if reason.len() > REASON_BYTES_MAX {
            return Err(Error::ReasonLength);
        }
        Ok(reason)
    }

    /// The value of BODY or RESULT.
    pub fn body(&mut self, option: &'static str) -> Result<&'c [u8], Error> {
        let body = self.value(option)?;
        self.check_body(body)
    }

    /// A body, if it isn't too long for this server.
    pub fn check_body(&self, body: &'c [u8]) -> Result<&'c [u8], Error> {
        let max = config::max_body_bytes();
        if body.len() > max && self.source == Source::Client {
            return Err(Error::BodyLength { max });
        }
        Ok(body)
    }

    /// The value of NOTE.
    pub fn note(&mut self, option: &'static str) -> Result<&'c [u8], Error> {
        let note = self.value(option)?;
        if note.len() > NOTE_BYTES_MAX {
            return Err(Error::NoteLength);
        }
        Ok(note)
    }

    /// The value of STATE.
    pub fn state(&mut self, option: &'static str) -> Result<State, Error> {
        let word = self.value(option)?;
        state_of(word).ok_or_else(|| Error::UnknownState(word.to_vec()))
    }
}

fn state_of(word: &[u8]) -> Option<State> {
    State::ALL.into_iter().find(|state| word.eq_ignore_ascii_case(state.name().as_bytes()))
}

/// No option's name is longer.
const OPTION_BYTES_MAX: usize = 16;

/// The name of an option, which is of letters: all of them in one number, in capitals, and how many
/// they are. So names are compared at once.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Name {
    letters: u128,
    len: usize,
}

impl Name {
    const CAPITALS: u128 = u128::from_le_bytes([!0x20; OPTION_BYTES_MAX]);

    pub const fn of(name: &str) -> Name {
        let (mut letters, mut rest) = (0, name.as_bytes());
        while let [before @ .., last] = rest {
            letters = letters << 8 | *last as u128;
            rest = before;
        }
        Name { letters, len: name.len() }
    }

    /// In capitals. What isn't a letter doesn't become one by that.
    fn read(word: &[u8]) -> Option<Name> {
        let mut letters = [0; OPTION_BYTES_MAX];
        letters.get_mut(..word.len())?.copy_from_slice(word);
        let letters = u128::from_le_bytes(letters) & Name::CAPITALS;
        Some(Name { letters, len: word.len() })
    }
}

/// Takes the value of an option that may be given once.
pub fn once<T>(option: &'static str, place: &mut Option<T>, value: T) -> Result<bool, Error> {
    if place.is_some() {
        return Err(Error::Repeated { option });
    }
    *place = Some(value);
    Ok(true)
}

/// Reads one option, if it is one of these. A row is `"NAME" => place, reader(arguments);`: the
/// place is an `Option`, which is given once, and the reader the method of [`ArgReader`] that reads the
/// value.
macro_rules! option {
    (
        $found:ident, $args:ident,
        { $($name:literal => $place:expr, $read:ident($($argument:expr),*);)* } else $other:expr
    ) => {
        match $found {
            $(found if found == const { $crate::command::arg_reader::Name::of($name) } => {
                let value = $args.$read($name $(, $argument)*)?;
                $crate::command::arg_reader::once($name, &mut $place, value)
            })*
            _ => $other,
        }
    };
}

/// Reads all arguments that are left as options, by such rows; what none of them names is left to
/// `else`, or is an error.
macro_rules! options {
    ($args:expr, { $($rows:tt)* }) => {
        $crate::command::arg_reader::options!($args, { $($rows)* } else |_name, _args| Ok(false))
    };
    ($args:expr, { $($rows:tt)* } else |$found:ident, $rest:ident| $other:expr) => {
        $args.options(|$found, $rest| {
            $crate::command::arg_reader::option!($found, $rest, { $($rows)* } else $other)
        })?
    };
}

pub(super) use {option, options};

/// A lease's number, or `None` for `*`.
#[inline]
fn parse_lease(word: &[u8]) -> Result<Option<Lease>, Error> {
    if word == b"*" {
        return Ok(None);
    }
    let number = parse_integer(word).filter(|number| *number > 0);
    number.map(|number| Some(Lease::new(number))).ok_or_else(|| Error::Lease)
}

/// Digits only, as the server reads integers: no sign, no space, no leading zero.
fn parse_integer(word: &[u8]) -> Option<u64> {
    if word.is_empty() || (word.len() > 1 && word.first() == Some(&b'0')) {
        return None;
    }
    let (first, mut eights) = word.split_at(word.len() % 8);
    let mut number = 0u64;
    for byte in first {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number = number * 10 + u64::from(digit);
    }
    while let Some((eight, rest)) = eights.split_first_chunk() {
        number = number.checked_mul(100_000_000)?.checked_add(eight_digits(*eight)?)?;
        eights = rest;
    }
    Some(number)
}

/// The number of eight digits, all at once: leases have sixteen. (A digit a byte; then two, four and
/// eight digits in one: D. Lemire, "Quickly parsing eight digits", 2018.)
fn eight_digits(word: [u8; 8]) -> Option<u64> {
    const EACH: u64 = 0x0101_0101_0101_0101;
    let digits = u64::from_le_bytes(word) ^ (EACH * u64::from(b'0'));
    // The highest bit of a byte is set, or comes to be, where the byte is no digit.
    if (digits | digits.wrapping_add(EACH * (0x7f - 9))) & (EACH * 0x80) != 0 {
        return None;
    }
    let pairs = (digits * 10 + (digits >> 8)) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs * 100 + (pairs >> 16)) & 0x0000_ffff_0000_ffff;
    Some((fours * 10_000 + (fours >> 32)) & 0xffff_ffff)
}

#[cfg(test)]
mod tests;
