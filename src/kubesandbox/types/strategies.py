"""Differences between resources in writes, by storage key; upstream calls this strategies."""

from __future__ import annotations

__all__ = [
    "CREATED_BY_UPDATE",
    "RETURNED_WHEN_DELETED",
    "UPDATED_BY_VERSION",
    "has_generation",
]

UPDATED_BY_VERSION = frozenset(
    {
        "customresourcedefinitions.apiextensions.k8s.io",
        "leases.coordination.k8s.io",
        "mutatingwebhookconfigurations.admissionregistration.k8s.io",
        "validatingwebhookconfigurations.admissionregistration.k8s.io",
        "validatingadmissionpolicies.admissionregistration.k8s.io",
        "validatingadmissionpolicybindings.admissionregistration.k8s.io",
        "mutatingadmissionpolicies.admissionregistration.k8s.io",
        "mutatingadmissionpolicybindings.admissionregistration.k8s.io",
        "poddisruptionbudgets.policy",
        "runtimeclasses.node.k8s.io",
    }
)
"""Built-in resources that can only be updated by those who state which version they have seen."""

CREATED_BY_UPDATE = frozenset(
    {
        "clusterrolebindings.rbac.authorization.k8s.io",
        "clusterroles.rbac.authorization.k8s.io",
        "endpoints",
        "events",
        "leases.coordination.k8s.io",
        "limitranges",
        "rolebindings.rbac.authorization.k8s.io",
        "roles.rbac.authorization.k8s.io",
        "runtimeclasses.node.k8s.io",
        "services",
    }
)
"""Resources whose objects an update creates when they are not there."""

RETURNED_WHEN_DELETED = frozenset(
    {
        "csidrivers.storage.k8s.io",
        "csinodes.storage.k8s.io",
        "persistentvolumeclaims",
        "persistentvolumes",
        "pods",
        "podtemplates",
        "replicationcontrollers",
        "resourcequotas",
        "serviceaccounts",
        "services",
        "storageclasses.storage.k8s.io",
        "volumeattachments.storage.k8s.io",
    }
)
"""Resources whose deletion is answered with the last state of the object, not with a Status."""

_WITHOUT_GENERATION = frozenset(
    {
        "bindings",
        "componentstatuses",
        "configmaps",
        "endpoints",
        "events",
        "limitranges",
        "namespaces",
        "nodes",
        "persistentvolumeclaims",
        "persistentvolumes",
        "resourcequotas",
        "secrets",
        "serviceaccounts",
        "services",
        "certificatesigningrequests.certificates.k8s.io",
        "clusterrolebindings.rbac.authorization.k8s.io",
        "clusterroles.rbac.authorization.k8s.io",
        "controllerrevisions.apps",
        "csinodes.storage.k8s.io",
        "csistoragecapacities.storage.k8s.io",
        "horizontalpodautoscalers.autoscaling",
        "leases.coordination.k8s.io",
        "rolebindings.rbac.authorization.k8s.io",
        "roles.rbac.authorization.k8s.io",
        "runtimeclasses.node.k8s.io",
        "storageclasses.storage.k8s.io",
        "volumeattachments.storage.k8s.io",
    }
)


def has_generation(resource: str) -> bool:
    """Return whether objects of a resource (its storage key) count the changes of what is wanted of them.

    >>> has_generation("deployments.apps"), has_generation("configmaps")
    (True, False)
    """
    return resource not in _WITHOUT_GENERATION
