"""All providers, by the names that policies and flags use."""

from __future__ import annotations

from collections.abc import Mapping

from pyverno.registry.providers.amazon import Amazon
from pyverno.registry.providers.ambient import Ambient
from pyverno.registry.providers.azure import Azure
from pyverno.registry.providers.chain import Provider, Providers
from pyverno.registry.providers.github import GitHub
from pyverno.registry.providers.google import Google

__all__ = ["known_providers"]


def known_providers(ambient: Ambient, others: Mapping[str, Provider] | None = None) -> Providers:
    """Return the providers of all clouds, and the further ones that are selected by name."""
    clouds: dict[str, Provider] = {
        "google": Google(ambient),
        "amazon": Amazon(ambient),
        "azure": Azure(ambient),
        "github": GitHub(ambient),
    }
    return Providers({**clouds, **(others or {})})
