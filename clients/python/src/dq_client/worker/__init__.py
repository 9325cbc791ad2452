"""A worker takes jobs, runs a handler for each, and says what came of it."""

from dq_client.worker.outcomes import Bury, Done, Retry
from dq_client.worker.running import AsyncRunningJob, RunningJob
from dq_client.worker.worker import Worker

__all__ = ["AsyncRunningJob", "Bury", "Done", "Retry", "RunningJob", "Worker"]
