"""Which messages are unacknowledged, and what becomes of their leases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kombu.transport import virtual

from kombu_dq import leases

if TYPE_CHECKING:
    from kombu_dq.channel import Channel


class QoS(virtual.QoS):
    """Acknowledged is finished, rejected is released or buried; what is left in the end is given
    back.

    Nothing is restored by the clock, as it is in kombu's redis transport: a lease that nobody keeps
    runs out.
    """

    channel: Channel
    _delivered: Any

    def can_consume_at_most(self, most: int) -> int:
        """How many messages may be fetched at once."""
        if "can_consume" in vars(self):
            # Celery's worker_disable_prefetch has put its own rule here, for one message at a time.
            return 1
        free = self.can_consume_max_estimate()
        return most if free is None else max(1, min(free, most))

    def ack(self, delivery_tag: str) -> None:
        self.channel.leases.settle(delivery_tag, leases.FINISH)
        super().ack(delivery_tag)

    def reject(self, delivery_tag: str, requeue: bool = False) -> None:
        words = leases.RELEASE if requeue else leases.bury("rejected by its consumer")
        self.channel.leases.settle(delivery_tag, words)
        super().ack(delivery_tag)

    def bury(self, delivery_tag: str, reason: str) -> None:
        self.channel.leases.settle(delivery_tag, leases.bury(reason))
        if delivery_tag in self._delivered:
            super().ack(delivery_tag)

    def restore_unacked(self) -> list[tuple[BaseException, Any]]:
        self.channel.leases.give_back()
        self._delivered.clear()
        return []
