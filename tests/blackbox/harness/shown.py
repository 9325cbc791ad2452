"""The fields of DQ.GET and DQ.INFO in a session; harness/queues.py has the same for redis-py."""

from harness.resp import fields
from harness.transcript import Session


def job(session: Session, key: str, job_id: str | bytes) -> dict[str, object]:
    return fields(session.call("DQ.GET", key, job_id))


def info(session: Session, key: str = "q") -> dict[str, object]:
    return fields(session.call("DQ.INFO", key))
