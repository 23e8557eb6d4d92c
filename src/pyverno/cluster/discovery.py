"""The kinds that a cluster serves: one request or two for aggregated discovery, one per version without it.

Nothing is cached here; callers decide how long a table is valid.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Final

from pyverno.cluster.client import Client
from pyverno.errors import HostError
from pyverno.kube.gvk import parse_api_version
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.kinds import KindInfo, KindTable
from pyverno.kube.status import StatusError
from pyverno.value import dataclass

__all__ = ["Served", "discover", "find_served"]

_AGGREGATED: Final = ",".join(
    f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList" for version in ("v2", "v2beta1")
)
_COMMON_VERBS: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
_ACCEPT: Final = f"{_AGGREGATED},application/json"


@dataclass(frozen=True, slots=True)
class Served:
    """The kinds that a cluster serves, and the groups with versions whose own server did not answer just now."""

    kinds: KindTable
    silent: frozenset[tuple[str, str]] = frozenset()
    stale: tuple[KindInfo, ...] = ()
    """The kinds of silent groups as the API server knew them last."""

    def completed(self, before: KindTable) -> KindTable:
        """Return the kinds with those that the silent groups were known to have: they have not gone, they are late."""
        known = [info for info in before if (info.group, info.version) in self.silent]
        late = {info.gvk: info for info in (*known, *self.stale)}
        return KindTable([*self.kinds, *late.values()]) if late else self.kinds


async def discover(client: Client) -> KindTable:
    """Return the kinds that a cluster serves, preferred versions first (see `find_served`)."""
    return (await find_served(client)).kinds


async def find_served(client: Client) -> Served:
    """Return the kinds that a cluster serves, preferred versions first, and the groups without an answer.

    A group whose aggregated server does not answer is left out, as kubectl does; every other error is raised.
    """
    found: list[KindInfo] = []
    late: list[KindInfo] = []
    silent: set[tuple[str, str]] = set()
    for root in ("/api", "/apis"):
        answer = await client.request("GET", root, accept=_ACCEPT)
        if answer.get("kind") == "APIGroupDiscoveryList":
            for info, is_stale in _aggregate(answer, silent):
                (late if is_stale else found).append(info)
        else:
            found.extend([info async for info in _plain(client, answer, silent)])
    return Served(KindTable(found), frozenset(silent), tuple(late))


def _aggregate(answer: JSONObject, silent: set[tuple[str, str]]) -> Iterator[tuple[KindInfo, bool]]:
    for group in _maps(answer, "items"):
        name = (group.get("metadata") or {}).get("name") or ""
        for version in _maps(group, "versions"):
            is_stale = version.get("freshness") == "Stale"
            if is_stale:
                silent.add((name, str(version.get("version"))))
            for info in _read_group(name, version):
                yield info, is_stale


def _read_group(group: str, version: JSONObject) -> Iterator[KindInfo]:
    for resource in _maps(version, "resources"):
        kind = (resource.get("responseKind") or {}).get("kind")
        if kind:
            yield KindInfo(
                group=group,
                version=str(version.get("version")),
                kind=kind,
                plural=str(resource.get("resource")),
                singular=resource.get("singularResource") or kind.lower(),
                short_names=tuple(resource.get("shortNames") or ()),
                namespaced=resource.get("scope") == "Namespaced",
                subresources=tuple(str(each["subresource"]) for each in _maps(resource, "subresources")),
                categories=tuple(resource.get("categories") or ()),
                verbs=_verbs(resource),
            )


async def _plain(client: Client, answer: JSONObject, silent: set[tuple[str, str]]) -> AsyncIterator[KindInfo]:
    for path in _versions(answer):
        try:
            listed = await client.request("GET", path)
        except (StatusError, HostError):
            if path == "/api/v1":
                raise
            silent.add(parse_api_version(path.removeprefix("/apis/")))
            continue
        for info in _resources(listed):
            yield info


def _versions(answer: JSONObject) -> Iterator[str]:
    """Yield the paths of all versions, preferred ones first within their groups."""
    for version in answer.get("versions") or ():
        yield f"/api/{version}"
    for group in _maps(answer, "groups"):
        preferred = (group.get("preferredVersion") or {}).get("groupVersion")
        listed = [str(each.get("groupVersion")) for each in _maps(group, "versions")]
        for version in sorted(listed, key=lambda text: text != preferred):
            yield f"/apis/{version}"


def _resources(listed: JSONObject) -> Iterator[KindInfo]:
    group, version = parse_api_version(str(listed.get("groupVersion", "")))
    rows = _maps(listed, "resources")
    for row in rows:
        name = str(row.get("name", ""))
        if "/" in name:
            continue
        below = tuple(str(each["name"]).partition("/")[2] for each in rows if str(each["name"]).startswith(f"{name}/"))
        kind = str(row.get("kind", ""))
        yield KindInfo(
            group=group,
            version=version,
            kind=kind,
            plural=name,
            singular=row.get("singularName") or kind.lower(),
            short_names=tuple(row.get("shortNames") or ()),
            namespaced=row.get("namespaced") is True,
            subresources=below,
            categories=tuple(row.get("categories") or ()),
            verbs=_verbs(row),
        )


def _verbs(resource: JSONObject) -> tuple[str, ...]:
    """Return the verbs of a resource in order; most resources share one tuple."""
    found = tuple(sorted(str(each) for each in resource.get("verbs") or ()))
    return _COMMON_VERBS if found == _COMMON_VERBS else found


def _maps(source: JSONObject, key: str) -> list[JSONObject]:
    found: JSON = source.get(key)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []
