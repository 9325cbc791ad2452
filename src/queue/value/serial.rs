//! Ids that the queue generates.

use serde::{Deserialize, Serialize};

use super::ids::Id;
use super::time::Time;

/// The last id that the queue generated: `<time>-<number>`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(in crate::queue) struct Serial {
    pub time: Time,
    pub number: u64,
}

impl Serial {
    /// The serial in an id that a queue generated.
    pub fn of(id: Id) -> Option<Serial> {
        let (time, number) = std::str::from_utf8(id.bytes()).ok()?.split_once('-')?;
        Some(Serial { time: Time::new(time.parse().ok()?)?, number: number.parse().ok()? })
    }
}
