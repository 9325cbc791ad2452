"""The result of a run of sessions, in words."""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from .evidence import evidence
from .oracle import Verdict, Violation

# How many of each kind and queue are shown; more of them are mostly repetitions.
SHOWN_PER_PLACE = 2
SHOWN_MAX = 12


@dataclass
class Tally:
    """Sums over all sessions."""

    sessions: int = 0
    operations: int = 0
    deliveries: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    violations: Counter[str] = field(default_factory=Counter)
    checks: Counter[str] = field(default_factory=Counter)
    lateness: list[int] = field(default_factory=list)

    def add(self, verdict: Verdict, faults: dict[str, int]) -> None:
        self.sessions += 1
        self.operations += verdict.counts["operations"]
        self.deliveries += verdict.counts["deliveries"]
        self.faults.update(faults)
        self.violations.update(violation.kind for violation in verdict.violations)
        self.checks.update(
            {name: count for name, count in verdict.counts.items() if not name.startswith("DQ.")}
        )
        self.lateness += verdict.lateness

    def lines(self) -> list[str]:
        faults = (
            ", ".join(f"{name} {count}" for name, count in sorted(self.faults.items())) or "none"
        )
        found = (
            ", ".join(f"{name} {count}" for name, count in self.violations.most_common()) or "none"
        )
        late = sorted(self.lateness) or [0]
        return [
            f"{self.sessions} sessions, {self.operations} operations, {self.deliveries} deliveries",
            f"faults ({sum(self.faults.values())}): {faults}",
            f"looked at: {', '.join(f'{name} {count}' for name, count in sorted(self.checks.items()))}",
            f"waiting consumers served late by p50 {late[len(late) // 2]} ms, "
            f"p99 {late[len(late) * 99 // 100]} ms, max {late[-1]} ms",
            f"violations: {found}",
        ]


def shown(violations: list[Violation]) -> list[Violation]:
    """A few violations of each kind and place."""
    seen: Counter[tuple[str, str | None]] = Counter()
    chosen = []
    for violation in violations:
        seen[violation.kind, violation.key] += 1
        if seen[violation.kind, violation.key] <= SHOWN_PER_PLACE:
            chosen.append(violation)
    return chosen[:SHOWN_MAX]


def tell(path: Path, verdict: Verdict, *, with_evidence: bool) -> list[str]:
    lines = []
    for violation in shown(verdict.violations):
        lines.append(str(violation))
        if with_evidence:
            lines += [f"    {line}" for line in evidence(path, violation)]
    left = len(verdict.violations) - len(shown(verdict.violations))
    return lines + ([f"… and {left} more"] if left > 0 else [])
