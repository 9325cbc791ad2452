"""A worker that has just taken job `a` of queue `q`, for tests of what it reports about the job."""

from harness.shown import job
from harness.transcript import Session

NO_ATTEMPTS_LEFT = b"no attempts left"
LIFE_IS_OVER = b"its time to live is over"

HELD = """
    > DQ.ADD q a x TTR 60000
    "a"
    > DQ.POP q
    [["a", "x", <lease>, 1]]
"""


def hold(session: Session, *options: str | int, ttr: int = 60_000) -> int:
    """Adds the job with these options and takes it; returns its lease."""
    assert session.call("DQ.ADD", "q", "a", "x", *options) == b"a"
    ((_, _, lease, _),) = session.call("DQ.POP", "q", "TTR", ttr)
    return lease


def seen(session: Session, *names: str) -> list[object]:
    """These fields of the job."""
    told = job(session, "q", "a")
    return [told[name] for name in names]
