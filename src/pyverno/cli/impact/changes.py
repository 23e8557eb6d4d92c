"""Differences between two reviews of one request: refusals, changes, generated and deleted objects, by policy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Final

from pyverno.engine.effects import CreateEffect, DeleteEffect, PatchEffect
from pyverno.engine.engine import Review
from pyverno.engine.result import ResourceRef, RuleResult, Status
from pyverno.kube.json import JSON, JSONObject, encode, equal
from pyverno.kube.resource import Resource
from pyverno.value import dataclass

__all__ = ["Category", "Change", "differences", "owner_of"]

_BAD: Final = (Status.FAIL, Status.ERROR, Status.WARN)
_NO_POLICY: Final = "-"


class Category(StrEnum):
    """The effect of a change of policies on a request."""

    REFUSED = "refused"
    ALLOWED = "allowed"
    REPORTED = "reported"
    NOT_REPORTED = "no longer reported"
    CHANGED = "changed"
    GENERATED = "generated"
    NOT_GENERATED = "no longer generated"
    DELETED = "deleted"
    NOT_DELETED = "no longer deleted"


@dataclass(frozen=True, slots=True)
class Change:
    """One difference: its category, the policy, the object with its namespace and owner, and the outcome."""

    category: Category
    policy: str
    resource: ResourceRef
    owner: str
    detail: str = ""

    def to_json(self) -> JSONObject:
        """Return the change as an object."""
        return {
            "change": self.category.value,
            "policy": self.policy,
            "namespace": self.resource.namespace,
            "owner": self.owner,
            "kind": self.resource.kind,
            "name": self.resource.name,
            "detail": self.detail,
        }


def owner_of(body: JSON, label: str) -> str:
    """Return the owner of an object: its controller, else the value of a label, else an empty text.

    >>> owner_of({"metadata": {"labels": {"team": "red"}}}, "team")
    'red'
    """
    metadata = body.get("metadata") if isinstance(body, dict) else None
    references = metadata.get("ownerReferences") if isinstance(metadata, dict) else None
    for each in references if isinstance(references, list) else ():
        if isinstance(each, dict) and each.get("controller"):
            return f"{each.get('kind')}/{each.get('name')}"
    return str(Resource(body).labels.get(label, "")) if isinstance(body, dict) else ""


def differences(before: Review, after: Review, *, owner_label: str) -> Iterator[Change]:
    """Yield the effects of the second set of policies on the request that the first set does not have."""
    subject = before.request.subject
    ref, owner = ResourceRef.of(subject), owner_of(subject, owner_label)
    for category, policy, detail in (
        *_decisions(before, after),
        *_changes(before, after),
        *_effects(before, after, CreateEffect, (Category.GENERATED, Category.NOT_GENERATED)),
        *_effects(before, after, PatchEffect, (Category.CHANGED, Category.CHANGED)),
        *_effects(before, after, DeleteEffect, (Category.DELETED, Category.NOT_DELETED)),
    ):
        yield Change(category, policy, ref, owner, detail)


_Found = tuple[Category, str, str]


def _decisions(before: Review, after: Review) -> Iterator[_Found]:
    was, now = before.decision.allowed, after.decision.allowed
    if was != now:
        category, review, other = (Category.ALLOWED, before, after) if now else (Category.REFUSED, after, before)
        yield from _bad(category, review, other) or [(category, _NO_POLICY, "")]
        return
    if was:
        yield from _bad(Category.REPORTED, after, before)
        yield from _bad(Category.NOT_REPORTED, before, after)


def _bad(category: Category, review: Review, other: Review) -> list[_Found]:
    """Return the policies whose rules fail in one review, and not in the other, with the first message of each.

    If the decision differs, this includes rules that audit in one review and enforce in the other.
    """
    with_action = category in (Category.REFUSED, Category.ALLOWED)
    known = {_name(result, with_action=with_action) for result in other.results if result.status in _BAD}
    found: dict[str, str] = {}
    for result in review.results:
        if result.status in _BAD and _name(result, with_action=with_action) not in known:
            found.setdefault(result.rule.policy.key, result.message)
    return [(category, policy, message) for policy, message in found.items()]


def _name(result: RuleResult, *, with_action: bool) -> tuple[str, ...]:
    info = result.rule
    return info.policy.kind, info.policy.key, info.name, result.action.value if with_action else ""


def _changes(before: Review, after: Review) -> Iterator[_Found]:
    """Yield the policies that changed the object in one review only, if both allow it and leave different objects."""
    if not (before.decision.allowed and after.decision.allowed) or equal(before.resource, after.resource):
        return
    first, second = _patches(before), _patches(after)
    names = [*dict.fromkeys((*second, *first))]
    changed = [name for name in names if not equal(first.get(name), second.get(name))]
    for name in changed:
        yield Category.CHANGED, name, _paths(first.get(name, ()), second.get(name, ()))
    if not changed:
        yield Category.CHANGED, _NO_POLICY, _paths((), (_patch(before.resource, after.resource),))


_Patch = list[JSONObject]


def _patches(review: Review) -> dict[str, list[_Patch]]:
    """Return the patches of the rules of each policy, in their order."""
    found: dict[str, list[_Patch]] = {}
    current = review.request.object
    for result in review.results:
        if result.patched is not None and result.target is None and not equal(result.patched, current):
            found.setdefault(result.rule.policy.key, []).append(_patch(current, result.patched))
            current = result.patched
    return found


def _patch(before: JSON, after: JSON) -> _Patch:
    from pyverno.kube.patch.jsondiff import create_patch

    return [*create_patch(before, after)]


def _paths(first: Sequence[_Patch], second: Sequence[_Patch]) -> str:
    """Return the paths of what a policy changes on one side only."""
    sides = [{encode(step): str(step["path"]) for patch in side for step in patch} for side in (second, first)]
    found = (path for own, other in (sides, sides[::-1]) for step, path in own.items() if step not in other)
    return ", ".join(dict.fromkeys(found))


def _effects(
    before: Review,
    after: Review,
    kind: type[CreateEffect | PatchEffect | DeleteEffect],
    words: tuple[Category, Category],
) -> Iterator[_Found]:
    first, second = dict(_effects_of(before, kind)), dict(_effects_of(after, kind))
    for category, found, other in ((words[0], second, first), (words[1], first, second)):
        yield from ((category, policy, text) for key, (policy, text) in found.items() if key not in other)


def _effects_of(
    review: Review, kind: type[CreateEffect | PatchEffect | DeleteEffect]
) -> Iterable[tuple[str, tuple[str, str]]]:
    for result in review.results:
        for effect in result.effects:
            if isinstance(effect, kind):
                yield _key(effect), (result.rule.policy.key, _target(effect))


def _key(effect: CreateEffect | PatchEffect | DeleteEffect) -> str:
    match effect:
        case CreateEffect():
            content = {key: value for key, value in effect.resource.items() if key != "metadata"}
            return f"{ResourceRef.of(effect.resource)} {encode(content)}"
        case PatchEffect():
            return f"{effect.target} {encode(effect.after)}"
        case DeleteEffect():
            return str(effect.target)


def _target(effect: CreateEffect | PatchEffect | DeleteEffect) -> str:
    return str(ResourceRef.of(effect.resource) if isinstance(effect, CreateEffect) else effect.target)
