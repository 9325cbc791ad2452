"""A real Prometheus scrapes dq-board; each expression of dashboard and alerts is evaluated on
that.
"""

import json
import re
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from board import BINARY, Board
from harness.ports import free_port
from harness.server import Server, eventually
from samples import every_state, flow, pipe

ROOT = Path(__file__).resolve().parents[2]
DASHBOARD = json.loads((ROOT / "grafana" / "dq.json").read_text())
RUNBOOK = (ROOT / "docs" / "alerts.md").read_text()
ALERTS = ROOT / "prometheus" / "alerts.yml"

# Label values that the text format must escape.
HOSTILE = [b'a"b', b"a\\b", b"a\nb", b'"} 1\ndq_up 7\n', b"\xff", "東京".encode(), b""]


class Prometheus:
    def __init__(self, directory: Path, target: str):
        self.url = f"http://127.0.0.1:{free_port()}"
        config = directory / "prometheus.yml"
        config.write_text(
            f"global: {{ scrape_interval: 1s, evaluation_interval: 1s }}\n"
            f"rule_files: ['{ALERTS}']\n"
            f"scrape_configs: [{{ job_name: dq, static_configs: [{{ targets: ['{target}'] }}] }}]\n"
        )
        with (directory / "prometheus.log").open("wb") as log:
            self.process = subprocess.Popen(
                [
                    *("setpriv", "--pdeathsig", "KILL", "prometheus", f"--config.file={config}"),
                    f"--storage.tsdb.path={directory / 'data'}",
                    f"--web.listen-address={self.url.removeprefix('http://')}",
                ],
                stdout=log,
                stderr=log,
            )
        eventually(self._is_ready, 30)

    def _is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/-/ready", timeout=10) as answer:
                return answer.status == 200
        except OSError:
            return False

    def api(self, path: str, **fields: str) -> Any:
        url = f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(fields)}"
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{fields}: {error.read().decode()}") from None

    def query(self, expression: str) -> list[dict[str, Any]]:
        return self.api("query", query=expression)["result"]

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(10)


@pytest.fixture
def prometheus(board: Board, tmp_path: Path) -> Iterator[Prometheus]:
    prometheus = Prometheus(tmp_path, board.url.removeprefix("http://"))
    yield prometheus
    prometheus.stop()


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

    rules = [rule for group in prometheus.api("rules")["groups"] for rule in group["rules"]]
    assert len(rules) == 15 and {rule["health"] for rule in rules} <= {"ok", "unknown"}
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
    assert labels == {"queue", "state", "quantile", "le", "server", "version"}
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
