"""The provider `default`: the configuration of docker beside this process."""

from __future__ import annotations

from pyverno.engine.imagesource import ImageAccess
from pyverno.registry.credentials import credentials_for
from pyverno.registry.dockerconfig import DockerConfig
from pyverno.registry.providers.ambient import Ambient
from pyverno.registry.providers.chain import Login

__all__ = ["Default"]


class Default:
    """Registries that the configuration names without a path."""

    def __init__(self, ambient: Ambient) -> None:
        """Take the identity of the process; no helper program is run."""
        self._config = DockerConfig(ambient.environment)

    def serves(self, registry: str) -> bool:
        """Return True: the configuration may name any registry."""
        return bool(registry)

    async def login(self, registry: str) -> Login | None:
        """Return the credential of a registry, None when the configuration has none."""
        found = credentials_for(registry, "", await self._config.sources(ImageAccess(), registry))
        usable = [each for each in found if not each.is_anonymous]
        return Login(usable[0], 300) if usable else None
