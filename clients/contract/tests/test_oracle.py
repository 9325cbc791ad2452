"""The oracle of a year finds what must not be, and lets pass what has a cause."""

from runner.oracle import Fault, Job, Life, Run

DONE = {"state": b"done"}
DEAD = {"state": b"dead", "reason": b"no attempts left"}


def judged(runs: list[Run], *faults: Fault, ends_as: str = "done", **shown: object) -> list[str]:
    job = Job("a", 2, ends_as, shown=(DEAD if ends_as == "dead" else DONE) | shown)
    return list(Life(3, [job], list(faults), runs).violations())


def run(begun: float, ended: float | None, how: str = "returned", worker: int = 0) -> Run:
    return Run("a", worker, 1, begun, ended, how)


def test_a_second_run_wants_a_cause() -> None:
    twice = [run(10, 11), run(12, 13)]
    assert judged(twice[:1]) == []
    assert len(judged(twice)) == 1
    assert judged([run(10, 11, "raised"), run(12, 13)]) == []


def test_an_outage_is_a_cause_for_what_was_under_way_in_it() -> None:
    twice = [run(10, 11), run(20, 21)]
    assert judged(twice, Fault("outage", 10.5, 16)) == []
    assert len(judged(twice, Fault("outage", 3, 9.9))) == 1, "it began after the outage"
    assert len(judged(twice, Fault("hiccup", 10.5, 10.8))) == 1, "the lease outlives it"


def test_a_killed_worker_is_a_cause_for_its_own_jobs() -> None:
    kill = Fault("kill", 10.5, 10.7)
    assert judged([run(10, None, ""), run(14, 15, worker=1)], kill) == []
    assert len(judged([run(10, None, ""), run(14, 15)], kill)) == 1, "it is the same worker"


def test_a_job_runs_and_ends_as_it_should() -> None:
    assert len(judged([])) == 1
    assert len(judged([run(1, 2)], state=b"ready")) == 1
    assert len(judged([run(1, 2)], state=None)) == 1, "it is gone"
    assert judged([run(1, 2, "raised")], ends_as="dead") == []
    assert len(judged([run(1, 2, "raised")], ends_as="dead", reason=None)) == 1


def test_a_death_wants_failed_attempts() -> None:
    lost = {"timed-out": 2, **DEAD}
    cut_off = [run(10, 14, "cancelled"), run(20, 24, "cancelled")]
    faults = Fault("outage", 11, 16), Fault("outage", 21, 26)
    assert judged(cut_off, *faults, **lost) == []
    assert len(judged(cut_off[:1], *faults[1:], **lost)) == 1, "the first has no cause"
    assert len(judged(cut_off, **lost)) >= 1
    assert len(judged([run(10, 11)], *faults, **DEAD)) == 1, "no lease ran out"
