"""The licences of what is linked: which ones are taken, and the file that passes their texts on."""

from collections import defaultdict
from typing import Any

from license_expression import get_spdx_licensing

from linked import Package

# All of them let a binary be passed on with their texts, and ask nothing of who uses it.
TAKEN = {
    *(
        "0BSD",
        "Apache-2.0",
        "Apache-2.0 WITH LLVM-exception",
        "BSD-2-Clause",
        "BSD-3-Clause",
        "BSL-1.0",
    ),
    *("ISC", "MIT", "Unicode-3.0", "Unlicense", "Zlib"),
}

# How the text of the MIT licence begins, below the line of whose it is.
MIT_BEGINS = "Permission is hereby granted"

_spdx = get_spdx_licensing()


def is_taken(expression: str) -> bool:
    """Whether what is taken satisfies an SPDX expression: one side of each OR, both of each AND."""
    return bool(expression) and _is_satisfied(_spdx.parse(expression, validate=True))


def notices(packages: list[Package], our_licence: str) -> str:
    """The text of THIRD-PARTY-LICENSES.txt. A text that several share stands once, below their
    names.
    """
    mit = our_licence[our_licence.index(MIT_BEGINS) :]
    sharing: dict[str, list[Package]] = defaultdict(list)
    for package in packages:
        if not is_taken(package.licence):
            raise ValueError(
                f"{package.name} {package.version} is under {package.licence or 'no licence'}"
            )
        for text in package.texts or (_text_for(package, packages, mit),):
            sharing[_tidy(text)].append(package)
    blocks = ["What the files of this archive are made of besides DQ, and under which licences.\n"]
    by_first_name = sorted(sharing.items(), key=lambda item: [(p.name, p.version) for p in item[1]])
    for text, owners in by_first_name:
        names = "\n".join(
            f"{p.name} {p.version} ({p.licence}) {p.repository}".rstrip() for p in owners
        )
        blocks.append(f"{names}\n{'-' * 80}\n{text}")
    return f"\n{'=' * 80}\n".join(blocks)


def _is_satisfied(node: Any) -> bool:
    if isinstance(node, _spdx.OR):
        return any(map(_is_satisfied, node.args))
    if isinstance(node, _spdx.AND):
        return all(map(_is_satisfied, node.args))
    return str(node) in TAKEN


def _text_for(package: Package, others: list[Package], mit: str) -> str:
    """For a package that forgot its text: that of another from the same repository under the same
    licence, or the text of MIT, which is the same for all, with the authors that it names."""
    for other in others:
        if other.texts and (other.repository, other.licence) == (
            package.repository,
            package.licence,
        ):
            return other.texts[0]
    if "MIT" in package.licence.split(" OR "):
        authors = ", ".join(package.authors) or f"the authors of {package.name}"
        return f"MIT License\n\nCopyright (c) {authors}\n\n{mit}"
    raise ValueError(f"{package.name} {package.version} ships no text of {package.licence}")


def _tidy(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip().splitlines()) + "\n"
