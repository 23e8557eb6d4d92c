"""The page of condition operators."""

from __future__ import annotations

import json

from pyverno.kube.json import JSON
from pyverno.lang.pattern.operators import OPERATORS, Operator, operator
from scripts.reference_pages.markdown import cell, code, page, table

__all__ = ["operators"]

_INTRO = """\
A condition is `{key, operator, value}` in `preconditions`, `deny.conditions`, `foreach` and cleanup policies. Key and
value may be variables. Types that do not fit are not an error: the condition does not hold. Numbers are compared by
value, and a bool is never a number. `Equals` reads two texts as durations, then as quantities, then the value as a
wildcard pattern. The ordering operators read texts as durations, quantities, numbers or versions `x.y.z`, in this
order. The `In` family compares texts with wildcards on either side, and a value like `1-10` as a range.

In the negated operators a wildcard excuses, and so it counts only where the policy wrote it: text that a variable
yields is data. Where both sides are variables, one whose value comes from `request`, `element`, `target`, `images`, or
a variable that the context took from these, is data and the other one holds patterns; when that tells nothing, the
value holds them. What the request only chooses does not come from it: `allowed.data."{{ request.namespace }}"` holds
patterns of the ConfigMap. `request.namespace`, `request.object.metadata.namespace` and `request.operation`
hold no wildcard: the one in `{{ request.namespace }}/*` is the policy's.
A JSON list in a text is read on either side.

Conditions of exceptions and attestations let an object pass when they hold. There a wildcard excuses in the operators
that are not negated, and so text that a variable yields is data in these, and may be a pattern in the negated ones.

| wildcard in | `AnyIn` `AllIn` `In` | `AnyNotIn` `AllNotIn` `NotIn` | `Equals` | `NotEquals` |
|---|---|---|---|---|
| the value, of the policy | pattern | pattern | pattern | pattern |
| the value, of the object | pattern | text | pattern | text |
| the key, of the policy | pattern | pattern | text | text |
| the key, of the object | pattern | text | text | text |"""

_TRIALS: tuple[tuple[JSON, JSON], ...] = (
    ("nginx:1.25", "nginx:*"),
    (["a", "b"], ["a", "b", "c"]),
    (["a", "x"], ["a", "b", "c"]),
    (["x", "y"], ["a", "b", "c"]),
    (5, "1-10"),
    ("1Gi", "512Mi"),
    ("90m", "1h"),
    (3, 3.0),
)


def operators() -> str:
    """Return a table of the operators and one of what each says to the same keys and values."""
    named = sorted(OPERATORS.values(), key=lambda each: each.name)
    meanings = table(("operator", "holds when", "notes"), ((code(x.name), cell(x.summary), _notes(x)) for x in named))
    heads = [f"{json.dumps(key)} / {json.dumps(value)}" for key, value in _TRIALS]
    trials = table(
        ("operator", *(code(head) for head in heads)), ((code(each.name), *_answers(each.name)) for each in named)
    )
    return page(
        "Condition operators", _INTRO, meanings, "## The same keys and values, every operator", "key / value:", trials
    )


def _notes(each: Operator) -> str:
    notes = ["deprecated, use " + " or ".join(map(code, each.alternatives))] if each.alternatives else []
    notes.append("this casing only" if each.is_exact else "any casing")
    return "; ".join(notes)


def _answers(name: str) -> list[str]:
    holds = operator(name)
    assert holds is not None  # noqa: S101 - the name comes from the table of operators
    return ["yes" if holds(key, value) else "-" for key, value in _TRIALS]
