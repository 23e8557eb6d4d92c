"""Resolution of kind selectors to the resources that a cluster serves."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from pyverno.kube.gvk import KindSelector, parse_kind_selector
from pyverno.kube.kinds import KindInfo, KindTable
from pyverno.kube.wildcard import has_wildcard
from pyverno.kube.wildcard import match as fits
from pyverno.value import dataclass

__all__ = ["Target", "targets_of"]


@dataclass(frozen=True, slots=True)
class Target:
    """A resource that a kind selector matches."""

    group: str
    version: str
    resource: str
    subresource: str
    is_namespaced: bool | None
    """None for wildcards, which stand for both."""


def targets_of(text: str, kinds: KindTable) -> tuple[Target, ...]:
    """Return the resources that a kind selector matches, in the versions that the cluster prefers.

    >>> from pyverno.kube.kinds import BUILTIN_KINDS
    >>> [(target.group, target.resource, target.subresource) for target in targets_of("Pod/exec", BUILTIN_KINDS)]
    [('', 'pods', 'exec')]
    """
    memo = _targets(kinds)
    if text not in memo:
        memo[text] = _find_targets(text, kinds)
    return memo[text]


@lru_cache(maxsize=2)
def _targets(kinds: KindTable) -> dict[str, tuple[Target, ...]]:
    """Return the memo of a table: policies name few kinds, and a cluster serves hundreds."""
    return {}


def _find_targets(text: str, kinds: KindTable) -> tuple[Target, ...]:
    selector = parse_kind_selector(text)
    if selector.kind == "*" and (selector.group, selector.version) == ("*", "*"):
        return (Target("*", "*", "*", selector.subresource, None),)
    found: list[Target] = []
    seen: set[tuple[str, str, str]] = set()
    for info in kinds:
        if not _fits_kind(selector, info):
            continue
        for subresource in _subresources(selector, info):
            place = (info.group, info.kind, subresource)
            if has_wildcard(selector.version) and place in seen:
                continue  # the table has the preferred version first
            seen.add(place)
            found.append(Target(info.group, info.version, info.plural, subresource, info.namespaced))
    return tuple(found)


def _fits_kind(selector: KindSelector, info: KindInfo) -> bool:
    return fits(selector.group, info.group) and fits(selector.version, info.version) and fits(selector.kind, info.kind)


def _subresources(selector: KindSelector, info: KindInfo) -> Iterator[str]:
    if not selector.subresource or selector.subresource == "*":
        yield ""
    if selector.subresource:
        yield from (name for name in info.subresources if fits(selector.subresource, name))
