//! What the services need from the server, as a trait. `live.rs` implements it with the real
//! server, the tests with a simulated one.

use std::time::Duration;

use crate::queue::{Defaults, Time};

use super::key_ref::{Access, Closed, Database, QueueKey};
use super::keys::value::QueueValue;
use super::state::State;

pub trait Host: Copy {
    /// The server's handle of a client that waits.
    type Client: Copy;
    type Key<'k>: QueueKey;

    /// The state of the services. `work` must not call the host.
    fn with<R>(self, work: impl FnOnce(&mut State<Self::Client>) -> R) -> R;

    /// The server's wall clock. Read it once per command or timer run.
    fn wall_clock(self) -> Time;

    /// How long until the wall clock reaches this time, as exactly as possible; zero if it is in
    /// the past.
    fn until(self, time: Time) -> Duration;

    /// A monotonic clock.
    fn uptime(self) -> Duration;

    /// Whether a queue may be changed outside a command. Not on a replica, nor while data is
    /// loaded, clients are paused or a failover is in progress.
    fn may_change(self) -> bool;

    /// The server's defaults for jobs, from the configs.
    fn defaults(self) -> Defaults;

    /// How long a run of the timer may take.
    fn tick_budget(self) -> Duration;

    /// Whether a key of this name belongs to this node. In a cluster: whether its slot does.
    fn is_own(self, name: &[u8]) -> bool;

    /// Whether keys may leave this server with their slots.
    fn is_in_cluster(self) -> bool;

    /// Whether the slot of a key stays on this node: it is neither another node's nor on its way to
    /// one.
    fn is_staying(self, name: &[u8]) -> bool;

    /// Calls [`super::timer::pacemaker::on_alarm`] after this time. Replaces the alarm that was
    /// set before.
    fn set_alarm(self, after: Duration);

    /// Calls [`super::waiting::serving::on_turn_ending`] after the commands of this turn of the
    /// event loop.
    fn at_end_of_turn(self);

    /// Writes a line to the server's log, for the operator.
    fn warn(self, what: &str);

    /// Reports an impossible branch to the operator. The server goes on.
    fn bug(self, what: &str);

    /// Unblocks the client. It gets the reply of [`super::waiting::serving::on_unblocking`] or
    /// [`super::waiting::serving::on_unblocked`], which may be called from in here.
    fn unblock(self, client: Self::Client);
}

/// A host inside a callback that may open keys which no command names: that of a timer, or of a
/// client that is unblocked.
pub trait Keyspace: Host {
    /// Opens the queue at a key that belongs to this node. Reading it doesn't count as a use of the
    /// key, nor expire it.
    fn open<R>(
        self,
        key_ref: (Database, &[u8]),
        access: Access,
        work: impl FnOnce(Self::Key<'_>, &mut QueueValue) -> R,
    ) -> Result<R, Closed>;

    /// Calls [`super::timer::wakeup::plan`] for the queues at a few more keys, from the first key
    /// on. Returns false after the last key; then it begins anew.
    fn walk_on(self) -> bool;
}
