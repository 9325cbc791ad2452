#!/usr/bin/env python3
"""What schedules cost: bytes each, an idle server with many of them, ADD and POP of a CRON.

    target/venv/bin/python scripts/measure_schedules.py [schedules]

On each kind of server. `delayed`, `every` and `cron` are bytes a job, beyond id and body: `used_memory`
before and after, divided. `cpu%` is the share of a processor that the server takes in ten seconds in which
schedules of each minute wait; `timer` is the longest run of the timer in them and when a tenth of as many
comes due at once, in microseconds. `add` and `pop` are microseconds of a command of one job with CRON, as
`INFO commandstats` counts them, `plain` those of a POP of a job without.
"""

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "blackbox"))

from harness.pipelined import Pipelined
from harness.server import KINDS, Kind, Server, eventually

HOUR_MS = 3_600_000
BODY = "x" * 16
IDLE_S = 10
CALLS = 2_000


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    columns = ["delayed", "every", "cron", "cpu%", "timer", "add", "pop", "plain"]
    print(f"{'server':12}" + "".join(f"{column:>9}" for column in columns))
    for kind in KINDS:
        with tempfile.TemporaryDirectory() as directory:
            server = Server(kind, Path(directory))
            try:
                measure(kind, server, count)
            finally:
                server.kill9()


def measure(kind: Kind, server: Server, count: int) -> None:
    with server.client() as r:
        sizes = [
            bytes_each(server, r, count, name, words)
            for name, words in (
                ("delayed", ["DELAY", HOUR_MS]),
                ("every", ["EVERY", HOUR_MS]),
                ("cron", ["CRON", "30 2 * * *", "TZ", "Europe/Berlin"]),
            )
        ]
        r.flushall()
        for minute in range(60):
            fill(server, minute, count // 60, ["CRON", f"{minute} * * * *", "TZ", "Europe/Berlin"])
        before, begin = cpu_s(r), time.monotonic()
        time.sleep(IDLE_S)
        cpu = 100 * (cpu_s(r) - before) / (time.monotonic() - begin)
        soon = int(time.time() * 1_000) + 3_000
        fill(server, "soon", count // 10, ["EVERY", HOUR_MS, "AT", soon])
        eventually(lambda: r.execute_command("DQ.LEN", "qsoon", "STATE", "ready") > 0, 20)
        timer = r.info("dq")["dq_timer_max_us"]
        r.flushall()
        r.config_resetstat()
        for n in range(CALLS):
            r.execute_command("DQ.ADD", "c", n, BODY, "CRON", "* * * * * *", "TZ", "America/New_York")
        add = usec(r, "dq.add")
        eventually(lambda: r.execute_command("DQ.LEN", "c", "STATE", "ready") == CALLS, 20)
        pops = []
        for key in ("c", "p"):
            if key == "p":
                fill(server, "", CALLS, [], key="p")
            r.config_resetstat()
            for _ in range(CALLS):
                r.execute_command("DQ.POP", key)
            pops.append(usec(r, "dq.pop"))
    figures = [*sizes, cpu, timer, add, *pops]
    print(f"{kind!s:12}" + "".join(f"{figure:9.2f}" for figure in figures), flush=True)


def bytes_each(server: Server, r: Any, count: int, name: str, words: list[Any]) -> float:
    before = r.info("memory")["used_memory"]
    fill(server, name, count, words)
    own = len(BODY) + sum(len(str(n)) for n in range(count)) / count
    return (r.info("memory")["used_memory"] - before) / count - own


def fill(server: Server, name: Any, count: int, words: list[Any], key: str = "q") -> None:
    pipeline = Pipelined(server.port)
    pipeline.call_all([("DQ.ADD", f"{key}{name}", n, BODY, *words) for n in range(count)])
    pipeline.close()


def cpu_s(r: Any) -> float:
    told = r.info("cpu")
    return told["used_cpu_sys"] + told["used_cpu_user"]


def usec(r: Any, command: str) -> float:
    return r.info("commandstats")[f"cmdstat_{command}"]["usec_per_call"]


if __name__ == "__main__":
    main()
