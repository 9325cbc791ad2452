"""The oracle: what must be true of a history, whatever happened to the servers. See ../README.md."""

from .judge import judge
from .verdict import KINDS, Verdict, Violation

__all__ = ["KINDS", "Verdict", "Violation", "judge"]
