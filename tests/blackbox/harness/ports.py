"""Ports for what isn't one of the harness's servers."""

from harness.server import claimed_port

CLAIMS = []


def free_port() -> int:
    """Ours until the tests end."""
    port, claim = claimed_port()
    CLAIMS.append(claim)
    return port
