"""Fields of an object that requests for one of its subresources change, and the rules that judge them.

`kubectl scale` writes `spec.replicas` by `scale`, a resize the `resources` of containers by `pods/resize`: a rule that
reads such a field and matches the object alone never sees those requests.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pyverno.kube.json import JSON
from pyverno.policy.rule import Rule
from pyverno.policy.validate import Validate

__all__ = ["EPHEMERAL_CONTAINERS", "POD_SUBRESOURCES", "WHOLE_PODS", "misses_scale", "pod_subresources_of"]

EPHEMERAL_CONTAINERS: Final = frozenset({"ephemeralcontainers"})
"""The subresource that adds containers to a Pod; its requests carry the whole Pod."""

POD_SUBRESOURCES: Final = EPHEMERAL_CONTAINERS | {"resize"}
"""The subresources whose requests carry a whole Pod with another `spec`."""

WHOLE_PODS: Final = frozenset({"pods", *(f"pods/{name}" for name in POD_SUBRESOURCES)})
"""The entries of `resources` in a policy in CEL whose requests carry whole Pods."""

_RESIZED: Final = ("resources", "limits", "requests")
_READ: Final = ("validate", "context", "preconditions", "celPreconditions")


def pod_subresources_of(rule: Rule) -> frozenset[str]:
    """Return the subresources of Pods whose requests a rule that matches Pods judges as well.

    Kyverno: a rule for Pods sees `pods/ephemeralcontainers`. Here a validating rule that reads the resources of
    containers also sees `pods/resize`, the only request that changes them.
    """
    reads = isinstance(rule.action, Validate) and any(word in text for text in _texts(rule) for word in _RESIZED)
    return POD_SUBRESOURCES if reads else EPHEMERAL_CONTAINERS  # guard: rules about resources judge resizes


def misses_scale(rule: Rule) -> bool:
    """Return whether a validating rule reads `replicas` and matches no `scale` subresource, which writes them too."""
    if not isinstance(rule.action, Validate):
        return False
    if any("scale" in kind.lower() for kind in rule.match.kinds()):  # guard: twin: a rule that sees scale excuses
        return False
    return any("replicas" in text for text in _texts(rule))


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
