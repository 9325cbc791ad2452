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
