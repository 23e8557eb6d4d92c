"""A policy matches none of the objects.

No rule of the policy matches an object, whatever the operation: neither the given ones, nor, where none are given,
those that were generated of the kinds that it names. Policies for certain users, and those for kinds of which there is
no object, are left out.

Example::

    - name: never
      match: {all: [{resources: {kinds: [Pod], names: [a]}}, {resources: {kinds: [Pod], names: [b]}}]}
      validate: {message: no Pod has two names, pattern: {spec: {hostNetwork: false}}}
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from pyverno.compiler.analysis.finding import Observation, Witness
from pyverno.compiler.analysis.sampling import spread
from pyverno.compiler.analysis.workspace import USER, Workspace, title_of
from pyverno.compiler.equivalence.vocabulary import vocabulary_of
from pyverno.engine.request import Operation, Request
from pyverno.engine.rule import CompiledPolicy, CompiledRule
from pyverno.kube.json import JSONObject
from pyverno.kube.resource import Resource

__all__ = ["check"]

_FEWEST: Final = 4


def check(workspace: Workspace) -> Iterator[Observation]:
    """Yield policies of which no rule matches an object: given ones, or generated ones of the kinds that it names."""
    population = workspace.population
    given = population.objects[: population.given]
    by_kind: dict[str, list[JSONObject]] = {}
    for body in population.objects:
        by_kind.setdefault(str(body.get("kind")), []).append(body)
    for item in workspace.compilation.items:
        policy = item.policy
        if policy is None or item.errors or any(_is_for_some(rule) for rule in policy.rules):
            continue
        objects, what = given, "given objects"
        if not given:
            kinds = {info.kind: None for info in vocabulary_of([item.document.value]).kinds}
            named = spread([body for kind in kinds for body in by_kind.get(kind, ())])
            objects = (*named, *population.renamed(item.document.value, named))
            what = "objects of its kinds"
        found = _unmatched(policy, objects, what) if len(objects) >= (1 if given else _FEWEST) else None
        if found is not None:
            yield found


def _is_for_some(rule: CompiledRule) -> bool:
    """Return whether a rule depends on a user, or on labels of namespaces: facts that objects do not have."""
    return any(block.has_user_info or block.namespace_selector is not None for block in rule.matcher.blocks)


def _unmatched(policy: CompiledPolicy, objects: Sequence[JSONObject], what: str) -> Observation | None:
    nearest: tuple[bool, JSONObject, str] | None = None
    for body in objects:
        for request in _requests(body):
            for rule in policy.rules:
                reason = rule.matcher.mismatch(request, Resource(body))
                if reason is None or "namespaceSelector" in reason:
                    return None
                is_near = not reason.startswith("kind ") and "operation " not in reason
                if nearest is None or (is_near and not nearest[0]):
                    nearest = (is_near, body, reason)
    if nearest is None:
        return None
    _, body, reason = nearest
    return Observation(
        f"{policy.info.key} matched none of {len(objects)} {what}",
        tuple(title_of(rule.info) for rule in policy.rules if not rule.info.origin),
        (Witness(f"not matched: {reason}", body),),
        policy.info.location,
    )


def _requests(body: JSONObject) -> Iterator[Request]:
    for operation in Operation:
        yield Request.from_manifest(body, operation=operation, user=USER)
