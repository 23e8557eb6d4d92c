"""Completions and documentation at a position in the editor."""

from __future__ import annotations

import pytest

from pyverno.errors import UsageError
from pyverno.kube.json import JSONObject
from pyverno.ui.authoring.suggestions import complete, hover

RULES = """\
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata:
  name: x
spec:
  rules:
  - name: a
    match:
      any:
      - resources:
          kinds: [apps/v1/Deployment]
    context:
    - name: allowed
      configMap: {name: c, namespace: d}
"""
CEL = """\
apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata:
  name: x
spec:
  matchConstraints:
    resourceRules:
    - apiGroups: [""]
      resources: [pods]
  variables:
  - name: privileged
    expression: "true"
  validations:
"""


def at_mark(text: str) -> JSONObject:
    """Return the request for the mark `^` of a text."""
    head = text[: text.index("^")]
    return {"text": text.replace("^", ""), "line": head.count("\n") + 1, "column": len(head.rpartition("\n")[2])}


def labels(text: str) -> list[str]:
    """Return the labels of what is offered at the mark."""
    return [each["label"] for each in complete(at_mark(text))["items"]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("api^", ["apiVersion"]),
        ("kind: ClusterPol^", ["ClusterPolicy"]),
        (
            "kind: ValidatingPolicy\napiVersion: ^",
            [f"policies.kyverno.io/v1{each}" for each in ("", "alpha1", "beta1")],
        ),
        (RULES + "    valid^", ["validate"]),
        (RULES + "    validate:\n      failureAction: enf^", ["Enforce", "enforce"]),
        (RULES + "    validate:\n      allowExistingViolations: ^", ["true", "false"]),
        (RULES + "    validate:\n      pattern:\n        spec:\n          =(template):\n            sp^", ["spec"]),
        (RULES + '    validate:\n      message: "{{ request.object.spec.progress^', ["progressDeadlineSeconds"]),
        (RULES + '    validate:\n      message: "{{ allow^', ["allowed"]),
        (RULES + '    validate:\n      message: "{{ to_up^', ["to_upper"]),
        (RULES + '    validate:\n      message: "{{ a }} to_up^', []),
        (RULES + "    preconditions:\n      all:\n      - operator: AnyN^", ["AnyNotIn"]),
        (CEL + "  - expression: object.spec.initCont^", ["initContainers"]),
        (CEL + "  - expression: >-\n      quan^", ["quantity", "isQuantity"]),
        (CEL + "  - expression: request.userInfo.user^", ["username"]),
        (CEL + "  - mess^", ["message", "messageExpression"]),
        ("apiVersion: v1\nkind: Pod\nspec:\n  hostNetwork: tr^", ["true"]),
        ("apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - na^", ["name", "terminationMessagePath"][:1]),
        ("apiVersion: v1\nkind: Unknown\nspec:\n  a^", []),
        ("not yaml at all: [^", []),
    ],
)
def test_what_fits_is_offered(text: str, expected: list[str]) -> None:
    """Those that begin with what is written come first; members of CEL values follow fields."""
    found = labels(text)
    assert expected == [each for each in found if each in expected] or expected == found, found
    assert bool(expected) == bool(found)
    assert expected[:1] == found[:1]


def test_what_is_there_already_is_not_offered_again() -> None:
    """A key that the mapping already has is not suggested."""
    assert "name" not in labels(RULES + "    ^")
    assert {"validate", "mutate", "generate"} <= set(labels(RULES + "    ^"))


def test_variables_of_the_policy_are_members() -> None:
    """They are suggested under the names that the policy declares."""
    assert "privileged" in labels(CEL + "  - expression: variables.^")


def test_an_object_is_inserted_with_the_line_below_it() -> None:
    """The new line is indented by two more columns than the key."""
    (found,) = complete(at_mark(RULES + "    exclu^"))["items"]
    assert "exclude:\n      " == found["insert"]
    assert 4 == complete(at_mark(RULES + "    exclu^"))["start"]


@pytest.mark.parametrize(
    ("text", "title", "part"),
    [
        ("apiVersion: v1\nkind: Pod\nspec:\n  ho^stNetwork: true", "spec.hostNetwork", "boolean"),
        (RULES + "    validate:\n      failure^Action: Audit", "spec.rules.validate.failureAction", "Enforce"),
        (RULES + '    validate:\n      message: "{{ to_^upper(a) }}"', "to_upper", "to_upper(string) string"),
        (RULES + '    validate:\n      message: "{{ request.obj^ect.spec }}"', "request.object", "as it will be"),
        (CEL + "  - expression: quan^tity('1') > x", "quantity", "kubernetes.Quantity"),
        (CEL + "  - expression: object.spec.host^Network", "object.spec.hostNetwork", "boolean"),
    ],
)
def test_the_word_under_the_pointer_is_documented(text: str, title: str, part: str) -> None:
    """The text of a field comes from its schema, that of a function from its documentation."""
    found = hover(at_mark(text))
    assert (title, True) == (found["title"], part in f"{found['detail']} {found['text']}"), found


@pytest.mark.parametrize("text", ["^", "a: b^", "apiVersion: v1\nkind: Pod\nnope^x: 1", RULES + "    validate: {^}"])
def test_what_is_unknown_has_no_documentation(text: str) -> None:
    """An unknown word gives no documentation rather than a guess."""
    assert {} == hover(at_mark(text))


@pytest.mark.parametrize(
    "request_", [{}, {"text": 1}, {"text": "", "line": "1", "column": 0}, {"text": "", "line": 1, "column": -1}]
)
def test_a_request_of_another_form_is_refused(request_: JSONObject) -> None:
    """The error names the field."""
    with pytest.raises(UsageError, match="must be a"):
        complete(request_)
