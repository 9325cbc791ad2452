//! Jobs of a state that fit a filter.

use std::time::Instant;

use super::filter::Filter;
use super::job::Job;
use super::jobs::{page_size, reach, Begin, Place, SEEK_WITHIN};
use super::queue::State;
use super::walk::{Mark, Order, Walk};
use super::Result;

/// Which jobs of a queue are looked for, and in which order.
pub struct Search<'a> {
    pub state: State,
    pub order: Order,
    pub filter: &'a Filter,
}

/// What a look for so long has found.
#[derive(Debug, Default)]
pub struct Portion {
    pub jobs: Vec<Job>,
    pub looked: u64,
    /// Where to go on; `None` at the end.
    pub next: Option<Mark>,
}

impl Place<'_> {
    /// Up to so many jobs that fit, from a mark on, or those that are found within
    /// [`SEEK_WITHIN`].
    pub async fn search(&self, search: &Search<'_>, from: Mark, most: usize) -> Result<Portion> {
        let Search { state, order, filter } = search;
        // What shows all needs no more than a page; what looks for few among many looks far.
        let size = if filter.is_all() { page_size(self.info) } else { reach(self.info) };
        let mut walk = Walk::new(self, *state, *order, from, size);
        let mut portion = Portion::default();
        let began = Instant::now();
        while walk.mark.is_some() && began.elapsed() < SEEK_WITHIN {
            let batch = walk.batch().await?;
            let is_last = walk.mark.is_none();
            let many = batch.len();
            for (index, job) in batch.into_iter().enumerate() {
                portion.looked += 1;
                if filter.fits(&job) {
                    portion.jobs.push(job);
                }
                let is_full = portion.jobs.len() >= most && *state != State::Ready;
                if is_full && !(is_last && index + 1 == many) {
                    portion.next = portion.jobs.last().map(|job| Mark::Begin(Begin::behind(job)));
                    return Ok(portion);
                }
            }
            if portion.jobs.len() >= most {
                break;
            }
        }
        portion.next = walk.mark;
        Ok(portion)
    }
}
