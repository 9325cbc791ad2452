"""redis.conf.example starts on every server, and the defaults it states are the defaults."""

import shlex
from collections.abc import Callable

from harness.paths import ROOT
from harness.server import MODULE, Server

EXAMPLE = ROOT / "redis.conf.example"


def test_the_example_starts_and_states_the_defaults(
    server: Server, fresh_server: Callable[..., Server]
) -> None:
    lines = (
        EXAMPLE.read_text().replace("/usr/lib/redis/modules/libdq.so", f'"{MODULE}"').splitlines()
    )
    # What it only suggests is tried, too.
    lines = [line.removeprefix("# ") if line.startswith("# min-") else line for line in lines]
    example = fresh_server(*lines, module_args=None)

    stated = dict(shlex.split(line) for line in lines if line.startswith("dq."))
    assert stated == example.client().config_get("dq.*")
    # The one that isn't the default says so.
    assert stated.pop("dq.default-backoff") == "1000 600000"
    defaults = server.client().config_get("dq.*")
    assert defaults.pop("dq.default-backoff") == "0 0"
    assert stated == defaults
    example.session().check("""
        > CONFIG GET maxmemory-policy
        ["maxmemory-policy", "noeviction"]
        > DQ.ADD q a hello
        (error) NOREPLICAS Not enough good replicas to write.
    """)
