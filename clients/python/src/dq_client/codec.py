"""How a value becomes the body of a job, and the result of one."""

from __future__ import annotations

import importlib
import json
from typing import Any, Protocol


class Codec(Protocol):
    def encode(self, value: Any) -> bytes: ...

    def decode(self, data: bytes) -> Any: ...


class Json:
    """JSON in UTF-8, without spaces, as JavaScript and serde_json write it. The default."""

    def encode(self, value: Any) -> bytes:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        # Half a surrogate pair, which UTF-8 can't say, becomes \\udXXX, as in JavaScript.
        return text.encode("utf-8", "backslashreplace")

    def decode(self, data: bytes) -> Any:
        return json.loads(data)


class Raw:
    """Bytes as they are. Text is taken, as UTF-8, and comes back as bytes."""

    def encode(self, value: Any) -> bytes:
        if isinstance(value, str):
            return value.encode()
        if isinstance(value, (bytes, bytearray, memoryview)):
            return bytes(value)
        raise TypeError(f"the raw codec takes bytes or text, not {type(value).__name__}")

    def decode(self, data: bytes) -> Any:
        return data


class Msgpack:
    """MessagePack, with the package msgpack (`pip install dq-client[msgpack]`)."""

    def __init__(self) -> None:
        self._msgpack = importlib.import_module("msgpack")

    def encode(self, value: Any) -> bytes:
        packed: bytes = self._msgpack.packb(value)
        return packed

    def decode(self, data: bytes) -> Any:
        return self._msgpack.unpackb(data)


JSON: Codec = Json()
RAW: Codec = Raw()
