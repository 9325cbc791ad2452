//! What the services need from the server, as a trait: the real one implements it (`live.rs`), and
//! so can a simulated one, in which they run without a server.

use std::time::Duration;

use crate::queue::{Defaults, Time};

use super::place::{Access, Closed, Database, QueueKey};
use super::state::State;
use super::value::QueueValue;

pub trait Host: Copy {
    /// What the server calls a client that waits.
    type Client: Copy;
    type Key<'k>: QueueKey;

    /// What the services remember. Nothing of the host may be called inside.
    fn with<R>(self, work: impl FnOnce(&mut State<Self::Client>) -> R) -> R;

    /// The server's wall clock: to be read once a command or timer run.
    fn wall_clock(self) -> Time;

    /// Until the wall clock gets to this time, as exactly as can be; nothing when it is past.
    fn until(self, time: Time) -> Duration;

    /// A clock that nobody sets.
    fn uptime(self) -> Duration;

    /// Whether something may be changed outside a command: not on a replica, nor while data is
    /// loaded, clients are paused or a failover is under way.
    fn may_change(self) -> bool;

    /// What the configs say of jobs whose ADD doesn't.
    fn defaults(self) -> Defaults;

    /// How long a run of the timer may take.
    fn tick_budget(self) -> Duration;

    /// Opens the queue at a key of this node's own, outside a command: to read, that doesn't count as
    /// a use of the key, nor expire it.
    fn open<R>(
        self,
        place: (Database, &[u8]),
        access: Access,
        work: impl FnOnce(Self::Key<'_>, &mut QueueValue) -> R,
    ) -> Result<R, Closed>;

    /// Whether a key of this name is this node's own: in a cluster, its slot is.
    fn is_own(self, name: &[u8]) -> bool;

    /// Calls [`super::pacemaker::on_alarm`] then, and not for the alarm that was set before.
    fn set_alarm(self, after: Duration);

    /// Calls [`super::waiting::on_turn_ending`] when the commands of this turn are over.
    fn at_end_of_turn(self);

    /// Begins to walk over all keys, from the first one.
    fn begin_walk(self);

    /// Calls [`super::wakeup::plan`] for the queues at a few more keys; false when that were the
    /// last ones.
    fn walk_on(self) -> bool;

    /// What can't be has happened: the operator is told, and the server goes on.
    fn bug(self, what: &str);

    /// The client gets the reply of [`super::waiting::on_unblocking`] or
    /// [`super::waiting::on_unblocked`], perhaps from in here.
    fn unblock(self, client: Self::Client);
}
