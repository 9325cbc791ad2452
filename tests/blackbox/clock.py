"""The server's own clock: jobs go by it, so tests compare with it and not with ours."""

from transcript import Session


def unix_ms(session: Session) -> int:
    seconds, microseconds = map(int, session.call("TIME"))
    return seconds * 1000 + microseconds // 1000


def job(session: Session, key: str, job_id: str | bytes) -> dict[str, object]:
    """What DQ.GET says of a job."""
    return fields(session.call("DQ.GET", key, job_id))


def fields(reply: list[object]) -> dict[str, object]:
    """A RESP2 map."""
    return {name.decode(): value for name, value in zip(reply[::2], reply[1::2], strict=True)}
