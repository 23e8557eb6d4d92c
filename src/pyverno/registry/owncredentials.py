"""The credentials of the user of a command: configurations of docker and podman, their helpers, and clouds."""

from __future__ import annotations

import os

from pyverno.registry.credentialhelpers import CredentialHelpers
from pyverno.registry.dockerconfig import DockerConfig
from pyverno.registry.providers.ambient import Ambient
from pyverno.registry.providers.known import known_providers

# trust rows: environment

__all__ = ["own_credentials"]


def own_credentials() -> DockerConfig:
    """Return the credentials that the environment of this process names."""
    helpers = CredentialHelpers(os.environ.get("PATH", os.defpath))
    return DockerConfig(os.environ, helpers=helpers, providers=known_providers(Ambient(os.environ)))
