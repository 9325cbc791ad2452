"""The .deb packages, installed and removed by dpkg in a root of their own."""

import os
import re
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from conftest import HERE, OTHER, VERSION, run
from harness.server import Kind, Server
from test_load import works

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
MODULE = "usr/lib/redis/modules/libdq.so"
UNIT = "usr/lib/systemd/system/dq-board.service"
SETTINGS = "etc/default/dq-board"
SCRIPTS = {"dq-module": {"prerm"}, "dq-board": {"postinst", "prerm", "postrm"}}
# As Debian describes an installed package, for what dq-module depends on.
LIBC = """\
Package: libc6
Status: install ok installed
Maintainer: nobody
Architecture: {architecture}
Version: {version}
Description: C library
"""


def deb(dist: Path, name: str, arch: str = HERE) -> Path:
    return dist / f"{name}_{VERSION}_{ARCHITECTURES[arch]}.deb"


@pytest.fixture
def debian(tmp_path: Path) -> Path:
    """A root with nothing in it but a libc, as far as dpkg knows."""
    if os.geteuid() != 0:
        pytest.skip("dpkg installs as root only")
    root = tmp_path / "debian"
    (root / "var/lib/dpkg/updates").mkdir(parents=True)
    has_libc(root, "2.28-10")
    return root


def has_libc(root: Path, version: str) -> None:
    status = LIBC.format(architecture=ARCHITECTURES[HERE], version=version)
    (root / "var/lib/dpkg/status").write_text(status)


def dpkg(root: Path, *words: object) -> str:
    """There is no shell in such a root: the packages' scripts run outside, and know of it."""
    return run("dpkg", f"--root={root}", "--force-script-chrootless", "--log=/dev/null", *words)


def installed(root: Path) -> set[str]:
    """All files that aren't dpkg's own."""
    paths = (
        path.relative_to(root) for path in root.rglob("*") if path.is_symlink() or not path.is_dir()
    )
    return {str(path) for path in paths if not str(path).startswith("var/lib/dpkg")}


def test_the_module_is_where_redis_and_valkey_look(
    dist: Path, debian: Path, unpacked: Path
) -> None:
    dpkg(debian, "--install", deb(dist, "dq-module"))
    module = debian / MODULE
    assert stat.S_IMODE(module.stat().st_mode) == 0o755
    assert module.read_bytes() == (unpacked / "libdq.so").read_bytes()
    assert (debian / "usr/lib/valkey/modules/libdq.so").resolve() == module
    assert run(
        "dpkg-query", f"--admindir={debian}/var/lib/dpkg", "-W", "-f", "${Status}", "dq-module"
    ) == ("install ok installed")
    dpkg(debian, "--verify", "dq-module")


def test_installing_the_packages_enables_no_service(dist: Path, debian: Path) -> None:
    dpkg(debian, "--install", deb(dist, "dq-module"), deb(dist, "dq-board"))
    # A unit, but none that something wants.
    of_systemd = {
        path for path in installed(debian) if path.startswith(("etc/", "lib/", "usr/lib/systemd"))
    }
    assert of_systemd == {UNIT, SETTINGS}
    for name, scripts in SCRIPTS.items():
        there = {
            path.suffix.removeprefix(".")
            for path in (debian / "var/lib/dpkg/info").glob(f"{name}.*")
        }
        assert there - {"conffiles"} == {"list", "md5sums"} | scripts
        for script in scripts:
            text = (debian / f"var/lib/dpkg/info/{name}.{script}").read_text()
            assert not re.search(r"(systemctl|invoke|helper) (enable|start|restart)\b", text), (
                script
            )
    assert (debian / "usr/share/doc/dq-module/examples/redis.conf.example").exists()


def test_removing_the_packages_leaves_nothing(dist: Path, debian: Path) -> None:
    dpkg(debian, "--install", deb(dist, "dq-module"), deb(dist, "dq-board"))
    assert len(installed(debian)) > 8
    dpkg(debian, "--remove", "dq-module", "dq-board")
    assert installed(debian) == {SETTINGS}
    assert "Package: dq-module\n" not in (debian / "var/lib/dpkg/status").read_text()
    dpkg(debian, "--purge", "dq-board")
    assert installed(debian) == set()
    assert "Package: dq-board\n" not in (debian / "var/lib/dpkg/status").read_text()


def test_an_upgrade_keeps_changed_settings_which_only_root_reads(dist: Path, debian: Path) -> None:
    dpkg(debian, "--install", deb(dist, "dq-board"))
    settings = debian / SETTINGS
    assert stat.S_IMODE(settings.stat().st_mode) == 0o640
    # Each setting is there, commented out, so that nothing is set unless the administrator does.
    names = re.findall(r"^#(DQ_BOARD_\w+)=", settings.read_text(), re.MULTILINE)
    assert names == ["DQ_BOARD_REDIS", "DQ_BOARD_AUTH", "DQ_BOARD_OPTIONS"]
    assert [line for line in settings.read_text().splitlines() if line and line[0] != "#"] == []
    settings.write_text("DQ_BOARD_AUTH=ann:secret\n")
    dpkg(debian, "--install", deb(dist, "dq-board"))
    assert settings.read_text() == "DQ_BOARD_AUTH=ann:secret\n"


def test_dpkg_refuses_an_older_libc(dist: Path, debian: Path) -> None:
    has_libc(debian, "2.27-3")
    with pytest.raises(AssertionError, match="libc6"):
        dpkg(debian, "--install", deb(dist, "dq-module"))


def test_the_installed_module_works(dist: Path, debian: Path, kind: Kind, tmp_path: Path) -> None:
    dpkg(debian, "--install", deb(dist, "dq-module"))
    folder = tmp_path / "server"
    folder.mkdir()
    server = Server(kind, folder, module=debian / f"usr/lib/{kind.family}/modules/libdq.so")
    with server.client() as client:
        works(client)
    server.kill9()


def test_the_other_architecture_s_packages_hold_its_files(
    dist: Path, other: Path, tmp_path: Path
) -> None:
    for name, path, file in (
        ("dq-module", MODULE, "libdq.so"),
        ("dq-board", "usr/bin/dq-board", "dq-board"),
    ):
        assert (
            run("dpkg-deb", "--field", deb(dist, name, OTHER), "Architecture")
            == f"{ARCHITECTURES[OTHER]}\n"
        )
        run("dpkg-deb", "--extract", deb(dist, name, OTHER), tmp_path / name)
        assert (tmp_path / name / path).read_bytes() == (other / file).read_bytes()


# What lintian is told to pass over. Each has its reason in the file that tells it.
OF_BOTH = [
    "bogus-mail-host",
    "bogus-mail-host-in-debian-changelog",
    "binary-has-unneeded-section",
    "spelling-error-in-copyright",
]
OVERRIDES = {
    "dq-module": [*OF_BOTH, "hardening-no-fortify-functions"],
    "dq-board": [
        *OF_BOTH,
        "shared-library-lacks-prerequisites",
        "non-standard-file-perm",
        "package-supports-alternative-init-but-no-init.d-script",
    ],
}


@pytest.mark.parametrize("name", OVERRIDES)
def test_lintian_finds_nothing(dist: Path, name: str) -> None:
    """No error, no warning, no remark, and no override that nothing needs.

    In machine code it finds words that are none.
    """
    if shutil.which("lintian") is None:
        pytest.skip("no lintian: scripts/setup.sh test-dist installs it")
    told = run(
        *(
            "lintian",
            "--allow-root",
            "--display-info",
            "--pedantic",
            "--suppress-tags=spelling-error-in-binary",
        ),
        *("--fail-on", "error,warning,info,pedantic", deb(dist, name)),
    )
    assert told == ""


@pytest.mark.parametrize("name", OVERRIDES)
def test_lintian_passes_over_what_has_a_reason_alone(dist: Path, tmp_path: Path, name: str) -> None:
    run("dpkg-deb", "--extract", deb(dist, name), tmp_path)
    told = (tmp_path / "usr/share/lintian/overrides" / name).read_text()
    assert re.findall(rf"^# .+\n{name}: (\S+) .+$", told, re.MULTILINE) == OVERRIDES[name]
    assert len(told.splitlines()) == 2 * len(OVERRIDES[name])


@pytest.mark.parametrize(
    ("name", "page"),
    [
        ("dq-module", "man8/dq-module.8"),
        ("dq-board", "man1/dq-board.1"),
        ("dq-board", "man1/dq-exporter.1"),
    ],
)
def test_a_man_page_is_read_without_a_warning(
    dist: Path, tmp_path: Path, name: str, page: str
) -> None:
    if shutil.which("man") is None:
        pytest.skip("no man-db: scripts/setup.sh test-dist installs it")
    run("dpkg-deb", "--extract", deb(dist, name), tmp_path)
    read = subprocess.run(
        ["man", "--warnings", "--local-file", tmp_path / f"usr/share/man/{page}.gz"],
        capture_output=True,
        text=True,
        env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "MANWIDTH": "80"},
    )
    assert (read.returncode, read.stderr) == (0, "")
    assert name in read.stdout


def test_the_man_page_has_each_option_that_the_program_tells(dist: Path, unpacked: Path) -> None:
    """board/src/manual.rs compares the whole page; here, that it is packed with its program."""
    told = set(
        re.findall(r"^ +(?:-\w, )?(--[\w-]+)", run(unpacked / "dq-board", "--help"), re.MULTILINE)
    )
    assert len(told) > 15
    page = (unpacked / "dq-board.1").read_text().replace("\\-", "-")
    assert told == set(re.findall(r"^\\fB(?:-\w\\fR, \\fB)?(--[\w-]+)\\fR", page, re.MULTILINE))


def test_only_the_text_of_apache_s_licence_is_left_out(
    dist: Path, unpacked: Path, tmp_path: Path
) -> None:
    """The authors of all linked packages are named."""
    whole = (unpacked / "THIRD-PARTY-LICENSES.txt").read_text().splitlines()
    told = {line for line in whole if re.search(r"\(.+\) http|[Cc]opyright .*[0-9]{4}", line)}
    assert len(told) > 200
    for name in OVERRIDES:
        run("dpkg-deb", "--extract", deb(dist, name), tmp_path / name)
        text = (tmp_path / name / "usr/share/doc" / name / "copyright").read_text()
        assert told <= set(text.splitlines())
        assert "Grant of Copyright License" not in text


@pytest.fixture
def unit(dist: Path, tmp_path: Path) -> Path:
    """dq-board's, with its program where it was unpacked."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("no systemd-analyze here")
    run("dpkg-deb", "--extract", deb(dist, "dq-board"), tmp_path)
    text = (tmp_path / UNIT).read_text()
    assert "\nExecStart=/usr/bin/dq-board " in text
    unit = tmp_path / "dq-board.service"
    unit.write_text(text.replace("=/usr/bin/dq-board ", f"={tmp_path}/usr/bin/dq-board "))
    return unit


def test_the_unit_of_the_board_is_sound(unit: Path) -> None:
    told = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True
    )
    # A key that it doesn't know is a warning.
    assert (told.returncode, told.stderr) == (0, "")


def test_the_unit_of_the_board_is_a_sandbox(unit: Path) -> None:
    text = unit.read_text()
    for line in ("DynamicUser=yes", "ProtectSystem=strict", "StateDirectory=dq-board"):
        assert f"\n{line}\n" in text
    assert f"\nEnvironmentFile=-/{SETTINGS}\n" in text
    # Of 100, which is no sandbox at all.
    run("systemd-analyze", "security", "--no-pager", "--offline=true", "--threshold=15", unit)
