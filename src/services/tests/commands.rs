//! Commands, as the floor above carries them out; and entries of the log.

use std::time::Duration;

use crate::queue::{
    self, Checksum, Deliveries, KickJob, KickSpread, Pop, PopById, Queue, Removal, Remove,
};
use crate::services::change::frame::{self, Frame, Source};
use crate::services::change::log::{self, Internal, LogForm, LoggedCircumstances};
use crate::services::key_ref::KeyRef;
use crate::services::waiting::serving;
use crate::services::waiting::wish::{Class, Shape, Wish};

use super::key::Context;
use super::keyspace::Order;
use super::node::{ClientNumber, Node};
use super::operation::{handed, ids, ms, Handed, Operation, Outcome, Terms};
use super::watch::{Verdict, Watching};

const SHAPE: Shape = Shape { with_key: true, with_due: false, finished: None };

#[derive(Clone, Debug)]
pub enum Command {
    Change(KeyRef, Operation),
    /// DQ.POP, or DQ.MPOP if `is_of_many`; a `block` of zero is without end.
    Pop {
        places: Vec<KeyRef>,
        terms: Terms,
        block: Option<u64>,
        is_of_many: bool,
    },
    Kick {
        place: KeyRef,
        count: usize,
        spread: Option<u64>,
    },
    Purge(KeyRef, queue::State, usize),
    Watch(KeyRef, Watching),
    Look(KeyRef),
    Keys(Order),
}

#[derive(Debug)]
pub enum Reply {
    Outcome(Outcome),
    /// There is no such queue.
    Missing,
    From(KeyRef, Vec<Handed>),
    Nil,
    Verdict(Verdict),
    /// None yet: the client waits.
    Waits,
    /// Of an order: whether there was anything to do.
    Ordered(bool),
    Looked,
}

/// What replicas and the AOF get.
#[derive(Clone, Debug)]
pub enum Entry {
    Change { place: KeyRef, told: Option<(u64, String)>, operation: Operation },
    Keys(Order),
}

impl Node {
    pub fn run(&self, client: ClientNumber, command: &Command, is_inside_another: bool) -> Reply {
        let context = |sent| Context::Command { sent, is_inside_another };
        let outcome = match command {
            Command::Change(place, operation @ Operation::PopById(names, terms)) => {
                let (ids, Pop { ttr, mode, .. }) = (ids(names), terms.pop());
                let digits = ttr.map_or(String::new(), |ttr| ttr.as_u64().to_string());
                let words = log::pop_by_id_args(&PopById { ids: &ids, ttr, mode }, &digits);
                self.open_as(place, context(None), false, |key, value| {
                    let open = Frame::new(self, key, value, Source::Client, None);
                    operation.carry_out(open, LogForm::Command(log::POP, &words))
                })
            }
            Command::Change(place, operation) => {
                let is_new = !self.keys.borrow().contains_key(place);
                let context = context(Some(operation));
                let outcome = self.open_as(place, context, operation.creates(), |key, value| {
                    let open = Frame::new(self, key, value, Source::Client, None);
                    operation.carry_out(open, LogForm::AsSent)
                });
                // Nobody sees a key that was made for nothing.
                if is_new && outcome.as_ref().is_some_and(|outcome| !outcome.has_changed()) {
                    self.carry_out(&Order::Delete(place.clone()));
                }
                outcome
            }
            Command::Kick { place, count, spread } => {
                self.open_as(place, context(None), false, |key, value| {
                    let open = Frame::new(self, key, value, Source::Client, None);
                    let names = open.queue().ids_of(&open.queue().peek(queue::State::Dead, *count));
                    let (ids, mut words) = (names.ids(), names.bytes());
                    let digits = spread.map_or(String::new(), |ms| ms.to_string());
                    let kicked = if let Some(span) = spread.map(ms) {
                        words.insert(0, digits.as_bytes());
                        let words = LogForm::Internal(Internal::KickSpread, &words);
                        open.change(&KickSpread { ids, span }, words, |outcome, _| outcome.0)
                    } else {
                        let words = LogForm::Command(c"DQ.KICKJOB", &words);
                        open.change(&KickJob { ids }, words, |outcome, _| outcome.0)
                    };
                    Outcome::Jobs(kicked)
                })
            }
            Command::Purge(place, state, count) => {
                self.open_as(place, context(None), false, |key, value| {
                    let open = Frame::new(self, key, value, Source::Client, None);
                    let slots =
                        open.queue().to_purge(open.now(), *state, queue::Millis::ZERO, *count);
                    let names = open.queue().ids_of(&slots);
                    let purge = Remove { ids: names.ids(), counted_as: Removal::Purged };
                    let words = names.bytes();
                    let words = LogForm::Internal(Internal::Forget, &words);
                    Outcome::Jobs(open.change(&purge, words, |outcome, _| outcome.0))
                })
            }
            Command::Watch(place, watching) => {
                return self.watch(client, place, watching, is_inside_another);
            }
            Command::Pop { .. } => return self.pop(client, command, is_inside_another),
            Command::Look(place) => {
                self.open_as(place, context(None), false, |key, value| {
                    frame::look(self, &key, value)
                });
                return Reply::Looked;
            }
            Command::Keys(order) => return Reply::Ordered(self.carry_out(order)),
        };
        outcome.map_or(Reply::Missing, Reply::Outcome)
    }

    fn pop(&self, client: ClientNumber, command: &Command, is_inside_another: bool) -> Reply {
        let Command::Pop { places, terms, block, is_of_many } = command else {
            return Reply::Nil;
        };
        let (pop, sent) = (terms.pop(), Operation::Pop(*terms));
        let words = log::pop_args(&pop);
        let words: Vec<&[u8]> = words.iter().map(String::as_bytes).collect();
        let words = if *is_of_many { LogForm::Command(log::POP, &words) } else { LogForm::AsSent };
        let may_wait = block.is_some() && !is_inside_another;
        let sent = (!is_of_many).then_some(&sent);
        for place in places {
            let mut all = Vec::new();
            let reply = |deliveries: &Deliveries, queue: &Queue| all = handed(deliveries, queue);
            let context = Context::Command { sent, is_inside_another };
            let is_done = self.open_as(place, context, false, |key, value| {
                Frame::new(self, key, value, Source::Client, None).deliver(
                    &pop,
                    Class { mode: pop.mode, batch: None },
                    || may_wait,
                    words,
                    reply,
                )
            });
            if is_done == Some(true) {
                return Reply::From(place.clone(), all);
            }
        }
        let timeout = block.filter(|ms| *ms > 0).map(Duration::from_millis);
        let handle = |ticket| may_wait.then(|| self.block(client, ticket, places, timeout));
        let wish = Wish::jobs(pop, None, SHAPE, places.clone());
        let waits = block.is_some() && serving::wait(self, wish, timeout, handle);
        if waits {
            Reply::Waits
        } else {
            Reply::Nil
        }
    }

    /// Repeats what the log says.
    pub fn repeat(&self, entry: &Entry) {
        let (place, told, operation) = match entry {
            Entry::Keys(order) => {
                self.carry_out(order);
                return;
            }
            Entry::Change { place, told, operation } => (place, told, operation),
        };
        let told = told.as_ref().map(|(time, told)| {
            LoggedCircumstances::parse(time.to_string().as_bytes(), told.as_bytes())
                .expect("what is told can be read")
        });
        let repeated = self.open_as(place, Context::Log, operation.creates(), |key, value| {
            let is_same =
                told.as_ref().is_none_or(|told| value.queue.compare_checksum(Checksum(told.check)));
            assert!(
                is_same,
                "the queue has come to something else before {operation:?} of the log"
            );
            let open = Frame::new(self, key, value, Source::Log, told.as_ref());
            operation.carry_out(open, LogForm::AsSent)
        });
        assert!(repeated.is_some(), "the log has {operation:?} of a queue that isn't there");
    }
}
