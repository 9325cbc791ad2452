"""The settings: CONFIG SET and GET, redis.conf, load arguments, and loading at run time."""

from collections.abc import Callable

import pytest

from harness.server import MODULE, Kind, Server
from harness.transcript import Session

StartServer = Callable[..., Server]

DEFAULTS = {
    "dq.default-ttr": "60000",
    "dq.default-attempts": "25",
    "dq.default-backoff": "0 0",
    "dq.tick-budget-us": "1000",
    "dq.max-body-bytes": "1048576",
}
RANGES = {
    "default-ttr": (1, 281_474_976_710_655),
    "default-attempts": (0, 4_294_967_295),
    "tick-budget-us": (100, 1_000_000),
    "max-body-bytes": (0, 536_870_912),
}


def settings(server: Server) -> dict[str, str]:
    with server.client() as client:
        return client.config_get("dq.*")


def test_settings_have_their_defaults(fresh_server: StartServer) -> None:
    assert settings(fresh_server()) == DEFAULTS


@pytest.mark.parametrize(("name", "limits"), RANGES.items(), ids=RANGES)
def test_config_set_and_get_of_each_setting(
    session: Session, name: str, limits: tuple[int, int]
) -> None:
    least, most = limits
    for value in least, most, least + 1:
        session.check(f"""
            > CONFIG SET dq.{name} {value}
            OK
            > CONFIG GET dq.{name}
            ["dq.{name}", "{value}"]
        """)
    failed = f"ERR CONFIG SET failed (possibly related to argument 'dq.{name}')"
    out_of_range = f"{failed} - argument must be between {least} and {most} inclusive"
    no_integer = f"{failed} - argument couldn't be parsed into an integer"
    for value, error in [
        (least - 1, out_of_range),
        (most + 1, out_of_range),
        (-1, out_of_range),
        (2**63 - 1, out_of_range),
        (2**63, no_integer),
        ("x", no_integer),
        ("1.5", no_integer),
        ('""', no_integer),
    ]:
        session.check(f"""
            > CONFIG SET dq.{name} {value}
            (error) {error}
            > CONFIG GET dq.{name}
            ["dq.{name}", "{least + 1}"]
        """)


PAIR = "must be two integers from 0 to 281474976710655, the first not greater"


def test_config_set_and_get_of_the_default_backoff(session: Session) -> None:
    for given, shown in [
        ("1000 600000", "1000 600000"),
        ("0 281474976710655", "0 281474976710655"),
        ("  7    7 ", "7 7"),
        ("0 0", "0 0"),
        ("5 9", "5 9"),
    ]:
        session.check(f"""
            > CONFIG SET dq.default-backoff "{given}"
            OK
            > CONFIG GET dq.default-backoff
            ["dq.default-backoff", "{shown}"]
        """)
    wrong = [
        "",
        "5",
        "5 6 7",
        "6 5",
        "-1 5",
        "5 x",
        "1.5 2",
        "0 281474976710656",
        "1 99999999999999999999",
    ]
    for given in wrong:
        session.check(f"""
            > CONFIG SET dq.default-backoff "{given}"
            (error) ERR CONFIG SET failed (possibly related to argument 'dq.default-backoff') - argument {PAIR}
            > CONFIG GET dq.default-backoff
            ["dq.default-backoff", "5 9"]
        """)
    session.check("""
        > CONFIG SET dq.default-backoff "1 2" dq.tick-budget-us 1
        (error) ERR CONFIG SET failed (possibly related to argument 'dq.tick-budget-us') - argument must be between 100 and 1000000 inclusive
        > CONFIG GET dq.default-backoff
        ["dq.default-backoff", "5 9"]
    """)


def test_several_settings_are_set_together_or_not_at_all(server: Server, session: Session) -> None:
    session.check("""
        > CONFIG SET dq.default-ttr 7 dq.max-body-bytes 8
        OK
        > CONFIG SET dq.default-ttr 9 dq.tick-budget-us 1
        (error) ERR CONFIG SET failed (possibly related to argument 'dq.tick-budget-us') - argument must be between 100 and 1000000 inclusive
        > CONFIG GET dq.default-ttr
        ["dq.default-ttr", "7"]
        > DQ.ADD q a x
        "a"
        > DQ.GET q a
        ["id", "a", "body", "x", "state", "ready", "due", <*>, <...>, "priority", 128, "ttr", 7,
         "attempts", 25, "attempt", 0, <...>, "lease", (nil), "created", <*>, <...>]
    """)
    assert settings(server) == DEFAULTS | {"dq.default-ttr": "7", "dq.max-body-bytes": "8"}


def test_there_is_no_other_setting(session: Session) -> None:
    reply = session.call("CONFIG", "SET", "dq.nope", "1")
    assert reply.startswith("ERR Unknown option or number of arguments for CONFIG SET")


def test_settings_are_read_from_the_config_file(fresh_server: StartServer) -> None:
    server = fresh_server(
        "dq.default-ttr 30000", "dq.max-body-bytes 10", 'dq.default-backoff "1000 600000"'
    )
    assert settings(server) == DEFAULTS | {
        "dq.default-ttr": "30000",
        "dq.max-body-bytes": "10",
        "dq.default-backoff": "1000 600000",
    }


def test_settings_are_read_from_load_arguments(fresh_server: StartServer) -> None:
    server = fresh_server(module_args="default-ttr 30000 DEFAULT-ATTEMPTS 0 dq.tick-budget-us 500")
    assert settings(server) == DEFAULTS | {
        "dq.default-ttr": "30000",
        "dq.default-attempts": "0",
        "dq.tick-budget-us": "500",
    }


def test_the_config_file_goes_before_load_arguments(fresh_server: StartServer) -> None:
    arguments = 'default-ttr 7 default-attempts 3 default-backoff "4 5"'
    server = fresh_server("dq.default-ttr 5", module_args=arguments)
    assert settings(server) == DEFAULTS | {
        "dq.default-ttr": "5",
        "dq.default-attempts": "3",
        "dq.default-backoff": "4 5",
    }


def test_a_rewritten_config_file_keeps_the_settings(fresh_server: StartServer) -> None:
    """Also a value that is the default of the module, but not of the load arguments."""
    server = fresh_server("dq.max-body-bytes 10", module_args="default-ttr 7")
    server.session().check("""
        > CONFIG SET dq.default-ttr 60000 dq.default-attempts 3 dq.max-body-bytes 1048576 dq.default-backoff "1000 600000"
        OK
        > CONFIG REWRITE
        OK
    """)
    kept = DEFAULTS | {"dq.default-attempts": "3", "dq.default-backoff": "1000 600000"}
    for _ in range(2):
        server.restart()
        assert settings(server) == kept
        server.session().check("> CONFIG REWRITE\nOK")


@pytest.mark.parametrize("pair", ['"1000 600000"', "1000 600000"], ids=["quoted", "plain"])
def test_a_pair_among_load_arguments_outlives_a_rewritten_config_file(
    fresh_server: StartServer, pair: str
) -> None:
    """The server writes load arguments without quotes, and didn't start again."""
    server = fresh_server(module_args=f"default-backoff {pair} default-ttr 7")
    kept = DEFAULTS | {"dq.default-backoff": "1000 600000", "dq.default-ttr": "7"}
    assert settings(server) == kept
    server.session().check("> CONFIG REWRITE\nOK")
    server.restart()
    assert settings(server) == kept


def range_error(name: str, value: str) -> str:
    least, most = RANGES[name.removeprefix("dq.")]
    return f"'{name}' must be an integer from {least} to {most}, not '{value}'"


BAD_ARGUMENTS = {
    "nope 1": "unknown argument 'nope'",
    "default-ttr 5 nope": "unknown argument 'nope'",
    "dq.nope 1": "unknown argument 'dq.nope'",
    "default-ttr": "argument 'default-ttr' needs a value",
    "default-ttr 5 default-attempts": "argument 'default-attempts' needs a value",
    "default-ttr 0": range_error("default-ttr", "0"),
    "dq.default-ttr 281474976710656": range_error("dq.default-ttr", "281474976710656"),
    "default-ttr 99999999999999999999": range_error("default-ttr", "99999999999999999999"),
    "default-ttr x": range_error("default-ttr", "x"),
    "default-attempts -1": range_error("default-attempts", "-1"),
    "default-backoff 5": f"'default-backoff' {PAIR}, not '5'",
    'default-backoff "6 5"': f"'default-backoff' {PAIR}, not '6 5'",
    "default-backoff 6 5": f"'default-backoff' {PAIR}, not '6 5'",
    "default-backoff 5 default-ttr 7": f"'default-backoff' {PAIR}, not '5 default-ttr'",
    "tick-budget-us 99": range_error("tick-budget-us", "99"),
    "max-body-bytes 536870913": range_error("max-body-bytes", "536870913"),
}


@pytest.mark.parametrize(("arguments", "problem"), BAD_ARGUMENTS.items(), ids=BAD_ARGUMENTS)
def test_bad_load_arguments_are_refused(
    fresh_server: StartServer, arguments: str, problem: str
) -> None:
    with pytest.raises(RuntimeError) as refusal:
        fresh_server(module_args=arguments)
    lines = str(refusal.value).splitlines()
    assert any(line.endswith(f"<dq> can't load: {problem}") for line in lines), lines
    assert any("server aborting" in line for line in lines), lines


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("dq.default-ttr 0", "argument must be between 1 and 281474976710655 inclusive"),
        ("dq.default-ttr x", "argument couldn't be parsed into an integer"),
        ("dq.tick-budget-us 99", "argument must be between 100 and 1000000 inclusive"),
        ('dq.default-backoff "2 1"', f"argument {PAIR}"),
        ("dq.nope 1", "Module Configuration detected without"),
    ],
)
def test_a_bad_setting_in_the_config_file_is_refused(
    fresh_server: StartServer, line: str, word: str
) -> None:
    with pytest.raises(RuntimeError, match=word):
        fresh_server(line)


def test_the_module_can_be_loaded_at_run_time(fresh_server: StartServer) -> None:
    server = fresh_server(module_args=None)
    session = server.session()
    session.check(f"""
        > TYPE q
        none
        > MODULE LOAD "{MODULE}" default-ttr 30000
        OK
        > DQ.ADD q a hello DELAY 30
        "a"
        > DQ.POP q
        (nil)
    """)
    session.eventually('> DQ.POP q\n[["a", "hello", <lease>, 1]]')
    assert settings(server) == DEFAULTS | {"dq.default-ttr": "30000"}


def test_the_module_can_be_loaded_at_run_time_with_settings(fresh_server: StartServer) -> None:
    server = fresh_server(module_args=None)
    server.session().check(f"""
        > MODULE LOADEX "{MODULE}" CONFIG dq.default-ttr 5 ARGS default-ttr 7 default-attempts 3
        OK
    """)
    assert settings(server) == DEFAULTS | {"dq.default-ttr": "5", "dq.default-attempts": "3"}


def test_a_refused_load_leaves_nothing_behind(fresh_server: StartServer) -> None:
    server = fresh_server(module_args=None)
    session = server.session()
    session.check(f"""
        > MODULE LOAD "{MODULE}" nope 1
        (error) ERR Error loading the extension. Please check the server logs.
        > MODULE LOAD "{MODULE}" default-ttr 0
        (error) ERR Error loading the extension. Please check the server logs.
        > MODULE LOADEX "{MODULE}" CONFIG dq.default-ttr 0
        (error) ERR Error loading the extension. Please check the server logs.
        > CONFIG GET dq.*
        []
        > COMMAND INFO dq.add
        [(nil)]

        # Nor do its handlers: of these events it would have heard.
        > SWAPDB 0 1
        OK
        > FLUSHALL
        OK

        > MODULE LOAD "{MODULE}"
        OK
        > DQ.ADD q a hello DELAY 30
        "a"
    """)
    session.eventually('> DQ.POP q\n[["a", "hello", <lease>, 1]]')
    assert "<dq> can't load: unknown argument 'nope'" in server.log()


def test_an_unknown_setting_at_run_time_is_refused(fresh_server: StartServer, kind: Kind) -> None:
    """The server finds out after the load. What then becomes of the module is up to the server."""
    if kind.family == "valkey":
        pytest.skip("Valkey crashes here with every module that has a data type")
    server = fresh_server(module_args=None)
    session = server.session()
    session.check(f"""
        > MODULE LOADEX "{MODULE}" CONFIG dq.nope 1
        (error) ERR Error loading the extension. Please check the server logs.
        > SWAPDB 0 1
        OK
        > FLUSHALL
        OK
    """)
    # Redis 7.0 keeps the module all the same, later ones take it out.
    if kind.name != "redis-7.0":
        session.check(f'> MODULE LOAD "{MODULE}"\nOK')
    session.check('> DQ.ADD q a hello DELAY 30\n"a"')
    session.eventually('> DQ.POP q\n[["a", "hello", <lease>, 1]]')


def test_unloading_the_module_is_refused(session: Session) -> None:
    refusal = (
        "(error) ERR Error unloading module: the module exports one or more module-side data types,"
        " can't unload"
    )
    session.check(f"""
        > MODULE UNLOAD dq
        {refusal}
        > DQ.ADD q a x
        "a"
        > MODULE UNLOAD dq
        {refusal}
        > DQ.POP q
        [["a", "x", <lease>, 1]]
    """)
