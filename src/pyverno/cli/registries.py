"""Registries that a command reads with `--registry`: the user's credentials, and the trusted root."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pyverno.errors import UsageError
from pyverno.value import dataclass

if TYPE_CHECKING:
    import aiohttp

    from pyverno.engine.imagesource import ImageSource
    from pyverno.registry.ownimages import OwnRegistryImages

# trust rows: named-file

__all__ = ["RegistryAccess", "open_registries", "opened_registries", "read_registry_access", "read_root_file"]


@dataclass(frozen=True, slots=True)
class RegistryAccess:
    """Access to registries; worker processes receive it. `trusted_root` is the content of the file.

    `connector` makes the connections, for registries at other addresses than their names; those use HTTP.
    """

    trusted_root: bytes = b""
    connector: Callable[[], aiohttp.BaseConnector] | None = None


def read_registry_access(*, registry: bool, trust_root: str) -> RegistryAccess | None:
    """Return what the flags of a command mean, None without `--registry`; raises UsageError."""
    if not registry:
        if trust_root:
            raise UsageError("--trust-root needs --registry: signatures are read from registries")
        return None
    return RegistryAccess(read_root_file(trust_root, "--trust-root") if trust_root else b"")


def open_registries(access: RegistryAccess) -> OwnRegistryImages:
    """Return images of registries; the caller closes them, or ends with its process."""
    from pyverno.images.verification.trust import read_trust_root
    from pyverno.registry.owncredentials import own_credentials
    from pyverno.registry.ownimages import OwnRegistryImages
    from pyverno.registry.transport import RegistrySettings

    root = read_trust_root(access.trusted_root) if access.trusted_root else None
    return OwnRegistryImages(
        own_credentials(),
        trust_root=None if root is None else lambda: root,
        settings=RegistrySettings(allows_http=access.connector is not None),
        connector=access.connector,
    )


@contextmanager
def opened_registries(access: RegistryAccess | None) -> Iterator[ImageSource | None]:
    """Yield images of registries, None without access, and close the connections at the end."""
    if access is None:
        yield None
        return
    with open_registries(access) as own:
        yield own.source


def read_root_file(path: str, flag: str) -> bytes:
    """Return the content of the trusted root that a flag names; raises UsageError unless it is one."""
    from pyverno.errors import VerificationError
    from pyverno.images.verification.trust import read_trust_root

    try:
        data = Path(path).read_bytes()
        read_trust_root(data)
    except OSError as error:
        raise UsageError(f"{flag} `{path}`: {error.strerror or 'it cannot be read'}") from None
    except VerificationError as error:
        raise UsageError(f"{flag} `{path}`: {error.message}") from None
    return data
