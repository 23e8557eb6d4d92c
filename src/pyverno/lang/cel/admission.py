"""The types of Kubernetes' admission variables: `request` and `namespaceObject`.

`object`, `oldObject` and `params` are dyn, or come from schemas when a policy is type-checked. This module must never
hold a value.
"""

from __future__ import annotations

from typing import Final

from pyverno.lang.cel.structs import DeclaredTypes
from pyverno.lang.cel.types import BOOL, DYN, INT, STRING, TIMESTAMP, list_of, map_of, struct

__all__ = ["ADMISSION_TYPES", "NAMESPACE", "REQUEST"]

REQUEST: Final = struct("kubernetes.AdmissionRequest")
"""The type of `request`."""

NAMESPACE: Final = struct("kubernetes.Namespace")
"""The type of `namespaceObject`."""

_TEXTS: Final = list_of(STRING)
_TEXT_MAP: Final = map_of(STRING, STRING)

# Kubernetes: BuildRequestType and BuildNamespaceType of apiserver's admission plugin for CEL
ADMISSION_TYPES: Final = DeclaredTypes(
    {
        "kubernetes.GroupVersionKind": dict.fromkeys(("group", "version", "kind"), STRING),
        "kubernetes.GroupVersionResource": dict.fromkeys(("group", "version", "resource"), STRING),
        "kubernetes.UserInfo": {
            "username": STRING,
            "uid": STRING,
            "groups": _TEXTS,
            "extra": map_of(STRING, _TEXTS),
        },
        "kubernetes.AdmissionRequest": {
            "kind": struct("kubernetes.GroupVersionKind"),
            "resource": struct("kubernetes.GroupVersionResource"),
            "subResource": STRING,
            "requestKind": struct("kubernetes.GroupVersionKind"),
            "requestResource": struct("kubernetes.GroupVersionResource"),
            "requestSubResource": STRING,
            "name": STRING,
            "namespace": STRING,
            "operation": STRING,
            "userInfo": struct("kubernetes.UserInfo"),
            "dryRun": BOOL,
            "options": DYN,
        },
        "kubernetes.NamespaceSpec": {"finalizers": _TEXTS},
        "kubernetes.NamespaceCondition": {
            **dict.fromkeys(("status", "type", "message", "reason"), STRING),
            "lastTransitionTime": TIMESTAMP,
        },
        "kubernetes.NamespaceStatus": {
            "conditions": list_of(struct("kubernetes.NamespaceCondition")),
            "phase": STRING,
        },
        "kubernetes.NamespaceMetadata": {
            **dict.fromkeys(("name", "generateName", "namespace", "UID", "resourceVersion"), STRING),
            "labels": _TEXT_MAP,
            "annotations": _TEXT_MAP,
            "creationTimestamp": TIMESTAMP,
            "deletionTimestamp": TIMESTAMP,
            "deletionGracePeriodSeconds": INT,
            "generation": INT,
            "finalizers": _TEXTS,
        },
        "kubernetes.Namespace": {
            "metadata": struct("kubernetes.NamespaceMetadata"),
            "spec": struct("kubernetes.NamespaceSpec"),
            "status": struct("kubernetes.NamespaceStatus"),
        },
    }
)
"""The struct types behind `REQUEST` and `NAMESPACE`, as a StructProvider."""
