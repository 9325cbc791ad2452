//! The log: what replicas and the AOF get. A queue's history is a sequence of (time, command). An
//! entry is the command as it was sent, if the queue's clock is already at its time and nothing
//! else needs to be logged with it. Otherwise the entry is
//!
//! ```text
//! DQ.APPLY key unix-ms logged command args…
//! ```
//!
//! with the time, the inputs that aren't in the queue, and the command's name and arguments without
//! the key. `logged` is `check=<hex>`, the queue's checksum before the change. If they differ from
//! those logged last, `,ttr=<ms>,attempts=<n>` with `,backoff=<base>/<max>` unless that is none (the
//! server's defaults), and `,floor=<lease>` follow;
//! and, if the calendar was asked for the next time of a CRON, `,next=<answer>[/<answer>…]`.
//! docs/format.md has the details.

use std::ffi::CStr;
use std::fmt::Write;

use crate::queue::{
    Attempts, Backoff, Circumstances, Defaults, Following, Lease, LogState, Millis, Mode, Pop,
    PopById, Time,
};
use crate::services::key_ref::QueueKey;

/// The command for entries with circumstances, and for a rewritten AOF.
pub const APPLY: &CStr = c"DQ.APPLY";

/// The command for deliveries.
pub const POP: &CStr = c"DQ.POP";

/// The command for jobs that a POP has finished before it took others.
pub const FINISH: &CStr = c"DQ.FINISH";

/// The command for jobs that were given back.
pub const RELEASE: &CStr = c"DQ.RELEASE";

/// The arguments of a DQ.POP.
pub fn pop_args(pop: &Pop) -> Vec<String> {
    let mut args = vec!["COUNT".to_string(), pop.count.to_string()];
    if let Some(ttr) = pop.ttr {
        args.extend(["TTR".to_string(), ttr.as_u64().to_string()]);
    }
    if pop.mode == Mode::NoAck {
        args.push("NOACK".to_string());
    }
    args
}

/// The arguments of a POP by id. ID precedes each id, so later options can't be mistaken for ids.
pub fn pop_by_id_args<'w>(pop: &PopById<'w>, ttr: &'w str) -> Vec<&'w [u8]> {
    // One constant for all ids, so that the server creates one string for it.
    const ID: &[u8] = b"ID";
    let mut args: Vec<&[u8]> = pop.ids.iter().flat_map(|id| [ID, id.bytes()]).collect();
    if pop.ttr.is_some() {
        args.extend([b"TTR", ttr.as_bytes()]);
    }
    if pop.mode == Mode::NoAck {
        args.push(b"NOACK");
    }
    args
}

/// A change that no client's command makes: DQ.APPLY alone knows its entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Internal {
    /// Removes jobs: their KEEP or DEADKEEP is over, or a purge chose them. Without ids, groups
    /// without jobs.
    Forget,
    /// Jobs have died by time. Without ids, a slice of what is pending is carried out.
    Settle,
    /// A sink passes over runs of schedules.
    PassOver,
    /// Dead jobs come due evenly over a span: the span in milliseconds, then their ids.
    KickSpread,
}

impl Internal {
    pub fn name(self) -> &'static CStr {
        match self {
            Internal::Forget => c"FORGET",
            Internal::Settle => c"SETTLE",
            Internal::PassOver => c"PASSOVER",
            Internal::KickSpread => c"KICKSPREAD",
        }
    }

    pub fn called(name: &[u8]) -> Option<Internal> {
        let all = [Internal::Forget, Internal::Settle, Internal::PassOver, Internal::KickSpread];
        all.into_iter().find(|entry| name.eq_ignore_ascii_case(entry.name().to_bytes()))
    }
}

/// The form in which a change is logged.
#[derive(Clone, Copy)]
pub enum LogForm<'w> {
    /// The command that is being executed, as it was sent.
    AsSent,
    /// Another command with the same outcome, and its arguments after the key.
    Command(&'w CStr, &'w [&'w [u8]]),
    /// An internal change, and its arguments.
    Internal(Internal, &'w [&'w [u8]]),
}

/// Logs a change that was made under these circumstances and with these answers of the calendar.
/// `before` is the log state of the queue before it.
pub fn write(
    key: &impl QueueKey,
    before: &LogState,
    circumstances: &Circumstances,
    answers: &[Following],
    log_as: LogForm,
) {
    let needs_no_more = answers.is_empty() && before.implies(circumstances);
    let apply = |name: &CStr, args: &[&[u8]]| {
        let time = circumstances.now.unix_ms().to_string();
        let logged = logged(before, circumstances, answers);
        let mut all: Vec<&[u8]> = vec![time.as_bytes(), logged.as_bytes(), name.to_bytes()];
        all.extend(args);
        key.replicate_args(APPLY, &all);
    };
    match log_as {
        LogForm::AsSent if needs_no_more => key.replicate_as_sent(),
        LogForm::AsSent => {
            let logged = logged(before, circumstances, answers);
            key.replicate_sent(APPLY, circumstances.now.unix_ms(), &logged);
        }
        LogForm::Command(name, args) if needs_no_more => key.replicate_args(name, args),
        LogForm::Command(name, args) => apply(name, args),
        LogForm::Internal(entry, args) => apply(entry.name(), args),
    }
}

fn logged(before: &LogState, circumstances: &Circumstances, answers: &[Following]) -> String {
    let mut logged = format!("check={:x}", before.check.0);
    let Defaults { ttr, attempts, backoff } = circumstances.defaults;
    if circumstances.defaults != before.defaults {
        // Writing to memory can't fail.
        let _ = write!(logged, ",ttr={},attempts={}", ttr.as_u64(), attempts.limit());
        if !backoff.is_none() {
            let _ = write!(logged, ",backoff={}/{}", backoff.base.as_u64(), backoff.max.as_u64());
        }
    }
    if circumstances.lease_floor > Lease::default() {
        let _ = write!(logged, ",floor={}", circumstances.lease_floor.number());
    }
    for (position, answer) in answers.iter().enumerate() {
        logged.push_str(if position == 0 { ",next=" } else { "/" });
        let _ = match answer.next {
            Some(next) => write!(logged, "{}", next.unix_ms()),
            None => write!(logged, "-"),
        };
        if answer.missed > 0 {
            let _ = write!(logged, "+{}", answer.missed);
        }
    }
    logged
}

/// An answer of the calendar: a time or `-`, and the number of missed occurrences.
fn answer(word: &str) -> Option<Following> {
    let (next, missed) = match word.split_once('+') {
        Some((next, missed)) => (next, u32::try_from(number(missed.as_bytes())?).ok()?),
        None => (word, 0),
    };
    let next = match next {
        "-" => None,
        time => Some(Time::new(number(time.as_bytes())?)?),
    };
    Some(Following { next, missed })
}

/// The default backoff: its base and its max.
fn backoff_of(word: &str) -> Option<Backoff> {
    let (base, max) = word.split_once('/')?;
    let millis = |word: &str| Millis::new(number(word.as_bytes())?);
    Some(Backoff { base: millis(base)?, max: millis(max)? }).filter(|it| it.base <= it.max)
}

/// The inputs that a log entry carries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoggedCircumstances {
    pub time: Time,
    pub check: u64,
    defaults: Option<Defaults>,
    /// Zero if the entry has none.
    pub lease_floor: Lease,
    /// The calendar's.
    pub answers: Vec<Following>,
}

impl LoggedCircumstances {
    /// `None` if this version can't read it.
    pub fn parse(time: &[u8], logged: &[u8]) -> Option<LoggedCircumstances> {
        let mut parsed = LoggedCircumstances {
            time: Time::new(number(time)?)?,
            ..LoggedCircumstances::default()
        };
        let (mut ttr, mut attempts, mut backoff, mut has_check) = (None, None, None, false);
        for field in std::str::from_utf8(logged).ok()?.split(',') {
            let (name, value) = field.split_once('=')?;
            match name {
                "check" => {
                    parsed.check = u64::from_str_radix(value, 16).ok()?;
                    has_check = true;
                }
                "ttr" => ttr = Some(Millis::new(number(value.as_bytes())?)?),
                "attempts" => attempts = Some(Attempts::new(value.parse().ok()?)),
                "backoff" => backoff = Some(backoff_of(value)?),
                "floor" => {
                    let lease = Lease::new(number(value.as_bytes())?);
                    parsed.lease_floor = Some(lease).filter(|lease| *lease < Lease::MAX)?;
                }
                "next" => parsed.answers = value.split('/').map(answer).collect::<Option<_>>()?,
                _ => return None,
            }
        }
        parsed.defaults = match (ttr, attempts) {
            (Some(ttr), Some(attempts)) => {
                Some(Defaults { ttr, attempts, backoff: backoff.unwrap_or_default() })
            }
            (None, None) if backoff.is_none() => None,
            _ => return None,
        };
        has_check.then_some(parsed)
    }

    /// The inputs for replaying this entry. Defaults that it doesn't give come from the queue.
    pub fn circumstances(&self, log_state: &LogState) -> Circumstances {
        Circumstances {
            now: self.time,
            defaults: self.defaults.unwrap_or(log_state.defaults),
            lease_floor: self.lease_floor,
        }
    }
}

/// Parses a number as the log writes it: digits only.
pub fn number(digits: &[u8]) -> Option<u64> {
    let is_plain = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    is_plain.then(|| std::str::from_utf8(digits).ok()?.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::Checksum;

    fn defaults(ttr: u64, attempts: u32, backoff: Backoff) -> Defaults {
        Defaults { ttr: Millis::new(ttr).unwrap(), attempts: Attempts::new(attempts), backoff }
    }

    fn log_state() -> LogState {
        let defaults = defaults(60_000, 25, Backoff::NONE);
        LogState { clock: Time::new(1_000).unwrap(), defaults, check: Checksum(0xbeef) }
    }

    #[test]
    fn an_entry_tells_what_the_queue_does_not_know() {
        let before = log_state();
        let now = Time::new(1_001).unwrap();
        let same = Circumstances { now, defaults: before.defaults, lease_floor: Lease::default() };
        let others = Circumstances {
            now,
            defaults: defaults(5, 0, Backoff::NONE),
            lease_floor: Lease::new(77),
        };
        let span = |ms| Millis::new(ms).unwrap();
        let backoff = Backoff { base: span(1_000), max: span(600_000) };
        let with_backoff = Circumstances { defaults: defaults(5, 0, backoff), ..others };
        let answers = [
            Following { next: Time::new(60_000), missed: 0 },
            Following { next: Time::new(90_000), missed: 3 },
            Following::default(),
        ];
        assert_eq!(logged(&before, &same, &[]), "check=beef");
        assert_eq!(logged(&before, &same, &answers), "check=beef,next=60000/90000+3/-");
        assert_eq!(logged(&before, &others, &[]), "check=beef,ttr=5,attempts=0,floor=77");
        assert_eq!(
            logged(&before, &with_backoff, &[]),
            "check=beef,ttr=5,attempts=0,backoff=1000/600000,floor=77"
        );
        for circumstances in [same, others, with_backoff] {
            let read = LoggedCircumstances::parse(
                b"1001",
                logged(&before, &circumstances, &answers).as_bytes(),
            )
            .unwrap();
            assert_eq!((read.check, read.circumstances(&before)), (0xbeef, circumstances));
            assert_eq!(read.answers, answers);
        }
    }

    #[test]
    fn what_this_version_does_not_know_is_refused() {
        for logged in [
            "",
            "check",
            "check=",
            "check=xyz",
            "ttr=5,attempts=1",
            "check=1,ttr=5",
            "check=1,new=1",
            "check=1,backoff=1/2",
            "check=1,ttr=5,attempts=1,backoff=1",
            "check=1,ttr=5,attempts=1,backoff=1/",
            "check=1,ttr=5,attempts=1,backoff=2/1",
            "check=1,ttr=5,attempts=1,backoff=1/281474976710656",
            "check=1,next=",
            "check=1,next=5/",
            "check=1,next=+1",
            "check=1,next=5+",
            "check=1,next=281474976710656",
        ] {
            assert_eq!(LoggedCircumstances::parse(b"1", logged.as_bytes()), None, "{logged}");
        }
        for time in ["", "-1", "+1", "1 ", "281474976710656"] {
            assert_eq!(LoggedCircumstances::parse(time.as_bytes(), b"check=1"), None, "{time}");
        }
        assert_eq!(LoggedCircumstances::parse(b"1", b"check=1,floor=9007199254740991"), None);
    }
}
