//! Clients that wait for what becomes of a job or a lease, beside the accounts.

use std::time::Duration;

use crate::queue::{self, Claim, Claims, Lease, Renew};
use crate::services::change::frame::{self, Frame, Source};
use crate::services::change::log::LogForm;
use crate::services::host::Host;
use crate::services::key_ref::KeyRef;
use crate::services::waiting::serving;
use crate::services::waiting::watchers::JobOutcome;
use crate::services::waiting::watching;
use crate::services::waiting::wish::Wish;

use super::account::{Account, Stage, State};
use super::commands::Reply;
use super::judge::state_of;
use super::key::Context;
use super::keyspace::Order;
use super::node::{ClientNumber, Node};
use super::operation::{id, ms, Bytes, Operation, Outcome};
use super::world::World;

/// Of a client that waits for what becomes of a job or of leases.
#[derive(Debug)]
pub struct Watch {
    pub place: KeyRef,
    subject: Subject,
    pub deadline: Option<Duration>,
    /// What it is to be told, once an operation has ended its wait. Of leases, all that have become
    /// void until its reply is made.
    told: Option<Verdict>,
    /// What time may have told it before that: that the job is dead, or that these leases are void.
    by_time: Vec<Bytes>,
    /// Another queue may be at the key: the timer is to look.
    is_unsure: bool,
    /// What it may be told before the timer has looked.
    perhaps: Vec<Verdict>,
}

#[derive(Clone, Debug)]
enum Subject {
    Job(Bytes),
    Leases(Vec<(Bytes, u64)>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Gone,
    /// With the result, if it is done.
    Job(State, Option<Bytes>),
    Void(Vec<Bytes>),
}

/// What a client asks for who watches something.
#[derive(Clone, Debug)]
pub enum Watching {
    /// DQ.RESULT; a `block` of zero is without end.
    Result { id: Bytes, block: Option<u64> },
    /// DQ.RENEW.
    Renew { claims: Vec<(Bytes, Option<u64>)>, ttr: Option<u64>, block: u64 },
}

impl Node {
    pub fn watch(
        &self,
        client: ClientNumber,
        place: &KeyRef,
        watching: &Watching,
        is_inside_another: bool,
    ) -> Reply {
        let reply = match watching {
            Watching::Result { id: name, block } => {
                let context = Context::Reader;
                self.open_as(place, context, false, |key, value| {
                    let now = frame::look(self, &key, value);
                    let Some(job) = value.queue().get(id(name)) else {
                        return Reply::Verdict(Verdict::Gone);
                    };
                    let (state, what) = job.outcome_at(now);
                    let told = told_of(&JobOutcome::In(state, what.map(Box::from)));
                    let is_over = matches!(state, queue::State::Dead | queue::State::Done);
                    let Some(block) = block.filter(|_| !is_over && !is_inside_another) else {
                        return Reply::Verdict(told);
                    };
                    let wish = watching::job_wish(&mut value.queue, place.clone(), id(name));
                    let reply = self.wait(client, place, wish.unwrap(), block);
                    watching::plan(self, &key, value);
                    reply
                })
            }
            Watching::Renew { claims, ttr, block } => {
                let sent = Operation::Renew { claims: claims.clone(), ttr: *ttr };
                let context = Context::Command { sent: Some(&sent), is_inside_another };
                self.open_as(place, context, false, |key, value| {
                    let renew = Renew { claims: claims_of(claims), ttr: ttr.map(ms) };
                    let may_wait = *block > 0 && !is_inside_another;
                    let open = Frame::new(self, key, value, Source::Client, None);
                    let (void, held) = open.change(&renew, LogForm::AsSent, |renewed, queue| {
                        let waits = may_wait && renewed.void.is_empty();
                        let held = waits.then(|| queue.with_leases(&renew.claims));
                        (renewed.void.clone(), held)
                    });
                    let told = |void: Vec<usize>| {
                        let ids = void.iter().map(|at| renew.claims[*at].id.bytes().to_vec());
                        Reply::Verdict(Verdict::Void(ids.collect()))
                    };
                    let Some(held) = held else {
                        return told(void);
                    };
                    let (queue, place) = (&mut value.queue, place.clone());
                    let now = queue.horizon();
                    let wish = match watching::leases_wish(queue, place.clone(), now, &held) {
                        Ok(wish) => wish,
                        Err(void) => return told(void),
                    };
                    let reply = self.wait(client, &place, wish, *block);
                    watching::plan(self, &key, value);
                    reply
                })
            }
        };
        reply.unwrap_or(Reply::Missing)
    }

    fn wait(&self, client: ClientNumber, place: &KeyRef, wish: Wish, block: u64) -> Reply {
        let timeout = (block > 0).then(|| Duration::from_millis(block));
        let places = [place.clone()];
        let handle = |ticket| Some(self.block(client, ticket, &places, timeout));
        assert!(serving::wait(self, wish, timeout, handle));
        Reply::Waits
    }
}

pub fn claims_of(claims: &[(Bytes, Option<u64>)]) -> Claims<'_> {
    claims
        .iter()
        .map(|(name, lease)| Claim { id: id(name), lease: lease.map(Lease::new) })
        .collect()
}

fn told_of(ended: &JobOutcome) -> Verdict {
    match ended {
        JobOutcome::Gone => Verdict::Gone,
        JobOutcome::In(queue::State::Done, result) => {
            Verdict::Job(State::Done, result.as_deref().map(Bytes::from))
        }
        JobOutcome::In(state, _) => Verdict::Job(state_of(*state), None),
    }
}

impl Watch {
    /// What the account says of it at `now`; none while nothing is to be told.
    fn over(&self, account: Option<&Account>, now: u64) -> Option<Verdict> {
        match &self.subject {
            Subject::Job(name) => match account.and_then(|account| account.job(name)) {
                None => Some(Verdict::Gone),
                Some(job) => match job.state(now) {
                    State::Dead => Some(Verdict::Job(State::Dead, None)),
                    State::Done => Some(Verdict::Job(State::Done, job.result.clone())),
                    State::Delayed | State::Ready | State::Reserved | State::Held => None,
                },
            },
            Subject::Leases(held) => {
                let is_good = |(name, lease): &&(Bytes, u64)| {
                    account.is_some_and(|account| account.is_held(now, name, *lease))
                };
                let void: Vec<Bytes> =
                    held.iter().filter(|one| !is_good(one)).map(|(name, _)| name.clone()).collect();
                (!void.is_empty()).then_some(Verdict::Void(void))
            }
        }
    }

    /// The same without what time alone has done.
    fn over_by_operation(&self, account: &Account, now: u64) -> Option<Verdict> {
        match (&self.subject, self.over(Some(account), now)?) {
            (Subject::Job(name), told) => {
                let stage = account.job(name).map(|job| job.stage);
                (!matches!(stage, Some(Stage::Waiting | Stage::Leased | Stage::Held)))
                    .then_some(told)
            }
            (Subject::Leases(held), _) => {
                let void = held.iter().filter(|(name, lease)| !account.has_lease(name, *lease));
                let void: Vec<Bytes> = void.map(|(name, _)| name.clone()).collect();
                (!void.is_empty()).then_some(Verdict::Void(void))
            }
        }
    }

    /// Whether a client may be told that these of its leases are void, and no others.
    fn are_void(&self, void: &[Bytes], account: Option<&Account>, now: u64, is_end: bool) -> bool {
        let of = |told: Option<&Verdict>| match told {
            Some(Verdict::Void(void)) => void.clone(),
            Some(Verdict::Gone | Verdict::Job(..)) | None => Vec::new(),
        };
        let (told, now_void) = (of(self.told.as_ref()), of(self.over(account, now).as_ref()));
        let perhaps: Vec<Bytes> = self.perhaps.iter().flat_map(|told| of(Some(told))).collect();
        let may_be = |one: &Bytes| {
            [&told, &now_void, &perhaps, &self.by_time].iter().any(|void| void.contains(one))
        };
        // A queue that was away and is back has its leases again.
        let must_be = |one: &&Bytes| now_void.contains(one);
        let has_reason = is_end || self.is_unsure || self.told.is_some();
        void.iter().all(may_be)
            && told.iter().filter(must_be).all(|one| void.contains(one))
            && (!void.is_empty() || has_reason || !perhaps.is_empty() || !self.by_time.is_empty())
    }

    /// The queue has left the key.
    fn gone(&self) -> Verdict {
        match &self.subject {
            Subject::Job(_) => Verdict::Gone,
            Subject::Leases(held) => {
                Verdict::Void(held.iter().map(|(name, _)| name.clone()).collect())
            }
        }
    }

    /// When time alone ends the wait.
    fn ends_at(&self, account: &Account) -> Option<u64> {
        match &self.subject {
            Subject::Job(name) => account.job(name)?.death(),
            Subject::Leases(held) => {
                held.iter().filter_map(|(name, _)| account.job(name)?.expires_at).min()
            }
        }
    }
}

impl World {
    /// A client that asked for this waits.
    fn begin_to_watch(&mut self, client: ClientNumber, place: &KeyRef, watching: &Watching) {
        let (subject, block) = match watching {
            Watching::Result { id, block } => (Subject::Job(id.clone()), block.unwrap_or_default()),
            Watching::Renew { claims, block, .. } => {
                (Subject::Leases(self.leases_renewed(place, claims)), *block)
            }
        };
        let deadline = (block > 0).then(|| self.now() + Duration::from_millis(block));
        let place = place.clone();
        self.clients[client].watch = Some(Watch {
            place,
            subject,
            deadline,
            told: None,
            by_time: Vec::new(),
            is_unsure: false,
            perhaps: Vec::new(),
        });
    }

    /// What came of a command.
    pub fn judge_watching(
        &mut self,
        client: ClientNumber,
        (place, watching): (&KeyRef, &Watching),
        reply: Reply,
        own: Option<Outcome>,
        begun: u64,
    ) {
        match (watching, reply) {
            (_, Reply::Waits) => self.begin_to_watch(client, place, watching),
            (_, Reply::Missing) => {
                assert!(!self.accounts.contains_key(place), "a queue is missing");
            }
            (Watching::Result { .. }, Reply::Verdict(told)) => {
                assert_eq!(own, None);
                self.judge_told_at_once(place, watching, &told, begun);
            }
            (Watching::Renew { claims, ttr, .. }, Reply::Verdict(told)) => {
                let renew = Operation::Renew { claims: claims.clone(), ttr: *ttr };
                // What extends nothing finds all leases void, whenever that is.
                let expected = own.or_else(|| self.unchanged(place, &renew, begun).pop());
                let Some(Outcome::Renewed(_, void)) = expected else {
                    panic!("{renew:?} comes to {expected:?}");
                };
                let ids: Vec<Bytes> = void.iter().map(|at| claims[*at].0.clone()).collect();
                let would_wait = ids.is_empty() && told != Verdict::Void(Vec::new());
                if would_wait {
                    // It was about to wait, and a consumer who waited was served behind it.
                    let held = self.leases_renewed(place, claims);
                    let account = &self.accounts[place];
                    let is_told = [begun, self.primary.wall_ms()].iter().any(|wall| {
                        let now = account.time_at(*wall);
                        let void = held.iter().filter(|one| !account.is_held(now, &one.0, one.1));
                        told == Verdict::Void(void.map(|(name, _)| name.clone()).collect())
                    });
                    return assert!(is_told, "{told:?} to {renew:?} beside {account:?}");
                }
                assert_eq!(told, Verdict::Void(ids), "the reply to {renew:?}");
            }
            (_, reply) => panic!("{reply:?} to {watching:?}"),
        }
    }

    /// The leases that a RENEW has just extended.
    fn leases_renewed(&self, place: &KeyRef, claims: &[(Bytes, Option<u64>)]) -> Vec<(Bytes, u64)> {
        let account = self.account_for_reply(place);
        let lease_of = |name: &Bytes| account.job(name).and_then(|job| job.lease);
        let held = claims.iter().map(|(name, lease)| {
            let lease = lease.or_else(|| lease_of(name));
            (name.clone(), lease.expect("what a RENEW has extended has a lease"))
        });
        held.collect()
    }

    /// What a client is told at once. Something may have happened between `begun` and now.
    fn judge_told_at_once(&self, place: &KeyRef, watching: &Watching, told: &Verdict, begun: u64) {
        let Watching::Result { id, .. } = watching else {
            return;
        };
        let account = &self.accounts[place];
        let Some(job) = account.job(id) else {
            return assert_eq!(*told, Verdict::Gone);
        };
        let result = |state| job.result.clone().filter(|_| state == State::Done);
        let times = [begun, self.primary.wall_ms()].map(|wall| job.state(account.time_at(wall)));
        let are_right = times.iter().any(|state| *told == Verdict::Job(*state, result(*state)));
        assert!(are_right, "{told:?} of {job:?}");
    }

    /// An operation has made this of an account, and finished these jobs for good.
    pub fn watch_change(&mut self, place: &KeyRef, time: u64) {
        let account = &self.accounts[place];
        let have_replies = self.primary.clients_with_replies();
        let clients = self.clients.iter_mut().enumerate();
        let watches = clients.filter_map(|(client, of)| Some((client, of.watch.as_mut()?)));
        let is_open = |client: ClientNumber, watch: &Watch| match &watch.subject {
            Subject::Job(_) => watch.told.is_none(),
            Subject::Leases(_) => watch.told.is_none() || !have_replies.contains(&client),
        };
        for (client, watch) in watches.filter(|(_, watch)| watch.place == *place) {
            if !is_open(client, watch) {
                continue;
            }
            let finished = match &watch.subject {
                Subject::Job(name) => account.finished.iter().find(|(id, _)| id == name),
                Subject::Leases(_) => None,
            };
            let told = match finished {
                Some((_, result)) => Some(Verdict::Job(State::Done, result.clone())),
                None => watch.over_by_operation(account, time),
            };
            if watch.is_unsure {
                watch.perhaps.extend(told);
            } else {
                watch.told = told.or(watch.told.take());
            }
        }
    }

    /// The keys are about to follow this.
    pub fn watch_order(&mut self, order: &Order) {
        let (left, is_everywhere) = match order {
            Order::Rename(from, to) => (vec![from.clone(), to.clone()], false),
            Order::Move(from, _) | Order::Delete(from) => (vec![from.clone()], false),
            Order::Copy(_, to) | Order::Restore(to, _) => (vec![to.clone()], false),
            Order::Swap(..) | Order::Flush(_) => (Vec::new(), true),
        };
        let accounts = &self.accounts;
        for watch in self.clients.iter_mut().filter_map(|client| client.watch.as_mut()) {
            watch.is_unsure |= is_everywhere;
            let is_left = left.contains(&watch.place) && accounts.contains_key(&watch.place);
            if is_left && watch.told.is_none() {
                watch.told = Some(watch.gone());
            }
        }
    }

    /// There is no queue, also where a key was made for a command that came to nothing: who watches
    /// something there may hear of it.
    pub fn watch_nothing_at(&mut self, place: &KeyRef) {
        let watches = self.clients.iter_mut().filter_map(|client| client.watch.as_mut());
        for watch in watches.filter(|watch| watch.place == *place) {
            watch.perhaps.push(watch.gone());
        }
    }

    /// All keys are other ones now.
    pub fn watch_reload(&mut self) {
        for watch in self.clients.iter_mut().filter_map(|client| client.watch.as_mut()) {
            watch.is_unsure = true;
        }
    }

    /// Notes what time has done up to now.
    pub fn watch_time(&mut self) {
        let (accounts, wall) = (&self.accounts, self.primary.wall_ms());
        let to_check: Vec<KeyRef> =
            (&self.primary).with(|state| state.to_check.keys().cloned().collect());
        for watch in self.clients.iter_mut().filter_map(|client| client.watch.as_mut()) {
            let account = accounts.get(&watch.place);
            let now = account.map_or(wall, |account| account.time_at(wall));
            let is_looked_at = !to_check.contains(&watch.place);
            if watch.is_unsure && is_looked_at {
                watch.is_unsure = false;
                let over = account
                    .map_or(Some(watch.gone()), |account| watch.over_by_operation(account, now));
                // The timer may have removed that job before it looked.
                watch.perhaps.extend(over.is_some().then(|| watch.gone()));
                watch.told = watch.told.take().or(over);
            }
            match watch.over(account, now) {
                Some(Verdict::Job(State::Dead, _)) => watch.by_time = vec![Bytes::new()],
                Some(Verdict::Void(void)) => watch.by_time = void,
                Some(Verdict::Gone | Verdict::Job(..)) | None => {}
            }
        }
    }

    /// A client that watched something gets its reply.
    pub fn judge_watcher_told(&mut self, client: ClientNumber, wish: &Wish) {
        let watch = self.clients[client].watch.take().expect("who is told doesn't watch");
        let got = match wish {
            Wish::Outcome(wish) => told_of(wish.told.get().unwrap()),
            Wish::Leases(wish) => {
                Verdict::Void(wish.void_ids().into_iter().map(Bytes::from).collect())
            }
            Wish::Jobs(_) => panic!("{client} gets jobs, and watches {watch:?}"),
        };
        self.tell(|| format!("   {client} is told {got:?}, {watch:?}"));
        let is_over = watch.deadline.is_some_and(|deadline| deadline <= self.now());
        let account = self.accounts.get(&watch.place);
        let wall = self.primary.wall_ms();
        let now = account.map_or(wall, |account| account.time_at(wall));
        if let Verdict::Void(void) = &got {
            let is_right = watch.are_void(void, account, now, is_over);
            return assert!(is_right, "{client} is told {got:?}, {watch:?} beside {account:?}");
        }
        let is_by_time = match &got {
            Verdict::Job(State::Dead, _) => !watch.by_time.is_empty(),
            Verdict::Gone | Verdict::Job(..) | Verdict::Void(_) => false,
        };
        let is_found = watch.perhaps.contains(&got)
            || watch.is_unsure && watch.over(account, now).as_ref() == Some(&got);
        // At the end of its time it gets what there is then.
        let is_end = is_over
            && match &got {
                Verdict::Job(State::Delayed | State::Ready | State::Reserved | State::Held, _) => {
                    true
                }
                Verdict::Gone | Verdict::Job(..) | Verdict::Void(_) => {
                    watch.over(account, now).as_ref() == Some(&got)
                }
            };
        let is_told = watch.told.as_ref() == Some(&got);
        assert!(
            is_told || is_by_time || is_found || is_end,
            "{client} is told {got:?}, {watch:?} beside {account:?}"
        );
    }

    /// Who is to be told something is about to be; and the alarm comes when time ends a wait.
    pub fn inspect_watchers(&self) {
        let wall = self.primary.wall_ms();
        for watch in self.clients.iter().filter_map(|client| client.watch.as_ref()) {
            if watch.told.is_some() || watch.is_unsure {
                let ends = self.primary.turn_end.get().is_some();
                assert!(ends || self.rings_by(self.soon()), "nobody tells {watch:?}");
            }
            if let Some(deadline) = watch.deadline {
                let limit = deadline.max(self.soon()) + self.slack();
                assert!(self.rings_by(limit), "nobody ends the wait of {watch:?}");
            }
            let Some(account) = self.accounts.get(&watch.place).filter(|_| watch.told.is_none())
            else {
                continue;
            };
            if self.stepped_at.is_some() && account.clock > wall {
                continue;
            }
            if let Some(at) = watch.ends_at(account) {
                let span = Duration::from_millis(at.saturating_sub(wall));
                let limit = (self.now() + span + self.slack()).max(self.soon());
                assert!(self.rings_by(limit), "nobody comes for {watch:?} at {at}");
            }
        }
    }

    /// All that had to happen has happened.
    pub fn inspect_watchers_at_rest(&self) {
        let wall = self.primary.wall_ms();
        for watch in self.clients.iter().filter_map(|client| client.watch.as_ref()) {
            let account = self.accounts.get(&watch.place);
            let now = account.map_or(wall, |account| account.time_at(wall));
            assert!(watch.told.is_none(), "nobody told {watch:?}");
            if self.stepped_at.is_some() && account.is_some_and(|account| account.clock > wall) {
                continue;
            }
            assert_eq!(watch.over(account, now), None, "nobody told {watch:?} beside {account:?}");
        }
    }
}
