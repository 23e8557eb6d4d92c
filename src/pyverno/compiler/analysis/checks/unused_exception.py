"""An exception applies to no object that its rules refuse.

The exception names rules of policies that are there, and objects break these rules; of none of them did the exception
take the refusal away, though names, namespaces and labels that it mentions were tried on each. Exceptions for certain
users are left out. That an exception names no policy is what the lint `PV103` finds.

Example::

    apiVersion: kyverno.io/v2
    kind: PolicyException
    metadata: {name: batch, namespace: kyverno}
    spec:
      match: {any: [{resources: {kinds: [CronJob], names: ["batch-*"]}}]}
      exceptions: [{policyName: no-latest, ruleNames: [pods]}]      # the rule for CronJobs is autogen-cronjob-pods
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from pyverno.compiler.analysis.finding import Observation, Witness
from pyverno.compiler.analysis.workspace import Workspace, key_of, title_of
from pyverno.compiler.compile import Compiled
from pyverno.engine.engine import Engine
from pyverno.engine.policyset import PolicySet
from pyverno.engine.result import Status
from pyverno.engine.rule import CompiledPolicy, CompiledRule, Exemption, Stage
from pyverno.kube.json import JSONObject, encode

__all__ = ["check"]

_USERS: Final = ("subjects", "roles", "clusterRoles", "userInfo")


def check(workspace: Workspace) -> Iterator[Observation]:
    """Yield exceptions that took no refusal away."""
    for item in workspace.compilation.items:
        exception = item.exception
        if exception is None or item.errors or any(f'"{word}"' in encode(item.document.value) for word in _USERS):
            continue
        rules = [rule for rule in workspace.rules(Stage.VALIDATE) if exception.names_rule(rule.info)]
        found = _unused(workspace, item, exception, rules) if rules else None
        if found is not None:
            yield found


def _unused(
    workspace: Workspace, item: Compiled, exception: Exemption, rules: Sequence[CompiledRule]
) -> Observation | None:
    with_it = _engine(workspace, rules, (exception,))
    without = _engine(workspace, rules, ())
    bodies = (workspace.objects[number] for number in workspace.some_numbers)
    refused = [body for body in bodies if _fails(workspace, without, body)]
    tried = 0
    for body in (*refused, *workspace.population.renamed(item.document.value, refused)):
        tried += 1
        if not _fails(workspace, with_it, body) and _fails(workspace, without, body):
            return None
    if not refused:
        return None
    body = workspace.smallest(refused[0], lambda each: _fails(workspace, with_it, each))
    results = ((title_of(rule.info), workspace.statuses(with_it, body).get(key_of(rule.info))) for rule in rules)
    titles = tuple(dict.fromkeys(title_of(rule.info) for rule in rules))
    return Observation(
        f"the exception {exception.key} applied to none of {tried} objects that {', '.join(titles)} refused",
        titles,
        (
            Witness(
                "refused in spite of the exception",
                body,
                tuple((title, str(status)) for title, status in results if status is not None),
            ),
        ),
        item.document.location(()),
    )


def _engine(workspace: Workspace, rules: Sequence[CompiledRule], exceptions: Sequence[Exemption]) -> Engine:
    policies = [CompiledPolicy(rule.info.policy, (rule,)) for rule in rules]
    return Engine(PolicySet(policies, exceptions, asks_all=True), workspace.host)


def _fails(workspace: Workspace, engine: Engine, body: JSONObject) -> bool:
    return Status.FAIL in workspace.statuses(engine, body).values()
