"""Resolution of kind selectors to the resources that a cluster serves."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from pyverno.kube.gvk import KindSelector, parse_kind_selector
from pyverno.kube.kinds import KindInfo, KindTable
from pyverno.kube.wildcard import has_wildcard
from pyverno.kube.wildcard import match as fits
from pyverno.value import dataclass

__all__ = ["Target", "served_targets", "targets_of"]


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
    """Return the resources that a kind selector matches; one without a version matches those that the cluster prefers.

    >>> from pyverno.kube.kinds import BUILTIN_KINDS
    >>> [(target.group, target.resource, target.subresource) for target in targets_of("Pod/exec", BUILTIN_KINDS)]
    [('', 'pods', 'exec')]
    """
    seen: set[tuple[str, str, str]] = set()
    found: list[Target] = []
    has_any_version = has_wildcard(parse_kind_selector(text).version)
    for target in served_targets(text, kinds):
        place = (target.group, target.resource, target.subresource)
        if not has_any_version or place not in seen:  # the table has the preferred version first
            seen.add(place)
            found.append(target)
    return tuple(found)


def served_targets(text: str, kinds: KindTable) -> tuple[Target, ...]:
    """Return the resources that a kind selector matches, in all versions that the cluster serves.

    >>> from pyverno.kube.kinds import BUILTIN_KINDS
    >>> [target.version for target in served_targets("HorizontalPodAutoscaler", BUILTIN_KINDS)]
    ['v2', 'v1']
    """
    memo = _targets(kinds)
    if text not in memo:
        memo[text] = tuple(_find_targets(text, kinds))
    return memo[text]


@lru_cache(maxsize=2)
def _targets(kinds: KindTable) -> dict[str, tuple[Target, ...]]:
    """Return the memo of a table: policies name few kinds, and a cluster serves hundreds."""
    return {}


def _find_targets(text: str, kinds: KindTable) -> Iterator[Target]:
    selector = parse_kind_selector(text)
    if selector.kind == "*" and (selector.group, selector.version) == ("*", "*"):
        yield Target("*", "*", "*", selector.subresource, None)
        return
    for info in kinds:
        if _fits_kind(selector, info):
            for subresource in _subresources(selector, info):
                yield Target(info.group, info.version, info.plural, subresource, info.namespaced)


def _fits_kind(selector: KindSelector, info: KindInfo) -> bool:
    return fits(selector.group, info.group) and fits(selector.version, info.version) and fits(selector.kind, info.kind)


def _subresources(selector: KindSelector, info: KindInfo) -> Iterator[str]:
    if not selector.subresource or selector.subresource == "*":
        yield ""
    if selector.subresource:
        yield from (name for name in info.subresources if fits(selector.subresource, name))
