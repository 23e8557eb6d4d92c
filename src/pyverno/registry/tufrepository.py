"""One target of a TUF repository, with the library of TUF; only this module and its fetcher may import it.

The library verifies signatures, thresholds, expiry and versions of the metadata. Metadata kept between two runs makes
it refuse an older state. The library counts the ids of keys; this module checks that as many different keys have
signed.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from urllib.parse import urlsplit

from tuf.api.exceptions import DownloadError, RepositoryError
from tuf.api.metadata import Metadata
from tuf.ngclient.config import UpdaterConfig
from tuf.ngclient.updater import Updater

from pyverno.errors import HostError
from pyverno.registry.tuffetcher import TufFetcher

# trust rows: trust-root

__all__ = ["fetch_target"]

_MAX_TARGET: Final = 1_048_576
_MAX_ROOTS: Final = 1024


def fetch_target(mirror: str, name: str, root: bytes, folder: Path) -> bytes:
    """Return a target of a repository, whose metadata must lead to `root`; raises HostError.

    Metadata is kept in `folder`; names of the repository never become paths.
    """
    if urlsplit(mirror).scheme not in ("http", "https"):
        raise HostError(f"`{mirror[:200]}` is no address of a TUF repository")
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        updater = Updater(
            str(folder),
            mirror,
            target_base_url=f"{mirror.rstrip('/')}/targets",
            fetcher=TufFetcher(),
            config=UpdaterConfig(),
            bootstrap=root,
        )
        found = updater.get_targetinfo(name)
        _check_signers(folder, Metadata.from_bytes(root))
        if found is None:
            raise HostError(f"the TUF repository {mirror} has no target `{name[:200]}`")
        if found.length > _MAX_TARGET:
            raise HostError(f"the target `{name[:200]}` is larger than {_MAX_TARGET} bytes")
        with TemporaryDirectory() as place:
            return Path(updater.download_target(found, str(Path(place) / "target"))).read_bytes()
    except DownloadError as error:
        raise HostError(f"the TUF repository {mirror} cannot be read: {_shorten(error)}") from None
    except RepositoryError as error:
        raise HostError(f"the TUF repository {mirror} proves nothing: {_shorten(error)}") from None
    except (OSError, ValueError) as error:
        raise HostError(f"the TUF repository {mirror} cannot be used: {_shorten(error)}") from None


def _check_signers(folder: Path, first: Metadata[Any]) -> None:
    """Raise RepositoryError unless each file that the library kept has as many keys as its threshold demands.

    Each root is signed by the keys of the one before and by its own. Roles that targets delegate to are left to
    the library.
    """
    root = first
    for version in range(first.signed.version + 1, first.signed.version + _MAX_ROOTS):
        path = folder / "root_history" / f"{version}.root.json"
        if not path.exists():
            break
        following: Metadata[Any] = Metadata.from_file(str(path))
        for each in (root, following):
            _check_threshold(each, "root", following)
        root = following
    for role in ("timestamp", "snapshot", "targets"):
        _check_threshold(root, role, Metadata.from_file(str(folder / f"{role}.json")))


def _check_threshold(root: Metadata[Any], role: str, signed: Metadata[Any]) -> None:
    found = root.signed.get_verification_result(role, signed.signed_bytes, signed.signatures)
    keys = {"".join(str(each.keyval.get("public")).split()) for each in found.signed.values()}
    if len(keys) < found.threshold:
        raise RepositoryError(f"`{role}` is signed by fewer keys than its threshold")


def _shorten(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
