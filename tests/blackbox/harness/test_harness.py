"""The harness itself: a check that can't fail, or a server that is never stopped, would spoil all
other tests.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.paths import ROOT
from harness.server import Kind, Server, eventually
from harness.transcript import Mismatch, Session


@pytest.mark.parametrize(
    "transcript",
    [
        pytest.param('> ECHO a\n"b"', id="another value"),
        pytest.param("> ECHO a\na", id="a status for a string"),
        pytest.param('> PING\n"PONG"', id="a string for a status"),
        pytest.param('> APPEND k ab\n"2"', id="a string for an integer"),
        pytest.param("> GET k\n(integer) 0", id="an integer for nil"),
        pytest.param('> ECHO ""\n(nil)', id="nil for an empty string"),
        pytest.param("> MGET k\n[]", id="a shorter array"),
        pytest.param("> MGET k\n[(nil), (nil)]", id="a longer array"),
        pytest.param("> NO\n(error) ERR", id="the beginning of an error"),
        pytest.param("> MGET k\n<*>", id="an array for a placeholder"),
        pytest.param("> ECHO a\n<x>\n> ECHO b\n<x>", id="another value for a bound placeholder"),
        pytest.param(
            "> COMMAND GETKEYS MSET a 1 b 2\n[<x>, <x>]", id="two values for one placeholder"
        ),
        pytest.param("> MGET k\n[(nil), <...>]", id="nothing for further elements"),
        pytest.param('> MGET k l\n[<...>, "x"]', id="further elements and another last one"),
    ],
)
def test_a_transcript_with_a_wrong_reply_fails(session: Session, transcript: str) -> None:
    with pytest.raises(Mismatch):
        session.check(transcript)


@pytest.mark.parametrize(
    "transcript",
    [
        pytest.param("> PING", id="a command without a reply"),
        pytest.param("> PING\n> PING\nPONG", id="two commands, one reply"),
        pytest.param("PONG", id="a reply without a command"),
        pytest.param("> ECHO <x>\n<x>", id="an unbound placeholder in a command"),
        pytest.param('> ECHO "a\n"a"', id="an open quote"),
    ],
)
def test_a_wrong_transcript_is_refused(session: Session, transcript: str) -> None:
    with pytest.raises(ValueError):
        session.check(transcript)


def test_replies_read_as_in_redis_cli(server: Server, session: Session) -> None:
    session.check(r"""
        # One line of each kind of reply.
        > SET k "a\x00\"\n\xff"
        OK
        > GET k
        "a\x00\"\n\xff"
        > STRLEN k
        (integer) 5
        > INCR k
        (error) ERR value is not an integer or out of range
        > MGET k none
        ["a\x00\"\n\xff",
         (nil)]
        > RPUSH q 1 'two words'
        (integer) <length>
        > LRANGE q 0 -1
        ["1", "two words"]
        > LINDEX q <length>
        (nil)
        > RPUSH q 3 4
        (integer) 4
        > LRANGE q 0 -1
        [<...>, "two words", <...>, <last>]
    """)
    assert (session["length"], session["last"]) == (2, "4")
    assert server.cli("GET", "k") == '"a\\x00\\"\\n\\xff"\n'
    assert server.cli("STRLEN", "k") == "(integer) 5\n"


def test_resp3_keeps_maps_in_order(server: Server) -> None:
    server.session(protocol=3).check("""
        > HSET h one 1
        (integer) 1
        > HGETALL h
        {"one": "1"}
        > HGETALL none
        {}
    """)


def test_a_mismatch_shows_known_values_and_the_commands_before_it(session: Session) -> None:
    with pytest.raises(Mismatch) as failure:
        session.check('# First.\n> ECHO <word>\n<word>\n> ECHO <word>\n"no"', word="a b")
    assert str(failure.value) == (
        '# First.\n> ECHO "a b"\n"a b"\n> ECHO "a b"\npromised: "no"\n     got: "a b"'
    )


def test_eventually_waits_and_gives_up(server: Server, session: Session) -> None:
    session.check("> SET k v PX 30\nOK")
    session.eventually("> GET k\n(nil)")
    with pytest.raises(Mismatch):
        session.eventually('> GET k\n"v"', within_s=0.02)
    with pytest.raises(AssertionError):
        eventually(lambda: None, within_s=0.02)


def test_a_server_keeps_its_port_and_files(fresh_server) -> None:
    server = fresh_server("appendonly yes", "appendfsync always")
    server.session().check("> SET k v\nOK")
    server.kill9()
    server.start()
    server.session().check('> GET k\n"v"')
    server.restart()
    server.session().check('> GET k\n"v"')


def test_a_replica_catches_up(fresh_server) -> None:
    primary, replica = fresh_server(), fresh_server()
    replica.replicate(primary)
    primary.session().check("> SET k v\nOK")
    replica.catch_up(primary)
    replica.session().check('> GET k\n"v"')


def test_a_killed_pytest_leaves_no_server(kind: Kind, tmp_path: Path) -> None:
    program = (
        "import sys, time; from pathlib import Path; from harness.server import Server, named;"
        "print(Server(named(sys.argv[1]), Path(sys.argv[2])).pid, flush=True); time.sleep(60)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, kind.path, tmp_path],
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(ROOT / "tests" / "blackbox")},
    ) as pytest_in_small:
        pid = int(pytest_in_small.stdout.readline())
        pytest_in_small.kill()
    eventually(lambda: not Path(f"/proc/{pid}").exists())
