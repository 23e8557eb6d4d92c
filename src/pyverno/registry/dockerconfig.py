"""Credentials of the person at a command line: the configurations of docker and podman.

Helper programs (`credHelpers`, `credsStore`) are not run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pyverno.engine.imagesource import ImageAccess
from pyverno.errors import HostError, ValueSyntaxError
from pyverno.registry.credentials import CredentialSource, read_docker_config

__all__ = ["DockerConfig"]


class DockerConfig:
    """Reads the configurations that the environment names, in the order in which docker and podman do."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        """Take the environment variables."""
        self._environment = environment

    async def sources(self, access: ImageAccess) -> Sequence[CredentialSource]:
        """Return the configurations that exist; raises HostError for one that cannot be read."""
        found = []
        for path in self._paths():
            try:
                data = path.read_bytes()
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                raise HostError(f"cannot read {path}: {error.strerror}") from None
            try:
                found.append(read_docker_config(data, f"file {path}"))
            except ValueSyntaxError as error:
                raise HostError(error.message) from None
        return found

    def _paths(self) -> Iterator[Path]:
        own = self._environment
        home = own.get("DOCKER_CONFIG") or (f"{own['HOME']}/.docker" if own.get("HOME") else "")
        if home:
            yield Path(home) / "config.json"
        if own.get("REGISTRY_AUTH_FILE"):
            yield Path(own["REGISTRY_AUTH_FILE"])
        if own.get("XDG_RUNTIME_DIR"):
            yield Path(own["XDG_RUNTIME_DIR"]) / "containers" / "auth.json"
