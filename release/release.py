"""`make release`: checks a version before it is built, and makes the papers of what was built.

release.py check  VERSION [--ci COMMIT] [--dry-run]
release.py papers VERSION [--ci COMMIT] [--dry-run] --dist FOLDER --out FOLDER [--builder URI]

A dry run makes the papers of whatever was built, and tags nothing. CONTRIBUTING.md has the steps.
"""

import argparse
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path

import archive
import checks
import debian
import provenance
import versions
from checks import Candidate
from links import placed

ROOT = Path(__file__).resolve().parents[1]
SUMS = "SHA256SUMS"
NOTES = "NOTES.md"


def main() -> None:
    options = _options()
    candidate = Candidate(ROOT, options.version, options.ci)
    if options.step == "check":
        check(candidate, options.dry_run)
        return
    if not options.dry_run:
        # The sources may have changed while they were built.
        check(candidate, False)
    elif not (options.dist / SUMS).exists():
        say(f"nothing is in {options.dist}, so no papers: make dist")
        return
    architectures = built_architectures(options.dist, options.version)
    problems = [*incomplete(candidate, options.dist, architectures, options.dry_run)]
    stop_for(problems)
    write_papers(candidate, options.dist, options.out, architectures, options.builder)
    say(f"{options.out} has what is to be published")
    if not options.dry_run:
        prepare_tag(candidate, options.out)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("step", choices=["check", "papers"])
    parser.add_argument("version")
    # `make release` without CI= gives an empty one.
    parser.add_argument("--ci", type=lambda told: told or None)
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("--dist", type=Path, default=ROOT / "target" / "dist")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--builder", default=provenance.BUILDER)
    options = parser.parse_args()
    folder = "release-dry-run" if options.dry_run else f"release-{options.version}"
    options.out = options.out or ROOT / "target" / folder
    return options


# ---- before --------------------------------------------------------------------------------------


def check(candidate: Candidate, is_dry: bool) -> None:
    problems = checks.failing(candidate, checks.ALWAYS)
    at_release = checks.failing(candidate, checks.AT_RELEASE)
    if is_dry:
        for problem in at_release:
            say(f"not yet: {problem}")
    else:
        problems += at_release
    stop_for(problems)
    say(f"{candidate.version} is ready to be built" if not at_release else "the dry run goes on")


def stop_for(problems: list[str]) -> None:
    for problem in problems:
        say(problem)
    if problems:
        sys.exit(1)


def say(line: str) -> None:
    print(f"release: {line}", file=sys.stderr)


# ---- after ---------------------------------------------------------------------------------------


def built_architectures(dist: Path, version: str) -> tuple[str, ...]:
    return tuple(
        arch
        for arch in sorted(debian.ARCHITECTURES)
        if (dist / f"dq-{version}-linux-{arch}.tar.gz").exists()
    )


def expected(root: Path, version: str, architectures: tuple[str, ...]) -> set[str]:
    """The files of a release for these processors."""
    names: set[str] = set()
    for arch in architectures:
        names |= {f"dq-{version}-linux-{arch}.tar.gz", f"dq-{version}-linux-{arch}.cdx.json"}
        names |= {
            f"{package}_{version}_{debian.ARCHITECTURES[arch]}.deb"
            for package in ("dq-module", "dq-board")
        }
    for package in versions.OTHERS:
        names |= {file.format(package.version(root)) for file in package.files}
    return names


def incomplete(
    candidate: Candidate, dist: Path, architectures: tuple[str, ...], is_dry: bool
) -> Iterator[str]:
    """What is missing, and what is there and no part of it. A dry run may have fewer processors."""
    wanted = architectures if is_dry else tuple(sorted(debian.ARCHITECTURES))
    if not wanted:
        yield f"{dist} has no archive of {candidate.version}"
    there = {path.name for path in dist.iterdir()} - {SUMS}
    names = expected(candidate.root, candidate.version, wanted)
    yield from (f"{dist} has no {name}" for name in sorted(names - there))
    yield from (f"{name} in {dist} is no part of the release" for name in sorted(there - names))
    if sums_of(dist, there) != (dist / SUMS).read_text():
        yield f"{dist}/{SUMS} has other sums than the files"


def sums_of(folder: Path, names: set[str]) -> str:
    return archive.sums({name: (folder / name).read_bytes() for name in names})


def write_papers(
    candidate: Candidate, dist: Path, out: Path, architectures: tuple[str, ...], builder: str
) -> None:
    """`out` is made anew: the built files, their sums by `make dist`, and what is said of them."""
    shutil.rmtree(out, ignore_errors=True)
    shutil.copytree(dist, out)
    built = provenance.Build(
        root=candidate.root,
        version=candidate.version,
        architectures=architectures,
        commit=candidate.commit,
        epoch=int(candidate.git("log", "-1", "--format=%ct")),
        finished=datetime.fromtimestamp((dist / SUMS).stat().st_mtime, timezone.utc),
        builder=builder,
    )
    files = [path for path in out.iterdir()]
    told = provenance.statement(built, files)
    (out / f"dq-{candidate.version}.provenance.json").write_text(told)
    (out / NOTES).write_text(notes(candidate))
    tag_file(out).write_text(tag_message(candidate, out))


def notes(candidate: Candidate) -> str:
    """The version's section of CHANGELOG.md, which is read where no other page is."""
    found = checks.entry(candidate)
    assert found, "checks.changelog_has_the_version"
    page = f"# DQ {candidate.version}\n\n{found.text}"
    return placed({"CHANGELOG.md": page.encode()})["CHANGELOG.md"].decode()


def tag_file(out: Path) -> Path:
    """Beside the folder: it is not published but signed."""
    return out.with_name(f"{out.name}.tag-message")


def tag_message(candidate: Candidate, out: Path) -> str:
    """Who signs the tag signs the files, too."""
    return (
        f"DQ {candidate.version}\n\n"
        f"NOTES.md says what changed. The released files have these sums:\n\n"
        f"{provenance.sha256(out / SUMS)}  {SUMS}\n"
    )


def prepare_tag(candidate: Candidate, out: Path) -> None:
    """Made where git has a key to sign with, told otherwise. It is never pushed from here."""
    command = [
        *("git", "-C", str(candidate.root), "tag", "--sign", "--cleanup=whitespace"),
        *("--file", str(tag_file(out)), candidate.tag, candidate.commit),
    ]
    if candidate.git("rev-parse", "--verify", "--quiet", f"refs/tags/{candidate.tag}"):
        say(f"the tag {candidate.tag} is there already; {tag_file(out)} is what it has to say")
    elif candidate.git("config", "user.signingkey"):
        subprocess.run(command, check=True)
        say(f"the tag {candidate.tag} is made and signed, here alone")
    else:
        say(f"git has no user.signingkey here. Who has a key says: {' '.join(command)}")


if __name__ == "__main__":
    main()
