//! What the server calls, apart from commands and type callbacks: timers, clients that wait,
//! events, INFO. The module gives its functions once, while it is loaded.

use std::sync::OnceLock;

use super::client::Ticket;
use super::context::{Context, Database};
use super::replies::Replies;
use super::section::Section;

/// What becomes of a data set that is loaded while another is served.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Aside {
    /// What is loaded from now on belongs to it.
    Begun,
    /// It is the one that is served now; the other is about to be freed.
    SwappedIn,
    /// It is about to be freed.
    ThrownAway,
}

pub struct Hooks {
    /// The alarm has gone off.
    pub alarm: fn(Context),
    /// The commands of this turn of the event loop are over, as was asked for.
    pub turn_ending: fn(),
    /// The server says that there is something new at a key at which somebody waits.
    pub key_ready: fn(Database, &[u8]),
    /// A client is being unblocked by [`super::blocking::unblock`], and is given a reply. The
    /// server throws it away if the client is not blocked any more when it comes to it: either
    /// [`Hooks::replied`] is called next, or [`Hooks::gone`].
    pub unblocking: fn(Ticket, Replies),
    /// A client waits no more, and gets a reply.
    pub unblocked: fn(Ticket, Replies),
    /// The last that is heard of a client that waited: it has been unblocked, and has its reply.
    pub replied: fn(Ticket),
    /// A client's wait has ended otherwise, or is about to, since it has gone away. So this may be
    /// called twice for a client, and is the last that is heard of it.
    pub gone: fn(Ticket),
    /// This server is a primary now, or isn't any more.
    pub role_changed: fn(bool),
    /// The data set is about to be loaded, or has been.
    pub loading: fn(Context, bool),
    /// A replica loads a data set while it serves another.
    pub loading_aside: fn(Aside),
    /// A database will be empty, or all of them.
    pub flushed: fn(Option<Database>),
    /// Slots begin to move here, or have moved, here or away; or they don't move any more.
    pub slots_moved: fn(),
    /// Two databases have changed places.
    pub swapped: fn(Database, Database),
    /// What INFO shows; the flag says that the server is going down, and must not be asked
    /// anything.
    pub info: fn(&Section, bool),
}

static HOOKS: OnceLock<Hooks> = OnceLock::new();

pub(super) fn set(hooks: Hooks) {
    // Once: a module is loaded once in the life of its library.
    drop(HOOKS.set(hooks));
}

/// Calls one of the hooks.
pub(super) fn call<R: Default>(work: impl FnOnce(&Hooks) -> R) -> R {
    HOOKS.get().map(work).unwrap_or_default()
}
