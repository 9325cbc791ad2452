"""The clients of a session: producers, workers, operators, observers, and clients that move whole queues."""

import asyncio
import contextlib
import hashlib
import random
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from ..resp import Failure
from .client import Client, Lost
from .cluster import Cluster
from .draw import STATES, Command, Habits, Lease, Memory, Words
from .limits import LIMITS_DB, Warden
from .schedules import SCHEDULES_DB, Keeper

Turn = Callable[[Client, Words], Awaitable[None]]


async def act(client: Client, words: Words, cluster: Cluster, turn: Turn) -> None:
    """Takes turns until the session is over. A lost reply ends a turn, never the client."""
    while not cluster.is_over:
        with contextlib.suppress(Lost, ConnectionError):
            await turn(client, words)
        pace_s = words.habits.pace_ms / 1_000
        await asyncio.sleep(min(words.chance.expovariate(1 / pace_s), 20 * pace_s))
    client.close()


def shape(words: Words) -> str:
    return words.chance.choices(["tight", "loose", "multi", "script"], [78, 12, 5, 5])[0]


async def produce(client: Client, words: Words) -> None:
    key = words.queue()
    backlog = words.memory.backlog.get((client.db, key), 0)
    if backlog > words.habits.backlog_max and words.often(0.97):
        words.memory.backlog[client.db, key] = await count(client, key)
        return
    words.memory.backlog[client.db, key] = backlog + 1
    if words.often(0.04):
        await client.do_all(words.add_many(key), shape="many")
        return
    form = shape(words)
    if form in ("multi", "script"):
        await client.do_all(
            [words.add(key) for _ in range(words.chance.randrange(1, 4))], shape=form
        )
    else:
        await client.do(*words.add(key), shape=form)


async def count(client: Client, key: str) -> int:
    told = await client.do("DQ.LEN", key)
    return told if isinstance(told, int) else 0


async def work(client: Client, words: Words) -> None:
    if words.often(0.06) and (old := words.an_old_lease()) is not None and old.db == client.db:
        await client.do(*words.verdict(old), shape="tight")
        return
    keys = list(dict.fromkeys(words.queue() for _ in range(words.chance.choice([1, 1, 1, 2, 3]))))
    for lease in await take(client, words, keys):
        await settle(client, words, lease)


async def take(client: Client, words: Words, keys: list[str]) -> list[Lease]:
    """A batch may be finished at once, and others be taken with that: then there is nothing left to
    report about it."""
    leases = got(client, words, keys, await client.do(*words.pop(keys), shape=shape(words)))
    while leases and words.often(0.3):
        pop = words.pop(keys)
        if "ID" in pop:
            break
        told = await client.do_all([words.finish_many(leases), pop], shape="finish")
        leases = got(client, words, keys, told[1])
    if len(leases) > 1 and words.often(0.5):
        await client.do(*words.finish_many(leases), shape=shape(words))
        return []
    return leases


def got(client: Client, words: Words, keys: list[str], told: Any) -> list[Lease]:
    """The leases of a delivery."""
    if not isinstance(told, list) or not told:
        return []
    key, jobs = (keys[0], told) if len(keys) == 1 else told
    leases = [Lease(client.db, key, id, number) for id, _, number, *_ in jobs if number is not None]
    words.memory.leases.extend(leases)
    words.memory.backlog[client.db, key] = words.memory.backlog.get((client.db, key), 0) - len(
        leases
    )
    return leases


async def settle(client: Client, words: Words, lease: Lease) -> None:
    if words.often(0.12):  # a worker that dies with the job in hand
        return
    if words.often(0.3):
        await asyncio.sleep(words.chance.random() * words.habits.ttr_ms_max / 4_000)
    command = words.verdict(lease)
    await client.do(*command, shape=shape(words))
    if command[0] == "DQ.TOUCH" or words.often(0.05):
        await client.do(*words.verdict(lease), shape=shape(words))


async def operate(client: Client, words: Words) -> None:
    await asyncio.sleep(words.chance.random() * 0.05)
    await client.do(*words.operate(), shape=words.chance.choice(["tight", "tight", "sealed"]))


async def observe(client: Client, words: Words) -> None:
    if words.often(0.08):
        await scan(client, words)
    elif words.often(0.1):
        await walk(client, words)
    else:
        await client.do(
            *words.look(), shape=words.chance.choice(["tight", "tight", "tight", "sealed"])
        )


async def scan(client: Client, words: Words) -> None:
    """A whole scan, while jobs come and go."""
    key, cursor = words.queue(), "0"
    state: Command = ["STATE", words.chance.choice(["dead", "ready"])] if words.often(0.2) else []
    state += ["SCHEDULED"] if words.often(0.1) else []
    number = words.chance.getrandbits(48)
    for _ in range(200):
        size = words.chance.choice([1, 7, 40])
        told = await client.do("DQ.SCAN", key, cursor, "COUNT", size, *state, scan=number)
        if isinstance(told, Failure):
            return
        cursor = told[0]
        if cursor == "0":
            return


# The time by which jobs of a state stand in order; those that their TTL ends before stand by that.
ORDER = {"delayed": "due", "reserved": "deadline", "dead": "since", "done": "kept-until"}


async def walk(client: Client, words: Words) -> None:
    """A walk through a state, page by page, while jobs come and go."""
    key, number = words.queue(), words.chance.getrandbits(48)
    state = words.chance.choice(STATES)
    size = words.chance.choice([1, 2, 5, 30])
    behind: Command = []
    for _ in range(60):
        told = await client.do("DQ.PEEK", key, "STATE", state, "COUNT", size, *behind, walk=number)
        if isinstance(told, Failure) or len(told) < size:
            return
        last = dict(zip(told[-1][::2], told[-1][1::2], strict=True))
        behind = ["AFTER", last["id"]]
        if state != "ready":
            behind += ["FROM", time_of(state, last)]


def time_of(state: str, job: dict[str, Any]) -> int:
    ends = (
        [job["expires"]] if state in ("delayed", "reserved") and job["expires"] is not None else []
    )
    return min([job[ORDER[state]], *ends])


async def move(client: Client, words: Words) -> None:
    """Commands of the server on whole keys. They are sealed: no other command comes between, so it is known what was
    moved.
    """
    await asyncio.sleep(words.chance.random() * 0.4)
    await MOVES[words.chance.choice(words.habits.moves)](
        client, words, words.queue(), words.queue()
    )


async def rename(client: Client, words: Words, key: str, other: str) -> None:
    await client.do("RENAME", key, other, shape="sealed")


async def park(client: Client, words: Words, key: str, other: str) -> None:
    """Moves a queue to a name that no other client uses, and back, or to where another queue was."""
    parked = f"p{words.chance.getrandbits(32):x}"
    await client.do("RENAME", key, parked, shape="sealed")
    await asyncio.sleep(words.chance.random() * 0.3)
    await client.do("RENAME", parked, words.chance.choice([key, other]), shape="sealed")


async def copy(client: Client, words: Words, key: str, other: str) -> None:
    options: list[Any] = ["REPLACE"] if words.often(0.7) else []
    if words.habits.dbs > 1 and words.often(0.3):
        options += ["DB", 1]
    await client.do("COPY", key, other, *options, shape="sealed")


async def unlink(client: Client, words: Words, key: str, other: str) -> None:
    await client.do(words.chance.choice(["DEL", "UNLINK"]), key, shape="sealed")


async def move_db(client: Client, words: Words, key: str, other: str) -> None:
    await client.do("MOVE", key, 1 - client.db, shape="sealed")


async def swap_dbs(client: Client, words: Words, key: str, other: str) -> None:
    await client.do("SWAPDB", 0, 1, shape="sealed")


async def flush_db(client: Client, words: Words, key: str, other: str) -> None:
    how: list[Any] = words.chance.choice([[], ["ASYNC"], ["SYNC"]])
    await client.do("FLUSHDB", *how, shape="sealed")


async def expire(client: Client, words: Words, key: str, other: str) -> None:
    await client.do(
        "PEXPIREAT", key, words.now_ms() + words.chance.randrange(1, 2_000), shape="sealed"
    )
    if words.often(0.3):
        await client.do("PERSIST", key, shape="sealed")


async def dump_and_restore(client: Client, words: Words, key: str, other: str) -> None:
    payload = await client.do("DUMP", key, shape="sealed")
    if isinstance(payload, str) and not isinstance(payload, Failure):
        words.memory.dumps.append(payload)
    if words.memory.dumps:
        payload = words.chance.choice(words.memory.dumps)
        await client.do("RESTORE", other, 0, payload, "REPLACE", shape="sealed")


MOVES: dict[str, Callable[[Client, Words, str, str], Awaitable[None]]] = {
    "rename": rename,
    "park": park,
    "copy": copy,
    "unlink": unlink,
    "move-db": move_db,
    "swap-dbs": swap_dbs,
    "flush-db": flush_db,
    "expire": expire,
    "restore": dump_and_restore,
}


TURNS: dict[str, Turn] = {
    "producers": produce,
    "workers": work,
    "operators": operate,
    "observers": observe,
    "movers": move,
}


def source(seed: str, name: str) -> random.Random:
    """A source of chance for each part of a session, so that none depends on how fast another is."""
    return random.Random(hashlib.sha256(f"{seed}/{name}".encode()).digest())


def crew(seed: str, cluster: Cluster, habits: Habits) -> list[Coroutine[Any, Any, None]]:
    """All clients of a session, each with its own source of chance."""
    made: list[Coroutine[Any, Any, None]] = []
    memory = Memory()
    for kind, turn in TURNS.items():
        for number in range(getattr(habits, kind)):
            name = f"{kind[:-1]}-{number}"
            chance = source(seed, name)
            db = number % habits.dbs if chance.random() < 0.3 else 0
            client = Client(name, cluster, chance, db=db, is_actor=True)
            words = Words(chance, habits, memory, cluster.server_ms)
            made.append(act(client, words, cluster, turn))
    for number in range(habits.keepers):
        name = f"keeper-{number}"
        chance = source(seed, name)
        client = Client(name, cluster, chance, db=SCHEDULES_DB, is_actor=True)
        words = Words(chance, habits, memory, cluster.server_ms)
        made.append(act(client, words, cluster, Keeper(f"s{number}").turn))
    for number in range(habits.wardens):
        warden = Warden(f"l{number}")
        for name, turn in ((f"warden-{number}", warden.keep), (f"guest-{number}", warden.wait)):
            chance = source(seed, name)
            client = Client(name, cluster, chance, db=LIMITS_DB, is_actor=True)
            words = Words(chance, habits, memory, cluster.server_ms)
            made.append(act(client, words, cluster, turn))
    return made
