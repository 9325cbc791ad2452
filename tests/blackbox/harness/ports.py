"""Free ports, for programs that are not one of the harness's servers."""

from harness.server import claimed_port

CLAIMS = []


def free_port() -> int:
    """A port that no other test gets until the tests end."""
    port, claim = claimed_port()
    CLAIMS.append(claim)
    return port
