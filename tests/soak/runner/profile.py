"""A kind of session: the servers and their set-up, the clients and their habits, the steps of the nemesis."""

from dataclasses import dataclass, field

from .draw import Habits


@dataclass(frozen=True)
class Profile:
    name: str
    # Steps of the nemesis (nemesis/__init__.py) and how often each is drawn.
    steps: dict[str, int]
    config: tuple[str, ...] = ()
    # always, everysec or rdb: what a crash may lose. None: the nemesis crashes no server.
    persistence: str | None = None
    replicas: int = 0
    # The last replica follows the first instead of the primary.
    is_chained: bool = False
    has_side_server: bool = False
    has_clocks: bool = False
    habits: Habits = field(default_factory=Habits)
    seconds: float = 20
    # How long between two steps, on average.
    calm_s: float = 0.8
    # Filled before the clients come: small queues, or jobs in one queue.
    crowd: int = 0
    mass: int = 0
    # Keys of others, which have nothing to do with queues.
    strangers: int = 0
