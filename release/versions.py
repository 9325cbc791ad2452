"""Where the versions of a release are written down: all places of a package say the same."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# What a version looks like, as far as ours go: no pre-releases.
FORM = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+")
NUMBER = rf"({FORM.pattern})"


@dataclass(frozen=True)
class Place:
    """Each match of `pattern` in a file of the sources names the version."""

    path: str
    pattern: str

    def found(self, text: str) -> Iterator[re.Match[str]]:
        return re.finditer(self.pattern, text, re.MULTILINE)

    def told(self, root: Path) -> list[str]:
        return [found[1] for found in self.found((root / self.path).read_text())]


@dataclass(frozen=True)
class Package:
    """Its first place is where its version comes from. `files` is what is released of it alone."""

    name: str
    places: tuple[Place, ...]
    files: tuple[str, ...] = ()

    def version(self, root: Path) -> str:
        return next(iter(self.places[0].told(root)), "none")

    def disagreements(self, root: Path) -> Iterator[str]:
        version = self.version(root)
        for place in self.places:
            told = place.told(root)
            if not told:
                yield f"{place.path} names no version of {self.name}"
            for other in sorted(set(told) - {version}):
                yield f"{place.path} says {self.name} {other}, {self.places[0].path} {version}"


INSTALL = "docs/install.md"


def _of_toml(folder: str = "") -> Place:
    return Place(f"{folder}Cargo.toml", rf'^version = "{NUMBER}"$')


def _of_lock(path: str, name: str) -> Place:
    return Place(path, rf'^name = "{name}"\nversion = "{NUMBER}"$')


def _of_python(folder: str, module: str) -> Package:
    return Package(
        folder,
        (
            Place(f"{folder}/pyproject.toml", rf'^version = "{NUMBER}"$'),
            Place(f"{folder}/src/{module}/__init__.py", rf'^__version__ = "{NUMBER}"$'),
            Place(INSTALL, rf"\b{module}-{NUMBER}-py3"),
        ),
        (f"{module}-{{}}-py3-none-any.whl", f"{module}-{{}}.tar.gz"),
    )


# The module, the board and what is named after them have the version of the release.
MODULE = Package(
    "DQ",
    (
        _of_toml(),
        _of_lock("Cargo.lock", "dq"),
        _of_lock("fuzz/Cargo.lock", "dq"),
        _of_toml("board/"),
        _of_lock("board/Cargo.lock", "dq-board"),
        # The newest heading alone.
        Place("CHANGELOG.md", rf"\A(?:.*\n)*?## (?:Unreleased \()?{NUMBER}"),
        Place(INSTALL, rf"\bdq-(?:module_|board_)?{NUMBER}[-_](?:linux|amd64|arm64)"),
        Place(INSTALL, rf"as a number, [0-9]+ for {NUMBER}"),
        Place(INSTALL, rf"git tag --verify v{NUMBER}"),
        Place("kubernetes/autoscaling/board.yaml", rf"/dq-board:{NUMBER}$"),
        Place("helm/dq/Chart.yaml", rf"^version: {NUMBER}$"),
        Place("helm/dq/Chart.yaml", rf'^appVersion: "{NUMBER}"$'),
        Place("helm/dq/README.md", rf"/(?:redis-dq|dq-board):{NUMBER}\b"),
    ),
)

# These have versions of their own.
PYTHON = (
    _of_python("clients/python", "dq_client"),
    _of_python("integrations/kombu-dq", "kombu_dq"),
    _of_python("integrations/django-dq", "django_dq"),
    _of_python("integrations/dramatiq-dq", "dramatiq_dq"),
    _of_python("integrations/taskiq-dq", "taskiq_dq"),
)
OTHERS = (
    *PYTHON,
    Package(
        "clients/rust",
        (
            _of_toml("clients/rust/"),
            _of_lock("clients/rust/Cargo.lock", "dq-client"),
            Place(INSTALL, rf"\bdq-client-{NUMBER}\.crate"),
        ),
        ("dq-client-{}.crate",),
    ),
    Package(
        "clients/typescript",
        (
            Place("clients/typescript/package.json", rf'^  "version": "{NUMBER}"'),
            Place(
                "clients/typescript/package-lock.json",
                rf'"name": "dq-client",\n +"version": "{NUMBER}"',
            ),
            Place(INSTALL, rf"\bdq-client-{NUMBER}\.tgz"),
        ),
        ("dq-client-{}.tgz",),
    ),
)


def disagreements(root: Path) -> list[str]:
    return [told for package in (MODULE, *OTHERS) for told in package.disagreements(root)]
