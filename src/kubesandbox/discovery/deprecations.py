"""Deprecated versions of kinds, and the warnings for clients that use one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kubesandbox.types.resources import ResourceType
from pyverno.kube.json import JSONObject

__all__ = ["deprecation"]

_BUILTIN: Final[Mapping[tuple[str, str], tuple[int, str]]] = {
    ("v1", "ComponentStatus"): (19, "v1 ComponentStatus is deprecated in v1.19+"),
    ("v1", "Endpoints"): (33, "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"),
}
"""By apiVersion and kind: the minor version of Kubernetes 1 that deprecated it, and the text."""


def deprecation(type: ResourceType, kube_version: str, definition: JSONObject | None = None) -> str:
    """Return the warning for every request of a deprecated type, empty for other types.

    `definition` is the CustomResourceDefinition of a custom type.

    >>> from kubesandbox.types.resources import builtin_table
    >>> deprecation(builtin_table("1.35").find("", "v1", "componentstatuses"), "1.35")
    'v1 ComponentStatus is deprecated in v1.19+'
    """
    if not type.is_custom:
        since, text = _BUILTIN.get((type.api_version, type.kind), (0, ""))
        return text if int(kube_version.split(".")[1]) >= since else ""
    for version in definition["spec"]["versions"] if definition else ():
        if version["name"] == type.version and version.get("deprecated"):
            return str(version.get("deprecationWarning") or f"{type.api_version} {type.kind} is deprecated")
    return ""
