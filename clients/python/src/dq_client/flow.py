"""Jobs that follow each other: `chain` and `group`, which nest.

    flow = chain(
        Step("charge the card", "pay:17"),
        group(Step("send the parcel", "ship:17"), Step("say thanks", "mail:17")),
        Step("close the order", "close:17"),
    )
    queue.start(flow)

The server knows no flows: these are jobs with AFTER. `start` adds all of them or none: in one
transaction, the first ones on HOLD. It looks at the replies, and ends their HOLD. When one is
refused (its id is taken, its body too long, the queue full, too many jobs before it), it deletes
those that were added, and none has run. A step with `replace` has replaced by then. When the
connection breaks in between, the flow is held, and nothing of it runs: delete its jobs, or resume
the first ones.
"""

from __future__ import annotations

import uuid
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dq_client import commands
from dq_client.commands import Add, Command, Id, Key
from dq_client.replies import Added, Over, Taken
from dq_client.words import list_of, text

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from dq_client.commands import AddOptions

#: Of the ids in one DEL or RESUME.
_AT_ONCE = 1_000


class Step(Add):
    """A job of a flow. Without an id it gets one here, since other steps name it."""

    def __init__(self, body: Any, id: Id | None = None, **options: Unpack[AddOptions]):
        super().__init__(body, uuid.uuid4().hex if id is None else id, **options)


@dataclass(frozen=True)
class Flow:
    """Steps in the order in which they are added, each with those that it waits for."""

    steps: tuple[tuple[Add, tuple[Id, ...]], ...]
    #: The ids of the steps that wait for no other one.
    first: tuple[Id, ...]
    #: The ids of the steps that no other one waits for: their results are those of the flow.
    last: tuple[Id, ...]

    def is_first(self, step: Add, before: tuple[Id, ...]) -> bool:
        """Whether it waits for no other step."""
        return not before or step.id in self.first

    def commands(self, key: Key) -> list[Command[Added | Taken | Over]]:
        """Of all steps. Those that wait for no other one are on HOLD, where there are several."""
        found = []
        for step, before in self.steps:
            options = dict(step.options)
            if len(self.steps) > 1:
                if options.get("every") or options.get("cron"):
                    raise ValueError(f"{step.id!r}: a job with a schedule can't be part of a flow")
                options["hold"] = options.get("hold", False) or self.is_first(step, before)
            if named := [*list_of("ids", "after", step.options.get("after") or ()), *before]:
                options["after"] = named
            found.append(commands.add(key, step.id, step.body, **options))  # type: ignore[arg-type]
        return found


def flow_of(part: Flow | Add) -> Flow:
    if isinstance(part, Flow):
        return part
    return Flow(((part, ()),), (part.id,), (part.id,))


def group(*parts: Flow | Add) -> Flow:
    """All of these at the same time."""
    flows = [flow_of(part) for part in parts]
    return Flow(
        tuple(step for flow in flows for step in flow.steps),
        tuple(id for flow in flows for id in flow.first),
        tuple(id for flow in flows for id in flow.last),
    )


def chain(*parts: Flow | Add) -> Flow:
    """One after the other. What follows a group waits for all of it."""
    whole, *others = map(flow_of, parts)
    for part in others:
        following = after(whole.last, part)
        whole = Flow(whole.steps + following.steps, whole.first, following.last)
    return whole


def after(ids: Id | Sequence[Id], part: Flow | Add) -> Flow:
    """A flow, or a job, that waits for these jobs of the queue."""
    named = (ids,) if isinstance(ids, (str, bytes)) else tuple(ids)
    flow = flow_of(part)
    steps = (
        (step, named + before if step.id in flow.first else before) for step, before in flow.steps
    )
    return Flow(tuple(steps), flow.first, flow.last)


Plan = Generator[list[Command[Any]], Any, list["Added | Taken"]]


def starting(flow: Flow, key: Key) -> Plan:
    """The transactions that add a flow, one after the other. Each gets its replies; an error is the
    reply of its command. Returns what became of each step: with `nx`, all are `Taken` when one is.
    """
    replies = yield flow.commands(key)
    added = [reply for reply in replies if isinstance(reply, Added)]
    if len(added) == len(replies):
        replies = yield [commands.resume(key, *part) for part in _parts(_held(flow, added))]
        if not any(isinstance(reply, Exception) for reply in replies):
            return list(added)
    # Those that wait go first: they would die of what is removed before them.
    ids = [each.id for each in reversed(added)]
    yield [commands.delete(key, *part) for part in _parts(ids)]
    for reply in replies:
        if isinstance(reply, Exception):
            raise reply
    return [Taken(text(step.id)) for step, _ in flow.steps]


def _held(flow: Flow, added: list[Added]) -> list[str]:
    """The steps that `start` put on HOLD."""
    if len(flow.steps) == 1:
        return []
    return [
        reply.id
        for reply, (step, before) in zip(added, flow.steps, strict=True)
        if flow.is_first(step, before) and not step.options.get("hold")
    ]


def _parts(ids: list[str]) -> list[list[str]]:
    return [ids[at : at + _AT_ONCE] for at in range(0, len(ids), _AT_ONCE)]
