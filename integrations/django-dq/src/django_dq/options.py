"""The OPTIONS of the backend in Django's settings, and the client that they ask for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from datetime import timedelta
from functools import cache
from typing import Any, TypeVar

import redis
from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import import_string

from dq_client import Backoff

T = TypeVar("T")

_KINDS: tuple[tuple[str, type, str], ...] = (
    ("url", str, "a str"),
    ("prefix", str, "a str"),
    ("retries", int, "an integer"),
    ("backoff", Backoff, "a Backoff"),
    ("result_ttl", timedelta, "a timedelta"),
)


@dataclass(frozen=True)
class Options:
    """What may be in OPTIONS, and what holds without it."""

    #: The server, as redis-py has it.
    url: str = "redis://localhost:6379/0"
    #: The path of a function that makes the client, in place of `url`: for Sentinel, a cluster or
    #: valkey-py.
    client: str | None = None
    #: Before the name of a queue, in the name of its key.
    prefix: str = "django:"
    #: How many more times a task that raises is tried.
    retries: int = 0
    #: How long it waits before that.
    backoff: Backoff = field(default=Backoff(timedelta(seconds=1), timedelta(minutes=10)))
    #: How long the result of a successful task is kept; not at all with a duration of 0.
    result_ttl: timedelta = timedelta(days=1)

    def __post_init__(self) -> None:
        for name, kind, words in _KINDS:
            value = getattr(self, name)
            if not isinstance(value, kind) or isinstance(value, bool):
                raise ImproperlyConfigured(f"{name} of django_dq.DQBackend must be {words}")
        if not all(isinstance(each, timedelta) for each in (self.backoff.base, self.backoff.max)):
            raise ImproperlyConfigured("backoff of django_dq.DQBackend must have timedeltas")
        if self.retries < 0:
            raise ImproperlyConfigured("retries of django_dq.DQBackend must not be negative")
        if self.result_ttl < timedelta(0):
            raise ImproperlyConfigured("result_ttl of django_dq.DQBackend must not be negative")

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Options:
        """Raises ImproperlyConfigured when there are others among them."""
        if unknown := set(given) - {each.name for each in fields(cls)}:
            raise ImproperlyConfigured(
                f"django_dq.DQBackend has no option {', '.join(sorted(unknown))}"
            )
        return cls(**given)

    def connected(self) -> Any:
        """The client; all backends of a process with the same options share it, as it is safe to
        use by several threads.
        """
        return _made(self.client) if self.client else _connected(self.url)


def at_the_primary(client: Any, call: Callable[[], T]) -> T:
    """Calls once more where the server that was asked is a replica by now: it has done nothing, and
    the address may lead to the new primary. Clients of clusters see to that by themselves.
    """
    try:
        return call()
    except Exception as error:
        pool = getattr(client, "connection_pool", None)
        if type(error).__name__ != "ReadOnlyError" or pool is None:
            raise
        pool.disconnect(inuse_connections=False)
        return call()


@cache
def _connected(url: str) -> redis.Redis:
    return redis.Redis.from_url(url)


@cache
def _made(path: str) -> Any:
    return import_string(path)()
