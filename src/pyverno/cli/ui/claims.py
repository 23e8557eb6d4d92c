"""What a report claims about an object, resolved by discovery; and objects that the viewer of a request may read.

Whoever may write reports of a namespace writes any kind, version and name into them. Nothing of a claim is used before
it names one resource that the cluster serves, and the viewer may read the object there.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pyverno.engine.result import ResourceRef
from pyverno.errors import UsageError, ValueSyntaxError
from pyverno.kube.apipath import format_segment
from pyverno.kube.gvk import GVK, GVR, parse_api_version
from pyverno.kube.json import JSONObject
from pyverno.kube.kinds import KindInfo, KindTable
from pyverno.kube.resource import Resource
from pyverno.ui.access.access import access_to
from pyverno.ui.access.viewer import check, may

# trust rows: report-claim

__all__ = ["check_namespace", "check_object", "is_readable", "readable", "resolve"]

_NAMESPACES: Final = GVR("", "v1", "namespaces")


def resolve(ref: ResourceRef, kinds: KindTable) -> KindInfo:
    """Return the kind of a claimed object; raises UsageError for a claim that names no single object.

    >>> from pyverno.kube.kinds import BUILTIN_KINDS
    >>> resolve(ResourceRef("v9", "Secret", "shop", "token"), BUILTIN_KINDS)
    Traceback (most recent call last):
    pyverno.errors.UsageError: the cluster serves no kind `Secret` of `v9`
    """
    found = [each for each in kinds.by_kind(ref.kind) if ref.api_version in ("", each.api_version)]
    if not found:  # guard: a claimed version must be served
        of = f" of `{ref.api_version}`" if ref.api_version else ""
        raise UsageError(f"the cluster serves no kind `{ref.kind}`{of}")
    if len({each.group for each in found}) > 1:
        raise UsageError(f"several groups have a kind `{ref.kind}`, and the report names no `apiVersion`")
    info = found[0]
    if info.namespaced != bool(ref.namespace):  # guard: the scope of a claim is that of the kind
        where = "lives in namespaces, and the report names none" if info.namespaced else "lives in no namespace"
        raise UsageError(f"a {ref.kind} {where}: the report does not name an object of the cluster")
    for text in (ref.name, ref.namespace)[: 2 if info.namespaced else 1]:
        try:
            format_segment(text)
        except ValueSyntaxError:
            raise UsageError("the report does not name an object: name or namespace is no part of an address") from None
    return info


async def check_object(info: KindInfo, namespace: str, name: str) -> None:
    """Raise AccessDeniedError if the viewer may not get an object."""
    await check(access_to(info.gvr, namespace, name))


async def check_namespace(name: str) -> None:
    """Raise AccessDeniedError if the viewer may not get a namespace: policies read its labels."""
    if name:
        await check(access_to(_NAMESPACES, "", name))  # guard: labels of a namespace are shown to its viewers


async def is_readable(body: JSONObject, kinds: KindTable) -> bool:
    """Return whether the viewer may get an object that this server has read."""
    info = _info(body, kinds)
    metadata = Resource(body)
    return info is not None and await may(access_to(info.gvr, metadata.namespace, metadata.name))


async def readable(bodies: Iterable[JSONObject], kinds: KindTable) -> list[JSONObject]:
    """Return the objects of a list that the viewer may get: all of a kind in a namespace, or none of them.

    Objects that the viewer may get by their names only are left out: the number of questions must have a limit.
    """
    found = []
    for body in bodies:
        info = _info(body, kinds)
        namespace = Resource(body).namespace
        if info is None:
            continue
        if await may(access_to(info.gvr)) or (namespace and await may(access_to(info.gvr, namespace))):
            found.append(body)
    return found


def _info(body: JSONObject, kinds: KindTable) -> KindInfo | None:
    return kinds.find(GVK(*parse_api_version(body["apiVersion"]), body["kind"]))
