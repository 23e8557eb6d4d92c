"""Two rules judge every object alike.

Both match the same objects and fail the same ones: one of them can go. The lint `PV403` finds rules that are written
alike; this check also finds those that mean the same in other words, or in another kind of policy.

Example::

    - name: require-team
      match: {any: [{resources: {kinds: [Pod]}}]}
      validate: {pattern: {metadata: {labels: {team: "?*"}}}}
    - name: check-team      # the same as a condition
      match: {any: [{resources: {kinds: [Pod]}}]}
      validate:
        deny:
          conditions: {all: [{key: "{{ request.object.metadata.labels.team || '' }}", operator: Equals, value: ""}]}
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pyverno.compiler.analysis.finding import Observation
from pyverno.compiler.analysis.workspace import Workspace, count, key_of, title_of
from pyverno.engine.result import Status
from pyverno.engine.rule import CompiledRule
from pyverno.kube.json import JSONObject

__all__ = ["check"]

_FEWEST: Final = 4
_FEW: Final = 4


def check(workspace: Workspace) -> Iterator[Observation]:
    """Yield rules with the first rule that has equal results for every tested object."""
    alike: dict[tuple[int, int], list[CompiledRule]] = {}
    for rule in workspace.comparable(_FEWEST):
        verdicts = workspace.verdicts[key_of(rule.info)]
        alike.setdefault((verdicts.failed, verdicts.passed), []).append(rule)
    for (failed, passed), rules in alike.items():
        firsts: list[CompiledRule] = []
        for other in rules:
            for one in firsts:
                if not workspace.sample.take():
                    break
                found = _duplicate(workspace, one, other, failed, passed)
                if found is not None:
                    yield found
                    break
            else:
                firsts.append(other)


def _duplicate(
    workspace: Workspace, one: CompiledRule, other: CompiledRule, failed: int, passed: int
) -> Observation | None:
    tried = 0
    for starts, donors in ((failed, passed), (failed, failed)):
        found, more = workspace.search(starts, donors, lambda body: _differ(workspace, one, other, body))
        tried += more
        if found is not None:
            return None
    bodies = [*workspace.some(failed, _FEW), *workspace.some(passed, _FEW)]
    if any(
        (first is Status.FAIL) != (second is Status.FAIL)
        for first, second in workspace.status_pairs(one, other, bodies)
    ):
        return None  # for some users or namespaces only
    both = (one, other)
    titles = tuple(title_of(rule.info) for rule in both)

    def fails(body: JSONObject) -> bool:
        return all(workspace.status(rule, body) is Status.FAIL for rule in both)

    refused = workspace.smallest(workspace.some(failed, 1)[0], fails)
    return Observation(
        f"{titles[0]} and {titles[1]} said the same of {count(failed | passed) + tried} objects, "
        f"{count(failed)} of which both refused",
        titles,
        (
            workspace.witness("refused by both", both, refused),
            workspace.witness("accepted by both", both, workspace.some(passed, 1)[0]),
        ),
        other.info.location,
    )


def _differ(workspace: Workspace, one: CompiledRule, other: CompiledRule, body: JSONObject) -> bool:
    first, second = workspace.status(one, body), workspace.status(other, body)
    return (first is None) != (second is None) or (first is Status.FAIL) != (second is Status.FAIL)
