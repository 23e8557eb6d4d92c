"""Discovery documents: the served groups, versions and resources, in the plain and in the aggregated form.

Every function is pure and writes what a kube-apiserver answers under `/api`, `/apis` and `/version`.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator
from hashlib import sha256

from kubesandbox.types.resources import ResourceTable, ResourceType
from pyverno.kube.gvk import GVK, join_api_version, version_order
from pyverno.kube.json import JSONObject

__all__ = ["aggregated", "api_groups", "api_versions", "group", "resource_list", "version_info"]

GROUP_ORDER: tuple[str, ...] = (
    "apiregistration.k8s.io",
    "apps",
    "events.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "storage.k8s.io",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "scheduling.k8s.io",
    "coordination.k8s.io",
    "node.k8s.io",
    "discovery.k8s.io",
    "resource.k8s.io",
    "flowcontrol.apiserver.k8s.io",
)
"""The order of a kube-apiserver: kubectl resolves an ambiguous short name to the first group."""

_CUSTOM_VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
_CHANGING = ("get", "patch", "update")
_PROXY = ("create", "delete", "get", "patch", "update")
_SUBRESOURCE_VERBS: dict[str, tuple[str, ...]] = {
    "attach": ("create", "get"),
    "binding": ("create",),
    "eviction": ("create",),
    "exec": ("create", "get"),
    "finalize": ("update",),
    "log": ("get",),
    "portforward": ("create", "get"),
    "proxy": _PROXY,
    "token": ("create",),
}
_CUSTOM_SUBRESOURCES = ("status", "scale")
"""A kube-apiserver lists the subresources of custom resources in this order, and all others by name."""

_STORED_AS: dict[str, GVK] = {"events": GVK("", "v1", "Event")}


def api_versions(address: str = "") -> JSONObject:
    """Return the document at `/api`; `address` is host and port of the server as clients see it.

    >>> api_versions()["versions"]
    ['v1']
    """
    return {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
    }


def api_groups(table: ResourceTable) -> JSONObject:
    """Return the document at `/apis`: all groups but the core one."""
    groups = [_group(name, versions) for name, versions in _groups(table)]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def group(table: ResourceTable, name: str) -> JSONObject | None:
    """Return the document at `/apis/<group>`, None when the group is not served.

    >>> from kubesandbox.types.resources import builtin_table
    >>> group(builtin_table("1.35"), "autoscaling")["preferredVersion"]
    {'groupVersion': 'autoscaling/v2', 'version': 'v2'}
    """
    versions = dict(_groups(table)).get(name)
    return None if versions is None else {"kind": "APIGroup", "apiVersion": "v1", **_group(name, versions)}


def resource_list(table: ResourceTable, group: str, version: str) -> JSONObject | None:
    """Return the resources of one group and version, as at `/apis/apps/v1`; None when it is not served."""
    types = table.in_version(group, version)
    if not types:
        return None
    resources = [entry for item in types for entry in _plain(table, item)]
    head: JSONObject = {"kind": "APIResourceList"}
    if group:
        head["apiVersion"] = "v1"  # the core group's list comes without it
    return {**head, "groupVersion": join_api_version(group, version), "resources": resources}


def aggregated(table: ResourceTable, core: bool, version: str = "v2") -> JSONObject:
    """Return the aggregated document at `/api` (`core`) or `/apis`, in `v2` or `v2beta1`.

    >>> from kubesandbox.types.resources import builtin_table
    >>> [item["metadata"] for item in aggregated(builtin_table("1.35"), core=True)["items"]]
    [{}]
    """
    if core:
        groups: Iterable[tuple[str, tuple[str, ...]]] = [("", table.group_versions().get("", ()))]
    else:
        groups = _groups(table)
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": f"apidiscovery.k8s.io/{version}",
        "metadata": {},
        "items": [
            {
                "metadata": {"name": name} if name else {},
                "versions": [
                    {
                        "version": item,
                        "resources": [_nested(entry) for entry in table.in_version(name, item)],
                        "freshness": "Current",
                    }
                    for item in versions
                ],
            }
            for name, versions in groups
        ],
    }


_TELLS_EMULATION = 33


def version_info(kube_version: str) -> JSONObject:
    """Return the document at `/version` for a Kubernetes version such as `1.35`.

    >>> version_info("1.35")["gitVersion"], version_info("1.34.2")["gitVersion"]
    ('v1.35.0', 'v1.34.2')
    """
    major, minor, *patch = kube_version.removeprefix("v").split(".")
    emulation: JSONObject = {
        "emulationMajor": major,
        "emulationMinor": minor,
        "minCompatibilityMajor": major,
        "minCompatibilityMinor": str(int(minor) - 1),
    }
    return {
        "major": major,
        "minor": minor,
        **(emulation if int(minor) >= _TELLS_EMULATION else {}),
        "gitVersion": f"v{major}.{minor}.{patch[0] if patch else 0}",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "",
        "platform": "",
    }


def _groups(table: ResourceTable) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the named groups in the order of discovery, each with its versions, the preferred one first."""
    served = table.group_versions()
    rest = sorted(name for name in served if name and name not in GROUP_ORDER)
    for name in (*GROUP_ORDER, *rest):
        if name in served:
            yield name, tuple(sorted(served[name], key=version_order))


def _group(name: str, versions: tuple[str, ...]) -> JSONObject:
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def _plain(table: ResourceTable, item: ResourceType) -> Iterator[JSONObject]:
    entry: JSONObject = {
        "name": item.plural,
        "singularName": item.singular,
        "namespaced": item.namespaced,
        "kind": item.kind,
        "verbs": list(_verbs(item)),
        **_names(item),
    }
    if "list" in item.verbs and item.plural != "componentstatuses":
        entry["storageVersionHash"] = _storage_hash(table, item)
    yield entry
    for name in _subresources(item):
        kind = item.subresource_gvk(name)
        entry = {"name": f"{item.plural}/{name}", "singularName": "", "namespaced": item.namespaced}
        if (kind.group, kind.version) != (item.group, item.version):
            entry |= {"group": kind.group, "version": kind.version}
        yield {**entry, "kind": kind.kind, "verbs": list(_SUBRESOURCE_VERBS.get(name, _CHANGING))}


def _nested(item: ResourceType) -> JSONObject:
    entry: JSONObject = {
        "resource": item.plural,
        "responseKind": _response_kind(item, item.gvk),
        "scope": "Namespaced" if item.namespaced else "Cluster",
        "singularResource": item.singular,
        "verbs": list(_verbs(item)),
        **_names(item),
    }
    subresources = [
        {
            "subresource": name,
            "responseKind": _response_kind(item, item.subresource_gvk(name)),
            "verbs": list(_SUBRESOURCE_VERBS.get(name, _CHANGING)),
        }
        for name in _subresources(item)
    ]
    return {**entry, "subresources": subresources} if subresources else entry


def _response_kind(item: ResourceType, kind: GVK) -> JSONObject:
    """Write a kind; built-in resources omit a group and version that equal the list's."""
    if not item.is_custom and (kind.group, kind.version) == (item.group, item.version):
        return {"group": "", "version": "", "kind": kind.kind}
    return {"group": kind.group, "version": kind.version, "kind": kind.kind}


def _names(item: ResourceType) -> JSONObject:
    names: JSONObject = {}
    if item.short_names:
        names["shortNames"] = list(item.short_names)
    if item.categories:
        names["categories"] = list(item.categories)
    return names


def _verbs(item: ResourceType) -> tuple[str, ...]:
    if item.is_custom:
        return _CUSTOM_VERBS
    return item.verbs


def _subresources(item: ResourceType) -> tuple[str, ...]:
    if item.is_custom:
        return tuple(name for name in _CUSTOM_SUBRESOURCES if name in item.subresources)
    return tuple(sorted(item.subresources))


def _storage_hash(table: ResourceTable, item: ResourceType) -> str:
    versions = sorted(table.versions_of(item.key), key=lambda known: version_order(known.version))
    stored = _STORED_AS.get(item.key) or (versions[0] if versions else item).gvk
    text = f"{stored.group}/{stored.version}/{stored.kind}"
    return b64encode(sha256(text.encode()).digest()[:8]).decode()
