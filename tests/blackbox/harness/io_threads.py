"""Servers that read and write on threads."""

from harness.server import Kind


def io_threads(kind: Kind, threads: int) -> tuple[str, ...]:
    """Lines of the server's configuration for this many I/O threads, which work even under little
    load.
    """
    if kind.family == "valkey":
        return f"io-threads {threads}", "events-per-io-thread 0"
    if kind.is_since("redis", 8):
        return (f"io-threads {threads}",)
    return f"io-threads {threads}", "io-threads-do-reads yes"
