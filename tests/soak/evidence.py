"""The part of a history that shows a violation: the operations on that job or queue, and the faults between them."""

import json
from pathlib import Path

from .history import Op, Record, read
from .oracle import Violation

LINES_MAX = 40
WORD_MAX = 24
# Of a queue the last operations are shown, of a job all.
QUEUE_OPS_MAX = 12
WHOLE_KEYSPACE = {"SWAPDB", "FLUSHDB", "DEBUG"}


def evidence(path: Path, violation: Violation) -> list[str]:
    """The shortest history that a person needs to understand the violation, in the order of the marks."""
    shown: list[tuple[int, str]] = []
    ops: list[tuple[int, Op]] = []
    for record in read(path):
        if "op" in record:
            op = Op.of(record)
            if op.id in violation.ops or _is_about(op, violation):
                ops.append((op.sent, op))
        elif "nemesis" in record or ("epoch" in record and "cut" in record and "why" in record):
            shown.append((record["at"], _event(record)))
    ops.sort(key=lambda pair: pair[0])
    last = max((at for at, op in ops if op.id in violation.ops), default=violation.at)
    ops = [pair for pair in ops if pair[0] <= last]
    if violation.id is None:
        ops = ops[-QUEUE_OPS_MAX:]
    first = ops[0][0] if ops else last
    lines = [pair for pair in shown if first <= pair[0] <= last] + [
        (at, _line(op, violation)) for at, op in ops
    ]
    lines.sort(key=lambda pair: pair[0])
    return [f"{at / 1e6:10.4f} {line}" for at, line in lines[-LINES_MAX:]]


def _is_about(op: Op, violation: Violation) -> bool:
    if violation.key is None:
        return False
    verb = str(op.say[0][0]).upper()
    key = violation.key.split("/", 1)[1]
    if verb in WHOLE_KEYSPACE:
        return True
    words = {str(word) for words in op.say for word in words[1:]}
    if violation.id is None:
        return key in words
    if violation.id in words:
        return True
    # Where the job was told of, under whichever key it was at the time.
    if verb in ("DQ.POP", "DQ.MPOP", "DQ.PEEK", "DQ.SCAN", "DQ.ADD"):
        return json.dumps(violation.id) in json.dumps(op.record().get("told"))
    return not verb.startswith("DQ.") and key in words


def _event(record: Record) -> str:
    if "nemesis" in record:
        what = {name: value for name, value in record.items() if name not in ("nemesis", "at")}
        return f"---- {record['nemesis']} {what}"
    where = f"epoch {record['epoch']} on {record['server']} ({record['why']})"
    return f"---- {where}, {record['cut']} marks survived"


def _line(op: Op, violation: Violation) -> str:
    star = "*" if op.id in violation.ops else " "
    begin = f"{op.before[0]}@{op.before[1] // 1000}" if op.before else "?"
    end = f"{op.after[0]}@{op.after[1] // 1000}" if op.after else "?"
    said = "; ".join(" ".join(_short(word) for word in words) for words in op.say[:14])
    told = _short_reply(op.told) if op.told is not None else f"({op.lost})"
    return f"{star} op {op.id} {op.client} e{op.epoch} db{op.db} {op.shape} [{begin} {end}] {said} -> {told}"[
        :600
    ]


def _short(word: object) -> str:
    text = str(word)
    return ascii(text if len(text) <= WORD_MAX else text[:WORD_MAX] + "…")[1:-1]


def _short_reply(reply: object) -> str:
    if isinstance(reply, list):
        return "[" + ", ".join(_short_reply(item) for item in reply[:30]) + "]"
    return "nil" if reply is None else _short(reply)
