"""A program as a container runtime starts it: in a root of its own that it can't write to, under a
user without rights. There is no runtime where the tests run, so the root is made of this machine's
files: a program, the libraries that it is linked with, and what else a test puts there.
"""

import contextlib
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

# $1: the root; $2: the user; then volumes, a source and a place each, up to --; then the command.
START = """
set -eu
root=$1 user=$2
shift 2
mount --bind "$root" "$root"
while [ "$1" != -- ]; do
  mount --bind "$1" "$root$2"
  shift 2
done
shift
mount -t proc proc "$root/proc"
mount -o remount,bind,ro "$root"
# Not exec: when the parent is killed, the kernel kills this shell, and with it all processes of its namespace.
chroot --userspec="$user:$user" --groups= "$root" "$@"
exit $?
"""
NEEDS_ROOT = os.geteuid() != 0


class Image:
    """A root folder."""

    def __init__(self, root: Path):
        self.root = root
        # A runtime gives every container this.
        (root / "proc").mkdir(parents=True)

    def add(self, source: Path, place: str, mode: int = 0o755) -> None:
        """A file, and where it is a program or a library, what that is linked with."""
        self._copy(source, place, mode)
        told = subprocess.run(["ldd", source], capture_output=True, text=True, check=False).stdout
        for library in re.findall(r"(/\S+) \(0x", told):
            if not self._path(library).exists():
                self._copy(Path(library).resolve(), library, 0o755)

    def write(self, place: str, text: str) -> None:
        path = self._path(place)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def _copy(self, source: Path, place: str, mode: int) -> None:
        path = self._path(place)
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, path)
        path.chmod(mode)

    def _path(self, place: str) -> Path:
        return self.root / place.removeprefix("/")


class Container:
    """A running program of an image. `volumes` are folders by the place where the program sees
    them, the only ones that it can write to.
    """

    def __init__(
        self,
        image: Image,
        command: Sequence[str],
        *,
        user: int,
        log: Path,
        environment: Mapping[str, str],
        volumes: Mapping[str, Path],
    ):
        mounts: list[str] = []
        for place, folder in volumes.items():
            (image.root / place.removeprefix("/")).mkdir(parents=True, exist_ok=True)
            os.chown(folder, user, user)
            mounts += [str(folder), place]
        self._log_path = log
        with log.open("ab") as opened:
            self._process = subprocess.Popen(
                [
                    *("setpriv", "--pdeathsig", "KILL", "--no-new-privs"),
                    *("unshare", "--mount", "--pid", "--fork", "--kill-child"),
                    *("sh", "-c", START, "sh", str(image.root), str(user)),
                    *(*mounts, "--", *command),
                ],
                stdin=subprocess.DEVNULL,
                stdout=opened,
                stderr=opened,
                # What a runtime sets by itself, and nothing of this process.
                env={"PATH": "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", **environment},
            )

    def is_up(self) -> bool:
        return self._process.poll() is None

    def wait(self) -> int:
        """Its exit code, once it has ended."""
        return self._process.wait(30)

    def log(self) -> str:
        return self._log_path.read_text(errors="replace")

    def stop(self) -> None:
        end(self._process)


def end(process: subprocess.Popen[Any]) -> None:
    """Ends what `unshare --fork` or `nsenter --pid` has started, and returns when it is gone: ports
    are free then. Either waits for its child; and a child that is the first of its namespace has
    gone when all others of that have.
    """
    with contextlib.suppress(ProcessLookupError, FileNotFoundError):
        for child in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split():
            os.kill(int(child), signal.SIGKILL)
            process.wait(20)
    process.kill()
    process.wait(20)
