//! All jobs, ids or groups of a queue as streams, page by page.

use std::future::IntoFuture;
use std::time::SystemTime;

use futures_util::future::BoxFuture;
use futures_util::stream::{self, Stream, TryStreamExt};

use crate::commands::{Groups, Scan};
use crate::errors::{Error, Result};
use crate::queue::Queue;
use crate::replies::{Group, Job, Page};
use crate::words::{State, Text};

const PAGE: i64 = 100;

impl Queue {
    /// All jobs in a state, from a time on if there is one, in the order of PEEK. 100 of them are read
    /// at a time. Pin it, to walk through it: `std::pin::pin!(queue.peek_all(State::Dead, None))`.
    pub fn peek_all(
        &self,
        state: State,
        from: Option<SystemTime>,
    ) -> impl Stream<Item = Result<Job>> + Send {
        let queue = self.clone();
        let start = Some((from, None::<Text>));
        let pages = stream::try_unfold(start, move |at| {
            let queue = queue.clone();
            async move {
                let Some((from, after)) = at else { return Ok::<_, Error>(None) };
                let mut peek = queue.peek().state(state).count(PAGE);
                if let Some(id) = after {
                    peek = peek.after(id);
                }
                if let Some(from) = from {
                    peek = peek.from(from);
                }
                let jobs = peek.await?;
                let is_full = i64::try_from(jobs.len()).unwrap_or(PAGE) >= PAGE;
                let last = jobs.last().filter(|_| is_full);
                let next = last.map(|last| (time_of(last, state), Some(last.id.clone())));
                Ok(Some((stream::iter(jobs.into_iter().map(Ok)), next)))
            }
        });
        pages.try_flatten()
    }

    /// The ids of all jobs; `options` are those of SCAN: `|scan| scan.match_("order:*")`. An id may
    /// come twice.
    pub fn scan_all(
        &self,
        options: impl Fn(Scan) -> Scan + Send + Sync + 'static,
    ) -> impl Stream<Item = Result<Text>> + Send {
        let queue = self.clone();
        scanned(move |cursor| options(queue.scan(cursor)).into_future())
    }

    /// All groups; `options` are those of GROUPS.
    pub fn groups_all(
        &self,
        options: impl Fn(Groups) -> Groups + Send + Sync + 'static,
    ) -> impl Stream<Item = Result<Group>> + Send {
        let queue = self.clone();
        scanned(move |cursor| options(queue.groups(cursor)).into_future())
    }
}

fn scanned<T: Send + 'static>(
    page: impl Fn(u64) -> BoxFuture<'static, Result<Page<T>>> + Send + 'static,
) -> impl Stream<Item = Result<T>> + Send {
    let pages = stream::try_unfold(Some(0), move |cursor| {
        let asked = cursor.map(&page);
        async move {
            let Some(asked) = asked else { return Ok::<_, Error>(None) };
            let page = asked.await?;
            let next = (page.cursor != 0).then_some(page.cursor);
            Ok(Some((stream::iter(page.items.into_iter().map(Ok)), next)))
        }
    });
    pages.try_flatten()
}

/// By which of its times a job is shown in a state. Ready and held ones have no such time.
fn time_of(job: &Job, state: State) -> Option<SystemTime> {
    let sooner = |time: Option<SystemTime>| time.into_iter().chain(job.expires).min();
    match state {
        State::Delayed => sooner(job.due),
        State::Reserved => sooner(job.deadline),
        State::Dead => job.since,
        State::Done => job.kept_until,
        State::Ready | State::Held => None,
    }
}
