"""Tasks that do what the tests look for. A redis list tells what they did: see `told`."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import django
from django.db import connection
from django.dispatch import receiver

from django_dq import Bury, Retry
from django_dq.framework import TaskContext, TaskResult, task_backends, task_finished, task_started

if django.VERSION >= (6, 0):
    from django.tasks import task
else:
    from django_tasks import task


def tell(word: str) -> None:
    task_backends["default"].client.rpush("told", word)  # type: ignore[attr-defined]


def told() -> list[str]:
    words = task_backends["default"].client.lrange("told", 0, -1)  # type: ignore[attr-defined]
    return [word.decode() for word in words]


@task
def add(one: int, other: int = 0) -> int:
    return one + other


@task
async def add_async(one: int, other: int = 0) -> int:
    return one + other


@task
def note(word: str) -> None:
    tell(word)


@task(takes_context=True)
def about(context: TaskContext[Any, Any]) -> list[Any]:
    result = context.task_result
    return [result.id, context.attempt, result.status]


@task(retries=2)  # type: ignore[call-overload]
def give(length: int) -> str:
    tell("ran")
    return "x" * length


@task
def refuse(word: str) -> None:
    raise LookupError(word)


@task(takes_context=True, retries=2)  # type: ignore[call-overload]
def refuse_at_first(context: TaskContext[Any, Any], times: int) -> str:
    if context.attempt <= times:
        raise LookupError(f"attempt {context.attempt}")
    return f"attempt {context.attempt}"


@task(takes_context=True)
def come_again(context: TaskContext[Any, Any]) -> int:
    if context.attempt == 1:
        raise Retry("not yet")
    return context.attempt


@task
def give_up() -> None:
    raise Bury("no use")


@task
def give_what_json_has_not() -> object:
    return object()


@task
def is_connected() -> bool:
    return connection.connection is not None


@task
def query() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 17")
        return int(cursor.fetchone()[0])


@receiver([task_started, task_finished])
def stumble(task_result: TaskResult[..., Any], **_: Any) -> None:
    if task_result.task.func is stumbled_over.func:
        raise LookupError("a receiver")


@task
def stumbled_over() -> int:
    return 17


@task
def work_until_told(word: str) -> str:
    tell(f"began {word}")
    while "go on" not in told():
        time.sleep(0.01)
    return word


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("nothing to say")


#: What a task may raise.
RAISED: dict[str, BaseException] = {
    "mute": Mute(),
    "surrogate": ValueError("\ud800"),
    "long": ValueError("x" * (2 << 20)),
    "exit": SystemExit(3),
    "interrupt": KeyboardInterrupt(),
    "stop": StopIteration(),
    "generator": GeneratorExit(),
}


@task(retries=1)  # type: ignore[call-overload]
def raise_it(name: str) -> None:
    tell(name)
    raise RAISED[name]


@task(retries=1)  # type: ignore[call-overload]
async def raise_it_async(name: str) -> None:
    tell(name)
    raise RAISED[name]


@task(retries=1)  # type: ignore[call-overload]
def refuse_long(word: str) -> None:
    tell("ran")
    raise LookupError(word)


@task
def begin_and_end(word: str) -> None:
    tell(f"began {word}")


@task
def sleep_for(seconds: float) -> None:
    time.sleep(seconds)


@task
async def hang_in_a_thread() -> None:
    tell("hangs")
    await asyncio.to_thread(time.sleep, 600)
