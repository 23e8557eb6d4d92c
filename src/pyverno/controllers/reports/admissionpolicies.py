"""The admission policies of Kubernetes that are labelled for reports, compiled with their bindings."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from pyverno.cluster.client import Client
from pyverno.cluster.informer import Informer, Notice
from pyverno.compiler.compile import compile_documents
from pyverno.controllers.reports.plan import ENABLED_LABEL
from pyverno.controllers.state.scannedkinds import DISABLED_LABEL
from pyverno.engine.rule import CompiledPolicy
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.kinds import KindTable
from pyverno.kube.yaml.documents import Document

__all__ = ["AdmissionPolicies"]

_GROUP: Final = "admissionregistration.k8s.io"
_VERSIONS: Final = ("v1", "v1beta1", "v1alpha1")
_VALIDATING: Final = "validatingadmissionpolic"
_MUTATING: Final = "mutatingadmissionpolic"


class AdmissionPolicies:
    """Follows policies and bindings while their watches run; `on_change` is called when they change."""

    def __init__(
        self, client: Client, on_change: Callable[[], None], *, validating: bool = True, mutating: bool = False
    ) -> None:
        """Take the client, a receiver of changes, and which kinds are wanted."""
        self._client = client
        self._on_change = on_change
        self._words = tuple(word for word, is_on in ((_VALIDATING, validating), (_MUTATING, mutating)) if is_on)
        self._informers: dict[GVR, Informer] = {}
        self._compiled: tuple[CompiledPolicy, ...] | None = None

    @property
    def is_synced(self) -> bool:
        """Return whether everything that the cluster serves has been listed."""
        return all(informer.synced.is_set() for informer in self._informers.values())

    def follow(self, kinds: KindTable, group: asyncio.TaskGroup) -> None:
        """Follow what the cluster serves, each kind in its best version, as long as the group of tasks runs."""
        for word in self._words:
            for plural in (f"{word}ies", f"{word}ybindings"):
                served = (GVR(_GROUP, version, plural) for version in _VERSIONS)
                gvr = next((each for each in served if kinds.by_resource(each) is not None), None)
                if gvr is None or any(known.resource == plural for known in self._informers):
                    continue
                informer = Informer(self._client, gvr)
                informer.listen(self._take)
                self._informers[gvr] = informer
                group.create_task(informer.run())

    def policies(self) -> tuple[CompiledPolicy, ...]:
        """Return the policies that are scanned with; those that do not compile give errors for every object."""
        if self._compiled is None:
            bodies = [body for informer in self._informers.values() for body in informer.all()]
            kept = [Document(body, "") for body in bodies if _is_reported(body)]
            self._compiled = tuple(item.policy for item in compile_documents(kept).items if item.policy is not None)
        return self._compiled

    def decides(self, source: str) -> bool:
        """Return whether policies of a source are known here."""
        return any(source.lower() == f"{word}y" for word in self._words)

    def _take(self, _notice: Notice, _body: JSONObject) -> None:
        self._compiled = None
        self._on_change()


def _is_reported(body: JSONObject) -> bool:
    labels = body["metadata"].get("labels") or {}
    if body["kind"].endswith("Binding"):
        return DISABLED_LABEL not in labels
    return labels.get(ENABLED_LABEL) == "true"
