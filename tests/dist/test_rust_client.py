"""dq-client's .crate, built from what is in it by another project."""

import subprocess
import tarfile
from pathlib import Path

import pytest

from conftest import run
from harness.paths import ROOT, TARGET
from harness.server import KNOWN, Server

MANIFEST = """
[package]
name = "mail"
edition = "2021"
[workspace]
resolver = "3"
[dependencies]
dq-client = {{ path = "{package}" }}
redis = {{ version = "1", default-features = false, features = ["tokio-comp"] }}
tokio = {{ version = "1", features = ["macros", "rt-multi-thread"] }}
tokio-util = "0.7"
"""
# A job of a producer, and a worker that takes it.
ROUND_TRIP = """
use dq_client::{worker::{Failure, RunningJob, Worker}, Queue};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = redis::Client::open(std::env::args().nth(1).unwrap())?;
    let mail = Queue::new(client.get_multiplexed_async_connection().await?, "mail");
    mail.add("a", "ann").await?;
    let stop = tokio_util::sync::CancellationToken::new();
    let stopping = stop.clone();
    let send = move |job: RunningJob| {
        let stopping = stopping.clone();
        async move {
            print!("{}", job.body::<String>()?);
            stopping.cancel();
            Ok::<(), Failure>(())
        }
    };
    Ok(Worker::new(client, send).queue(&mail).serve(stop).await?)
}
"""


@pytest.fixture(scope="session")
def package(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package, unpacked."""
    (crate,) = dist.glob("dq-client-*.crate")
    folder = tmp_path_factory.mktemp("crate")
    with tarfile.open(crate) as tar:
        tar.extractall(folder, filter="tar")
    return folder / crate.name.removesuffix(".crate")


@pytest.mark.timeout(900)
def test_the_package_builds_and_works(package: Path, unpacked: Path, tmp_path: Path) -> None:
    project = tmp_path / "mail"
    (project / "src").mkdir(parents=True)
    (project / "Cargo.toml").write_text(MANIFEST.format(package=package))
    (project / "src" / "main.rs").write_text(ROUND_TRIP)
    # The versions that are tested.
    (project / "Cargo.lock").write_bytes((package / "Cargo.lock").read_bytes())
    target = TARGET / "dist-build" / "crate-user"
    run("cargo", "build", "--manifest-path", project / "Cargo.toml", "--target-dir", target)
    folder = tmp_path / "server"
    folder.mkdir()
    server = Server(KNOWN["redis-7.0"], folder, module=unpacked / "libdq.so")
    try:
        told = subprocess.run(
            [target / "debug" / "mail", f"redis://127.0.0.1:{server.port}/"],
            capture_output=True,
            text=True,
        )
        assert (told.stdout, told.returncode) == ("ann", 0), told.stderr
        with server.client() as client:
            assert client.execute_command("DQ.LEN", "mail") == 0
    finally:
        server.kill9()


def test_the_package_has_all_sources_and_no_others(package: Path) -> None:
    there = {str(path.relative_to(package)) for path in package.rglob("*") if path.is_file()}
    sources = ROOT / "clients/rust"
    wanted = {
        str(path.relative_to(sources))
        for folder in ("src", "examples")
        for path in (sources / folder).rglob("*.rs")
    }
    wanted |= {"Cargo.toml", "Cargo.toml.orig", "Cargo.lock", "README.md", "LICENSE"}
    assert there == wanted
