"""Flags of image verification, and the settings that follow from them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pyverno.cli.args.records import number, seconds, switch, text
from pyverno.controllers.state.registries import RegistryFlags
from pyverno.errors import UsageError, VerificationError
from pyverno.images.verification.trust import read_trust_root

__all__ = ["CachedImageFlags", "ImageFlags", "registry_flags"]


@dataclass(frozen=True, slots=True)
class ImageFlags:
    """How images and their signatures are read and verified."""

    insecure: bool = switch("--allowInsecureRegistry", "Read registries by plain HTTP.")
    pull_secrets: str = text(
        "--imagePullSecrets",
        "Secrets with credentials for registries, in the namespace of the installation; comma-separated.",
        metavar="NAMES",
    )
    helpers: str = text(
        "--registryCredentialHelpers", "Credential helpers for registries.", metavar="NAMES", has_effect=False
    )
    trusted_root: str = text(
        "--trustedRoot",
        "File with the authorities and logs to trust (Sigstore's trusted_root.json). Not in Kyverno.",
        metavar="FILE",
    )


@dataclass(frozen=True, slots=True)
class CachedImageFlags(ImageFlags):
    """Image verification of a controller that caches what it verified."""

    caches: bool = switch("--imageVerifyCacheEnabled", "Cache verified images.", default=True)
    max_cached: int = number("--imageVerifyCacheMaxSize", "Number of entries in this cache.", default=1000)
    cached_for: float = seconds("--imageVerifyCacheTTLDuration", "Lifetime of entries of this cache.", default="60m")


def registry_flags(flags: ImageFlags, namespace: str) -> RegistryFlags:
    """Return the settings of registries; raises UsageError for a trusted root that cannot be read."""
    cached = flags if isinstance(flags, CachedImageFlags) else CachedImageFlags()
    return RegistryFlags(
        namespace=namespace,
        pull_secrets=tuple(name for each in flags.pull_secrets.split(",") if (name := each.strip())),
        allows_http=flags.insecure,
        caches=cached.caches,
        max_cached=cached.max_cached,
        cached_seconds=cached.cached_for,
        trusted_root=_read(flags.trusted_root) if flags.trusted_root else b"",
    )


def _read(path: str) -> bytes:
    try:
        data = Path(path).read_bytes()
        read_trust_root(data)
    except OSError as error:
        raise UsageError(f"--trustedRoot `{path}`: {error.strerror or 'it cannot be read'}") from None
    except VerificationError as error:
        raise UsageError(f"--trustedRoot `{path}`: {error.message}") from None
    return data
