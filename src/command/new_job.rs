//! A job as DQ.ADD and DQ.DONE take it: `id|* body [option ...]`.

use super::arg_reader::{option, ArgReader, Name};
use super::edge_options::EdgeOptions;
use super::error::Error;
use super::schedule_options::{word_of, ScheduleOptions};
use crate::queue::{Add, Due, Id, IfTaken, Millis, NewEdges, NewSchedule, Starts, Time};
use crate::services::change::frame::Source;

/// Reads a job with its options, up to an option with the name `end`.
pub fn read<'c>(words: &mut ArgReader<'c>, end: Option<Name>) -> Result<Add<'c>, Error> {
    let id = match words.require()?.bytes() {
        b"*" => None,
        id => Some(Id::new(id).ok_or(Error::IdLength)?),
    };
    let body = words.require()?.bytes();
    let mut add = Add { id, ..Add::nameless(words.check_body(body)?) };
    if words.remaining() > 0 {
        AddOptions::read(words, end, &mut add)?;
    }
    Ok(add)
}

/// What is said beside the job's own terms.
#[derive(Default)]
struct AddOptions<'c> {
    delay: Option<Millis>,
    at: Option<Time>,
    nx: Option<()>,
    replace: Option<()>,
    ensure: Option<()>,
    edges: Option<Box<EdgeOptions<'c>>>,
    schedule: Option<Box<ScheduleOptions>>,
}

impl<'c> AddOptions<'c> {
    /// Not inlined, so that options are written where they belong and not copied there.
    #[inline(never)]
    fn read(words: &mut ArgReader<'c>, end: Option<Name>, add: &mut Add<'c>) -> Result<(), Error> {
        let source = words.source();
        let mut other = AddOptions::default();
        words.options_up_to(end, |name, words| {
            option!(name, words, {
                "DELAY" => other.delay, span(0);
                "AT" => other.at, time();
                "TTR" => add.ttr, millis(1);
                "PRIORITY" => add.priority, priority();
                "ATTEMPTS" => add.attempts, attempts();
                "BACKOFF" => add.backoff, backoff();
                "TTL" => add.ttl, millis(1);
                "KEEP" => add.keep, millis(0);
                "LATE" => add.late, millis(0);
                "GROUP" => add.group, group();
                "NX" => other.nx, flag();
                "REPLACE" => other.replace, flag();
                "ENSURE" => other.ensure, flag();
            } else {
                Ok(other.schedule.get_or_insert_default().read(name, words)?
                    || other.edges.get_or_insert_default().read(name, words)?)
            })
        })?;
        add.due = other.due()?;
        add.if_taken = other.if_taken()?;
        add.schedule = other.schedule(add, source)?;
        add.edges = other.edges(add)?;
        Ok(())
    }

    fn due(&self) -> Result<Due, Error> {
        match (self.at, self.delay) {
            (Some(_), Some(_)) => Err(Error::Exclusive { one: "DELAY", other: "AT" }),
            (Some(time), None) => Ok(Due::At(time)),
            (None, delay) => Ok(Due::In(delay.unwrap_or_default())),
        }
    }

    fn if_taken(&self) -> Result<IfTaken, Error> {
        match (self.nx, self.replace, self.ensure) {
            (Some(()), Some(()), _) => Err(Error::Exclusive { one: "NX", other: "REPLACE" }),
            (Some(()), None, Some(())) => Err(Error::Exclusive { one: "NX", other: "ENSURE" }),
            (None, Some(()), Some(())) => Err(Error::Exclusive { one: "REPLACE", other: "ENSURE" }),
            (None, Some(()), None) => Ok(IfTaken::Replace),
            (None, None, Some(())) => Ok(IfTaken::Ensure),
            (Some(()), None, None) => Ok(IfTaken::Leave),
            (None, None, None) => Ok(IfTaken::Refuse),
        }
    }

    /// What the job waits for, if it waits; and that nothing is said with it that makes no sense.
    fn edges(&mut self, add: &Add) -> Result<Option<Box<NewEdges<'c>>>, Error> {
        let Some(options) = self.edges.take() else {
            return Ok(None);
        };
        if let (Some(option), Some(_)) = (options.first_given(), &add.schedule) {
            return Err(Error::NotWithSchedule { option });
        }
        options.edges()
    }

    fn starts(&self) -> Starts {
        match (self.at, self.delay) {
            (Some(time), _) => Starts::At(time),
            (None, Some(delay)) => Starts::In(delay),
            (None, None) => Starts::ByItself,
        }
    }

    /// How the job comes back, if it does; and that nothing is said with it that makes no sense.
    fn schedule(&self, add: &Add, source: Source) -> Result<Option<Box<NewSchedule>>, Error> {
        let recurrence = match &self.schedule {
            Some(words) => words.recurrence(source)?,
            None => None,
        };
        let Some(rule) = recurrence else {
            return match self.ensure {
                Some(()) => Err(Error::NeedsSchedule { option: "ENSURE" }),
                None => Ok(None),
            };
        };
        let excluded = [("TTL", add.ttl.is_some()), ("KEEP", add.keep.is_some())];
        if let Some((option, _)) = excluded.into_iter().find(|(_, is_given)| *is_given) {
            return Err(Error::NotWithSchedule { option });
        }
        if add.id.is_none() {
            return Err(Error::ScheduleNeedsId { option: word_of(&rule) });
        }
        Ok(Some(Box::new(NewSchedule { rule, starts: self.starts() })))
    }
}
