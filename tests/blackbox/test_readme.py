"""What the README shows works: its worker, its session, its table of configs."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

from server import Server
from transcript import Session

README = (Path(__file__).resolve().parents[2] / "README.md").read_text()


def test_the_worker_does_what_is_due_and_stops_when_told(server: Server, session: Session) -> None:
    program = re.search(r"<!-- worker: .*?```python\n(.*?)```", README, re.DOTALL).group(1)
    environment = os.environ | {"REDIS_URL": f"redis://127.0.0.1:{server.port}"}
    worker = subprocess.Popen(
        [sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, text=True
    )
    try:
        session.check("""
            > DQ.ADD mail a "Hello, Ann" DELAY 100
            "a"
            > DQ.ADD mail b "Hello, Bob" PRIORITY 0
            "b"
        """)
        session.eventually("> DQ.LEN mail\n(integer) 0", within_s=10)
        worker.send_signal(signal.SIGTERM)
        output, _ = worker.communicate(timeout=10)
    finally:
        worker.kill()
    assert output.splitlines() == ["working on Hello, Bob", "working on Hello, Ann"]
    assert worker.returncode == 0


def test_the_session_gives_these_replies(session: Session) -> None:
    """The commands stand in the README as below; replies there are as redis-cli shows them."""
    for command in (
        'DQ.ADD orders order:17 "cancel if unpaid" DELAY 1800000',
        "DQ.GET orders order:17",
        "DQ.DEL orders order:17",
        'DQ.ADD mail * "Hello, Ann" TTR 10000',
        "DQ.POP mail",
    ):
        assert f"127.0.0.1:6379> {command}" in README
    session.check("""
        > DQ.ADD orders order:17 "cancel if unpaid" DELAY 1800000
        "order:17"
        > DQ.DEL orders order:17
        (integer) 1
        > DQ.ADD mail * "Hello, Ann" TTR 10000
        <id>
        > DQ.POP mail
        [[<id>, "Hello, Ann", <lease>, 1]]
        > DQ.FINISH mail <id> <lease>
        (integer) 1
    """)


def test_the_table_of_configs_states_the_defaults(server: Server) -> None:
    stated = dict(re.findall(r"^\| `(dq\.[a-z-]+)` \| (\d+) \|", README, re.MULTILINE))
    assert stated == server.client().config_get("dq.*")


def test_every_command_is_in_the_table(server: Server) -> None:
    with server.client() as client:
        names = client.execute_command("COMMAND LIST", "FILTERBY", "MODULE", "dq")
    listed = set(re.findall(r"^\| `(DQ\.[A-Z]+) ", README, re.MULTILINE))
    assert {name.upper() for name in names} == listed | {"DQ.APPLY"}
