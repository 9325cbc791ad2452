"""The address of a server that can move, like that of a service with a failover.

address = Address(primary.port)
url = f"redis://127.0.0.1:{address.port}"
address.lead_to(replica.port)     # new connections go there; old ones stay where they are
address.silence()                 # open connections carry nothing any more, and stay open
address.cut()                     # closes open connections, and new ones too, until lead_to
"""

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any


class Address:
    """A port of this machine. Its connections are passed on to another port."""

    def __init__(self, port: int):
        self._leads_to: int | None = port
        self._carriers: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._listener = self._call(asyncio.start_server(self._accept, "127.0.0.1", 0))
        self.port = self._listener.sockets[0].getsockname()[1]

    def lead_to(self, port: int) -> None:
        self._leads_to = port

    def silence(self) -> None:
        self._call(self._stop_carrying())

    def cut(self) -> None:
        self._leads_to = None
        self._call(self._hang_up())

    def close(self) -> None:
        self._leads_to = None
        self._call(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _call(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(timeout=10)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        if self._leads_to is None:
            writer.close()
            return
        try:
            there_reader, there_writer = await asyncio.open_connection("127.0.0.1", self._leads_to)
        except ConnectionRefusedError:  # that server is down
            writer.close()
            return
        self._writers.add(there_writer)
        for source, sink in ((reader, there_writer), (there_reader, writer)):
            carrier = asyncio.create_task(carry(source, sink))
            self._carriers.add(carrier)
            carrier.add_done_callback(self._carriers.discard)

    async def _stop_carrying(self) -> None:
        carriers = list(self._carriers)
        for carrier in carriers:
            carrier.cancel()
        await asyncio.gather(*carriers, return_exceptions=True)

    async def _end(self) -> None:
        # In the loop: a connection that ends at the same time ends the listener, too.
        self._listener.close()
        await self._hang_up()

    async def _hang_up(self) -> None:
        await self._stop_carrying()
        for writer in self._writers:
            writer.close()
        self._writers.clear()


async def carry(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    """Copies bytes until one end closes. When cancelled, it leaves both ends open."""
    try:
        while data := await source.read(65_536):
            sink.write(data)
            await sink.drain()
    except ConnectionError:
        pass
    sink.close()
