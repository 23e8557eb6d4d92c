"""Objects that are never deleted, regardless of policies and labels."""

from __future__ import annotations

from typing import Final

from pyverno.kube.json import JSONObject
from pyverno.kube.kinds import KindInfo
from pyverno.webhook.configuration import Configuration

__all__ = ["reason_to_keep"]

_SYSTEM_NAMESPACES: Final = frozenset({"default", "kube-system", "kube-public", "kube-node-lease"})
_OWN_GROUPS: Final = ("kyverno.io", "policies.kyverno.io", "reports.kyverno.io", "wgpolicyk8s.io", "openreports.io")
_POLICY_GROUPS: Final = frozenset({"kyverno.io", "policies.kyverno.io"})
_PART: Final = "app.kubernetes.io/part-of"
_MANAGER: Final = "app.kubernetes.io/managed-by"


def reason_to_keep(
    info: KindInfo,
    metadata: JSONObject,
    configuration: Configuration,
    *,
    own_namespace: str,
    protects_managed: bool = False,
) -> str:
    """Return why an object must not be deleted; the empty text when it may be.

    Kept are objects that are being deleted already, those that `resourceFilters` filter, system namespaces, and what
    belongs to the controllers themselves.
    """
    name, namespace = metadata.get("name") or "", metadata.get("namespace") or ""
    if metadata.get("deletionTimestamp"):
        return "it is being deleted already"
    if (info.group, info.kind) == ("", "Namespace") and name in (*_SYSTEM_NAMESPACES, own_namespace):
        return "it is a system namespace"
    labels = metadata.get("labels") or {}
    if namespace == own_namespace and labels.get(_PART) == "kyverno":
        return "it belongs to Kyverno"
    if info.kind == "CustomResourceDefinition" and name.partition(".")[2] in _OWN_GROUPS:
        return "it defines a kind of Kyverno"
    if protects_managed and labels.get(_MANAGER) == "kyverno":
        return "it is managed by Kyverno"
    # COMPAT: the kind is in the place of the subresource: `[Event,*,*]` keeps no Event, `[*/*,team,*]` does
    filters = configuration.filters_of(info.gvk, info.kind)
    if info.group not in _POLICY_GROUPS and any(each.takes(info.gvk, namespace, name) for each in filters):
        return "it is filtered by resourceFilters"
    return ""
