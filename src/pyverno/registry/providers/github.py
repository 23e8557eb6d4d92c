"""GitHub's registry: the token in the environment."""

from __future__ import annotations

from pyverno.registry.credentials import Credential
from pyverno.registry.providers.ambient import Ambient
from pyverno.registry.providers.chain import Login

__all__ = ["GitHub"]


class GitHub:
    """`ghcr.io`, with `GITHUB_TOKEN`."""

    def __init__(self, ambient: Ambient) -> None:
        """Take the identity of the process."""
        self._ambient = ambient

    def serves(self, registry: str) -> bool:
        """Return whether a host is GitHub's registry."""
        return registry == "ghcr.io"

    async def login(self, registry: str) -> Login | None:
        """Return the token of the environment, None without one."""
        token = self._ambient.text("GITHUB_TOKEN")
        if not token:
            return None
        # the registry looks at the token only, but demands a name
        return Login(Credential("unset", token, source="provider github"), 3600)
