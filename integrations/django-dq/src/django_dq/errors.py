"""Errors that the results of tasks tell of."""


class NoOutcome(Exception):
    """The last attempt ended without a word of the task: its worker was killed, or an operator
    buried the job. The traceback of such an error in `TaskResult.errors` is the server's reason.
    """
