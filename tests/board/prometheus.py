"""A Prometheus process that scrapes a dq-board, with the alerts loaded."""

import json
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

from harness.ports import free_port
from harness.server import eventually

ALERTS = Path(__file__).resolve().parents[2] / "prometheus" / "alerts.yml"


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
