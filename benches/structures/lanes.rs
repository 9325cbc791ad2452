//! One schedule a priority: the lowest number first. Only so is the order of priorities exact while jobs
//! that are due have not all been promoted. There are 256 lanes at most, commonly one.

pub struct Lanes<S> {
    by_priority: Vec<(u8, S)>,
}

impl<S> Lanes<S> {
    pub fn new() -> Self {
        Lanes { by_priority: Vec::new() }
    }

    pub fn of(&mut self, priority: u8, new: impl FnOnce() -> S) -> &mut S {
        let at = match self.by_priority.binary_search_by_key(&priority, |(p, _)| *p) {
            Ok(at) => at,
            Err(at) => {
                self.by_priority.insert(at, (priority, new()));
                at
            }
        };
        &mut self.by_priority[at].1
    }

    pub fn iter(&self) -> impl Iterator<Item = &S> {
        self.by_priority.iter().map(|(_, lane)| lane)
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut S> {
        self.by_priority.iter_mut().map(|(_, lane)| lane)
    }
}

/// Promotes lane after lane until `at_most` jobs are reached; see `Candidate::promote`.
pub fn promote_each<S>(
    lanes: &mut Lanes<S>,
    at_most: usize,
    mut promote: impl FnMut(&mut S, usize) -> usize,
) -> bool {
    let mut left = at_most;
    for lane in lanes.iter_mut() {
        left = left.saturating_sub(promote(lane, left));
        if left == 0 {
            return false;
        }
    }
    true
}
