"""Jobs of queue `q` in every state, for tests of what an operator sees and does."""

from harness.resp import fields
from harness.transcript import Session

BURIED = """
    > DQ.ADD q {0} x {1}
    "{0}"
    > DQ.POP q
    [["{0}", "x", <*>, 1]]
    > DQ.BURY q {0} * REASON "because of {0}"
    (integer) 1
"""


def bury(session: Session, *ids: str, options: str = "") -> None:
    """Adds jobs and buries them, one after the other."""
    for job_id in ids:
        session.check(BURIED.format(job_id, options))


# A queue with three jobs in each state, in the order in which they leave it.
IN_STATE = {
    "delayed": ["d1", "d2", "d3"],
    "ready": ["r1", "r2", "r3"],
    "reserved": ["l1", "l2", "l3"],
    "dead": ["x1", "x2", "x3"],
    "done": ["f1", "f2", "f3"],
}


def make_all_states(session: Session) -> None:
    """Adds the jobs in reverse, so that their order doesn't come from the order of the ADDs."""
    bury(session, *IN_STATE["dead"], options="PRIORITY 9")
    for at, job_id in reversed(list(enumerate(IN_STATE["done"]))):
        session.call("DQ.ADD", "q", job_id, "x", "KEEP", 60_000 * (at + 1))
        assert session.call("DQ.POP", "q", "NOACK")[0][0].decode() == job_id
    for at, job_id in reversed(list(enumerate(IN_STATE["reserved"]))):
        session.call("DQ.ADD", "q", job_id, "x", "PRIORITY", 9 - at)
        assert session.call("DQ.POP", "q", "TTR", 60_000 * (at + 1))[0][0].decode() == job_id
    for at, job_id in reversed(list(enumerate(IN_STATE["delayed"]))):
        session.call("DQ.ADD", "q", job_id, "x", "DELAY", 60_000 * (at + 1), "PRIORITY", 9 - at)
    for at, job_id in reversed(list(enumerate(IN_STATE["ready"]))):
        session.call("DQ.ADD", "q", job_id, "x", "PRIORITY", 100 + at)


def peeked(session: Session, state: str, count: int = 9) -> list[str]:
    jobs = session.call("DQ.PEEK", "q", "STATE", state, "COUNT", count)
    shown = [fields(told) for told in jobs]
    assert all(told["state"].decode() == state for told in shown)
    return [told["id"].decode() for told in shown]
