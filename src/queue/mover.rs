//! Whoever can put a queue's memory elsewhere, as `relocate.rs` hands it to him.

/// Whoever can put an allocation elsewhere. Contents and capacities stay as they are.
pub trait Mover {
    fn vec<T>(&mut self, vec: &mut Vec<T>);

    fn boxed<T>(&mut self, boxed: &mut Box<T>);

    fn bytes(&mut self, bytes: &mut Box<[u8]>) {
        let mut vec = std::mem::take(bytes).into_vec();
        self.vec(&mut vec);
        *bytes = vec.into_boxed_slice();
    }

    /// Whether the time is over.
    fn is_over(&mut self) -> bool;
}

/// Between two looks at the clock: some microseconds.
pub(super) const STEP_ALLOCATIONS: usize = 32;

/// For tests: moves everything, so many allocations a call.
#[cfg(test)]
pub(super) struct Everything {
    pub moved: usize,
    pub bytes: usize,
    a_call: usize,
}

#[cfg(test)]
impl Everything {
    pub fn in_calls_of(a_call: usize) -> Everything {
        Everything { moved: 0, bytes: 0, a_call }
    }
}

#[cfg(test)]
impl Mover for Everything {
    fn vec<T>(&mut self, vec: &mut Vec<T>) {
        let mut elsewhere = Vec::with_capacity(vec.capacity());
        elsewhere.append(vec);
        *vec = elsewhere;
        self.moved += 1;
        self.bytes += vec.capacity() * size_of::<T>();
    }

    fn boxed<T>(&mut self, boxed: &mut Box<T>) {
        let _ = boxed;
        self.moved += 1;
        self.bytes += size_of::<T>();
    }

    fn is_over(&mut self) -> bool {
        self.moved >= self.a_call
    }
}
