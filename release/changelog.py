"""CHANGELOG.md: what a version's heading and its section say."""

import re
from dataclasses import dataclass
from datetime import date

HEADING = re.compile(
    r"^## (?:Unreleased \((?P<next>[0-9.]+)\)|(?P<version>[0-9.]+) \((?P<date>[^)]+)\))$",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Entry:
    version: str
    # None for one that isn't released.
    date: date | None
    text: str


def entries(page: str) -> list[Entry]:
    headings = list(HEADING.finditer(page))
    ends = [heading.start() for heading in headings[1:]] + [len(page)]
    return [
        Entry(
            heading["next"] or heading["version"],
            _date(heading["date"]),
            page[heading.end() : end].strip() + "\n",
        )
        for heading, end in zip(headings, ends, strict=True)
    ]


def _date(told: str | None) -> date | None:
    try:
        return date.fromisoformat(told or "")
    except ValueError:
        return None
