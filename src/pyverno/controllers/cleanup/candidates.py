"""Which objects a policy may select: the kinds that it names, where they are listed, and their pages."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Final

from pyverno.cluster.client import Client, resource_path
from pyverno.controllers.state.targets import targets_of
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.kinds import KindInfo, KindTable
from pyverno.policy.cel.constraints import ResourceRule
from pyverno.policy.cel.policies import DeletingPolicy
from pyverno.policy.cleanup import CleanupPolicy
from pyverno.value import dataclass

__all__ = ["Candidates", "candidates_of", "list_pages"]

_ANY: Final = "*"
_PAGE: Final = 500


@dataclass(frozen=True, slots=True)
class Candidates:
    """The objects of a kind that a policy may select: in a namespace ("" = all), with certain labels ("" = any)."""

    info: KindInfo
    namespace: str = ""
    selector: str = ""


def candidates_of(policy: CleanupPolicy | DeletingPolicy, kinds: KindTable) -> tuple[Candidates, ...]:
    """Return what has to be listed for a policy, each resource once.

    A policy of a namespace sees neither other namespaces nor kinds of the cluster. Kinds that the cluster does not
    serve, or cannot list, have no objects.
    """
    namespace = policy.namespace or "default" if policy.is_namespaced else ""
    if isinstance(policy, CleanupPolicy):
        infos, selector = _of_kinds(policy.spec.match.kinds(), kinds), ""
    else:
        constraints = policy.spec.match_constraints
        infos = _of_rules(constraints.resource_rules if constraints is not None else (), kinds)
        selector = _selector_text(constraints.object_selector) if constraints is not None else ""
    found: dict[tuple[str, str], Candidates] = {}
    for info in infos:
        if (info.namespaced or not namespace) and _can_be_listed(info):
            found.setdefault((info.group, info.plural), Candidates(info, namespace, selector))
    return tuple(found.values())


def _of_kinds(texts: Iterable[str], kinds: KindTable) -> Iterator[KindInfo]:
    for text in texts:
        for target in targets_of(text, kinds):
            if target.subresource:
                continue
            if target.resource == _ANY:
                yield from kinds
                continue
            info = kinds.by_resource(GVR(target.group, target.version, target.resource))
            if info is not None:
                yield info


def _of_rules(rules: Iterable[ResourceRule], kinds: KindTable) -> Iterator[KindInfo]:
    for rule in rules:
        for info in kinds:
            fits = (
                _has(rule.api_groups, info.group)
                and _has(rule.api_versions, info.version)
                and (info.plural in rule.resources or _ANY in rule.resources or "*/*" in rule.resources)
            )
            if fits:
                yield info


def _has(entries: tuple[str, ...], value: str) -> bool:
    return value in entries or _ANY in entries


def _can_be_listed(info: KindInfo) -> bool:
    return not info.verbs or ("list" in info.verbs and "delete" in info.verbs)


def _selector_text(selector: JSONObject | None) -> str:
    """Write a label selector as a query.

    >>> _selector_text({"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "tier", "operator": "Exists"}]})
    'app=web,tier'
    """
    terms = [f"{key}={value}" for key, value in ((selector or {}).get("matchLabels") or {}).items()]
    for each in (selector or {}).get("matchExpressions") or ():
        key, values = each["key"], ",".join(each.get("values") or ())
        terms.append(
            {
                "In": f"{key} in ({values})",
                "NotIn": f"{key} notin ({values})",
                "Exists": key,
                "DoesNotExist": f"!{key}",
            }[each["operator"]]
        )
    return ",".join(terms)


async def list_pages(client: Client, found: Candidates, *, name: str = "") -> AsyncIterator[list[JSONObject]]:
    """Yield the objects page by page; with a name that one alone. Raises StatusError and HostError."""
    info = found.info
    query = [("limit", str(_PAGE))]
    if found.selector:
        query.append(("labelSelector", found.selector))
    if name:
        query.append(("fieldSelector", f"metadata.name={name}"))
    path, following = resource_path(info.gvr, found.namespace), ""
    while True:
        pinned = [*query, ("continue", following)] if following else query
        page = await client.request("GET", path, query=pinned)
        # items of a list leave out what the list says once
        yield [{"apiVersion": info.api_version, "kind": info.kind, **item} for item in page.get("items") or ()]
        following = (page.get("metadata") or {}).get("continue") or ""
        if not following:
            return
