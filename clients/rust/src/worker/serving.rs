//! A worker at work: its parts, its start and its end.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::{join_all, FutureExt};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::errors::{Error, Result};
use crate::queue::Queue;
use crate::replies::Delivery;
use crate::seam::{within, Connection, Connector, REPLY_WITHIN};
use crate::worker::builder::{Handler, Hooks, Worker};
use crate::worker::fetching::{sources, Source};
use crate::worker::hands::Hands;
use crate::worker::link::{ask, Link};
use crate::worker::outage::{Outage, Patience};
use crate::worker::renewing;
use crate::worker::settlement::Settlement;
use crate::worker::settling::{Settler, Unsent};
use crate::worker::signals::LAST_WORDS;
use crate::worker::starting;

/// How soon a worker with too many outcomes to send looks whether it may take jobs again.
const LOOK: Duration = Duration::from_millis(20);

/// What all parts of a worker share.
pub(super) struct Shift {
    connector: Arc<dyn Connector>,
    pub(super) handler: Handler,
    pub(super) hooks: Hooks,
    pub(super) ttr: Duration,
    pub(super) queues: Vec<Served>,
    pub(super) stop: CancellationToken,
    /// No handler goes on behind the worker's end.
    pub(super) ended: CancellationToken,
}

/// A queue that is served, over a connection for what handlers ask.
pub(super) struct Served {
    pub(super) queue: Queue,
    renewing: Arc<Link>,
    pub(super) hands: Arc<Hands>,
    /// What the queues of a slot share.
    pub(super) slot: Arc<Slot>,
}

/// The way to the node of a slot; without a cluster, to the server.
pub(super) struct Slot {
    pub(super) outage: Arc<Outage>,
    fetching: Arc<Link>,
    settlements: mpsc::UnboundedSender<Settlement>,
    unsent: Arc<Unsent>,
}

impl Slot {
    pub(super) fn settle(&self, settlement: Settlement) {
        self.unsent.add(&settlement);
        // An error would be that the worker has ended.
        let _ = self.settlements.send(settlement);
    }
}

impl Worker {
    /// Works until it is stopped. The reply says, too, whether handlers were at work at the end.
    pub(super) async fn serve_until(
        self,
        stop: CancellationToken,
        hurry: CancellationToken,
    ) -> (Result<()>, bool) {
        match self.checked() {
            Ok(sources) => self.serve_sources(sources, stop, hurry).await,
            Err(error) => (Err(error), false),
        }
    }

    fn checked(&self) -> Result<Vec<Source>> {
        if !(Duration::from_millis(1)..=LONGEST_TTR).contains(&self.ttr) {
            return Err(Error::Misuse(
                "the ttr of a worker is a millisecond at least, a hundred years at most",
            ));
        }
        sources(&self.queues, self.concurrency, self.connector.is_cluster())
    }

    async fn serve_sources(
        self,
        sources: Vec<Source>,
        stop: CancellationToken,
        hurry: CancellationToken,
    ) -> (Result<()>, bool) {
        let closing = CancellationToken::new();
        let mut settling = JoinSet::new();
        let mut links = Vec::new();
        let mut queues: Vec<Option<Served>> = self.queues.iter().map(|_| None).collect();
        for source in &sources {
            let (settlements, coming) = mpsc::unbounded_channel();
            let link = || Link::over(&self.connector);
            let (fetching, settling_by, control) = (link(), link(), link());
            let unsent = Arc::<Unsent>::default();
            let outage = Outage::new(self.connector.address());
            let settler = Settler { link: settling_by.clone(), unsent: unsent.clone() };
            settling.spawn(settler.run(coming, closing.clone(), Patience::new(&outage)));
            links.extend([fetching.clone(), settling_by, control.clone()]);
            let slot = Arc::new(Slot { outage, fetching, settlements, unsent });
            for (at, queue) in source.queues() {
                let (queue, hands) = (queue.over(control.clone()), Arc::new(Hands::new()));
                let (renewing, slot) = (link(), slot.clone());
                links.push(renewing.clone());
                if let Some(served) = queues.get_mut(at) {
                    *served = Some(Served { queue, renewing, hands, slot });
                }
            }
        }
        let shift = Arc::new(Shift {
            queues: queues.into_iter().flatten().collect(),
            connector: self.connector,
            handler: self.handler,
            hooks: self.hooks,
            ttr: self.ttr,
            stop,
            ended: CancellationToken::new(),
        });
        let _end = shift.ended.clone().drop_guard();
        within(REPLY_WITHIN, join_all(links.iter().map(|link| link.connect())).map(drop)).await;
        let mut keeping = shift.keeping(self.schedules);
        let worked = tokio::select! {
            worked = shift.clone().work(sources, &hurry) => worked,
            failed = keeping.join_next() => failed.map_or(Ok(()), |ended| ended.unwrap_or_else(panicked)),
            failed = settling.join_next() => failed.map_or(Ok(()), |ended| ended.map_err(lost_part)),
        };
        shift.stop.cancel();
        let is_cut = shift.finish(self.grace, &hurry).await;
        closing.cancel();
        let said = async { while settling.join_next().await.is_some() {} };
        within(LAST_WORDS, said).await;
        (worked, is_cut)
    }
}

/// What any sum with a time of a machine can hold.
const LONGEST_TTR: Duration = Duration::from_secs(100 * 366 * 24 * 3_600);

fn lost_part(_: tokio::task::JoinError) -> Error {
    Error::Misuse("a part of the worker has ended by a panic")
}

fn panicked(error: tokio::task::JoinError) -> Result<()> {
    Err(lost_part(error))
}

impl Shift {
    /// The tasks beside the work: they keep leases and schedules.
    fn keeping(self: &Arc<Self>, schedules: Vec<(Queue, crate::NewJob)>) -> JoinSet<Result<()>> {
        let mut keeping = JoinSet::new();
        let all = self.queues.iter().map(|served| served.hands.clone()).collect();
        keeping.spawn(renewing::watch(all, self.ttr));
        for Served { queue, renewing, hands, slot } in &self.queues {
            let queue = queue.over(renewing.clone());
            let patience = Patience::new(&slot.outage);
            keeping.spawn(renewing::keep(queue, hands.clone(), self.ttr, patience));
        }
        let outage_of = |queue: &Queue| {
            let served = self.queues.iter().find(|served| served.queue.name == queue.name);
            served.or(self.queues.first()).map(|served| served.slot.outage.clone())
        };
        for (queue, job) in schedules {
            if let Some(outage) = outage_of(&queue) {
                let queue = queue.over(Link::over(&self.connector));
                keeping.spawn(starting::declare(queue, job, outage, starting::AGAIN));
            }
        }
        let names = self.queues.iter().map(|served| served.queue.clone()).collect();
        keeping.spawn(starting::notice(names));
        keeping
    }

    /// Takes jobs until it is told to stop, or an error doesn't pass.
    async fn work(self: Arc<Self>, sources: Vec<Source>, hurry: &CancellationToken) -> Result<()> {
        let mut fetching = JoinSet::new();
        for source in sources {
            fetching.spawn(self.clone().fetch(source));
        }
        // Those that have a POP under way when it is told to stop hear of what was taken.
        let fetched = async {
            while let Some(ended) = fetching.join_next().await {
                ended.unwrap_or_else(panicked)?;
            }
            Ok(())
        };
        let too_late = async {
            self.stop.cancelled().await;
            tokio::select! {
                () = tokio::time::sleep(LAST_WORDS) => {}
                () = hurry.cancelled() => {}
            }
        };
        tokio::select! {
            ended = fetched => ended,
            () = too_late => Ok(()),
        }
    }

    async fn fetch(self: Arc<Self>, mut source: Source) -> Result<()> {
        let Some(slot) = source.queues().next().and_then(|(at, _)| self.queues.get(at)) else {
            return Ok(());
        };
        let slot = slot.slot.clone();
        let mut patience = Patience::new(&slot.outage);
        let link: Arc<dyn Connection> = slot.fetching.clone();
        let waits = (renewing::interval(self.ttr), self.ttr);
        while !self.stop.is_cancelled() {
            let mut places = tokio::select! {
                () = self.stop.cancelled() => return Ok(()),
                places = source.places() => places?,
            };
            if slot.unsent.is_too_much() {
                drop(places);
                tokio::time::sleep(LOOK).await;
                continue;
            }
            let order = source.order();
            let count = places.num_permits();
            let take = || source.take(&order, &link, count, waits);
            let is_over = || self.stop.is_cancelled();
            let taken = ask(&mut patience, || Box::pin(take()), is_over).await?;
            let Some(answer) = taken else { return Ok(()) };
            let jobs = answer.reply.into_iter().filter_map(|job| source.told(job)).collect();
            let (jobs, sent) = self.sure_of(jobs, answer.sent, &mut patience).await?;
            for (at, delivery) in jobs {
                self.begin(at, delivery, sent + self.ttr, places.split(1));
            }
        }
        Ok(())
    }

    /// When the answer took so long that the leases may be over, only those jobs are begun whose
    /// leases are renewed. The reply says since when they are good.
    async fn sure_of(
        &self,
        mut jobs: Vec<(usize, Delivery)>,
        mut sent: Instant,
        patience: &mut Patience,
    ) -> Result<(Vec<(usize, Delivery)>, Instant)> {
        let is_over = || self.stop.is_cancelled();
        while !jobs.is_empty() && sent.elapsed() > self.ttr / 2 && !is_over() {
            let (mut good, mut first_sent) = (Vec::new(), None);
            for (at, Served { queue, .. }) in self.queues.iter().enumerate() {
                let (mut these, others) =
                    jobs.into_iter().partition::<Vec<_>, _>(|(of, _)| *of == at);
                jobs = others;
                if these.is_empty() {
                    continue;
                }
                let pairs = || these.iter().map(|(_, job)| (&job.id, job.into()));
                let renew = || queue.renew(self.ttr, Duration::ZERO, pairs());
                if let Some(answer) = ask(patience, renew, is_over).await? {
                    let void: HashSet<_> = answer.reply.into_iter().collect();
                    these.retain(|(_, job)| !void.contains(&job.id));
                    first_sent = Some(first_sent.unwrap_or(answer.sent).min(answer.sent));
                }
                good.extend(these);
            }
            jobs = good;
            sent = first_sent.unwrap_or(sent);
        }
        Ok((jobs, sent))
    }

    /// The jobs in hand may end within the grace time. The others go back, unbegun. Whether there were
    /// such.
    async fn finish(&self, grace: Duration, hurry: &CancellationToken) -> bool {
        let ended = async {
            for served in &self.queues {
                served.hands.none().await;
            }
        };
        tokio::select! {
            _ = within(grace, ended) => {}
            () = hurry.cancelled() => {}
        }
        let mut is_cut = false;
        for Served { queue, hands, slot, .. } in &self.queues {
            for (number, hand) in hands.running() {
                is_cut = true;
                if !hand.is_lost() {
                    hand.lose();
                    let mut unbegun = Settlement::unbegun(queue, hand.job.delivery());
                    unbegun.hand = Some((hands.clone(), number));
                    slot.settle(unbegun);
                }
            }
        }
        is_cut
    }
}
