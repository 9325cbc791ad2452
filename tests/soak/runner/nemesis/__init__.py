"""The steps of the nemesis, by the names that profiles and histories use."""

from ..storm import Step
from . import clients, crash, keys, limits, quiet, replication

STEPS: dict[str, Step] = {
    "crash": crash.crash,
    "restart": crash.restart,
    "save": crash.save,
    "client-kill": clients.kill_clients,
    "client-unblock": clients.unblock_clients,
    "client-pause": clients.pause_clients,
    "sigstop": clients.freeze,
    "ambush": clients.ambush,
    "debug-reload": clients.reload,
    "debug-loadaof": clients.load_aof,
    "cut-link": replication.cut_link,
    "full-sync": replication.full_sync,
    "interrupted-sync": replication.interrupted_sync,
    "restart-replica": replication.restart_replica,
    "freeze-replica": replication.freeze_replica,
    "failover": replication.failover,
    "depose": replication.depose,
    "demote-ambush": replication.demote_ambush,
    "kill-primary": replication.kill_primary,
    "oom": limits.fill_memory,
    "min-replicas": limits.want_replicas,
    "clock": limits.shift_clock,
    "migrate": keys.migrate,
    "quiet": quiet.quiet,
}
