"""Calls by an asyncio client of a cluster, each to its own node.

At an error of one connection the client's own way closes those of all nodes, again and again while
a node is down: a worker would come to a few jobs a second on all others. Here an error is the error
of its node alone, and the layout is learned again now and then.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from dq_client.seam import undecoded
from dq_client.words import Word

#: The layout is learned again this long after the last time at the soonest.
_LEARN_S = 1.0
#: Redirections, which the client follows.
_REDIRECTIONS = {"MovedError", "AskError"}
#: Errors that a new layout may mend.
_OF_THE_LAYOUT = {"ConnectionError", "TimeoutError", "ClusterDownError", "SlotNotCoveredError"}


class Nodes:
    def __init__(self, client: Any):
        self._client = client
        self._learned_at = -_LEARN_S
        self._learning: asyncio.Task[None] | None = None
        modules = (vars(sys.modules[kind.__module__]) for kind in type(client).__mro__)
        #: Of the client library.
        self._line: Any = next(m["PipelineCommand"] for m in modules if "PipelineCommand" in m)

    @staticmethod
    def serve(client: Any) -> bool:
        """Whether the client is such a one, of a version that has what is needed here."""
        needed = ("initialize", "get_node_from_key", "nodes_manager")
        modules = (vars(sys.modules[kind.__module__]) for kind in type(client).__mro__)
        return all(hasattr(client, name) for name in needed) and any(
            "PipelineCommand" in module for module in modules
        )

    async def send(self, lines: Sequence[list[Word]]) -> list[Any]:
        """The replies to commands of one slot; an error is the reply of its own."""
        try:
            await self._client.initialize()
            node = self._client.get_node_from_key(_key_of(lines[0]))
            options = undecoded(self._client)
            sent = [self._line(at, *words, **options) for at, words in enumerate(lines)]
            await node.execute_pipeline(sent)
        except Exception as error:
            self._learn(error)
            raise
        replies = [each.result for each in sent]
        for at, reply in enumerate(replies):
            if isinstance(reply, Exception):
                self._learn(reply)
                if type(reply).__name__ in _REDIRECTIONS:
                    replies[at] = await self._followed(lines[at])
        return replies

    async def _followed(self, words: list[Word]) -> Any:
        try:
            return await self._client.execute_command(*words, **undecoded(self._client))
        except Exception as error:
            return error

    def _learn(self, error: Exception) -> None:
        names = {kind.__name__ for kind in type(error).__mro__}
        now = asyncio.get_running_loop().time()
        is_learning = self._learning is not None and not self._learning.done()
        if names & _OF_THE_LAYOUT and not is_learning and now - self._learned_at >= _LEARN_S:
            self._learned_at = now
            self._learning = asyncio.create_task(self._learned())

    async def _learned(self) -> None:
        with suppress(Exception):
            await self._client.nodes_manager.initialize()


def _key_of(words: list[Word]) -> Any:
    return words[2] if words[0] == "DQ.MPOP" else words[1]
