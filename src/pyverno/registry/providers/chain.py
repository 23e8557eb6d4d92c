"""The providers that policies and flags may name, with a cache of their valid credentials."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from pyverno.engine.imagesource import ImageAccess
from pyverno.errors import HostError
from pyverno.registry.credentials import Credential, CredentialSource

__all__ = ["PROVIDER_NAMES", "Login", "Provider", "Providers", "providers_of"]

PROVIDER_NAMES = ("default", "google", "amazon", "azure", "github")
_EARLY_SECONDS = 60.0
_MAX_KEPT = 1024  # registries are named by images, so by tenants


class Login(NamedTuple):
    """A credential, and the seconds of its validity."""

    credential: Credential
    seconds: float


class Provider(Protocol):
    """One cloud."""

    def serves(self, registry: str) -> bool:
        """Return whether a host is a registry of this cloud."""
        ...

    async def login(self, registry: str) -> Login | None:
        """Return a credential for a registry that it serves; None where this process has no identity there.

        Raises HostError when the cloud refuses or cannot be reached.
        """
        ...


class Providers:
    """Providers by name; belongs to one event loop."""

    def __init__(self, providers: Mapping[str, Provider], clock: Callable[[], float] = time.monotonic) -> None:
        """Take the providers that are available here."""
        self._providers = providers
        self._clock = clock
        self._kept: dict[tuple[str, str], tuple[Login | None, float]] = {}
        self._locks: dict[tuple[str, str], asyncio.Lock] = {}

    async def sources(self, names: Sequence[str], registry: str) -> Sequence[CredentialSource]:
        """Return the credentials of the named providers for a registry, in their order; raises HostError.

        Providers that do not serve the registry are passed over.
        """
        found = []
        for name in names:
            provider = self._providers.get(name)
            if provider is None:
                raise HostError(f"the credential provider `{name[:40]}` is not available here")
            if provider.serves(registry):
                login = await self._login(name, provider, registry)
                if login is not None:
                    found.append(CredentialSource(f"provider {name}", ((registry, login.credential),)))
        return found

    async def _login(self, name: str, provider: Provider, registry: str) -> Login | None:
        key = (name, registry)
        if len(self._locks) >= _MAX_KEPT:
            self._kept.clear()
            self._locks = {each: lock for each, lock in self._locks.items() if lock.locked()}
        async with self._locks.setdefault(key, asyncio.Lock()):
            kept = self._kept.get(key)
            if kept is not None and self._clock() < kept[1]:
                return kept[0]
            login = await provider.login(registry)
            seconds = _EARLY_SECONDS * 2 if login is None else login.seconds
            self._kept[key] = (login, self._clock() + seconds - _EARLY_SECONDS)
            return login


def providers_of(access: ImageAccess) -> Sequence[str]:
    """Return the providers that the credentials of a policy name.

    >>> providers_of(ImageAccess({"providers": ["google"]}))
    ['google']
    """
    listed = (access.credentials or {}).get("providers")
    return [str(each) for each in listed] if isinstance(listed, list) else []
