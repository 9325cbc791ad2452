"""dq-client's npm package, installed into a folder of its own, with each client library."""

import subprocess
import tarfile
from pathlib import Path

import pytest

from conftest import run
from harness.paths import ROOT
from harness.server import KNOWN, Server

# A job of a producer, and a worker that takes it.
ROUND_TRIP = """
import { Queue, Worker } from "dq-client";
const [, , library, url] = process.argv;
const connected = {
  redis: async ({ createClient }) => createClient({ url }).connect(),
  ioredis: async ({ Redis }) => new Redis(url),
};
const client = await connected[library](await import(library));
const mail = new Queue(client, "mail");
await mail.add("a", { to: "ann" });
const worker = new Worker(mail, (job) => {
  process.stdout.write(job.body.to);
  worker.stop();
});
await worker.run();
process.exit(0);
"""


@pytest.fixture(scope="session")
def package(dist: Path) -> Path:
    (path,) = dist.glob("dq-client-*.tgz")
    return path


@pytest.mark.timeout(600)
@pytest.mark.parametrize("library", ["redis", "ioredis"])
def test_the_client_is_installed_and_works(
    package: Path, unpacked: Path, tmp_path: Path, library: str
) -> None:
    folder = tmp_path / "program"
    folder.mkdir()
    (folder / "package.json").write_text('{"private": true}')
    (folder / "program.mjs").write_text(ROUND_TRIP)
    run("npm", "--prefix", folder, "install", "--no-audit", "--no-fund", package, library)
    at = tmp_path / "server"
    at.mkdir()
    server = Server(KNOWN["redis-7.0"], at, module=unpacked / "libdq.so")
    try:
        url = f"redis://127.0.0.1:{server.port}/0"
        told = subprocess.run(
            ["node", "program.mjs", library, url],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert (told.stdout, told.returncode) == ("ann", 0), told.stderr
        with server.client() as client:
            assert client.execute_command("DQ.LEN", "mail") == 0
    finally:
        server.kill9()


def test_the_package_has_all_files_and_no_others(package: Path) -> None:
    """Each source as JavaScript and as types, the licence, and nothing that lay about."""
    sources = ROOT / "clients/typescript/src"
    names = [path.relative_to(sources).with_suffix("") for path in sources.rglob("*.ts")]
    wanted = {f"dist/{name}{end}" for name in names for end in (".js", ".d.ts")}
    with tarfile.open(package) as tar:
        packed = {name.removeprefix("package/") for name in tar.getnames()}
    assert packed == wanted | {"package.json", "README.md", "LICENSE"}
