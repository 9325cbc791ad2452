"""Waiting for several channels at once."""

from __future__ import annotations

from typing import Any

from kombu.transport import redis


class Poller(redis.MultiChannelPoller):
    """As kombu's, but for one thing: a reply is read also when its channel has no room for more
    messages.

    A reply that stays in the socket holds jobs whose leases nobody keeps. There are no more in it
    than there was room for when it was asked for.
    """

    def _update_brpop_polling(self) -> None:
        """Pauses no channel."""

    def on_readable(self, fileno: int) -> Any:
        channel, kind = self._fd_to_chan.get(fileno, (None, None))
        if channel is None:
            return None
        if kind == "BRPOP" and not channel._in_poll:
            # Nothing is expected: the server has closed the connection.
            channel.client.connection.disconnect()
            return None
        return channel.handlers[kind]()
