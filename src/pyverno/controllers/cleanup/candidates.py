"""The candidates of a policy: the kinds that it names, where they are listed, and their pages."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Final

from pyverno.cluster.client import Client
from pyverno.controllers.state.targets import targets_of
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.kinds import KindInfo, KindTable
from pyverno.kube.wildcard import has_wildcard
from pyverno.policy.cel.constraints import ResourceRule
from pyverno.policy.cel.policies import DeletingPolicy
from pyverno.policy.cleanup import CleanupPolicy
from pyverno.policy.match import MatchBlocks
from pyverno.value import dataclass

__all__ = ["Candidates", "candidates_of", "list_pages"]

_ANY: Final = "*"
_PAGE: Final = 500
_MAX_NAMES: Final = 16


@dataclass(frozen=True, slots=True)
class Candidates:
    """The objects of a kind that a policy may select: in a namespace, with certain labels, of one name ("" = all)."""

    info: KindInfo
    namespace: str = ""
    selector: str = ""
    name: str = ""


def candidates_of(policy: CleanupPolicy | DeletingPolicy, kinds: KindTable) -> tuple[Candidates, ...]:
    """Return what has to be listed for a policy, each resource once.

    A policy of a namespace sees neither other namespaces nor kinds of the cluster. Kinds that the cluster does not
    serve, or cannot list, have no objects. Where a policy names a few objects, these alone are read: a role may be
    about their names.
    """
    namespace = policy.namespace or "default" if policy.is_namespaced else ""
    if isinstance(policy, CleanupPolicy):
        infos, selector = _of_blocks(policy.spec.match, kinds), ""
    else:
        constraints = policy.spec.match_constraints
        infos = _of_rules(constraints.resource_rules if constraints is not None else (), kinds)
        selector = _selector_text(constraints.object_selector) if constraints is not None else ""
    found: dict[tuple[str, str], tuple[KindInfo, frozenset[str] | None]] = {}
    for info, names in infos:
        if (info.namespaced or not namespace) and _can_be_listed(info):
            known, before = found.get((info.group, info.plural), (info, frozenset[str]()))
            found[info.group, info.plural] = known, None if names is None or before is None else before | names
    return tuple(
        Candidates(info, namespace, selector, name)
        for info, names in found.values()
        for name in (sorted(names) if names is not None and len(names) <= _MAX_NAMES else [""])
    )


def _of_blocks(match: MatchBlocks, kinds: KindTable) -> Iterator[tuple[KindInfo, frozenset[str] | None]]:
    """Yield the kinds of a match section, each with the names that its block allows (None = any)."""
    for block in match.blocks:
        resources = block.resources
        texts = (*resources.names, *((resources.name,) if resources.name else ()))
        names = None if not texts or any(has_wildcard(each) for each in texts) else frozenset(texts)
        for text in resources.kinds:
            for info in _of_kind(text, kinds):
                yield info, names


def _of_kind(text: str, kinds: KindTable) -> Iterator[KindInfo]:
    for target in targets_of(text, kinds):
        if target.subresource:
            continue
        if target.resource == _ANY:
            yield from kinds
            continue
        info = kinds.by_resource(GVR(target.group, target.version, target.resource))
        if info is not None:
            yield info


def _of_rules(rules: Iterable[ResourceRule], kinds: KindTable) -> Iterator[tuple[KindInfo, frozenset[str] | None]]:
    for rule in rules:
        for info in kinds:
            fits = (
                _has(rule.api_groups, info.group)
                and _has(rule.api_versions, info.version)
                and (info.plural in rule.resources or _ANY in rule.resources or "*/*" in rule.resources)
            )
            if fits:
                yield info, frozenset(rule.resource_names) or None


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
    query = []
    if found.selector:
        query.append(("labelSelector", found.selector))
    if name or found.name:
        query.append(("fieldSelector", f"metadata.name={name or found.name}"))
    async for page in client.pages(info.gvr, found.namespace, query=query, page=_PAGE):
        # items of a list leave out kind and version, which the list has
        yield [{"apiVersion": info.api_version, "kind": info.kind, **item} for item in page.get("items") or ()]
