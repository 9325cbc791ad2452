"""A million jobs fall due, expire or are removed at once, and no other client has to wait."""

import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from threading import Thread

from harness.clock import unix_ms
from harness.marks import alone, long
from harness.pipelined import Pipelined, Words, encoded
from harness.server import Server, eventually
from harness.transcript import Session

pytestmark = alone

MANY = 1_000_000
SAMPLE = 50_000
# What the machine does besides is no fault of the server: one quick time is proof. Slow each time
# is a failure. What the server answers has to be right each time.
MEASUREMENTS = 4
# The promise, beyond what a PING waits here when nothing happens.
DUE_WAIT_MS_MAX = 10
# Below half of what freeing the jobs one by one takes.
FREE_WAIT_MS_MAX = 50
# A quarter of what it took 0.1, which carried the expired jobs away first. By now it is less than
# one.
SERVE_WAIT_MS_MAX = 50


class Flood(Pipelined):
    """A connection that sends one command over and over."""

    BATCH = 10_000

    def repeat(self, count: int, *words: str | bytes | int) -> list[bytes]:
        """`count` is a multiple of BATCH; the first replies, in order."""
        batch = encoded(words) * self.BATCH
        sender = Thread(target=self._send, args=(batch, count // self.BATCH))
        sender.start()
        replies = [self.receive() for _ in range(min(count, SAMPLE))]
        self._skip(count - len(replies))
        sender.join()
        return replies

    def _send(self, batch: bytes, times: int) -> None:
        for _ in range(times):
            self._socket.sendall(batch)

    def _skip(self, replies: int) -> None:
        """Reads strings without looking at them: two lines each."""
        lines = 2 * replies
        while lines > 0:
            chunk = self._stream.read1(1 << 20)
            assert chunk, "the server closed the connection"
            lines -= chunk.count(b"\n")
        assert lines == 0


def longest_ping_ms(session: Session, seconds: float) -> float:
    """One PING after the other for so long: how long the slowest waited."""
    longest, end = 0.0, time.perf_counter() + seconds
    while (begin := time.perf_counter()) < end:
        assert session.call("PING") == "PONG"
        longest = max(longest, time.perf_counter() - begin)
    return longest * 1_000


def quick_enough(measure: Callable[[], float], wait_ms_max: float) -> None:
    """Measures until it was quick enough once."""
    __tracebackhide__ = True
    waits: list[float] = []
    while not waits or waits[-1] >= wait_ms_max:
        assert len(waits) < MEASUREMENTS, f"PING waited for {waits} ms"
        waits.append(measure())


def add_for_one_millisecond(server: Server, session: Session) -> tuple[list[bytes], int]:
    """A million jobs for a millisecond that is soon; the first of their ids, and their time."""
    with closing(Flood(server.port)) as flood:
        # As fast as it goes here, and half as much time again.
        probe, begin = 5 * Flood.BATCH, time.perf_counter()
        flood.repeat(probe, "DQ.ADD", "probe", "*", "body", "DELAY", 600_000)
        seconds = (time.perf_counter() - begin) * MANY / probe
        due = unix_ms(session) + int(1_500 * seconds) + 1_500
        ids = flood.repeat(MANY, "DQ.ADD", "q", "*", "body", "AT", due)
    session.check(f"> DEL probe\n(integer) 1\n> DQ.LEN q STATE delayed\n(integer) {MANY}")
    return ids, due


def test_a_million_jobs_fall_due_in_one_millisecond(server: Server, session: Session) -> None:
    def measure() -> float:
        session.check("> FLUSHALL\nOK")
        ids, due = add_for_one_millisecond(server, session)

        # The same time before it comes, and while it does: only the timer touches the queue.
        idle_wait = longest_ping_ms(session, seconds=0.5)
        seconds_left = (due - unix_ms(session)) / 1_000 - 0.2
        assert seconds_left > 0, "too slow: they were added too late"
        time.sleep(seconds_left)
        wait = longest_ping_ms(session, seconds=0.5)
        assert unix_ms(session) > due
        with server.client() as client:
            eventually(lambda: client.info("dq")["dq_queues_waiting"] == 0)

        session.check(f"> DQ.LEN q STATE ready\n(integer) {MANY}")
        left: list[bytes] = []
        while len(left) < SAMPLE:
            left += [job_id for job_id, *_ in session.call("DQ.POP", "q", "COUNT", 10_000)]
        assert left == ids
        return wait - idle_wait

    quick_enough(measure, DUE_WAIT_MS_MAX)


@long
def test_a_million_jobs_leave_for_a_stream_while_clients_are_served(
    server: Server, session: Session
) -> None:
    def measure() -> float:
        session.check("> FLUSHALL\nOK\n> DQ.PAUSE q\nOK\n> DQ.ALTER q SINK s\nOK")
        with closing(Flood(server.port)) as flood:
            ids = flood.repeat(MANY, "DQ.ADD", "q", "*", "x" * 64)
        idle_wait = longest_ping_ms(session, seconds=0.5)
        begun = time.perf_counter()
        session.check("> DQ.RESUME q\nOK")
        # While it is under way.
        wait = longest_ping_ms(session, seconds=0.5)
        assert session.call("DQ.LEN", "q") > 0, "a slower machine has more to do"
        eventually(lambda: session.call("DQ.LEN", "q") == 0, within_s=60)
        seconds = time.perf_counter() - begun
        print(f"{server.kind}: {MANY / seconds:,.0f} jobs a second")
        session.check(f"> XLEN s\n(integer) {MANY}")
        first = session.call("XRANGE", "s", "-", "+", "COUNT", SAMPLE)
        assert [fields[1] for _, fields in first] == ids
        return wait - idle_wait

    quick_enough(measure, DUE_WAIT_MS_MAX)


@long
def test_consumers_are_served_while_a_million_jobs_expire(server: Server, session: Session) -> None:
    """These ways of adding a job serve no consumer by themselves: a transaction, a script, a
    RENAME. The timer does.
    """
    feeding: list[Words] = [
        ("MULTI",),
        ("DQ.ADD", "by-transaction", "a", "x"),
        ("DQ.ADD", "expired", "a", "x"),
        ("EXEC",),
        ("EVAL", "return redis.call('DQ.ADD', KEYS[1], 'a', 'x')", 1, "by-script"),
        ("RENAME", "filled", "by-rename"),
    ]

    def measure() -> float:
        session.check('> FLUSHALL\nOK\n> DQ.ADD filled a x\n"a"')
        with closing(Flood(server.port)) as flood, closing(Pipelined(server.port)) as feeder:
            ttl = 4_000
            flood.repeat(MANY, "DQ.ADD", "expired", "*", "body", "TTL", ttl)
            filled = time.perf_counter()
            consumers = [Pipelined(server.port) for _ in range(4)]
            for consumer, key in zip(
                consumers, ["by-transaction", "expired", "by-script", "by-rename"], strict=True
            ):
                if key == "expired":
                    # Not yet: what is ready isn't for it.
                    session.check(f"> DQ.PAUSE {key}\nOK")
                consumer.send(("DQ.POP", key, "BLOCK", 0))
            with server.client() as client:
                eventually(lambda: client.info("dq")["dq_waiting_consumers"] == 4)
            # The server sleeps through the end of their lives, so that it can do nothing before.
            asleep = max(0.0, filled + ttl / 1_000 - time.perf_counter()) + 0.1
            feeder.send(("DEBUG", "SLEEP", str(asleep)), ("DQ.RESUME", "expired"), *feeding)
            told = [feeder.receive() for _ in range(2 + len(feeding))]
            assert told[-1] == "OK"
            fed = time.perf_counter()
            waits = []
            for consumer in consumers:
                assert [job[0] for job in consumer.receive()] == [b"a"]
                waits.append(time.perf_counter() - fed)
                consumer.close()
            session.check(f"> DQ.LEN expired STATE dead\n(integer) {MANY}")
        return max(waits) * 1_000

    quick_enough(measure, SERVE_WAIT_MS_MAX)


@long
def test_removing_a_million_jobs_holds_no_client_up(server: Server, session: Session) -> None:
    """The client that removes the jobs doesn't wait until each is freed; nor does any other
    client.
    """
    with closing(Flood(server.port)) as flood:
        flood.repeat(MANY, "DQ.ADD", "q", "*", "body", "DELAY", 600_000)

    def wait_for(removal: str) -> float:
        session.check(f"""
            > SELECT 0
            OK
            > COPY q copy DB 1
            (integer) 1
            > SELECT 1
            OK
            > SET other x
            OK
            > DQ.LEN copy
            (integer) {MANY}
        """)
        removing = Thread(target=session.call, args=removal.split())
        removing.start()
        wait = longest_ping_ms(pinging, seconds=0.3)
        removing.join()
        assert session.call("TYPE", "copy") in ("none", "string")
        session.check("> FLUSHDB\nOK")
        return wait

    with closing(server.session()) as pinging:
        for removal in [
            "DEL copy",
            "UNLINK copy",
            "FLUSHDB SYNC",
            "FLUSHDB ASYNC",
            "SET copy x",
            "RENAME other copy",
            "PEXPIREAT copy 1",
        ]:
            quick_enough(partial(wait_for, removal), FREE_WAIT_MS_MAX)
