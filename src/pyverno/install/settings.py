"""Settings of an installation: namespace, image, replicas and arguments."""

from __future__ import annotations

from pyverno.value import dataclass
from pyverno.version import __version__

__all__ = ["InstallSettings"]


@dataclass(frozen=True, slots=True)
class InstallSettings:
    """Namespace, image, replicas of each controller, and further arguments of the admission controller.

    `secrets` are the names of further Secrets of the namespace that these arguments name. `user_namespaces` gives
    the pods a user namespace of their own, which not every node can do. `buckets` are the bounds of histograms that the
    ConfigMap of metrics shows; without any the controllers use their defaults. `api_servers` are the blocks of
    addresses that may connect to the port of the webhook; any may without them.
    """

    namespace: str = "kyverno"
    image: str = f"pyverno:{__version__}"
    replicas: int = 1
    arguments: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    user_namespaces: bool = False
    buckets: tuple[float, ...] = ()
    api_servers: tuple[str, ...] = ()
