"""Flags of image verification, and the settings that follow from them."""

from __future__ import annotations

import os
from base64 import b64decode
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

from pyverno.cli.args.records import number, seconds, switch, text
from pyverno.cli.registries import read_root_file
from pyverno.controllers.state.registries import RegistryFlags
from pyverno.controllers.state.trustroot import TufRepository
from pyverno.errors import UsageError
from pyverno.registry.providers.chain import PROVIDER_NAMES

# trust rows: environment, named-file

__all__ = ["CachedImageFlags", "ImageFlags", "registry_flags"]


@dataclass(frozen=True, slots=True)
class ImageFlags:
    """Flags for reading and verifying images and their signatures."""

    insecure: bool = switch("--allowInsecureRegistry", "Read registries by plain HTTP.")
    pull_secrets: str = text(
        "--imagePullSecrets",
        "Secrets with credentials for registries, in the namespace of the installation; comma-separated.",
        metavar="NAMES",
    )
    helpers: str = text(
        "--registryCredentialHelpers",
        "Logins for images without credentials: default, google, amazon, azure, github; comma-separated.",
        metavar="NAMES",
    )
    trusted_root: str = text(
        "--trustedRoot",
        "File with the authorities and logs to trust (Sigstore's trusted_root.json). Not in Kyverno.",
        metavar="FILE",
    )


@dataclass(frozen=True, slots=True)
class CachedImageFlags(ImageFlags):
    """Image verification of a controller with a cache of verifications, which may follow its trusted root."""

    caches: bool = switch("--imageVerifyCacheEnabled", "Cache verified images.", default=True)
    max_cached: int = number("--imageVerifyCacheMaxSize", "Number of entries in this cache.", default=1000)
    cached_for: float = seconds("--imageVerifyCacheTTLDuration", "Lifetime of entries of this cache.", default="60m")
    has_tuf: bool = switch("--enableTuf", "Follow the trusted root of a TUF repository; needs the extra `tuf`.")
    tuf_mirror: str = text(
        "--tufMirror",
        "With --enableTuf: URL of the repository.",
        default="https://tuf-repo-cdn.sigstore.dev",
        metavar="URL",
    )
    tuf_root: str = text(
        "--tufRoot",
        "With --enableTuf: file with root metadata (`root.json`) that the repository must lead to.",
        metavar="FILE",
    )
    tuf_root_raw: str = text("--tufRootRaw", "The same, as base64.", metavar="BASE64")


def registry_flags(flags: ImageFlags, namespace: str) -> RegistryFlags:
    """Return the settings of registries; raises UsageError for a trusted root that cannot be read."""
    cached = flags if isinstance(flags, CachedImageFlags) else CachedImageFlags()
    return RegistryFlags(
        namespace=namespace,
        pull_secrets=_names(flags.pull_secrets),
        providers=_providers(flags.helpers),
        environment=os.environ,
        allows_http=flags.insecure,
        caches=cached.caches,
        max_cached=cached.max_cached,
        cached_seconds=cached.cached_for,
        trusted_root=read_root_file(flags.trusted_root, "--trustedRoot") if flags.trusted_root else b"",
        repository=_repository(cached) if cached.has_tuf else None,
    )


def _repository(flags: CachedImageFlags) -> TufRepository:
    """Return the repository to follow; raises UsageError for one that cannot prove its metadata."""
    if flags.trusted_root:
        raise UsageError("--trustedRoot and --enableTuf exclude each other: choose one source of the trusted root")
    if find_spec("tuf") is None:
        raise UsageError("--enableTuf needs the library tuf: install pyverno with its extra `tuf`")
    if urlsplit(flags.tuf_mirror).scheme not in ("http", "https"):
        raise UsageError(f"--tufMirror `{flags.tuf_mirror}` is no address of a TUF repository")
    if flags.tuf_root:
        try:
            return TufRepository(flags.tuf_mirror, Path(flags.tuf_root).read_bytes())
        except OSError as error:
            raise UsageError(f"--tufRoot `{flags.tuf_root}`: {error.strerror or 'it cannot be read'}") from None
    if not flags.tuf_root_raw:
        raise UsageError("--enableTuf needs --tufRoot or --tufRootRaw: root metadata of the repository that you trust")
    try:
        return TufRepository(flags.tuf_mirror, b64decode(flags.tuf_root_raw, validate=True))
    except ValueError:
        raise UsageError("--tufRootRaw is not base64") from None


def _names(text: str) -> tuple[str, ...]:
    return tuple(name for each in text.split(",") if (name := each.strip()))


def _providers(text: str) -> tuple[str, ...]:
    names = _names(text)
    for name in names:
        if name not in PROVIDER_NAMES:
            known = ", ".join(PROVIDER_NAMES)
            raise UsageError(f"--registryCredentialHelpers: `{name}` is not one of {known}")
    return names
