"""Jobs that follow each other: `chain` and `group`, which nest.

    flow = chain(
        Step("charge the card", "pay:17"),
        group(Step("send the parcel", "ship:17"), Step("say thanks", "mail:17")),
        Step("close the order", "close:17"),
    )
    queue.start(flow)

The server knows no flows: these are jobs with AFTER, added in one transaction, so that no step is
over before the next one is there.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dq_client import commands
from dq_client.commands import Add, Command, Id, Key
from dq_client.replies import Added, Over, Taken

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from dq_client.commands import AddOptions


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

    def commands(self, key: Key) -> list[Command[Added | Taken | Over]]:
        found = []
        for step, before in self.steps:
            options = dict(step.options)
            if named := [*(step.options.get("after") or ()), *before]:
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
