//! What the rows of the table do. Bodies are of 100 bytes, ids and keys of 16, one key, one
//! connection.

use std::ops::Range;

use anyhow::{ensure, Result};

use super::driver::Driver;
use crate::wire::{encode, Reply};

/// How many keys, jobs or elements there are before the count begins, and how many commands' worth
/// is counted: from N to 2 N, every table that doubles does so once, and so its growth is shared
/// out fairly.
pub const N: usize = 20_480;
const BODY: [u8; 100] = [b'b'; 100];
const BATCH: usize = 16;
const HUNDRED: usize = 100;

pub struct Workload {
    /// As the ceilings and JSON name it.
    pub name: &'static str,
    pub title: &'static str,
    /// Jobs that one command is about.
    pub jobs: usize,
    kind: Kind,
    /// What is in the queue besides, before the count begins.
    crowd: Option<Crowd>,
    /// Before anything else.
    first: Option<&'static [&'static [u8]]>,
}

/// Many ready jobs, in groups or without (0).
#[derive(Clone, Copy)]
struct Crowd {
    jobs: usize,
    groups: usize,
}

#[derive(Clone, Copy)]
enum Kind {
    Ping,
    Set,
    StreamAdd,
    SortedSetAdd,
    Add,
    /// Many in one command, at once, or each with its DELAY drawn over an hour.
    AddMany,
    AddManyDrawn,
    AddDelayed,
    AddDrawn,
    AddEvery,
    AddCron,
    AddToGroups,
    AddAfter,
    Pop,
    Finish,
    /// As many are finished as are taken.
    PopFinish,
    /// Of jobs that another one waits for, each: it goes on waiting, or is ready then.
    FinishEdge,
    FinishLastEdge,
}

const fn single(name: &'static str, title: &'static str, kind: Kind) -> Workload {
    batches(name, title, kind, 1)
}

const fn batches(name: &'static str, title: &'static str, kind: Kind, jobs: usize) -> Workload {
    Workload { name, title, jobs, kind, crowd: None, first: None }
}

const fn in_crowd(name: &'static str, title: &'static str, jobs: usize, groups: usize) -> Workload {
    let crowd = Some(Crowd { jobs: 1_000_000, groups });
    Workload { name, title, jobs, kind: Kind::Pop, crowd, first: None }
}

const fn limited(name: &'static str, title: &'static str, jobs: usize) -> Workload {
    let first: Option<&[&[u8]]> =
        Some(&[b"DQ.ALTER", b"queue", b"CONCURRENCY", b"1000000", b"RATE", b"1000000", b"1"]);
    Workload { name, title, jobs, kind: Kind::Pop, crowd: None, first }
}

pub const WORKLOADS: [Workload; 17] = [
    single("ping", "PING", Kind::Ping),
    single("set", "SET", Kind::Set),
    single("xadd", "XADD", Kind::StreamAdd),
    single("zadd", "ZADD", Kind::SortedSetAdd),
    single("add", "DQ.ADD", Kind::Add),
    single("add-delay-ttr", "DQ.ADD with DELAY and TTR", Kind::AddDelayed),
    single("add-drawn", "… with DELAY drawn over an hour", Kind::AddDrawn),
    batches("madd-16", "DQ.MADD of 16, a job", Kind::AddMany, BATCH),
    batches("madd-100", "DQ.MADD of 100, a job", Kind::AddMany, HUNDRED),
    batches("madd-16-drawn", "… 16 with DELAYS drawn over an hour", Kind::AddManyDrawn, BATCH),
    batches("madd-100-drawn", "… 100 with DELAYS drawn over an hour", Kind::AddManyDrawn, HUNDRED),
    single("pop", "DQ.POP", Kind::Pop),
    single("finish", "DQ.FINISH", Kind::Finish),
    batches("pop-16", "DQ.POP COUNT 16, a job", Kind::Pop, BATCH),
    batches("finish-16", "DQ.FINISH of 16, a job", Kind::Finish, BATCH),
    single("pop-finish", "DQ.POP FINISH 1", Kind::PopFinish),
    batches("pop-16-finish-16", "DQ.POP COUNT 16 FINISH 16, a job", Kind::PopFinish, BATCH),
];

/// What schedules, groups and limits cost. Counted only where they are asked for: a million jobs
/// take a server under callgrind half a minute to add.
pub const BY_NAME: [Workload; 12] = [
    single("add-every", "DQ.ADD with EVERY", Kind::AddEvery),
    single("add-cron", "DQ.ADD with CRON and TZ", Kind::AddCron),
    single("add-to-groups", "DQ.ADD, 1,000 groups", Kind::AddToGroups),
    single("add-after", "DQ.ADD with AFTER", Kind::AddAfter),
    single("finish-edge", "DQ.FINISH, another job waits for it", Kind::FinishEdge),
    single("finish-last-edge", "DQ.FINISH, another job is ready then", Kind::FinishLastEdge),
    limited("pop-limited", "DQ.POP under CONCURRENCY and RATE", 1),
    limited("pop-16-limited", "DQ.POP COUNT 16 under CONCURRENCY and RATE, a job", BATCH),
    in_crowd("pop-of-million", "DQ.POP, a million jobs", 1, 0),
    in_crowd("pop-of-groups", "DQ.POP, a million jobs in 100,000 groups", 1, 100_000),
    in_crowd("pop-16-of-million", "DQ.POP COUNT 16 of a million, a job", BATCH, 0),
    in_crowd("pop-16-of-groups", "DQ.POP COUNT 16 of a million in groups, a job", BATCH, 100_000),
];

/// The row that others are multiples of.
pub const REFERENCE: &str = "set";

impl Workload {
    /// Whether the floor can do the same: it has no groups, limits, schedules and edges.
    pub fn has_floor(&self) -> bool {
        let is_plain = self.crowd.is_none() && self.first.is_none();
        is_plain
            && matches!(
                self.kind,
                Kind::Add
                    | Kind::AddMany
                    | Kind::AddManyDrawn
                    | Kind::AddDelayed
                    | Kind::AddDrawn
                    | Kind::Pop
                    | Kind::Finish
            )
    }

    /// Brings the server to where the count begins, and returns the commands to count.
    pub fn prepare(&self, driver: &mut Driver) -> Result<Vec<Vec<u8>>> {
        if let Some(words) = self.first {
            driver.run(&[command(words)], 1)?;
        }
        if let Some(crowd) = self.crowd {
            for start in (0..crowd.jobs).step_by(N) {
                let some = start..crowd.jobs.min(start + N);
                driver.run(&some.map(|number| crowd.add(number)).collect::<Vec<_>>(), 1)?;
            }
            driver.run(&self.commands(0, &[]), self.jobs)?;
            return Ok(self.commands(N, &[]));
        }
        let first = match self.kind {
            Kind::Pop
            | Kind::Finish
            | Kind::PopFinish
            | Kind::FinishEdge
            | Kind::FinishLastEdge => 0,
            _ => {
                driver.run(&self.commands(0, &[]), self.jobs)?;
                return Ok(self.commands(N, &[]));
            }
        };
        let is_both = matches!(self.kind, Kind::PopFinish);
        for start in (first..if is_both { 4 * N } else { 2 * N }).step_by(N) {
            driver
                .run(&(start..start + N).map(|number| add(number, &[])).collect::<Vec<_>>(), 1)?;
        }
        if let Kind::FinishEdge | Kind::FinishLastEdge = self.kind {
            let more: &[&[u8]] = if let Kind::FinishEdge = self.kind { &[b"HOLD"] } else { &[] };
            driver.run(&(0..2 * N).map(|number| add_after(number, more)).collect::<Vec<_>>(), 1)?;
        }
        match self.kind {
            Kind::Pop => {
                driver.run(&self.commands(0, &[]), self.jobs)?;
                Ok(self.commands(N, &[]))
            }
            _ => {
                let deliveries = take_all(driver)?;
                driver.run(&self.commands(0, &deliveries[..N]), self.jobs)?;
                Ok(self.commands(N, &deliveries[N..]))
            }
        }
    }

    /// The jobs of each command, the last one's fewer.
    fn ranges(&self, first: usize) -> impl Iterator<Item = Range<usize>> + '_ {
        let end = first + N;
        (first..end).step_by(self.jobs).map(move |start| start..end.min(start + self.jobs))
    }

    fn commands(&self, first: usize, deliveries: &[Delivery]) -> Vec<Vec<u8>> {
        let count = self.jobs.to_string();
        let each_job = |make: &dyn Fn(usize) -> Vec<u8>| (first..first + N).map(make).collect();
        let each_batch = |make: &dyn Fn(usize) -> Vec<u8>| (0..N / self.jobs).map(make).collect();
        let drawn = |number| fastrand::Rng::with_seed(number as u64).u64(1..=3_600_000).to_string();
        match self.kind {
            Kind::Ping => each_job(&|_| command(&[b"PING"])),
            Kind::Set => each_job(&|number| command(&[b"SET", &id(number), &BODY])),
            Kind::StreamAdd => each_job(&|_| command(&[b"XADD", b"queue", b"*", b"body", &BODY])),
            Kind::SortedSetAdd => each_job(&|number| {
                let score = (1_800_000_000_000 + number as u64).to_string();
                command(&[b"ZADD", b"queue", score.as_bytes(), &id(number)])
            }),
            Kind::Add => each_job(&|number| add(number, &[])),
            Kind::AddDelayed => {
                each_job(&|number| add(number, &[b"DELAY", b"3600000", b"TTR", b"30000"]))
            }
            Kind::AddDrawn => each_job(&|number| {
                add(number, &[b"DELAY", drawn(number).as_bytes(), b"TTR", b"30000"])
            }),
            Kind::AddMany => self.ranges(first).map(|numbers| add_many(numbers, &[])).collect(),
            Kind::AddManyDrawn => {
                let of_range = |numbers: Range<usize>| {
                    let delays: Vec<String> = numbers.clone().map(drawn).collect();
                    let mut options: Vec<&[u8]> = vec![b"DELAYS"];
                    options.extend(delays.iter().map(|delay| delay.as_bytes()));
                    options.extend([&b"TTR"[..], b"30000"]);
                    add_many(numbers, &options)
                };
                self.ranges(first).map(of_range).collect()
            }
            Kind::AddEvery => each_job(&|number| add(number, &[b"EVERY", b"3600000"])),
            Kind::AddCron => {
                each_job(&|number| add(number, &[b"CRON", b"30 2 * * *", b"TZ", b"Europe/Berlin"]))
            }
            Kind::AddToGroups => each_job(&|number| {
                add(number, &[b"GROUP", format!("customer:{}", number % 1_000).as_bytes()])
            }),
            Kind::Pop if self.jobs == 1 => each_batch(&|_| command(&[b"DQ.POP", b"queue"])),
            Kind::Pop => {
                each_batch(&|_| command(&[b"DQ.POP", b"queue", b"COUNT", count.as_bytes()]))
            }
            // A chain: each waits for the one before.
            Kind::AddAfter => each_job(&|number| match number {
                0 => add(number, &[]),
                _ => add(number, &[b"AFTER", b"1", &id(number - 1)]),
            }),
            Kind::Finish | Kind::FinishEdge | Kind::FinishLastEdge => {
                deliveries.chunks(self.jobs).map(finish).collect()
            }
            Kind::PopFinish => deliveries.chunks(self.jobs).map(pop_finish).collect(),
        }
    }
}

impl Crowd {
    fn add(self, number: usize) -> Vec<u8> {
        match number.checked_rem(self.groups) {
            None => add(number, &[]),
            Some(group) => add(number, &[b"GROUP", format!("customer:{group}").as_bytes()]),
        }
    }
}

struct Delivery {
    id: Vec<u8>,
    lease: Vec<u8>,
}

/// Hands out all jobs.
fn take_all(driver: &mut Driver) -> Result<Vec<Delivery>> {
    let pop = command(&[b"DQ.POP", b"queue", b"COUNT", b"16"]);
    let mut deliveries = Vec::with_capacity(2 * N);
    for _ in 0..2 * N / BATCH {
        for job in driver.call(&pop, BATCH)?.array()? {
            let mut fields = job.array()?.into_iter();
            let (Some(Reply::Bulk(id)), Some(_), Some(Reply::Integer(lease))) =
                (fields.next(), fields.next(), fields.next())
            else {
                anyhow::bail!("DQ.POP replied otherwise than [id, body, lease, attempt]");
            };
            deliveries.push(Delivery { id, lease: lease.to_string().into_bytes() });
        }
    }
    ensure!(
        deliveries.len() == 2 * N,
        "{} jobs were handed out instead of {}",
        deliveries.len(),
        2 * N
    );
    Ok(deliveries)
}

fn claims(deliveries: &[Delivery]) -> impl Iterator<Item = &[u8]> {
    deliveries.iter().flat_map(|delivery| [&*delivery.id, &*delivery.lease])
}

fn finish(deliveries: &[Delivery]) -> Vec<u8> {
    let mut words: Vec<&[u8]> = vec![b"DQ.FINISH", b"queue"];
    words.extend(claims(deliveries));
    command(&words)
}

/// These are finished, and as many others taken.
fn pop_finish(deliveries: &[Delivery]) -> Vec<u8> {
    let count = deliveries.len().to_string();
    let mut words: Vec<&[u8]> = vec![b"DQ.POP", b"queue"];
    if deliveries.len() > 1 {
        words.extend([b"COUNT", count.as_bytes()]);
    }
    words.extend([b"FINISH", count.as_bytes()]);
    words.extend(claims(deliveries));
    command(&words)
}

fn add(number: usize, options: &[&[u8]]) -> Vec<u8> {
    let id = id(number);
    let mut words: Vec<&[u8]> = vec![b"DQ.ADD", b"queue", &id, &BODY];
    words.extend(options);
    command(&words)
}

fn add_many(numbers: Range<usize>, options: &[&[u8]]) -> Vec<u8> {
    let count = numbers.len().to_string();
    let ids: Vec<Vec<u8>> = numbers.map(id).collect();
    let mut words: Vec<&[u8]> = vec![b"DQ.MADD", b"queue", count.as_bytes()];
    words.extend(ids.iter().flat_map(|id| [&id[..], &BODY]));
    words.extend(options);
    command(&words)
}

/// A job that waits for this one.
fn add_after(number: usize, options: &[&[u8]]) -> Vec<u8> {
    let id = id(number);
    let other = format!("two:{number:012}");
    let mut words: Vec<&[u8]> =
        vec![b"DQ.ADD", b"queue", other.as_bytes(), &BODY, b"AFTER", b"1", &id];
    words.extend(options);
    command(&words)
}

fn id(number: usize) -> Vec<u8> {
    format!("job:{number:012}").into_bytes()
}

fn command(words: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::new();
    encode(&mut out, words);
    out
}
