"""A message in a worker's hands."""

from __future__ import annotations

from dramatiq import Message
from dramatiq.broker import MessageProxy

from dq_client import Add, Delivery


class HeldMessage(MessageProxy):
    """A message with the lease under which this worker has it."""

    def __init__(self, delivery: Delivery):
        super().__init__(Message.decode(delivery.payload))
        self.job_id = delivery.id
        self.lease = delivery.lease or 0
        #: Its retry, which is added when it is acknowledged, in one step.
        self.following: list[Add] = []

    @property
    def key(self) -> tuple[str, int]:
        """Names this delivery; a message itself can't be in a set."""
        return self.job_id, self.lease

    @property
    def has_raised(self) -> bool:
        """Its actor is through, with an exception."""
        return self._exception is not None

    @property
    def reason(self) -> str | None:
        """Why it failed, as far as a reason of DQ reaches."""
        if self._exception is None:
            return None
        told = f"{type(self._exception).__name__}: {self._exception}"
        return told.encode()[:_REASON_AT_MOST].decode(errors="ignore")


#: In bytes.
_REASON_AT_MOST = 512
