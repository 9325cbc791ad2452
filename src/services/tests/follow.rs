//! The world's accounts follow what a server was told to do with keys.

use std::collections::BTreeSet;
use std::rc::Rc;

use crate::services::key_ref::KeyRef;

use super::keyspace::Order;
use super::world::World;

impl World {
    /// The accounts follow what the server was told to do with keys.
    pub fn follow(&mut self, order: &Order) {
        match order {
            Order::Rename(from, to) => self.account_moves(from, to),
            Order::Move(from, database) => self.account_moves(from, &(*database, from.1.clone())),
            Order::Copy(from, to) => self.account_is_copied(from, to),
            Order::Delete(place) => {
                self.accounts.remove(place);
            }
            Order::Swap(a, b) => {
                let numbers: Vec<u64> =
                    self.accounts.values().map(|account| account.number).collect();
                numbers.into_iter().for_each(|number| self.leave_key(number));
                let accounts = std::mem::take(&mut self.accounts);
                let swapped = accounts.into_iter().map(|((database, name), account)| {
                    let database = if database == *a {
                        *b
                    } else if database == *b {
                        *a
                    } else {
                        database
                    };
                    ((database, name), account)
                });
                self.accounts = swapped.collect();
                let all: BTreeSet<u64> = self.given.values().flatten().copied().collect();
                self.given.values_mut().for_each(|given| given.clone_from(&all));
                self.touched.extend(self.accounts.keys().cloned());
            }
            Order::Flush(database) => {
                self.accounts
                    .retain(|place, _| database.is_some_and(|database| place.0 != database));
            }
            Order::Restore(place, saved) => {
                let dumped = self.dumps.iter().find(|(dump, _)| Rc::ptr_eq(dump, saved)).unwrap();
                let account = dumped.1.clone();
                self.touched.insert(place.clone());
                self.open_account(place, account);
            }
        }
        self.forget_what_is_not_owed();
    }

    fn account_moves(&mut self, from: &KeyRef, to: &KeyRef) {
        let account = self.accounts.remove(from).unwrap();
        self.leave_key(account.number);
        self.touched.extend([from.clone(), to.clone()]);
        self.accounts.insert(to.clone(), account);
        let given = self.given.get(from).cloned().unwrap_or_default();
        self.given.entry(to.clone()).or_default().extend(given);
    }

    /// A lease of a queue that leaves its key need not be given back: it ends.
    pub fn leave_key(&mut self, account: u64) {
        self.owed.retain(|owed| owed.account != account);
        let waits =
            self.clients.iter_mut().filter_map(|client| client.wait.as_mut()?.delivered.as_mut());
        waits
            .filter(|delivered| delivered.account == Some(account))
            .for_each(|delivered| delivered.account = None);
    }

    /// What a client has not been told of is leased in the copy, too, and ends there.
    fn account_is_copied(&mut self, from: &KeyRef, to: &KeyRef) {
        let account = self.accounts[from].clone();
        self.touched.insert(to.clone());
        self.open_account(to, account);
    }
}
