"""Dramatiq on DQ, the delay queue of Redis and Valkey: a broker and a result backend.

import dramatiq
from dramatiq_dq import DQBroker

dramatiq.set_broker(DQBroker(url="redis://127.0.0.1:6379/0"))
"""

from dramatiq_dq.broker import DQBroker
from dramatiq_dq.results import DQBackend, ResultNotStored

__version__ = "0.1.0"

__all__ = ["DQBackend", "DQBroker", "ResultNotStored"]
