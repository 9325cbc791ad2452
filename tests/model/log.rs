//! The log of a queue, as replicas and files get it, and who follows it.

use dq::queue::{Answers, Checksum, Circumstances, Following, LogState, Queue};

use crate::subject::{at, Subject};
use crate::told::{Command, Outcome};

/// What changed a queue. Without circumstances, those hold that the log told last.
#[derive(Clone, Debug)]
pub struct Entry {
    pub told: Option<LoggedCircumstances>,
    /// Of the calendar.
    pub answers: Vec<Following>,
    pub command: Command,
    /// Not in the log: what must come of it wherever it is heard.
    pub outcome: Outcome,
}

#[derive(Clone, Copy, Debug)]
pub struct LoggedCircumstances {
    pub circumstances: Circumstances,
    /// What the queue had come to before.
    pub check: Checksum,
}

impl Entry {
    /// Of a command that was carried out by a queue with this log position; none when it changed
    /// nothing.
    pub fn of(
        log_state: &LogState,
        circumstances: Circumstances,
        command: &Command,
        outcome: &Outcome,
        answers: Vec<Following>,
    ) -> Option<Entry> {
        let told = LoggedCircumstances { circumstances, check: log_state.check };
        let told = (!answers.is_empty() || !log_state.implies(&circumstances)).then_some(told);
        let (command, outcome) = (command.clone(), outcome.clone());
        outcome.has_changed().then_some(Entry { told, answers, command, outcome })
    }
}

/// A queue elsewhere, to which the same is to happen.
#[derive(Clone)]
pub struct Follower(Subject);

/// Whether a follower came to the same as the one that it follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compared {
    Same,
    Diverged,
    /// This entry didn't tell.
    Unsaid,
}

impl Follower {
    pub fn new(queue: Queue) -> Follower {
        Follower(Subject::new(queue))
    }

    pub fn queue(&mut self) -> &mut Queue {
        &mut self.0.queue
    }

    /// Does what an entry says, whatever comes of it.
    pub fn hear(&mut self, entry: &Entry) -> (Compared, Outcome) {
        let (compared, circumstances) = match entry.told {
            None => (Compared::Unsaid, self.0.queue.circumstances()),
            Some(told) if self.0.queue.compare_checksum(told.check) => {
                (Compared::Same, told.circumstances)
            }
            Some(told) => (Compared::Diverged, told.circumstances),
        };
        (compared, self.0.apply(&circumstances, &entry.command, &mut Answers(&entry.answers)))
    }

    /// The same must come of it, and nothing different before.
    pub fn follow(&mut self, entry: &Entry) {
        let (compared, outcome) = self.hear(entry);
        assert_ne!(compared, Compared::Diverged, "before {entry:?}");
        assert_eq!(outcome, entry.outcome, "of {entry:?}");
    }

    /// Somebody looks around at this time by the follower's own clock.
    pub fn look(&mut self, time: u64) {
        let queue = self.queue();
        queue.advance(at(time));
        for state in dq::queue::State::ALL {
            assert_eq!(queue.peek(state, usize::MAX).len(), queue.counts().of(state), "{state:?}");
            queue.to_purge(at(time), state, crate::subject::millis(3), 5);
        }
        queue.to_forget(at(time), 5);
        queue.oldest_ready();
        queue.find_wake_at();
        queue.take_events();
    }
}
