"""Pages as a browser without JavaScript reads them."""

import html
import re
from collections.abc import Iterator

from board import Answer, Board


def rows(page: Answer) -> list[str]:
    return [html.unescape(key) for key in re.findall(r'<tr data-key="([^"]*)"', page.text)]


def link_of(page: Answer, attributes: str) -> str | None:
    found = re.search(rf'<a [^>]*{attributes} href="([^"]+)"', page.text)
    return found and html.unescape(found[1])


def pages(board: Board, path: str) -> Iterator[Answer]:
    """A page and all behind it, by the links that a reader without JavaScript has."""
    at: str | None = path
    while at:
        page = board.get(at)
        assert page.status == 200
        yield page
        at = link_of(page, 'rel="next"') or link_of(page, "data-goes-on")


def form_of(page: Answer, form_id: str) -> list[tuple[str, str]]:
    """The hidden fields of a form, as a browser would send them."""
    form = re.split(f'<form [^>]*id="{form_id}"', page.text)[1].split("</form>", 1)[0]
    fields = re.findall(r'type="hidden" name="([^"]+)" value="([^"]*)"', form)
    return [(name, html.unescape(value)) for name, value in fields]


def ticks(page: Answer) -> dict[str, str]:
    """The value of each box, by the job's name."""
    return dict(zip(rows(page), re.findall(r'name="job" value="([^"]+)"', page.text), strict=True))
