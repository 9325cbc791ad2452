"""The guides of docs/migrate: the programs of both sides run, and a move loses nothing."""

import json
import re
import sys
from collections.abc import Callable

import pytest
import redis
from programs import DOCS, PROGRAM, Guide
from shown import jobs, minutes_ahead

from harness.server import eventually

Make = Callable[..., Guide]
HOUR_MS = 3_600_000
#: Of those whose packages can't be had where the tests run.
NOT_RUN = {"README", "redisson", "asynq"}


def test_the_guide_from_a_sorted_set_moves_its_jobs(guide: Make, r: redis.Redis) -> None:
    zset = guide("zset")
    zset.run("producer_before.py")
    zset.prints("worker_before.py", "cancelled cancel:18")
    assert zset.run("move.py") == "moved 2\n"
    assert not r.exists("orders:due")
    moved = jobs(r, "orders", "delayed")
    assert list(moved) == ["cancel:17", "cancel:19"]
    assert 29 < minutes_ahead(moved["cancel:17"]) < 30
    assert 23.9 < minutes_ahead(moved["cancel:19"]) / 60 < 24
    zset.run("producer.py")
    zset.prints("worker.py", "cancelled cancel:18")
    assert list(jobs(r, "orders", "delayed")) == ["cancel:17", "cancel:19"]


def test_the_guide_from_a_sorted_set_moves_thousands_of_jobs(guide: Make, r: redis.Redis) -> None:
    r.zadd("orders:due", {f"job:{n}": 1_900_000_000.25 + n for n in range(2500)})
    assert guide("zset").run("move.py") == "moved 2500\n"
    assert r.execute_command("DQ.LEN", "orders", "STATE", "delayed") == 2500
    [first] = r.execute_command("DQ.PEEK", "orders", "STATE", "delayed")
    assert dict(zip(first[::2], first[1::2], strict=True))["due"] == 1_900_000_000_250


def test_the_guide_from_celery_moves_its_tasks(guide: Make, r: redis.Redis, url: str) -> None:
    old, new = url, url.replace("redis://", "dq://").removesuffix("0") + "1"
    celery = guide("celery", OLD_BROKER_URL=old, BROKER_URL=new)
    send = "from {0} import cancel; cancel.delay(1); cancel.apply_async((2,), countdown={1})"
    python = celery._command("x.py")[0]
    (celery._directory / "send.py").write_text(
        send.format("shop_before", 15)
    )  # to be moved while it waits
    celery.run("send.py")
    assert r.llen("celery") == 2
    assert celery.run("move.py", "celery") == "moved 2\n"
    assert r.llen("celery") == r.hlen("unacked") == 0
    r.execute_command("SELECT", 1)
    assert len(jobs(r, "celery", "delayed")) == 1
    worker = [
        python,
        "-m",
        "celery",
        "-A",
        "shop",
        "worker",
        "-P",
        "solo",
        "-l",
        "INFO",
        "--without-mingle",
    ]
    with celery.running(worker):
        errors = celery._directory / "errors.txt"
        eventually(lambda: errors.read_text().count("succeeded") == 2, 60)
    assert re.findall(r"cancelled (\d)", errors.read_text()) == ["1", "2"]
    (celery._directory / "send.py").write_text(send.format("shop", 3600))
    celery.run("send.py")
    assert len(jobs(r, "celery", "ready")) == len(jobs(r, "celery", "delayed")) == 1


@pytest.mark.parametrize("backend", ["redis", "dq"])
def test_a_chord_of_celery_comes_to_the_same_without_it(
    guide: Make, r: redis.Redis, url: str, backend: str
) -> None:
    other = url.removesuffix("0") + "1"
    broker = other.replace("redis://", "dq://")
    celery = guide(
        "celery", BROKER_URL=broker, RESULT_BACKEND=other.replace("redis://", f"{backend}://")
    )
    options = ["-P", "solo", "--without-mingle", "--without-gossip"]
    worker = [sys.executable, "-m", "celery", "-A", "sums_before", "worker", *options]
    with celery.running(worker):
        assert celery.run("sums_before.py") == "total 10\n"
    with celery.running("sums_worker.py"):
        assert celery.run("sums.py") == "total 10\n"
    assert list(jobs(r, "sums", "done")) == ["total:7"]


def test_the_guide_from_bullmq_moves_its_jobs(guide: Make, r: redis.Redis, node: None) -> None:
    bullmq = guide("bullmq")
    bullmq.run("producer_before.mjs")
    bullmq.prints("worker_before.mjs", "welcome ann")
    bullmq.run("producer_before.mjs")
    assert bullmq.run("move.mjs", "mail") == "moved 2\n"
    [ready] = jobs(r, "mail", "ready").values()
    [reminder] = jobs(r, "mail", "delayed").values()
    assert reminder["id"] == "bullmq:remind-bob"
    assert 58 < minutes_ahead(reminder) <= 60
    assert (ready["attempts"], ready["backoff-base"]) == (5, 1000)
    assert json.loads(reminder["body"]) == {"name": "remind", "data": {"to": "bob"}}
    assert bullmq.run("move.mjs", "mail") == "moved 0\n"
    bullmq.prints("worker.mjs", "welcome ann")
    bullmq.run("producer.mjs")
    bullmq.prints("worker.mjs", "welcome ann")
    assert list(jobs(r, "mail", "delayed")) == ["bullmq:remind-bob", "remind-bob"]


def test_a_flow_of_bullmq_comes_to_the_same_here(guide: Make, r: redis.Redis, node: None) -> None:
    bullmq = guide("bullmq")
    assert bullmq.run("flow_before.mjs") == "total 10\n"
    with bullmq.running("flow_worker.mjs"):
        assert bullmq.run("flow.mjs") == "total 10\n"
    assert list(jobs(r, "sums", "done")) == ["total"]


#: Jobs whose `timestamp` and `delay` don't tell when they are due, and such as BullMQ doesn't let go.
BULLMQ_JOBS_WITH_A_PAST = """
import { once } from 'node:events';
import { Queue, Worker } from 'bullmq';
import { Redis } from 'ioredis';

const HOUR_MS = 3_600_000;
const connection = new Redis(process.env.REDIS_URL, { maxRetriesPerRequest: null });
const queue = new Queue('mail', { connection });
const add = (name, options) =>
  queue.add(name, {}, { jobId: name, timestamp: Date.now() - 4 * HOUR_MS, ...options });

await add('retried', { attempts: 3, backoff: { type: 'fixed', delay: 3 * HOUR_MS } });
const fail = () => Promise.reject(new Error('no'));
const worker = new Worker('mail', fail, { connection: connection.duplicate() });
await once(worker, 'failed');
await worker.close();

const rescheduled = await add('rescheduled', { delay: HOUR_MS });
await rescheduled.changeDelay(2 * HOUR_MS);
const promoted = await add('promoted', { delay: 8 * HOUR_MS });
await promoted.promote();
await add('first', {});
await add('second', {});
await queue.upsertJobScheduler('report', { pattern: '0 3 * * *', tz: 'UTC' }, { name: 'report' });
await queue.upsertJobScheduler('sweep', { every: HOUR_MS }, { name: 'sweep' });
await queue.close();
process.exit();
"""


def test_bullmq_jobs_keep_their_time_and_schedulers_are_said_to_stay(
    guide: Make, r: redis.Redis, node: None
) -> None:
    bullmq = guide("bullmq")
    (bullmq._directory / "past.mjs").write_text(BULLMQ_JOBS_WITH_A_PAST)
    bullmq.run("past.mjs")
    scores = r.zrange("bull:mail:delayed", 0, -1, withscores=True)
    due = {name: int(score) // 0x1000 for name, score in scores}
    *left, moved = bullmq.run("move.mjs", "mail").splitlines()
    assert moved == "moved 5"
    assert sorted(left) == [
        "left behind: mail's job scheduler report, 0 3 * * * UTC",
        "left behind: mail's job scheduler sweep, every 3600000 ms",
    ]
    delayed = jobs(r, "mail", "delayed")
    assert {name: job["due"] for name, job in delayed.items()} == {
        "bullmq:rescheduled": due["rescheduled"],
        "bullmq:retried": due["retried"],
    }
    assert 119 < minutes_ahead(delayed["bullmq:rescheduled"]) <= 120
    assert 179 < minutes_ahead(delayed["bullmq:retried"]) <= 180
    assert delayed["bullmq:retried"]["attempts"] == 2
    assert list(jobs(r, "mail", "ready")) == ["bullmq:promoted", "bullmq:first", "bullmq:second"]


def test_the_guide_from_beanstalkd_moves_its_jobs(
    guide: Make, r: redis.Redis, beanstalkd: str
) -> None:
    tube = guide("beanstalkd", BEANSTALKD=beanstalkd)
    tube.run("producer_before.py")
    tube.prints("worker_before.py", "sent welcome ann")
    tube.run("producer_before.py")
    assert tube.run("move.py", "mail") == "moved 3\n"
    delayed = jobs(r, "mail", "delayed").values()
    assert [job["body"] for job in delayed] == ["remind bob", "remind bob"]
    assert all(58 < minutes_ahead(job) <= 60 for job in delayed)
    assert {(job["priority"], job["ttr"]) for job in delayed} == {(100, 60_000)}
    assert tube.run("move.py", "mail") == "moved 0\n"
    tube.prints("worker.py", "sent welcome ann")
    tube.run("producer.py")
    tube.prints("worker.py", "sent welcome ann")
    assert len(jobs(r, "mail", "delayed")) == 3


def test_the_guide_from_sidekiq_moves_its_jobs(
    guide: Make, r: redis.Redis, sidekiq: str, url: str
) -> None:
    ruby = guide("sidekiq", OLD_REDIS_URL=url.removesuffix("0") + "3")
    ruby.run("producer_before.rb")
    with ruby.running([sidekiq, "-r", "./mail.rb", "-q", "mail"]) as output:
        eventually(lambda: "welcome ann" in output.read_text(), 30)
    ruby.run("producer_before.rb")
    assert ruby.run("move.rb") == "moved 3\n"
    r.execute_command("SELECT", 3)
    assert (r.zcard("schedule"), r.llen("queue:mail")) == (0, 0)
    r.execute_command("SELECT", 0)
    delayed = jobs(r, "mail", "delayed").values()
    assert [json.loads(job["body"])["args"] for job in delayed] == [
        ["remind", "bob"],
        ["remind", "bob"],
    ]
    assert all(58 < minutes_ahead(job) <= 60 for job in delayed)
    ruby.prints("worker.rb", "welcome ann")
    ruby.run("producer.rb")
    ruby.prints("worker.rb", "welcome ann")
    assert "remind:bob" in jobs(r, "mail", "delayed")


def test_a_batch_as_sidekiq_has_them(guide: Make, r: redis.Redis, sidekiq: str) -> None:
    ruby = guide("sidekiq")
    with ruby.running("batch_worker.rb"):
        assert ruby.run("batch.rb") == "done imported ann, imported bob\n"
    assert list(jobs(r, "import", "done")) == ["publish"]


def test_the_guide_from_sqs_moves_its_messages(guide: Make, r: redis.Redis, sqs: str) -> None:
    queue = guide("sqs", QUEUE_URL=sqs, QUIET_POLLS="4")
    queue.run("producer_before.py")
    queue.prints("worker_before.py", "sent welcome ann", "sent remind bob")
    queue.run("producer_before.py")
    assert queue.run("move.py", "mail") == "moved 2\n"
    assert sorted(job["body"] for job in jobs(r, "mail", "ready").values()) == [
        "remind bob",
        "welcome ann",
    ]
    queue.prints("worker.py", "sent welcome ann", "sent remind bob")
    queue.run("producer.py")
    queue.prints("worker.py", "sent welcome ann", "sent remind bob")


@pytest.mark.parametrize("name", sorted(path.stem for path in DOCS.glob("*.md")))
def test_a_guide_says_whether_it_is_run(name: str) -> None:
    text = (DOCS / f"{name}.md").read_text()
    assert bool(PROGRAM.search(text)) != (name in NOT_RUN)
    if name in NOT_RUN - {"README"}:
        assert "isn't run by the tests" in text
        assert re.search(
            rf"\({name}\.md\) \|.*\| no \|$", (DOCS / "README.md").read_text(), re.MULTILINE
        )


@pytest.mark.parametrize("name", ["asynq", "bullmq", "sidekiq"])
def test_a_guide_says_what_takes_the_place_of_limits(name: str, r: redis.Redis) -> None:
    commands = re.findall(r"`DQ\.ALTER mail ([A-Z]+) ([0-9 ]+)`", (DOCS / f"{name}.md").read_text())
    assert {option for option, _ in commands} >= {"CONCURRENCY", "RATE"}
    for option, values in commands:
        assert r.execute_command("DQ.ALTER", "mail", option, *values.split()) == "OK"
