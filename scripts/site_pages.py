"""Puts the repository's pages where MkDocs builds the site from them: `make site` calls this.

Each page keeps its path, so its links are the same on the site as on a code host. A link to what
isn't on the site, such as a source file, becomes its text.
"""

import re
import shutil
import subprocess
from pathlib import Path

from links import placed

ROOT = Path(__file__).resolve().parents[1]
SITE = ROOT / "target" / "site"
PAGES = "pages"
# What only a code host shows, and pictures that aren't of pages.
LEFT_OUT = (".github/", "board/", "tests/")
# MkDocs knows no second word: ```transcript resp3, ```rust,ignore.
MARK = re.compile(rb"^( *```\w+)[ ,]\w+$", re.MULTILINE)


def main() -> None:
    shown = ("*.md", "*.png", "*.svg")
    listed = subprocess.check_output(["git", "ls-files", *shown], cwd=ROOT, text=True)
    files = {
        path: MARK.sub(rb"\1", (ROOT / path).read_bytes())
        for path in listed.splitlines()
        if not path.startswith(LEFT_OUT)
    }
    shutil.rmtree(SITE / PAGES, ignore_errors=True)
    # Another place than in the sources: otherwise links to folders would stay.
    for path, content in placed(files, {path: f"{PAGES}/{path}" for path in files}).items():
        (SITE / path).parent.mkdir(parents=True, exist_ok=True)
        (SITE / path).write_bytes(content)


if __name__ == "__main__":
    main()
