//! Words of the sessions in `script.rs` that say much.

use super::numbers::{number, shown};
use super::rounds::schedule_of;
use super::*;

pub fn new_job<'w>(words: &[&'w str]) -> Add<'w> {
    let mut add = Add::plain(id("x"), b"x");
    add.id = (words[1] != "*").then(|| id(words[1]));
    let mut backoff = Backoff::NONE;
    let mut due = None;
    let mut edges = NewEdges::default();
    for word in &words[2..] {
        match word.split_once('=') {
            Some(("every" | "cron" | "tz" | "misfire" | "jitter" | "runs" | "until", _)) => (),
            Some(("", time)) => due = Some(Due::At(at(number(time)))),
            Some(("ttr", ttr)) => add.ttr = Some(span(number(ttr))),
            Some(("tries", limit)) => add.attempts = Some(Attempts::new(number(limit) as u32)),
            Some(("base", base)) => backoff.base = span(number(base)),
            Some(("max", max)) => backoff.max = span(number(max)),
            Some(("ttl", ttl)) => add.ttl = Some(span(number(ttl))),
            Some(("keep", keep)) => add.keep = Some(span(number(keep))),
            Some(("late", late)) => add.late = Some(span(number(late))),
            Some(("group", name)) => add.group = Some(id(name)),
            Some(("prio", priority)) => add.priority = Some(number(priority) as u8),
            Some(("after", names)) => edges.after = names.split(',').map(id).collect(),
            Some(("before", names)) => edges.before = names.split(',').map(id).collect(),
            Some(("body", text)) => add.body = text.as_bytes(),
            None if *word == "RUN" => edges.on_dead = OnDead::Run,
            None if *word == "HOLD" => edges.is_on_hold = true,
            None if *word == "REPLACE" => add.if_taken = IfTaken::Replace,
            None if *word == "NX" => add.if_taken = IfTaken::Leave,
            None if *word == "ENSURE" => add.if_taken = IfTaken::Ensure,
            None if word.starts_with('+') => due = Some(Due::In(span(number(&word[1..])))),
            _ => panic!("{word} is nothing that ADD knows"),
        }
    }
    add.backoff = (backoff != Backoff::NONE).then_some(backoff);
    add.due = due.unwrap_or(add.due);
    add.schedule = schedule_of(words, due);
    let has_edges = edges.is_on_hold || !edges.after.is_empty() || !edges.before.is_empty();
    add.edges = has_edges.then(|| Box::new(edges));
    add
}

/// The words without BODY and NOTE; and these.
pub fn checkpoint<'w>(words: &[&'w str]) -> (Vec<&'w str>, Checkpoint<'w>) {
    let find = |name| words.iter().find_map(|word| word.strip_prefix(name)).map(str::as_bytes);
    let checkpoint = Checkpoint { body: find("BODY="), note: find("NOTE=") };
    let is_other = |word: &&&str| !word.starts_with("BODY=") && !word.starts_with("NOTE=");
    (words.iter().filter(is_other).copied().collect(), checkpoint)
}

pub fn text(text: Option<&[u8]>) -> String {
    text.map_or("nil".into(), |text| String::from_utf8_lossy(text).into())
}

/// Of what stands behind DONE, of which the first two words are a claim.
pub fn done_of<'w>(words: &[&'w str], claim: Claim<'w>) -> Done<'w> {
    let mut parts = words.split(|word| *word == "+ADD");
    let own = parts.next().unwrap();
    let (mut result, mut keep) = (None, None);
    for word in &own[2..] {
        match word.split_once('=') {
            Some(("RESULT", text)) => result = Some(text.as_bytes()),
            Some(("KEEP", ms)) => keep = Some(span(number(ms))),
            _ => panic!("{word} is nothing that DONE knows"),
        }
    }
    let adds = parts.map(|words| new_job(&[&["ADD"], words].concat())).collect();
    Done { claim, result, keep, adds }
}

pub fn followed(followed: &DoneOutcome) -> String {
    match followed {
        DoneOutcome::No => "0".into(),
        DoneOutcome::Yes { ids } if ids.is_empty() => "1".into(),
        DoneOutcome::Yes { ids } => {
            let names = ids.iter().map(|id| match id {
                Some(id) => String::from_utf8_lossy(id).into_owned(),
                None => "left".into(),
            });
            names.collect::<Vec<_>>().join(" ")
        }
        DoneOutcome::Refused(added) => refused(added),
    }
}

fn refused(added: &Added) -> String {
    match added {
        Added::Taken => "taken".into(),
        Added::Full => "full".into(),
        Added::Never => "never".into(),
        Added::Unconnected(fault) => unconnected(fault),
        Added::New { .. }
        | Added::Replaced { .. }
        | Added::Left
        | Added::Unchanged { .. }
        | Added::Over { .. } => panic!("{added:?} is no error"),
    }
}

/// `MADD a,b,* [spread=ms] [delays=1,2,3] [as ADD]`.
pub fn many_of<'w>(words: &[&'w str]) -> AddMany<'w> {
    let is_of_times = |word: &&str| word.starts_with("spread=") || word.starts_with("delays=");
    let others: Vec<&str> = words.iter().filter(|word| !is_of_times(word)).copied().collect();
    let times = words.iter().find(|word| is_of_times(word)).map(|word| word.split_once('='));
    let times = match times.flatten() {
        Some(("spread", ms)) => Times::SpreadOver(span(number(ms))),
        Some((_, all)) => Times::Each(all.split(',').map(|ms| Due::In(span(number(ms)))).collect()),
        None => Times::Same,
    };
    let one = |name| OneOfMany { id: (name != "*").then(|| id(name)), body: b"x" };
    let jobs = words[1].split(',').map(one).collect();
    AddMany { like: new_job(&others), jobs, times }
}

pub fn added_many(queue: &Queue, added: &AddedMany) -> String {
    match added {
        AddedMany::Yes(slots) => {
            let names = slots.iter().map(|slot| match slot {
                Some(slot) => String::from_utf8_lossy(queue.id_and_body(*slot).unwrap().0.bytes())
                    .into_owned(),
                None => "left".into(),
            });
            names.collect::<Vec<_>>().join(" ")
        }
        AddedMany::Refused { position, why: Refusal::Twice(_) } => format!("twice at {position}"),
        AddedMany::Refused { position, why: Refusal::As(added) } => {
            format!("{} at {position}", refused(added))
        }
    }
}

pub fn unconnected(fault: &EdgeFault) -> String {
    let (what, id) = match fault {
        EdgeFault::NoJob(id) => ("nojob", id),
        EdgeFault::NotHeld(id) => ("notheld", id),
        EdgeFault::HasSchedule(id) => ("schedule", id),
        EdgeFault::TooManyDependents(id) => ("dependents", id),
        EdgeFault::TooManyPredecessors(id) => ("predecessors", id),
        EdgeFault::HasDependents(id) => ("waited-for", id),
    };
    format!("{what} {}", String::from_utf8_lossy(id))
}

/// What a job waits for.
pub fn edges_to(queue: &Queue, name: &str, now: Time) -> String {
    let (edges, next) = queue.edges_to(id(name), 0, EDGES_MAX, now);
    assert_eq!(next, None);
    let shown = edges.iter().map(|edge| {
        let what = edge.what.map_or(String::new(), |what| format!("={}", text(Some(what))));
        format!("{}:{}{what}", text(Some(edge.id.bytes())), edge.state.name())
    });
    shown.collect::<Vec<_>>().join(" ")
}

pub fn what_was_told(job: &JobView) -> String {
    let Policy { ttr, attempts, priority, .. } = job.policy;
    let (body, created) = (String::from_utf8_lossy(job.body), shown(job.created));
    let limit = attempts.limit();
    format!("{body} @{created} ttr={} prio={priority} tries={limit}", ttr.as_u64())
}
