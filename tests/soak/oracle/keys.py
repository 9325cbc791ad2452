"""What the server itself does to keys. A queue goes as a whole where its key goes."""

from ..resp import Failure
from .case import Case
from .life import Span
from .model import Place, Queue

VERBS = {
    "DEBUG",
    "RENAME",
    "COPY",
    "MOVE",
    "SWAPDB",
    "FLUSHDB",
    "DEL",
    "UNLINK",
    "PEXPIREAT",
    "PERSIST",
    "DUMP",
    "RESTORE",
    "MIGRATE",
    "SOAK.RETURN",
}


# Those that sessions use.
DATABASES = (0, 1)


def judge(case: Case) -> None:
    if case.is_refused and not _is_about_the_key(case.told):
        return
    for place in _places(case):
        case.world.check_expiry(place, case.now, case.window.end)
    _JUDGES[case.verb](case)


def _is_about_the_key(told: Failure) -> bool:
    return told.startswith(("ERR no such key", "BUSYKEY"))


def _places(case: Case) -> list[Place]:
    match case.verb:
        case "SWAPDB" | "FLUSHDB":
            return list(case.world.keys)
        case "DEBUG":
            return []
        case "RENAME" | "COPY":
            return [case.place(case.words[1]), case.place(case.words[2])]
        case "MIGRATE":
            return [case.place(case.words[3])]
    return [case.place(case.words[1])]


def _expect(case: Case, wanted: object) -> None:
    """A reply that depends only on which keys there are."""
    if case.is_lost:
        return
    told = "no such key" if case.is_refused else case.told
    if told != wanted:
        kind = "lost" if told in ("no such key", "NOKEY", 0) else "ghost"
        case.violation(kind, f"{case.verb} says {case.told}, not {wanted}", case.words[1])


def _at(case: Case, place: Place) -> Queue | None:
    """The queue at a key. If it is unknown whether there is one, the reply tells."""
    queue = case.world.keys.get(place)
    if queue is not None and queue.is_maybe and place == _places(case)[0] and not case.is_lost:
        if case.is_refused or case.told in (0, None, "NOKEY"):
            _put(case, place, None)
            return None
        queue.is_maybe = False
    return queue


def _is_free(case: Case, place: Place) -> bool:
    """Nothing is at the target. Where something may be, a reply of 1 says that nothing was; 0 says nothing about either
    key.
    """
    case.world.check_expiry(place, case.now, case.window.end)
    queue = case.world.keys.get(place)
    return queue is None or ((queue.is_maybe or queue.is_wild) and case.told == 1)


def _put(case: Case, place: Place, queue: Queue | None, expires: Span | None = None) -> None:
    case.world.put(place, queue, case.window.end, expires)


def _rename(case: Case) -> None:
    here, there = case.place(case.words[1]), case.place(case.words[2])
    queue = _at(case, here)
    _expect(case, "OK" if queue is not None else "no such key")
    if queue is not None and here != there:
        expires = case.world.expires.get(here)
        _put(case, here, None)
        _put(case, there, queue, expires)


def _copy(case: Case) -> None:
    here, there = case.place(case.words[1]), case.place(case.words[2])
    options = [str(word).upper() for word in case.words[3:]]
    if "DB" in options:
        there = (int(case.words[3 + options.index("DB") + 1]), there[1])
    if here == there:
        return
    is_free = "REPLACE" in options or _is_free(case, there)
    queue = _at(case, here) if is_free else case.world.keys.get(here)
    can = queue is not None and is_free
    _expect(case, int(can))
    if can and queue is not None:
        _put(case, there, queue.branch(case.now), case.world.expires.get(here))


def _move(case: Case) -> None:
    here = case.place(case.words[1])
    there = (int(case.words[2]), here[1])
    is_free = _is_free(case, there)
    queue = _at(case, here) if is_free else case.world.keys.get(here)
    can = queue is not None and is_free
    _expect(case, int(can))
    if can:
        expires = case.world.expires.get(here)
        _put(case, here, None)
        _put(case, there, queue, expires)


def _swap(case: Case) -> None:
    case.world.swept_at = case.window.end
    one, other = int(case.words[1]), int(case.words[2])
    places = {
        (db, key) for held, key in case.world.keys if held in (one, other) for db in (one, other)
    }
    # Its reply tells nothing of any key.
    held = {place: (case.world.keys.get(place), case.world.expires.get(place)) for place in places}
    for db, key in places:
        queue, expires = held.get((other if db == one else one, key), (None, None))
        _put(case, (db, key), queue, expires)


def _flush(case: Case) -> None:
    case.world.swept_at = case.window.end
    for place in [place for place in case.world.keys if place[0] == case.op.db]:
        _put(case, place, None)


def _delete(case: Case) -> None:
    place = case.place(case.words[1])
    _expect(case, int(_at(case, place) is not None))
    _put(case, place, None)


def _expire(case: Case) -> None:
    place, at = case.place(case.words[1]), int(case.words[2])
    queue = _at(case, place)
    _expect(case, int(queue is not None))
    if queue is not None:
        case.world.expires[place] = (at, at)


def _persist(case: Case) -> None:
    case.world.expires.pop(case.place(case.words[1]), None)


def _dump(case: Case) -> None:
    queue = _at(case, case.place(case.words[1]))
    if queue is not None and isinstance(case.told, str):
        made_in, _ = case.findings.dumps.get(case.told, (case.epoch.number, queue))
        case.findings.dumps[case.told] = (made_in, queue.branch(case.now))
    elif (queue is None) != (case.told is None) and not case.is_lost:
        case.violation(
            "ghost" if queue is None else "lost", "DUMP sees it otherwise", case.words[1]
        )


def _restore(case: Case) -> None:
    place, dump = case.place(case.words[1]), case.findings.dumps.get(str(case.words[3]))
    if dump is not None and (case.told == "OK" or case.is_lost):
        made_in, dumped = dump
        queue = dumped.branch(case.now)
        queue.payloads |= {(made_in, case.epoch.number)}
        _put(case, place, queue)
    elif case.told == "OK":
        wild = Queue()
        wild.is_wild = True
        _put(case, place, wild)


def _migrate(case: Case) -> None:
    place = case.place(case.words[3])
    queue = _at(case, place)
    _expect(case, "OK" if queue is not None else "NOKEY")
    if queue is not None and case.told == "OK":
        case.world.away[place[1]] = (
            queue,
            _expires_after_a_trip(case, case.world.expires.get(place)),
        )
        _put(case, place, None)
    elif case.is_lost:
        _lose(case, place)


def _expires_after_a_trip(case: Case, expires: Span | None) -> Span | None:
    """MIGRATE sends the rest of the key's life: the time on the way is added, and a millisecond of rounding."""
    return expires and (expires[0] - 1, expires[1] + case.now[1] - case.now[0] + 1)


def _return(case: Case) -> None:
    place = case.place(case.words[1])
    queue, expires = case.world.away.pop(place[1], (None, None))
    if case.world.swept_at > case.window.begin:
        # It came before a SWAPDB or FLUSHDB or after it, and so is here, there, or gone.
        for db in DATABASES:
            _lose(case, (db, place[1])).is_maybe = True
    elif case.told == "OK" and queue is not None:
        queue.has_known_lateness = False
        _put(case, place, queue, _expires_after_a_trip(case, expires))
    elif case.is_lost:
        _lose(case, place)


def _lose(case: Case, place: Place) -> Queue:
    wild = Queue()
    wild.is_wild = True
    _put(case, place, wild)
    case.count("lost sight of a queue")
    return wild


def _debug(case: Case) -> None:
    """RELOAD and LOADAOF make every queue anew. What isn't saved is forgotten."""
    if str(case.words[1]).upper() in ("RELOAD", "LOADAOF"):
        # No cursor is good any more.
        case.findings.scans.clear()
        for queue in case.world.keys.values():
            high = queue.lateness.get(case.epoch.number, case.epoch.lateness)[1]
            queue.lateness[case.epoch.number] = (0, high)


_JUDGES = {
    "DEBUG": _debug,
    "RENAME": _rename,
    "COPY": _copy,
    "MOVE": _move,
    "SWAPDB": _swap,
    "FLUSHDB": _flush,
    "DEL": _delete,
    "UNLINK": _delete,
    "PEXPIREAT": _expire,
    "PERSIST": _persist,
    "DUMP": _dump,
    "RESTORE": _restore,
    "MIGRATE": _migrate,
    "SOAK.RETURN": _return,
}
