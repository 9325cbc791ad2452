"""The violations that the oracle finds in a history."""

from collections import Counter
from dataclasses import dataclass, field

# Kinds of violations; the README tells what each promises in return.
KINDS = (
    "lost",
    "ghost",
    "early",
    "double",
    "stale",
    "refused",
    "lease-twice",
    "lease-order",
    "attempt",
    "schedule",
    "body",
    "count",
    "order",
    "withheld",
    "stuck",
    "unfair",
    "paused",
    "limit",
    "view",
    "lateness",
    "error",
    "durability",
    "digest",
    "sums",
    "leak",
    "memory",
    "sink",
    "alarm",
)


@dataclass(frozen=True)
class Violation:
    kind: str
    text: str
    # The operations that show it, the last one first.
    ops: tuple[int, ...] = ()
    key: str | None = None
    id: str | None = None
    at: int = 0

    def __str__(self) -> str:
        where = "/".join(part for part in (self.key, self.id) if part)
        shown = f" [op {', '.join(map(str, self.ops))}]" if self.ops else ""
        return f"{self.kind}: {where + ': ' if where else ''}{self.text}{shown}"


@dataclass
class Verdict:
    violations: list[Violation] = field(default_factory=list)
    # How much was judged: operations, deliveries, checks by kind.
    counts: Counter[str] = field(default_factory=Counter)
    # How late waiting consumers were served, in milliseconds.
    lateness: list[int] = field(default_factory=list)

    def found(self, kind: str) -> list[Violation]:
        return [violation for violation in self.violations if violation.kind == kind]

    @property
    def is_sound(self) -> bool:
        return not self.violations
