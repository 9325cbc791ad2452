"""Chords without counting workers.

A chord is a closing job, held in the queue of the chord's body, and a held job beside it for each
part of the header: its stand-in, which is finished with the part's result. When the last one is,
the closing job is due. A worker that gets it publishes the body, and settles the job, in one
transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from celery import group, shared_task, states
from celery._state import get_current_task
from celery.backends.base import _create_chord_error_with_cause
from celery.canvas import _chain, _chord
from celery.canvas import maybe_signature as _maybe_signature
from celery.exceptions import ChordError, Reject
from celery.result import GroupResult
from celery.utils.functional import _regen
from kombu.exceptions import OperationalError
from kombu.log import get_logger
from redis.exceptions import ResponseError

from kombu_dq import outbox
from kombu_dq.outbox import MAX_PARTS, Parts, collecting, held_behind
from kombu_dq.too_large import ResultTooLarge, shortened
from kombu_dq.wire import UNREACHABLE, is_too_large

if TYPE_CHECKING:
    from kombu_dq.backend import DQBackend
    from kombu_dq.channel import Channel

logger = get_logger("kombu_dq")
# Neither says what it returns when there is a signature, and a task.
maybe_signature: Any = _maybe_signature
current_task: Any = get_current_task

#: What the client and Celery raise while a server is away.
AWAY = (OperationalError, *UNREACHABLE)
CLOSING = "kombu_dq.close_chord"
#: Leaves first.
HIGHEST_PRIORITY = 0
Reply = TypeVar("Reply")
#: The ids of a header's results, nested as they are.
Header = list[Any]
#: A part, its state, and what came of it.
Found = tuple[str, str, Any]
#: How long a generator may make a header: a day.
KEEP_OPEN_MS = 24 * 3600 * 1000


class Outcome(NamedTuple):
    """What came of the task of a part."""

    task_id: str
    state: str
    value: Any
    #: Its place in the header; None when it was sent by itself.
    place: int | None


def begin(backend: DQBackend, header_result_args: Any, body: Any) -> bool:
    """Adds the closing job and its stand-ins.

    A header that a generator makes is sent while it is made: its stand-ins are added at its end.
    False when the broker isn't DQ, or the header has more parts than a job can wait for.
    """
    app: Any = backend.app
    group_id, results = header_result_args
    queue = _queue_of(app, body)
    # Messages of protocol 1 don't tell a task's place.
    is_open = app.conf.task_protocol != 1 and _is_open(results)
    header: Header | None
    header, parts = (None, []) if is_open else _parts_of(group_id, results)
    if not is_open and not 0 < len(parts) <= MAX_PARTS:
        return False
    expires: Any = backend.chord_expires if app.conf.get("result_chord_expires") else None
    ttl_ms = max(1, round(expires * 1000)) if expires else None
    close: Any = close_chord
    waited_for = Parts(_closing(group_id), parts, ttl_ms)
    with app.producer_or_acquire() as producer, held_behind(waited_for):
        if not hasattr(producer.channel, "add_parts"):  # another broker's
            return False
        if is_open:
            backend.open_chords[group_id] = queue, results
        close.apply_async(
            (group_id, header, body, queue),
            task_id=_closing(group_id),
            queue=queue,
            priority=HIGHEST_PRIORITY,
            serializer=body.options.get("serializer") or app.conf.task_serializer,
            root_id=body.options.get("root_id"),
            producer=producer,
            add_to_parent=False,
        )
    return True


def _is_open(results: Any) -> bool:
    """Whether a generator is to go on making the header while it is sent.

    One of groups is made at once: their tasks have no places of their own in the header.
    """
    if not isinstance(results, _regen) or outbox.current() is not None:
        return False
    return not isinstance(next(iter(results), None), GroupResult)


def close(backend: DQBackend, group_id: str, size: int) -> None:
    """The last task of a header is about to be sent: if it was open, its parts are known now."""
    opened = backend.open_chords.pop(group_id, None)
    if opened is None:
        return
    queue, results = opened
    if any(isinstance(result, GroupResult) for result in results):
        raise ValueError("a generator of both tasks and groups can't be a header: make it a list")
    parts = [_place(group_id, place) for place in range(size)]
    on_broker(backend.app, lambda channel: channel.close_parts(queue, _closing(group_id), parts))


def settle(backend: DQBackend, request: Any, state: str, result: Any) -> None:
    """Finishes the stand-in of a part. The second time it does nothing.

    In an open header a part is known by its place alone.
    """
    queue = _queue_of(backend.app, maybe_signature(request.chord, app=backend.app))
    index, value = request.group_index, backend.encode_result(result, state)
    part = _part(request.group, request.id)
    by_place = part if index is None else _place(request.group, index)

    def tell(value: Any) -> None:
        outcome = backend.encode([request.id, state, value, index])
        words = queue, _closing(request.group), part, by_place, outcome, KEEP_OPEN_MS
        on_broker(backend.app, lambda channel: channel.finish_part(*words))

    try:
        tell(value)
    except ResponseError as error:
        if not is_too_large(error):
            raise
        if not isinstance(result, BaseException):
            # Celery calls again, with this failure.
            raise ResultTooLarge(f"the result is too large: {error}") from error
        tell(backend.encode_result(shortened(result, error), state))


def extend(backend: DQBackend, group_id: str, result: Any) -> None:
    """Adds a part to the chord of the current task, which hasn't ended yet."""
    chord = current_task().request.chord
    queue = _queue_of(backend.app, maybe_signature(chord, app=backend.app))
    _, parts = _parts_of(group_id, [result])
    on_broker(backend.app, lambda channel: channel.add_parts(queue, _closing(group_id), parts))


@shared_task(  # type: ignore[untyped-decorator]
    bind=True,
    name=CLOSING,
    ignore_result=True,
    acks_late=True,
    reject_on_worker_lost=True,
    acks_on_failure_or_timeout=False,
)
def close_chord(self: Any, group_id: str, header: Header | None, body: Any, queue: str) -> None:
    """Publishes the body of a chord whose parts are all settled, or its error."""
    app = self.app
    callback = maybe_signature(body, app=app)
    tag = self.request.properties["delivery_tag"]
    try:
        outcomes = on_broker(app, lambda channel: channel.parts_of(tag))
        if outcomes is None:
            return  # it is another worker's by now
        with collecting() as collected:
            _publish(self, group_id, header, callback, outcomes)
        try:
            on_broker(app, lambda channel: channel.commit(tag, collected))
        except ResponseError as error:
            logger.exception("Chord %r: the body is refused", group_id)
            _fail(app, tag, callback, error)
        parts = [part for part, _, _ in outcomes]  # some may be kept
        if header is None or len(parts) > len(set(_leaves(header))):
            on_broker(app, lambda channel: channel.drop_parts(queue, parts))
    except AWAY as error:
        raise Reject(error, requeue=True) from error


def _fail(app: Any, tag: str, callback: Any, error: Exception) -> None:
    """Ends a chord whose body the server doesn't take: it is too large, or the queue is full."""
    cause = _create_chord_error_with_cause(f"the body is refused: {error}", error)
    with collecting() as errors:
        app.backend.chord_error_from_stack(callback, cause)
    if not on_broker(app, lambda channel: channel.commit(tag, errors)):
        on_broker(app, lambda channel: channel.publish_all(errors))


def _publish(
    task: Any, group_id: str, header: Header | None, callback: Any, outcomes: list[Found]
) -> None:
    backend = task.app.backend
    try:
        found = [_outcome(backend, *outcome) for outcome in outcomes]
        failed = next((each for each in found if each.state in states.PROPAGATE_STATES), None)
        if failed is not None:
            raise _create_chord_error_with_cause(
                f"Dependency {failed.task_id} raised {failed.value!r}", failed.value
            )
        arguments = _arguments(header, found)
        _as_last_part(task, callback, found[-1].task_id, lambda: callback.delay(arguments))
    except ChordError as error:
        logger.exception("Chord %r raised: %r", group_id, error)
        backend.chord_error_from_stack(callback, error)
    except AWAY:
        raise
    except Exception as error:
        logger.exception("Chord %r raised: %r", group_id, error)
        backend.chord_error_from_stack(
            callback, _create_chord_error_with_cause(f"Callback error: {error!r}", error)
        )


def _outcome(backend: DQBackend, part: str, state: str, what: Any) -> Outcome:
    if state != "done" or what is None:
        task_id = part.partition("/")[2]
        return Outcome(task_id, states.FAILURE, ChordError(f"{part} is {state}: {what!r}"), None)
    decode: Any = backend.decode
    outcome = Outcome(*decode(what))
    exceptional: Any = states.EXCEPTION_STATES
    if outcome.state in exceptional:
        outcome = outcome._replace(value=backend.exception_to_python(outcome.value))
    return outcome


def _arguments(header: Header | None, found: list[Outcome]) -> list[Any]:
    """The values as the header is nested, then those of parts that were added to it."""
    if header is None:
        ordered = sorted(found, key=lambda each: MAX_PARTS if each.place is None else each.place)
        return [each.value for each in ordered]
    values = {each.task_id: each.value for each in found}
    at_first = set(_leaves(header))
    more = [value for task_id, value in values.items() if task_id not in at_first]
    return [*_folded(header, values), *more]


def _as_last_part(task: Any, callback: Any, parent_id: str, publish: Callable[[], Any]) -> None:
    """Publishes as the header's last task would: it is the parent, and its priority isn't ours."""
    options = callback.options
    priority = {"priority": options.get("priority")}
    root_id = options.get("root_id") or task.request.root_id
    task.push_request(id=parent_id, root_id=root_id, delivery_info=priority, children=[])
    try:
        publish()
    finally:
        task.pop_request()


def on_broker(app: Any, do: Callable[[Channel], Reply]) -> Reply:
    """Does something with a channel of the broker; again, on a new connection, when one is lost.

    Raises ResponseError for what the server refuses, OperationalError in an outage that lasts.
    """

    def attempt(channel: Any) -> Reply | ResponseError:
        try:
            return do(channel)
        except ResponseError as error:
            return error  # kombu would do it again, and nothing is better then

    with app.pool.acquire(block=True) as connection:
        reply, _ = connection.autoretry(attempt, connection.default_channel, max_retries=5)()
    if isinstance(reply, ResponseError):
        raise reply
    return reply  # type: ignore[no-any-return]


# ---- what a chord is made of ---------------------------------------------------------------


def _part(group_id: str, task_id: str) -> str:
    return f"{group_id}/{task_id}"


def _place(group_id: str, place: int) -> str:
    return f"{group_id}/#{place}"


def _closing(group_id: str) -> str:
    return f"chord:{group_id}"


def _parts_of(group_id: str, results: Any) -> tuple[Header, list[str]]:
    """The ids of results, and the parts that stand for them."""
    header = _ids_of(results)
    return header, list(dict.fromkeys(_part(group_id, task_id) for task_id in _leaves(header)))


def _ids_of(results: Any) -> Header:
    return [
        _ids_of(result.results) if isinstance(result, GroupResult) else result.id
        for result in results
    ]


def _leaves(header: Header) -> Iterator[str]:
    for each in header:
        if isinstance(each, list):
            yield from _leaves(each)
        else:
            yield each


def _folded(header: Header, values: dict[str, Any]) -> list[Any]:
    return [_folded(each, values) if isinstance(each, list) else values[each] for each in header]


def _queue_of(app: Any, body: Any) -> str:
    """The queue of the body, or of what comes first in it."""
    sig: Any = body
    while True:
        if sig.options.get("queue"):
            queue = sig.options["queue"]
            return str(getattr(queue, "name", queue))
        inner: Any = ()
        if isinstance(sig, (group, _chain, _chord)):
            inner = sig.tasks.tasks if isinstance(sig.tasks, group) else sig.tasks
        if not inner:
            break
        first: Any = maybe_signature(inner[0], app=app)
        sig = first
    names = ("exchange", "routing_key")
    said: Any = sig.options
    options = {name: said[name] for name in names if name in said}
    route = app.amqp.router.route(options, sig.task, sig.args, sig.kwargs)
    queue = route.get("queue")
    return str(getattr(queue, "name", queue) or app.conf.task_default_queue)
