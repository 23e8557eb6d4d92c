"""One target of a TUF repository, with the library of TUF; only this module may import it.

The library verifies signatures, thresholds, expiry and versions of the metadata. What is kept between two runs makes it
refuse an older state.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final
from urllib.parse import urlsplit

from tuf.api.exceptions import DownloadError, RepositoryError
from tuf.ngclient.config import UpdaterConfig
from tuf.ngclient.updater import Updater

from pyverno.errors import HostError

__all__ = ["fetch_target"]

_MAX_TARGET: Final = 1_048_576


def fetch_target(mirror: str, name: str, root: bytes, folder: Path) -> bytes:
    """Return a target of a repository, whose metadata must lead to `root`; raises HostError.

    Metadata is kept in `folder`; nothing that the repository names becomes a path.
    """
    if urlsplit(mirror).scheme not in ("http", "https"):
        raise HostError(f"`{mirror[:200]}` is no address of a TUF repository")
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        updater = Updater(
            str(folder),
            mirror,
            target_base_url=f"{mirror.rstrip('/')}/targets",
            config=UpdaterConfig(app_user_agent="pyverno"),
            bootstrap=root,
        )
        found = updater.get_targetinfo(name)
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


def _shorten(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
