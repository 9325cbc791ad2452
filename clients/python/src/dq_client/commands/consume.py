"""Taking jobs, and saying what came of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypedDict

from dq_client import replies
from dq_client.commands.base import (
    NOTHING,
    Command,
    Id,
    Key,
    Lease,
    Nothing,
    waiting,
)
from dq_client.commands.produce import Add
from dq_client.replies import Added, Delivery, FinishedAndTaken, Taken
from dq_client.words import (
    Word,
    list_of,
    listed,
    ms,
    options,
    sent,
    text,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack

#: A job that is finished: a delivery, or an id with its lease. An id alone stands for the job's
#: latest lease.
Leased = Delivery | tuple[Id, Lease] | Id
#: The same, where it may be of another queue than the one that is asked: that queue, id and lease.
LeasedOfQueue = Leased | tuple[str, Id, Lease]


class PopOptions(TypedDict, total=False):
    """The options of DQ.MPOP. DQ.POP has `id`, too."""

    count: int | None
    min: int | None
    linger: timedelta | None
    block: timedelta | None
    ttr: timedelta | None
    noack: bool
    withdue: bool


def pop(
    key: Key,
    *,
    count: int | None = None,
    min: int | None = None,
    linger: timedelta | None = None,
    block: timedelta | None = None,
    ttr: timedelta | None = None,
    noack: bool = False,
    withdue: bool = False,
    id: Id | Sequence[Id] | None = None,
) -> Command[list[Delivery]]:
    """Takes the next ready jobs, each under a lease. `block` of 0 waits without limit. With `min`
    and `linger` it delivers nothing until so many jobs may go, or the first of them has been ready
    for so long.
    """
    named = [] if id is None else [word for each in listed(id) for word in ("ID", each)]
    words = key.command(
        "POP",
        *named,
        count=count,
        min=min,
        linger=linger,
        ttr=ttr,
        noack=noack,
        withdue=withdue,
    )
    return waiting(words, block, key.deliveries)


def mpop(
    key: Key,
    others: Sequence[str],
    *,
    count: int | None = None,
    min: int | None = None,
    linger: timedelta | None = None,
    block: timedelta | None = None,
    ttr: timedelta | None = None,
    noack: bool = False,
    withdue: bool = False,
) -> Command[list[Delivery]]:
    """Takes the next ready jobs from the first of several queues that has any: this one, then the
    others. `key` of a delivery says which one it was.
    """
    keys = [key.name, *others]
    given = options(count=count, min=min, linger=linger, ttr=ttr, noack=noack, withdue=withdue)

    def read(reply: Any) -> list[Delivery]:
        if reply is None:
            return []
        return [replies.delivery(each, text(reply[0]), key.codec) for each in reply[1]]

    return waiting(["DQ.MPOP", len(keys), *map(sent, keys), *given], block, read)


def finish_and_pop(
    key: Key, jobs: Iterable[Leased], **options: Unpack[PopOptions]
) -> Command[FinishedAndTaken]:
    """Finishes jobs of this queue, 1 to 10,000 as `finish` takes them, and then takes others. The
    finish stands also when there is no other job, and happens before a wait.
    """
    queue, finished = _finish_option(key, jobs)
    if queue != key.name:
        raise ValueError(f"jobs of the queue {queue!r} can't be finished in {key.name!r}")
    return _finishing(pop(key, **options), finished)


def finish_and_mpop(
    key: Key, jobs: Iterable[LeasedOfQueue], others: Sequence[str], **options: Unpack[PopOptions]
) -> Command[FinishedAndTaken]:
    """The same with several queues: the jobs are of one of them, which the deliveries name. An id
    with its lease is of this queue; `(queue, id, lease)` is of another one.
    """
    queue, finished = _finish_option(key, jobs)
    return _finishing(mpop(key, others, **options), [sent(queue), *finished])


def _finish_option(key: Key, jobs: Iterable[LeasedOfQueue]) -> tuple[str, list[Word]]:
    """The queue of these jobs, and the value of FINISH. ValueError for jobs of several queues."""
    found = list_of("deliveries or (id, lease) tuples", "jobs", jobs)
    queues = sorted({_queue_of(job, key.name) for job in found})
    if len(queues) > 1:
        raise ValueError(f"jobs of several queues can't be finished at once: {queues}")
    queue = queues[0] if queues else key.name
    return queue, [len(found), *(word for job in found for word in leased(job))]


def _queue_of(job: LeasedOfQueue, asked: str) -> str:
    match job:
        case Delivery():
            return job.key
        case (queue, _, _):
            return text(queue)
    return asked


def _finishing(taking: Command[list[Delivery]], finished: list[Word]) -> Command[FinishedAndTaken]:
    """FINISH stands behind BLOCK: a wait in pieces says it once."""
    return Command(
        [*taking.words, "FINISH", *finished],
        lambda reply: FinishedAndTaken(int(reply[0]), taking.parse(reply[1])),
        taking.wait_at,
        lambda reply: taking.is_waiting(reply[1]),
        lambda reply, taken: [reply[0], taken],
    )


def finish(key: Key, *jobs: Leased) -> Command[int]:
    """Removes jobs whose work is done. Each is a delivery, or an id with its lease; an id alone
    stands for the job's latest lease. Returns how many leases were valid.
    """
    return Command(key.command("FINISH", *(word for job in jobs for word in leased(job))), int)


def leased(job: LeasedOfQueue) -> list[Word]:
    match job:
        case Delivery():
            return [sent(job.id), "*" if job.lease is None else job.lease]
        case (id, lease) | (_, id, lease):
            return [sent(id), lease]
    return [sent(job), "*"]


def done(
    key: Key,
    id: Id,
    lease: Lease,
    *,
    result: Any = NOTHING,
    keep: timedelta | None = None,
    add: Iterable[Add] = (),
) -> Command[list[Added | Taken] | None]:
    """Finishes a job with a result, and adds the jobs that follow it, in one step. None when the
    lease isn't the job's: nothing has happened.
    """
    following = list(add)
    for each in following:
        if not isinstance(each, Add):
            raise TypeError(f"what is added is an Add, and not {each!r}")
    encoded = None if isinstance(result, Nothing) else key.codec.encode(result)

    def read(reply: Any) -> list[Added | Taken] | None:
        if isinstance(reply, int):
            return [] if reply else None
        return [
            Taken(text(each.id)) if id is None else Added(text(id))
            for id, each in zip(reply, following, strict=True)
        ]

    words = key.command("DONE", sent(id), lease, result=encoded, keep=keep)
    words += [word for each in following for word in ("ADD", *each.words(key))]
    return Command(words, read)


def release(
    key: Key,
    id: Id,
    lease: Lease,
    *,
    delay: timedelta | None = None,
    unbegun: bool = False,
    priority: int | None = None,
    reason: str | None = None,
    body: Any = NOTHING,
    note: str | None = None,
) -> Command[bool]:
    """Gives a job back, to be tried again after its backoff or a delay."""
    words = key.command(
        "RELEASE",
        sent(id),
        lease,
        delay=delay,
        unbegun=unbegun,
        priority=priority,
        reason=reason,
        body=body_or_none(key, body),
        note=note,
    )
    return Command(words, bool)


def touch(
    key: Key,
    id: Id,
    lease: Lease,
    *,
    ttr: timedelta | None = None,
    body: Any = NOTHING,
    note: str | None = None,
) -> Command[bool]:
    """Extends a lease. With `body` and `note`, a checkpoint of a long job."""
    body = body_or_none(key, body)
    return Command(key.command("TOUCH", sent(id), lease, ttr=ttr, body=body, note=note), bool)


def renew(
    key: Key, ttr: timedelta, block: timedelta, jobs: Sequence[tuple[Id, Lease]]
) -> Command[list[str]]:
    """Extends the leases of jobs in hand, and waits until one of them is void, or for `block`.
    Returns the ids of those that are void.
    """
    pairs = [word for id, lease in jobs for word in (sent(id), lease)]
    words = key.command("RENEW", ms(ttr), ms(block), *pairs)
    return Command(words, lambda reply: [text(id) for id in reply])


def body_or_none(key: Key, body: Any) -> bytes | None:
    return None if isinstance(body, Nothing) else key.payload(body)


def bury(key: Key, id: Id, lease: Lease, *, reason: str | None = None) -> Command[bool]:
    """Marks a job as dead: it is kept for an operator to look at."""
    return Command(key.command("BURY", sent(id), lease, reason=reason), bool)
