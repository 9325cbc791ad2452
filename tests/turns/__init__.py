"""Bounded turns: the longest time for which each command and each run of the timer holds the event
loop.

    make turns  # all cases, on every server of make test; writes docs/turns.md
    make turns ARGS="--only waiters --on valkey-9.1"

scenes/    the cases, by what is in the queue
subject    a server that is measured, and how long one turn of its event loop took
table      the measurements beside the bar, in the terminal and in docs/turns.md
"""
