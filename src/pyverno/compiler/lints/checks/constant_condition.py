"""A precondition does not depend on the request.

Neither key nor value of the condition has a variable, so it is always true or always false. Mostly the braces are
missing: `key: request.operation` is the text `request.operation`. In conditions of `deny`, only texts that look like
variables without braces are reported, because a rule may deny everything on purpose. In policies in CEL, a match
condition that is `true` or `false` is reported.

Example::

    preconditions:
      all:
      - key: request.operation
        operator: Equals
        value: CREATE

Write instead::

    preconditions:
      all:
      - key: "{{ request.operation }}"
        operator: Equals
        value: CREATE
"""

from __future__ import annotations

from collections.abc import Iterator

from pyverno.compiler.lints.lint import Edit, Problem, Subject, Workspace
from pyverno.compiler.validation.conditions import condition_blocks, conditions_of
from pyverno.engine.rules.conditions import compile_conditions
from pyverno.errors import PyvernoError
from pyverno.kube.json import JSONObject
from pyverno.kube.yaml.fieldpath import Path
from pyverno.lang.runtime import Runtime
from pyverno.lang.template.syntax import has_variables, is_reference
from pyverno.lazyregex import regex
from pyverno.policy.clusterpolicy import ClusterPolicy

__all__ = ["check"]

_BARE = regex(r"(?:request|element|target|images)(?:\.[A-Za-z_]\w*|\[\d*\])+(?:\s*\|.*)?|serviceAccountName(?:space)?")


def check(subject: Subject, _workspace: Workspace) -> Iterator[Problem]:
    """Yield the conditions that are constant."""
    if not isinstance(subject.written, ClusterPolicy):
        yield from _constant_match_conditions(subject)
        return
    for rule in subject.written.spec.rules:
        for block, path, _ in condition_blocks(rule):
            for condition, place in conditions_of(block, path):
                if isinstance(condition, dict) and condition.get("key") is not None:
                    yield from _problems(condition, place, may_be_constant="preconditions" not in path)


def _constant_match_conditions(subject: Subject) -> Iterator[Problem]:
    from pyverno.policy.cel.admissionpolicy import MutatingAdmissionPolicy, ValidatingAdmissionPolicy
    from pyverno.policy.cel.policies import CelPolicy  # loaded with such policies

    if not isinstance(subject.written, (CelPolicy, ValidatingAdmissionPolicy, MutatingAdmissionPolicy)):
        return
    for each in subject.written.spec.match_conditions:
        text = each.expression.strip()
        if text in ("true", "false"):
            outcome = "matches everything" if text == "true" else "matches nothing"
            yield Problem((*each.path, "expression"), f"the match condition `{each.name}` {outcome}")


def _problems(condition: JSONObject, path: Path, *, may_be_constant: bool) -> Iterator[Problem]:
    key = condition["key"]
    if isinstance(key, str) and _BARE.fullmatch(key.strip()):
        place = (*path, "key")
        text = f"`{key.strip()}` is a text and no variable: write `{{{{ {key.strip()} }}}}`"
        yield Problem(place, text, 0, edit=Edit(place, key.strip(), f"{{{{ {key.strip()} }}}}"))
    elif not may_be_constant and not any(has_variables(condition.get(name)) for name in ("key", "value")):
        if any(isinstance(text, str) and is_reference(text) for text in (key, condition.get("value"))):
            return
        outcome = _outcome(condition)
        if outcome is not None:
            text = f"this condition is always {str(outcome).lower()}: neither key nor value has a variable"
            yield Problem(path, text)


def _outcome(condition: JSONObject) -> bool | None:
    """Return the outcome of a condition without variables, None where it has an error that others report."""
    try:
        return compile_conditions({"all": [condition]}).check({}, Runtime()).met
    except PyvernoError:
        return None
