"""The manifests of docs/autoscaling.md, and what comes of them.

Kinds of Kubernetes are held against its schemas. What KEDA and prometheus-adapter would ask, as
their manifests say it, is asked here of a real dq-board and of a real Prometheus.
"""

import re
import subprocess
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import redis
import yaml

from board import Board
from harness.server import Server, eventually
from prometheus import Prometheus
from samples import HOUR, pipe
from scaler import Scaler

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "kubernetes" / "autoscaling"
PAGE = (ROOT / "docs" / "autoscaling.md").read_text()
Manifest = dict[str, Any]

# What a trigger of each type must have, by KEDA's documentation.
TRIGGERS = {
    "external-push": {"scalerAddress"},
    "prometheus": {"serverAddress", "query", "threshold"},
    "metrics-api": {"url", "valueLocation", "targetValue", "format"},
}


def manifests() -> Iterator[tuple[str, Manifest]]:
    for path in sorted(FOLDER.glob("*.yaml")):
        for manifest in yaml.safe_load_all(path.read_text()):
            yield path.name, manifest


def of_kind(kind: str) -> list[Manifest]:
    return [manifest for _, manifest in manifests() if manifest.get("kind") == kind]


def triggers(type_: str) -> list[dict[str, str]]:
    found = [
        trigger["metadata"]
        for manifest in of_kind("ScaledObject")
        for trigger in manifest["spec"]["triggers"]
        if trigger["type"] == type_
    ]
    assert found
    return found


def adapter_rule() -> Manifest:
    values = yaml.safe_load((FOLDER / "prometheus-adapter.yaml").read_text())
    (rule,) = values["rules"]["external"]
    return rule


def samples(r: redis.Redis) -> None:
    """Of `mail`: one job in hand, two that are ready, three due within a minute, one tomorrow."""
    add = ("DQ.ADD", "mail")
    pipe(
        r,
        *[(*add, f"ready-{n}", "x", "TTR", HOUR) for n in range(3)],
        ("DQ.POP", "mail"),
        *[(*add, f"soon-{n}", "x", "DELAY", 50_000) for n in range(3)],
        (*add, "tomorrow", "x", "DELAY", 24 * HOUR),
    )


def test_kinds_of_kubernetes_are_valid_by_its_schemas():
    kinds = []
    for file, manifest in manifests():
        if "kind" in manifest and not manifest["apiVersion"].startswith("keda.sh/"):
            kinds.append(manifest["kind"])
            kubernetes_validate.validate(manifest, "1.33", strict=True)
            assert manifest["metadata"]["namespace"] == "jobs", file
    assert sorted(set(kinds)) == [
        "Deployment",
        "HorizontalPodAutoscaler",
        "NetworkPolicy",
        "Service",
    ]
    wrong = of_kind("HorizontalPodAutoscaler")[0]
    wrong["spec"]["maxReplica"] = wrong["spec"].pop("maxReplicas")
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, "1.33", strict=True)


def test_what_manifests_name_is_there():
    """Workers, the Service and its ports, by the names under which others look for them."""
    (workers,) = [m for m in of_kind("Deployment") if m["metadata"]["name"] == "mail-workers"]
    assert "replicas" not in workers["spec"], "the autoscaler's"
    scalers = [
        m["spec"] for kind in ("ScaledObject", "HorizontalPodAutoscaler") for m in of_kind(kind)
    ]
    assert len(scalers) == 4
    for spec in scalers:
        assert spec["scaleTargetRef"]["name"] == workers["metadata"]["name"]

    (service,) = of_kind("Service")
    board = next(m for m in of_kind("Deployment") if m["metadata"]["name"] == "dq-board")
    template = board["spec"]["template"]
    (container,) = template["spec"]["containers"]
    assert service["spec"]["selector"] == template["metadata"]["labels"]
    opened = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert {port["targetPort"] for port in service["spec"]["ports"]} == set(opened)
    given = dict(zip(container["args"][1::2], container["args"][2::2], strict=True))
    assert given == {"--listen": f"0.0.0.0:{opened['http']}", "--keda": f"0.0.0.0:{opened['keda']}"}
    name = f"{service['metadata']['name']}.{service['metadata']['namespace']}"
    addresses = [t["scalerAddress"] for t in triggers("external-push")]
    addresses += [urllib.parse.urlsplit(t["url"]).netloc for t in triggers("metrics-api")]
    assert set(addresses) == {f"{name}:{port}" for port in opened.values()}


def test_scaled_objects_have_what_keda_requires():
    objects = of_kind("ScaledObject")
    assert len(objects) == 3
    for manifest in objects:
        assert manifest["apiVersion"] == "keda.sh/v1alpha1"
        spec = manifest["spec"]
        assert spec["scaleTargetRef"]["name"] and spec["triggers"]
        assert 0 <= spec["minReplicaCount"] < spec["maxReplicaCount"]
        for trigger in spec["triggers"]:
            assert TRIGGERS[trigger["type"]] <= set(trigger["metadata"])
            # KEDA's CRD has a map of strings there.
            assert all(isinstance(value, str) for value in trigger["metadata"].values())


def test_the_external_scaler_answers_its_triggers(scalers: Callable[..., Scaler], r: redis.Redis):
    scaler = scalers("--metrics-only")
    samples(r)
    for trigger in triggers("external-push"):
        assert scaler.is_active(**trigger)
        assert scaler.target(**trigger)[1] == float(trigger["jobsPerWorker"])
        assert scaler.jobs(**trigger) == 6


def test_every_promql_gives_one_number(prometheus: Prometheus, server: Server, r: redis.Redis):
    rule = adapter_rule()
    (hpa,) = of_kind("HorizontalPodAutoscaler")
    (metric,) = hpa["spec"]["metrics"]
    assert metric["external"]["metric"]["name"] == rule["name"]["as"]
    labels = metric["external"]["metric"]["selector"]["matchLabels"]
    matchers = ",".join(f'{name}="{value}"' for name, value in labels.items())
    queries = [trigger["query"] for trigger in triggers("prometheus")]
    queries.append(rule["metricsQuery"].replace("<<.LabelMatchers>>", matchers))
    assert not [query for query in queries if "<<" in query]

    def value(query: str) -> float | None:
        found = prometheus.query(query)
        assert len(found) <= 1, "KEDA takes one"
        return float(found[0]["value"][1]) if found else None

    for query in queries:
        eventually(lambda query=query: value(query) == 0, 20)
    samples(r)
    for query in queries:
        eventually(lambda query=query: value(query) == 6, 20)
    assert prometheus.query(rule["seriesQuery"])
    server.kill9()
    for query in queries:
        eventually(lambda query=query: value(query) is None, 30)


def test_every_value_location_is_one_number_of_the_metrics(
    boards: Callable[..., Board], r: redis.Redis
):
    board = boards("--metrics-only")
    samples(r)
    locations = [trigger["valueLocation"] for trigger in triggers("metrics-api")]
    eventually(lambda: [board.metrics().get(location) for location in locations] == [3, 2, 1], 20)
    # KEDA reads the text with the parser that promtool reads it with, and sends no Accept.
    answer = board.get("/metrics", headers={"Host": "dq-board.jobs:8377"})
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    done = subprocess.run(
        ["promtool", "check", "metrics"], input=answer.body, capture_output=True, timeout=60
    )
    # 3 is for its opinions on names.
    assert done.returncode in (0, 3), done.stderr


def test_the_page_names_every_manifest_and_shows_them_as_they_are():
    assert set(re.findall(r"\]\(\.\./kubernetes/autoscaling/([\w-]+\.yaml)\)", PAGE)) == {
        path.name for path in FOLDER.iterdir()
    }
    blocks = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    whole = "\n".join(path.read_text() for path in FOLDER.iterdir())
    assert blocks and all(block in whole for block in blocks)


# ---- The wave ------------------------------------------------------------------------------------

# Minutes are shrunk to seconds. A worker takes this long to start: pull an image, connect.
START_S = 1.0
WAVE = 48
WAVE_IN_MS = 15_000
JOBS_PER_WORKER = 12
WORKERS_MAX = 6


class Workers:
    """What Kubernetes is to a Deployment: it starts workers, and each takes its time for that."""

    def __init__(self, server: Server, queue: str):
        self._server = server
        self._queue = queue
        self._are_over = threading.Event()
        self._threads: list[threading.Thread] = []
        # By the clock that the server has, too.
        self.started_ms: list[float] = []
        self.taken_ms: list[float] = []

    def scale_up(self, wanted: int) -> None:
        while len(self._threads) < wanted:
            self._threads.append(threading.Thread(target=self._work, daemon=True))
            self._threads[-1].start()

    def stop(self) -> None:
        self._are_over.set()
        for thread in self._threads:
            thread.join(30)
            assert not thread.is_alive()

    def _work(self) -> None:
        time.sleep(START_S)
        self.started_ms.append(time.time() * 1000)
        with self._server.client() as r:
            while not self._are_over.is_set():
                for job in r.execute_command("DQ.POP", self._queue, "BLOCK", 200) or ():
                    self.taken_ms.append(time.time() * 1000)
                    r.execute_command("DQ.FINISH", self._queue, job[0], job[2])


def wanted(jobs: float, jobs_per_worker: float) -> int:
    """As the HPA reckons with a target per worker: rounded up, and within its bounds."""
    return min(WORKERS_MAX, -int(-jobs // jobs_per_worker))


@contextmanager
def scaled(workers: Workers, wanted: Callable[[], int]) -> Iterator[list[int]]:
    """A loop that starts workers as the autoscaler does. It stops none before the end."""
    is_over = threading.Event()
    asked: list[int] = []

    def loop() -> None:
        while not is_over.wait(0.2):
            asked.append(wanted())
            workers.scale_up(asked[-1])

    thread = threading.Thread(target=loop, daemon=True)
    thread.start()
    try:
        yield asked
    finally:
        is_over.set()
        thread.join(30)
        workers.stop()


def test_workers_are_there_before_a_wave_of_delayed_jobs_comes(
    scalers: Callable[..., Scaler], server: Server, r: redis.Redis
):
    """Twice the same wave. One loop asks the external scaler, which looks ahead; the other one
    counts the jobs that are ready, as one has to without a forecast."""
    scaler = scalers()
    about = {"queue": "ahead", "within": "8", "jobsPerWorker": str(JOBS_PER_WORKER)}

    def foreseen() -> int:
        # Without activity KEDA has no worker, whatever the metric is.
        return wanted(scaler.jobs(**about), scaler.target(**about)[1]) * scaler.is_active(**about)

    def seen() -> int:
        counts = [r.execute_command("DQ.LEN", "behind", "STATE", s) for s in ("ready", "reserved")]
        return wanted(sum(counts), JOBS_PER_WORKER)

    due_ms = int(time.time() * 1000) + WAVE_IN_MS
    for queue in ("ahead", "behind"):
        pipe(r, *[("DQ.ADD", queue, f"job-{n}", "x", "AT", due_ms) for n in range(WAVE)])
    ahead, behind = Workers(server, "ahead"), Workers(server, "behind")
    with scaled(ahead, foreseen) as asked, scaled(behind, seen):
        eventually(lambda: len(ahead.taken_ms) == len(behind.taken_ms) == WAVE, 60)
        eventually(lambda: asked[-1] == 0, 20)

    assert asked[0] == 0, "nothing is due yet within the time that the trigger looks ahead"
    assert len(ahead.started_ms) == WAVE / JOBS_PER_WORKER
    assert max(ahead.started_ms) < due_ms, "all are there when the wave comes"
    assert min(behind.started_ms) >= due_ms, "who only sees what is ready begins with it"
    for workers in (ahead, behind):
        assert min(workers.taken_ms) >= due_ms, "no job is early"
