"""`manage.py dq_worker`: runs tasks until it is told to stop."""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import sys
import threading
import time
from argparse import ArgumentTypeError
from concurrent.futures import thread as executors
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import autoreload
from django.utils.connection import ConnectionDoesNotExist

from django_dq.backend import DQBackend
from django_dq.framework import DEFAULT_TASK_BACKEND_ALIAS, task_backends
from django_dq.running import Runner
from dq_client import Queue
from dq_client.worker import Worker

#: After the grace time, for the worker's last words to the server.
_LAST_WORDS_S = 10
#: After the program's own end, when threads keep the process.
_STUCK_S = 3


class Command(BaseCommand):
    help = (
        "Runs the tasks of a DQ backend. At SIGTERM or Ctrl-C it takes no more of them; those in "
        "hand may end within the grace time, the others go back."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--backend",
            default=DEFAULT_TASK_BACKEND_ALIAS,
            metavar="ALIAS",
            help="which one of TASKS (default: %(default)s)",
        )
        parser.add_argument(
            "--queue",
            action="append",
            type=_weighted,
            default=[],
            metavar="NAME[=WEIGHT]",
            help="only this queue of the backend, or several, each the first as often as its "
            "weight says (default: all in QUEUES, with weight 1)",
        )
        parser.add_argument(
            "--concurrency",
            type=_count,
            default=10,
            metavar="N",
            help="how many tasks run at the same time, each in a thread (default: %(default)s)",
        )
        parser.add_argument(
            "--ttr",
            type=_time,
            default="60",
            metavar="SECONDS",
            help="how soon the tasks of a worker that died are run again (default: %(default)s)",
        )
        parser.add_argument(
            "--grace",
            type=_seconds,
            default="30",
            metavar="SECONDS",
            help="how long the tasks in hand may go on at the end (default: %(default)s)",
        )
        parser.add_argument(
            "--reload",
            action="store_true",
            help="start again when a file of the program changes, for development",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["reload"]:
            autoreload.run_with_reloader(self._work_reloading, options)
        else:
            self._worker(options).run()
            threading.Thread(target=_end, name="dq-end", daemon=True).start()

    def _work_reloading(self, options: dict[str, Any]) -> None:
        """In a thread: the main one watches the files, and ends the process when one changes."""
        worker = self._worker(options)
        ended = threading.Event()

        def end() -> None:
            worker.stop()
            ended.wait(options["grace"].total_seconds() + _LAST_WORDS_S)

        atexit.register(end)
        try:
            asyncio.run(worker.serve())
        finally:
            ended.set()

    def _worker(self, options: dict[str, Any]) -> Worker:
        backend = _backend(options["backend"])
        names = dict(options["queue"] or [(name, 1) for name in sorted(backend.queues)])
        if not names:
            raise CommandError("QUEUES of this backend is empty: name some by --queue")
        if unknown := set(names) - backend.queues if backend.queues else ():
            raise CommandError(f"not in QUEUES of this backend: {', '.join(sorted(unknown))}")
        weights: dict[Queue, int] = {backend.queue(name): names[name] for name in names}
        runner = Runner(backend)
        logging.getLogger("dq_client").addFilter(_holds_for_tasks)
        try:
            worker = Worker(
                weights,
                runner,
                concurrency=options["concurrency"],
                ttr=options["ttr"],
                grace=options["grace"],
            )
        except ValueError as error:
            raise CommandError(str(error)) from error
        if options["verbosity"] > 0:
            self.stdout.write(f"{runner.worker_id} works on {', '.join(names)}")
            self.stdout.flush()
        return worker


def _holds_for_tasks(record: logging.LogRecord) -> bool:
    """Each task has the backoff of OPTIONS: that its queue gives none to jobs is no news."""
    return "as they get no backoff" not in str(record.msg)


def _end() -> None:
    """Python waits at its end for the threads of all executors, such as that of asyncio.to_thread.
    The tasks that wait for them have been given back.
    """
    while not getattr(executors, "_shutdown", True):
        time.sleep(0.1)
    time.sleep(_STUCK_S)
    sys.stderr.flush()
    os._exit(0)


def _backend(alias: str) -> DQBackend:
    try:
        backend = task_backends[alias]
    except ConnectionDoesNotExist as error:
        raise CommandError(str(error)) from error
    if not isinstance(backend, DQBackend):
        raise CommandError(f"the backend {alias!r} of TASKS isn't a django_dq.DQBackend")
    return backend


def _weighted(text: str) -> tuple[str, int]:
    name, _, weight = text.partition("=")
    try:
        return name, int(weight or 1)
    except ValueError:
        raise ArgumentTypeError(f"{weight!r} isn't a weight") from None


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError(f"{text!r} isn't a number of tasks: 1 at least")
    return int(text)


def _time(text: str) -> timedelta:
    seconds = _seconds(text) if not text.startswith("-") else timedelta(0)
    if seconds <= timedelta(0):
        raise ArgumentTypeError(f"{text!r} isn't a time: more than 0 seconds")
    return seconds


def _seconds(text: str) -> timedelta:
    """0 or more of them."""
    try:
        seconds = timedelta(seconds=float(text))
    except (ValueError, OverflowError):
        seconds = timedelta(-1)
    if seconds < timedelta(0):
        raise ArgumentTypeError(f"{text!r} isn't a number of seconds")
    return seconds
