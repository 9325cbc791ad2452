"""This version reads the files of each older version (harness/golden.py), and the queues are
unchanged.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest
import redis

from harness.golden import (
    FORMS,
    PAYLOADS,
    Form,
    Golden,
    content,
    digests_of,
    known_to,
    load_its_aof,
    restore,
    text,
    versions,
)
from harness.paths import ROOT
from harness.queues import binary_client
from harness.resp import fields
from harness.server import Server
from harness.zoo import pop_all

StartServer = Callable[..., Server]
each_version = pytest.mark.parametrize("golden", versions(), ids=str)
each_form = pytest.mark.parametrize("form", FORMS, ids=str)


@pytest.fixture(scope="session")
def shims(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("shims")


@contextmanager
def loaded(
    fresh_server: StartServer, shims: Path, golden: Golden, form: Form
) -> Iterator[tuple[Server, redis.Redis]]:
    server = fresh_server(
        *form.config, files=form.files_of(golden), environment=golden.clock(shims)
    )
    with binary_client(server) as r:
        if form is PAYLOADS:
            restore(golden, r)
        yield server, r


@each_version
@each_form
def test_a_file_of_an_older_version_is_read_and_written_again(
    fresh_server: StartServer, shims: Path, golden: Golden, form: Form
) -> None:
    with loaded(fresh_server, shims, golden, form) as (server, r):

        def check() -> None:
            __tracebackhide__ = True
            assert known_to(golden.content, content(r)) == golden.content
            assert digests_of(r) == golden.digests

        check()
        r.execute_command("DEBUG", "RELOAD")
        check()
        load_its_aof(server, r)
        check()


@each_version
@each_form
def test_queues_of_an_older_version_work_on(
    fresh_server: StartServer, shims: Path, golden: Golden, form: Form
) -> None:
    """Workers report jobs that they were given by the old version; the others come in order."""
    with loaded(fresh_server, shims, golden, form) as (_, r):
        for key, queue in golden.content.items():
            for held in queue["jobs"]["reserved"]:
                peeked = r.execute_command("DQ.PEEK", key, "STATE", "reserved")
                id = fields(peeked[0])["id"]
                assert text(id) == held["id"]
                assert r.execute_command("DQ.FINISH", key, id, held["lease"]) == 1
            told = queue["info"]
            ready = [] if told["paused"] else queue["jobs"]["ready"]
            ready = ready[: told["rate-left"]] if told["rate"] else ready
            handed_out = pop_all(r, key)
            assert [text(id) for id, *_ in handed_out] == [job["id"] for job in ready]
            leases = [told["last-lease"] or 0, *(lease for _, _, lease, _ in handed_out)]
            assert all(earlier < later for earlier, later in pairwise(leases))


@each_version
def test_every_golden_file_is_tested(golden: Golden) -> None:
    names = {source for form in FORMS for source in form.files.values()}
    names |= {"content.json", "digests.json", "payloads.json"}
    assert {path.name for path in golden.folder.iterdir()} == names
    assert golden.payloads.keys() == golden.content.keys() == golden.digests.keys()


def test_the_first_released_version_has_golden_files() -> None:
    released = re.findall(r'^version = "0\.[3-9]', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)
    assert [str(golden) for golden in versions()][:1] == (["0.3"] if released else [])
