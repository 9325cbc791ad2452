//! A job as DQ.ADD and DQ.DONE take it: `id|* body [option ...]`; and many that are alike.

use super::arg_reader::{option, ArgReader, Name};
use super::edge_options::EdgeOptions;
use super::error::Error;
use super::limits::ADD_MANY_BYTES_MAX;
use super::schedule_options::{word_of, ScheduleOptions};
use crate::queue::{
    Add, AddMany, Due, Id, IfTaken, Millis, NewEdges, NewSchedule, OneOfMany, Starts, Time, Times,
    ADD_MANY_MAX, EDGES_MAX,
};
use crate::services::change::frame::Source;

/// Reads a job with its options, up to an option with the name `end`.
pub fn read<'c>(args: &mut ArgReader<'c>, end: Option<Name>) -> Result<Add<'c>, Error> {
    let (id, body) = id_and_body(args)?;
    let mut add = Add { id, ..Add::nameless(body) };
    if args.remaining() > 0 {
        AddOptions::default().read(args, end, &mut add)?;
    }
    Ok(add)
}

/// Reads `n id|* body [id|* body ...] [option ...]`.
pub fn read_many<'c>(args: &mut ArgReader<'c>) -> Result<AddMany<'c>, Error> {
    let count = args.integer("n", 1, ADD_MANY_MAX as u64)? as usize;
    let mut jobs = Vec::with_capacity(count);
    let mut bytes = 0;
    for position in 0..count {
        let (id, body) = id_and_body(args).map_err(|error| error.of_job(position))?;
        bytes += body.len();
        if bytes > ADD_MANY_BYTES_MAX && args.source() == Source::Client {
            return Err(Error::TooManyBytes);
        }
        jobs.push(OneOfMany { id, body });
    }
    let mut like = Add::nameless(b"");
    let mut options = AddOptions { many: Some(ManyOptions::of(count)), ..AddOptions::default() };
    options.read(args, None, &mut like)?;
    let times = options.times()?;
    let edges = like.edges.as_ref().map_or(0, |edges| edges.after.len() + edges.before.len());
    if count * edges > EDGES_MAX && args.source() == Source::Client {
        return Err(Error::TooManyEdges);
    }
    Ok(AddMany { like, jobs, times })
}

#[inline(always)]
fn id_and_body<'c>(args: &mut ArgReader<'c>) -> Result<(Option<Id<'c>>, &'c [u8]), Error> {
    let id = args.require_id_or_star()?;
    let body = args.require()?.bytes();
    Ok((id, args.check_body(body)?))
}

/// What only many jobs take, instead of a schedule.
struct ManyOptions {
    count: usize,
    delays: Option<Vec<Due>>,
    ats: Option<Vec<Due>>,
    spread: Option<Millis>,
}

impl ManyOptions {
    fn of(count: usize) -> ManyOptions {
        ManyOptions { count, delays: None, ats: None, spread: None }
    }

    fn read(&mut self, name: Name, args: &mut ArgReader) -> Result<bool, Error> {
        let count = self.count;
        option!(name, args, {
            "DELAYS" => self.delays, delays(count);
            "ATS" => self.ats, times(count);
            "SPREAD" => self.spread, span(0);
        } else Ok(false))
    }
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
    many: Option<ManyOptions>,
}

impl<'c> AddOptions<'c> {
    /// Not inlined, so that options are written where they belong and not copied there.
    #[inline(never)]
    fn read(
        &mut self,
        args: &mut ArgReader<'c>,
        end: Option<Name>,
        add: &mut Add<'c>,
    ) -> Result<(), Error> {
        let source = args.source();
        let other = self;
        args.options_up_to(end, |name, args| {
            option!(name, args, {
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
            } else {
                let is_other = match &mut other.many {
                    Some(many) => many.read(name, args)?,
                    None => option!(name, args, { "ENSURE" => other.ensure, flag(); } else {
                        other.schedule.get_or_insert_default().read(name, args)
                    })?,
                };
                Ok(is_other || other.edges.get_or_insert_default().read(name, args)?)
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

    /// When many jobs are due; and that no time is said twice.
    fn times(&mut self) -> Result<Times, Error> {
        let Some(ManyOptions { delays, ats, spread, .. }) = self.many.take() else {
            return Ok(Times::Same);
        };
        let given = [
            ("DELAY", self.delay.is_some()),
            ("AT", self.at.is_some()),
            ("DELAYS", delays.is_some()),
            ("ATS", ats.is_some()),
            ("SPREAD", spread.is_some()),
        ];
        let mut named = given.into_iter().filter(|(_, is_given)| *is_given).map(|(name, _)| name);
        let of_each = delays.or(ats);
        if let (Some(one), Some(other), true) = (named.next(), named.next(), of_each.is_some()) {
            return Err(Error::Exclusive { one, other });
        }
        Ok(match (of_each, spread) {
            (Some(times), _) => Times::Each(times),
            (None, Some(span)) => Times::SpreadOver(span),
            (None, None) => Times::Same,
        })
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
            Some(options) => options.recurrence(source)?,
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
