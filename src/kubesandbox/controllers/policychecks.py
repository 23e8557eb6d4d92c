"""ValidatingAdmissionPolicies: the warnings of type checking in their status.

The compiler makes the warnings. This module must never judge a request.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kubesandbox.controllers.context import ControllerContext
from kubesandbox.controllers.loop import Keys, itself
from kubesandbox.controllers.objects import key_of, number_at
from kubesandbox.storage.store import Change, Key
from pyverno.kube.json import JSONObject

__all__ = ["PolicyChecks"]

POLICIES = "validatingadmissionpolicies.admissionregistration.k8s.io"
CRDS = "customresourcedefinitions.apiextensions.k8s.io"


class PolicyChecks:
    """Checks policies, again when definitions of custom resources change."""

    def __init__(self, context: ControllerContext, kube_version: str) -> None:
        """Take the tools and the version of Kubernetes."""
        self._context = context
        self._version = kube_version

    @property
    def watches(self) -> Mapping[str, Keys]:
        """The policies; definitions give the schemas of custom kinds."""
        return {POLICIES: itself, CRDS: self._all}

    def _all(self, change: Change) -> Iterable[Key]:
        return [key_of(POLICIES, policy) for policy in self._context.client.list(POLICIES)]

    async def reconcile(self, key: Key) -> float | None:
        """Check one policy."""
        policy = self._context.client.get(POLICIES, key.name)
        if policy is not None:
            status = checked_status(policy, self._context.client.list(CRDS), self._version)
            await self._context.put_status(POLICIES, policy, status)
        return None


def checked_status(policy: JSONObject, crds: Iterable[JSONObject], kube_version: str) -> JSONObject:
    """Return the status of a policy after type checking."""
    from pyverno.compiler.cel.typechecking import check_types, known_schemas
    from pyverno.kube.schemas import schema_set
    from pyverno.kube.yaml.documents import Document
    from pyverno.policy.cel.admissionpolicy import ValidatingAdmissionPolicy
    from pyverno.policy.decode import decode

    status: JSONObject = {**(policy.get("status") or {})}
    status["observedGeneration"] = number_at(policy, "metadata", "generation")
    status["typeChecking"] = {}
    decoded = decode(Document(policy)).policy
    if isinstance(decoded, ValidatingAdmissionPolicy):
        major, _, minor = kube_version.partition(".")
        version = (int(major), int(minor.partition(".")[0]))
        found = check_types(decoded, known_schemas(schema_set(kube_version), crds), version)
        status["typeChecking"] = found.to_json()
    return status
