"""The broker between rules and the Host: every read is confined and counted here first.

A policy of a namespace sees that namespace only, however it spells a path, and there only what its author may read,
where the Host knows authors; every call is counted against the budget of the review. All reads of context entries and
actions go through here, so that no loader can forget a check. This module must never judge text before variables are
substituted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyverno.engine.host import Host, HttpCall, NamespacedHttpHost, Read, Reader
from pyverno.errors import EvaluationError, HostError, ValueSyntaxError
from pyverno.kube.apipath import ApiPath, parse_api_path
from pyverno.kube.gvk import GVK, parse_api_version
from pyverno.kube.json import JSON, JSONObject
from pyverno.lang.runtime import Budget
from pyverno.value import dataclass, replace

if TYPE_CHECKING:
    # signatures are imported only where a policy verifies them
    from pyverno.engine.imagesource import ImageAccess, ResolvedImage, SignatureQuery
    from pyverno.images.verification.stored import StoredArtifact, StoredSignature
    from pyverno.images.verification.trust import TrustRoot

__all__ = ["CONFINED", "Broker"]

_READ_METHODS = frozenset({"GET"})
_CONFIG_MAPS = ("", "configmaps")
_SECRETS = ("", "secrets")

CONFINED = "confinedTo"
"""In credentials: the namespace of the policy that they are for, which uses no credentials of the installation."""

_SIGNED_BYTES_PER_STEP = 64
"""Signatures are hashed, decoded and parsed, several times each: a review may read 61 MiB of them."""


@dataclass(frozen=True, slots=True)
class Broker:
    """Calls the Host on behalf of one policy; `namespace` is that of a namespaced policy, "" for a cluster policy.

    `reader` is the policy, whose author must be permitted to read what a namespaced policy reads.
    """

    host: Host
    budget: Budget
    namespace: str = ""
    reader: Reader | None = None

    def api_call(self, url_path: str, *, method: str = "GET", body: JSON = None) -> JSON:
        """Call the API server at a path given as text; the path that is checked is the one that is sent."""
        try:
            path = parse_api_path(url_path)
        except ValueSyntaxError as error:
            raise EvaluationError(error.message) from error
        self._confine_path(path, method)
        self._require_path(path)
        self.budget.charge_call()
        return self.host.api_call(path, method=method, body=body)

    def http_call(self, call: HttpCall) -> JSON:
        """Call an HTTP service; refused to policies of a namespace."""
        if self.namespace:
            raise EvaluationError(f"a policy of namespace `{self.namespace}` may not call `{call.url}`")
        self.budget.charge_call()
        return self.host.http_call(replace(call, deadline=self.budget.deadline))

    def http_exchange(self, call: HttpCall) -> tuple[int, bytes]:
        """Call an HTTP service and return status and body; a Host may open this to policies of a namespace."""
        if self.namespace and not (isinstance(self.host, NamespacedHttpHost) and self.host.allows_http_in_namespaces):
            raise EvaluationError(f"a policy of namespace `{self.namespace}` may not call `{call.url}`")
        self.budget.charge_call()
        return self.host.http_exchange(replace(call, deadline=self.budget.deadline))

    def config_map(self, namespace: str, name: str) -> JSONObject:
        """Read a ConfigMap."""
        self._confine(namespace, f"ConfigMap `{namespace}/{name}`")
        self._require("get", _CONFIG_MAPS, name)
        self.budget.charge_call()
        return self.host.config_map(namespace, name)

    def image_data(self, image: str, *, credentials: JSONObject | None) -> JSONObject:
        """Read the manifest and configuration of an image."""
        credentials = self._confine_credentials(credentials)
        self.budget.charge_call()
        return self.host.image_data(image, credentials=credentials)

    def resolve_images(self, images: Sequence[tuple[str, ImageAccess]]) -> Sequence[ResolvedImage | HostError]:
        """Return what references to images name at the moment, or the error of each; they are read in parallel."""
        confined = [(image, self._confine_access(access)) for image, access in images]
        for _ in confined:
            self.budget.charge_call()
        return self.host.image_source.resolve(confined)

    def image_signatures(self, queries: Sequence[SignatureQuery]) -> Sequence[tuple[StoredSignature, ...] | HostError]:
        """Return the signatures of images, which count as read, or the error of each; they are read in parallel."""
        confined = [replace(each, access=self._confine_access(each.access)) for each in queries]
        for _ in confined:
            self.budget.charge_call()
        found = self.host.image_source.signatures(confined)
        stored = (signature for each in found if not isinstance(each, HostError) for signature in each)
        self.budget.charge_bytes(sum(len(each.blob) for each in stored), per_step=_SIGNED_BYTES_PER_STEP)
        return found

    def image_artifacts(
        self, repository: str, digest: str, artifact_type: str, access: ImageAccess
    ) -> tuple[StoredArtifact, ...]:
        """Return the artifacts of one type that refer to the image of a digest."""
        access = self._confine_access(access)
        self.budget.charge_call()
        return self.host.image_source.artifacts(repository, digest, artifact_type, access)

    def artifact_content(self, repository: str, artifact: StoredArtifact, access: ImageAccess) -> bytes:
        """Return the bytes of an artifact, which count as read."""
        access = self._confine_access(access)
        self.budget.charge_call()
        content = self.host.image_source.artifact_content(repository, artifact, access)
        self.budget.charge_bytes(len(content))
        return content

    def described_image(self, image: str, access: ImageAccess) -> JSONObject:
        """Return manifest and configuration of an image, read with the given access."""
        access = self._confine_access(access)
        self.budget.charge_call()
        return self.host.image_source.data(image, access)

    def revocation(self, url: str, request: bytes) -> bytes:
        """Return the answer of an OCSP responder or a revocation list, which count as read."""
        self.budget.charge_call()
        answer = self.host.image_source.revocation(url, request)
        self.budget.charge_bytes(len(answer))
        return answer

    def trust_root(self) -> TrustRoot:
        """Return the trust root of the installation for keyless signatures."""
        return self.host.image_source.trust_root()

    def public_key(self, reference: str) -> str:
        """Return the PEM of a key that is named by its Secret (`k8s://namespace/name`)."""
        namespace = reference.removeprefix("k8s://").partition("/")[0]
        self._confine(namespace, f"the key `{reference}`")
        self._require("get", _SECRETS, reference.removeprefix("k8s://").partition("/")[2])
        self.budget.charge_call()
        return self.host.image_source.public_key(reference)

    def _confine_access(self, access: ImageAccess) -> ImageAccess:
        credentials = self._confine_credentials(access.credentials)
        return access if credentials is access.credentials else replace(access, credentials=credentials)

    def _confine_credentials(self, credentials: JSONObject | None) -> JSONObject | None:
        """Return credentials of a registry that are those of the policy's own namespace, where it has one.

        They name the namespace, so that they never mean the default ones of the installation, and no cache mixes them.
        """
        if not self.namespace:
            return credentials
        credentials = {**(credentials or {}), CONFINED: self.namespace}  # guard: no namespace borrows credentials
        if credentials.get("providers"):
            raise EvaluationError(
                f"a policy of namespace `{self.namespace}` may not use the cloud identity of the installation"
            )
        listed = credentials.get("secrets")
        if not isinstance(listed, list):
            return credentials
        secrets: list[JSON] = []
        for name in map(str, listed):
            namespace, slash, _ = name.partition("/")
            self._confine(namespace if slash else self.namespace, f"the Secret `{name}`")
            self._require("get", _SECRETS, name.partition("/")[2] if slash else name)
            secrets.append(name if slash else f"{self.namespace}/{name}")
        return {**credentials, "secrets": secrets}

    def global_entry(self, name: str) -> JSON:
        """Read a GlobalContextEntry; refused to policies of a namespace, because an entry may hold any data."""
        if self.namespace:
            raise EvaluationError(f"a policy of namespace `{self.namespace}` may not read the global context")
        return self.host.global_entry(name)

    def get_object(
        self, api_version: str, kind: str, namespace: str, name: str, *, subresource: str = ""
    ) -> JSONObject | None:
        """Read one object or its subresource, for clone sources and existing targets."""
        self._confine(namespace, f"{kind} `{namespace}/{name}`")
        self._confine_kind(api_version, kind)
        self._require_kind("get", api_version, kind, name, subresource)
        self.budget.charge_call()
        return self.host.get_object(api_version, kind, namespace, name, subresource=subresource)

    def list_objects(
        self, api_version: str, kind: str, namespace: str, selector: JSONObject | None = None
    ) -> tuple[JSONObject, ...]:
        """List objects of a kind, for targets and clone lists."""
        self._confine(namespace, f"{kind} in namespace `{namespace}`")
        self._confine_kind(api_version, kind)
        self._require_kind("list", api_version, kind)
        self.budget.charge_call()
        return self.host.list_objects(api_version, kind, namespace, selector)

    def _confine(self, namespace: str, what: str) -> None:
        if self.namespace and namespace != self.namespace:
            raise EvaluationError(f"a policy of namespace `{self.namespace}` may not read {what}")

    def _confine_kind(self, api_version: str, kind: str) -> None:
        if self.namespace and self.host.kinds.is_namespaced(GVK(*parse_api_version(api_version), kind)) is False:
            raise EvaluationError(f"a policy of namespace `{self.namespace}` may not read the cluster-scoped {kind}")

    def _require(self, verb: str, resource: tuple[str, str], name: str, subresource: str = "") -> None:
        """Raise EvaluationError unless the author of a namespaced policy may do what the policy does next."""
        if self.namespace and self.reader is not None:  # guard: a policy reads what its author may read
            self.host.require_read(self.reader, Read(verb, *resource, subresource, name))

    def _require_kind(self, verb: str, api_version: str, kind: str, name: str = "", subresource: str = "") -> None:
        if self.namespace:
            info = self.host.kinds.find(GVK(*parse_api_version(api_version), kind))
            self._require(verb, ("", "") if info is None else (info.group, info.plural), name, subresource)

    def _require_path(self, path: ApiPath) -> None:
        if self.namespace:
            group, resource, name, subresource = path.place
            self._require("get" if name else "list", (group, resource), name, subresource)

    def _confine_path(self, path: ApiPath, method: str) -> None:
        if not self.namespace:
            return
        if method not in _READ_METHODS:
            raise EvaluationError(f"a policy of namespace `{self.namespace}` may only use GET, not {method}")
        if path.namespace != self.namespace or path.is_namespace_object:
            raise EvaluationError(f"a policy of namespace `{self.namespace}` may not call `{path.path}`")
