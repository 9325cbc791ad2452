//! Which clients wait: for jobs, at which keys, in the order in which they came; for the outcome of a
//! job; for the end of a lease. No server in here, so that it can be tested.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use super::pending::DeliveredJobs;
use super::watchers::{Step, Watchers};
use super::wish::{Class, LeasesWish, OutcomeWish, Wish};
use crate::queue::{Millis, Pop};
use crate::services::key_ref::{Database, KeyRef, Ticket};

/// A waiting client. `C` is the server's handle of it.
struct Waiter<C> {
    client: C,
    wish: Wish,
    deadline: Option<Duration>,
    /// It is to be unblocked since then: no chore needs to.
    has_timed_out: bool,
}

/// The clients that wait at a key, a line for each class.
#[derive(Default)]
struct Line {
    classes: BTreeMap<Class, BTreeSet<Ticket>>,
    len: usize,
}

impl Line {
    fn insert(&mut self, class: Class, ticket: Ticket) {
        self.len += usize::from(self.classes.entry(class).or_default().insert(ticket));
    }

    fn remove(&mut self, class: Class, ticket: Ticket) {
        let Some(tickets) = self.classes.get_mut(&class) else {
            return;
        };
        self.len -= usize::from(tickets.remove(&ticket));
        if tickets.is_empty() {
            self.classes.remove(&class);
        }
    }

    /// The first client of all classes that may be served.
    fn first(&self, is_served: impl Fn(Class) -> bool) -> Option<Ticket> {
        let served = self.classes.iter().filter(|(class, _)| is_served(**class));
        served.filter_map(|(_, tickets)| tickets.first()).min().copied()
    }
}

/// Every operation is O(log n) in the number of waiting clients, for each key of the client.
pub struct Waiters<C> {
    last_ticket: Ticket,
    waiters: BTreeMap<Ticket, Waiter<C>>,
    /// Clients with no job on its way.
    lines: BTreeMap<Database, BTreeMap<Box<[u8]>, Line>>,
    deadlines: BTreeSet<(Duration, Ticket)>,
    /// What clients watch.
    pub watchers: Watchers,
    consumers: usize,
    /// Of the jobs that are on their way to clients.
    delivered_bytes: usize,
}

impl<C: Copy> Waiters<C> {
    pub const NONE: Waiters<C> = Waiters {
        last_ticket: 0,
        waiters: BTreeMap::new(),
        lines: BTreeMap::new(),
        deadlines: BTreeSet::new(),
        watchers: Watchers::NONE,
        consumers: 0,
        delivered_bytes: 0,
    };

    /// How many clients wait.
    pub fn len(&self) -> usize {
        self.waiters.len()
    }

    /// How many of them wait for jobs, at any key.
    pub fn consumers(&self) -> usize {
        self.consumers
    }

    /// How many clients wait for jobs of this key.
    pub fn len_at(&self, database: Database, key: &[u8]) -> usize {
        self.line(database, key).map_or(0, |line| line.len)
    }

    /// The ticket of the next client.
    pub fn next_ticket(&self) -> Ticket {
        self.last_ticket + 1
    }

    /// Adds a client after all others.
    pub fn join(&mut self, client: C, mut wish: Wish, deadline: Option<Duration>) {
        let ticket = self.next_ticket();
        self.last_ticket = ticket;
        match &mut wish {
            Wish::Outcome(OutcomeWish { key_ref, id, dies_at, told }) => {
                *told = self.watchers.join_job(key_ref, id, *dies_at, ticket);
            }
            Wish::Leases(LeasesWish { key_ref, leases, expire_at, .. }) => {
                self.watchers.join_leases(key_ref, leases, &std::mem::take(expire_at), ticket);
            }
            Wish::Jobs(wish) => {
                self.consumers += 1;
                let class = wish.class();
                for (database, key) in &wish.places {
                    let lines = self.lines.entry(*database).or_default();
                    lines.entry(key.clone()).or_default().insert(class, ticket);
                }
            }
        }
        self.deadlines.extend(deadline.map(|deadline| (deadline, ticket)));
        self.waiters.insert(ticket, Waiter { client, wish, deadline, has_timed_out: false });
    }

    /// The client to serve next at this key, and its POP, of those whose class may be served. O(classes).
    pub fn first_at(
        &self,
        database: Database,
        key: &[u8],
        is_served: impl Fn(Class) -> bool,
    ) -> Option<(Ticket, Pop)> {
        let ticket = self.line(database, key)?.first(is_served)?;
        match &self.waiters.get(&ticket)?.wish {
            Wish::Jobs(wish) => Some((ticket, wish.terms)),
            Wish::Outcome(_) | Wish::Leases(_) => None,
        }
    }

    /// The shortest LINGER of the clients that wait at this key until a delivery is worth it.
    pub fn shortest_linger(&self, database: Database, key: &[u8]) -> Option<Millis> {
        let classes = self.line(database, key)?.classes.keys();
        classes.filter_map(|class| class.batch).map(|batch| batch.linger).min()
    }

    /// Assigns jobs to a client, which then leaves all lines.
    pub fn deliver(&mut self, ticket: Ticket, delivered: DeliveredJobs) {
        self.leave_lines(ticket);
        if let Some(Waiter { wish: Wish::Jobs(wish), .. }) = self.waiters.get_mut(&ticket) {
            self.delivered_bytes += delivered.bytes();
            wish.delivered = Some(Arc::new(delivered));
        }
    }

    /// The server's handle of this client, if it still waits.
    pub fn client_of(&self, ticket: Ticket) -> Option<C> {
        self.waiters.get(&ticket).map(|waiter| waiter.client)
    }

    /// Bytes of the jobs that are on their way to clients.
    pub fn delivered_bytes(&self) -> usize {
        self.delivered_bytes
    }

    /// Does so many steps of what is left to do for watchers. Returns the clients that are to be
    /// unblocked for that.
    pub fn do_chores(&mut self, steps: usize) -> Vec<Ticket> {
        let mut tickets = Vec::new();
        for _ in 0..steps {
            match self.watchers.step() {
                Step::Idle => break,
                Step::Quiet => {}
                Step::Void(ticket) => tickets.extend(self.reply_void(ticket).then_some(ticket)),
                Step::Over(over) => {
                    let is_news = |ticket: &Ticket| {
                        self.waiters.get(ticket).is_some_and(|waiter| !waiter.has_timed_out)
                    };
                    tickets.extend(over.into_iter().filter(is_news));
                }
            }
        }
        tickets
    }

    /// A lease of a client is void. Whether the client is to be unblocked for that: not if another
    /// one was void before.
    fn reply_void(&mut self, ticket: Ticket) -> bool {
        match self.waiters.get_mut(&ticket) {
            Some(Waiter { wish: Wish::Leases(wish), has_timed_out: false, .. }) => wish.tell(),
            Some(_) | None => false,
        }
    }

    /// What the client waits for, and gets if its wait ends now. The client stays.
    pub fn wish(&self, ticket: Ticket) -> Option<&Wish> {
        self.waiters.get(&ticket).map(|waiter| &waiter.wish)
    }

    /// A client stops waiting: it got what it waited for, timed out, or went away.
    pub fn leave(&mut self, ticket: Ticket) -> Option<Wish> {
        self.leave_lines(ticket);
        let wish = self.waiters.remove(&ticket)?.wish;
        if let Wish::Jobs(wish) = &wish {
            self.consumers -= 1;
            self.delivered_bytes -=
                wish.delivered.as_ref().map_or(0, |delivered| delivered.bytes());
        }
        Some(wish)
    }

    /// When the first client times out.
    pub fn next_deadline(&self) -> Option<Duration> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    /// Takes a client whose wait has timed out from the lines. One that is to be unblocked anyway
    /// is left out.
    pub fn take_expired(&mut self, now: Duration) -> Option<Ticket> {
        loop {
            let first = *self.deadlines.first().filter(|(deadline, _)| *deadline <= now)?;
            self.deadlines.remove(&first);
            let (_, ticket) = first;
            let is_told = self.wish(ticket).is_some_and(Wish::is_told);
            self.leave_lines(ticket);
            if let Some(waiter) = self.waiters.get_mut(&ticket).filter(|_| !is_told) {
                waiter.has_timed_out = true;
                return Some(ticket);
            }
        }
    }

    /// The next keys with waiting clients, over all databases: at most `count`, after the key
    /// `last`.
    pub fn keys_behind(&self, last: Option<&KeyRef>, count: usize) -> Vec<KeyRef> {
        let (from, last_key) =
            last.map_or((Database::MIN, None), |(database, key)| (*database, Some(key)));
        let databases = self.lines.range(from..);
        let places = databases.flat_map(|(&database, lines)| {
            let behind =
                last_key.filter(|_| database == from).map_or(Bound::Unbounded, Bound::Excluded);
            let keys = lines.range::<Box<[u8]>, _>((behind, Bound::Unbounded));
            keys.map(move |(key, _)| (database, key.clone()))
        });
        places.take(count).collect()
    }

    /// Whether no client is left.
    #[cfg(test)]
    pub fn holds_nothing(&self) -> bool {
        self.waiters.is_empty()
            && self.lines.is_empty()
            && self.deadlines.is_empty()
            && self.watchers.is_empty()
            && !self.watchers.has_chores()
            && self.delivered_bytes == 0
    }

    fn line(&self, database: Database, key: &[u8]) -> Option<&Line> {
        self.lines.get(&database)?.get(key)
    }

    fn leave_lines(&mut self, ticket: Ticket) {
        let Some(waiter) = self.waiters.get_mut(&ticket) else {
            return;
        };
        if let Some(deadline) = waiter.deadline.take() {
            self.deadlines.remove(&(deadline, ticket));
        }
        let wish = match &mut waiter.wish {
            Wish::Jobs(wish) => wish,
            Wish::Outcome(OutcomeWish { key_ref, id, .. }) => {
                return self.watchers.leave_job(key_ref, id, ticket);
            }
            Wish::Leases(LeasesWish { key_ref, leases, .. }) => {
                return self.watchers.leave_leases(key_ref, leases, ticket);
            }
        };
        let class = wish.class();
        for (database, key) in wish.places.drain(..) {
            let Some(lines) = self.lines.get_mut(&database) else {
                continue;
            };
            let is_empty = lines.get_mut(&key).is_some_and(|line| {
                line.remove(class, ticket);
                line.len == 0
            });
            if is_empty {
                lines.remove(&key);
            }
            if lines.is_empty() {
                self.lines.remove(&database);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::{Batch, Circumstances, Mode, Queue};
    use crate::services::keys::sums::QueueSums;
    use crate::services::keys::value::{QueueNumber, QueueValue};
    use crate::services::waiting::wish::Shape;

    const TERMS: Pop = Pop::ONE;
    const SHAPE: Shape = Shape { with_key: false, with_due: false, finished: None };

    fn at(keys: &[&str]) -> Vec<KeyRef> {
        keys.iter().map(|key| (0, key.as_bytes().into())).collect()
    }

    fn waiters(of: &[&[&str]]) -> Waiters<char> {
        let mut waiters = Waiters::NONE;
        for (client, keys) in ('a'..).zip(of) {
            waiters.join(client, Wish::jobs(TERMS, None, SHAPE, at(keys)), None);
        }
        waiters
    }

    fn ticket_of(waiters: &Waiters<char>, client: char) -> Ticket {
        *waiters.waiters.iter().find(|(_, waiter)| waiter.client == client).unwrap().0
    }

    fn first(waiters: &Waiters<char>, key: &str) -> Option<char> {
        let (ticket, _) = waiters.first_at(0, key.as_bytes(), |_| true)?;
        Some(waiters.waiters[&ticket].client)
    }

    #[test]
    fn who_came_first_is_first_at_each_of_their_keys() {
        let mut waiters = waiters(&[&["x", "y"], &["y"], &["x"]]);
        assert_eq!(
            (first(&waiters, "x"), first(&waiters, "y"), first(&waiters, "z")),
            (Some('a'), Some('a'), None)
        );
        waiters.leave(ticket_of(&waiters, 'a'));
        assert_eq!((first(&waiters, "x"), first(&waiters, "y")), (Some('c'), Some('b')));
    }

    #[test]
    fn who_takes_jobs_in_one_mode_is_found_however_many_wait_in_the_other() {
        let mut waiters = Waiters::NONE;
        for client in 'a'..='d' {
            let mode = if client < 'c' { Mode::Lease } else { Mode::NoAck };
            waiters.join(client, Wish::jobs(Pop { mode, ..TERMS }, None, SHAPE, at(&["x"])), None);
        }
        let first_in = |waiters: &Waiters<char>, mode| {
            let (ticket, _) = waiters.first_at(0, b"x", |class| class.mode == mode)?;
            waiters.client_of(ticket)
        };
        let firsts = |waiters: &Waiters<char>| {
            (first(waiters, "x"), first_in(waiters, Mode::Lease), first_in(waiters, Mode::NoAck))
        };
        assert_eq!(firsts(&waiters), (Some('a'), Some('a'), Some('c')));
        waiters.leave(ticket_of(&waiters, 'c'));
        assert_eq!(
            (firsts(&waiters), waiters.len_at(0, b"x")),
            ((Some('a'), Some('a'), Some('d')), 3)
        );
        ['a', 'b'].iter().for_each(|client| drop(waiters.leave(ticket_of(&waiters, *client))));
        assert_eq!(firsts(&waiters), (Some('d'), None, Some('d')));
        waiters.leave(ticket_of(&waiters, 'd'));
        assert!(waiters.holds_nothing());
    }

    #[test]
    fn who_waits_for_a_batch_does_not_stand_in_the_way() {
        let mut waiters = Waiters::NONE;
        let batch = |min, ms| Some(Batch { min, linger: Millis::new(ms).unwrap() });
        for (client, batch) in [('a', batch(5, 90)), ('b', None), ('c', batch(2, 70))] {
            let wish = Wish::jobs(TERMS, batch, SHAPE, at(&["x"]));
            waiters.join(client, wish, None);
        }
        let first_with = |waiters: &Waiters<char>, jobs| {
            let is_served = |class: Class| class.batch.is_none_or(|batch| batch.min <= jobs);
            let (ticket, _) = waiters.first_at(0, b"x", is_served)?;
            waiters.client_of(ticket)
        };
        assert_eq!([1, 2, 5].map(|jobs| first_with(&waiters, jobs)), ['b', 'b', 'a'].map(Some));
        waiters.leave(ticket_of(&waiters, 'b'));
        assert_eq!([1, 2, 5].map(|jobs| first_with(&waiters, jobs)), [None, Some('c'), Some('a')]);
        assert_eq!(waiters.shortest_linger(0, b"x"), Millis::new(70));
        ['a', 'c'].iter().for_each(|client| drop(waiters.leave(ticket_of(&waiters, *client))));
        assert!(waiters.holds_nothing());
    }

    #[test]
    fn who_is_assigned_something_stands_in_no_line_but_is_still_there() {
        let mut waiters = waiters(&[&["x", "y"]]);
        let ticket = ticket_of(&waiters, 'a');
        let mut value =
            QueueValue::new(Queue::new((1, 2)), QueueSums::default(), QueueNumber::default());
        let nothing = value.queue.apply(&Circumstances::default(), &TERMS);
        waiters.deliver(ticket, DeliveredJobs::new((0, b"x"[..].into()), &value, &nothing));
        assert_eq!((waiters.len(), waiters.len_at(0, b"x"), waiters.len_at(0, b"y")), (1, 0, 0));
        assert_eq!(waiters.client_of(ticket), Some('a'));
        let Some(Wish::Jobs(left)) = waiters.leave(ticket) else { panic!() };
        assert!(left.delivered.is_some());
        assert!(waiters.leave(ticket).is_none());
        assert_eq!((waiters.len(), waiters.lines.len()), (0, 0));
    }

    #[test]
    fn a_deadline_without_a_client_is_passed() {
        let mut waiters = Waiters::<char>::NONE;
        waiters.deadlines.insert((Duration::ZERO, 7));
        assert_eq!(waiters.take_expired(Duration::ZERO), None);
        assert!(waiters.holds_nothing());
    }

    #[test]
    fn the_same_key_twice_is_one_place() {
        let mut waiters = waiters(&[&["x", "x"]]);
        assert_eq!(waiters.len_at(0, b"x"), 1);
        waiters.leave(1);
        assert!(waiters.lines.is_empty());
    }

    #[test]
    fn keys_are_gone_through_in_parts_and_over_all_databases() {
        let mut waiters = waiters(&[&["b"], &["a", "d"], &["a"]]);
        let places = vec![(2, b"c"[..].into()), (7, b"a"[..].into())];
        waiters.join('z', Wish::jobs(TERMS, None, SHAPE, places), None);
        let mut seen = Vec::new();
        let mut last = None;
        loop {
            let part = waiters.keys_behind(last.as_ref(), 2);
            assert!(part.len() <= 2);
            seen.extend(part.iter().map(|(database, key)| (*database, key[0])));
            last = part.last().cloned();
            if last.is_none() {
                break;
            }
        }
        assert_eq!(seen, [(0, b'a'), (0, b'b'), (0, b'd'), (2, b'c'), (7, b'a')]);
        // A key that is gone by now is passed all the same.
        let gone = (0, b"c"[..].into());
        assert_eq!(waiters.keys_behind(Some(&gone), 1), [(0, b"d"[..].into())]);
    }

    #[test]
    fn deadlines_come_in_their_order_and_take_people_out_of_the_lines() {
        let (mut waiters, now) = (Waiters::NONE, Duration::from_secs(9));
        let after = |ms| Some(now + Duration::from_millis(ms));
        for (client, deadline) in
            [('a', after(20)), ('b', after(10)), ('c', None), ('d', after(30))]
        {
            waiters.join(client, Wish::jobs(TERMS, None, SHAPE, at(&["x"])), deadline);
        }
        assert_eq!(waiters.next_deadline(), after(10));
        let expired: Vec<Ticket> =
            std::iter::from_fn(|| waiters.take_expired(now + Duration::from_millis(20))).collect();
        assert_eq!(expired, ['b', 'a'].map(|client| ticket_of(&waiters, client)));
        assert_eq!((waiters.len_at(0, b"x"), first(&waiters, "x")), (2, Some('c')));
        assert_eq!(waiters.next_deadline(), after(30));
    }
}
