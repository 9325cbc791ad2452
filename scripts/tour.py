"""The live tour of `make run`: tour.py PORT. Exits non-zero when a reply is not as promised."""

import sys
import textwrap
import time
from pathlib import Path

# The tour is a transcript, read and checked as those of the tests are.
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "blackbox"))

from harness.transcript import Mismatch, Session


def tour(session: Session) -> None:
    session.check("""
        # A job that is due at once. POP hands it out under a lease, <id> <body> <lease> <attempt>;
        # FINISH with the lease's number says that the work is done, and the job is gone.
        > DQ.ADD mail welcome "Hello, Ann"
        "welcome"
        > DQ.POP mail
        [["welcome", "Hello, Ann", <lease>, 1]]
        > DQ.FINISH mail welcome <lease>
        (integer) 1
        > DQ.GET mail welcome
        (nil)
        #
        # A job that is due in two seconds. No worker gets it before. One that waits (BLOCK) gets it
        # then.
    """)
    before = time.time()
    session.check("""
        > DQ.ADD mail reminder "Your trial ends today" DELAY 2000
        "reminder"
        > DQ.POP mail
        (nil)
        > DQ.LEN mail STATE delayed
        (integer) 1
        > DQ.POP mail BLOCK 5000
        [["reminder", "Your trial ends today", <due>, 1]]
    """)
    waited_ms = int(time.time() * 1000) - int(before * 1000)
    session.check(f"""
        # It was delivered {waited_ms} ms after it was added.
        > DQ.FINISH mail reminder <due>
        (integer) 1
        #
        # A worker that dies. It has one second for the job (TTR), and never reports back.
        > DQ.ADD mail invoice "No. 17" TTR 1000
        "invoice"
        > DQ.POP mail
        [["invoice", "No. 17", <lost>, 1]]
        > DQ.POP mail
        (nil)
        # A second later the job is back: the second attempt, under a new lease.
        > DQ.POP mail BLOCK 5000
        [["invoice", "No. 17", <held>, 2]]
        # If the first worker reports after all, it is too late: its lease is void.
        > DQ.FINISH mail invoice <lost>
        (integer) 0
        > DQ.FINISH mail invoice <held>
        (integer) 1
        #
        # A job that can't be done. Its worker gives up, with a reason. Somebody looks at it and has
        # it tried again.
        > DQ.ADD mail letter "To nobody"
        "letter"
        > DQ.POP mail
        [["letter", "To nobody", <returned>, 1]]
        > DQ.BURY mail letter <returned> REASON "no such address"
        (integer) 1
        > DQ.LEN mail STATE dead
        (integer) 1
        > DQ.KICK mail
        (integer) 1
        > DQ.POP mail NOACK
        [["letter", "To nobody", (nil), 1]]
        #
        # A job that is cancelled before it is due.
        > DQ.ADD mail survey "How was it?" DELAY 60000
        "survey"
        > DQ.DEL mail survey
        (integer) 1
        > DQ.DEL mail survey
        (integer) 0
        > DQ.LEN mail
        (integer) 0
    """)
    if not 2000 <= waited_ms < 2500:
        raise Mismatch(f"a job with DELAY 2000 was handed out after {waited_ms} ms")
    if not session["held"] > session["lost"]:
        raise Mismatch("a later lease has a smaller number")


def show(line: str) -> None:
    """Prints what is explained at the margin, the session indented."""
    if line.startswith("#"):
        print(line[2:], flush=True)
    else:
        print(textwrap.indent(line, "    "), flush=True)


if __name__ == "__main__":
    try:
        tour(Session(int(sys.argv[1]), echo=show))
    except (Mismatch, OSError) as trouble:
        sys.exit(f"\nNot as promised:\n{trouble}")
