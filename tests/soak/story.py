"""Histories written by hand, one millisecond between commands, on a server whose clock starts at NOW.

story = Story()
story.says("DQ.ADD q a x", "a")
waits = story.begins("DQ.POP q BLOCK 0")
story.passes(500)
story.ends(waits, [["a", "x", 7, 1]])
assert story.kinds() == set()
"""

from typing import Any

from .history import Mark, Op, Record
from .oracle import Verdict, judge

NOW_MS = 1_800_000_000_000


def words(line: str) -> list[Any]:
    return [int(word) if word.lstrip("-").isdigit() else word for word in line.split()]


def shown(id: str, **others: Any) -> list[Any]:
    """A job as GET and PEEK show it: with the defaults, except for the given fields."""
    fields: dict[str, Any] = {
        "id": id, "body": "x", "state": "ready", "due": None, "deadline": None, "priority": 128,
        "ttr": 60_000, "attempts": 25, "attempt": 0, "lease": None, "since": None, "backoff-base": 0,
        "backoff-max": 0, "ttl": 0, "expires": None, "keep": 0, "late": 0, "kept-until": None,
    }  # fmt: skip
    return [word for pair in (fields | others).items() for word in pair]


class Story:
    def __init__(self) -> None:
        self.records: list[Record] = []
        self.shift_ms = 0
        self._ms = 0
        self._marks = 0
        self._ops = 0
        self._epoch = -1
        # Marks of the epoch, for its journal.
        self._journal: list[int] = []
        self._base = 0
        self.starts(cut=0)

    def says(
        self,
        line: str,
        told: Any,
        *,
        client: str = "c",
        shape: str = "tight",
        db: int = 0,
        **note: Any,
    ) -> Op:
        """A command that is carried out at once, and its reply."""
        op = self.begins(line, client=client, shape=shape, db=db, **note)
        return self.ends(op, told)

    def begins(
        self,
        line: str,
        *,
        client: str = "w",
        shape: str = "tight",
        db: int = 0,
        is_marked: bool = True,
        **note: Any,
    ) -> Op:
        """A command that takes its time. The server may have refused the mark before it."""
        self.passes(1)
        self._ops += 1
        op = Op(self._ops, client, self._epoch, db, self._us(), shape, [words(line)], note=note)
        if is_marked:
            op.before = self._mark(2 * op.id)
        return op

    def ends(self, op: Op, told: Any, *, is_marked: bool = True) -> Op:
        """The reply to that command. The server may have refused the mark after it."""
        if is_marked:
            op.after = self._mark(2 * op.id + 1)
        op.told, op.got = [told], self._us()
        self.records.append(op.record())
        return op

    def is_lost(self, op: Op) -> None:
        """The reply never came. The journal says whether the command was carried out."""
        op.before, op.got, op.lost = None, self._us(), "closed"
        self.records.append(op.record())

    def unmark(self) -> None:
        """The last mark was never made."""
        self._journal.pop()
        self._marks -= 1

    def passes(self, ms: int) -> None:
        self._ms += ms

    def lives(self, ms: int) -> None:
        """Time passes, and the server shows meanwhile that it is alive."""
        for _ in range(ms // 50):
            self.passes(50)
            self.says("DQ.LEN elsewhere", 0, client="ticker")

    def starts(self, cut: int, **promise: Any) -> None:
        """A new epoch that begins with this many marks of the one before."""
        kept = self._journal[: max(cut - self._base, 0)]
        self._epoch += 1
        self.records.append(
            {
                "epoch": self._epoch,
                "server": f"a.{self._epoch + 1}",
                "parent": self._epoch - 1 if self._epoch else None,
                "cut": cut,
                "journal": kept,
                "at": self._us(),
                "clock": self._clock_ms(),
                "why": "crash",
                **promise,
            }
        )
        self._journal, self._base, self._marks = [], cut, cut

    def crashes(self, lost: int = 0, **promise: Any) -> None:
        """A crash that loses the last `lost` marks."""
        self.starts(self._marks - lost, **promise)

    def sets_clock(self, by_ms: int) -> None:
        self.shift_ms += by_ms
        clock = self._clock_ms() + max(-by_ms, 0)
        self.records.append(
            {"nemesis": "clock", "at": self._us(), "epoch": self._epoch, "clock": clock}
        )

    def verdict(self) -> Verdict:
        end = {"end": self._epoch, "cut": self._marks, "journal": self._journal, "at": self._us()}
        return judge([*self.records, end])

    def kinds(self) -> set[str]:
        return {violation.kind for violation in self.verdict().violations}

    def _us(self) -> int:
        return self._ms * 1_000

    def _clock_ms(self) -> int:
        return NOW_MS + self._ms + self.shift_ms

    def _mark(self, entry: int) -> Mark:
        self._marks += 1
        self._journal.append(entry)
        return (self._marks, self._clock_ms() * 1_000)
