//! The functions that the server calls, besides commands and type callbacks: timers, waiting
//! clients, events, INFO. The module sets them once, while it is loaded.

use std::sync::OnceLock;

use super::client::Ticket;
use super::context::{Context, Database};
use super::replies::Replies;
use super::section::Section;

/// The stages of an async load: a data set that is loaded while another is served.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Aside {
    /// Values loaded from now on belong to it.
    Begun,
    /// It is served from now on; the other data set is about to be freed.
    SwappedIn,
    /// It is about to be freed.
    ThrownAway,
}

pub struct Hooks {
    /// The alarm has gone off.
    pub alarm: fn(Context),
    /// The commands of this turn of the event loop are over. Called on request.
    pub turn_ending: fn(),
    /// There is a new value at a key with waiting clients.
    pub key_ready: fn(Database, &[u8]),
    /// A client is being unblocked by [`super::blocking::unblock`], and gets a reply. The server
    /// drops the reply if the client turns out not to be blocked: then it calls [`Hooks::gone`]
    /// next, otherwise [`Hooks::replied`].
    pub unblocking: fn(Context, Ticket, Replies),
    /// A client's wait has ended, and it gets a reply.
    pub unblocked: fn(Context, Ticket, Replies),
    /// The last that is heard of a client that waited: it has been unblocked, and has its reply.
    pub replied: fn(Ticket),
    /// A client has gone away while it waited, or its wait has ended other than by
    /// [`Hooks::replied`]. The server may call this twice for a client.
    pub gone: fn(Ticket),
    /// This server has become a primary (`true`) or a replica.
    pub role_changed: fn(bool),
    /// The data set is about to be loaded (`true`), or was loaded.
    pub loading: fn(bool),
    /// An async load has reached this stage.
    pub loading_aside: fn(Aside),
    /// A database is about to be emptied, or all of them.
    pub flushed: fn(Option<Database>),
    /// Slots begin to move to this node, have moved, or their move was cancelled.
    pub slots_moved: fn(),
    /// Two databases were swapped.
    pub swapped: fn(Database, Database),
    /// Writes the section of INFO. If the flag is set, the server is shutting down, and the module
    /// must not call it.
    pub info: fn(&Section, bool),
}

static HOOKS: OnceLock<Hooks> = OnceLock::new();

pub(super) fn set(hooks: Hooks) {
    // Only once: a module is loaded once in the life of its library.
    drop(HOOKS.set(hooks));
}

/// Calls one of the hooks.
pub(super) fn call<R: Default>(work: impl FnOnce(&Hooks) -> R) -> R {
    HOOKS.get().map(work).unwrap_or_default()
}
