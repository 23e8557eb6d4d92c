"""An operator that the pattern language does not know is taken literally.

A text in a pattern may begin with `>`, `<`, `>=`, `<=` or `!`, hold a range `1-5` or `1!-5`, and join alternatives with
`|` and conditions with `&`. Other spellings are part of the text: `=>5` asks for the text `=>5`, and `!=x` for
everything but the text `=x`. A condition with `Equals` and a value such as `>5` compares with that text, too.

Example::

    pattern:
      spec:
        replicas: "=>2"

Write instead::

    pattern:
      spec:
        replicas: ">=2"
"""

from __future__ import annotations

from collections.abc import Iterator

from pyverno.compiler.lints.lint import Edit, Problem, Subject, Workspace
from pyverno.compiler.lints.walking import pattern_texts
from pyverno.compiler.validation.conditions import condition_blocks, conditions_of
from pyverno.kube.yaml.fieldpath import Path
from pyverno.lang.template.syntax import VARIABLE
from pyverno.lazyregex import regex
from pyverno.policy.clusterpolicy import ClusterPolicy
from pyverno.policy.rule import Rule

__all__ = ["check"]

_PREFIX = regex(r"\s*(=>|=<|===?|!==?|<>|=(?=\s*[\d\"']))")
_MEANT = {"=>": ">=", "=<": "<=", "==": "", "===": "", "!=": "!", "!==": "!", "<>": "!", "=": ""}
_JOINED = regex(r"\S\s*(\|\||&&)\s*\S")
_COMPARISON = regex(r"\s*(?:>=|<=|>|<)\s*[0-9]")


def check(subject: Subject, _workspace: Workspace) -> Iterator[Problem]:
    """Yield the texts of patterns, and values of conditions, with operators that have no effect."""
    if not isinstance(subject.written, ClusterPolicy):
        return
    for rule in subject.written.spec.rules:
        for text, path in pattern_texts(rule):
            yield from _in_pattern(text, path)
        yield from _in_conditions(rule)


def _in_pattern(text: str, path: Path) -> Iterator[Problem]:
    plain = VARIABLE.sub(lambda found: found[1] + "x" * len(found[2]), text) if "{{" in text else text
    found = _PREFIX.match(plain)
    if found is not None:
        written, meant = found[1], _MEANT[found[1]]
        hint = f"write `{meant}`" if meant else "leave it out to compare for equality"
        edit = Edit(path, written, meant, found.start(1))
        yield Problem(path, f"`{written}` is no operator and is taken literally: {hint}", found.start(1), edit=edit)
    for joined in _JOINED.finditer(plain):
        sign, at = joined[1], joined.start(1)
        edit = Edit(path, sign, sign[0], at)
        yield Problem(path, f"`{sign}` is no operator: write `{sign[0]}`", at, edit=edit)


def _in_conditions(rule: Rule) -> Iterator[Problem]:
    for block, path, _ in condition_blocks(rule):
        for condition, place in conditions_of(block, path):
            if not isinstance(condition, dict):
                continue
            operator, value = str(condition.get("operator")).casefold(), condition.get("value")
            if operator in _EQUALITY and isinstance(value, str) and _COMPARISON.match(value):
                words = "`GreaterThan`, `LessThan` or one of their kin"
                text = f"`{condition['operator']}` compares with the text `{value}`: use the operator {words}"
                yield Problem((*place, "value"), text)


_EQUALITY = frozenset({"equal", "equals", "notequal", "notequals"})
