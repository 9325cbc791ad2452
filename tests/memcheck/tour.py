"""A session that uses every command, makes and removes values in every way, and sends commands that
are refused.
"""

import redis

from harness.consumers import Consumer
from harness.payloads import Job, payload_of, sealed, unsealed
from harness.server import Server, eventually
from harness.workload import Workload

COMMANDS = 3_000
# How many cuts of a payload, and how many wrong bytes, are tried.
HOSTILE = 60
SCHEDULES = [
    ("EVERY", 5, "MISFIRE", "ALL", "JITTER", 3, "RUNS", 4),
    ("CRON", "*/5 * * * *", "TZ", "Europe/Berlin"),
    ("CRON", "0 3 1 * MON-FRI", "UNTIL", 2**47),
]


def take(server: Server, commands: int = COMMANDS) -> None:
    with server.client() as r, server.client(decode_responses=False) as binary:
        Workload(r, seed=1).run(commands)
        run_schedules(r)
        hold_back(server, r)
        look(r)
        come_and_go(server, r)
        for hostile in (False, True):
            restore(binary, hostile)
        refuse(r)
        keep_and_load(server, r)
        Workload(r, seed=2).run(commands // 3)
        end(r)


def run_schedules(r: redis.Redis) -> None:
    for number, schedule in enumerate(SCHEDULES):
        for body in ("one", "another"):
            r.execute_command("DQ.ADD", "scheduled", f"s{number}", body, *schedule, "ENSURE")
    r.execute_command("DQ.NEXT", "30 2 * * *", "TZ", "Asia/Tokyo", "COUNT", 20)
    for _ in range(20):
        for id, _, lease, _ in r.execute_command("DQ.POP", "scheduled", "COUNT", 3) or []:
            r.execute_command("DQ.FINISH", "scheduled", id, lease)
    r.execute_command("DQ.ADD", "scheduled", "s0", "no more", "REPLACE")


def hold_back(server: Server, r: redis.Redis) -> None:
    """Limits that let one job go after the other, also to a consumer that waits."""
    r.execute_command("DQ.ALTER", "limited", "CONCURRENCY", 2, "RATE", 1_000, 100, "BURST", 3)
    for number in range(20):
        r.execute_command("DQ.ADD", "limited", f"l{number}", "x" * number)
    waits = Consumer(server.port)
    for _ in range(6):
        waits.send(("DQ.POP", "limited", "BLOCK", 0, "COUNT", 3, "WITHDUE"))
        for id, _, lease, _, _ in waits.hears():
            r.execute_command("DQ.FINISH", "limited", id, lease)
    waits.close()
    r.execute_command("DQ.ALTER", "limited", "CONCURRENCY", 0, "RATE", 0, 0)
    r.execute_command("DQ.POP", "limited", "COUNT", 20, "NOACK", "WITHDUE")


def look(r: redis.Redis) -> None:
    """Pages, forecasts and patterns, over jobs of many times and of one."""
    for number in range(600):
        r.execute_command("DQ.ADD", "looked at", f"j{number}", "x", "DELAY", 60_000 + number // 3)
    r.execute_command("DQ.FORECAST", "looked at", "STEP", 7, "COUNT", 1_000)
    r.execute_command("DQ.FORECAST", "looked at", "FROM", 1, "STEP", 2**40, "COUNT", 5)
    after: list[str | int] = []
    while page := r.execute_command(
        "DQ.PEEK", "looked at", "STATE", "delayed", "COUNT", 50, *after
    ):
        shown = dict(zip(page[-1][::2], page[-1][1::2], strict=True))
        after = ["AFTER", shown["id"], "FROM", shown["due"]]
    cursor = "0"
    while True:
        cursor, _ = r.execute_command(
            "DQ.SCAN", "looked at", cursor, "MATCH", "*[1-5]?*", "COUNT", 100
        )
        if str(cursor) == "0":
            break


def come_and_go(server: Server, r: redis.Redis) -> None:
    """Consumers that are served, time out, are unblocked, are killed, and disconnect."""
    consumers = [Consumer(server.port) for _ in range(24)]
    for number, consumer in enumerate(consumers):
        wait_ms = 50 if number % 4 == 0 else 0
        consumer.send(("DQ.MPOP", 2, "wait", "wait too", "COUNT", 2, "BLOCK", wait_ms))
    eventually(lambda: r.info("clients")["blocked_clients"] >= len(consumers) * 3 // 4, within_s=60)
    for number in range(6):
        r.execute_command("DQ.ADD", "wait", f"w{number}", "x" * number * 100)
    for consumer in consumers[::2]:
        consumer.close()
    r.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    for consumer in consumers[1::2]:
        consumer.close()
    eventually(lambda: r.info("clients")["blocked_clients"] == 0, within_s=60)
    r.execute_command("DQ.POP", "wait", "COUNT", 10, "NOACK")


def restore(r: redis.Redis, hostile: bool) -> None:
    """DUMP and RESTORE; and payloads that are cut, or have a byte changed, or larger numbers than
    there can be.
    """
    key = b"dumped"
    r.delete(key)
    for number in range(300):
        r.execute_command(
            "DQ.ADD", key, b"d%d" % number, b"x" * number, "DELAY", number, "KEEP", number
        )
    r.execute_command("DQ.POP", key, "COUNT", 20)
    payload = r.dump(key)
    if not hostile:
        r.restore("restored", 0, payload, replace=True)
        r.rename("restored", "renamed")
        r.copy("renamed", "copied")
        r.unlink("renamed")
        return
    value = unsealed(payload)
    step = max(1, len(value) // HOSTILE)
    changed = [value[:at] for at in range(1, len(value), step)]
    changed += [
        value[:at] + bytes([value[at] ^ 0x41]) + value[at + 1 :]
        for at in range(10, len(value), step)
    ]
    made_up = [
        payload_of(count=2**60),
        payload_of([Job(b"a"), Job(b"a")]),
        payload_of([Job(record=b"\xdd\xff")]),
    ]
    for one in [*map(sealed, changed), *(payload.sealed() for payload in made_up)]:
        try:
            r.restore("hostile", 0, one, replace=True)
        except redis.ResponseError:
            continue
        r.execute_command("DQ.POP", "hostile", "COUNT", 5)


def refuse(r: redis.Redis) -> None:
    """Commands with a wrong word after right ones."""
    for words in [
        ("DQ.ADD", "q0", "id", "body", "DELAY", "5", "NO-SUCH", "x"),
        ("DQ.ADD", "q0", "id", "body", "CRON", "0 0 31 2 *"),
        ("DQ.ADD", "q0", "i" * 513, "body"),
        ("DQ.ALTER", "q0", "RATE", 1, 100, "BURST", "x"),
        ("DQ.FORECAST", "q0", "STEP", 0, "COUNT", 5),
        ("DQ.PEEK", "q0", "STATE", "dead", "AFTER", "nobody"),
        ("DQ.SCAN", "q0", 0, "MATCH"),
        ("DQ.NEXT", "1 2 3"),
        ("DQ.FINISH", "q0", "a", "1", "b", "x"),
        ("DQ.DEL", "q0", *("i" * 5 for _ in range(20)), ""),
        ("DQ.APPLY", "q0", "1", "check=5,next=1/2/x", "dq.pop"),
        ("DQ.APPLY", "q0", "JOBS", "\x93"),
        ("DQ.APPLY", "q0", "GROUPS", "\x91\x92"),
        ("DQ.MPOP", "9", "q0"),
        ("DQ.RELEASE", "q0", "id", "1", "REASON", "r" * 513),
        ("DQ.LEN", "a key of another type"),
    ]:
        r.set("a key of another type", "x")
        try:
            r.execute_command(*words)
        except redis.ResponseError:
            continue
        raise AssertionError(f"not refused: {words}")


def keep_and_load(server: Server, r: redis.Redis) -> None:
    r.execute_command("DEBUG", "RELOAD")
    r.save()
    r.config_set("appendonly", "yes")
    r.config_set("aof-use-rdb-preamble", "no")
    eventually(lambda: r.info("persistence")["aof_rewrite_in_progress"] == 0, within_s=120)
    server.rewrite_aof()
    r.execute_command("DEBUG", "LOADAOF")
    r.config_set("appendonly", "no")


def end(r: redis.Redis) -> None:
    r.info("dq")
    for key in r.scan_iter(_type="delayq-dq"):
        r.execute_command("DEBUG", "DIGEST-VALUE", key)
        r.memory_usage(key)
        r.execute_command("DQ.INFO", key)
        r.execute_command("DQ.PEEK", key, "STATE", "dead", "COUNT", 100)
        r.execute_command("DQ.PURGE", key, "STATE", "dead")
    r.swapdb(0, 1)
    r.flushdb(asynchronous=True)
    r.swapdb(0, 1)
    r.execute_command("FLUSHALL", "SYNC")
    r.execute_command("DQ.ADD", "last", "one", "that the server has when it ends")
