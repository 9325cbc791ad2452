"""`make release`: each check goes red when it must, and what is said of the built files is true.

The checks look at a small clone, with the files that tell a version and the golden files.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import checks
import provenance
import release
import versions
from checks import Candidate
from conftest import HERE, TOOLS, VERSION, run
from harness.paths import ROOT

PACKAGES = (versions.MODULE, *versions.OTHERS)
OF_A_RELEASE = (*checks.ALWAYS, *checks.AT_RELEASE)
GOLDEN = f"tests/golden/{VERSION.rpartition('.')[0]}"
DATED = f"## {VERSION} (2027-01-31)"
COMMIT = ("-c", "user.name=DQ", "-c", "user.email=dq@localhost", "commit", "--quiet", "--message")


def git(folder: Path, *words: object) -> str:
    return run("git", "-C", folder, *words).strip()


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What can be released: a commit on main that CI has passed for, with a date in CHANGELOG."""
    root = tmp_path_factory.mktemp("sources")
    told = {place.path for package in PACKAGES for place in package.places}
    for path in (*told, *provenance.LOCKS):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, root / path)
    for folder in (GOLDEN, "release"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / folder, root / folder, ignore=ignored, dirs_exist_ok=True)
    (root / ".gitignore").write_text("/target/\n__pycache__/\n")
    changelog = root / "CHANGELOG.md"
    text = changelog.read_text()
    changelog.write_text(text.replace(f"## Unreleased ({VERSION})", DATED))
    git(root, "init", "--quiet", "--initial-branch=main")
    git(root, "add", "--all")
    git(root, *COMMIT, "All")
    passed(root)
    return root


def passed(root: Path) -> None:
    (root / "target").mkdir(exist_ok=True)
    (root / checks.PASSED).write_text(git(root, "rev-parse", "HEAD") + "\n")


@pytest.fixture
def clone(sources: Path, tmp_path: Path) -> Path:
    """Of these, for a test to break."""
    root = tmp_path / "clone"
    shutil.copytree(sources, root)
    return root


def problems(root: Path, version: str = VERSION, ci: str | None = None) -> list[str]:
    return checks.failing(Candidate(root, version, ci), OF_A_RELEASE)


def replaced(root: Path, path: str, old: str, new: str) -> None:
    text = (root / path).read_text()
    assert old in text, path
    (root / path).write_text(text.replace(old, new, 1))


def committed(root: Path) -> None:
    git(root, "add", "--all")
    git(root, *COMMIT, "More")
    passed(root)


def test_nothing_is_wrong_with_what_can_be_released(sources: Path) -> None:
    assert problems(sources) == []


@pytest.mark.parametrize(
    ("package", "place"),
    [(package, place) for package in PACKAGES for place in package.places],
    ids=lambda it: it.name if isinstance(it, versions.Package) else f"{it.path}-{it.pattern}",
)
def test_each_place_with_another_version_is_found(
    sources: Path, package: versions.Package, place: versions.Place
) -> None:
    file = sources / place.path
    text = file.read_text()
    told = next(place.found(text))
    try:
        file.write_text(text[: told.start(1)] + "98.7.6" + text[told.end(1) :])
        found = list(checks.versions_agree(Candidate(sources, VERSION)))
    finally:
        file.write_text(text)
    assert any(place.path in problem and "98.7.6" in problem for problem in found)


def test_a_place_that_names_no_version_any_more_is_found(clone: Path) -> None:
    (clone / "kubernetes/autoscaling/board.yaml").write_text(
        "image: registry.example/dq-board:latest\n"
    )
    committed(clone)
    assert problems(clone) == ["kubernetes/autoscaling/board.yaml names no version of DQ"]


def test_all_packages_of_the_sources_are_released() -> None:
    folders = [
        *(path.parent for path in (ROOT / "integrations").glob("*/pyproject.toml")),
        *(path for path in (ROOT / "clients").iterdir() if path.name != "contract"),
    ]
    released = {package.name for package in versions.OTHERS}
    assert released == {str(path.relative_to(ROOT)) for path in folders}


def test_nothing_is_packed_under_two_versions(clone: Path) -> None:
    """`make dist` alone refuses that, too."""
    replaced(clone, "board/Cargo.toml", VERSION, "98.7.6")
    pack = [TOOLS / "bin/python", clone / "release/pack.py", "--out", clone, "--build", clone, HERE]
    told = subprocess.run(
        pack,
        capture_output=True,
        text=True,
        env={"SOURCE_DATE_EPOCH": "0", "PATH": "/usr/bin:/bin"},
    )
    assert told.returncode == 1
    assert "one release has one version: board/Cargo.toml says DQ 98.7.6" in told.stderr


@pytest.mark.parametrize(
    ("version", "problem"),
    [
        ("0.99.0", f"0.99.0 is to be released, and Cargo.toml says {VERSION}"),
        ("0.99.0", "CHANGELOG.md has no heading for 0.99.0"),
        ("0.99.0", "tests/golden/0.99 has no content.json, "),
        ("v0.3", "'v0.3' is no version"),
    ],
)
def test_another_version_than_that_of_the_sources_is_refused(
    sources: Path, version: str, problem: str
) -> None:
    assert any(told.startswith(problem) for told in problems(sources, version))


def without_a_date(root: Path) -> None:
    replaced(root, "CHANGELOG.md", DATED, f"## Unreleased ({VERSION})")


def with_a_date_that_is_none(root: Path) -> None:
    replaced(root, "CHANGELOG.md", DATED, f"## {VERSION} (soon)")


def without_words(root: Path) -> None:
    replaced(root, "CHANGELOG.md", f"{DATED}\n", f"{DATED}\n\n## 0.1.0 (2026-01-01)\n")


def without_a_golden_file(root: Path) -> None:
    (root / GOLDEN / "session.aof").unlink()


def with_a_golden_file_that_is_not_committed(root: Path) -> None:
    git(root, "rm", "--quiet", "--cached", f"{GOLDEN}/dump.rdb")
    (root / ".gitignore").write_text("*.rdb\n/target/\n__pycache__/\n")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (without_a_date, f"CHANGELOG.md has to say when: ## {VERSION} (YYYY-MM-DD)"),
        (with_a_date_that_is_none, f"CHANGELOG.md has to say when: ## {VERSION} (YYYY-MM-DD)"),
        (without_words, f"CHANGELOG.md says nothing of {VERSION}"),
        (without_a_golden_file, f"{GOLDEN} has no session.aof: "),
        (with_a_golden_file_that_is_not_committed, f"{GOLDEN} has no dump.rdb: "),
    ],
)
def test_what_a_version_lacks_is_found(
    clone: Path, change: Callable[[Path], None], problem: str
) -> None:
    change(clone)
    committed(clone)
    (told,) = problems(clone)
    assert told.startswith(problem)


def test_a_file_that_is_not_as_committed_is_found(clone: Path) -> None:
    (clone / "new").touch()
    assert problems(clone) == ["1 files aren't as committed, such as new"]
    (clone / "new").unlink()
    replaced(clone, "docs/install.md", "# Install DQ", "# Install it")
    assert problems(clone) == ["1 files aren't as committed, such as docs/install.md"]


def test_another_branch_than_main_is_refused(clone: Path) -> None:
    git(clone, "switch", "--quiet", "--create", "other")
    assert problems(clone) == ["a release is made on main, not on other"]
    git(clone, "switch", "--quiet", "--detach")
    assert problems(clone) == ["a release is made on main, not on no branch"]


def test_ci_must_have_passed_for_this_very_commit(clone: Path) -> None:
    before = git(clone, "rev-parse", "HEAD")
    git(clone, *COMMIT, "Nothing", "--allow-empty")
    here = git(clone, "rev-parse", "HEAD")
    assert problems(clone) == [
        f"target/ci-passed is {before[:12]}, and {here[:12]} is to be released"
    ]
    assert problems(clone, ci=before) == [
        f"CI={before} is {before[:12]}, and {here[:12]} is to be released"
    ]
    assert problems(clone, ci=here[:10]) == []
    assert problems(clone, ci="green") == [
        "CI=green names no commit: let .ci/run pass, or say CI=COMMIT if it passed elsewhere"
    ]
    (clone / checks.PASSED).unlink()
    (told,) = problems(clone)
    assert told.startswith("target/ci-passed names no commit")


def test_the_tag_of_another_commit_is_not_moved(clone: Path) -> None:
    git(clone, "tag", f"v{VERSION}")
    assert problems(clone) == []
    git(clone, *COMMIT, "Nothing", "--allow-empty")
    passed(clone)
    (told,) = problems(clone)
    assert told.startswith(f"the tag v{VERSION} is that of another commit")


def test_sources_without_git_are_no_release(clone: Path) -> None:
    shutil.rmtree(clone / ".git")
    assert "git knows no commit here: a release is made from a clone" in problems(clone)


# ---- the papers ----------------------------------------------------------------------------------


def step(root: Path, *words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, root / "release/release.py", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def built(clone: Path) -> Path:
    """As if for all processors: all names, and a few bytes each."""
    dist = clone / "target/dist"
    dist.mkdir()
    names = release.expected(clone, VERSION, tuple(release.debian.ARCHITECTURES))
    for name in names:
        (dist / name).write_text(f"the bytes of {name}\n")
    (dist / "SHA256SUMS").write_text(release.sums_of(dist, names))
    return dist


def test_a_step_tells_all_that_is_wrong_and_fails(clone: Path) -> None:
    without_a_date(clone)
    (clone / checks.PASSED).unlink()
    told = step(clone, "check", VERSION)
    assert told.returncode == 1
    assert len(told.stderr.splitlines()) == 3
    dry = step(clone, "check", VERSION, "--dry-run")
    assert dry.returncode == 0
    assert dry.stderr.count("release: not yet: ") == 3


def test_a_dry_run_fails_for_what_is_wrong_between_releases_too(clone: Path) -> None:
    replaced(clone, "board/Cargo.toml", VERSION, "98.7.6")
    told = step(clone, "check", VERSION, "--dry-run")
    assert told.returncode == 1
    assert "release: board/Cargo.toml says DQ 98.7.6" in told.stderr


def test_the_papers_of_a_release_that_has_a_key(clone: Path, built: Path, tmp_path: Path) -> None:
    run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / "key")
    signers = tmp_path / "signers"
    signers.write_text(f"dq@localhost {(tmp_path / 'key.pub').read_text()}")
    for name, value in (
        *(("user.name", "DQ"), ("user.email", "dq@localhost"), ("gpg.format", "ssh")),
        *(("user.signingkey", tmp_path / "key"), ("gpg.ssh.allowedSignersFile", signers)),
    ):
        git(clone, "config", name, value)
    told = step(clone, "papers", VERSION)
    assert told.returncode == 0, told.stderr
    out = clone / f"target/release-{VERSION}"
    assert (out / "NOTES.md").read_text().startswith(f"# DQ {VERSION}\n\n")
    # The tag signs the sums, and by them the files.
    tag = subprocess.run(
        ["git", "-C", clone, "tag", "--verify", f"v{VERSION}"], capture_output=True, text=True
    )
    assert tag.returncode == 0, tag.stderr
    sums = hashlib.sha256((out / "SHA256SUMS").read_bytes()).hexdigest()
    assert f"\nDQ {VERSION}\n" in tag.stdout
    assert f"\n{sums}  SHA256SUMS\n" in tag.stdout
    assert git(clone, "rev-parse", f"v{VERSION}^{{commit}}") == git(clone, "rev-parse", "HEAD")
    # Again: the same papers, and the tag stays.
    again = step(clone, "papers", VERSION)
    assert again.returncode == 0
    assert "is there already" in again.stderr


def test_without_a_key_the_command_is_told_and_nothing_tagged(clone: Path, built: Path) -> None:
    git(clone, "config", "user.signingkey", "")
    told = step(clone, "papers", VERSION)
    assert told.returncode == 0
    message = clone / f"target/release-{VERSION}.tag-message"
    head = git(clone, "rev-parse", "HEAD")
    assert f"--file {message} v{VERSION} {head}\n" in told.stderr
    assert message.exists()
    assert git(clone, "tag") == ""


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (
            lambda dist: (dist / f"dq-module_{VERSION}_arm64.deb").unlink(),
            f"has no dq-module_{VERSION}_arm64.deb",
        ),
        (lambda dist: (dist / "dq-0.0.1-linux-x86_64.tar.gz").touch(), "is no part of the release"),
        (
            lambda dist: (dist / f"dq-board_{VERSION}_amd64.deb").write_text("other"),
            "has other sums than the files",
        ),
    ],
    ids=["missing", "foreign", "changed"],
)
def test_files_that_are_no_release_get_no_papers(
    clone: Path, built: Path, change: Callable[[Path], object], problem: str
) -> None:
    change(built)
    told = step(clone, "papers", VERSION)
    assert told.returncode == 1
    assert problem in told.stderr
    assert not (clone / f"target/release-{VERSION}").exists()


def test_papers_are_refused_when_the_sources_have_changed_while_they_were_built(
    clone: Path, built: Path
) -> None:
    (clone / "new").touch()
    told = step(clone, "papers", VERSION)
    assert told.returncode == 1
    assert "1 files aren't as committed" in told.stderr


# ---- what was built here -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def dry_run(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dry run of `make release` on what was built, whatever of a release these sources lack."""
    out = tmp_path_factory.mktemp("release") / "out"
    settings = {"DRY_RUN": "1", "VERSION": VERSION, "DIST_OUT": dist, "OUT": out}
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))
    }
    told = subprocess.run(
        ["make", "-C", ROOT, "release", *(f"{name}={value}" for name, value in settings.items())],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert told.returncode == 0, told.stdout + told.stderr
    return out


def test_a_dry_run_tags_nothing(request: pytest.FixtureRequest) -> None:
    before = git(ROOT, "tag")
    assert request.getfixturevalue("dry_run").is_dir()
    assert git(ROOT, "tag") == before


def test_the_sums_hold_where_the_files_are_published(dry_run: Path, dist: Path) -> None:
    assert (dry_run / "SHA256SUMS").read_bytes() == (dist / "SHA256SUMS").read_bytes()
    run("sh", "-c", f"cd '{dry_run}' && sha256sum --check --strict --quiet SHA256SUMS")


def test_the_provenance_speaks_of_the_files_as_they_are(dry_run: Path) -> None:
    told = json.loads((dry_run / f"dq-{VERSION}.provenance.json").read_text())
    assert told["_type"] == "https://in-toto.io/Statement/v1"
    assert told["predicateType"] == "https://slsa.dev/provenance/v1"
    subjects = {it["name"]: it["digest"]["sha256"] for it in told["subject"]}
    assert len(subjects) == len(told["subject"])
    papers = {f"dq-{VERSION}.provenance.json", "NOTES.md"}
    assert subjects == {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in dry_run.iterdir()
        if path.name not in papers
    }
    assert f"dq-{VERSION}-linux-{HERE}.tar.gz" in subjects


def test_the_provenance_names_sources_pins_and_tools(dry_run: Path) -> None:
    told = json.loads((dry_run / f"dq-{VERSION}.provenance.json").read_text())["predicate"]
    commit = {"gitCommit": git(ROOT, "rev-parse", "HEAD")}
    asked = told["buildDefinition"]["externalParameters"]
    assert asked["source"] == {"digest": commit}
    assert asked["version"] == VERSION
    assert HERE in asked["architectures"]
    found = told["buildDefinition"]["resolvedDependencies"]
    assert found[0]["digest"] == commit
    locks = {it["name"]: it["digest"]["sha256"] for it in found[1:] if "name" in it}
    assert locks == {
        path: hashlib.sha256((ROOT / path).read_bytes()).hexdigest() for path in provenance.LOCKS
    }
    rustc = run("rustc", "--version").split()[1]
    tools = {it["uri"] for it in found if "uri" in it}
    assert f"pkg:generic/rustc@{rustc}" in tools
    assert any(uri.startswith("pkg:pypi/ziglang@") for uri in tools)
    assert told["runDetails"]["builder"]["id"] == provenance.BUILDER


def test_the_list_beside_the_archive_is_the_one_in_it(dist: Path, unpacked: Path) -> None:
    beside = dist / f"dq-{VERSION}-linux-{HERE}.cdx.json"
    assert beside.read_bytes() == (unpacked / "sbom.cdx.json").read_bytes()
