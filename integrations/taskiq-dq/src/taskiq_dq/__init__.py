"""taskiq on DQ, the delay queue of Redis and Valkey: a broker, a result backend, and schedules that
the server carries out.

from taskiq_dq import DQBroker, DQResultBackend

broker = DQBroker("redis://127.0.0.1:6379/0").with_result_backend(
    DQResultBackend("redis://127.0.0.1:6379/0")
)
"""

from taskiq_dq.broker import DQBroker
from taskiq_dq.results import DQResultBackend, ResultIsMissing, ResultNotStored
from taskiq_dq.schedules import DQScheduleSource

__version__ = "0.1.0"

__all__ = ["DQBroker", "DQResultBackend", "DQScheduleSource", "ResultIsMissing", "ResultNotStored"]
