//! When jobs that come back will run, as DQ.NEXT says, and when they did.

use redis::{Cmd, Pipeline};

use super::deployment::{outcome, Deployment};
use super::job::{Job, Schedule};
use super::plan::Rule;
use super::queue::State;
use super::replies::{array, number};
use super::Result;

/// The most times that DQ.NEXT tells at once.
const TIMES_MAX: usize = 1_000;

/// Of one job.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Runs {
    /// In order. The first may be now, or past.
    pub next: Vec<u64>,
    pub last: Last,
}

/// The time that the last run was for. The server keeps it only while the run is under way.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Last {
    Never,
    /// It is under way.
    Now(u64),
    /// By its rule: one that was kicked, or came late, began at another time.
    By(u64),
    #[default]
    Unknown,
}

/// The next runs of jobs, so many of each at most, and their last ones.
pub async fn of(deployment: &Deployment, jobs: &[&Job], many: usize) -> Vec<Runs> {
    let plans: Vec<Option<Ahead>> = jobs.iter().map(|job| Ahead::of(job)).collect();
    let asks = plans
        .iter()
        .map(|plan| plan.as_ref().and_then(|plan| command(&plan.rule, plan.base?, many)));
    let behind = times(deployment, asks.collect()).await;
    let mut runs = Vec::with_capacity(jobs.len());
    let mut gaps = Vec::with_capacity(jobs.len());
    for (plan, behind) in plans.iter().zip(behind) {
        let Some(plan) = plan else {
            runs.push(Runs::default());
            gaps.push(None);
            continue;
        };
        let behind = match (&plan.rule, plan.base) {
            (Rule::Every(ms), Some(base)) => every(*ms, base, many),
            _ => behind,
        };
        gaps.push(behind.first().zip(plan.base).map(|(next, base)| next.saturating_sub(base)));
        runs.push(Runs { next: plan.next(&behind, many), last: plan.last.clone() });
    }
    find_last(deployment, &plans, &gaps, &mut runs).await;
    runs
}

/// The times of a rule behind a time. An expression that can't be read is the server's error.
pub async fn of_rule(
    deployment: &Deployment,
    rule: &Rule,
    from: u64,
    many: usize,
) -> Result<Vec<u64>> {
    let Rule::Cron { .. } = rule else {
        let Rule::Every(ms) = rule else { return Ok(Vec::new()) };
        return Ok(every(*ms, from, many));
    };
    let mut commands = Pipeline::new();
    command(rule, from, many).into_iter().for_each(|ask| {
        commands.add_command(ask);
    });
    let (_, replies) = deployment.ask(None, &mut commands).await?;
    array(outcome(replies.into_iter().next())?)?.into_iter().map(number).collect()
}

fn every(ms: u64, from: u64, many: usize) -> Vec<u64> {
    (1..=many as u64).filter_map(|n| from.checked_add(ms.checked_mul(n)?)).collect()
}

/// What is known of a job's next runs without asking.
struct Ahead<'a> {
    rule: Rule,
    schedule: &'a Schedule,
    /// Those that are decided.
    decided: Vec<u64>,
    /// The last of them by the rule: the others follow it.
    base: Option<u64>,
    /// How many runs may still come; `None` without a limit.
    left: Option<u64>,
    last: Last,
    /// The time by the rule behind the last run, to find that by.
    before: Option<u64>,
    created: u64,
}

impl Ahead<'_> {
    /// `None` when it has no schedule, or won't come by itself.
    fn of(job: &Job) -> Option<Ahead<'_>> {
        let schedule = job.schedule.as_deref()?;
        let is_running = job.state == State::Reserved;
        let is_over = matches!(job.state, State::Dead | State::Done | State::Held);
        let is_retried = job.attempt > 0 && !is_running && !is_over;
        let (mut decided, mut base) = (Vec::new(), None);
        if !is_over {
            decided.extend(job.due.filter(|_| !is_running));
            decided.extend(schedule.next);
            base = schedule.next.or(schedule.occurrence.filter(|_| !is_running));
        }
        let left = (schedule.runs > 0)
            .then(|| schedule.runs.saturating_sub(schedule.runs_begun) + u64::from(is_retried));
        let last = match schedule.occurrence {
            Some(occurrence) if is_running => Last::Now(occurrence),
            Some(occurrence) if is_retried => Last::By(occurrence),
            _ if schedule.runs_begun == 0 => Last::Never,
            _ => Last::Unknown,
        };
        let rule = Rule::of(schedule);
        Some(Ahead {
            rule,
            schedule,
            decided,
            base,
            left,
            last,
            before: base,
            created: job.created,
        })
    }

    fn next(&self, behind: &[u64], many: usize) -> Vec<u64> {
        let most = self.left.map_or(many, |left| many.min(usize::try_from(left).unwrap_or(many)));
        let until = self.schedule.until.unwrap_or(u64::MAX);
        let behind = behind.iter().copied().filter(|time| *time <= until);
        self.decided.iter().copied().chain(behind).take(most).collect()
    }
}

/// The time of the rule before the next one. There is no command for that: it is sought from a few
/// gaps before, and then from many, as after a night or a weekend.
async fn find_last(
    deployment: &Deployment,
    plans: &[Option<Ahead<'_>>],
    gaps: &[Option<u64>],
    runs: &mut [Runs],
) {
    for reach in [8, TIMES_MAX as u64] {
        let asks = plans.iter().zip(gaps).zip(runs.iter()).map(|((plan, gap), runs)| {
            let plan = plan.as_ref().filter(|_| runs.last == Last::Unknown)?;
            let from = plan.before?.saturating_sub(gap.as_ref()?.saturating_mul(reach));
            command(&plan.rule, from.max(plan.created), TIMES_MAX)
        });
        let found = times(deployment, asks.collect()).await;
        for ((plan, runs), found) in plans.iter().zip(runs.iter_mut()).zip(found) {
            let Some(plan) = plan.as_ref().filter(|_| runs.last == Last::Unknown) else { continue };
            let Some(before) = plan.before else { continue };
            let time = match &plan.rule {
                Rule::Every(ms) => before.checked_sub(*ms),
                // All of them were told, so the last one before is that.
                Rule::Cron { .. } => found
                    .last()
                    .filter(|last| **last >= before)
                    .and_then(|_| found.iter().rev().find(|time| **time < before))
                    .copied(),
            };
            if let Some(time) = time.filter(|time| *time >= plan.created) {
                runs.last = Last::By(time);
            }
        }
    }
}

/// `None` for a period, which needs no asking.
fn command(rule: &Rule, from: u64, many: usize) -> Option<Cmd> {
    let Rule::Cron { expression, zone } = rule else { return None };
    let mut command = redis::cmd("DQ.NEXT");
    command.arg(expression).arg("TZ").arg(zone).arg("FROM").arg(from).arg("COUNT").arg(many);
    Some(command)
}

/// What these reply, each with no times where it isn't asked or is refused. Any server knows.
async fn times(deployment: &Deployment, asks: Vec<Option<Cmd>>) -> Vec<Vec<u64>> {
    let mut commands = Pipeline::new();
    asks.iter().flatten().for_each(|ask| {
        commands.add_command(ask.clone());
    });
    let has_any = asks.iter().any(Option::is_some);
    let replies = match has_any {
        true => deployment.ask(None, &mut commands).await.map(|(_, replies)| replies),
        false => Ok(Vec::new()),
    };
    let mut replies = replies.unwrap_or_default().into_iter();
    let read =
        |reply| -> Result<Vec<u64>> { array(outcome(reply)?)?.into_iter().map(number).collect() };
    asks.iter()
        .map(|ask| match ask {
            Some(_) => read(replies.next()).unwrap_or_default(),
            None => Vec::new(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(state: State, schedule: Schedule, due: Option<u64>) -> Job {
        let text = |text: &str| redis::Value::BulkString(text.into());
        let reply = redis::Value::Map(vec![(text("state"), text(state.name()))]);
        let mut job = Job::read(reply).unwrap().unwrap();
        job.schedule = Some(Box::new(schedule));
        job.due = due;
        job
    }

    fn next(job: &Job, many: usize) -> Vec<u64> {
        let ahead = Ahead::of(job).unwrap();
        let behind = ahead.base.map(|base| every(10, base, many)).unwrap_or_default();
        ahead.next(&behind, many)
    }

    fn each_ten() -> Schedule {
        Schedule { every_ms: Some(10), occurrence: Some(100), ..Schedule::default() }
    }

    #[test]
    fn the_next_runs_follow_what_is_decided() {
        // With jitter it comes a little after its time, and the others go on from its time.
        assert_eq!(next(&job(State::Delayed, each_ten(), Some(103)), 3), [103, 110, 120]);
        let running = Schedule { next: Some(110), runs_begun: 1, ..each_ten() };
        assert_eq!(next(&job(State::Reserved, running.clone(), Some(999)), 3), [110, 120, 130]);
        // One that was kicked runs besides.
        let kicked = Schedule { occurrence: Some(42), next: Some(110), ..each_ten() };
        assert_eq!(next(&job(State::Ready, kicked, Some(42)), 3), [42, 110, 120]);
        assert_eq!(next(&job(State::Dead, each_ten(), None), 3), Vec::<u64>::new());
        let last = Schedule { next: None, ..running };
        assert_eq!(next(&job(State::Reserved, last, Some(999)), 3), Vec::<u64>::new());
    }

    #[test]
    fn runs_and_until_end_them() {
        let until = Schedule { until: Some(115), ..each_ten() };
        assert_eq!(next(&job(State::Delayed, until, Some(100)), 9), [100, 110]);
        let two_left = Schedule { runs: 5, runs_begun: 3, ..each_ten() };
        assert_eq!(next(&job(State::Delayed, two_left.clone(), Some(100)), 9), [100, 110]);
        // A retry is no run of its own.
        let retried = Schedule { next: Some(110), ..two_left };
        let retried = Job { attempt: 1, ..job(State::Delayed, retried, Some(104)) };
        assert_eq!(next(&retried, 9), [104, 110, 120]);
    }

    #[test]
    fn the_last_run_is_known_while_it_runs() {
        let begun = Schedule { next: Some(110), runs_begun: 1, ..each_ten() };
        let last = |state| Ahead::of(&job(state, begun.clone(), Some(100))).unwrap().last;
        assert_eq!(last(State::Reserved), Last::Now(100));
        assert_eq!(last(State::Delayed), Last::Unknown);
        assert_eq!(Ahead::of(&job(State::Delayed, each_ten(), None)).unwrap().last, Last::Never);
    }
}
