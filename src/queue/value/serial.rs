//! Ids that the queue makes.

use serde::{Deserialize, Serialize};

use super::ids::Id;
use super::time::Time;

/// Where ids made by the queue have got to: `<time>-<number>`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(in crate::queue) struct Serial {
    pub time: Time,
    pub number: u64,
}

impl Serial {
    /// The serial in an id that [`Queue::next_id`] made.
    pub fn of(id: Id) -> Option<Serial> {
        let (time, number) = std::str::from_utf8(id.bytes()).ok()?.split_once('-')?;
        Some(Serial { time: Time::new(time.parse().ok()?)?, number: number.parse().ok()? })
    }
}

/// Who made the id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Naming {
    Given,
    ByQueue,
}
