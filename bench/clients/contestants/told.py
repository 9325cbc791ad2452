"""What a handler tells of a job that has a due time: how late it is, in a file."""

import os
import time

# What LATE jobs have for their delay, and how far apart they are added. Servers count whole
# milliseconds, so due times are whole ones.
DELAY_MS = 500
EVERY_S = 0.02


def tell(due: float | None) -> None:
    """`due` is in milliseconds. One write a line, so that processes don't mix theirs."""
    if due is None:
        return
    late = time.time() * 1_000 - due
    file = os.open(os.environ["LATE_FILE"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, f"{late:.3f}\n".encode())
    os.close(file)
