"""Fields of an object that requests for one of its subresources change, and the rules that judge them.

`kubectl scale` writes `spec.replicas` by `scale`, a resize the `resources` of containers by `pods/resize`: a rule that
reads such a field and matches the object alone never sees those requests.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pyverno.kube.gvk import KindSelector, parse_kind_selector
from pyverno.kube.json import JSON
from pyverno.kube.wildcard import match as wildcard_match
from pyverno.policy.match import Operation, ResourceDescription, ResourceFilter, UserInfo
from pyverno.policy.rule import Rule
from pyverno.policy.validate import Validate
from pyverno.value import replace

__all__ = ["EPHEMERAL_CONTAINERS", "POD_SUBRESOURCES", "WHOLE_PODS", "misses_scale", "pod_subresources_of"]

EPHEMERAL_CONTAINERS: Final = frozenset({"ephemeralcontainers"})
"""The subresource that adds containers to a Pod; its requests carry the whole Pod."""

POD_SUBRESOURCES: Final = EPHEMERAL_CONTAINERS | {"resize"}
"""The subresources whose requests carry a whole Pod with another `spec`."""

WHOLE_PODS: Final = frozenset({"pods", *(f"pods/{name}" for name in POD_SUBRESOURCES)})
"""The entries of `resources` in a policy in CEL whose requests carry whole Pods."""

_SCALE: Final = "scale"
_RESIZED: Final = ("resizePolicy", "resources", "limits", "requests")
_READ: Final = ("validate", "context", "preconditions", "celPreconditions")


def pod_subresources_of(rule: Rule) -> frozenset[str]:
    """Return the subresources of Pods whose requests a rule that matches Pods judges as well.

    Kyverno: a rule for Pods sees `pods/ephemeralcontainers`. Here a validating rule that reads the resources of
    containers, or how they are resized, also sees `pods/resize`, the only request that changes them.
    """
    reads = isinstance(rule.action, Validate) and any(word in text for text in _texts(rule) for word in _RESIZED)
    return POD_SUBRESOURCES if reads else EPHEMERAL_CONTAINERS  # guard: rules about resources judge resizes


def misses_scale(rule: Rule) -> bool:
    """Return whether a validating rule reads `replicas`, and requests to `scale`, which writes them too, escape it."""
    if not isinstance(rule.action, Validate) or not any("replicas" in text for text in _texts(rule)):
        return False
    excluded = () if rule.exclude is None else rule.exclude.blocks
    if any(_fits(kind, _SCALE) for block in excluded for kind in _kinds(block)):
        return True  # guard: an exclusion of scale excuses nothing
    return not all(_sees_scale(kind, block, rule) for block in rule.match.blocks for kind in _kinds(block))


def _sees_scale(kind: KindSelector, block: ResourceFilter, rule: Rule) -> bool:
    """Return whether a rule that matches objects of a kind matches every `scale` of them, too."""
    if not _fits(kind, ""):
        return True
    if block.resources.selector is not None or block.resources.annotations:
        return False  # guard: a Scale has no labels
    return any(  # guard: twin: a rule that sees scale excuses
        _fits(other, _SCALE) and _covers(other, kind)
        for each in rule.match.blocks
        if _restrictions(each) == _restrictions(block) and _judges_updates(each)
        for other in _kinds(each)
    )


def _kinds(block: ResourceFilter) -> Iterator[KindSelector]:
    return map(parse_kind_selector, block.resources.kinds)


def _fits(kind: KindSelector, subresource: str) -> bool:
    return wildcard_match(kind.subresource, subresource)


def _covers(wide: KindSelector, narrow: KindSelector) -> bool:
    pairs = ((wide.group, narrow.group), (wide.version, narrow.version), (wide.kind, narrow.kind))
    return all(wildcard_match(pattern, text) for pattern, text in pairs)


def _restrictions(block: ResourceFilter) -> tuple[ResourceDescription, UserInfo]:
    """Return what a block asks for beside kinds and operations."""
    return replace(block.resources, kinds=(), operations=(), path=()), block.user_info


def _judges_updates(block: ResourceFilter) -> bool:
    return not block.resources.operations or Operation.UPDATE in block.resources.operations


def _texts(rule: Rule) -> Iterator[str]:
    """Yield the keys and texts of what a rule reads; does not recurse."""
    pending: list[JSON] = [rule.raw.get(name) for name in _READ]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            yield from value
            pending.extend(value.values())
        elif isinstance(value, list):
            pending.extend(value)
        elif isinstance(value, str):
            yield value
