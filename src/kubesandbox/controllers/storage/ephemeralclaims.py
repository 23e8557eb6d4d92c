"""Claims of generic ephemeral volumes: made for a pod, and gone with it.

This module must never use a claim that belongs to somebody else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kubesandbox.controllers.context import ControllerContext, is_namespace_ending
from kubesandbox.controllers.loop import Keys
from kubesandbox.controllers.objects import (
    annotations_of,
    at,
    is_deleting,
    labels_of,
    name_of,
    namespace_of,
    owner_reference,
)
from kubesandbox.controllers.pods import is_terminal
from kubesandbox.storage.store import Change, ChangeKind, Key
from pyverno.kube.json import JSONObject
from pyverno.kube.status import StatusError

__all__ = ["EphemeralClaims"]

CLAIMS = "persistentvolumeclaims"


class EphemeralClaims:
    """Makes the claims that pods describe themselves."""

    def __init__(self, bench: ControllerContext) -> None:
        """Take the tools."""
        self._bench = bench

    @property
    def watches(self) -> Mapping[str, Keys]:
        """New pods with such volumes."""
        return {"pods": _with_claims}

    async def reconcile(self, key: Key) -> float | None:
        """Make the claims of one pod that are not there; the garbage collector takes them away."""
        client = self._bench.client
        pod = client.get("pods", key.name, key.namespace)
        if pod is None or is_deleting(pod) or is_terminal(pod):
            return None
        for claim in claims_for(pod):
            if client.get(CLAIMS, name_of(claim), key.namespace) is not None:
                continue
            try:
                await client.create(CLAIMS, claim)
            except StatusError as error:
                if is_namespace_ending(error):
                    return None
                raise
        return None


def claims_for(pod: JSONObject) -> list[JSONObject]:
    """Return the claims of a pod's ephemeral volumes; their names are made of the pod's and the volume's."""
    found = []
    for volume in at(pod, "spec", "volumes", default=[]):
        template = at(volume, "ephemeral", "volumeClaimTemplate")
        if template is not None:
            metadata: JSONObject = {
                "name": f"{name_of(pod)}-{volume['name']}",
                "namespace": namespace_of(pod),
                "labels": dict(labels_of(template)),
                "annotations": dict(annotations_of(template)),
                "ownerReferences": [owner_reference(pod)],
            }
            spec = template.get("spec", {})
            found.append(
                {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec},
            )
    return found


def _with_claims(change: Change) -> Iterable[Key]:
    is_new = change.kind is ChangeKind.ADDED and bool(claims_for(change.state.body))
    return (change.state.key,) if is_new else ()
