//! How a worker waits while the server is away, and what it logs of that: a line when it begins, and
//! one when it is over, whatever number of tasks wait and try again.

use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{watch, Notify};

use crate::errors::Error;

const FIRST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(2);
/// Outages that follow each other this soon have lines of their own only if they last as long.
const QUIET: Duration = Duration::from_secs(10);

/// The server, or the node of a slot, as the tasks of a worker find it.
pub(super) struct Outage {
    address: String,
    state: Mutex<State>,
    /// A task that failed has an answer.
    answering: Notify,
    /// How many are over.
    over: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    /// How many tasks have no answer.
    failing: usize,
    since: Option<Instant>,
    /// When the last line was logged.
    logged_at: Option<Instant>,
    /// Whether this outage has its line.
    is_logged: bool,
}

impl Outage {
    pub(super) fn new(address: String) -> Arc<Self> {
        let address = if address.is_empty() { "the server".into() } else { address };
        let (answering, over) = (Notify::new(), watch::Sender::new(0));
        Arc::new(Self { address, state: Mutex::default(), answering, over })
    }

    /// To wait for the end of an outage.
    pub(super) fn over(&self) -> watch::Receiver<u64> {
        self.over.subscribe()
    }

    fn failed(&self, is_first: bool, error: &Error) {
        let mut state = self.state();
        let now = Instant::now();
        if is_first {
            state.failing += 1;
        }
        if state.failing == 1 && is_first {
            state.since = Some(now);
            state.is_logged = false;
        }
        let is_older = |at: Option<Instant>| at.is_none_or(|at| now - at >= QUIET);
        if !state.is_logged && (is_older(state.logged_at) || is_older(state.since)) {
            state.is_logged = true;
            state.logged_at = Some(now);
            tracing::warn!("{} doesn't answer: {error}; trying again", self.address);
        } else {
            tracing::debug!("{} doesn't answer: {error}", self.address);
        }
    }

    fn answered(&self) {
        self.answering.notify_waiters();
        let mut state = self.state();
        state.failing = state.failing.saturating_sub(1);
        if state.failing > 0 {
            return;
        }
        if std::mem::take(&mut state.is_logged) {
            let took = state.since.map(|since| since.elapsed()).unwrap_or_default();
            tracing::warn!("{} answers again, after {took:.1?}", self.address);
        }
        drop(state);
        self.over.send_modify(|count| *count += 1);
    }

    fn given_up(&self) {
        let mut state = self.state();
        state.failing = state.failing.saturating_sub(1);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Of one task: its tries, with pauses that grow.
pub(super) struct Patience {
    outage: Arc<Outage>,
    pause: Duration,
    is_failing: bool,
}

impl Patience {
    pub(super) fn new(outage: &Arc<Outage>) -> Self {
        Self { outage: outage.clone(), pause: FIRST, is_failing: false }
    }

    /// Notes an error that passes.
    pub(super) fn failed(&mut self, error: &Error) {
        self.outage.failed(!std::mem::replace(&mut self.is_failing, true), error);
    }

    /// Twice as long each time, up to a limit, with jitter: a thousand workers don't come back in the
    /// same moment. Ends when another task is answered: what could not be sent is sent at once then;
    /// but not before the first pause, lest a server that answers only others is asked all the time.
    pub(super) async fn pause(&mut self) {
        let share = 0.5 + fastrand::f64() / 2.0;
        let mut answering = pin!(self.outage.answering.notified());
        answering.as_mut().enable();
        let least = FIRST.mul_f64(share);
        tokio::time::sleep(least).await;
        tokio::select! {
            () = tokio::time::sleep(self.pause.mul_f64(share) - least) => (),
            () = answering => (),
        }
        self.pause = (self.pause * 2).min(LONGEST);
    }

    pub(super) fn answered(&mut self) {
        if std::mem::take(&mut self.is_failing) {
            self.pause = FIRST;
            self.outage.answered();
        }
    }
}

impl Drop for Patience {
    fn drop(&mut self) {
        if self.is_failing {
            self.outage.given_up();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[tokio::test]
    async fn a_task_that_pauses_goes_on_when_another_is_answered() {
        let outage = Outage::new("here".into());
        let [mut settler, mut source] = [(); 2].map(|()| Patience::new(&outage));
        let error = Error::from(redis::RedisError::from(io::Error::other("it is away")));
        settler.failed(&error);
        source.failed(&error);
        settler.pause = Duration::from_secs(3600);
        tokio::join!(settler.pause(), async {
            tokio::time::sleep(FIRST * 2).await;
            source.answered();
        });
    }
}
