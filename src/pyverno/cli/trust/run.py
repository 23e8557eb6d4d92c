"""Fetches a trusted root, and prints it or writes it to a file."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

from pyverno.cli.terminal import STDOUT
from pyverno.errors import UsageError
from pyverno.images.verification.trust import read_trust_root

# trust rows: environment, trust-root

__all__ = ["run_trust"]

_NO_LIBRARY = "TUF repositories need the library tuf: install pyverno with its extra `tuf`"


def run_trust(mirror: str, *, root: str, target: str, cache: str, output: str) -> None:
    """Print the trusted root of a repository, or replace a file with it; raises UsageError, HostError."""
    try:
        from pyverno.registry.tufrepository import fetch_target
    except ImportError as error:
        raise UsageError(_NO_LIBRARY) from error
    if not root:
        raise UsageError("--root is needed: root metadata of the repository that you trust")
    try:
        metadata = Path(root).read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {root}: {error.strerror}") from None
    found = fetch_target(mirror, target, metadata, _folder(cache, mirror))
    read_trust_root(found)
    if not output:
        STDOUT.raw.buffer.write(found)
        return
    try:
        _replace(Path(output), found)
    except OSError as error:
        raise UsageError(f"cannot write {output}: {error.strerror}") from None


def _folder(cache: str, mirror: str) -> Path:
    """Return the folder of one repository, because repositories must not share metadata."""
    found = Path(os.environ.get("XDG_CACHE_HOME", ""))
    # the specification ignores a relative folder, which would be one of whatever tree is judged
    own = found if found.is_absolute() else Path("~/.cache").expanduser()
    base = Path(cache) if cache else own / "pyverno/tuf"
    if not cache and not own.is_absolute():
        raise UsageError("HOME is no absolute path: name a folder with --cache")
    return base / hashlib.sha256(mirror.rstrip("/").encode()).hexdigest()[:32]


def _replace(path: Path, content: bytes) -> None:
    """Replace a file atomically, so that readers never see half of it."""
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
        try:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            Path(file.name).chmod(0o644)
            Path(file.name).replace(path)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise
