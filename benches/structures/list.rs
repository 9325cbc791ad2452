//! Lists through a slab: two numbers a job, no allocation, removal from the middle in O(1).

use crate::candidate::Policy;

pub const NONE: u32 = u32::MAX;

pub struct Node {
    /// The id, then the body: one allocation a job.
    bytes: Box<[u8]>,
    id_len: u16,
    _policy: Policy,
    pub due_ms: u64,
    before: u32,
    pub after: u32,
}

impl Node {
    pub fn id(&self) -> &[u8] {
        &self.bytes[..self.id_len as usize]
    }
}

/// Jobs that are named by a number.
pub struct Slab {
    nodes: Vec<Node>,
    free: u32,
}

impl Slab {
    pub const NEW: Slab = Slab { nodes: Vec::new(), free: NONE };

    pub fn insert(&mut self, id: &[u8], body: &[u8], due_ms: u64) -> u32 {
        let bytes = [id, body].concat().into_boxed_slice();
        let id_len = id.len() as u16;
        let node =
            Node { bytes, id_len, _policy: Policy::default(), due_ms, before: NONE, after: NONE };
        if self.free == NONE {
            self.nodes.push(node);
            return self.nodes.len() as u32 - 1;
        }
        let number = self.free;
        self.free = self.at(number).after;
        *self.at_mut(number) = node;
        number
    }

    pub fn remove(&mut self, number: u32) {
        let free = std::mem::replace(&mut self.free, number);
        let node = self.at_mut(number);
        node.bytes = Box::default();
        node.after = free;
    }

    pub fn at(&self, number: u32) -> &Node {
        &self.nodes[number as usize]
    }

    fn at_mut(&mut self, number: u32) -> &mut Node {
        &mut self.nodes[number as usize]
    }
}

#[derive(Clone, Copy)]
pub struct List {
    pub head: u32,
    tail: u32,
    pub len: u32,
}

impl List {
    pub const EMPTY: List = List { head: NONE, tail: NONE, len: 0 };

    pub fn push_back(&mut self, slab: &mut Slab, number: u32) {
        let node = slab.at_mut(number);
        (node.before, node.after) = (self.tail, NONE);
        match self.tail {
            NONE => self.head = number,
            tail => slab.at_mut(tail).after = number,
        }
        self.tail = number;
        self.len += 1;
    }

    pub fn remove(&mut self, slab: &mut Slab, number: u32) {
        let Node { before, after, .. } = *slab.at(number);
        match before {
            NONE => self.head = after,
            before => slab.at_mut(before).after = after,
        }
        match after {
            NONE => self.tail = before,
            after => slab.at_mut(after).before = before,
        }
        self.len -= 1;
    }

    /// Puts all of `other` at the end of this list. O(1).
    pub fn append(&mut self, slab: &mut Slab, other: List) {
        if self.len == 0 {
            *self = other;
        } else if other.len > 0 {
            slab.at_mut(self.tail).after = other.head;
            slab.at_mut(other.head).before = self.tail;
            self.tail = other.tail;
            self.len += other.len;
        }
    }
}
