"""A real Prometheus scrapes dq-board; each expression of dashboard and alerts is evaluated on
that.
"""

import json
import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import redis

from board import BINARY, Board
from harness.server import Server, eventually
from prometheus import ALERTS, Prometheus
from samples import RIGHTS, every_state, flow, pipe

ROOT = Path(__file__).resolve().parents[2]
DASHBOARD = json.loads((ROOT / "grafana" / "dq.json").read_text())
RUNBOOK = (ROOT / "docs" / "alerts.md").read_text()

# Label values that the text format must escape.
HOSTILE = [b'a"b', b"a\\b", b"a\nb", b'"} 1\ndq_up 7\n', b"\xff", "東京".encode(), b""]


def expressions() -> list[str]:
    """Those of the dashboard, with its variables put in as Grafana does for `All`."""
    found = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
    variables = {"$queue": ".*", "$instance": ".*", "$__rate_interval": "1m"}
    for name, value in variables.items():
        found = [expression.replace(name, value) for expression in found]
    assert not [expression for expression in found if "$" in expression]
    return found


def test_every_expression_of_the_dashboard_has_something_to_show(
    prometheus: Prometheus, r: redis.Redis
):
    every_state(r)
    r.execute_command("DQ.ADD", "mail", "another", "x")
    pipe(
        r,
        ("DQ.ALTER", "full-hands", "CONCURRENCY", 1),
        *[("DQ.ADD", "full-hands", name, "x") for name in ("one", "two")],
        ("DQ.POP", "full-hands"),
    )
    flow(r)
    pipe(
        r,
        ("DQ.ALTER", "leaves", "SINK", "out"),
        ("SET", "text", "no stream"),
        ("DQ.ALTER", "stays", "SINK", "text"),
        *[("DQ.ADD", name, "a", "x") for name in ("leaves", "stays", *HOSTILE)],
    )
    eventually(lambda: prometheus.query("count(dq_jobs) >= 40"), 20)
    eventually(lambda: prometheus.query("rate(dq_added_total[1m])"), 20)
    (target,) = prometheus.api("targets")["activeTargets"]
    assert (target["health"], target["lastError"]) == ("up", "")

    for expression in expressions():
        assert prometheus.query(expression), f"nothing is shown for {expression}"

    # Between two steps of the histogram it is a guess, and no later than the latest.
    (late,) = [one for one in expressions() if "histogram_quantile" in one]
    for found in prometheus.query(f"({late}) > 0"):
        queue = json.dumps(found["metric"]["queue"])
        most = f'dq_lateness_quantile_seconds{{quantile="1", queue={queue}}}'
        assert float(found["value"][1]) <= float(prometheus.query(most)[0]["value"][1])

    rules = [rule for group in prometheus.api("rules")["groups"] for rule in group["rules"]]
    assert len(rules) == 16 and {rule["health"] for rule in rules} <= {"ok", "unknown"}
    told = set(prometheus.api("label/__name__/values"))
    sections = {
        f"docs/alerts.md#{title.lower()}"
        for title in re.findall(r"^## (Dq\w+)$", RUNBOOK, re.MULTILINE)
    }
    assert {rule["annotations"]["runbook"] for rule in rules} == sections
    for rule in rules:
        prometheus.query(rule["query"])
        assert set(re.findall(r"dq_\w+", rule["query"])) <= told, rule["name"]

    assert prometheus.query('dq_jobs{queue="mail", state="dead"}')[0]["value"][1] == "1"
    assert float(prometheus.query('dq_delivered_total{queue="mail"}')[0]["value"][1]) == 3
    within = prometheus.query('dq_lateness_seconds_bucket{queue="mail", le="3600.0"}')
    assert within[0]["value"][1] == "3"
    names = {found["metric"]["queue"] for found in prometheus.query("dq_paused")}
    assert names == {
        "mail",
        "full-hands",
        "flow",
        "leaves",
        "stays",
        'a"b',
        r"a\\b",
        r"a\nb",
        r'"} 1\ndq_up 7\n',
        r"\xff",
        "東京",
        r"\empty",
    }


def test_limits_schedules_and_lateness_are_told(board: Board, r: redis.Redis):
    pipe(
        r,
        ("DQ.ALTER", "mail", "CONCURRENCY", 1),
        *[("DQ.ADD", "mail", f"job-{n}", "x") for n in range(3)],
        ("DQ.POP", "mail"),
        ("DQ.POP", "mail"),
        ("DQ.ADD", "reports", "nightly", "x", "EVERY", 20, "DELAY", 0),
    )
    due = due_of(r, "reports", "nightly")
    eventually(lambda: time.time() * 1000 > due + 100)
    r.execute_command("DQ.POP", "reports")
    eventually(lambda: board.metrics().get('dq_missed_total{queue="reports"}', 0) >= 5)
    told = board.metrics()
    assert told['dq_schedules{queue="reports"}'] == 1
    assert told['dq_concurrency{queue="mail"}'] == 1
    assert told['dq_blocked{queue="mail"}'] == 1
    late = {float(le): told[name] for name in told if (le := within(name, "reports")) is not None}
    assert sorted(late) == [0.001, 0.01, 0.1, 1, 10, 60, 600, 3600, float("inf")]
    assert (late[0.01], late[3600], late[float("inf")]) == (0, 1, 1)
    assert told['dq_lateness_seconds_count{queue="reports"}'] == 1
    assert told['dq_lateness_seconds_sum{queue="reports"}'] >= 0.1


def test_held_jobs_watchers_and_sinks_are_told(board: Board, server: Server, r: redis.Redis):
    flow(r)
    pipe(r, ("SET", "out", "no stream"), ("DQ.ALTER", "leaves", "SINK", "out"))
    r.execute_command("DQ.ADD", "leaves", "a", "x")
    with server.client() as other:
        connection = other.connection_pool.get_connection()
        connection.send_command("DQ.RESULT", "flow", "ship", "BLOCK", 60_000)
        eventually(lambda: board.metrics().get('dq_sink_error{queue="leaves"}') == 1)
        eventually(lambda: board.metrics()['dq_watchers{queue="flow"}'] == 1)
        eventually(lambda: of_server(board, "dq_server_watchers") == 1, 20)
        connection.disconnect()
    told = board.metrics()
    assert told['dq_jobs{queue="flow",state="held"}'] == 1
    assert told['dq_held_behind_dead{queue="flow"}'] == 1
    assert told['dq_sink_error{queue="flow"}'] == told['dq_held_behind_dead{queue="leaves"}'] == 0
    assert of_server(board, "dq_server_jobs", 'state="held"') == 1

    # What was wrong is over.
    pipe(r, ("DEL", "out"), ("DQ.DEL", "flow", "pay"))
    eventually(lambda: board.metrics()['dq_sink_error{queue="leaves"}'] == 0)
    eventually(lambda: board.metrics()['dq_held_behind_dead{queue="flow"}'] == 0)
    eventually(lambda: of_server(board, "dq_server_sunk_total") == 1, 20)


def of_server(board: Board, name: str, label: str = "") -> float:
    (value,) = [
        value for key, value in board.metrics().items() if key.startswith(name) and label in key
    ]
    return value


def within(series: str, queue: str) -> str | None:
    found = re.fullmatch(rf'dq_lateness_seconds_bucket{{le="([^"]+)",queue="{queue}"}}', series)
    return found and found[1]


def due_of(r: redis.Redis, queue: str, job_id: str) -> int:
    job = r.execute_command("DQ.GET", queue, job_id)
    return job[job.index(b"due") + 1]


def test_alerts_for_eviction_and_a_lost_server_fire(
    prometheus: Prometheus, server: Server, r: redis.Redis
):
    r.config_set("maxmemory-policy", "allkeys-lru")

    def pending() -> set[str]:
        return {alert["labels"]["alertname"] for alert in prometheus.api("alerts")["alerts"]}

    eventually(lambda: "DqEvictionRisk" in pending(), 30)
    server.kill9()
    eventually(lambda: "DqServerGone" in pending(), 30)


def test_promtool_finds_nothing_wrong_with_metrics_and_alerts():
    for words in (["check", "rules", "alerts.yml"], ["test", "rules", "alerts_test.yml"]):
        done = subprocess.run(
            ["promtool", *words], cwd=ALERTS.parent, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_dashboard_loads_as_it_is():
    """What Grafana needs of a dashboard that was not exported from it."""
    variables = {variable["name"] for variable in DASHBOARD["templating"]["list"]}
    used = set(re.findall(r"\$\{?(\w+)", json.dumps(DASHBOARD))) - {"__rate_interval", "__all"}
    assert used == variables
    assert DASHBOARD["uid"] and "id" not in DASHBOARD and "__inputs" not in DASHBOARD
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(ids)) == len(ids)
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in DASHBOARD["panels"]]
    assert len(set(places)) == len(places)
    for panel in DASHBOARD["panels"]:
        assert panel["datasource"]["uid"] == "${datasource}", panel["title"]


def test_no_id_is_a_label_and_old_figures_are_not_told(
    board: Board, server: Server, r: redis.Redis
):
    every_state(r)
    r.execute_command(
        "DQ.ADD", "mail", "of-a-group", "x", "GROUP", "customer-7", "DELAY", 3_600_000
    )
    r.execute_command("DQ.PAUSE", "mail", "GROUP", "customer-7")
    eventually(lambda: board.metrics().get('dq_jobs{queue="mail",state="delayed"}') == 2)
    assert "customer-7" not in board.get("/metrics").text
    labels = set(re.findall(r'[{,](\w+)="', board.get("/metrics").text))
    assert labels == {"queue", "state", "quantile", "le", "seconds", "server", "version"}
    r.delete("mail")
    eventually(lambda: not [name for name in board.metrics() if "mail" in name], 10)


def test_the_exporter_is_the_same_program(server: Server, r: redis.Redis, tmp_path: Path):
    every_state(r)
    exporter = tmp_path / "dq-exporter"
    exporter.symlink_to(BINARY)
    board = Board(server, tmp_path, "--metrics-queues", "0", program=exporter)
    try:
        eventually(lambda: board.metrics().get("dq_queues") == 1)
        told = board.metrics()
        assert told["dq_queues_left_out"] == 1
        (added,) = [told[name] for name in told if name.startswith("dq_server_added_total")]
        (dead,) = [
            told[name] for name in told if name.startswith("dq_server_jobs") and '"dead"' in name
        ]
        info = r.info("dq")
        assert (added, dead) == (info["dq_jobs_added"], info["dq_jobs_dead"]) and dead > 0
        assert board.get("/").status == 404
    finally:
        board.stop()


def test_what_is_due_soon_and_how_old_the_backlog_is_are_told(
    boards: Callable[..., Board], server: Server, r: redis.Redis
):
    board = boards()
    add = ("DQ.ADD", "mail")
    pipe(r, (*add, "ready", "x"), *[("DQ.ADD", name, "a", "x") for name in ("idle", "stopped")])
    pipe(r, *[(*add, f"in-{s}", "x", "DELAY", s * 1000) for s in (45, 200, 800, 5000)])
    pipe(r, ("DQ.POP", "idle"), ("DQ.PAUSE", "stopped"))

    def due(queue: str) -> list[float | None]:
        told = board.metrics()
        spans = ("60", "300", "900")
        return [told.get(f'dq_due_within{{queue="{queue}",seconds="{s}"}}') for s in spans]

    eventually(lambda: due("mail") == [1, 2, 3], 20)
    assert due("idle") == due("stopped") == [0, 0, 0]

    def waits(metric: str, queue: str) -> float:
        return board.metrics().get(f'{metric}{{queue="{queue}"}}', 0)

    eventually(lambda: waits("dq_backlog_seconds", "mail") > 0, 20)
    eventually(lambda: waits("dq_oldest_ready_seconds", "stopped") > 0, 20)
    assert waits("dq_backlog_seconds", "stopped") == waits("dq_backlog_seconds", "idle") == 0
    r.execute_command("DQ.RESUME", "stopped")
    eventually(lambda: waits("dq_backlog_seconds", "stopped") > 0, 20)

    # What was due soon has been taken away, and the figures with it.
    r.execute_command("DQ.DEL", "mail", "in-45", "in-200")
    eventually(lambda: due("mail") == [0, 0, 1], 20)
    r.execute_command("DQ.DEL", "mail", "in-800")
    eventually(lambda: due("mail") == [0, 0, 0], 20)


def test_without_the_right_to_forecast_what_is_due_is_not_told(
    boards: Callable[..., Board], server: Server, r: redis.Redis
):
    rights = RIGHTS.replace(" +dq.forecast", "").split()
    r.execute_command("ACL", "SETUSER", "board", "on", ">sEcReT", *rights)
    r.execute_command("DQ.ADD", "mail", "a", "x", "DELAY", 45_000)
    board = boards(redis=f"redis://board:sEcReT@127.0.0.1:{server.port}")
    eventually(lambda: board.metrics().get('dq_jobs{queue="mail",state="delayed"}') == 1, 20)
    told = board.metrics()
    assert told["dq_up"] == 1
    assert not [name for name in told if name.startswith("dq_due_within")]
