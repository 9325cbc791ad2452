"""Headers that travel with a body, such as the context of a trace.

    dq:1 {"traceparent":"00-…"}\\n{"to":"ann"}

A body with headers begins with `dq:1 `, the headers as one line of JSON, and a newline; the body as
the codec made it follows. A body without headers stays as it is, unless it begins with `dq:1 ` by
itself: then it gets empty headers, so that every body comes back as it was.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

_MARK = b"dq:1 "


def wrapped(body: bytes, headers: Mapping[str, str]) -> bytes:
    if not headers and not body.startswith(_MARK):
        return body
    line = json.dumps(dict(headers), ensure_ascii=False, separators=(",", ":"))
    return b"%b%b\n%b" % (_MARK, line.encode("utf-8", "backslashreplace"), body)


def unwrapped(payload: bytes) -> tuple[bytes, dict[str, str]]:
    """The body and its headers. What only looks like an envelope is a body."""
    if not payload.startswith(_MARK):
        return payload, {}
    line, newline, body = payload[len(_MARK) :].partition(b"\n")
    try:
        headers = json.loads(line) if newline else None
    except (ValueError, RecursionError):  # no JSON, or brackets without end
        headers = None
    if not isinstance(headers, dict):
        return payload, {}
    return body, {str(name): str(value) for name, value in headers.items()}
