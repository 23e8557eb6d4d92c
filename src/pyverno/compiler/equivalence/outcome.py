"""The outcome of a request on one side: verdict, resulting object, and wanted creations, patches and deletions.

Objects are compared by their JSON. Elements of some lists, such as containers or volumes, are known by a name and do
nothing in order: two objects that differ only in such an order are the same, and the difference is counted.
"""

from __future__ import annotations

from typing import Final

from pyverno.engine.effects import CreateEffect, DeleteEffect, Effect, PatchEffect
from pyverno.engine.engine import Review
from pyverno.engine.result import RuleResult, RuleType, Status
from pyverno.kube.json import JSON, JSONObject, encode
from pyverno.value import dataclass, field

__all__ = ["MAY_REPEAT", "UNORDERED_LISTS", "Outcome", "outcome_of", "repeats_names"]

_CHECKS: Final = (RuleType.VALIDATION, RuleType.IMAGE_VERIFY)
_OWN_PREFIXES: Final = ("generate.kyverno.io/", "policies.kyverno.io/", "kyverno.io/", "app.kubernetes.io/managed-by")
UNORDERED_LISTS: Final = frozenset(
    {
        *("containers", "ephemeralContainers", "volumes", "volumeMounts", "volumeDevices", "ports"),
        *("imagePullSecrets", "hostAliases", "topologySpreadConstraints", "secrets"),
    }
)
"""Lists of objects in which order means nothing."""

MAY_REPEAT: Final = {
    "env": ("name",),
    "ports": ("containerPort", "port", "protocol"),
    "imagePullSecrets": ("name",),
    "hostAliases": ("ip",),
}
"""Lists that merge by keys although an API server admits elements with the same ones."""

_MERGED_BY_VALUE: Final = frozenset({"finalizers"})
"""Lists of texts of which a merge leaves each once."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a request on one side: whether it is blocked, the resulting object, the wanted effects.

    `resource` and `effects` are texts in which the order of unordered lists does not show; `exact` is the object as it
    is left. `statuses` are those of all results; a side that matches nothing has none.
    """

    blocks: bool
    resource: str
    effects: tuple[str, ...]
    statuses: tuple[str, ...] = field(compare=False, default=())
    messages: tuple[str, ...] = field(compare=False, default=())
    exact: JSON = field(compare=False, default=None)

    @property
    def word(self) -> str:
        """The verdict in one word."""
        if self.blocks:
            return "error" if "fail" not in self.statuses else "deny"
        return "allow" if self.statuses else "no match"


def outcome_of(review: Review, deletions: Review | None = None) -> Outcome:
    """Return the outcome of an admission review, and of a cleanup run over the same object."""
    checks = [result for result in review.results if result.rule.type in _CHECKS]
    others = [result for result in review.results if result.rule.type not in _CHECKS]
    bad = [result for result in (*checks, *others) if _is_bad(result)]
    reviews = (review,) if deletions is None else (review, deletions)
    effects: list[Effect] = [effect for each in reviews for effect in each.effects]
    effects += [effect for each in reviews for result in each.results for effect in result.effects]
    return Outcome(
        blocks=bool(bad),
        resource=encode(_normal(review.resource)),
        effects=tuple(sorted({_describe(effect) for effect in effects})),
        statuses=tuple(sorted({result.status.value for each in reviews for result in each.results})),
        messages=tuple(result.message for result in bad[:3]),
        exact=review.resource,
    )


def _is_bad(result: RuleResult) -> bool:
    """Return whether a result refuses the request: an error of a policy with failurePolicy Ignore does not.

    What is generated comes after the answer, whatever the failurePolicy; there an error is an outcome of its own.
    """
    if result.status is Status.ERROR:
        return result.rule.type is RuleType.GENERATION or result.rule.policy.failure_policy == "Fail"
    return result.status is Status.FAIL


def _describe(effect: Effect) -> str:
    match effect:
        case CreateEffect():
            word = "keep" if effect.synchronize else "create"
            return f"{word} {encode(_normal(_without_own(effect.resource)))}"
        case PatchEffect():
            return f"patch {effect.target} {encode(_normal(effect.after))}"
        case DeleteEffect():
            return f"delete {effect.target} {effect.propagation_policy}".rstrip()


def _without_own(resource: JSONObject) -> JSONObject:
    """Return a generated object without the labels by which controllers know it."""
    metadata = resource.get("metadata")
    if not isinstance(metadata, dict):
        return resource
    labels = {
        key: value for key, value in (metadata.get("labels") or {}).items() if not str(key).startswith(_OWN_PREFIXES)
    }
    kept = {key: value for key, value in metadata.items() if key != "labels"}
    return {**resource, "metadata": {**kept, "labels": labels} if labels else kept}


def _normal(value: JSON) -> JSON:
    """Return the value with the elements of unordered lists in the order of their texts.

    >>> _normal({"containers": [{"name": "b"}, {"name": "a"}], "args": ["b", "a"]})
    {'containers': [{'name': 'a'}, {'name': 'b'}], 'args': ['b', 'a']}
    """
    if isinstance(value, dict):
        return {key: _sort(below) if key in UNORDERED_LISTS else _normal(below) for key, below in value.items()}
    return [_normal(each) for each in value] if isinstance(value, list) else value


def _sort(value: JSON) -> JSON:
    found = _normal(value)
    if isinstance(found, list) and all(isinstance(each, dict) for each in found):
        return sorted(found, key=encode)
    return found


def repeats_names(value: JSON) -> bool:
    """Return whether a list that merges by a key names an element twice, or not at all; merges then depend on chance.

    >>> repeats_names({"env": [{"name": "A"}, {"name": "A"}]}), repeats_names({"args": ["a", "a"]})
    (True, False)
    >>> repeats_names({"metadata": {"finalizers": ["a/b", "a/b"]}})
    True
    """
    if isinstance(value, list):
        return any(map(repeats_names, value))
    if not isinstance(value, dict):
        return False
    for key, below in value.items():
        if repeats_names(below):
            return True
        if key in _MERGED_BY_VALUE and isinstance(below, list) and len({*map(encode, below)}) != len(below):
            return True
        keys = MAY_REPEAT.get(key)
        if keys is None or not isinstance(below, list):
            continue
        names = [tuple(each.get(name) for name in keys) if isinstance(each, dict) else () for each in below]
        if len(set(names)) != len(names) or any(not any(name) for name in names):
            return True
    return False
