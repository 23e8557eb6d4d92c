"""The steps of a change to converted policies, each with its manifests and its check.

Validating policies run side by side for a while: the new ones audit, then enforce, then the old ones go. Mutating and
generating policies never run side by side: one step exchanges them.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyverno.compiler.migration.printer import print_policy
from pyverno.kube.json import JSONObject
from pyverno.value import dataclass

__all__ = ["Step", "plan_steps", "print_steps"]

_VALIDATING = ("ValidatingPolicy", "NamespacedValidatingPolicy", "ImageValidatingPolicy")


@dataclass(frozen=True, slots=True)
class Step:
    """One step: a name for its file, the action, its check, and the manifests to apply or delete."""

    name: str
    action: str
    check: str
    manifests: tuple[JSONObject, ...]


def plan_steps(old: JSONObject, new: Sequence[JSONObject], remaining: JSONObject | None) -> tuple[Step, ...]:
    """Return the steps from an old policy to its conversion."""
    name = old["metadata"]["name"]
    noun = f"{old['kind'].lower()} {name}"
    removal = Step(
        "remove",
        f"apply what is left of {name}" if remaining is not None else f"delete the old policy: kubectl delete {noun}",
        f"pyverno migrate OLD --write NEW --check, and the reports still name the objects that {name} named",
        (remaining,) if remaining is not None else (),
    )
    if not all(each["kind"] in _VALIDATING for each in new):
        exchange = Step(
            "exchange",
            f"exchange {name} in one go, as two policies that change objects must not run side by side; "
            "for rules that generate, set synchronize to false first, or the objects go with the old policy",
            "apply a test object with kubectl apply --dry-run=server and compare it with what the old policy made",
            tuple(new),
        )
        return (exchange, removal)
    names = " ".join(each["metadata"]["name"] for each in new)
    compared = "+".join(map(_key, new))
    beside = tuple(_with_actions(each, ["Audit"]) for each in new)
    steps = [
        Step(
            "audit",
            "apply the new policies in Audit beside the old one",
            f"for a week: both name the same objects: pyverno report --diff {_key(old)}={compared}",
            beside,
        )
    ]
    if any("Deny" in each["spec"].get("validationActions", ()) for each in new):
        steps.append(
            Step(
                "switch",
                "let the new policies enforce; the old one only audits",
                f"kubectl get validatingpolicy {names}: READY is true, and a bad object is refused by the new policy",
                (*new, _audited(old)),
            )
        )
    return (*steps, removal)


def _key(document: JSONObject) -> str:
    """Return the name of a policy as reports have it."""
    metadata = document["metadata"]
    return f"{metadata['namespace']}/{metadata['name']}" if metadata.get("namespace") else str(metadata["name"])


def _with_actions(document: JSONObject, actions: list[str]) -> JSONObject:
    return {**document, "spec": {**document["spec"], "validationActions": actions}}


def _audited(old: JSONObject) -> JSONObject:
    """Return the old policy with all its rules in Audit."""

    def audit(rule: JSONObject) -> JSONObject:
        if "validate" not in rule:
            return rule
        check = {key: value for key, value in rule["validate"].items() if key != "failureActionOverrides"}
        return {**rule, "validate": {**check, "failureAction": "Audit"}}

    hidden = ("validationFailureAction", "validationFailureActionOverrides")
    spec = {key: value for key, value in old["spec"].items() if key not in hidden}
    return {**old, "spec": {**spec, "rules": [audit(rule) for rule in spec["rules"]]}}


def print_steps(steps: Sequence[Step]) -> str:
    """Return the steps as one YAML stream, with the action and its check as comments above the manifests."""
    parts = []
    for number, step in enumerate(steps, 1):
        head = [f"# step {number}: {step.action}", f"# check: {step.check}"]
        parts.append("\n".join(head) + "\n" + "---\n".join(print_policy(each) for each in step.manifests))
    return "---\n".join(parts)
