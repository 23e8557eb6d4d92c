"""One request of a comparison: the object, the operation, the user, and the labels of the namespace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyverno.compiler.equivalence.circumstances import ALICE
from pyverno.engine.cel.constraints import NAME_LABEL
from pyverno.engine.request import Operation, Request, User
from pyverno.kube.gvk import GVK
from pyverno.kube.json import JSONObject
from pyverno.kube.kinds import KindInfo
from pyverno.policy.kinds import KNOWN_KINDS
from pyverno.value import dataclass, field, replace

__all__ = ["DEFAULT_NAMESPACE", "Case"]

DEFAULT_NAMESPACE: Final = "default"


@dataclass(frozen=True, slots=True)
class Case:
    """A request that both sides receive.

    `parent` is the kind whose subresource takes objects of a kind of its own, such as `Scale`. `labels` are those of
    the namespace beside the one with its name, which the API server sets. `home` is the namespace of a request whose
    object has no metadata.
    """

    resource: JSONObject
    operation: Operation
    old: JSONObject | None = None
    user: User = ALICE
    labels: Mapping[str, str] = field(default_factory=dict)
    subresource: str = ""
    parent: KindInfo | None = None
    home: str = DEFAULT_NAMESPACE

    @property
    def name(self) -> str:
        """The key by which requests are counted: kind, subresource and operation."""
        kind = f"{self.resource['apiVersion']}/{self.resource['kind']}"
        if self.parent is not None:
            kind = f"{self.parent.api_version}/{self.parent.kind}"
        subresource = f"/{self.subresource}" if self.subresource else ""
        return f"{kind}{subresource} {self.operation.value}"

    def request(self) -> Request:
        """Return the request as the API server sends it to admission."""
        body = self.resource
        found = Request.from_manifest(
            body,
            operation=self.operation,
            old=None if self.operation is Operation.CREATE else self.old,
            user=self.user,
            gvk=None if self.parent is None else self.parent.gvk,
            gvr=None if (info := self._info()) is None else info.gvr,
            subresource=self.subresource,
        )
        if self.parent is not None and "metadata" not in body:
            namespace = self.home if self.parent.namespaced else ""
            found = replace(found, name="a", namespace=namespace, old=None)
        if found.gvk.kind == "Namespace" and found.gvk.group == "":
            found = replace(found, namespace=found.name)
        return self._in_namespace(found)

    def live(self) -> Request:
        """Return the request of a cleanup run that finds the object."""
        return self._in_namespace(Request.from_live(self.resource))

    def _in_namespace(self, request: Request) -> Request:
        if not request.namespace or request.gvk.kind == "Namespace":
            return request
        labels = {**self.labels, NAME_LABEL: request.namespace}
        metadata = {"name": request.namespace, "labels": labels}
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
        return replace(request, namespace_labels=labels, namespace_object=namespace)

    def _info(self) -> KindInfo | None:
        if self.parent is not None:
            return self.parent
        group, _, version = str(self.resource["apiVersion"]).rpartition("/")
        return KNOWN_KINDS.find(GVK(group, version, str(self.resource["kind"])))
