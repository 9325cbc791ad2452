//! SIGTERM and SIGINT, heard by a thread of its own: handlers that block all threads of the runtime
//! can't keep the process alive.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc as threads;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::errors::{Error, Result};
use crate::seam::within;

/// After the grace time, for the last words to the server.
pub(super) const LAST_WORDS: Duration = Duration::from_secs(5);
/// For the program to end by itself.
const AT_THE_END: Duration = Duration::from_secs(5);
/// The worker itself waits so long for the server, before and after the grace time.
const OF_THE_WORKER: Duration = LAST_WORDS.saturating_mul(2).saturating_add(AT_THE_END);

/// How many workers of this process listen.
static RUNNING: AtomicUsize = AtomicUsize::new(0);

/// Reports to the thread how the worker ended.
pub(super) struct Signals(oneshot::Sender<bool>);

impl Signals {
    /// Listens from now on. The first signal stops the worker, the second one ends its grace time.
    pub(super) fn listen(
        stop: CancellationToken,
        hurry: CancellationToken,
        grace: Duration,
    ) -> Result<Self> {
        let (tell, ended) = oneshot::channel();
        let (ready, is_ready) = threads::channel();
        let failed = || Error::Misuse("signals can't be waited for");
        let listening = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let Ok(runtime) = runtime else { return };
            runtime.block_on(async {
                let Some(signals) = Listener::new() else { return };
                // An error would be that the worker has gone.
                let _ = ready.send(());
                RUNNING.fetch_add(1, Ordering::Relaxed);
                watch(signals, stop, hurry, grace, ended).await;
            });
        };
        let thread = std::thread::Builder::new().name("dq-signals".into());
        thread.spawn(listening).map_err(|_| failed())?;
        is_ready.recv().map_err(|_| failed())?;
        Ok(Self(tell))
    }

    /// `is_cut` when handlers were still at work.
    pub(super) fn worker_has_ended(self, is_cut: bool) {
        // An error would be that the thread has ended.
        let _ = self.0.send(is_cut);
    }
}

async fn watch(
    mut signals: Listener,
    stop: CancellationToken,
    hurry: CancellationToken,
    grace: Duration,
    mut ended: oneshot::Receiver<bool>,
) {
    let (is_cut, by_signal) = tokio::select! {
        is_cut = &mut ended => (is_cut, false),
        () = signals.next() => {
            stop.cancel();
            (stopped(&mut signals, &hurry, grace, &mut ended).await, true)
        }
    };
    RUNNING.fetch_sub(1, Ordering::Relaxed);
    if is_cut.unwrap_or(false) {
        within(AT_THE_END, signals.next()).await;
    } else if by_signal {
        signals.next().await;
    } else {
        // An error has ended it: what the program does then is its own.
        return;
    }
    // A program that serves again hears its signals there.
    if RUNNING.load(Ordering::Relaxed) == 0 {
        exit();
    }
}

/// Waits for the end of a worker that is being stopped, for as long as that may take.
async fn stopped(
    signals: &mut Listener,
    hurry: &CancellationToken,
    grace: Duration,
    ended: &mut oneshot::Receiver<bool>,
) -> Result<bool, oneshot::error::RecvError> {
    tokio::select! {
        is_cut = &mut *ended => return is_cut,
        () = signals.next() => hurry.cancel(),
        () = tokio::time::sleep(grace.saturating_add(OF_THE_WORKER)) => exit(),
    }
    tokio::select! {
        is_cut = ended => is_cut,
        () = signals.next() => exit(),
        () = tokio::time::sleep(AT_THE_END) => exit(),
    }
}

fn exit() -> ! {
    tracing::warn!("the process is held up after its signal to stop: it exits");
    std::process::exit(1)
}

#[cfg(unix)]
struct Listener(tokio::signal::unix::Signal, tokio::signal::unix::Signal);

#[cfg(unix)]
impl Listener {
    fn new() -> Option<Self> {
        use tokio::signal::unix::{signal, SignalKind};
        Some(Self(signal(SignalKind::terminate()).ok()?, signal(SignalKind::interrupt()).ok()?))
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.0.recv() => {}
            _ = self.1.recv() => {}
        }
    }
}

#[cfg(not(unix))]
struct Listener;

#[cfg(not(unix))]
impl Listener {
    fn new() -> Option<Self> {
        Some(Self)
    }

    async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
