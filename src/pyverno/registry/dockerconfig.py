"""Credentials of the person at a command line: the configurations of docker and podman.

Helper programs (`credHelpers`, `credsStore`) run only where the command allows them (`credentialhelpers`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pyverno.engine.imagesource import ImageAccess
from pyverno.errors import HostError, ValueSyntaxError
from pyverno.registry.credentialhelpers import CredentialHelpers
from pyverno.registry.credentials import CredentialSource, read_docker_config
from pyverno.registry.providers.chain import Providers, providers_of

# trust rows: docker-configuration

__all__ = ["DockerConfig"]


class DockerConfig:
    """Reads the configurations that the environment names, in the order in which docker and podman do."""

    def __init__(
        self,
        environment: Mapping[str, str],
        *,
        helpers: CredentialHelpers | None = None,
        providers: Providers | None = None,
    ) -> None:
        """Take the environment variables, what runs helper programs, and the clouds that policies may name."""
        self._environment = environment
        self._helpers = helpers
        self._providers = providers

    async def sources(self, access: ImageAccess, registry: str) -> Sequence[CredentialSource]:
        """Return the configurations that exist; raises HostError for one that cannot be read."""
        found: list[CredentialSource] = []
        for path in self._paths():
            try:
                data = path.read_bytes()
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                raise HostError(f"cannot read {path}: {error.strerror}") from None
            try:
                source = read_docker_config(data, f"file {path}")
            except ValueSyntaxError as error:
                raise HostError(error.message) from None
            if self._helpers is not None:
                found.extend(await self._helpers.sources(data, registry))
            found.append(source)
        named = [each for each in providers_of(access) if each != "default"]  # the default is what was read above
        if self._providers is not None and named:
            found.extend(await self._providers.sources(named, registry))
        return found

    def _paths(self) -> Iterator[Path]:
        own = self._environment
        if own.get("DOCKER_CONFIG"):
            yield Path(own["DOCKER_CONFIG"]) / "config.json"
        else:
            yield from _absolute(own.get("HOME"), ".docker", "config.json")
        if own.get("REGISTRY_AUTH_FILE"):
            yield Path(own["REGISTRY_AUTH_FILE"])
        yield from _absolute(own.get("XDG_RUNTIME_DIR"), "containers", "auth.json")


def _absolute(folder: str | None, *parts: str) -> Iterator[Path]:
    """Yield a file below a folder of the user; a relative one would be in whatever tree is judged."""
    if folder and Path(folder).is_absolute():  # guard: no credentials are searched in the working folder
        yield Path(folder, *parts)
