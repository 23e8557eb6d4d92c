"""Existing objects that rules change, whole or through a subresource such as `status` or `scale`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pyverno.engine.broker import Broker
from pyverno.engine.effects import PatchEffect
from pyverno.engine.result import ResourceRef
from pyverno.errors import EvaluationError
from pyverno.kube.gvk import GVK, parse_api_version
from pyverno.kube.json import JSON, JSONObject
from pyverno.value import dataclass

__all__ = ["ExistingObject", "ExistingObjects"]


@dataclass(frozen=True, slots=True)
class ExistingObject:
    """An object as rules see and change it; with a `subresource`, what that holds of the object `owner`."""

    document: JSONObject
    owner: ResourceRef
    subresource: str = ""

    @property
    def ref(self) -> ResourceRef:
        """The name of the document itself: a `scale` is a Scale, whatever it belongs to."""
        return ResourceRef.of(self.document)

    def patched(self, after: JSON) -> PatchEffect:
        """Return the effect that makes the document another one."""
        return PatchEffect(self.owner, self.document, after, self.subresource)


@dataclass(frozen=True, slots=True)
class ExistingObjects:
    """The objects of one kind, or of its subresource, as one policy may read them."""

    broker: Broker
    api_version: str
    kind: str
    subresource: str = ""

    def get(self, namespace: str, name: str) -> ExistingObject | None:
        """Return one object, None when it does not exist; raises HostError when that is not known."""
        part = self._part
        found = self.broker.get_object(self.api_version, self.kind, namespace, name, subresource=part)
        if found is None:
            return None
        owner = ResourceRef.of(found)
        if part:
            owner = ResourceRef(self.api_version, self.kind, owner.namespace, owner.name)
        return ExistingObject(found, owner, self.subresource)

    def of(self, documents: Iterable[JSONObject]) -> Iterator[ExistingObject]:
        """Yield what is changed of some objects of the kind; raises HostError."""
        part = self._part
        for document in documents:
            owner = ResourceRef.of(document)
            held = document
            if part:
                found = self.broker.get_object(
                    self.api_version, self.kind, owner.namespace, owner.name, subresource=part
                )
                if found is None:  # gone since it was listed
                    continue
                held = found
            yield ExistingObject(held, owner, self.subresource)

    @property
    def _part(self) -> str:
        """The subresource that has to be read by itself: one of another kind than the object (`scale`)."""
        if not self.subresource:
            return ""
        info = self.broker.host.kinds.find(GVK(*parse_api_version(self.api_version), self.kind))
        if info is None or self.subresource not in info.subresources:
            raise EvaluationError(f"the cluster serves no `{self.subresource}` of {self.kind}")
        return self.subresource if info.subresource_gvk(self.subresource) != info.gvk else ""
