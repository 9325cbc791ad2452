//! What happens to servers: clocks that are set, replication that lags, loading, changes of the
//! role, crashes.

use std::time::Duration;

use crate::services::timer::pacemaker;

use super::node::{defaults, Node};
use super::world::World;

/// A restart takes so long at least.
const RESTART: Duration = Duration::from_millis(20);

impl World {
    pub fn make_trouble(&mut self) {
        let troubles = self.troubles;
        if self.chance(20) {
            self.primary.defaults.set(defaults(self.rng.u64(1..3) * 1_000));
        }
        if troubles.stepped_clocks && self.chance(10) {
            self.set_a_clock();
        }
        if troubles.pauses && self.chance(6) {
            let may_replicate = !self.primary.may_replicate.get();
            self.tell(|| format!("the server may write: {may_replicate}"));
            self.let_write(may_replicate);
        }
        if troubles.sinks && self.chance(6) {
            let take = self.rng.bool();
            self.let_streams_take(take);
        }
        if troubles.reloads && self.chance(12) {
            self.load_something();
        }
        if troubles.moved_slots && self.chance(14) {
            let is_importing = !self.replica.is_importing();
            self.let_import(is_importing);
        }
        if troubles.role_changes && self.chance(14) {
            self.change_roles();
        }
        if troubles.crashes && self.chance(20) {
            self.crash();
        }
    }

    pub fn let_write(&mut self, may_replicate: bool) {
        if self.primary.may_replicate.replace(may_replicate) != may_replicate {
            self.writable_since = self.now();
        }
    }

    pub fn let_streams_take(&mut self, take: bool) {
        self.tell(|| format!("streams take what is added: {take}"));
        *self.primary.refuses.borrow_mut() = (!take).then(|| "OOM no room".into());
    }

    /// The replica is a primary that takes over the slots of all keys, atomically; or isn't any
    /// more.
    fn let_import(&mut self, is_importing: bool) {
        if self.replica.is_importing() != is_importing {
            self.tell(|| {
                format!("the slots of all keys are on their way to the replica: {is_importing}")
            });
            self.replica.is_primary.set(is_importing);
            pacemaker::on_role_changed(&self.replica, is_importing);
            self.replica.tell_of_import(is_importing);
        }
    }

    fn set_a_clock(&mut self) {
        let span = [3, 300, 5_000, 20_000, 90_000][self.rng.usize(..5)];
        let ms = if self.rng.bool() { span } else { -span };
        let is_primary = self.rng.bool();
        let node = if is_primary { &self.primary } else { &self.replica };
        node.ahead_ms.set(node.ahead_ms.get() + ms);
        self.tell(|| {
            format!(
                "the clock of the {} is set by {ms} ms",
                if is_primary { "primary" } else { "replica" }
            )
        });
        if is_primary {
            self.stepped_at = Some(self.now());
        }
    }

    /// The replica gets on in the log.
    pub fn replicate(&mut self, is_all: bool) {
        let left = self.log.len() - self.applied;
        let now = if !is_all && self.troubles.lag { self.rng.usize(..=left) } else { left };
        for entry in &self.log[self.applied..self.applied + now] {
            self.replica.repeat(entry);
            // Nobody waits at a replica.
            self.replica.ready.take();
        }
        self.applied += now;
        assert!(self.replica.events.borrow().is_empty(), "a replica tells something");
    }

    fn load_something(&mut self) {
        match self.rng.u32(..6) {
            0 => {
                self.tell(|| "BGREWRITEAOF".into());
                self.base = (self.log.len(), self.primary.save_all());
            }
            1 => {
                self.tell(|| "DEBUG RELOAD".into());
                let file = self.primary.save_all();
                self.reload(|world| world.primary.load(&file));
            }
            2 => {
                self.tell(|| "DEBUG LOADAOF".into());
                self.reload(|world| world.load_log(&world.primary, world.log.len()));
            }
            _ => {
                self.resync();
            }
        }
        self.primary.ready.take();
    }

    /// A base and the rest of the log, as in an AOF.
    fn load_log(&self, node: &Node, to: usize) {
        let (from, file) = &self.base;
        node.load(file);
        for entry in &self.log[*from..to] {
            node.repeat(entry);
            node.tell_of_ready_keys();
        }
    }

    /// Everything is loaded again while clients wait.
    fn reload(&mut self, load: impl FnOnce(&World)) {
        // Valkey 9.1 flushes when it has read the beginning of the file.
        let is_flushed_first = self.rng.bool();
        if is_flushed_first {
            self.primary.flush(None);
        }
        self.primary.tell_of_loading(true);
        if !is_flushed_first {
            self.primary.flush(None);
        }
        load(self);
        self.watch_reload();
        // What is due meanwhile comes while the server loads, or right after.
        if self.rng.bool() {
            self.primary.run_timers(true);
        }
        self.primary.tell_of_loading(false);
        let begun = self.primary.wall_ms();
        self.absorb(begun, None);
        // They are other queues now.
        let numbers: Vec<u64> = self.accounts.values().map(|account| account.number).collect();
        numbers.into_iter().for_each(|number| self.leave_key(number));
        self.touched.extend(self.accounts.keys().cloned());
    }

    /// The replica starts from a file of the primary; false when that is thrown away.
    fn resync(&mut self) -> bool {
        self.let_import(false);
        let file = self.primary.save_all();
        let is_thrown_away = self.chance(3);
        if self.rng.bool() {
            self.tell(|| format!("a full sync, async_load, thrown away: {is_thrown_away}"));
            self.replica.load_aside(&file, is_thrown_away);
            if is_thrown_away {
                return false;
            }
        } else {
            self.tell(|| "a full sync".into());
            self.replica.flush(None);
            self.replica.tell_of_loading(true);
            self.replica.load(&file);
            self.replica.tell_of_loading(false);
        }
        self.replica.ready.take();
        self.applied = self.log.len();
        self.unsynced.extend(self.accounts.keys().cloned());
        true
    }

    fn change_roles(&mut self) {
        // What was delivered in this turn is lost with the role.
        for _ in 0..self.rng.usize(..2) {
            self.let_somebody_speak();
        }
        self.demote();
        if self.rng.bool() {
            self.tell(|| "the replica takes over".into());
            self.replicate(true);
            std::mem::swap(&mut self.primary, &mut self.replica);
            self.stepped_at = Some(self.now());
        }
        if self.primary.is_importing() || self.rng.bool() {
            self.promote();
        }
    }

    fn demote(&mut self) {
        self.tell(|| "REPLICAOF".into());
        for client in 0..self.clients.len() {
            self.lose(client);
        }
        self.primary.is_primary.set(false);
        pacemaker::on_role_changed(&self.primary, false);
        // What is on its way is for another node to deliver.
        self.owed.clear();
        self.primary.before_sleep();
    }

    pub fn promote(&mut self) {
        if self.primary.is_importing() {
            self.tell(|| "the slots have moved".into());
            self.let_write(true);
            self.primary.tell_of_import(false);
            return;
        }
        self.tell(|| "REPLICAOF NO ONE".into());
        self.primary.is_primary.set(true);
        self.let_write(true);
        pacemaker::on_role_changed(&self.primary, true);
    }

    /// The end of the log is lost, and all who were connected.
    fn crash(&mut self) {
        self.let_import(false);
        for client in &mut self.clients {
            client.wait = None;
            client.watch = None;
            client.held.clear();
        }
        self.lines.clear();
        self.owed.clear();
        self.uptime.set(self.now() + RESTART);
        if self.rng.bool() {
            self.cut(self.applied);
            self.tell(|| format!("the primary dies, the replica has {} entries", self.applied));
            std::mem::swap(&mut self.primary, &mut self.replica);
            self.promote();
            if self.base.0 > self.applied {
                self.base = (self.applied, self.primary.save_all());
            }
        } else {
            let to = self.rng.usize(self.base.0..=self.log.len());
            self.cut(to);
            self.tell(|| format!("the primary starts again with {to} entries"));
            self.restart(to);
        }
        if self.troubles.stepped_clocks || self.troubles.moved_keys {
            // Numbers that were lost with the tail of the log may come again after a clock that was
            // set back, or a RESTORE of a payload from before, as docs/guarantees.md says.
            self.given.clear();
        }
        self.stepped_at = Some(self.now());
        let (nature, ahead) = (self.replica.nature, self.replica.ahead_ms.get());
        self.replica = Node::new(nature, self.uptime.clone(), ahead, false);
        while !self.resync() {}
        self.touched.extend(self.accounts.keys().cloned());
    }

    fn restart(&mut self, to: usize) {
        let node =
            Node::new(self.primary.nature, self.uptime.clone(), self.primary.ahead_ms.get(), true);
        node.tell_of_loading(true);
        self.load_log(&node, to);
        node.tell_of_loading(false);
        node.ready.take();
        self.primary = node;
    }

    fn cut(&mut self, to: usize) {
        self.log.truncate(to);
        self.accounts = self.earlier.get(&to).cloned().unwrap_or_default();
        self.earlier.split_off(&(to + 1));
        self.applied = self.applied.min(to);
    }
}
