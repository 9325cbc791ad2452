//! A key of a simulated server, while something is done to it.

use std::ffi::CStr;

use crate::services::change::log;
use crate::services::host::Host;
use crate::services::key_ref::{Database, QueueKey};

use super::node::{Event, Logged, Node};
use super::operation::{read_logged, Operation};

/// Who has opened the key.
#[derive(Clone, Copy)]
pub enum Context<'k> {
    /// A client's command, which is this operation if it can be logged as it was sent.
    Command {
        sent: Option<&'k Operation>,
        is_inside_another: bool,
    },
    /// A command that comes from the log.
    Log,
    Timer,
    /// Whoever may not change anything.
    Reader,
}

#[derive(Clone, Copy)]
pub struct Key<'k> {
    pub node: &'k Node,
    pub database: Database,
    pub name: &'k [u8],
    pub context: Context<'k>,
}

impl Key<'_> {
    fn log(&self, told: Option<(u64, String)>, operation: Operation, is_as_sent: bool) {
        let node = self.node;
        assert!(node.is_primary.get(), "a replica changes {operation:?} by itself");
        assert!(node.may_change(), "{operation:?} is written while nothing must be");
        let place = (self.database, self.name.into());
        node.events.borrow_mut().push(Event::Logged(Logged { place, told, operation, is_as_sent }));
    }

    fn sent(&self) -> Option<&Operation> {
        match self.context {
            Context::Command { sent, .. } => {
                Some(sent.expect("this command can't be logged as it was sent"))
            }
            // Those who have this server's own log get what it got.
            Context::Log => None,
            Context::Timer | Context::Reader => {
                panic!("only commands are logged as they were sent")
            }
        }
    }
}

impl QueueKey for Key<'_> {
    fn database(&self) -> Database {
        self.database
    }

    fn name(&self) -> &[u8] {
        self.name
    }

    fn is_inside_another(&self) -> bool {
        matches!(self.context, Context::Command { is_inside_another: true, .. })
    }

    fn signal_modified(&self) {
        assert!(
            !matches!(self.context, Context::Reader),
            "a queue is changed by somebody who looks"
        );
    }

    fn is_notifying(&self) -> bool {
        true
    }

    fn notify(&self, event: &CStr) {
        assert!(self.node.is_primary.get(), "a replica tells watchers");
        self.node.told.borrow_mut().push(event.into());
    }

    fn replicate_as_sent(&self) {
        if let Some(sent) = self.sent() {
            self.log(None, sent.clone(), true);
        }
    }

    fn replicate_sent(&self, command: &CStr, unix_ms: u64, told: &str) {
        assert_eq!(command, log::APPLY);
        if let Some(sent) = self.sent() {
            self.log(Some((unix_ms, told.to_string())), sent.clone(), true);
        }
    }

    fn replicate_args(&self, command: &CStr, words: &[&[u8]]) {
        assert!(
            matches!(self.context, Context::Command { .. } | Context::Timer),
            "{command:?} is written by somebody who must not"
        );
        let (told, operation) = read_logged(command, words);
        self.log(told, operation, false);
    }

    fn run(&self, command: &CStr, words: &[&[u8]]) -> Result<(), String> {
        assert!(matches!(self.context, Context::Timer), "only the timer runs commands");
        assert!(self.node.may_change(), "{command:?} is run while nothing must be written");
        if let Some(error) = &*self.node.refuses.borrow() {
            return Err(error.clone());
        }
        let words = [command.to_bytes()].iter().chain(words).map(|word| word.to_vec()).collect();
        let place = (self.database, self.name.into());
        self.node.events.borrow_mut().push(Event::Ran(place, words));
        Ok(())
    }
}
