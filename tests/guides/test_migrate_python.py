"""The guides from Python's queues and from streams, to dq-client: as in test_migrate.py."""

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import redis
from programs import Guide
from shown import jobs, minutes_ahead

from harness.server import eventually

Make = Callable[..., Guide]
# What the frameworks log, and a worker's advice on a queue without a backoff.
LOGGED = re.compile(r"\[20\d\d-|20\d\d-|queue '\w+': jobs that fail are tried again at once")


def program(name: str, *arguments: str) -> list[str]:
    """A command of one of the packages."""
    return [str(Path(sys.executable).with_name(name)), *arguments]


def body(job: dict[str, Any]) -> Any:
    return json.loads(job["body"])


def is_an_hour_ahead(job: dict[str, Any]) -> bool:
    return 58 < minutes_ahead(job) <= 60


def works_through(guide: Guide, command: str | list[str], *lines: str) -> None:
    """The worker prints these lines in this order."""

    def printed() -> list[str]:
        # Dramatiq's workers print to its errors, where its log is.
        text = output.read_text() + output.with_name("errors.txt").read_text()
        whole = text[: text.rfind("\n") + 1].splitlines()
        return [line for line in whole if not LOGGED.match(line)]

    with guide.running(command) as output:
        eventually(lambda: len(printed()) >= len(lines), 60)
    assert printed() == list(lines)


def settled(r: redis.Redis, key: str, *delayed: str) -> None:
    """Nothing is left to do but what is delayed, and nothing has failed."""

    def is_settled() -> bool:
        return not any(jobs(r, key, state) for state in ("ready", "reserved", "held", "dead"))

    eventually(is_settled, 20)
    assert set(jobs(r, key, "delayed")) == set(delayed)


# ---- RQ ------------------------------------------------------------------------------------------


@pytest.fixture
def rq(guide: Make) -> Guide:
    return guide("rq")


def rq_worker(url: str) -> list[str]:
    return program("rq", "worker", "--quiet", "--url", url, "--path", ".", "shop")


def test_the_guide_from_rq_has_what_rq_does(rq: Guide, r: redis.Redis, url: str) -> None:
    rq.run("producer_before.py")
    works_through(rq, rq_worker(url), "charged 17", "shipped 17")
    with rq.running(program("rq", "cron", "--url", url, "--path", ".", "schedules_before.py")):
        eventually(lambda: r.llen("rq:queue:shop") == 1, 30)
    works_through(rq, rq_worker(url), "reported")


def test_the_guide_from_rq_goes_on_with_dq(rq: Guide, r: redis.Redis) -> None:
    rq.run("producer.py")
    held = jobs(r, "shop", "held")
    assert list(held) == ["ship-17"]
    works_through(rq, "worker.py", "charged 17", "shipped 17")
    assert rq.run("result.py") == "receipt 17\n"
    settled(r, "shop", "remind-bob", "report")
    assert is_an_hour_ahead(jobs(r, "shop", "delayed")["remind-bob"])
    # At the next start the schedule is there already, and its time stays.
    due = jobs(r, "shop", "delayed")["report"]["due"]
    with rq.running("worker.py"):
        eventually(lambda: r.info("clients")["blocked_clients"] == 1, 20)
    assert jobs(r, "shop", "delayed")["report"]["due"] == due


def test_the_guide_from_rq_moves_its_jobs(rq: Guide, r: redis.Redis) -> None:
    rq.run("producer_before.py")
    assert rq.run("move.py", "shop") == "moved 3\n"
    assert (r.llen("rq:queue:shop"), r.keys("rq:job:*")) == (0, [])
    [charge] = jobs(r, "shop", "ready").values()
    assert (charge["id"], charge["attempts"]) == ("rq:charge-17", 5)
    assert list(jobs(r, "shop", "held")) == ["rq:ship-17"]
    [reminder] = jobs(r, "shop", "delayed").values()
    assert is_an_hour_ahead(reminder)
    assert body(reminder) == {"do": "remind", "args": ["bob"], "kwargs": {}}
    assert rq.run("move.py", "shop") == "moved 0\n"
    works_through(rq, "worker.py", "charged 17", "shipped 17")
    settled(r, "shop", "rq:remind-bob", "report")


# ---- Huey ----------------------------------------------------------------------------------------

HUEY = ("huey_consumer", "shop_before.huey", "--quiet")


@pytest.fixture
def huey(guide: Make) -> Guide:
    return guide("huey")


def test_the_guide_from_huey_has_what_huey_does(huey: Guide) -> None:
    huey.run("producer_before.py")
    works_through(huey, program(*HUEY), "charged 17", "shipped 17, receipt 17")


def test_the_guide_from_huey_goes_on_with_dq(huey: Guide, r: redis.Redis) -> None:
    huey.run("producer.py")
    works_through(huey, "worker.py", "charged 17", "shipped 17, receipt 17")
    settled(r, "shop", "remind:bob", "report")
    assert is_an_hour_ahead(jobs(r, "shop", "delayed")["remind:bob"])


def test_the_guide_from_huey_moves_its_tasks(huey: Guide, r: redis.Redis) -> None:
    huey.run("producer_before.py")
    # The consumer puts what isn't due into the schedule.
    works_through(huey, program(*HUEY), "charged 17", "shipped 17, receipt 17")
    assert r.zcard("huey.schedule.shop") == 1
    huey.run("producer_before.py")
    assert huey.run("move.py") == "moved 3\n"
    assert not r.exists("huey.redis.shop", "huey.schedule.shop")
    delayed = jobs(r, "shop", "delayed").values()
    assert [body(job)["args"] for job in delayed] == [["bob"], ["bob"]]
    assert all(is_an_hour_ahead(job) for job in delayed)
    [charge] = jobs(r, "shop", "ready").values()
    assert (body(charge)["do"], charge["attempts"]) == ("charge", 5)
    assert huey.run("move.py") == "moved 0\n"
    works_through(huey, "worker.py", "charged 17", "shipped 17, receipt 17")


# ---- Django-Q2 -----------------------------------------------------------------------------------


@pytest.fixture
def django(guide: Make) -> Guide:
    django = guide("django-q2", DJANGO_SETTINGS_MODULE="settings", PYTHONPATH=".")
    (django._directory / "manage.py").write_text(
        "from django.core.management import execute_from_command_line as run; run()"
    )
    django.run("manage.py", "migrate", "--verbosity", "0")
    return django


def test_the_guide_from_django_q2_goes_on_with_dq(django: Guide, r: redis.Redis) -> None:
    django.run("producer.py")
    works_through(django, "worker.py", "charged 17", "shipped 17")
    settled(r, "shop", "remind:bob")
    assert is_an_hour_ahead(jobs(r, "shop", "delayed")["remind:bob"])


def test_the_guide_from_django_q2_moves_its_tasks(django: Guide, r: redis.Redis) -> None:
    django.run("producer_before.py")
    cluster = [sys.executable, "manage.py", "qcluster"]
    with django.running(cluster) as output:
        eventually(lambda: "shipped 17" in output.read_text(), 60)
    django.run("producer_before.py")
    more = (
        "import django; django.setup(); from django_q.tasks import schedule as s;"
        "s('shop.remind', 'all', name='daily', schedule_type='D')"
    )
    (django._directory / "more.py").write_text(more)
    django.run("more.py")
    assert django.run("move.py").splitlines() == ["left behind: daily shop.remind Daily", "moved 3"]
    assert not r.exists("django_q:shop:q")
    delayed = jobs(r, "shop", "delayed").values()
    assert [body(job)["args"] for job in delayed] == [["bob"], ["bob"]]
    assert all(is_an_hour_ahead(job) for job in delayed)
    assert len(jobs(r, "shop", "held")) == 1
    assert django.run("move.py").splitlines()[-1] == "moved 0"
    works_through(django, "worker.py", "charged 17", "shipped 17")


# ---- Dramatiq ------------------------------------------------------------------------------------

DRAMATIQ = ("dramatiq", "shop_before", "--processes", "1", "--threads", "1")


@pytest.fixture
def dramatiq(guide: Make) -> Guide:
    return guide("dramatiq")


def test_the_guide_from_dramatiq_goes_on_with_dq(dramatiq: Guide, r: redis.Redis) -> None:
    dramatiq.run("producer.py")
    works_through(dramatiq, "worker.py", "charged 17", "shipped: receipt 17")
    settled(r, "shop", "remind:bob")
    assert is_an_hour_ahead(jobs(r, "shop", "delayed")["remind:bob"])


def test_the_guide_from_dramatiq_moves_its_messages(dramatiq: Guide, r: redis.Redis) -> None:
    dramatiq.run("producer_before.py")
    # It puts back the message that it held for its time.
    works_through(dramatiq, program(*DRAMATIQ), "charged 17", "shipped: receipt 17")
    dramatiq.run("producer_before.py")
    assert dramatiq.run("move.py", "shop") == "moved 3\n"
    assert not r.exists("dramatiq:shop", "dramatiq:shop.DQ", "dramatiq:shop.DQ.msgs")
    delayed = jobs(r, "shop", "delayed").values()
    assert [body(job)["args"] for job in delayed] == [["bob"], ["bob"]]
    assert all(is_an_hour_ahead(job) for job in delayed)
    assert len(jobs(r, "shop", "held")) == 1
    assert dramatiq.run("move.py", "shop") == "moved 0\n"
    works_through(dramatiq, "worker.py", "charged 17", "shipped: receipt 17")


# ---- Redis Streams -------------------------------------------------------------------------------

SENT = ("sent welcome ann", "sent remember bob")


@pytest.fixture
def streams(guide: Make) -> Guide:
    return guide("streams", TAKEN_FOR_DEAD_MS="0")


def test_the_guide_from_streams_goes_on_with_dq(streams: Guide, r: redis.Redis) -> None:
    streams.run("producer_before.py")
    works_through(streams, "worker_before.py", *SENT)
    assert r.xpending("mail", "mailers")["pending"] == 0
    streams.run("producer.py")
    works_through(streams, "worker.py", SENT[0])
    settled(r, "mails", "remind:bob")


def test_the_guide_from_streams_moves_what_was_read_and_what_was_not(
    streams: Guide, r: redis.Redis
) -> None:
    r.xgroup_create("mail", "mailers", id="0", mkstream=True)
    streams.run("producer_before.py")
    assert r.xreadgroup("mailers", "dead", {"mail": ">"}, count=1)
    assert streams.run("move.py", "mail", "mailers", "mails") == "moved 2\n"
    assert r.xpending("mail", "mailers")["pending"] == 0
    assert [body(job)["to"] for job in jobs(r, "mails", "ready").values()] == ["ann", "bob"]
    assert streams.run("move.py", "mail", "mailers", "mails") == "moved 0\n"
    streams.prints("worker.py", *SENT)


def test_the_guide_from_streams_fans_out_by_a_sink(streams: Guide, r: redis.Redis) -> None:
    lines = [f"{group} issue:7 read all about it" for group in ("mailers", "audit")]
    assert streams.run("fan_out.py").splitlines() == lines
    assert r.execute_command("DQ.LEN", "news") == 0
