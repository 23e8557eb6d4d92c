"""The Debian packages of the image: their lock file, their download, and the files of them that are kept."""

from __future__ import annotations

import hashlib
import platform
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["LOCK", "PACKAGES", "DebianPackage", "fetch", "lock", "locked", "machine_arch", "unpack"]

LOCK: Final = Path(__file__).resolve().parents[2] / "deploy" / "image" / "debian.lock"
PACKAGES: Final = (
    *("base-files", "ca-certificates", "libbz2-1.0", "libc6", "libcrypt1", "libexpat1", "libffi8", "libgcc-s1"),
    *("liblzma5", "libpython3.11-minimal", "libpython3.11-stdlib", "libsqlite3-0", "libssl3", "libstdc++6"),
    *("libuuid1", "media-types", "netbase", "python3.11-minimal", "tzdata", "zlib1g"),
)

_HEADER = """\
# Debian packages of the image: architecture, name, version, SHA-256. `make imagelock` writes this file.
"""
_STANDARD_LIBRARY = "usr/lib/python3.11"
_DROPPED: Final = (
    *("boot", "dev", "home", "media", "mnt", "opt", "proc", "srv", "sys", "usr/games", "usr/include", "usr/src"),
    *("etc/python3.11", "usr/share/applications", "usr/share/bash-completion", "usr/share/binfmts", "usr/share/bug"),
    *("usr/share/gcc", "usr/share/gdb", "usr/share/lintian", "usr/share/locale", "usr/share/man", "usr/share/perl5"),
    *("usr/share/pixmaps", "usr/share/python3", "usr/share/info", "usr/lib/valgrind", "usr/sbin", "var/backups"),
    *("usr/share/zoneinfo/right", "usr/share/zoneinfo/posix", "etc/profile", "etc/profile.d", "etc/skel"),
    *(
        f"{_STANDARD_LIBRARY}/{each}"
        for each in (
            *("ensurepip", "idlelib", "lib2to3", "pydoc_data", "test", "tkinter", "turtle.py", "turtledemo"),
            *("lib-dynload/nis.*", "lib-dynload/readline.*", "lib-dynload/_curses*", "lib-dynload/_dbm.*"),
            *("lib-dynload/_test*", "lib-dynload/_xxtest*", "lib-dynload/_ctypes_test*", "__pycache__"),
        )
    ),
    "usr/lib/*/gconv",
    *(f"lib/*/lib{each}" for each in ("nss_*compat*", "nss_hesiod*", "thread_db*", "memusage*", "pcprofile*")),
)
"""Files that the application never opens, as patterns below the root."""


@dataclass(frozen=True, slots=True)
class DebianPackage:
    """One row of the lock file."""

    arch: str
    name: str
    version: str
    sha256: str


def locked(arch: str, path: Path = LOCK) -> tuple[DebianPackage, ...]:
    """Return the packages of an architecture (`amd64` or `arm64`)."""
    rows = (line.split() for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#"))
    return tuple(DebianPackage(*row) for row in rows if row and row[0] == arch)


def lock(archs: tuple[str, ...], state: Path, path: Path = LOCK) -> None:
    """Write the lock file with the newest versions that the package sources of this machine (Debian 12) have."""
    lines = []
    for arch in archs:
        _apt(arch, state, "update", "-qq")
        shown = _apt(arch, state, "download", "--print-uris", *(f"{name}:{arch}" for name in PACKAGES), quiet=True)
        rows = (line.split() for line in shown.splitlines() if line.startswith("'"))
        for _, file, _, digest in sorted(rows, key=lambda row: row[1]):
            name, version, _ = file.split("_")
            lines.append(f"{arch} {name} {version.replace('%3a', ':')} {digest.removeprefix('SHA256:')}\n")
    path.write_text(_HEADER + "".join(lines), encoding="utf-8")


def fetch(arch: str, cache: Path) -> list[tuple[DebianPackage, Path]]:
    """Return the locked packages with their files; those that `cache` does not hold are downloaded with apt.

    Raises SystemExit if the package sources do not have a locked version any more.
    """
    packages = locked(arch)
    folder = cache / "debian" / arch
    folder.mkdir(parents=True, exist_ok=True)
    found = _by_digest(folder)
    missing = [each for each in packages if each.sha256 not in found]
    if missing:
        _apt(arch, cache / "apt", "update", "-qq")
        for each in missing:
            try:
                _apt(arch, cache / "apt", "download", f"{each.name}:{arch}={each.version}", folder=folder)
            except subprocess.CalledProcessError as error:
                text = f"{each.name} {each.version} for {arch} cannot be downloaded"
                raise SystemExit(f"{text}; a newer version? `make imagelock` takes it:\n{error.stderr}") from error
        found = _by_digest(folder)
    wrong = [each.name for each in packages if each.sha256 not in found]
    if wrong:
        raise SystemExit(f"packages differ from deploy/image/debian.lock: {', '.join(wrong)}")
    return [(each, found[each.sha256]) for each in packages]


def unpack(packages: list[tuple[DebianPackage, Path]], root: Path) -> None:
    """Unpack packages without running their scripts, and keep what the application uses.

    Certificates of authorities become one file, as the script of the package would do; the state of each package is
    written to `var/lib/dpkg/status.d`, where scanners look.
    """
    root.mkdir(parents=True)
    for _, file in packages:
        subprocess.run(["dpkg-deb", "-x", file, root], check=True)
    _bundle_certificates(root)
    for path in _dropped(root):
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)
    status = root / "var/lib/dpkg/status.d"
    status.mkdir(parents=True, exist_ok=True)
    for package, file in packages:
        control = subprocess.run(["dpkg-deb", "-f", file], check=True, capture_output=True).stdout
        (status / package.name).write_bytes(control)
    _add_accounts(root)


def _bundle_certificates(root: Path) -> None:
    folder = root / "usr/share/ca-certificates"
    texts = [path.read_text(encoding="ascii") for path in sorted(folder.rglob("*.crt"))]
    target = root / "etc/ssl/certs/ca-certificates.crt"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text("".join(texts), encoding="ascii")
    shutil.rmtree(folder)


def _add_accounts(root: Path) -> None:
    etc = root / "etc"
    (etc / "passwd").write_text(
        "root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/tmp:/sbin/nologin\n", encoding="ascii"
    )
    (etc / "group").write_text("root:x:0:\nnonroot:x:65532:\n", encoding="ascii")
    (etc / "nsswitch.conf").write_text("hosts: files dns\n", encoding="ascii")
    (root / "tmp").mkdir(exist_ok=True)
    (root / "tmp").chmod(0o1777)


def _dropped(root: Path) -> Iterator[Path]:
    for pattern in _DROPPED:
        yield from sorted(root.glob(pattern))
    for path in sorted((root / "usr/share/doc").rglob("*")):
        if not path.is_dir() and path.name != "copyright":
            yield path
    for path in sorted((root / "usr/bin").iterdir()):
        if path.name != "python3.11":
            yield path
    yield from sorted((root / "bin").glob("*"))
    yield from sorted((root / "sbin").glob("*"))


def _by_digest(folder: Path) -> dict[str, Path]:
    return {hashlib.sha256(path.read_bytes()).hexdigest(): path for path in folder.glob("*.deb")}


def _apt(arch: str, state: Path, *arguments: str, folder: Path | None = None, quiet: bool = False) -> str:
    """Run apt-get with the sources of this machine and a state of its own, so that it works for any architecture."""
    own = state.resolve() / arch
    for name in ("lists/partial", "cache/archives/partial"):
        (own / name).mkdir(parents=True, exist_ok=True)
    (own / "status").touch()
    settings = {
        **{"Dir::State": own, "Dir::State::lists": own / "lists", "Dir::State::status": own / "status"},
        **{"Dir::Cache": own / "cache", "APT::Architecture": arch, "APT::Architectures": arch},
        **{"APT::Sandbox::User": "root", "Acquire::Languages": "none"},
    }
    command = ["apt-get", *(f"-o{name}={value}" for name, value in settings.items()), *arguments]
    ran = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    if ran.stderr and not quiet:
        print(ran.stderr, end="")
    return ran.stdout


def machine_arch() -> str:
    """Return the architecture of this machine in Debian's words."""
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
