//! Moving a queue's memory: `kernel/defrag.rs` hands each allocation to a [`Defragmenter`].

/// Moves allocations. Contents and capacities stay the same.
pub trait Defragmenter {
    fn vec<T>(&mut self, vec: &mut Vec<T>);

    fn boxed<T>(&mut self, boxed: &mut Box<T>);

    fn bytes(&mut self, bytes: &mut Box<[u8]>) {
        let mut vec = std::mem::take(bytes).into_vec();
        self.vec(&mut vec);
        *bytes = vec.into_boxed_slice();
    }

    /// Whether the time for this step is over.
    fn is_over(&mut self) -> bool;
}

/// Allocations between two reads of the clock: some microseconds.
pub(in crate::queue) const STEP_ALLOCATIONS: usize = 32;

/// Hands the list itself and then its values, from index `from` on, to a defragmenter. Returns
/// where to continue.
pub fn defrag_each<T, M: Defragmenter>(
    list: &mut Vec<T>,
    from: u32,
    defragmenter: &mut M,
    defrag: impl Fn(&mut T, &mut M),
) -> Option<u32> {
    let from = from as usize;
    for (at, value) in list.iter_mut().enumerate().skip(from) {
        if at > from && at % STEP_ALLOCATIONS == 0 && defragmenter.is_over() {
            return Some(at as u32);
        }
        defrag(value, defragmenter);
    }
    defragmenter.vec(list);
    None
}

/// For tests: moves everything, a given number of allocations per call.
#[cfg(test)]
pub(in crate::queue) struct Everything {
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
impl Defragmenter for Everything {
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

#[cfg(test)]
mod tests;
