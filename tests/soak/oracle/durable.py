"""What must have survived a crash or a failover. The server promises it, and everything else rests on it."""

from .timeline import Epoch, Timeline
from .verdict import Verdict, Violation


def judge(line: Timeline, verdict: Verdict) -> None:
    for epoch in line.epochs:
        if epoch.parent is not None:
            _judge_cut(line.epochs[epoch.parent], epoch, verdict)


def _judge_cut(parent: Epoch, epoch: Epoch, verdict: Verdict) -> None:
    kept, waited = epoch.record.get("kept"), epoch.record.get("waited")
    verdict.counts["cuts"] += 1
    for window in parent.windows:
        op = window.op
        if kept is None or op.after is None or op.got is None:
            continue
        if op.got <= kept and op.after[0] > epoch.cut:
            text = f"replied to before {kept}, and not among the {epoch.cut} marks after the {epoch.why}"
            verdict.violations.append(Violation("durability", text, (op.id,), at=epoch.begun_at))
            return
    if waited is not None and waited > epoch.cut:
        text = f"WAIT told of {waited} marks, and {epoch.cut} were left after the {epoch.why}"
        verdict.violations.append(Violation("durability", text, at=epoch.begun_at))
