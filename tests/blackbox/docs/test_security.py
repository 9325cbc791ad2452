"""docs/security.md is true: its ACL rules are applied as they are written there, and allow what its
table says.
"""

import re
from collections.abc import Iterator
from contextlib import closing

import pytest

from harness.command_table import COMMANDS
from harness.paths import ROOT
from harness.resp import Failure
from harness.server import Kind, Server
from harness.transcript import Session, split

PAGE = (ROOT / "docs" / "security.md").read_text()
RULES = {
    line.split()[2]: line
    for block in re.findall(r"^```acl\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    for line in block.splitlines()
}
ROLES = ["producer", "worker", "operator", "board"]
# One call of each command that is fine but for the rights, on a queue that the roles are for.
EXAMPLES = {
    c.name: c.example.replace("the-key", "mail:a").replace("the-other-key", "mail:b")
    for c in COMMANDS
}


@pytest.fixture
def users(session: Session) -> Iterator[Session]:
    for rule in RULES.values():
        session.check(f"> {rule}\nOK")
    yield session
    session.call("ACL", "DELUSER", *RULES)


def allowed(session: Session, user: str, examples: dict[str, str]) -> set[str]:
    replies = {
        name: session.call("ACL", "DRYRUN", user, *split(line)) for name, line in examples.items()
    }
    return {name for name, reply in replies.items() if reply == "OK"}


def stated() -> dict[str, set[str]]:
    """What the table says that each role may do."""
    rows = re.findall(r"^\| (`DQ\.[^|]*) \|(.*)\|$", PAGE, re.MULTILINE)
    table = [
        (re.findall(r"`(.+?)`", names), [cell.strip() for cell in cells.split("|")])
        for names, cells in rows
    ]
    table = [(names, cells) for names, cells in table if len(cells) == len(ROLES)]
    return {
        role: {name.lower() for names, cells in table if cells[column] == "yes" for name in names}
        for column, role in enumerate(ROLES)
    }


def test_the_table_of_roles_has_every_command() -> None:
    columns = re.findall(r"^\| `DQ\.[^|]*\|(?: (?:yes)? ?\|){4}$", PAGE, re.MULTILINE)
    named = [name.lower() for row in columns for name in re.findall(r"`(.+?)`", row)]
    assert sorted(named) == sorted(EXAMPLES)


@pytest.mark.parametrize("role", ROLES)
def test_an_acl_role_may_do_what_the_table_says_and_nothing_else(users: Session, role: str) -> None:
    assert allowed(users, role, EXAMPLES) == stated()[role]
    with_a_key = {name: line for name, line in EXAMPLES.items() if "mail:" in line}
    elsewhere = {name: line.replace("mail:", "other:") for name, line in with_a_key.items()}
    assert allowed(users, role, elsewhere) == set()
    general = {
        line: line for line in ("FLUSHALL", "CONFIG GET *", "DEL mail:a", "SET mail:a x", "KEYS *")
    }
    assert allowed(users, role, general) == set()


def test_an_application_user_may_do_all_but_apply(users: Session) -> None:
    assert allowed(users, "app", EXAMPLES) == EXAMPLES.keys() - {"dq.apply"}


def test_an_acl_rule_that_does_not_name_apply_allows_it_on_redis_7_0(
    users: Session, kind: Kind
) -> None:
    """What the page warns of."""
    users.check("> ACL SETUSER app reset on nopass ~* +@all -@dangerous\nOK")
    is_reached = "dq.apply" in allowed(users, "app", EXAMPLES)
    assert is_reached == (kind.name == "redis-7.0")
    users.check("> ACL SETUSER app reset on nopass ~* -@all +@read +@write\nOK")
    expected = set() if kind.name == "redis-7.0" else EXAMPLES.keys()
    assert allowed(users, "app", EXAMPLES) == expected


def test_all_acl_roles_can_do_their_work(users: Session, server: Server) -> None:
    def connected(role: str) -> Session:
        session = server.session()
        session.check(f"> AUTH {role} {role}-password\nOK")
        return session

    producer, worker, operator, board = map(connected, ROLES)
    with closing(producer), closing(worker), closing(operator), closing(board):
        assert board.call("PSUBSCRIBE", "__keyevent@0__:dq.*")[0] == b"psubscribe"
        assert isinstance(operator.call("PSUBSCRIBE", "__keyevent@0__:dq.*"), Failure)
        producer.check("""
            > DQ.ADD mail:a a Ann
            "a"
            > DQ.ADD mail:a b Bob DELAY 3600000
            "b"
            > DQ.DEL mail:a b
            (integer) 1
        """)
        worker.check("""
            > DQ.MPOP 2 mail:b mail:a
            ["mail:a", [["a", "Ann", <lease>, 1]]]
            > DQ.TOUCH mail:a a <lease>
            (integer) 1
            > DQ.BURY mail:a a <lease> REASON "no such mailbox"
            (integer) 1
        """)
        operator.check("""
            > DQ.LEN mail:a STATE dead
            (integer) 1
            > DQ.KICK mail:a
            (integer) 1
            > SCAN 0 TYPE delayq-dq
            ["0", ["mail:a"]]
        """)
        worker.check("""
            > DQ.POP mail:a NOACK
            [["a", "Ann", (nil), 1]]
        """)
        assert str(producer.call("DQ.POP", "mail:a")).startswith("NOPERM ")
        assert str(worker.call("DQ.ADD", "mail:a", "c", "x")).startswith("NOPERM ")


def test_an_acl_user_may_ask_for_the_cluster_map(users: Session) -> None:
    users.check("""
        > ACL SETUSER worker +cluster|slots +cluster|shards +cluster|nodes +command
        OK
    """)
    asked = {line: line for line in ("CLUSTER SLOTS", "CLUSTER SHARDS", "CLUSTER NODES", "COMMAND")}
    assert allowed(users, "worker", asked) == asked.keys()
