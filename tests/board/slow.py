"""A server that is far away: a relay in front of it, which lets each request wait, or loses one."""

import contextlib
import socket
import threading
import time
from collections.abc import Callable

from harness.server import Server


class Slow:
    """Listens on a port of its own; each connection has two threads, which end with it."""

    def __init__(self, server: Server, delay_s: float):
        self._server, self.delay_s = server, delay_s
        # Whether a request is passed on: one that isn't ends its connection.
        self.passes: Callable[[bytes], bool] = lambda _: True
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"redis://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(("127.0.0.1", self._server.port))
                for ends in ((near, far), (far, near)):
                    args = (*ends, ends[0] is near)
                    threading.Thread(target=self._pass_on, args=args, daemon=True).start()

    def _pass_on(self, source: socket.socket, sink: socket.socket, is_slow: bool) -> None:
        with contextlib.suppress(OSError), source, sink:
            while data := source.recv(1 << 16):
                if is_slow:
                    time.sleep(self.delay_s)
                    if not self.passes(data):
                        return
                sink.sendall(data)
