"""The chart in helm/dq: by Helm's own library, which lints and renders it; by the schemas of Kubernetes; and by a server
and a dq-board that are started as it says. No cluster runs it.
"""

import base64
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import redis
import yaml
from helm_python import HelmError
from helm_python.chart import Chart, lint

from board import BINARY
from harness.container import NEEDS_ROOT, Container, Image
from harness.ports import free_port
from harness.server import KNOWN, MODULE, Kind, eventually
from samples import RIGHTS

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "helm" / "dq"
Manifest = dict[str, Any]

IMAGES = {
    "server": {"image": {"repository": "registry.example:5000/redis-dq"}},
    "board": {"image": {"repository": "registry.example:5000/dq-board"}},
}
ALL = {
    "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
    "prometheusRule": {"enabled": True, "labels": {"release": "prometheus"}},
    "networkPolicy": {
        "enabled": True,
        "serverFrom": [{"namespaceSelector": {"matchLabels": {"name": "jobs"}}}],
        "boardFrom": [{"namespaceSelector": {"matchLabels": {"name": "monitoring"}}}],
    },
}
PLACED = {
    "podAnnotations": {"example.com/a": "b"},
    "nodeSelector": {"disk": "ssd"},
    "tolerations": [{"key": "a", "operator": "Exists"}],
    "affinity": {"nodeAffinity": {}},
}
# What the chart is rendered with. Each has what the others lack.
VARIANTS: dict[str, Manifest] = {
    "defaults": {},
    "all": ALL,
    "valkey": {
        "server": {
            "kind": "valkey",
            "settings": {"default-ttr": 30_000},
            "extraConfig": "databases 1\nmaxclients 100\n",
            "persistence": {"storageClass": "fast"},
            **PLACED,
        },
        "board": {
            "writable": True,
            "allow": ["kick", "pause"],
            "publicUrl": "https://dq.example/",
            "extraArgs": ["--metrics-match", "mail*"],
            "usersSecret": "users",
            "extraVolumes": [{"name": "logs", "emptyDir": {}}],
            "extraVolumeMounts": [{"name": "logs", "mountPath": "/var/lib/dq-board"}],
            **PLACED,
        },
        "imagePullSecrets": [{"name": "registry"}],
        "auth": {"existingSecret": "mine"},
        "fullnameOverride": "queues",
    },
    "without a volume": {"server": {"persistence": {"enabled": False}}},
    "the server alone": {"board": {"enabled": False}, **ALL},
    "the board alone": {
        "server": {"enabled": False},
        "board": {"redis": {"address": "redis.example:6379", "user": "looker"}},
    },
}


def merged(*all_values: Manifest) -> Manifest:
    """Later ones win, key by key."""
    result: Manifest = {}
    for values in all_values:
        for key, value in values.items():
            both = isinstance(value, dict) and isinstance(result.get(key), dict)
            result[key] = merged(result[key], value) if both else value
    return result


def rendered(*values: Manifest) -> list[Manifest]:
    with Chart.load(CHART) as chart:
        files = chart.render(merged(IMAGES, *values), name="q", namespace="jobs")
    return [
        manifest
        for name, text in files.items()
        if name.endswith(".yaml")
        for manifest in yaml.safe_load_all(text)
        if manifest is not None
    ]


def of_kind(manifests: list[Manifest], kind: str) -> list[Manifest]:
    return [manifest for manifest in manifests if manifest["kind"] == kind]


each_variant = pytest.mark.parametrize("values", VARIANTS.values(), ids=VARIANTS)


@each_variant
def test_helm_s_linter_finds_nothing(values: Manifest) -> None:
    report = lint(CHART, merged(IMAGES, values), strict=True)
    assert report["total_charts_linted"] == 1 and report["errors"] == []
    # 1 is a hint: the chart has no icon.
    assert [message for message in report["messages"] if message["severity"] > 1] == []


def test_helm_s_linter_would_find_something(tmp_path: Path) -> None:
    broken = tmp_path / "dq"
    subprocess.run(["cp", "-RL", CHART, broken], check=True)
    template = broken / "templates" / "board.yaml"
    template.write_text(template.read_text().replace("kind: Deployment", "kind Deployment"))
    assert lint(broken, IMAGES, strict=True)["errors"]


@each_variant
def test_what_is_rendered_is_valid_by_the_schemas_of_kubernetes(values: Manifest) -> None:
    manifests = rendered(values)
    assert manifests
    for manifest in manifests:
        if not manifest["apiVersion"].startswith("monitoring.coreos.com/"):
            kubernetes_validate.validate(manifest, "1.33", strict=True)
    (wrong,) = of_kind(rendered(), "StatefulSet")
    wrong["spec"]["replica"] = wrong["spec"].pop("replicas")
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, "1.33", strict=True)


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"server": {"kind": "memcached"}}, "kind"),
        ({"server": {"port": 80}}, "port"),
        ({"server": {"settings": {"default-tr": 1}}}, "default-tr"),
        ({"server": {"maxmemory": "half"}}, "maxmemory"),
        ({"board": {"allow": ["kcik"]}}, "allow"),
        ({"board": {"replicas": 2}}, "replicas"),
        ({"board": {"redis": {"address": "redis://redis.example"}}}, "address"),
    ],
)
def test_a_value_that_can_t_be_is_refused_by_name(values: Manifest, told: str) -> None:
    with pytest.raises(HelmError, match=told):
        rendered(values)


@pytest.mark.parametrize("part", ["server", "board"])
def test_an_image_has_to_be_named(part: str) -> None:
    with pytest.raises(HelmError, match=rf"{part}\.image\.repository: build an image"):
        rendered({part: {"image": {"repository": ""}}})


def test_what_manifests_name_is_there() -> None:
    manifests = rendered(ALL)
    pods = {
        manifest["metadata"]["name"]: manifest["spec"]["template"]
        for manifest in manifests
        if manifest["kind"] in ("StatefulSet", "Deployment")
    }
    assert sorted(pods) == ["q-dq-board", "q-dq-server"]
    (secret,) = of_kind(manifests, "Secret")
    for name, pod in pods.items():
        (service,) = (m for m in of_kind(manifests, "Service") if m["metadata"]["name"] == name)
        selector = service["spec"]["selector"]
        assert selector.items() <= pod["metadata"]["labels"].items()
        others = [other["metadata"]["labels"] for key, other in pods.items() if key != name]
        assert not any(selector.items() <= labels.items() for labels in others)
        (container,) = pod["spec"]["containers"]
        ports = {port["name"] for port in container["ports"]}
        assert {port["targetPort"] for port in service["spec"]["ports"]} <= ports
        refs = [e["valueFrom"]["secretKeyRef"] for e in container["env"] if "valueFrom" in e]
        assert refs
        assert {ref["name"] for ref in refs} == {secret["metadata"]["name"]}
        assert {ref["key"] for ref in refs} <= secret["data"].keys()
        (policy,) = (
            m for m in of_kind(manifests, "NetworkPolicy") if m["metadata"]["name"] == name
        )
        assert policy["spec"]["podSelector"]["matchLabels"] == selector
    (of_server,) = (p for n, p in pods.items() if n.endswith("-server"))
    (config,) = of_kind(manifests, "ConfigMap")
    mounted = {v["name"]: v["configMap"]["name"] for v in of_server["spec"]["volumes"]}
    assert mounted == {"config": config["metadata"]["name"]}
    (stateful,) = of_kind(manifests, "StatefulSet")
    claims = {claim["metadata"]["name"] for claim in stateful["spec"]["volumeClaimTemplates"]}
    (container,) = of_server["spec"]["containers"]
    assert {mount["name"] for mount in container["volumeMounts"]} == {"config", *claims}


def test_each_container_is_confined() -> None:
    for manifest in rendered():
        if manifest["kind"] not in ("StatefulSet", "Deployment"):
            continue
        spec = manifest["spec"]["template"]["spec"]
        assert spec["automountServiceAccountToken"] is False
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["runAsUser"] == user_of(manifest)
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        (container,) = spec["containers"]
        assert container["securityContext"] == {
            "readOnlyRootFilesystem": True,
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        }


def user_of(manifest: Manifest) -> int:
    """By the Containerfile of the image: Kubernetes compares with a number."""
    image = "redis" if manifest["kind"] == "StatefulSet" else "board"
    text = (ROOT / "containers" / f"{image}.Containerfile").read_text()
    (user,) = re.findall(r"^USER ([0-9]+):[0-9]+$", text, re.MULTILINE)
    return int(user)


# ---- Monitoring: what the Prometheus operator's API reference names; its schemas are not at hand ---


def test_the_alerts_are_those_of_prometheus_alerts_yml() -> None:
    (rule,) = of_kind(rendered(ALL), "PrometheusRule")
    alerts = (CHART / "alerts.yml").resolve()
    assert alerts == ROOT / "prometheus" / "alerts.yml", "a link, not a copy"
    assert rule["apiVersion"] == "monitoring.coreos.com/v1"
    assert rule["spec"] == yaml.safe_load(alerts.read_text())
    assert rule["metadata"]["labels"]["release"] == "prometheus"


def test_prometheus_scrapes_the_board_under_the_name_that_alerts_know() -> None:
    manifests = rendered(ALL)
    (monitor,) = of_kind(manifests, "ServiceMonitor")
    services = [
        service
        for service in of_kind(manifests, "Service")
        if monitor["spec"]["selector"]["matchLabels"].items()
        <= service["metadata"]["labels"].items()
    ]
    (service,) = services
    (endpoint,) = monitor["spec"]["endpoints"]
    assert endpoint["port"] in {port["name"] for port in service["spec"]["ports"]}
    (secret,) = of_kind(manifests, "Secret")
    for ref in endpoint["basicAuth"].values():
        assert ref["name"] == secret["metadata"]["name"] and ref["key"] in secret["data"]
    (relabeling,) = endpoint["relabelings"]
    assert (relabeling["targetLabel"], relabeling["replacement"]) == ("job", "dq")
    assert 'up{job="dq"}' in (CHART / "alerts.yml").read_text()
    assert monitor["metadata"]["labels"]["release"] == "prometheus"


# ---- Options and rights ----------------------------------------------------------------------------


def rights(*values: Manifest) -> str:
    (stateful,) = of_kind(rendered(*values), "StatefulSet")
    (container,) = stateful["spec"]["template"]["spec"]["containers"]
    command = container["command"]
    return " ".join(command[command.index(">$(BOARD_SERVER_PASSWORD)") + 1 :])


def test_the_board_s_user_has_the_rights_of_the_page() -> None:
    assert rights() == RIGHTS
    pausing = rights({"board": {"writable": True, "allow": ["pause"]}})
    assert pausing == f"{RIGHTS} +dq.pause +dq.resume"


def test_the_chart_knows_each_verb_and_option_of_the_board() -> None:
    told = subprocess.run([BINARY, "--help"], capture_output=True, text=True, check=True).stdout
    verbs = re.search(r"--allow.*\[possible values: (.*?)\]", told)[1].split(", ")
    for verb in verbs:
        assert rights({"board": {"writable": True, "allow": [verb]}}) != RIGHTS
    with Chart.load(CHART) as chart:
        allow = chart.schema["properties"]["board"]["properties"]["allow"]
    assert set(allow["items"]["enum"]) == set(verbs)
    (deployment,) = of_kind(rendered(VARIANTS["valkey"]), "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    options = [arg for arg in container["args"] if arg.startswith("--")]
    assert len(options) == 6
    # One of the two, or dq-board refuses to listen.
    assert "--users" in options and "DQ_BOARD_AUTH" not in [e["name"] for e in container["env"]]
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert container["args"][container["args"].index("--users") + 1] == f"{mounts['users']}/users"
    volumes = deployment["spec"]["template"]["spec"]["volumes"]
    assert {volume["name"] for volume in volumes} == mounts.keys() == {"users", "logs"}
    assert all(f"{option} " in told or f"{option}\n" in told for option in options)


def test_the_chart_has_the_module_s_version() -> None:
    (version,) = re.findall(r'^version = "(.+)"$', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)
    with Chart.load(CHART) as chart:
        assert chart.metadata["version"] == chart.metadata["appVersion"] == version
    tags = re.findall(r"registry\.example/[a-z-]+:(\S+)", (CHART / "README.md").read_text())
    assert len(tags) == 4 and set(tags) == {version}


def test_the_readme_s_values_keep_the_history_on_a_volume() -> None:
    (block,) = re.findall(
        r"^```yaml\n(.*?)^```$", (CHART / "README.md").read_text(), re.MULTILINE | re.DOTALL
    )
    (deployment,) = of_kind(rendered(yaml.safe_load(block)), "Deployment")
    kubernetes_validate.validate(deployment, "1.33", strict=True)
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    told = subprocess.run([BINARY, "--help"], capture_output=True, text=True, check=True).stdout
    option, file = container["args"][-2:]
    assert f"{option} <FILE>" in told
    (mount,) = container["volumeMounts"]
    assert file.startswith(f"{mount['mountPath']}/")
    assert [volume["name"] for volume in pod["volumes"]] == [mount["name"]]
    # Its user may write there.
    assert pod["securityContext"]["fsGroup"] == pod["securityContext"]["runAsGroup"]


def test_the_readme_has_all_values() -> None:
    page = (CHART / "README.md").read_text()
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    rows = "".join(line for line in page.splitlines() if line.startswith("| "))
    below = page.split("`server` and `board` also take", 1)[1].split("\n\n", 1)[0]
    for name, inner in values.items():
        for key in inner if name in ("server", "board", "auth") else ():
            assert f"`{name}.{key}`" in rows or f"`{key}`" in below, f"{name}.{key}"
        assert f"`{name}" in rows


# ---- What the chart starts ---------------------------------------------------------------------------


def expanded(text: str, environment: dict[str, str]) -> str:
    """As the kubelet does it."""
    return re.sub(r"\$\((\w+)\)", lambda match: environment[match[1]], text)


class Pod:
    """The container of a rendered StatefulSet or Deployment, with its environment."""

    def __init__(self, manifests: list[Manifest], kind: str):
        (manifest,) = of_kind(manifests, kind)
        (secret,) = of_kind(manifests, "Secret")
        self.spec = manifest["spec"]["template"]["spec"]
        (self.container,) = self.spec["containers"]
        self.environment: dict[str, str] = {}
        for variable in self.container["env"]:
            if "valueFrom" in variable:
                value = base64.b64decode(
                    secret["data"][variable["valueFrom"]["secretKeyRef"]["key"]]
                ).decode()
            else:
                value = expanded(variable["value"], self.environment)
            self.environment[variable["name"]] = value

    def words(self, key: str) -> list[str]:
        return [expanded(word, self.environment) for word in self.container.get(key, ())]

    def start(
        self, image: Image, entrypoint: list[str], log: Path, volumes: dict[str, Path]
    ) -> Container:
        return Container(
            image,
            [*entrypoint, *self.words("command"), *self.words("args")],
            user=self.spec["securityContext"]["runAsUser"],
            log=log,
            environment=self.environment,
            volumes=volumes,
        )

    def probe(self, name: str, cli: Path) -> bool:
        """The probe's command, by a client outside of the root."""
        command = self.container[name]["exec"]["command"]
        assert command[0] == cli.name
        done = subprocess.run(
            [cli, *command[1:]], env=self.environment, capture_output=True, timeout=20
        )
        return done.returncode == 0


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Container]]:
    started: list[Container] = []

    def start(pod: Pod, *args: Any, **named: Any) -> Container:
        started.append(pod.start(*args, **named))
        return started[-1]

    yield start
    for container in started:
        container.stop()


def server_image(folder: Path, kind: Kind, config: str) -> Image:
    """What containers/ puts where, and what Kubernetes mounts."""
    image = Image(folder)
    image.add(kind.binary.resolve(), f"/usr/bin/{kind.family}-server")
    image.add(MODULE, f"/usr/lib/{kind.family}/modules/libdq.so")
    image.write("/etc/dq/server.conf", config)
    return image


@pytest.mark.skipif(NEEDS_ROOT, reason="a root of its own is made as root only")
@pytest.mark.parametrize("name", ["redis-7.0", "valkey-8.1"])
def test_a_server_and_a_board_work_as_the_chart_starts_them(
    name: str, tmp_path: Path, start: Callable[..., Container]
) -> None:
    kind = KNOWN[name]
    cli = (
        kind.binary.with_name("valkey-cli")
        if kind.family == "valkey"
        else Path("/usr/bin/redis-cli")
    )
    port, board_port = free_port(), free_port()
    manifests = rendered(
        {
            "server": {
                "kind": kind.family,
                "port": port,
                "settings": {"default-ttr": 30_000},
                # A pod has a network of its own; here others could reach the server.
                "extraConfig": "bind 127.0.0.1",
            },
            "board": {"port": board_port, "writable": True, "allow": ["pause"]},
        }
    )
    data = tmp_path / "data"
    data.mkdir()
    server = Pod(manifests, "StatefulSet")
    (config,) = of_kind(manifests, "ConfigMap")
    image = server_image(tmp_path / "server", kind, config["data"]["server.conf"])
    volumes = {"/data": data}
    container = start(server, image, [], log=tmp_path / "server.log", volumes=volumes)
    eventually(lambda: server.probe("readinessProbe", cli), 20)
    assert server.probe("livenessProbe", cli)

    password = server.environment["SERVER_PASSWORD"]
    with redis.Redis(port=port, password=password) as r:
        assert r.config_get("dq.default-ttr") == {"dq.default-ttr": "30000"}
        assert r.config_get("dq.default-backoff") == {"dq.default-backoff": "1000 600000"}
        r.execute_command("DQ.ADD", "mail", "a", "x")
        assert r.acl_whoami() == "default"
    with redis.Redis(port=port) as stranger, pytest.raises(redis.AuthenticationError):
        stranger.ping()
    # Nothing but the volume can be written to.
    assert {path.name for path in data.iterdir()} >= {"appendonlydir"}
    assert not (image.root / "appendonlydir").exists()

    look_at_it(manifests, tmp_path, start, port, board_port)

    container.stop()
    start(server, image, [], log=tmp_path / "server.log", volumes=volumes)
    eventually(lambda: server.probe("readinessProbe", cli), 20)
    with redis.Redis(port=port, password=password) as r:
        assert r.execute_command("DQ.LEN", "mail") == 1
    server.environment["REDISCLI_AUTH"] = "wrong"
    assert not server.probe("readinessProbe", cli)


def look_at_it(
    manifests: list[Manifest],
    tmp_path: Path,
    start: Callable[..., Container],
    port: int,
    board_port: int,
) -> None:
    """A dq-board shows the queue to a reader who knows the password, and the server lets it pause it."""
    pod = Pod(manifests, "Deployment")
    image = Image(tmp_path / "board")
    image.add(BINARY, "/dq-board")
    address = f"q-dq-server:{port}"
    assert address in pod.environment["DQ_BOARD_REDIS"]
    # No cluster resolves the Service's name here, and the network isn't the pod's own.
    args = pod.container["args"]
    args[args.index(f"0.0.0.0:{board_port}")] = f"127.0.0.1:{board_port}"
    pod.environment["DQ_BOARD_REDIS"] = pod.environment["DQ_BOARD_REDIS"].replace(
        address, f"127.0.0.1:{port}"
    )
    board = start(pod, image, ["/dq-board"], log=tmp_path / "board.log", volumes={})
    url = f"http://127.0.0.1:{board_port}"
    probe = pod.container["readinessProbe"]["httpGet"]["path"]

    def answer(path: str, *options: str) -> str:
        # Without --fail: what it says is the answer.
        command = ["curl", "--silent", "--max-time", "10", *options, f"{url}{path}"]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout

    eventually(lambda: answer(probe) != "", 20)
    assert board.is_up(), board.log()
    login = ("--user", f"{pod.environment['READER']}:{pod.environment['READER_PASSWORD']}")
    eventually(lambda: 'dq_jobs{queue="mail",state="ready"} 1' in answer("/metrics", *login), 20)
    assert "dq_jobs" not in answer("/metrics")
    user = pod.environment["DQ_BOARD_REDIS"]
    with redis.Redis.from_url(user) as r:
        r.execute_command("DQ.PAUSE", "mail")
        with pytest.raises(redis.exceptions.NoPermissionError):
            r.execute_command("DQ.DEL", "mail", "a")
