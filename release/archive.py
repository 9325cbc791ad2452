"""Archives whose bytes depend on nothing but what is in them."""

import gzip
import hashlib
import io
import tarfile
from pathlib import Path


def write_tar_gz(path: Path, top: str, files: dict[str, tuple[bytes, int]], epoch: int) -> None:
    """`files` are contents and modes by name, below the folder `top`. Sorted, of root, all of one
    time.
    """
    folders = {str(parent) for name in files for parent in Path(name).parents if str(parent) != "."}
    with (
        path.open("wb") as raw,
        gzip.GzipFile("", "wb", 9, raw, mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.USTAR_FORMAT) as tar,
    ):
        for name in ["", *sorted(folders | files.keys())]:
            member = tarfile.TarInfo(f"{top}/{name}".rstrip("/"))
            member.mtime, member.uname, member.gname = epoch, "root", "root"
            if name in files:
                content, member.mode = files[name]
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
            else:
                member.type, member.mode = tarfile.DIRTYPE, 0o755
                tar.addfile(member)


def sums(contents: dict[str, bytes]) -> str:
    """As sha256sum writes and checks them."""
    return "".join(
        f"{hashlib.sha256(contents[name]).hexdigest()}  {name}\n" for name in sorted(contents)
    )
