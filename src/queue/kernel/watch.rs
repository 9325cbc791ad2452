//! Jobs of which clients want to know what becomes of them. The queue notes what operations do to
//! these (`journal.rs`), and its caller looks at them anew. No outcome depends on it, and no copy,
//! file or digest has it. A queue without such jobs pays for one word.

use crate::queue::memory::slab::Slot;
use crate::queue::value::ids::Lease;

/// Which jobs are watched, and what happened to them.
#[derive(Default)]
pub(in crate::queue) struct Watch(Option<Box<Watched>>);

#[derive(Default)]
struct Watched {
    /// A bit for each slot.
    slots: Vec<u64>,
    news: Vec<JobNews>,
    /// The slots of the news: watched no longer, once the news are taken.
    told: Vec<Slot>,
}

/// An operation has done something to a watched job: it may have removed it, or have put another
/// one in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobNews {
    pub id: Box<[u8]>,
    /// The lease of its last delivery until then, while a worker could use it.
    pub lease: Option<Lease>,
    /// The job was finished and comes back no more.
    pub finished: Option<FinalResult>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinalResult {
    pub result: Option<Box<[u8]>>,
}

/// A copy of a queue is watched by none.
impl Clone for Watch {
    fn clone(&self) -> Watch {
        Watch::default()
    }
}

impl Watch {
    #[inline]
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    pub fn has(&self, slot: Slot) -> bool {
        self.0.as_ref().is_some_and(|watched| watched.has(slot))
    }

    #[inline]
    pub fn has_news(&self) -> bool {
        self.0.as_ref().is_some_and(|watched| !watched.news.is_empty())
    }

    pub fn note(&mut self, slot: Slot, news: JobNews) {
        if let Some(watched) = &mut self.0 {
            watched.news.push(news);
            watched.told.push(slot);
        }
    }

    /// The jobs that they are about aren't watched any more.
    pub fn take_news(&mut self) -> Vec<JobNews> {
        let Some(watched) = &mut self.0 else {
            return Vec::new();
        };
        for slot in watched.told.drain(..) {
            forget(&mut watched.slots, slot);
        }
        std::mem::take(&mut watched.news)
    }

    /// The slot is about to be free for another job.
    pub fn forget(&mut self, slot: Slot) {
        if let Some(watched) = &mut self.0 {
            forget(&mut watched.slots, slot);
        }
    }

    pub fn add(&mut self, slot: Slot) {
        let watched = self.0.get_or_insert_default();
        let (word, bit) = position_of(slot);
        if watched.slots.len() <= word {
            watched.slots.resize(word + 1, 0);
        }
        if let Some(bits) = watched.slots.get_mut(word) {
            *bits |= bit;
        }
    }

    pub fn memory(&self) -> usize {
        let bytes = |watched: &Watched| size_of::<Watched>() + watched.slots.capacity() * 8;
        self.0.as_deref().map_or(0, bytes)
    }
}

impl Watched {
    fn has(&self, slot: Slot) -> bool {
        let (word, bit) = position_of(slot);
        self.slots.get(word).is_some_and(|bits| bits & bit != 0)
    }
}

fn forget(slots: &mut [u64], slot: Slot) {
    let (word, bit) = position_of(slot);
    if let Some(bits) = slots.get_mut(word) {
        *bits &= !bit;
    }
}

fn position_of(slot: Slot) -> (usize, u64) {
    ((slot / u64::BITS) as usize, 1 << (slot % u64::BITS))
}
