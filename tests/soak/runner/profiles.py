"""The kinds of sessions. `make soak` goes through all of them, again and again, each with its own seed."""

from dataclasses import replace

from .actors import MOVES, source
from .draw import Habits
from .profile import Profile

AOF = ("appendonly yes", "aof-load-truncated yes", "auto-aof-rewrite-percentage 0")
ALWAYS = (*AOF, "appendfsync always")
EVERYSEC = (*AOF, "appendfsync everysec")
SHORT_BACKLOG = ("repl-backlog-size 16kb", "repl-timeout 10")

CLIENT_FAULTS = {
    "client-kill": 3,
    "client-unblock": 3,
    "client-pause": 3,
    "sigstop": 1,
    "ambush": 4,
}
REPLICA_FAULTS = {
    "cut-link": 3,
    "full-sync": 2,
    "interrupted-sync": 2,
    "restart-replica": 1,
    "freeze-replica": 1,
}
# Nobody swaps databases under a queue that the oracle can't tell apart: names are drawn in two of them.
ALL_MOVES = tuple(MOVES)
# A key that expires by one clock may live by another.
TIMELESS_MOVES = tuple(name for name in MOVES if name != "expire")

PROFILES = {
    profile.name: profile
    for profile in [
        Profile(
            "clients",
            CLIENT_FAULTS | {"debug-reload": 1, "debug-loadaof": 2, "quiet": 1},
            EVERYSEC,
            "everysec",
        ),
        Profile(
            "crash-always",
            {"crash": 3, "restart": 1, "client-kill": 1},
            ALWAYS,
            "always",
            calm_s=1.2,
        ),
        Profile(
            "crash-everysec",
            {"crash": 3, "restart": 1, "ambush": 1},
            EVERYSEC,
            "everysec",
            calm_s=1.2,
        ),
        Profile("crash-rdb", {"crash": 2, "save": 2, "restart": 1}, (), "rdb", calm_s=1.0),
        Profile(
            "keys",
            {"migrate": 3, "quiet": 2, "debug-reload": 1, "client-unblock": 1},
            ("repl-diskless-sync yes",),
            has_side_server=True,
            habits=Habits(dbs=2, movers=4, moves=ALL_MOVES),
        ),
        Profile(
            "replicas",
            REPLICA_FAULTS | {"client-kill": 1},
            SHORT_BACKLOG,
            replicas=2,
            is_chained=True,
        ),
        Profile(
            "linked",
            {"crash": 3, "restart": 1, "cut-link": 1, "restart-replica": 1, "client-kill": 1},
            ALWAYS,
            "always",
            replicas=2,
            calm_s=1.5,
        ),
        Profile(
            "failover",
            {
                "failover": 3,
                "depose": 2,
                "demote-ambush": 2,
                "kill-primary": 2,
                "cut-link": 1,
                "quiet": 1,
            },
            (),
            replicas=2,
            calm_s=1.5,
        ),
        Profile(
            "clock",
            {"clock": 5, "crash": 2, "quiet": 2, "client-kill": 1},
            EVERYSEC,
            "everysec",
            has_clocks=True,
            habits=Habits(moves=TIMELESS_MOVES, far=0.2),
        ),
        Profile(
            "clock-rdb",
            {"clock": 4, "crash": 3, "save": 1, "quiet": 1},
            (),
            "rdb",
            has_clocks=True,
            habits=Habits(moves=TIMELESS_MOVES, far=0.1),
            calm_s=0.8,
        ),
        Profile(
            "replica-clock",
            {"failover": 3, "depose": 2, "kill-primary": 2, "clock": 1, "quiet": 1},
            (),
            replicas=2,
            has_clocks=True,
            habits=Habits(far=0.1),
            calm_s=1.5,
        ),
        Profile(
            "limits",
            {"oom": 3, "min-replicas": 2, "client-pause": 1, "cut-link": 1},
            (),
            replicas=1,
        ),
        Profile(
            "crowd",
            {"client-kill": 1, "debug-reload": 1, "quiet": 2},
            habits=Habits(
                queues=40, movers=3, moves=("rename", "park", "rename", "park", "unlink")
            ),
            crowd=100_000,
            seconds=25,
        ),
        Profile(
            "vast",
            {"quiet": 4, "client-kill": 1},
            habits=Habits(
                queues=6, producers=3, movers=3, moves=("rename", "park", "rename"), pace_ms=25
            ),
            strangers=2_000_000,
        ),
        Profile("mass", {"client-kill": 1}, replicas=1, mass=120_000, seconds=15),
    ]
}


# Short enough to lie in the repository, with something of everything.
SAMPLE = Profile(
    "sample",
    {"crash": 1, "client-unblock": 1},
    EVERYSEC,
    "everysec",
    habits=Habits(
        queues=3,
        body_bytes_max=16,
        pace_ms=40,
        producers=3,
        workers=4,
        observers=1,
        ttr_ms_max=200,
        delay_ms_max=400,
        backlog_max=15,
    ),
    seconds=3.5,
    calm_s=0.6,
)


def order(seed: str, names: list[str] | None) -> list[Profile]:
    """All profiles, or the named ones, in an order that the seed gives."""
    chosen = [PROFILES[name] for name in sorted(names or PROFILES)]
    source(seed, "order").shuffle(chosen)
    return chosen


def quick(profile: Profile) -> Profile:
    """The same profile in a few seconds, for the normal tests."""
    return replace(
        profile,
        seconds=6,
        calm_s=profile.calm_s * 0.7,
        crowd=profile.crowd // 50,
        mass=profile.mass // 50,
        strangers=profile.strangers // 50,
    )
