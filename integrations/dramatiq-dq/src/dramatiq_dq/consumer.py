"""Takes messages off a queue."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from dramatiq.broker import Consumer, MessageProxy
from dramatiq.errors import ConnectionClosed

from dq_client.outages import passes, pauses
from dramatiq_dq.message import HeldMessage

if TYPE_CHECKING:
    from dramatiq_dq.broker import DQBroker


@contextmanager
def outages() -> Iterator[None]:
    """Dramatiq's worker goes on after an error of this kind: what isn't given back comes again when
    its lease ends.
    """
    try:
        yield
    except Exception as error:
        if passes(error):
            raise ConnectionClosed(error) from error
        raise


class DQConsumer(Consumer):
    """Waits in the server for the next message; what is ready comes at once, up to `prefetch`.

    Parameters:
      prefetch: how many messages it may have in its hands, those in work included.
      timeout: how long it waits for a message, in milliseconds.
    """

    def __init__(self, broker: DQBroker, queue_name: str, prefetch: int, timeout: int):
        self.broker = broker
        self.queue_name = queue_name
        self.prefetch = prefetch
        self.timeout = max(int(timeout), 1)
        self._fetched: deque[HeldMessage] = deque()
        self._in_work: set[tuple[str, int]] = set()
        self._has_place = threading.Event()
        self._has_begun = False
        self._waits = pauses()

    @property
    def outstanding_message_count(self) -> int:
        return len(self._fetched) + len(self._in_work)

    def __next__(self) -> HeldMessage | None:
        if not self._fetched:
            self._fetch()
        if not self._fetched:
            return None
        message = self._fetched.popleft()
        self._in_work.add(message.key)
        return message

    def ack(self, message: MessageProxy) -> None:
        self._settle(message, is_done=True)

    def nack(self, message: MessageProxy) -> None:
        self._settle(message, is_done=False)

    def requeue(self, messages: Iterable[MessageProxy]) -> None:
        held = [message for message in messages if isinstance(message, HeldMessage)]
        if held:
            with outages():
                self.broker.do_requeue(self.queue_name, *held)
        self._in_work.difference_update(each.key for each in held)

    def close(self) -> None:
        """Gives back what was fetched and hasn't been asked for."""
        fetched = list(self._fetched)
        self._fetched.clear()
        self.requeue(fetched)

    def _settle(self, message: MessageProxy, *, is_done: bool) -> None:
        """Never waits for a server that is away: it is told later."""
        if not isinstance(message, HeldMessage):  # it has never been on a queue
            return
        settle = self.broker.do_ack if is_done else self.broker.do_nack
        try:
            self.broker.settle(self.queue_name, message, settle)
        finally:
            self._in_work.discard(message.key)
            self._has_place.set()

    def _fetch(self) -> None:
        self._has_place.clear()
        places = self.prefetch - self.outstanding_message_count
        places -= self.broker.untold(self.queue_name)
        if places <= 0:
            self._has_place.wait(self.timeout / 1000)
            return
        try:
            if not self._has_begun:
                self.broker.do_begin(self.queue_name)
                self._has_begun = True
            self._fetched.extend(self.broker.do_fetch(self.queue_name, places, self.timeout))
        except Exception as error:
            if not self.broker.outages.passes(error):
                raise
            # Dramatiq would make another consumer each second, with two lines of its log.
            self.broker.outages.failed(self.queue_name, error)
            self._has_place.wait(next(self._waits))
        else:
            self.broker.outages.answered(self.queue_name)
            self._waits = pauses()
