"""Results that are longer than the server takes. To Celery, their tasks have failed."""

from __future__ import annotations

from celery.exceptions import BackendStoreError, ChordError
from kombu.exceptions import EncodeError


class ResultTooLarge(BackendStoreError, EncodeError):
    """The result of a task, or of a part of a chord, is longer than `dq.max-body-bytes`. Celery
    makes a failure of it, as of a result that its serializer can't encode.
    """


def shortened(error: BaseException, refusal: Exception) -> Exception:
    """What is kept of an exception that is too large. That of a chord stays one."""
    kind = ChordError if isinstance(error, ChordError) else ResultTooLarge
    return kind(f"{type(error).__name__}, of which the message is too large: {refusal}")
