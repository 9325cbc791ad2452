"""Links between pages in a package that has some of the sources' files alone, perhaps at other
places.
"""

import posixpath
import re

FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"!?\[([^\]]*)\]\(([^)#\s]+)(#[^)\s]*)?\)")


def placed(files: dict[str, bytes], places: dict[str, str] | None = None) -> dict[str, bytes]:
    """`files`, by their paths in the sources, at their places in a package: `places`, or as in the
    sources.

    The links of the pages lead to these places. A link to what isn't in the package becomes its
    text.
    """
    places = {path: path for path in files} if places is None else places
    folders = {
        folder: folder
        for path, place in places.items()
        if path == place
        for folder in _folders_above(path)
    }
    return {
        place: _relinked(files[path], path, place, folders | places)
        if path.endswith(".md")
        else files[path]
        for path, place in places.items()
    }


def _relinked(page: bytes, path: str, place: str, places: dict[str, str]) -> bytes:
    def relinked(link: re.Match[str]) -> str:
        whole, text, target, anchor = link[0], link[1], link[2], link[3] or ""
        if "://" in target:
            return whole
        meant = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
        if meant not in places:
            return (
                f"{text} (in the sources)"
                if text.strip("`/") == meant
                else f"{text} (`{meant}` in the sources)"
            )
        leads_to = posixpath.relpath(places[meant], posixpath.dirname(place) or ".")
        slash = "/" if target.endswith("/") else ""
        return f"{whole[: whole.index('](')]}]({leads_to}{slash}{anchor})"

    # What stands in a fence are examples.
    parts = FENCE.split(page.decode())
    parts[::2] = [LINK.sub(relinked, part) for part in parts[::2]]
    return "".join(parts).encode()


def _folders_above(path: str) -> list[str]:
    found = []
    while path := posixpath.dirname(path):
        found.append(path)
    return found
