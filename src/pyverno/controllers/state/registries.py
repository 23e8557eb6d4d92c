"""Registries as rules in a cluster read them: pull secrets, keys in Secrets, the trust root of the installation.

Calls go through the guard that decides where calls may go; a Secret is read with our own permissions, and only those
that a policy, or a resource of that namespace, names.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Final

import aiohttp

from pyverno.cluster.client import Client
from pyverno.controllers.state.trustroot import FollowedRoot, TufRepository
from pyverno.engine.imagesource import ImageSource
from pyverno.engine.imageverification.passes import MAX_PASSES, PASS_SECONDS, PassCache
from pyverno.errors import HostError, HostUnavailableError, NotFoundError
from pyverno.images.verification.trust import TrustRoot, read_trust_root
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.status import StatusError
from pyverno.registry.client import RegistryClient
from pyverno.registry.credentials import CredentialSource, read_pull_secret
from pyverno.registry.images import BlockingImages, RegistryImages, SecretCredentials
from pyverno.registry.providers.ambient import Ambient
from pyverno.registry.providers.default import Default
from pyverno.registry.providers.known import known_providers
from pyverno.registry.providers.publickeys import PublicKeys
from pyverno.registry.transport import RegistrySettings, Transport
from pyverno.value import dataclass, field

__all__ = ["ClusterRegistries", "RegistryFlags"]

_SECRETS: Final = GVR("", "v1", "secrets")
_KEY: Final = "cosign.pub"


@dataclass(frozen=True, slots=True)
class RegistryFlags:
    """Settings of registries: Secrets for all images, plain HTTP, the cache of verifications, and the trusted root.

    The root is the content of a file, or comes from the TUF repository.

    `namespace` is that of the installation, where Secrets without a namespace are. `providers` are logins of clouds for
    images without credentials of their own; `environment` gives the identity of this process there.
    Policies of a namespace use the Secrets for all images and these logins only if the installation `lends` them.
    """

    namespace: str = "kyverno"
    pull_secrets: tuple[str, ...] = ()
    allows_http: bool = False
    caches: bool = True
    max_cached: int = MAX_PASSES
    cached_seconds: float = PASS_SECONDS
    trusted_root: bytes = b""
    repository: TufRepository | None = None
    providers: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    lends: bool = False


class ClusterRegistries:
    """Makes the image sources of hosts; belongs to the loop of its client. `close` it at the end."""

    def __init__(self, client: Client, flags: RegistryFlags, connector: Callable[[], aiohttp.BaseConnector]) -> None:
        """Take the client, the flags, and what makes guarded connections; raises VerificationError for a bad root."""
        self._client = client
        self._flags = flags
        self._root = read_trust_root(flags.trusted_root) if flags.trusted_root else None
        self.followed_root = FollowedRoot(flags.repository) if flags.repository is not None else None
        self._passes = PassCache(flags.max_cached if flags.caches else 0, flags.cached_seconds)
        transport = Transport(RegistrySettings(allows_http=flags.allows_http), connector)
        ambient = Ambient(flags.environment)  # not guarded: the services that know the own identity are link-local
        self._keys = PublicKeys(ambient)
        providers = known_providers(ambient, {"default": Default(ambient)})
        credentials = SecretCredentials(
            self._secret,
            flags.namespace,
            self._defaults,
            providers=providers,
            default_providers=flags.providers,
            lends=flags.lends,
        )
        self._images = RegistryImages(RegistryClient(transport), credentials)

    def source(self, ask: Callable[[Coroutine[Any, Any, Any], str], Any], deadline: float | None) -> ImageSource:
        """Return the image source of one host, which sends requests until a deadline."""
        return BlockingImages(
            self._images,
            ask,
            trust_root=self._trust_root,
            public_key=lambda reference: ask(self._public_key(reference), "the key of a policy"),
            deadline=deadline,
            passes=self._passes,
        )

    async def close(self) -> None:
        """Close all connections."""
        await self._images.close()

    def _trust_root(self) -> TrustRoot:
        if self.followed_root is not None:
            return self.followed_root.current()
        if self._root is None:
            raise HostUnavailableError(
                "no trusted root is configured: --trustedRoot names the file with the authorities and logs to trust,"
                " --enableTuf and --tufMirror a repository of it"
            )
        return self._root

    async def _secret(self, namespace: str, name: str) -> JSONObject:
        try:
            found: JSONObject = await self._client.get(_SECRETS, name, namespace)
        except StatusError as error:
            if error.status == 404:
                raise NotFoundError(f"there is no Secret `{namespace}/{name}`") from None
            raise HostError(f"the Secret `{namespace}/{name}` cannot be read: {error.message}") from None
        return found

    async def _defaults(self) -> Sequence[CredentialSource]:
        found = []
        for name in self._flags.pull_secrets:
            try:
                found.append(read_pull_secret(await self._secret(self._flags.namespace, name)))
            except NotFoundError:
                continue  # Kyverno: a Secret that does not exist is as if it had not been named
        return found

    async def _public_key(self, reference: str) -> str:
        if not reference.startswith("k8s://"):
            return await self._keys.fetch(reference)
        namespace, _, name = reference.removeprefix("k8s://").partition("/")
        if not namespace or not name or "/" in name:
            raise HostError(f"`{reference}` does not name a key: k8s://NAMESPACE/NAME is expected")
        data = (await self._secret(namespace, name)).get("data")
        text = data.get(_KEY) if isinstance(data, dict) else None
        if not isinstance(text, str):
            raise HostError(f"the Secret `{namespace}/{name}` has no `{_KEY}`")
        try:
            return base64.b64decode(text, validate=True).decode("ascii")
        except (binascii.Error, UnicodeDecodeError):
            raise HostError(f"`{_KEY}` of the Secret `{namespace}/{name}` cannot be read") from None
