"""A kombu transport for DQ, a delay queue for Redis and Valkey.

Once the package is installed, `dq://host:6379/0` is a broker URL, for Celery and everything else
that is built on kombu. Whoever uses bare kombu may have to `import kombu_dq` before the first
Connection.
"""

# No more than this is imported: kombu itself imports this module, while it is only half there.
from kombu import transport as _transport

__version__ = "0.1.0"

_transport.TRANSPORT_ALIASES.setdefault("dq", "kombu_dq.transport:Transport")
_transport.TRANSPORT_ALIASES.setdefault("dqs", "kombu_dq.transport:SSLTransport")

#: What the entry point in pyproject.toml gives kombu: a serializer that neither encodes nor
#: decodes. It is there because reading it imports this module.
SERIALIZER = (None, None, "application/x-dq")
