"""Faults, written into a sound history: the oracle must find each of them.

A planter takes the records of a history and returns them with one fault, or None where the history has no place for it.
For faults in the module itself see README.md, "Faults in the module".
"""

import copy
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from .history import Record

Planter = Callable[[list[Record]], list[Record] | None]
FAR_MS = 10_000_000


@dataclass(frozen=True)
class Fault:
    name: str
    plant: Planter
    # What the oracle may call it: any one of these is right.
    kinds: frozenset[str]


FAULTS: list[Fault] = []


def fault(*kinds: str) -> Callable[[Planter], Planter]:
    """Registers a planter under its own name, with the kinds of violations that the oracle may report."""

    def register(planter: Planter) -> Planter:
        FAULTS.append(Fault(planter.__name__.replace("_", " "), planter, frozenset(kinds)))
        return planter

    return register


def _of(records: list[Record], verb: str) -> Iterator[Record]:
    """Operations of one command that got a reply and whose order is certain, in that order."""
    found = [
        record
        for record in records
        if "op" in record
        and record["say"][0][0] == verb
        and record["shape"] in ("tight", "sealed")
        and "told" in record
        and record.get("before")
        and record.get("after")
        and record["after"][0] == record["before"][0] + 1
        and not isinstance(record["told"][0], dict)
    ]
    yield from sorted(found, key=lambda record: (record["epoch"], record["before"][0]))


def _middle(records: list[Record], of: Callable[[Record], bool], verb: str) -> Record | None:
    """One from the middle of the session: much is known by then, and much is still to come."""
    fitting = [record for record in _of(records, verb) if of(record)]
    return fitting[len(fitting) // 2] if fitting else None


def _told(record: Record) -> Any:
    return record["told"][0]


def _is_waiting(record: Record) -> bool:
    return "BLOCK" in record["say"][0]


def _word_after(words: list[Any], option: str) -> Any:
    return words[words.index(option) + 1] if option in words else None


# ---- jobs that are lost, come early, twice, or again -------------------------------------------------


@fault("lost")
def a_job_is_not_shown(records: list[Record]) -> list[Record] | None:
    victim = _middle(records, lambda record: _told(record) is not None, "DQ.GET")
    if victim is None:
        return None
    victim["told"] = [None]
    return records


@fault("lost", "count")
def a_scan_misses_a_job(records: list[Record]) -> list[Record] | None:
    whole = [
        record
        for record in _of(records, "DQ.SCAN")
        if record["client"].startswith("end") and len(_told(record)[1]) > 1
    ]
    if not whole:
        return None
    _told(whole[-1])[1].pop(0)
    return records


@fault("withheld", "order")
def a_ready_job_is_not_handed_out(records: list[Record]) -> list[Record] | None:
    victim = _middle(
        records, lambda record: bool(_told(record)) and not _is_waiting(record), "DQ.POP"
    )
    if victim is None:
        return None
    victim["told"] = [None]
    return records


@fault("early")
def a_job_comes_early(records: list[Record]) -> list[Record] | None:
    handed_out = {
        (job[0], job[1])
        for record in _of(records, "DQ.POP")
        for job in _told(record) or []
        if job[3] == 1
    }
    for add in _of(records, "DQ.ADD"):
        words = add["say"][0]
        if "DELAY" in words and "TTL" not in words and (_told(add), words[3]) in handed_out:
            words[words.index("DELAY") + 1] += FAR_MS
            return records
    return None


@fault("double")
def two_have_a_job(records: list[Record]) -> list[Record] | None:
    """The first lease is prolonged, so that the second was given during it."""
    first: dict[str, Record] = {}
    for pop in _of(records, "DQ.POP"):
        for job in _told(pop) or []:
            body, attempt = job[1], job[3]
            if attempt == 2 and body in first and _ran_out(records, job[0], first[body]):
                first[body]["say"][0] += ["TTR", FAR_MS]
                return records
            if attempt == 1 and "TTR" not in pop["say"][0] and "NOACK" not in pop["say"][0]:
                first[body] = pop
    return None


def _ran_out(records: list[Record], id: str, pop: Record) -> bool:
    """No command was about that job after the delivery, so its TTR ran out."""
    lease = next(job[2] for job in _told(pop) if job[0] == id)
    return not any(
        lease in words for record in records if "op" in record for words in record["say"]
    )


@fault("ghost")
def a_finished_job_comes_again(records: list[Record]) -> list[Record] | None:
    pops = {job[2]: job for pop in _of(records, "DQ.POP") for job in _told(pop) or [] if job[2]}
    for finish in _of(records, "DQ.FINISH"):
        words = finish["say"][0]
        job = pops.get(words[3]) if len(words) == 4 and _told(finish) == 1 else None
        nil = job and next(
            (
                pop
                for pop in _of(records, "DQ.POP")
                if _told(pop) is None
                and pop["say"][0][1] == words[1]
                and (pop["epoch"], pop["db"]) == (finish["epoch"], finish["db"])
                and pop["before"][0] > finish["after"][0]
            ),
            None,
        )
        if job and nil:
            nil["told"] = [[[job[0], job[1], job[2] + 1, job[3] + 1]]]
            return records
    return None


@fault("ghost", "withheld", "order", "count", "view")
def an_id_is_taken_by_nobody(records: list[Record]) -> list[Record] | None:
    victim = _middle(
        records,
        lambda record: str(_told(record)).startswith("u") and "NX" not in record["say"][0],
        "DQ.ADD",
    )
    if victim is None:
        return None
    victim["told"] = [{"error": "EXISTS id is taken in this queue"}]
    return records


# ---- leases ------------------------------------------------------------------------------------------


@fault("stale", "ghost")
def a_stale_lease_is_accepted(records: list[Record]) -> list[Record] | None:
    victim = _middle(
        records,
        lambda record: _told(record) == 0 and isinstance(record["say"][0][3], int),
        "DQ.TOUCH",
    ) or _middle(
        records, lambda record: _told(record) == 0 and len(record["say"][0]) == 4, "DQ.FINISH"
    )
    if victim is None:
        return None
    victim["told"] = [1]
    return records


@fault("refused")
def a_good_lease_is_refused(records: list[Record]) -> list[Record] | None:
    victim = _middle(records, lambda record: _told(record) == 1, "DQ.FINISH")
    if victim is None:
        return None
    victim["told"] = [0]
    return records


@fault("lease-twice")
def a_lease_is_given_twice(records: list[Record]) -> list[Record] | None:
    by_key: dict[tuple[int, str], int] = {}
    for pop in _of(records, "DQ.POP"):
        place = (pop["db"], pop["say"][0][1])
        jobs = [job for job in _told(pop) or [] if job[2]]
        if jobs and place in by_key:
            jobs[0][2] = by_key[place]
            return records
        for job in jobs:
            by_key[place] = job[2]
    return None


@fault("lease-order")
def a_lease_is_smaller_than_the_last(records: list[Record]) -> list[Record] | None:
    victim = _middle(
        records, lambda record: bool(_told(record)) and bool(_told(record)[0][2]), "DQ.POP"
    )
    if victim is None:
        return None
    _told(victim)[0][2] = 7
    return records


# ---- what a delivery says ----------------------------------------------------------------------------


@fault("attempt")
def an_attempt_is_miscounted(records: list[Record]) -> list[Record] | None:
    victim = _middle(records, lambda record: bool(_told(record)), "DQ.POP")
    if victim is None:
        return None
    _told(victim)[0][3] += 1
    return records


@fault("body")
def a_job_has_the_body_of_another(records: list[Record]) -> list[Record] | None:
    victim = _middle(records, lambda record: bool(_told(record)), "DQ.POP")
    if victim is None:
        return None
    _told(victim)[0][1] += "x"
    return records


@fault("order")
def two_jobs_change_places(records: list[Record]) -> list[Record] | None:
    """Two jobs of different priorities, so that their order is certain."""
    priority = {
        record["say"][0][3]: _word_after(record["say"][0], "PRIORITY") or 128
        for record in _of(records, "DQ.ADD")
    }
    for pop in _of(records, "DQ.POP"):
        jobs = _told(pop) or []
        for first, second in itertools.pairwise(jobs):
            if priority.get(first[1], 256) < priority.get(second[1], -1) and not _is_waiting(pop):
                first[:2], second[:2] = second[:2], first[:2]
                first[3], second[3] = second[3], first[3]
                return records
    return None


# ---- what looks tell ---------------------------------------------------------------------------------


@fault("count")
def a_count_is_wrong(records: list[Record]) -> list[Record] | None:
    victim = _middle(records, lambda record: "STATE" not in record["say"][0], "DQ.LEN")
    if victim is None:
        return None
    victim["told"] = [_told(victim) + 100]
    return records


@fault("count", "order")
def a_peek_shows_too_few(records: list[Record]) -> list[Record] | None:
    victim = _middle(records, lambda record: len(_told(record)) > 3, "DQ.PEEK")
    if victim is None:
        return None
    del _told(victim)[1:]
    return records


@fault("view")
def a_job_shows_a_wrong_time(records: list[Record]) -> list[Record] | None:
    def has_due(record: Record) -> bool:
        return bool(_told(record)) and _told(record)[_told(record).index("due") + 1] is not None

    victim = _middle(records, has_due, "DQ.GET")
    if victim is None:
        return None
    place = _told(victim).index("due") + 1
    _told(victim)[place] += FAR_MS
    deadline = _told(victim).index("deadline") + 1
    if _told(victim)[deadline] is not None:
        _told(victim)[deadline] += FAR_MS
    return records


@fault("error")
def a_command_fails(records: list[Record]) -> list[Record] | None:
    victim = _middle(records, lambda record: record["shape"] == "tight", "DQ.RESUME")
    if victim is None:
        return None
    victim["told"] = [{"error": "OOM command not allowed when used memory > 'maxmemory'."}]
    return records


# ---- crashes -----------------------------------------------------------------------------------------


@fault("durability")
def a_crash_loses_what_was_kept(records: list[Record]) -> list[Record] | None:
    """The record says that everything with a reply survived; so no mark may be missing."""
    for record in records:
        if record.get("parent") is not None and record["journal"]:
            late = max(
                op["got"] for op in records if "op" in op and op["epoch"] == record["parent"]
            )
            record["kept"] = late
            lost = record["journal"].pop()
            record["cut"] -= 1
            return (
                records
                if any(op.get("op") == lost // 2 and op.get("after") for op in records)
                else None
            )
    return None


@fault("durability")
def a_failover_loses_what_was_waited_for(records: list[Record]) -> list[Record] | None:
    for record in records:
        if record.get("parent") is not None:
            record["waited"] = record["cut"] + 1
            return records
    return None


@fault("lost", "count", "withheld", "view", "order")
def a_crash_loses_a_job(records: list[Record]) -> list[Record] | None:
    """The journal says that an ADD survived, and it didn't. A client that sees the job later contradicts that."""
    epochs = [record for record in records if record.get("parent") is not None]
    for add in _of(records, "DQ.ADD"):
        words = add["say"][0]
        follows = next((epoch for epoch in epochs if epoch["parent"] == add["epoch"]), None)
        is_near = follows and follows["cut"] - 200 < add["after"][0] <= follows["cut"]
        if is_near and not {"DELAY", "AT", "TTL", "NX", "REPLACE"} & set(map(str, words)):
            records.append(_another_job(add))
            return records
    return None


def _another_job(add: Record) -> Record:
    """One more ADD in the same write as another. No reply will ever name its job."""
    twin = copy.deepcopy(add)
    add["say"].append([*twin["say"][0][:2], "planted", "planted", "PRIORITY", 0, "TTR", FAR_MS])
    add["told"].append("planted")
    add["shape"] = "burst"
    return {"nemesis": "planted", "at": add["sent"], "epoch": add["epoch"]}


# ---- what is compared at rest --------------------------------------------------------------------------


@fault("sums")
def the_sums_are_wrong(records: list[Record]) -> list[Record] | None:
    for record in records:
        if record.get("fact") == "sums":
            record["told"]["ready"] = record["told"].get("ready", 0) + 1
            return records
    return None


@fault("memory")
def memory_leaks(records: list[Record]) -> list[Record] | None:
    records.append({"fact": "memory", "at": 0, "epoch": 0, "before": 100_000, "after": 90_000_000})
    return records


@fault("sink")
def a_stream_has_lost_a_job(records: list[Record]) -> list[Record] | None:
    records.append(
        {"fact": "sink", "at": 0, "epoch": 0, "jobs": 2, "lost": ["7"], "most": 1, "left": 0}
    )
    return records


@fault("sink")
def jobs_stay_beside_a_sink(records: list[Record]) -> list[Record] | None:
    records.append(
        {"fact": "sink", "at": 0, "epoch": 0, "jobs": 2, "lost": [], "most": 1, "left": 1}
    )
    return records


@fault("digest")
def a_replica_differs(records: list[Record]) -> list[Record] | None:
    here, there = {"0/q": ["a" * 40, 3]}, {"0/q": ["b" * 40, 3]}
    records.append(
        {"fact": "digests", "why": "replica", "at": 0, "epoch": 0, "here": here, "there": there}
    )
    return records


@fault("alarm")
def a_server_aborts(records: list[Record]) -> list[Record] | None:
    line = "=== REDIS BUG REPORT START: Cut & paste starting from here ==="
    records.append(
        {
            "fact": "alarm",
            "at": 0,
            "epoch": 0,
            "server": "a",
            "died": True,
            "lines": [line],
            "report": "",
        }
    )
    return records


def planted(records: list[Record], one: Fault) -> list[Record] | None:
    """A copy of the history with that fault in it."""
    return one.plant(copy.deepcopy(records))
