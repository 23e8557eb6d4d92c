"""Claims that pods use, and volumes that are bound to claims, are not deleted before nobody uses them any more.

A finalizer holds them. This module must never delete anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from kubesandbox.controllers.context import ControllerContext
from kubesandbox.controllers.loop import Keys, itself
from kubesandbox.controllers.objects import at, is_deleting, is_owned_by, name_of, namespace_of, with_metadata
from kubesandbox.controllers.pods import is_terminal, phase_of
from kubesandbox.controllers.storage.ephemeralclaims import claims_for
from kubesandbox.storage.store import Change, Key
from pyverno.kube.json import JSONObject
from pyverno.kube.status import StatusError

__all__ = ["CLAIM_PROTECTION", "VOLUME_PROTECTION", "Protection", "protected_claims", "protected_volumes"]

CLAIMS = "persistentvolumeclaims"
VOLUMES = "persistentvolumes"
CLAIM_PROTECTION = "kubernetes.io/pvc-protection"
VOLUME_PROTECTION = "kubernetes.io/pv-protection"


class Protection:
    """Keeps one finalizer on the objects of one resource for as long as they are used."""

    def __init__(
        self,
        bench: ControllerContext,
        resource: str,
        finalizer: str,
        *,
        is_used: Callable[[ControllerContext, JSONObject], bool],
        others: Mapping[str, Keys],
    ) -> None:
        """Take the tools, what is protected, how its use is told, and which changes of others may end that."""
        self._bench = bench
        self._resource = resource
        self._finalizer = finalizer
        self._is_used = is_used
        self._others = others

    @property
    def watches(self) -> Mapping[str, Keys]:
        """What is protected, and what may use it."""
        return {self._resource: itself, **self._others}

    async def reconcile(self, key: Key) -> float | None:
        """Add the finalizer, or take it from what is being deleted and not used."""
        client = self._bench.client
        body = client.get(self._resource, key.name, key.namespace)
        if body is None:
            return None
        present = at(body, "metadata", "finalizers", default=[])
        if is_deleting(body):
            if self._finalizer not in present or self._is_used(self._bench, body):
                return None
            wanted = [name for name in present if name != self._finalizer]
        elif self._finalizer not in present:
            wanted = [*present, self._finalizer]
        else:
            return None
        try:
            await client.update(self._resource, with_metadata(body, finalizers=wanted))
        except StatusError as error:
            if error.reason != "NotFound":
                raise
        return None


def protected_claims(bench: ControllerContext) -> Protection:
    """Return the controller that protects claims."""
    return Protection(bench, CLAIMS, CLAIM_PROTECTION, is_used=_is_claim_used, others={"pods": _claims_of})


def protected_volumes(bench: ControllerContext) -> Protection:
    """Return the controller that protects volumes."""
    return Protection(bench, VOLUMES, VOLUME_PROTECTION, is_used=_is_volume_used, others={})


def _is_volume_used(_bench: ControllerContext, volume: JSONObject) -> bool:
    return phase_of(volume) == "Bound"


def _is_claim_used(bench: ControllerContext, claim: JSONObject) -> bool:
    """Tell whether a pod that has a node names the claim; one of its own counts until the pod has ended."""
    # upstream: a node does not start a pod whose claim is being deleted, so pods without a node do not count
    for pod in bench.client.list("pods", namespace_of(claim)):
        if not at(pod, "spec", "nodeName"):
            continue
        if name_of(claim) in _named(pod) or (is_owned_by(claim, pod) and not is_terminal(pod)):
            return True
    return False


def _named(pod: JSONObject) -> set[str]:
    volumes = at(pod, "spec", "volumes", default=())
    return {at(volume, "persistentVolumeClaim", "claimName", default="") for volume in volumes} - {""}


def _claims_of(change: Change) -> Iterable[Key]:
    bodies = [change.state.body, *([change.before.body] if change.before else [])]
    for body in bodies:
        for name in {*_named(body), *(name_of(claim) for claim in claims_for(body))}:
            yield Key(CLAIMS, namespace_of(body), name)
