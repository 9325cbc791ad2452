"""Which error replies are expected."""

from ..resp import Failure
from .case import Case

# The server's own, whatever was asked.
ALWAYS = (
    "READONLY",
    "LOADING",
    "NOREPLICAS",
    "MASTERDOWN",
    "MISCONF",
    "UNBLOCKED",
    "EXECABORT",
    "BUSYKEY",
    "IOERR",
)
# Memory is full: commands that add are refused, and no others.
ADDS = {"DQ.ADD", "COPY", "RESTORE"}
BY_VERB = {"DQ.ADD": ("EXISTS", "FULL")}
ABOUT_KEYS = (
    "ERR no such key",
    "ERR source and destination objects are the same",
    "ERR index out of range",
)


def _is_too_late(case: Case, told: Failure) -> bool:
    """The UNTIL of the command may have passed while the command was on its way."""
    words = case.words
    is_over = "UNTIL" in words and words[words.index("UNTIL") + 1] < case.now[1]
    return is_over and told.startswith("ERR the job would never run")


def _is_without_a_place(case: Case, told: Failure) -> bool:
    """A walk through ready jobs: the job after which it was to go on has left."""
    is_walk = case.verb == "DQ.PEEK" and "AFTER" in case.words and "FROM" not in case.words
    return is_walk and told.startswith("ERR AFTER names no job")


def judge(case: Case) -> None:
    told = case.told
    if not isinstance(told, Failure):
        return
    is_allowed = told.startswith((*ALWAYS, *ABOUT_KEYS, *BY_VERB.get(case.verb, ())))
    # A transaction or a script is refused as a whole.
    is_full = told.startswith("OOM") and (
        case.verb in ADDS or case.op.shape in ("multi", "script", "sealed")
    )
    is_over = _is_too_late(case, told) or _is_without_a_place(case, told)
    if not is_allowed and not is_full and not is_over:
        case.violation(
            "error", f"{case.verb}: {told}", case.words[1] if len(case.words) > 1 else None
        )
