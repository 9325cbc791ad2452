"""Bad input gets one clear error that names the mistake, and changes nothing.

This file has the options of all commands; test_bad_arguments.py has the words before them,
test_wrong_keys.py keys. After every error comes the same check: all keys, the queue, its totals,
the AOF and the module's counters are as they were (harness/observer.py). Options are read by the
module alone, so the tests run on one kind of server.
"""

import pytest

from harness.marks import on_one_kind
from harness.observer import COUNT_MAX, NO_NUMBERS, TIME_MAX, Observer, Refused, check_refused
from harness.resp import Failure
from harness.server import Server
from harness.transcript import Session

pytestmark = on_one_kind

MILLIS, SPAN, COUNT = (0, TIME_MAX), (1, TIME_MAX), (1, COUNT_MAX)
LIMIT = (0, COUNT_MAX)
FLAG, TEXT, STATE, PAIR, PATTERN, JOB = "flag", "text", "state", "pair", "pattern", "job"
CONSUMER = {"COUNT": COUNT, "BLOCK": MILLIS, "TTR": SPAN, "NOACK": FLAG, "WITHDUE": FLAG}

# What DQ.ADD and DQ.MADD share.
NEW_JOB = {
    "DELAY": MILLIS,
    "AT": MILLIS,
    "TTR": SPAN,
    "PRIORITY": (0, 255),
    "ATTEMPTS": LIMIT,
    "BACKOFF": PAIR,
    "TTL": SPAN,
    "KEEP": MILLIS,
    "LATE": MILLIS,
    "GROUP": JOB,
    "HOLD": FLAG,
    "NX": FLAG,
    "REPLACE": FLAG,
}

# Each command that has options: all of them, with the range of a number or another kind of value.
OPTIONS: dict[str, dict[str, tuple[int, int] | str]] = {
    "DQ.ADD {} a x": NEW_JOB,
    "DQ.MADD {} 2 m1 x m2 x": NEW_JOB | {"SPREAD": MILLIS},
    "DQ.POP {}": CONSUMER,
    "DQ.MPOP 1 {}": CONSUMER,
    "DQ.RELEASE {} reserved <lease>": {
        "DELAY": MILLIS,
        "UNBEGUN": FLAG,
        "PRIORITY": (0, 255),
        "REASON": TEXT,
        "BODY": TEXT,
        "NOTE": TEXT,
    },
    "DQ.TOUCH {} reserved <lease>": {"TTR": SPAN, "BODY": TEXT, "NOTE": TEXT},
    "DQ.DONE {} reserved <lease>": {"RESULT": TEXT, "KEEP": MILLIS},
    "DQ.BURY {} reserved <lease>": {"REASON": TEXT},
    "DQ.RESULT {} done": {"BLOCK": MILLIS},
    "DQ.KICK {}": {"COUNT": COUNT, "SPREAD": MILLIS},
    "DQ.PAUSE {}": {"GROUP": JOB, "FOR": SPAN},
    "DQ.RESUME {}": {"GROUP": JOB},
    "DQ.PURGE {} STATE dead": {"OLDER": MILLIS, "COUNT": COUNT},
    "DQ.ALTER {}": {
        "TTR": SPAN,
        "ATTEMPTS": LIMIT,
        "BACKOFF": PAIR,
        "KEEP": MILLIS,
        "LATE": MILLIS,
        "MAXJOBS": LIMIT,
        "DEADKEEP": MILLIS,
        "CONCURRENCY": LIMIT,
        "GROUPCONCURRENCY": LIMIT,
    },
    "DQ.PEEK {}": {"STATE": STATE, "COUNT": COUNT},
    "DQ.PEEK {} STATE dead": {"AFTER": JOB, "FROM": MILLIS},
    "DQ.SCAN {} 0": {"STATE": STATE, "MATCH": PATTERN, "SCHEDULED": FLAG, "COUNT": COUNT},
    "DQ.GROUPS {} 0": {"COUNT": COUNT},
    "DQ.FORECAST {} STEP 5 COUNT 5": {"FROM": MILLIS},
    "DQ.LEN {}": {"STATE": STATE},
    "DQ.DEPS {} dead": {"FROM": LIMIT, "COUNT": COUNT},
}
EACH_OPTION = [
    pytest.param(command, option, takes, id=f"{command.split()[0]} {option}")
    for command, options in OPTIONS.items()
    for option, takes in options.items()
]
EACH_NUMBER = [
    each for each in EACH_OPTION if each.values[2] not in (FLAG, TEXT, STATE, PATTERN, JOB)
]
each_command = pytest.mark.parametrize("command", OPTIONS, ids=lambda command: command.split()[0])


EXCLUSIVE = [("DELAY", "AT"), ("NX", "REPLACE"), ("DELAY", "UNBEGUN"), ("TTR", "NOACK")]


def example(option: str, takes: tuple[int, int] | str) -> str:
    """An option as it may be given."""
    values = {FLAG: "", TEXT: " why", STATE: " dead", PAIR: " 5 50", PATTERN: " *", JOB: " dead"}
    return option + values.get(takes, " 5")


def others(command: str, option: str) -> list[str]:
    """The command's other options that may be given beside this one, each as it may be given."""
    excluded = [other for pair in EXCLUSIVE if option in pair for other in pair]
    rest = {
        name: takes for name, takes in OPTIONS[command].items() if name not in (option, *excluded)
    }
    return [example(name, takes) for name, takes in rest.items()]


@pytest.mark.parametrize(("command", "option", "takes"), EACH_NUMBER)
def test_options_with_bad_numbers_are_refused(
    lone: Server, lone_session: Session, command: str, option: str, takes: tuple[int, int] | str
) -> None:
    least, most = MILLIS if takes == PAIR else takes
    error = f"ERR {option} must be an integer from {least} to {most}"
    values = [*NO_NUMBERS, str(least - 1), str(most + 1)]
    if takes == PAIR:
        values = [f"{value} 5" for value in values] + [f"5 {value}" for value in values]
    table = [(f"{command} {option} {value}", error) for value in values]
    # Also when others before and behind it are right.
    for other in others(command, option)[:2]:
        table.append((f"{command} {other} {option} x 5", error))
        table.append((f"{command} {option} x 5 {other}", error))
    check_refused(lone, lone_session, table)


@pytest.mark.parametrize(("command", "option", "takes"), EACH_OPTION)
def test_options_without_a_value_or_given_twice_are_refused(
    lone: Server, lone_session: Session, command: str, option: str, takes: tuple[int, int] | str
) -> None:
    whole = example(option, takes)
    twice, nothing = f"ERR option {option} is given twice", f"ERR option {option} needs a value"
    table = [(f"{command} {whole} {whole}", twice), (f"{command} {whole.lower()} {whole}", twice)]
    for other in others(command, option)[:2]:
        table.append((f"{command} {whole} {other} {whole}", twice))
    if takes == PAIR:
        nothing = f"ERR option {option} needs two values: base-ms max-ms"
    if takes != FLAG:
        missing = [
            option,
            option.lower(),
            *(f"{other} {option}" for other in others(command, option)[:2]),
        ]
        table += [(f"{command} {words}", nothing) for words in missing]
    if takes == PAIR:
        table.append((f"{command} {option} 5", nothing))
    if takes in (STATE, PAIR, TEXT, PATTERN, JOB):
        different = {STATE: "ready", PAIR: "6 60", TEXT: '""', PATTERN: "a*", JOB: "x"}[takes]
        table.append((f"{command} {whole} {option} {different}", twice))
    check_refused(lone, lone_session, table)


@pytest.mark.parametrize(
    "command", ["DQ.LEN {}", "DQ.PEEK {}", "DQ.SCAN {} 0", "DQ.PURGE {} COUNT 5"]
)
def test_a_state_without_the_word_state_is_refused(
    lone: Server, lone_session: Session, command: str
) -> None:
    """A likely mistake of a client that counts dead jobs."""
    error = "ERR unknown option '{}': a state needs STATE before it"
    table = [
        (f"{command} {word}", error.format(word)) for word in ("dead", "READY", "Delayed", "done")
    ]
    # Others have no such option, and don't speak of it.
    table.append(("DQ.ADD {} a x dead", "ERR unknown option 'dead'"))
    check_refused(lone, lone_session, table)


@each_command
def test_unknown_options_are_refused(lone: Server, lone_session: Session, command: str) -> None:
    words = {
        "FOO": "FOO",
        "foo": "foo",
        "5": "5",
        '""': "",
        '"COUNT "': "COUNT ",
        "TTRS": "TTRS",
        # An error is one line that a terminal can show, whatever the word.
        r'"a\r\nb"': r"a\r\nb",
        r'"\x00\xff\x1b"': r"\x00\xff\x1b",
        r'"\xc3\xa9"': r"\xc3\xa9",
        '"it\'s"': r"it\'s",
        "x" * 64: "x" * 64,
        "x" * 65: "x" * 64 + "...",
        "x" * 100_000: "x" * 64 + "...",
    }
    table = [
        (f"{command} {word}", f"ERR unknown option '{shown}'") for word, shown in words.items()
    ]
    table += [
        (f"{command} {other} FOO 5", "ERR unknown option 'FOO'")
        for other in others(command, "")[:3]
    ]
    check_refused(lone, lone_session, table)


@each_command
def test_options_of_other_commands_are_refused(
    lone: Server, lone_session: Session, command: str
) -> None:
    name, _, _ = command.partition(" ")
    own = {
        option
        for other, options in OPTIONS.items()
        if other.split()[0] == name
        for option in options
    }
    # Its value is more than one word: test_dependencies.py has it.
    own |= {"AFTER"} if name in ("DQ.ADD", "DQ.MADD") else set()
    foreign = {option for options in OPTIONS.values() for option in options} - own
    # Those that the command has already.
    foreign -= set(command.split())
    table = [
        (f"{command} {option} 5", f"ERR unknown option '{option}'") for option in sorted(foreign)
    ]
    check_refused(lone, lone_session, table)


def test_options_that_exclude_each_other_are_refused(lone: Server, lone_session: Session) -> None:
    when = "ERR options DELAY and AT exclude each other"
    taken = "ERR options NX and REPLACE exclude each other"
    back = "ERR options DELAY and UNBEGUN exclude each other"
    mode = "ERR options TTR and NOACK exclude each other"
    table = [
        ("DQ.ADD {} a x DELAY 5 AT 5", when),
        ("DQ.ADD {} a x AT 5 DELAY 5", when),
        ("DQ.ADD {} a x at 5 TTR 5 delay 0", when),
        ("DQ.ADD {} a x NX REPLACE", taken),
        ("DQ.ADD {} a x REPLACE NX", taken),
        ("DQ.ADD {} ready x replace PRIORITY 1 nx", taken),
        ("DQ.ADD {} * x NX REPLACE", taken),
        ("DQ.RELEASE {} reserved <lease> DELAY 0 UNBEGUN", back),
        ("DQ.RELEASE {} reserved * unbegun REASON x delay 5", back),
        ("DQ.POP {} TTR 5 NOACK", mode),
        ("DQ.POP {} noack COUNT 2 BLOCK 5 ttr 5", mode),
        ("DQ.MPOP 1 {} NOACK TTR 5", mode),
        ("DQ.MPOP 2 {} other TTR 5 BLOCK 0 NOACK", mode),
    ]
    check_refused(lone, lone_session, table)


def test_times_past_the_last_one_are_refused(lone: Server, lone_session: Session) -> None:
    table: list[Refused] = []
    for command, option in [
        ("DQ.ADD {} a x", "DELAY"),
        ("DQ.ADD {} a x TTL 5", "DELAY"),
        ("DQ.POP {}", "TTR"),
        ("DQ.POP {} BLOCK 1", "TTR"),
        ("DQ.MPOP 1 {}", "TTR"),
        ("DQ.RELEASE {} reserved <lease>", "DELAY"),
        ("DQ.TOUCH {} reserved <lease>", "TTR"),
        ("DQ.PAUSE {}", "FOR"),
    ]:
        error = f"ERR {option} reaches past the last time there is, {TIME_MAX}"
        for span in TIME_MAX, TIME_MAX - 10**12:
            table.append((f"{command} {option} {span}", error))
    check_refused(lone, lone_session, table)


def test_bad_steps_of_a_forecast_are_refused(lone: Server, lone_session: Session) -> None:
    past = f"ERR STEP reaches past the last time there is, {TIME_MAX}"
    table: list[Refused] = []
    for number in [*NO_NUMBERS, "0", "1001", str(COUNT_MAX)]:
        table.append(
            (
                f"DQ.FORECAST {{}} STEP 5 COUNT {number}",
                "ERR COUNT must be an integer from 1 to 1000",
            )
        )
    for number in [*NO_NUMBERS, "0", str(TIME_MAX + 1)]:
        error = f"ERR STEP must be an integer from 1 to {TIME_MAX}"
        table.append((f"DQ.FORECAST {{}} COUNT 5 STEP {number}", error))
    table += [
        ("DQ.FORECAST {} FROM 5 STEP 5", "ERR option COUNT is missing"),
        ("DQ.FORECAST {} COUNT 5 FROM 5", "ERR option STEP is missing"),
        ("DQ.FORECAST {} STEP 5 STEP 5", "ERR option STEP is given twice"),
        ("DQ.FORECAST {} COUNT 5 COUNT 5", "ERR option COUNT is given twice"),
        (f"DQ.FORECAST {{}} STEP {TIME_MAX} COUNT 1", past),
        (f"DQ.FORECAST {{}} STEP {TIME_MAX} COUNT 1000", past),
        (f"DQ.FORECAST {{}} FROM 1 STEP {TIME_MAX} COUNT 1", past),
        (f"DQ.FORECAST {{}} FROM {TIME_MAX} STEP 1 COUNT 1", past),
        (f"DQ.FORECAST {{}} FROM {TIME_MAX - 999} STEP 1 COUNT 1000", past),
    ]
    check_refused(lone, lone_session, table)
    # The last that there are.
    lone_session.check(f"> DQ.FORECAST q FROM {TIME_MAX - 2} STEP 1 COUNT 2\n[0, 0]")


def test_a_backoff_that_begins_above_its_end_is_refused(
    lone: Server, lone_session: Session
) -> None:
    error = "ERR the base of BACKOFF must not be longer than its max"
    table = [
        (f"{command} {words}", error)
        for command in ("DQ.ADD {} a x", "DQ.ALTER {}")
        for words in (
            "BACKOFF 6 5",
            "BACKOFF 1 0",
            f"TTR 5 BACKOFF {TIME_MAX} 0",
            "BACKOFF 6 5 TTR 5",
        )
    ]
    check_refused(lone, lone_session, table)


BURST_ASTRAY = "ERR option BURST must stand right behind RATE n per-ms or GROUPRATE n per-ms"


def group_rate(words: str) -> str:
    return (
        words
        if words == BURST_ASTRAY
        else words.replace("RATE", "GROUPRATE").replace("rate", "grouprate")
    )


def test_bad_group_names_are_refused(lone: Server, lone_session: Session) -> None:
    error = "ERR GROUP must be 1 to 512 bytes long"
    table = [
        (f"{command} GROUP {word}", error)
        for command in ("DQ.ADD {} a x", "DQ.PAUSE {}", "DQ.PAUSE {} FOR 5", "DQ.RESUME {}")
        for word in ('""', "g" * 513, "g" * 100_000)
    ]
    check_refused(lone, lone_session, table)
    longest = bytes(range(256)) * 2
    assert lone_session.call("DQ.ADD", "q", "longest", "x", "GROUP", longest) == b"longest"


def test_a_burst_that_does_not_follow_its_rate_is_refused(
    lone: Server, lone_session: Session
) -> None:
    table = [
        ("DQ.ALTER {} BURST 5 RATE 1 1 BURST 5", BURST_ASTRAY),
        ("DQ.ALTER {} GROUPRATE 1 1 BURST 5 BURST 5", "ERR option BURST is given twice"),
        ("DQ.ALTER {} RATE 1 1 BURST 5 TTR 5 BURST 5", BURST_ASTRAY),
        ("DQ.ALTER {} BURST", BURST_ASTRAY),
        ("DQ.ALTER {} RATE 1 1 TTR 5 burst", BURST_ASTRAY),
        ("DQ.ALTER {} RATE 1 1 TTR 5 BURST 5", BURST_ASTRAY),
        (
            "DQ.ALTER {} RATE 1 1 BURST 5 GROUPRATE 0 0 BURST 5",
            "ERR options GROUPRATE 0 and BURST exclude each other",
        ),
    ]
    check_refused(lone, lone_session, table)
    lone_session.check("> DQ.ALTER q RATE 1 1 BURST 5 GROUPRATE 1 1 BURST 6\nOK")


def test_bad_sinks_are_refused(lone: Server, lone_session: Session) -> None:
    nothing, twice = "ERR option {} needs a value", "ERR option {} is given twice"
    length = "ERR the stream of SINK must be a name of 1 to 512 bytes"
    astray = "ERR option MAXLEN must stand right behind SINK stream"
    exclusive = "ERR options SINK and NOSINK exclude each other"
    itself = "ERR SINK must be another key than the queue's own"
    most = f"ERR MAXLEN must be an integer from 0 to {2**63 - 1}"
    rows = [
        ("SINK", nothing.format("SINK")),
        ("TTR 5 sink", nothing.format("SINK")),
        ('SINK ""', length),
        (f"SINK {'s' * 513}", length),
        ("SINK s MAXLEN", nothing.format("MAXLEN")),
        ("SINK s SINK s", twice.format("SINK")),
        ("SINK s MAXLEN 5 sink t", twice.format("SINK")),
        ("NOSINK NOSINK", twice.format("NOSINK")),
        ("SINK s MAXLEN 5 MAXLEN 5", astray),
        ("MAXLEN 5", astray),
        ("MAXLEN 5 SINK s", astray),
        ("SINK s TTR 5 maxlen 5", astray),
        ("NOSINK MAXLEN 5", astray),
        ("SINK s NOSINK", exclusive),
        ("NOSINK TTR 5 SINK s MAXLEN 5", exclusive),
        ("SINK {}", itself),
        ("TTR 5 SINK {} MAXLEN 5", itself),
        *((f"SINK s MAXLEN {value}", most) for value in NO_NUMBERS),
    ]
    table = [(f"DQ.ALTER {{0}} {words.replace('{}', '{0}')}", error) for words, error in rows]
    check_refused(lone, lone_session, table)
    for words in f"SINK {'s' * 512} MAXLEN {2**63 - 1}", "sink SINK maxlen 0", "nosink":
        lone_session.check(f"> DQ.ALTER q {words}\nOK")


@pytest.mark.parametrize("name", ["RATE", "GROUPRATE"])
def test_bad_rates_are_refused(lone: Server, lone_session: Session, name: str) -> None:
    jobs, span, burst = (
        f"ERR {option} must be an integer from {least} to {most}"
        for option, (least, most) in {"RATE": LIMIT, "RATE ": SPAN, "BURST": COUNT}.items()
    )
    span = span.replace("RATE  ", "RATE ")
    nothing, twice = "ERR option {} needs a value", "ERR option {} is given twice"
    two_values = "ERR option RATE needs two values"
    too_long = f"ERR at this RATE, BURST jobs must not take longer than {TIME_MAX} ms"
    rows = [
        ("RATE", f"{two_values}: n per-ms"),
        ("RATE 5", f"{two_values}: n per-ms"),
        ("RATE x", f"{two_values}: n per-ms"),
        ("RATE 5 5 BURST", nothing.format("BURST")),
        ("BURST 5", BURST_ASTRAY),
        ("TTR 5 BURST 5", BURST_ASTRAY),
        ("RATE 5 5 RATE 5 5", twice.format("RATE")),
        ("rate 5 5 BURST 5 rate 6 6", twice.format("RATE")),
        ("RATE 5 5 BURST 5 BURST 5", twice.format("BURST")),
        ("RATE 5 5 BURST 5 burst", twice.format("BURST")),
        ("RATE 0 0 BURST 5", "ERR options RATE 0 and BURST exclude each other"),
        ("BURST 1 RATE 5 5", BURST_ASTRAY),
        ("RATE 5 0", span),
        (f"RATE 5 {TIME_MAX + 1}", span),
        (f"RATE 1 {TIME_MAX} BURST 2", too_long),
        (f"RATE {COUNT_MAX - 1} {TIME_MAX} BURST {COUNT_MAX}", too_long),
    ]
    for value in [*NO_NUMBERS, "-1", str(COUNT_MAX + 1)]:
        rows += [(f"RATE {value} 5", jobs), (f"RATE 5 5 BURST {value}", burst)]
    rows += [(f"RATE 5 {value}", span) for value in NO_NUMBERS] + [("RATE 5 5 BURST 0", burst)]
    if name == "GROUPRATE":
        rows = [(group_rate(words), group_rate(error)) for words, error in rows]
    check_refused(lone, lone_session, [(f"DQ.ALTER {{}} {words}", error) for words, error in rows])
    for words in (
        f"RATE {COUNT_MAX} 1 BURST {COUNT_MAX}",
        f"rate 1 {TIME_MAX} burst 1",
        "RATE 0 0",
    ):
        lone_session.check(f"> DQ.ALTER q {words}\nOK")


def test_bad_pops_by_id_are_refused(lone: Server, lone_session: Session) -> None:
    too_long = "ERR id must be 1 to 512 bytes long"
    exclusive = "ERR options {} and ID exclude each other"
    table = [
        ("DQ.POP {} ID", "ERR option ID needs a value"),
        ("DQ.POP {} ID a ID", "ERR option ID needs a value"),
        ('DQ.POP {} ID ""', too_long),
        ('DQ.POP {} ID a "" b', too_long),
        (f"DQ.POP {{}} ID a {'x' * 513}", too_long),
        ("DQ.POP {} ID a COUNT 1", exclusive.format("COUNT")),
        ("DQ.POP {} COUNT 1 ID a", exclusive.format("COUNT")),
        ("DQ.POP {} BLOCK 0 ID a", exclusive.format("BLOCK")),
        ("DQ.POP {} ID a TTR", "ERR option TTR needs a value"),
        ("DQ.POP {} ID a TTR 5 NOACK", "ERR options TTR and NOACK exclude each other"),
        ("DQ.POP {} ID a TTR 5 b", "ERR unknown option 'b'"),
        ("DQ.MPOP 1 {} ID a", "ERR unknown option 'ID'"),
    ]
    check_refused(lone, lone_session, table)


def test_too_long_reasons_are_refused(lone: Server, lone_session: Session) -> None:
    error = "ERR reason must be at most 512 bytes long"
    table = [
        (f"{command} REASON {'r' * length}", error)
        for command in ("DQ.RELEASE {} reserved <lease>", "DQ.BURY {} reserved *")
        for length in (513, 100_000)
    ]
    check_refused(lone, lone_session, table)
    longest = bytes(range(256)) * 2
    assert lone_session.call("DQ.BURY", "q", "reserved", "*", "REASON", longest) == 1
    shown = lone_session.call("DQ.GET", "q", "reserved")
    assert shown[shown.index(b"reason") + 1] == longest


def test_unknown_states_are_refused(lone: Server, lone_session: Session) -> None:
    words = {
        "foo": "foo",
        '""': "",
        "STATE": "STATE",
        "5": "5",
        r'"ready\x00"': r"ready\x00",
        "x" * 100: "x" * 64 + "...",
    }
    known = "delayed, ready, reserved, dead, done, held"
    table = [
        (f"{command} STATE {word}", f"ERR unknown state '{shown}': one of {known}")
        for command in ("DQ.PURGE {}", "DQ.PEEK {}", "DQ.SCAN {} 0", "DQ.LEN {}")
        for word, shown in words.items()
    ]
    check_refused(lone, lone_session, table)


def test_older_is_refused_for_states_that_jobs_only_pass_through(
    lone: Server, lone_session: Session
) -> None:
    table = [
        (words.format("{}", state), f"ERR option OLDER doesn't go with STATE {state}")
        for state in ("delayed", "reserved")
        for words in (
            "DQ.PURGE {} STATE {} OLDER 5",
            "DQ.PURGE {} OLDER 0 STATE {}",
            "DQ.PURGE {} STATE {} COUNT 5 OLDER 5",
        )
    ]
    check_refused(lone, lone_session, table)


def test_peek_from_is_refused_for_ready_jobs(lone: Server, lone_session: Session) -> None:
    """They leave by their priority first."""
    error = "ERR option FROM doesn't go with STATE ready"
    table = [
        (f"DQ.PEEK {{}} {words}", error)
        for words in (
            "FROM 5",
            "FROM 0 STATE ready",
            "AFTER ready FROM 5 COUNT 2",
            "state READY from 5",
        )
    ]
    check_refused(lone, lone_session, table)


def test_peek_after_a_job_in_another_state_is_refused(lone: Server, lone_session: Session) -> None:
    anew = "ERR AFTER names no job that is ready now: begin anew without it"
    table = [
        (f"DQ.PEEK {{}} AFTER {job_id}", anew) for job_id in ("dead", "reserved", "done", "nobody")
    ]
    for state in "delayed", "reserved", "dead", "done":
        told = "FROM, the time at which it was shown, goes on from there"
        error = f"ERR AFTER names no job that is {state} now: {told}"
        table += [
            (f"DQ.PEEK {{}} STATE {state} AFTER {job_id}", error) for job_id in ("ready", "nobody")
        ]
    check_refused(lone, lone_session, table)


def test_a_purge_without_a_state_is_refused(lone: Server, lone_session: Session) -> None:
    """Or a slip of the hand would empty the queue."""
    error = "ERR option STATE is missing"
    table = [
        ("DQ.PURGE {} COUNT 5", error),
        ("DQ.PURGE {} OLDER 5", error),
        ("DQ.PURGE {} STATE dead STATE dead", "ERR option STATE is given twice"),
        ("DQ.PURGE {} COUNT 5 STATE", "ERR option STATE needs a value"),
        ("DQ.PURGE {} dead COUNT 5", "ERR unknown option 'dead': a state needs STATE before it"),
    ]
    check_refused(lone, lone_session, table)


@pytest.mark.parametrize(("command", "option", "takes"), EACH_OPTION)
def test_good_values_of_the_same_options_are_accepted(
    lone_session: Session, command: str, option: str, takes: tuple[int, int] | str
) -> None:
    """Or the refusals above would prove nothing."""
    words = f"{command.format('q')} {example(option, takes)}"
    reply = lone_session.call(*words.replace("<lease>", "*").split())
    assert not isinstance(reply, Failure), words


def test_the_observer_sees_every_change(lone: Server, lone_session: Session) -> None:
    for change in [
        "DQ.ADD q a x",
        "DQ.ADD none a x",
        "DQ.TOUCH q reserved *",
        "DQ.RELEASE q reserved * DELAY 5000",
        "DQ.KICKJOB q reserved",
        "DQ.KICK q",
        "DQ.POP q",
        "DQ.POP q NOACK",
        "DQ.MPOP 2 nothing q COUNT 2",
        "DQ.FINISH q ready",
        "DQ.BURY q dead *",
        "DQ.DEL q delayed",
        "DQ.PURGE q STATE dead",
        "DQ.PAUSE q",
        "DQ.RESUME q",
        "DQ.PAUSE nobody",
        "DQ.PAUSE q GROUP g",
        "DQ.RESUME q GROUP g",
        "DQ.ALTER q KEEP 5",
        "DQ.ALTER somebody KEEP 5",
        "DQ.MADD q 2 m1 x m2 x",
        "SET other x",
    ]:
        observer = Observer(lone)
        assert not isinstance(lone_session.call(*change.split()), Failure)
        with pytest.raises(AssertionError, match="changed by"):
            observer.check_nothing_changed(change)


def test_the_observer_overlooks_what_changes_nothing(lone: Server, lone_session: Session) -> None:
    observer = Observer(lone)
    for command in [
        "DQ.GET q ready",
        "DQ.PEEK q STATE dead COUNT 5",
        "DQ.SCAN q 0",
        "DQ.SCAN q 0 MATCH r*",
        "DQ.SCAN q 0 SCHEDULED",
        "DQ.LEN q",
        "DQ.INFO q",
        "DQ.FORECAST q STEP 5 COUNT 1000",
        "DQ.ADD q ready x NX",
        "DQ.ADD q done x NX",
        "DQ.FINISH q ready",
        "DQ.RELEASE q reserved 7",
        "DQ.TOUCH q reserved 7",
        "DQ.BURY q reserved 7",
        "DQ.DEL q nobody",
        "DQ.KICKJOB q ready reserved done nobody",
        "DQ.RESUME q",
        "DQ.PURGE q STATE dead OLDER 3600000",
        "DQ.POP none",
        "DQ.MPOP 2 none nothing",
        "DQ.POP none BLOCK 1",
        "DQ.KICK none",
        "DQ.PURGE none STATE ready",
        "DQ.RESUME none",
        "DQ.RESUME q GROUP nobody",
        "DQ.GROUPS q 0",
    ]:
        assert not isinstance(lone_session.call(*command.split()), Failure)
        observer.check_nothing_changed(command)
