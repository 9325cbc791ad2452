"""The transport: kombu's redis transport, with channels whose queues are DQ's.

What they have in common stays kombu's: URLs, TLS, connections, exchanges and bindings, fanout by
PUBLISH, the event loop.
"""

from __future__ import annotations

from typing import Any

from kombu.transport import redis as redis_transport

from kombu_dq import celery_app
from kombu_dq.channel import Channel
from kombu_dq.poller import Poller


class Transport(redis_transport.Transport):
    """For `dq://`. Celery takes it for a Redis: its events are fanout, its workers mingle and
    gossip.
    """

    Channel: Any = Channel
    driver_name = "dq"

    # A batch is a pipeline of commands that can't look at their replies; DQ.ADD has to.
    implements = redis_transport.Transport.implements.extend(batch_publish=False)
    supports_batch_publish: Any = False

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        celery_app.register_tasks()
        self.cycle: Any = Poller()

    def establish_connection(self) -> Any:
        """Raises a connection error also where the server is a replica, or has no room: kombu then
        waits before it tries again.
        """
        connection = super().establish_connection()
        channel = self._avail_channels[-1]
        try:
            channel.check_writable()
        except Exception:
            self._avail_channels.remove(channel)
            channel.close()
            raise
        return connection


class SSLChannel(Channel):
    def _connparams(self, asynchronous: bool = False) -> Any:
        client = self.connection.client
        if not isinstance(client.ssl, dict):  # kombu takes True for plain TCP
            client.ssl = {"ssl_cert_reqs": "required"}
        return super()._connparams(asynchronous)


class SSLTransport(Transport):
    """For `dqs://`: TLS, with a certificate that is verified unless `broker_use_ssl` says
    otherwise.
    """

    Channel: Any = SSLChannel
