"""The cases, by what is in the queue. A scene prepares a server and measures commands and timer
runs on it.
"""

from collections.abc import Callable

from turns.subject import Subject

# Why a turn may be longer than the bar. README and docs/turns.md name them.
BATCH = "the batch that was asked for"
SERVER = "the server copies, writes or reads the key as a whole"
EXPRESSIONS = "250 expressions have to be read"
CLIENTS = "the server closes its clients: as long for BLPOP"
NEW_KEY = "the server goes over all who wait at a new key, as for BLPOP"

Scene = Callable[[Subject, int], None]
