//! What DQ.ALTER will do to a queue, in words, before it is done.

use super::facts;
use super::words::{jobs, number, short, span, span_or};
use crate::bytes::excerpt;
use crate::server::alter::{Backoff, Change, Exit};
use crate::server::queue::{Info, Rate};

/// One setting: what it is now, what it will be, and what that does as things are.
pub struct Effect {
    pub name: &'static str,
    pub option: &'static str,
    pub was: String,
    pub will: String,
    pub words: String,
    /// What it does can't be undone by another change.
    pub is_grave: bool,
}

/// How many dead jobs a DEADKEEP removes at once, and whether all were looked at.
pub type Doomed = Option<(u64, bool)>;

pub fn of(info: &Info, change: &Change, doomed: Doomed) -> Vec<Effect> {
    let mut effects = Vec::new();
    let mut tell = |name, option, was: String, will: String, words: String| {
        effects.push(Effect { name, option, was, will, words, is_grave: false });
    };
    let now = &info.settings;
    if let Some(most) = change.concurrency {
        let words = concurrency(most, info.counts.reserved);
        tell("jobs at a time", "CONCURRENCY", limit(now.concurrency), limit(most), words);
    }
    if let Some(wanted) = &change.rate {
        let words = rate(wanted, info.counts.ready);
        tell("rate", "RATE", rate_or_none(&now.rate), rate_or_none(wanted), words);
    }
    if let Some(most) = change.group_concurrency {
        let words = group_concurrency(most, info.groups);
        let was = limit(now.group_concurrency);
        tell("jobs of a group at a time", "GROUPCONCURRENCY", was, limit(most), words);
    }
    if let Some(wanted) = &change.group_rate {
        let was = rate_or_none(&now.group_rate);
        tell("rate of a group", "GROUPRATE", was, rate_or_none(wanted), group_rate(wanted));
    }
    if let Some(most) = change.max_jobs {
        tell("most jobs", "MAXJOBS", limit(now.max_jobs), limit(most), max_jobs(most, info.jobs));
    }
    if let Some(ms) = change.ttr_ms {
        let words = format!("A worker has {} for the job; then it is handed out again.", span(ms));
        tell("time to run", "TTR", span(now.ttr_ms), span(ms), words);
    }
    if let Some(most) = change.attempts {
        tell("attempts", "ATTEMPTS", limit(now.attempts), limit(most), attempts(most));
    }
    if let Some(wanted) = &change.backoff_ms {
        let was = backoff(&Backoff::of(info));
        tell("backoff", "BACKOFF", was, backoff(wanted), backoff_words(wanted));
    }
    if let Some(ms) = change.keep_ms {
        let words = match ms {
            0 => "A finished job goes at once, and its id is free.".into(),
            ms => format!(
                "A finished job stays for {}, as done; its id is taken until then.",
                span(ms)
            ),
        };
        let was = span_or(now.keep_ms, "not at all");
        tell("finished jobs stay", "KEEP", was, span_or(ms, "not at all"), words);
    }
    if let Some(ms) = change.late_ms {
        let words = match ms {
            0 => "A job waits for a worker for as long as it takes.".into(),
            ms => format!("A job that no worker takes within {} of its time is dead.", span(ms)),
        };
        let was = span_or(now.late_ms, "no limit");
        tell("dead when late by", "LATE", was, span_or(ms, "no limit"), words);
    }
    if let Some(ms) = change.dead_keep_ms {
        let (words, was) =
            (dead_keep(ms, info.counts.dead, doomed), span_or(now.dead_keep_ms, "for ever"));
        let is_grave = ms > 0;
        let will = span_or(ms, "for ever");
        effects.push(Effect {
            name: "dead jobs stay",
            option: "DEADKEEP",
            was,
            will,
            words,
            is_grave,
        });
    }
    if let Some(exit) = &change.sink {
        let (was, will, words) = (stream(&Exit::of(info)), stream(exit), sink(exit, info));
        let is_grave = exit.stream.is_some();
        effects.push(Effect { name: "jobs leave for", option: "SINK", was, will, words, is_grave });
    }
    effects
}

/// What else holds the queue's jobs, whatever is set.
pub fn besides(info: &Info) -> Option<&'static str> {
    info.is_paused
        .then_some("The queue is paused: until it is resumed, nothing is handed out in any case.")
}

fn limit(most: u64) -> String {
    if most == 0 {
        "no limit".into()
    } else {
        number(most)
    }
}

fn rate_or_none(rate: &Rate) -> String {
    if rate.jobs == 0 {
        "no limit".into()
    } else {
        facts::rate(rate)
    }
}

fn concurrency(most: u64, reserved: u64) -> String {
    if most == 0 {
        return "Workers get as many jobs at a time as they ask for.".into();
    }
    let at_a_time = format!("{} at a time; {} reserved now", jobs(most), is_or_are(reserved));
    match reserved.checked_sub(most) {
        None => format!("{at_a_time}, so {} more can be handed out.", number(most - reserved)),
        Some(0) => format!("{at_a_time}, so nothing is handed out until one of them ends."),
        Some(over) => {
            let many = number(over + 1);
            format!("{at_a_time}. They go on; nothing is handed out until {many} of them end.")
        }
    }
}

fn is_or_are(many: u64) -> String {
    format!("{} {}", number(many), if many == 1 { "is" } else { "are" })
}

fn each(rate: &Rate) -> String {
    let apart = span((rate.per_ms / rate.jobs.max(1)).max(1));
    let burst = match rate.burst {
        0 | 1 => String::new(),
        burst => format!(", and up to {} at once after a while without any", number(burst)),
    };
    format!("{} in {}: one each {apart}{burst}", jobs(rate.jobs), span(rate.per_ms))
}

fn rate(wanted: &Rate, ready: u64) -> String {
    if wanted.jobs == 0 {
        return "Ready jobs are handed out as fast as workers take them.".into();
    }
    let waits = u128::from(ready.saturating_sub(wanted.burst.max(1)));
    let takes = waits * u128::from(wanted.per_ms) / u128::from(wanted.jobs);
    let takes = u64::try_from(takes).unwrap_or(u64::MAX);
    let ready = match takes {
        0 => String::new(),
        takes => {
            format!(" For the {} that are ready that takes at least {}.", jobs(ready), span(takes))
        }
    };
    format!("At most {}.{ready}", each(wanted))
}

fn group_concurrency(most: u64, groups: u64) -> String {
    match most {
        0 => "Groups have no such limit of their own.".into(),
        1 => format!(
            "No two jobs of a group are worked on at the same time. Groups there are now: about {}. Jobs \
             without a group aren't limited by it.",
            short(groups)
        ),
        most => format!(
            "{} of each group at a time. Groups there are now: about {}. Jobs without a group aren't \
             limited by it.",
            jobs(most),
            short(groups)
        ),
    }
}

fn group_rate(wanted: &Rate) -> String {
    if wanted.jobs == 0 {
        return "Groups have no rate of their own.".into();
    }
    format!("Of each group at most {}. Jobs without a group aren't limited by it.", each(wanted))
}

fn max_jobs(most: u64, held: u64) -> String {
    let now = format!("The queue has {} in all states together", jobs(held));
    match most.checked_sub(held) {
        _ if most == 0 => format!("{now}, and takes more as long as the server has memory."),
        Some(room) if room > 0 => {
            format!("{now}: it takes {} more, then DQ.ADD is refused (FULL).", number(room))
        }
        _ => {
            let leave = match held - most {
                0 => "one has".into(),
                over => format!("{} have", number(over + 1)),
            };
            format!("{now}. None is removed; DQ.ADD is refused (FULL) until {leave} left.")
        }
    }
}

fn attempts(most: u64) -> String {
    match most {
        0 => "A job that fails is handed out again, as often as it takes.".into(),
        1 => "A job is handed out once; when that fails it is dead.".into(),
        most => format!("A job is handed out up to {} times; then it is dead.", number(most)),
    }
}

fn backoff(backoff: &Backoff) -> String {
    match (backoff.base, backoff.max) {
        (0, _) => "none".into(),
        (base, max) if base == max => span(base),
        (base, max) => format!("{}, doubling to {}", span(base), span(max)),
    }
}

fn backoff_words(backoff: &Backoff) -> String {
    let Backoff { base, max } = *backoff;
    let waits: Vec<String> = (0..4).map(|n| span(base.saturating_mul(1 << n).min(max))).collect();
    match base {
        0 => "A job that fails is handed out again at once.".into(),
        _ if base == max => format!("After each failed attempt a job waits {}.", span(base)),
        _ => {
            format!("After failed attempts a job waits {} … up to {}.", waits.join(", "), span(max))
        }
    }
}

fn dead_keep(ms: u64, dead: u64, doomed: Doomed) -> String {
    if ms == 0 {
        return "Dead jobs stay until they are kicked, deleted or purged.".into();
    }
    let gone = match doomed {
        _ if dead == 0 => "None is dead now.".into(),
        Some((0, true)) => format!("None of the {} dead now has been so long.", number(dead)),
        Some((many, true)) => {
            format!(
                "Of the {} dead now, {} long enough: they go at once.",
                number(dead),
                have_been(many)
            )
        }
        Some((many, false)) => {
            format!(
                "Of the {} dead now, at least {} long enough: they go at once.",
                number(dead),
                have_been(many)
            )
        }
        None => format!("{} dead now.", is_or_are(dead)),
    };
    format!("A job that has been dead for {} is removed, for good. {gone}", span(ms))
}

fn have_been(many: u64) -> String {
    format!("{} {} been", number(many), if many == 1 { "has" } else { "have" })
}

fn stream(exit: &Exit) -> String {
    match &exit.stream {
        None => "workers".into(),
        Some(stream) if exit.maxlen == 0 => format!("the stream {}", excerpt(stream, 100)),
        Some(stream) => {
            format!("the stream {}, about {} entries", excerpt(stream, 100), number(exit.maxlen))
        }
    }
}

fn sink(exit: &Exit, info: &Info) -> String {
    if exit.stream.is_none() {
        return "Jobs wait for workers again. What is in the stream stays there.".into();
    }
    let ready = match info.counts.ready {
        0 => String::new(),
        ready => format!(", the {} that are ready at once", jobs(ready)),
    };
    let trimmed = match exit.maxlen {
        0 => "The stream grows until somebody trims it.",
        _ => "Older entries are trimmed, also those that no consumer has read.",
    };
    format!(
        "Jobs that are due are added to the stream and leave the queue, without a worker{ready}. {trimmed}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::queue::{Counts, Settings};

    fn told(info: &Info, change: Change) -> String {
        let effects = of(info, &change, Some((2, true)));
        effects.into_iter().map(|effect| effect.words).collect::<Vec<_>>().join("|")
    }

    #[test]
    fn concurrency_says_when_the_next_job_goes() {
        for (most, reserved, words) in [
            (5, 7, "5 jobs at a time; 7 are reserved now. They go on; nothing is handed out until 3 of them end."),
            (5, 5, "5 jobs at a time; 5 are reserved now, so nothing is handed out until one of them ends."),
            (1, 0, "1 job at a time; 0 are reserved now, so 1 more can be handed out."),
            (5, 1, "5 jobs at a time; 1 is reserved now, so 4 more can be handed out."),
            (0, 7, "Workers get as many jobs at a time as they ask for."),
        ] {
            assert_eq!(concurrency(most, reserved), words);
        }
    }

    #[test]
    fn rates_say_how_long_the_ready_jobs_take() {
        let rate_of = |jobs, per_ms, burst| Rate { jobs, per_ms, burst };
        assert_eq!(
            rate(&rate_of(10, 1_000, 5), 1_005),
            "At most 10 jobs in 1 s: one each 100 ms, and up to 5 at once after a while without any. \
             For the 1\u{202f}005 jobs that are ready that takes at least 1 min 40 s."
        );
        assert_eq!(rate(&rate_of(1, 60_000, 1), 1), "At most 1 job in 1 min: one each 1 min.");
        assert!(rate(&rate_of(1, u64::MAX, 1), u64::MAX).contains("at least"));
        assert!(rate(&Rate::default(), 5).contains("as fast as workers"));
    }

    #[test]
    fn what_is_full_or_removed_is_said_in_numbers() {
        assert!(max_jobs(1_000, 1_200).contains("refused (FULL) until 201 have left"));
        assert!(max_jobs(1_000, 1_000).contains("until one has left"));
        assert!(max_jobs(1_000, 400).contains("it takes 600 more"));
        assert!(
            dead_keep(5, 9, Some((0, true))).contains("None of the 9 dead now has been so long.")
        );
        let info = Info { counts: Counts { dead: 9, ..Counts::default() }, ..Info::default() };
        let change = Change { dead_keep_ms: Some(86_400_000), ..Change::default() };
        assert_eq!(
            told(&info, change),
            "A job that has been dead for 1 d is removed, for good. Of the 9 dead now, 2 have been \
             long enough: they go at once."
        );
    }

    #[test]
    fn backoff_is_told_by_its_first_waits() {
        let settings = Settings { backoff_base_ms: 5, backoff_max_ms: 9, ..Settings::default() };
        let info = Info { settings, ..Info::default() };
        assert_eq!(backoff(&Backoff { base: 3_000, max: 3_000 }), "3 s");
        let wanted =
            |base, max| Change { backoff_ms: Some(Backoff { base, max }), ..Change::default() };
        assert_eq!(
            told(&info, wanted(1_000, 6_000)),
            "After failed attempts a job waits 1 s, 2 s, 4 s, 6 s … up to 6 s."
        );
        assert_eq!(told(&info, wanted(7_000, 7_000)), "After each failed attempt a job waits 7 s.");
        assert_eq!(told(&info, wanted(0, 0)), "A job that fails is handed out again at once.");
    }
}
