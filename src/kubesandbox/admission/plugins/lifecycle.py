"""NamespaceLifecycle: objects need an existing namespace that does not terminate; some namespaces cannot be deleted."""

from __future__ import annotations

from typing import Final

from kubesandbox.admission.policies.requests import display_name
from kubesandbox.attributes import Attributes
from kubesandbox.storage.store import Key
from kubesandbox.view import ClusterView
from pyverno.engine.request import Operation
from pyverno.kube.status import Cause, forbidden, not_found

__all__ = ["check_namespace"]

_IMMORTAL: Final = frozenset({"default", "kube-system", "kube-public"})


def check_namespace(attributes: Attributes, cluster: ClusterView) -> None:
    """Raise 403 for deleting an immortal namespace or adding to a terminating one, 404 for a missing one."""
    type, operation = attributes.type, attributes.operation
    if type.key == "namespaces":
        if operation is Operation.DELETE and attributes.name in _IMMORTAL:
            raise forbidden(type.group, type.plural, attributes.name, "this namespace may not be deleted")
        return
    namespace = attributes.namespace
    # an answer about access must not reveal whether a namespace exists
    if (
        not namespace
        or operation in (Operation.DELETE, Operation.CONNECT)
        or type.plural == "localsubjectaccessreviews"
    ):
        return
    found = cluster.get(Key("namespaces", "", namespace))
    if found is None:
        raise not_found("", "namespaces", namespace)
    if operation is Operation.CREATE and (found.body.get("status") or {}).get("phase") == "Terminating":
        why = f"unable to create new content in namespace {namespace} because it is being terminated"
        cause = Cause("NamespaceTerminating", f"namespace {namespace} is being terminated", "metadata.namespace")
        raise forbidden(type.group, type.plural, display_name(attributes), why, [cause])
