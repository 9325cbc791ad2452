//! What a server does to keys without a command of the module, with the callbacks in the order in
//! which it calls them.

use std::rc::Rc;

use crate::queue::{read_block, BlockWriter, EdgesRecord, GroupRecord, Queue, QueueRecord, Record};
use crate::services::key_ref::{Database, KeyRef};
use crate::services::keys::value::QueueValue;
use crate::services::keys::{async_load, lazyfree, lifecycle};
use crate::services::timer::pacemaker;

use super::node::Node;

/// A queue in a file.
#[derive(Debug)]
pub struct Saved {
    record: Vec<u8>,
    blocks: Vec<Vec<u8>>,
    groups: Vec<u8>,
    edges: Vec<u8>,
}

/// All queues of a server, at their places.
pub type File = Vec<(KeyRef, Rc<Saved>)>;

/// What a client says of keys.
#[derive(Clone, Debug)]
pub enum Order {
    Rename(KeyRef, KeyRef),
    Move(KeyRef, Database),
    Copy(KeyRef, KeyRef),
    Delete(KeyRef),
    Swap(Database, Database),
    Flush(Option<Database>),
    Restore(KeyRef, Rc<Saved>),
}

pub fn save(value: &QueueValue) -> Saved {
    let queue = value.queue();
    let (mut blocks, mut block) = (Vec::new(), BlockWriter::default());
    for job in queue.jobs() {
        if block.add(&job) {
            blocks.push(block.bytes().to_vec());
            block.clear();
        }
    }
    blocks.push(block.bytes().to_vec());
    let groups = queue.group_records().encode();
    let edges = queue.edge_records().collect::<Vec<EdgesRecord>>().encode();
    Saved { record: queue.record().encode(), blocks, groups, edges }
}

fn free(value: Box<QueueValue>) {
    lazyfree::free(value.into_queue());
}

impl Node {
    pub fn save_all(&self) -> File {
        let keys = self.keys.borrow();
        keys.iter()
            .map(|(place, value)| (place.clone(), Rc::new(save(value.as_ref().unwrap()))))
            .collect()
    }

    fn take(&self, place: &KeyRef) -> Option<Box<QueueValue>> {
        self.keys
            .borrow_mut()
            .remove(place)
            .map(|value| value.expect("a key is taken while it is open"))
    }

    fn put(&self, place: &KeyRef, value: Box<QueueValue>) {
        let before = self.keys.borrow_mut().insert(place.clone(), Some(value));
        assert!(before.is_none(), "a key is put where there is one");
        self.ready.borrow_mut().push(place.clone());
    }

    fn delete(&self, place: &KeyRef) -> bool {
        let Some(mut value) = self.take(place) else {
            return false;
        };
        lifecycle::left_key(self, &mut value, place.0, &place.1);
        free(value);
        true
    }

    /// As the server carries it out; false when there was nothing to do.
    pub fn carry_out(&self, order: &Order) -> bool {
        match order {
            Order::Delete(place) => self.delete(place),
            Order::Rename(from, to) => self.take_elsewhere(from, to),
            Order::Move(from, database) => {
                let to = (*database, from.1.clone());
                !self.keys.borrow().contains_key(&to) && self.take_elsewhere(from, &to)
            }
            Order::Copy(from, to) => {
                if from == to {
                    return false;
                }
                let copy = self.look_at(from, |value| lifecycle::copy(self, value, to.0, &to.1));
                let Some(copy) = copy else {
                    return false;
                };
                self.delete(to);
                self.put(to, Box::new(copy));
                true
            }
            Order::Restore(place, saved) => {
                let value = self.read(place, saved);
                self.delete(place);
                self.put(place, value);
                true
            }
            Order::Swap(a, b) => {
                self.swap(*a, *b);
                true
            }
            Order::Flush(database) => {
                self.flush(*database);
                true
            }
        }
    }

    /// The value is at its new key already when it leaves the old one.
    fn take_elsewhere(&self, from: &KeyRef, to: &KeyRef) -> bool {
        if from == to || !self.keys.borrow().contains_key(from) {
            return false;
        }
        self.delete(to);
        let Some(mut value) = self.take(from) else {
            return false;
        };
        lifecycle::left_key(self, &mut value, from.0, &from.1);
        self.put(to, value);
        true
    }

    fn swap(&self, a: Database, b: Database) {
        let swapped = |database| match database {
            one if one == a => b,
            other if other == b => a,
            neither => neither,
        };
        let keys = self.keys.take();
        let keys =
            keys.into_iter().map(|((database, name), value)| ((swapped(database), name), value));
        *self.keys.borrow_mut() = keys.collect();
        pacemaker::on_swapped(self, a, b);
        let here = |place: &&KeyRef| place.0 == a || place.0 == b;
        let ready: Vec<KeyRef> = self.keys.borrow().keys().filter(here).cloned().collect();
        self.ready.borrow_mut().extend(ready);
    }

    pub fn flush(&self, database: Option<Database>) {
        pacemaker::on_flushed(self, database);
        let mut gone = Vec::new();
        let is_meant = |place: &KeyRef| database.is_none_or(|database| place.0 == database);
        self.keys.borrow_mut().retain(|place, value| {
            let stays = !is_meant(place);
            gone.extend((!stays).then(|| value.take().unwrap()));
            stays
        });
        gone.into_iter().for_each(free);
    }

    fn read(&self, place: &KeyRef, saved: &Saved) -> Box<QueueValue> {
        let mut queue = Queue::new((1, 2));
        for block in &saved.blocks {
            for job in read_block(block) {
                let (id, body, record) = job.unwrap();
                queue.load(id, body, &record).unwrap();
            }
        }
        for record in Vec::<GroupRecord>::decode(&saved.groups).unwrap() {
            queue.load_group(&record).unwrap();
        }
        queue.load_edges(&Vec::<EdgesRecord>::decode(&saved.edges).unwrap()).unwrap();
        queue.restore(&QueueRecord::decode(&saved.record).unwrap()).unwrap();
        let mut value = Box::new(lifecycle::read(self, queue));
        lifecycle::loaded(self, &mut value, place.0, &place.1);
        value
    }

    /// Fills an empty server from a file. Nobody is told of keys that come this way.
    pub fn load(&self, file: &File) {
        for (place, saved) in file {
            let value = self.read(place, saved);
            self.keys.borrow_mut().insert(place.clone(), Some(value));
        }
    }

    /// As a replica with `repl-diskless-load swapdb` does it; thrown away, if that is how it ends.
    pub fn load_aside(&self, file: &File, is_thrown_away: bool) {
        async_load::begin(self);
        let loaded: Vec<_> =
            file.iter().map(|(place, saved)| (place.clone(), self.read(place, saved))).collect();
        if is_thrown_away {
            async_load::throw_away(self);
            loaded.into_iter().for_each(|(_, value)| free(value));
            return;
        }
        let loaded = loaded.into_iter().map(|(place, value)| (place, Some(value))).collect();
        let old = self.keys.replace(loaded);
        async_load::swap_in(self);
        old.into_values().flatten().for_each(free);
    }
}
