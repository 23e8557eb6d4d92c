"""The host of rules whose answers a user sees: each read of a rule is checked for the user, before it is sent.

An answer becomes part of an explanation. Secrets are read for nobody, nothing is written, and for a checked user no
service is called: nobody but the operators of the server could say who may see its answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from pyverno.cluster.forwardinghost import ForwardingHost
from pyverno.engine.host import Host, HttpCall
from pyverno.engine.imagesource import ImageAccess, ImageSource, ResolvedImage, SignatureQuery
from pyverno.errors import HostError, PyvernoError, ValueSyntaxError
from pyverno.images.verification.stored import StoredArtifact, StoredSignature
from pyverno.images.verification.trust import TrustRoot
from pyverno.kube.apipath import ApiPath, parse_api_path
from pyverno.kube.gvk import GVK, GVR, parse_api_version
from pyverno.kube.json import JSON, JSONObject
from pyverno.ui.access.access import Access, access_of_path, access_to
from pyverno.ui.access.viewer import Viewer, check
from pyverno.value import replace

if TYPE_CHECKING:
    from pyverno.engine.imageverification.passes import PassCache

# trust rows: viewed-object

__all__ = ["ViewerHost", "ViewerImages"]

_CONFIG_MAPS: Final = GVR("", "v1", "configmaps")
_SECRETS: Final = GVR("", "v1", "secrets")
_SECONDS: Final = 10.0

Check = Callable[[Access], None]
EntrySource = Callable[[str], JSON]
"""Returns the spec of the GlobalContextEntry that a reference names, None without one."""


class ViewerHost(ForwardingHost):
    """Answers as the host of the cluster, but with the rights of a viewer; `viewer` is None where no rights apply."""

    def __init__(
        self, host: Host, viewer: Viewer | None, entries: EntrySource, loop: asyncio.AbstractEventLoop
    ) -> None:
        """Take the host, the viewer, the entries of the global context, and the loop on which rights are read."""
        super().__init__(host)
        self._viewer = viewer
        self._entries = entries
        self._loop = loop

    @property
    def image_source(self) -> ImageSource:
        """The source of images; for a viewer without any credentials."""
        source = super().image_source
        return source if self._viewer is None else ViewerImages(source, self._check)

    def api_call(self, path: ApiPath, *, method: str, body: JSON) -> JSON:
        """Send a request that the viewer may send."""
        self._check(access_of_path(path, method))  # guard: an API call of a rule is asked for the viewer
        return super().api_call(path, method=method, body=body)

    def http_call(self, call: HttpCall) -> JSON:
        """Call a service, where no rights apply."""
        self._refuse_service()
        return super().http_call(call)

    def http_exchange(self, call: HttpCall) -> tuple[int, bytes]:
        """Call a service, where no rights apply."""
        self._refuse_service()
        return super().http_exchange(call)

    def config_map(self, namespace: str, name: str) -> JSONObject:
        """Return a ConfigMap that the viewer may get."""
        self._check(access_to(_CONFIG_MAPS, namespace, name))  # guard: a ConfigMap of a rule is asked for the viewer
        return super().config_map(namespace, name)

    def image_data(self, image: str, *, credentials: JSONObject | None) -> JSONObject:
        """Return the data of an image; for a viewer it is read without credentials."""
        return self.image_source.data(image, ImageAccess(credentials))

    def global_entry(self, name: str) -> JSON:
        """Return the data of a GlobalContextEntry whose source the viewer may read."""
        self._check_entry(self._entries(name))  # guard: the source of an entry is asked for the viewer
        return super().global_entry(name)

    def get_object(
        self, api_version: str, kind: str, namespace: str, name: str, *, subresource: str = ""
    ) -> JSONObject | None:
        """Return an object that the viewer may get, None for a missing one."""
        gvr, namespace = self._resource(api_version, kind, namespace)
        self._check(access_to(gvr, namespace, name, subresource=subresource))  # guard: an object of a rule is asked
        return super().get_object(api_version, kind, namespace, name, subresource=subresource)

    def list_objects(
        self, api_version: str, kind: str, namespace: str, selector: JSONObject | None
    ) -> tuple[JSONObject, ...]:
        """Return objects that the viewer may list."""
        gvr, namespace = self._resource(api_version, kind, namespace)
        self._check(access_to(gvr, namespace, verb="list"))  # guard: a list of a rule is asked for the viewer
        return super().list_objects(api_version, kind, namespace, selector)

    def _resource(self, api_version: str, kind: str, namespace: str) -> tuple[GVR, str]:
        info = self.kinds.find(GVK(*parse_api_version(api_version), kind))
        if info is None:
            raise HostError(f"the cluster does not serve {kind} of {api_version}")
        return info.gvr, namespace if info.namespaced else ""

    def _check_entry(self, spec: JSON) -> None:
        match spec:
            case None:
                return  # there is no such entry
            case {"kubernetesResource": {"resource": str(resource), "version": str(version), **rest}}:
                gvr = GVR(str(rest.get("group") or ""), version, resource)
                self._check(access_to(gvr, str(rest.get("namespace") or ""), verb="list"))
            case {"apiCall": {"urlPath": str(text), **rest}} if text and rest.get("service") is None:
                try:
                    path = parse_api_path(text)
                except ValueSyntaxError as error:
                    raise HostError(error.message) from error
                self._check(access_of_path(path, str(rest.get("method") or "GET")))
            case _:
                self._refuse_service()

    def _refuse_service(self) -> None:
        if self._viewer is not None:  # guard: no service answers a viewer
            raise HostError("the answers of services are not shown on these pages, where rights of users apply")

    def _check(self, access: Access) -> None:
        """Raise HostError unless the viewer may read something; waits for the API server."""
        running = asyncio.run_coroutine_threadsafe(check(access, self._viewer), self._loop)
        try:
            running.result(_SECONDS)
        except TimeoutError:
            running.cancel()
            raise HostError("the rights of this login cannot be read: no answer") from None
        except HostError:
            raise
        except PyvernoError as error:
            raise HostError(error.message) from None


class ViewerImages:
    """Reads images without credentials: those of a policy or of the server are not those of the viewer."""

    def __init__(self, source: ImageSource, check: Check) -> None:
        """Take the source, and the check of a read of the cluster."""
        self._source = source
        self._check = check

    def resolve(self, images: Sequence[tuple[str, ImageAccess]]) -> Sequence[ResolvedImage | HostError]:
        """Return what references name."""
        return self._source.resolve([(image, ImageAccess()) for image, _ in images])  # guard: images are anonymous

    def signatures(self, queries: Sequence[SignatureQuery]) -> Sequence[tuple[StoredSignature, ...] | HostError]:
        """Return the signatures of images."""
        return self._source.signatures([replace(each, access=ImageAccess()) for each in queries])

    def artifacts(
        self, repository: str, digest: str, artifact_type: str, access: ImageAccess
    ) -> tuple[StoredArtifact, ...]:
        """Return the artifacts of one type that refer to an image."""
        return self._source.artifacts(repository, digest, artifact_type, ImageAccess())

    def artifact_content(self, repository: str, artifact: StoredArtifact, access: ImageAccess) -> bytes:
        """Return the bytes of the layer of an artifact."""
        return self._source.artifact_content(repository, artifact, ImageAccess())

    def data(self, image: str, access: ImageAccess) -> JSONObject:
        """Return manifest and configuration of an image."""
        return self._source.data(image, ImageAccess())

    def revocation(self, url: str, request: bytes) -> bytes:
        """Return the answer of an OCSP responder, or a revocation list: they are public."""
        return self._source.revocation(url, request)

    def trust_root(self) -> TrustRoot:
        """Return the authorities and logs that the installation trusts."""
        return self._source.trust_root()

    def public_key(self, reference: str) -> str:
        """Return a public key; one that a Secret holds is not read."""
        if reference.startswith("k8s://"):
            namespace, _, name = reference.removeprefix("k8s://").partition("/")
            self._check(access_to(_SECRETS, namespace, name))
        return self._source.public_key(reference)

    @property
    def passes(self) -> PassCache:
        """Digests that satisfied constraints a while ago."""
        return self._source.passes
