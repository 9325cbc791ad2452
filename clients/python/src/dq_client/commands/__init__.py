"""Each command: its words, and how its reply is read. Nothing is sent here.

The names are the grammar's: a method's is that of the command, an option's is its token, in small
letters. Where Python keeps a name for itself it has an underscore (`from_`); DQ.DEL is `delete`,
DQ.MADD is `add_many`. DQ.POP and DQ.MPOP with FINISH reply something else, and are methods of their
own: `finish_and_pop`, `finish_and_mpop`. What an option means stands in DQ's documentation,
docs/commands.
"""

from dq_client.commands.base import NOTHING, Command, Id, Key, Lease, State, waiting
from dq_client.commands.consume import (
    PopOptions,
    bury,
    done,
    finish,
    finish_and_mpop,
    finish_and_pop,
    mpop,
    pop,
    release,
    renew,
    touch,
)
from dq_client.commands.look import (
    deps,
    forecast,
    get,
    groups,
    info,
    len_,
    next_,
    peek,
    result,
    scan,
)
from dq_client.commands.manage import alter, delete, kick, kickjob, pause, purge, resume
from dq_client.commands.produce import Add, AddOptions, JobOptions, add, add_many

__all__ = [
    "NOTHING",
    "Add",
    "AddOptions",
    "Command",
    "Id",
    "JobOptions",
    "Key",
    "Lease",
    "PopOptions",
    "State",
    "add",
    "add_many",
    "alter",
    "bury",
    "delete",
    "deps",
    "done",
    "finish",
    "finish_and_mpop",
    "finish_and_pop",
    "forecast",
    "get",
    "groups",
    "info",
    "kick",
    "kickjob",
    "len_",
    "mpop",
    "next_",
    "pause",
    "peek",
    "pop",
    "purge",
    "release",
    "renew",
    "result",
    "resume",
    "scan",
    "touch",
    "waiting",
]
