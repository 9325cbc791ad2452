//! What servers do, beside the world's own accounts.

use std::time::Duration;

use crate::services::change::log::LoggedCircumstances;
use crate::services::host::Host;
use crate::services::key_ref::KeyRef;
use crate::services::waiting::wish::Wish;

use super::account::{Account, State};
use super::commands::{Command, Entry, Reply};
use super::node::{ClientNumber, Event, Logged};
use super::operation::{Handed, Operation, Outcome, Terms};
use super::world::{DeliveredJobs, Wait, World};
use crate::services::waiting::pending::DeliveredJob;

/// The timer leaves groups without jobs alone for so long behind the last change.
const QUIET_MS: u64 = 1_000;

/// A command that is being executed.
#[derive(Clone, Copy)]
pub struct Said<'c> {
    command: &'c Command,
    is_inside_another: bool,
}

impl World {
    /// A client says something, and gets its reply.
    pub fn say(&mut self, client: ClientNumber, command: &Command, is_inside_another: bool) {
        self.tell(|| {
            format!("{client}: {command:?}{}", if is_inside_another { " in MULTI" } else { "" })
        });
        let begun = self.primary.wall_ms();
        self.settled.clear();
        let reply = self.primary.run(client, command, is_inside_another);
        self.tell(|| format!("   {reply:?}"));
        let own = self.absorb(begun, Some(Said { command, is_inside_another }));
        self.judge_reply(client, command, reply, own, begun);
        if !is_inside_another {
            self.primary.tell_of_ready_keys();
            self.absorb(begun, None);
        }
    }

    /// Takes in what the primary has told since the wall clock showed `begun`; what came of the
    /// command itself, if it is in the log.
    pub fn absorb(&mut self, begun: u64, said: Option<Said>) -> Option<Outcome> {
        let mut own = None;
        self.watch_time();
        for event in self.primary.events.take() {
            match event {
                Event::Logged(logged) => {
                    let (is_own, outcome) = self.judge_entry(logged, begun, said);
                    if is_own {
                        assert!(own.is_none(), "a command is logged twice");
                        own = Some(outcome);
                    }
                }
                Event::Ran(place, words) => self.judge_poured(place, &words),
                Event::Verdict(client, departure) => self.judge_told(client, departure),
            }
        }
        assert!(self.pouring.is_none(), "{:?} is in a stream and in its queue", self.pouring);
        own
    }

    fn judge_entry(&mut self, logged: Logged, begun: u64, said: Option<Said>) -> (bool, Outcome) {
        let Logged { place, told, operation, is_as_sent } = logged;
        self.tell(|| format!("   log: {place:?} {told:?} {operation:?}"));
        let ended = self.primary.wall_ms();
        let is_new = !self.accounts.contains_key(&place);
        assert!(!is_new || operation.creates(), "{operation:?} of a queue that isn't there");
        if is_new {
            self.open_account(&place, Account::default());
        }
        let account = self.accounts.get_mut(&place).unwrap();
        let time = told.as_ref().map_or(account.clock, |(time, _)| *time);
        let times = account.time_at(begun)..=account.time_at(ended);
        assert!(times.contains(&time), "{operation:?} at {time}, not in {times:?}");
        let floor = told.as_ref().map_or(0, |(time, told)| {
            let told = LoggedCircumstances::parse(time.to_string().as_bytes(), told.as_bytes());
            told.expect("what is told can be read").lease_floor.number()
        });
        let before = account.clone();
        let outcome = account.apply(time, floor, &operation);
        self.watch_change(&place, time);
        let has_changed = outcome.has_changed() || before.notices_set_back(time, &outcome);
        assert!(has_changed, "{operation:?} is logged and changes nothing in {before:?}");
        if matches!(operation, Operation::Renew { .. } | Operation::Settle(_)) {
            self.settled.insert(place.clone(), self.accounts[&place].clone());
        }
        let is_own = match &operation {
            Operation::Pop(terms) => self.judge_delivery(&place, terms, &outcome, said),
            Operation::Forget(ids) if !is_said_to_purge(said) => {
                judge_forgotten(&before, ids, time);
                false
            }
            Operation::PassOver => panic!("there is nothing to pass over"),
            Operation::ForgetGroups => {
                assert!(time >= before.clock + QUIET_MS, "of a queue that is busy");
                false
            }
            Operation::Settle(ids) => {
                assert_eq!(outcome, Outcome::Jobs(ids.len()), "in vain: {before:?}");
                false
            }
            Operation::Release { lease, .. } if !is_as_sent => {
                self.judge_given_back(before.number, *lease);
                false
            }
            Operation::PopById(..) => {
                self.note_leases(&place, &outcome);
                true
            }
            Operation::KickJob(_) | Operation::KickSpread(..) | Operation::Forget(_) => true,
            Operation::Add(_)
            | Operation::AddMany(_)
            | Operation::Finish(_)
            | Operation::Release { .. }
            | Operation::Touch { .. }
            | Operation::Renew { .. }
            | Operation::Done { .. }
            | Operation::Bury { .. }
            | Operation::Delete(_)
            | Operation::Pause(..)
            | Operation::Resume(_)
            | Operation::LimitGroups(_)
            | Operation::KeepDead(_)
            | Operation::ResumeJobs(_)
            | Operation::Sink(_) => {
                assert!(is_as_sent && said.is_some(), "{operation:?} is logged and nobody said it");
                true
            }
        };
        self.forget_what_is_not_owed();
        self.touched.insert(place.clone());
        self.push(Entry::Change { place, told, operation });
        (is_own, outcome)
    }

    pub fn open_account(&mut self, place: &KeyRef, account: Account) {
        self.accounts_opened += 1;
        self.accounts.insert(place.clone(), account.copy(self.accounts_opened));
    }

    pub fn push(&mut self, entry: Entry) {
        self.log.push(entry);
        if self.troubles.crashes {
            self.earlier.insert(self.log.len(), self.accounts.clone());
        }
    }

    /// A DQ.POP in the log is that of the command, or a delivery to somebody who waits. By their
    /// terms they are known.
    fn judge_delivery(
        &mut self,
        place: &KeyRef,
        terms: &Terms,
        outcome: &Outcome,
        said: Option<Said>,
    ) -> bool {
        let handed = self.note_leases(place, outcome);
        if handed.is_empty() {
            return false;
        }
        if self.is_poured(place, terms, handed) {
            return false;
        }
        if let Some(Said { command: Command::Pop { terms: own, .. }, is_inside_another }) = said {
            if own == terms {
                // In a transaction nobody else is served.
                if !is_inside_another {
                    self.judge_nobody_came_before(place);
                }
                return true;
            }
        }
        let now = self.now();
        let line = self.lines.get(place).cloned().unwrap_or_default();
        let is_theirs = |client: &ClientNumber| {
            let wait = self.clients[*client].wait.as_ref();
            wait.is_some_and(|wait| wait.terms == *terms && wait.delivered.is_none())
        };
        let at = line.iter().position(is_theirs).expect("jobs are handed out to nobody who waits");
        for earlier in &line[..at] {
            let wait = self.clients[*earlier].wait.as_ref().unwrap();
            let has_gone = wait.deadline.is_some_and(|deadline| deadline <= now);
            assert!(has_gone, "{} is served before {earlier}, who came first", line[at]);
        }
        let number = self.accounts[place].number;
        self.lines.values_mut().for_each(|other| other.retain(|one| *one != line[at]));
        let wait = self.clients[line[at]].wait.as_mut().unwrap();
        wait.delivered = Some(DeliveredJobs { handed: handed.to_vec(), account: Some(number) });
        false
    }

    /// Somebody takes a job without having waited: who waits there has had the chance, unless the
    /// time was too short.
    fn judge_nobody_came_before(&self, place: &KeyRef) {
        if self.primary.with(|state| state.to_serve.contains(place)) {
            return;
        }
        let still_waits = |client: &&ClientNumber| {
            let wait = self.clients[**client].wait.as_ref().unwrap();
            wait.delivered.is_none() && wait.deadline.is_none_or(|deadline| deadline > self.now())
        };
        let earlier = self.lines.get(place).and_then(|line| line.iter().find(still_waits));
        assert!(earlier.is_none(), "somebody is served before {earlier:?}, who came first");
    }

    /// No lease comes twice; and at a key they grow, whatever queue is there. (Those of one queue
    /// are the account's matter.)
    fn note_leases<'o>(&mut self, place: &KeyRef, outcome: &'o Outcome) -> &'o [Handed] {
        let Outcome::Handed(handed) = outcome else {
            return &[];
        };
        // A crash may have lost some: then the next begin so far ahead that they are others. So do
        // those of a queue that was made after another was deleted, where a replica takes over
        // whose clock is behind: nothing tells it of that one.
        let are_forgotten =
            self.troubles.crashes || self.troubles.role_changes && self.troubles.stepped_clocks;
        let given = self.given.entry(place.clone()).or_default();
        for Handed { id, lease, .. } in handed {
            let highest = given.last().copied().unwrap_or_default();
            let is_new = *lease > highest || are_forgotten && !given.contains(lease);
            assert!(is_new, "lease {lease} of {id:?} comes after {highest}");
            given.insert(*lease);
        }
        handed
    }

    /// Nothing is owed once somebody else has to do with the job, or with its id.
    pub fn forget_what_is_not_owed(&mut self) {
        let (accounts, wall) = (&self.accounts, self.primary.wall_ms());
        self.owed.retain(|owed| {
            let account = accounts.values().find(|account| account.number == owed.account);
            account
                .is_some_and(|account| account.is_held(account.time_at(wall), &owed.id, owed.lease))
        });
    }

    fn judge_given_back(&mut self, account: u64, lease: Option<u64>) {
        let lease = lease.expect("what is given back is called by its lease");
        assert!(self.untold.contains(&lease), "{lease} is given back, and a client was told of it");
        self.owed.retain(|owed| (owed.account, owed.lease) != (account, lease));
    }

    /// A client that waited gets its reply.
    fn judge_told(&mut self, client: ClientNumber, departure: Option<Wish>) {
        let now = self.now();
        if self.clients[client].watch.is_some() {
            let wish = departure.expect("a ticket is known as long as its client waits");
            return self.judge_watcher_told(client, &wish);
        }
        let wait = self.clients[client].wait.take().expect("somebody is told who doesn't wait");
        self.lines.values_mut().for_each(|line| line.retain(|other| *other != client));
        let departure = departure.expect("a ticket is known as long as its client waits");
        let Wish::Jobs(wish) = departure else { panic!("a consumer gets something else") };
        let got: Option<Vec<Handed>> = wish.delivered.map(|delivered| {
            let one = |job: &DeliveredJob<Box<[u8]>>| Handed {
                id: job.id.to_vec(),
                body: job.body.to_vec(),
                lease: job.lease.number(),
                attempt: job.attempt,
            };
            delivered.jobs.iter().map(one).collect()
        });
        self.tell(|| format!("   {client} is told {got:?}"));
        let delivered = wait.delivered.map(|delivered| delivered.handed);
        assert_eq!(got, delivered, "what {client} gets isn't what it was given");
        if got.is_none() {
            let is_over = wait.deadline.is_some_and(|deadline| deadline <= now);
            assert!(is_over, "{client} is sent away too early");
        }
        if !wait.terms.no_ack {
            self.hold(client, &wait.places[0], got.unwrap_or_default());
        }
    }

    fn hold(&mut self, client: ClientNumber, place: &KeyRef, handed: Vec<Handed>) {
        self.clients[client]
            .held
            .extend(handed.into_iter().map(|job| (place.clone(), job.id, job.lease)));
    }

    fn judge_reply(
        &mut self,
        client: ClientNumber,
        command: &Command,
        reply: Reply,
        own: Option<Outcome>,
        begun: u64,
    ) {
        match (command, reply) {
            (Command::Change(place, operation), Reply::Outcome(outcome)) => {
                let expected = match own {
                    Some(own) => vec![own],
                    None => self.unchanged(place, operation, begun),
                };
                assert!(expected.contains(&outcome), "{outcome:?} to {operation:?}: {expected:?}");
                if !self.accounts.contains_key(place) {
                    self.watch_nothing_at(place);
                }
                if let (
                    Operation::PopById(_, Terms { no_ack: false, .. }),
                    Outcome::Handed(handed),
                ) = (operation, outcome)
                {
                    self.hold(client, place, handed);
                }
            }
            (Command::Kick { place, .. }, Reply::Outcome(outcome)) => {
                self.judge_choice(place, |state| state == State::Dead, outcome, own, begun);
            }
            (Command::Purge(place, state, _), Reply::Outcome(outcome)) => {
                let wanted = state_of(*state);
                self.judge_choice(place, |state| state == wanted, outcome, own, begun);
            }
            (
                Command::Change(place, _) | Command::Kick { place, .. } | Command::Purge(place, ..),
                Reply::Missing,
            ) => {
                assert!(!self.accounts.contains_key(place), "a queue is missing");
            }
            (Command::Pop { places, terms, .. }, Reply::From(place, handed)) => {
                assert_eq!(own, Some(Outcome::Handed(handed.clone())), "what is handed out");
                let earlier = places.iter().take_while(|one| **one != place);
                let earlier: Vec<KeyRef> = earlier.cloned().collect();
                self.judge_nothing_for(&earlier, command, begun);
                if !terms.no_ack {
                    self.hold(client, &place, handed);
                }
            }
            (Command::Pop { places, .. }, Reply::Nil) => {
                assert_eq!(own, None);
                self.judge_nothing_for(places, command, begun);
            }
            (Command::Pop { places, terms, block, .. }, Reply::Waits) => {
                assert_eq!(own, None);
                self.judge_nothing_for(places, command, begun);
                let deadline = block.filter(|ms| *ms > 0).map(Duration::from_millis);
                let deadline = deadline.map(|timeout| self.now() + timeout);
                self.wait(
                    client,
                    Wait {
                        places: places.clone(),
                        terms: *terms,
                        deadline,
                        delivered: None,
                        starved: 0,
                    },
                );
            }
            (Command::Watch(place, watching), reply) => {
                self.judge_watching(client, (place, watching), reply, own, begun);
            }
            (Command::Keys(order), Reply::Ordered(is_done)) => {
                if is_done {
                    self.watch_order(order);
                    self.follow(order);
                    self.push(Entry::Keys(order.clone()));
                }
            }
            (Command::Look(_), Reply::Looked) => assert_eq!(own, None),
            (command, reply) => panic!("{reply:?} to {command:?}"),
        }
    }

    fn wait(&mut self, client: ClientNumber, wait: Wait) {
        for place in &wait.places {
            let line = self.lines.entry(place.clone()).or_default();
            if !line.contains(&client) {
                line.push(client);
            }
        }
        self.clients[client].wait = Some(wait);
    }

    /// As it was when the command was carried out that is replied to, if it has changed nothing.
    pub fn account_for_reply(&self, place: &KeyRef) -> Account {
        self.settled.get(place).or(self.accounts.get(place)).cloned().unwrap_or_default()
    }

    /// What may come of an operation that isn't logged, when it began or now.
    pub fn unchanged(&self, place: &KeyRef, operation: &Operation, begun: u64) -> Vec<Outcome> {
        // Who waits is served before a POP, also with what has just been settled.
        let account = if matches!(operation, Operation::PopById(..)) {
            self.accounts.get(place).cloned().unwrap_or_default()
        } else {
            self.account_for_reply(place)
        };
        let times = [begun, self.primary.wall_ms()].map(|wall| account.time_at(wall));
        let outcomes = times.map(|time| account.clone().apply(time, 0, operation));
        let unchanged = outcomes.into_iter().filter(|outcome| !outcome.has_changed());
        let unchanged: Vec<Outcome> = unchanged.collect();
        assert!(!unchanged.is_empty(), "{operation:?} changes {account:?} and isn't logged");
        unchanged
    }

    fn judge_choice(
        &self,
        place: &KeyRef,
        is_wanted: impl Fn(State) -> bool,
        outcome: Outcome,
        own: Option<Outcome>,
        begun: u64,
    ) {
        let account = self.account_for_reply(place);
        let wanted_at =
            |wall| account.jobs.iter().any(|job| is_wanted(job.state(account.time_at(wall))));
        match own {
            Some(own) => assert_eq!(outcome, own),
            None => {
                assert_eq!(outcome, Outcome::Jobs(0));
                assert!(
                    !wanted_at(begun) || !wanted_at(self.primary.wall_ms()),
                    "none of {account:?}"
                );
            }
        }
    }

    /// Somebody got nothing from these queues: there was nothing, or it is for others who came
    /// first.
    fn judge_nothing_for(&self, places: &[KeyRef], command: &Command, begun: u64) {
        let may_wait = matches!(command, Command::Pop { block: Some(_), .. });
        for place in places {
            let Some(account) = self.accounts.get(place) else {
                continue;
            };
            let are_others_first =
                may_wait && self.lines.get(place).is_some_and(|line| !line.is_empty());
            // What expires between the two may have been there when this began.
            let times = [begun, self.primary.wall_ms()].map(|wall| account.time_at(wall));
            let has_something = times.iter().all(|time| account.has_something(*time));
            assert!(
                !has_something || are_others_first,
                "{command:?} gets nothing from {account:?}"
            );
        }
    }
}

fn is_said_to_purge(said: Option<Said>) -> bool {
    matches!(said, Some(Said { command: Command::Purge(..), .. }))
}

/// The timer removed these.
fn judge_forgotten(account: &Account, ids: &[Vec<u8>], time: u64) {
    for id in ids {
        let job = account.job(id).expect("a job is forgotten that isn't there");
        let at = account.is_to_be_forgotten_at(job);
        assert!(at.is_some_and(|at| at <= time), "{job:?} is forgotten at {time}");
    }
}

pub fn state_of(state: crate::queue::State) -> State {
    match state {
        crate::queue::State::Delayed => State::Delayed,
        crate::queue::State::Ready => State::Ready,
        crate::queue::State::Reserved => State::Reserved,
        crate::queue::State::Dead => State::Dead,
        crate::queue::State::Done => State::Done,
        crate::queue::State::Held => State::Held,
    }
}
