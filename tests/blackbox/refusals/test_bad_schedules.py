"""Bad input, as in test_bad_options.py: the options of schedules."""

import pytest

from harness.clock import now_ms
from harness.marks import on_one_kind
from harness.observer import check_refused
from harness.server import Server
from harness.transcript import Session

pytestmark = on_one_kind

NO_ZONE = "ERR TZ must be the name of a time zone, such as Europe/Berlin"
NEVER = "ERR CRON names no time in the next hundred years"
NO_RUN = "ERR the job would never run: UNTIL is before its next time, or it has had its RUNS"

EXPRESSIONS = {
    '""': "ERR CRON must be text of 1 to 256 bytes",
    "*" * 257: "ERR CRON must be text of 1 to 256 bytes",
    r'"\xff * * * *"': "ERR CRON must be text of 1 to 256 bytes",
    # The error was an empty line.
    r'"\x00 * * * *"': "ERR CRON can't be read: minutes take numbers: names stand for months and days of the week only",
    "@reboot": "ERR CRON can't be read: "
    "the names are @hourly, @daily, @midnight, @weekly, @monthly, @yearly and @annually",
    "hourly": "ERR CRON can't be read: it needs five fields, or six with seconds first",
    '"* * * *"': "ERR CRON can't be read: it needs five fields, or six with seconds first",
    '"0 0 0 1 1 * 2030"': "ERR CRON can't be read: it needs five fields, or six with seconds first",
    '"60 * * * *"': "ERR CRON can't be read: minutes are 0 to 59",
    '"* 24 * * *"': "ERR CRON can't be read: hours are 0 to 23",
    '"9-1 * * * *"': "ERR CRON can't be read: minutes: a range ends before it begins",
    '"*/0 * * * *"': "ERR CRON can't be read: a step can't be 0",
    '"65536 * * * *"': "ERR CRON can't be read: minutes are 0 to 59",
    '"1,,2 * * * *"': "ERR CRON can't be read: a part of a list, a range or a step is missing",
    '"mon * * * *"': "ERR CRON can't be read: minutes take numbers: names stand for months and days of the week only",
    '"0 0 MON * *"': "ERR CRON can't be read: days of the month take numbers, L, LW and 15W",
    '"0 0 15W5 * *"': "ERR CRON can't be read: days of the month take numbers, L, LW and 15W",
    '"* * * MON *"': "ERR CRON can't be read: months take numbers and JAN to DEC",
    '"* * * * JAN"': "ERR CRON can't be read: "
    "days of the week take numbers, SUN to SAT, 5L and MON#1",
    '"0 0 1 * 1,L"': "ERR CRON can't be read: a day of the week needs a number before L, as 5L",
    '"*/90 * * * *"': "ERR CRON can't be read: minutes have 60 values there: a step is longer",
    '"0 0 30 2 *"': NEVER,
    '"0 0 31 2,4,6,9,11 *"': NEVER,
    '"0 0 31 * +MON#1"': NEVER,
}


@pytest.mark.parametrize("command", ["DQ.ADD {} k x CRON", "DQ.NEXT"])
def test_bad_cron_expressions_and_zones_are_refused(
    lone: Server, lone_session: Session, command: str
) -> None:
    table = [(f"{command} {expression}", error) for expression, error in EXPRESSIONS.items()]
    zones = ["Mars/Olympus", '""', "../etc/passwd", "EST5EDT,M3.2.0,M11.1.0", r'"\xff"', "x" * 100]
    table += [(f"{command} @daily TZ {zone}", NO_ZONE) for zone in zones]
    check_refused(lone, lone_session, table)


def test_schedule_options_that_exclude_each_other_are_refused(
    lone: Server, lone_session: Session
) -> None:
    no_id = "ERR option {} needs an id: with *, each call would make another schedule"
    table = [
        ("DQ.ADD {} k x EVERY 5 CRON @daily", "ERR options EVERY and CRON exclude each other"),
        ("DQ.ADD {} k x EVERY 5 TZ UTC", "ERR options EVERY and TZ exclude each other"),
        ("DQ.ADD {} k x EVERY 5 JITTER 5", "ERR JITTER must be shorter than EVERY"),
        ("DQ.ADD {} k x EVERY 5 MISFIRE TWO", "ERR MISFIRE must be ONE or ALL, not 'TWO'"),
        ("DQ.ADD {} k x EVERY 5 UNTIL 5", NO_RUN),
        ("DQ.ADD {} k x CRON @daily UNTIL 5", NO_RUN),
        ("DQ.ADD {} k x EVERY 5 NX ENSURE", "ERR options NX and ENSURE exclude each other"),
        (
            "DQ.ADD {} k x EVERY 5 ENSURE REPLACE",
            "ERR options REPLACE and ENSURE exclude each other",
        ),
        (
            "DQ.ADD {} k x EVERY 281474976710655",
            "ERR EVERY reaches past the last time there is, 281474976710655",
        ),
        ("DQ.ADD {} * x EVERY 5", no_id.format("EVERY")),
        ("DQ.ADD {} * x CRON @daily ENSURE", no_id.format("CRON")),
        ("DQ.ADD {} k x ENSURE", "ERR option ENSURE needs EVERY or CRON"),
    ]
    for option in ("TZ UTC", "MISFIRE ONE", "JITTER 5", "RUNS 5", "UNTIL 5"):
        table.append(
            (f"DQ.ADD {{}} k x {option}", f"ERR option {option.split()[0]} needs EVERY or CRON")
        )
    for option in ("KEEP", "TTL"):
        why = "a job with a schedule comes back when it is finished"
        error = f"ERR option {option} doesn't go with EVERY or CRON: {why}"
        table.append((f"DQ.ADD {{}} k x EVERY 5 {option} 5", error))
        table.append((f"DQ.ADD {{}} k x {option} 5 CRON @daily", error))
    check_refused(lone, lone_session, table)


@pytest.mark.parametrize(
    ("option", "least", "most"),
    [
        ("EVERY", 1, 281_474_976_710_655),
        ("EVERY 9 RUNS", 1, 4_294_967_295),
        ("EVERY 9 JITTER", 0, 281_474_976_710_655),
        ("EVERY 9 UNTIL", 0, 281_474_976_710_655),
    ],
)
def test_schedule_options_with_bad_numbers_are_refused(
    lone: Server, lone_session: Session, option: str, least: int, most: int
) -> None:
    name = option.split()[-1]
    error = f"ERR {name} must be an integer from {least} to {most}"
    values = ["x", "-1", "+1", "1.0", '""', str(most + 1), *([str(least - 1)] if least else [])]
    table = [(f"DQ.ADD {{}} k x {option} {value}", error) for value in values]
    table.append((f"DQ.ADD {{}} k x {option}", f"ERR option {name} needs a value"))
    table.append((f"DQ.ADD {{}} k x {option} 5 {name} 5", f"ERR option {name} is given twice"))
    check_refused(lone, lone_session, table)


def test_a_schedule_that_is_over_before_it_begins_leaves_no_key(lone: Server) -> None:
    """The time passes between the look at its limits and the command itself, for one in some
    hundreds: then there was a queue that no log knew."""
    with lone.client() as r:
        for round in range(30):
            begin, pipeline = now_ms(), r.pipeline(transaction=False)
            for n in range(200):
                due = begin + 1 + n // 20
                pipeline.execute_command(
                    "DQ.ADD", f"{round}:{n}", "j", "x", "EVERY", 1_000, "AT", due, "UNTIL", due
                )
            replies = pipeline.execute(raise_on_error=False)
            refused = [f"{round}:{n}" for n, reply in enumerate(replies) if reply != "j"]
            assert {str(replies[int(key.split(":")[1])]) for key in refused} <= {NO_RUN[4:]}
            assert not refused or r.exists(*refused) == 0
