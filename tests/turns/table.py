"""The measurements beside the bar."""

import re

from harness.server import Kind
from turns.subject import Row

# No turn is to be longer.
BAR_MS = 10
# Even the quickest of a few times has something of what else the machine does: beyond so much it
# fails.
FAR = 2.5

# By case (a function of a scene), by server, by what was done.
Measured = dict[str, dict[str, dict[str, Row]]]

BEGIN = "<!-- `make turns` writes this part. -->"
END = "<!-- The end of that part. -->"


def show(scene: str, kind: str, rows: dict[str, Row]) -> None:
    for row in rows.values():
        mark = "  " if row.best <= BAR_MS else "* " if row.named else "! "
        times = ", ".join(f"{ms:.1f}" for ms in row.ms)
        print(f"{mark}{scene:8} {kind:11} {row.name:64} {row.best:8.2f} ms   ({times})", flush=True)


def verdict(results: dict[str, Measured]) -> int:
    far = [
        f"{title}: {row.name} on {kind}: {row.best:.1f} ms"
        for title, measured in results.items()
        for by_kind in measured.values()
        for kind, rows in by_kind.items()
        for row in rows.values()
        if row.named is None and row.best > FAR * BAR_MS
    ]
    for line in far:
        print("too long:", line)
    return 1 if far else 0


def page(before: str, results: dict[str, Measured], titles: list[str], kinds: list[Kind]) -> str:
    """The page with the new measurements; other tables stay as they are."""
    head, _, rest = before.partition(BEGIN)
    middle, _, tail = rest.partition(END)
    _, *parts = re.split(r"^\*\*(.+)\*\*$", middle, flags=re.MULTILINE)
    tables = dict(zip(parts[::2], (part.strip() for part in parts[1::2]), strict=True))
    tables |= {title: table(measured, kinds) for title, measured in results.items()}
    written = [f"**{title}**\n\n{tables[title]}\n" for title in titles if title in tables]
    return "\n".join([f"{head}{BEGIN}\n", *written, f"{END}{tail}"])


def table(measured: Measured, kinds: list[Kind]) -> str:
    lines = ["| what | " + " | ".join(kind.name for kind in kinds) + " | |"]
    lines.append("| --- |" + " ---: |" * len(kinds) + " --- |")
    for by_kind in measured.values():
        for name, row in next(iter(by_kind.values())).items():
            told = [by_kind[kind.name][name].best for kind in kinds]
            lines.append(f"| {name} | {' | '.join(map(shown, told))} | {note(row, max(told))} |")
    return "\n".join(lines)


def shown(ms: float) -> str:
    if ms > BAR_MS:
        return f"**{ms:.0f}**"
    return f"{ms:.1f}" if ms >= 0.1 else "< 0.1"


def note(row: Row, worst: float) -> str:
    return (row.named or "") if worst > BAR_MS else ""
