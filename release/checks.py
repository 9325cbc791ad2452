"""What has to be true before a release is built. Each check says what is wrong and what to do."""

import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import changelog
import versions

BRANCH = "main"
# .ci/run writes the commit there that it passed for.
PASSED = Path("target/ci-passed")
# What tests/golden/make.py makes for a version.
GOLDEN = (
    *("content.json", "digests.json", "dump.rdb"),
    *("payloads.json", "rewritten.aof", "session.aof"),
)


@dataclass(frozen=True)
class Candidate:
    """What is to be released. `ci` is a commit for which a person says that CI has passed."""

    root: Path
    version: str
    ci: str | None = None

    def git(self, *words: str) -> str:
        """What git says, without the newline; nothing where it fails."""
        told = subprocess.run(
            ["git", "-C", self.root, *words], capture_output=True, text=True, check=False
        )
        return told.stdout.strip() if told.returncode == 0 else ""

    @property
    def commit(self) -> str:
        return self.git("rev-parse", "HEAD")

    @property
    def tag(self) -> str:
        return f"v{self.version}"


Check = Callable[[Candidate], Iterator[str]]


def versions_agree(candidate: Candidate) -> Iterator[str]:
    if not versions.FORM.fullmatch(candidate.version):
        yield f"{candidate.version!r} is no version: it has to look like 1.2.3"
    ours = versions.MODULE.version(candidate.root)
    if ours != candidate.version:
        yield f"{candidate.version} is to be released, and Cargo.toml says {ours}"
    yield from versions.disagreements(candidate.root)


def changelog_has_the_version(candidate: Candidate) -> Iterator[str]:
    """With or without a date."""
    found = entry(candidate)
    if found is None:
        yield f"CHANGELOG.md has no heading for {candidate.version}"
    elif not found.text.strip():
        yield f"CHANGELOG.md says nothing of {candidate.version}"


def golden_files_are_there(candidate: Candidate) -> Iterator[str]:
    """One folder for all versions that differ in the last number: they write the same."""
    minor = candidate.version.rpartition(".")[0]
    folder = f"tests/golden/{minor}"
    missing = [name for name in GOLDEN if not candidate.git("ls-files", f"{folder}/{name}")]
    if missing:
        yield f"{folder} has no {', '.join(missing)}: tests/golden/make.py {minor}, and commit it"


def the_tree_is_clean(candidate: Candidate) -> Iterator[str]:
    if not candidate.commit:
        yield "git knows no commit here: a release is made from a clone"
    changed = candidate.git("status", "--porcelain").splitlines()
    if changed:
        yield f"{len(changed)} files aren't as committed, such as {changed[0].split(maxsplit=1)[1]}"


def the_branch_is_main(candidate: Candidate) -> Iterator[str]:
    branch = candidate.git("branch", "--show-current")
    if branch != BRANCH:
        yield f"a release is made on {BRANCH}, not on {branch or 'no branch'}"


def the_tag_is_free(candidate: Candidate) -> Iterator[str]:
    """Or that of this commit: then the release is made again."""
    tagged = candidate.git("rev-parse", "--verify", "--quiet", f"{candidate.tag}^{{commit}}")
    if tagged and tagged != candidate.commit:
        yield f"the tag {candidate.tag} is that of another commit, {tagged[:12]}"


def the_heading_has_a_date(candidate: Candidate) -> Iterator[str]:
    found = entry(candidate)
    if found is not None and found.date is None:
        yield f"CHANGELOG.md has to say when: ## {candidate.version} (YYYY-MM-DD)"


def ci_has_passed(candidate: Candidate) -> Iterator[str]:
    if candidate.ci is not None:
        meant = candidate.git("rev-parse", "--verify", "--quiet", f"{candidate.ci}^{{commit}}")
        where = f"CI={candidate.ci}"
    else:
        file = candidate.root / PASSED
        meant = file.read_text().strip() if file.exists() else ""
        where = str(PASSED)
    if not meant:
        yield f"{where} names no commit: let .ci/run pass, or say CI=COMMIT if it passed elsewhere"
    elif meant != candidate.commit:
        yield f"{where} is {meant[:12]}, and {candidate.commit[:12]} is to be released"


# True between releases, too.
ALWAYS: tuple[Check, ...] = (versions_agree, changelog_has_the_version, golden_files_are_there)
# A dry run tells what of these isn't so yet, and goes on.
AT_RELEASE: tuple[Check, ...] = (
    the_tree_is_clean,
    the_branch_is_main,
    the_tag_is_free,
    the_heading_has_a_date,
    ci_has_passed,
)


def failing(candidate: Candidate, checks: tuple[Check, ...]) -> list[str]:
    """All of them, not the first alone."""
    return [problem for check in checks for problem in check(candidate)]


def entry(candidate: Candidate) -> changelog.Entry | None:
    page = (candidate.root / "CHANGELOG.md").read_text()
    return next((it for it in changelog.entries(page) if it.version == candidate.version), None)
