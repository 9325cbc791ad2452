//! What workers attached to jobs: a note of how far it is, and the result of a finished one. Few
//! jobs have either, and the others pay nothing for it.

use std::collections::BTreeMap;

use crate::queue::memory::slab::Slot;

/// What is attached to a job.
#[derive(Clone, Default, PartialEq, Eq)]
struct Attached {
    note: Option<Box<[u8]>>,
    result: Option<Box<[u8]>>,
}

/// What is attached to each job that has any of it. O(log n) for each operation.
#[derive(Clone, Default)]
pub(in crate::queue) struct Attachments {
    jobs: BTreeMap<Slot, Attached>,
    /// Bytes of all notes and results.
    bytes: usize,
}

/// Bytes of an entry of the tree, with its part of the nodes.
const ENTRY_BYTES: usize = (size_of::<Attached>() + size_of::<Slot>()) * 3 / 2;

impl Attachments {
    pub fn note(&self, slot: Slot) -> Option<&[u8]> {
        self.of(slot)?.note.as_deref()
    }

    pub fn result(&self, slot: Slot) -> Option<&[u8]> {
        self.of(slot)?.result.as_deref()
    }

    /// Most queues have nothing attached anywhere.
    #[inline]
    fn of(&self, slot: Slot) -> Option<&Attached> {
        if self.jobs.is_empty() {
            return None;
        }
        self.jobs.get(&slot)
    }

    /// An empty note is none.
    pub fn set_note(&mut self, slot: Slot, note: Option<&[u8]>) {
        let note = note.filter(|note| !note.is_empty()).map(Box::from);
        self.change(slot, |attached| attached.note = note);
    }

    /// Returns the result that it had.
    pub fn set_result(&mut self, slot: Slot, result: Option<&[u8]>) -> Option<Box<[u8]>> {
        let result = result.map(Box::from);
        self.change(slot, |attached| std::mem::replace(&mut attached.result, result))
    }

    fn change<T>(&mut self, slot: Slot, change: impl FnOnce(&mut Attached) -> T) -> T {
        let mut attached = self.take(slot);
        let changed = change(&mut attached);
        if attached != Attached::default() {
            self.bytes += attached.bytes();
            self.jobs.insert(slot, attached);
        }
        changed
    }

    /// The job is gone. Returns the result that it had.
    #[inline]
    pub fn remove(&mut self, slot: Slot) -> Option<Box<[u8]>> {
        if self.jobs.is_empty() {
            return None;
        }
        self.take(slot).result
    }

    fn take(&mut self, slot: Slot) -> Attached {
        let attached = self.jobs.remove(&slot).unwrap_or_default();
        self.bytes -= attached.bytes();
        attached
    }

    pub fn memory(&self) -> usize {
        self.bytes + self.jobs.len() * ENTRY_BYTES
    }
}

impl Attached {
    fn bytes(&self) -> usize {
        let bytes_of = |text: &Option<Box<[u8]>>| text.as_ref().map_or(0, |text| text.len());
        bytes_of(&self.note) + bytes_of(&self.result)
    }
}
