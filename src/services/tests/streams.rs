//! Streams to which jobs go.

use crate::services::key_ref::KeyRef;

use super::operation::{Bytes, Handed, Terms};
use super::world::World;

impl World {
    /// The timer has added a job to a stream. It is taken from its queue next.
    pub fn judge_poured(&mut self, place: KeyRef, words: &[Bytes]) {
        self.tell(|| format!("   log: {place:?} {words:?}"));
        assert!(self.pouring.is_none(), "a job is added before the last one is taken");
        let account = &self.accounts[&place];
        let id = &words[4];
        let job = account.job(id).expect("what is added to a stream is in its queue");
        let (due, sink) = (job.time.to_string(), account.sink.expect("a queue has a sink"));
        let mut expected: Vec<&[u8]> = vec![b"XADD"];
        let stream = [sink];
        // The entry's id isn't below its due time.
        let entry = String::from_utf8(words[2].clone()).unwrap();
        let stamp = entry.strip_suffix("-*").expect("a time");
        assert!(stamp.parse::<u64>().unwrap() >= job.time, "{entry} of a job due at {due}");
        expected.extend([&stream[..], entry.as_bytes(), b"id", id, b"due", due.as_bytes()]);
        expected.extend([&b"body"[..], &job.new.body]);
        if let Some(group) = &job.new.group {
            expected.extend([&b"group"[..], group]);
        }
        assert_eq!(words, expected);
        self.pouring = Some((place, id.clone()));
    }

    /// Whether this is the job that has just been added to a stream. It has to be that one.
    pub fn is_poured(&mut self, place: &KeyRef, terms: &Terms, handed: &[Handed]) -> bool {
        let Some((queue, id)) = self.pouring.take() else {
            return false;
        };
        let handed: Vec<&[u8]> = handed.iter().map(|job| &job.id[..]).collect();
        assert_eq!((&queue, &[&id[..]][..]), (place, &handed[..]));
        assert_eq!(*terms, Terms { count: 1, ttr: None, no_ack: true });
        true
    }
}
