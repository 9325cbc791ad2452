"""Bounded turns: how long each command and each run of the timer holds the event loop in its worst
case.

    make turns  # all, on every server of make test; writes docs/turns.md
    make turns ARGS="--only waiters --on valkey-9.1"

scenes/    the cases, by what is in the queue
subject    a server that is measured, and what one turn of its event loop took
table      what was measured against the bar, on the terminal and in docs/turns.md
"""
