"""A mutation changes its own result again.

The API server calls mutating webhooks again when another one has changed the object, and every update calls them
again: such a rule adds to the object each time.

Example::

    - name: add-argument      # a second call adds a second argument
      match: {any: [{resources: {kinds: [Pod]}}]}
      mutate: {patchesJson6902: "[{op: add, path: /spec/containers/0/args/-, value: --quiet}]"}
"""

from __future__ import annotations

from collections.abc import Iterator

from pyverno.compiler.analysis.finding import Observation, Witness
from pyverno.compiler.analysis.workspace import RuleKey, Workspace, key_of, origin_of, title_of
from pyverno.engine.rule import CompiledRule, Stage
from pyverno.kube.json import JSONObject

__all__ = ["check", "is_unsettled"]


def check(workspace: Workspace) -> Iterator[Observation]:
    """Yield mutations that change what they have left, twice in a row."""
    seen: set[RuleKey] = set()
    for rule in workspace.rules(Stage.MUTATE):
        origin = origin_of(rule.info)
        bodies = (workspace.objects[number] for number in workspace.changed[key_of(rule.info)])
        body = next((body for body in bodies if is_unsettled(workspace, rule, body)), None)
        if body is None or origin in seen:
            continue
        seen.add(origin)
        yield _observation(workspace, rule, body)


def is_unsettled(workspace: Workspace, rule: CompiledRule, body: JSONObject) -> bool:
    """Return whether a rule changes an object, then its result, then the result of that."""
    engine = workspace.engine_of(rule)
    for _ in range(3):
        after = workspace.mutated(engine, body)
        if after is body:
            return False
        body = after
    return True


def _observation(workspace: Workspace, rule: CompiledRule, body: JSONObject) -> Observation:
    body = workspace.smallest(body, lambda each: is_unsettled(workspace, rule, each))
    engine = workspace.engine_of(rule)
    once = workspace.mutated(engine, body)
    title = title_of(rule.info)
    return Observation(
        f"{title} changes its own result again",
        (title,),
        (Witness("changed once, and changed again", body, after=(once, workspace.mutated(engine, once))),),
        rule.info.location,
    )
