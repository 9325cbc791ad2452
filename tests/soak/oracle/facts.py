"""What a session compared by itself while it was at rest, and what its servers logged."""

from typing import Any

from ..history import Record
from .timeline import Timeline
from .verdict import Verdict, Violation

# What a server may hold more after everything is deleted: its own tables that have grown.
MEMORY_GROWTH_MAX = 2_000_000


def judge(line: Timeline, verdict: Verdict) -> None:
    for fact in line.facts:
        verdict.counts[f"fact {fact['fact']}"] += 1
        _JUDGES[fact["fact"]](fact, verdict)
    for record in line.nemesis:
        if record["nemesis"] == "broken":
            verdict.violations.append(
                Violation("alarm", f"the session broke: {record['error']}", at=record["at"])
            )


def _differences(here: dict[str, Any], there: dict[str, Any]) -> str:
    keys = [key for key in sorted(here.keys() | there.keys()) if here.get(key) != there.get(key)]
    shown = "; ".join(f"{key}: {here.get(key)} and {there.get(key)}" for key in keys[:5])
    return f"{len(keys)} differ: {shown}"


def _digests(fact: Record, verdict: Verdict) -> None:
    here, there = fact["here"], fact["there"]
    if fact["why"] == "restart":
        # Kept jobs whose time came between the two looks are gone: then a queue is shorter.
        there = {key: value for key, value in there.items() if value[1] == here.get(key, value)[1]}
        here = {key: value for key, value in here.items() if key in there}
    if here != there:
        text = f"after a {fact['why']}, {_differences(here, there)}"
        verdict.violations.append(Violation("digest", text, at=fact["at"]))


def _views(fact: Record, verdict: Verdict) -> None:
    if fact["here"] != fact["there"]:
        differences = _differences(fact["here"], fact["there"])
        text = f"primary and replica {fact['server']} tell different things, {differences}"
        verdict.violations.append(Violation("view", text, at=fact["at"]))


def _sums(fact: Record, verdict: Verdict) -> None:
    if fact["told"] != fact["counted"]:
        text = f"INFO dq and the queues, {_differences(fact['told'], fact['counted'])}"
        verdict.violations.append(Violation("sums", text, at=fact["at"]))


def _memory(fact: Record, verdict: Verdict) -> None:
    growth = fact["after"] - fact["before"]
    if growth > MEMORY_GROWTH_MAX:
        text = f"{growth} bytes more than before the session, after everything was deleted"
        verdict.violations.append(Violation("memory", text, at=fact["at"]))


def _alarm(fact: Record, verdict: Verdict) -> None:
    what = "ended by itself" if fact["died"] else "logged an alarm"
    text = (
        f"server {fact['server']} {what}: {' / '.join(fact['lines'][:3])} {fact['report'][-800:]}"
    )
    verdict.violations.append(Violation("alarm", text.strip(), at=fact["at"]))


def _bugs(fact: Record, verdict: Verdict) -> None:
    if fact["dq_bugs"]:
        text = f"server {fact['server']} says dq_bugs {fact['dq_bugs']}"
        verdict.violations.append(Violation("alarm", text, at=fact["at"]))
    if fact["dq_diverged"]:
        text = f"server {fact['server']} says dq_diverged {fact['dq_diverged']}"
        verdict.violations.append(Violation("digest", text, at=fact["at"]))


def _sink(fact: Record, verdict: Verdict) -> None:
    if fact["lost"]:
        text = f"jobs left for a stream and aren't in it: {fact['lost']}"
        verdict.violations.append(Violation("sink", text, at=fact["at"]))
    if fact["most"] > 2:
        text = f"a job is in the stream {fact['most']} times"
        verdict.violations.append(Violation("sink", text, at=fact["at"]))
    if fact["left"]:
        text = f"{fact['left']} jobs don't leave for the stream"
        verdict.violations.append(Violation("sink", text, at=fact["at"]))


def _flows(fact: Record, verdict: Verdict) -> None:
    faults = {
        "lost": "jobs that others wait for, or that wait, are lost",
        "twice": "jobs were done twice",
        "wrong": "jobs saw something else than came of those they waited for",
        "left": "jobs don't end",
    }
    for name, text in faults.items():
        if fact[name]:
            text = f"{text}: {fact[name]}"
            verdict.violations.append(Violation("flows", text, at=fact["at"]))


def _flow(fact: Record, verdict: Verdict) -> None:
    verdict.violations.append(Violation("flows", fact["text"], at=fact["at"]))


_JUDGES = {
    "digests": _digests,
    "views": _views,
    "sums": _sums,
    "memory": _memory,
    "alarm": _alarm,
    "bugs": _bugs,
    "sink": _sink,
    "flows": _flows,
    "flow": _flow,
}
