"""The decoder reports every problem of a document, at its place."""

import pytest

from pyverno.install.structural import structural_schema
from pyverno.kube.yaml.documents import Document
from pyverno.kube.yaml.fieldpath import path_text
from pyverno.policy.decode import decode
from pyverno.policy.schema import Cursor, Problems, list_of, set_of, text
from tests.unit.policy.documents import POLICY, document, problems


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("hostNetwork", "hostNetwork", None),
        ("  rules:", "  ruels:", ("unknown-field", "spec.ruels", "unknown field `ruels`: did you mean `rules`?")),
        (
            "kinds: [Pod]",
            "kinds: Pod",
            (
                "wrong-type",
                "spec.rules[0].match.any[0].resources.kinds",
                "expected a list, found a string: write `- ` before it",
            ),
        ),
        (
            "kinds: [Pod]",
            "kinds: [1]",
            (
                "wrong-type",
                "spec.rules[0].match.any[0].resources.kinds[0]",
                "expected a string, found a number: write it in quotes",
            ),
        ),
        (
            "    - name: pods\n      match",
            "    - match",
            ("missing-field", "spec.rules[0]", "required field `name` is missing"),
        ),
        (
            "  rules:",
            "  applyRules: Al\n  rules:",
            (
                "unknown-value",
                "spec.applyRules",
                "unknown value `Al`, expected one of `All`, `One`: did you mean `All`?",
            ),
        ),
        (
            "  rules:",
            "  background: yes please\n  rules:",
            ("wrong-type", "spec.background", "expected a boolean, found a string"),
        ),
        (
            "  rules:",
            "  webhookTimeoutSeconds: true\n  rules:",
            ("wrong-type", "spec.webhookTimeoutSeconds", "expected an integer, found a boolean"),
        ),
        (
            "metadata:\n  name: check\n",
            "metadata: {}\n",
            ("missing-field", "metadata", "required field `name` is missing"),
        ),
        ("  rules:", "  rules: null\n  x:", ("unknown-field", "spec.x", "unknown field `x`")),
    ],
)
def test_a_problem_has_code_path_and_text(old, new, expected):
    """Each kind of mistake is reported with its field path."""
    assert problems(POLICY.replace(old, new)) == ([] if expected is None else [expected])


def test_all_problems_of_a_document_are_collected():
    """One pass finds every mistake, in the order of the document."""
    text = (
        POLICY.replace("kinds: [Pod]", "kind: Pod")
        .replace("message:", "mesage:")
        .replace("spec:\n  rules", "spec:\n  rules")
    )
    assert [path for _, path, _ in problems(text)] == [
        "spec.rules[0].match.any[0].resources.kind",
        "spec.rules[0].validate.mesage",
    ]


def test_an_error_points_at_line_and_column():
    """An unknown field is located at its key."""
    (error,) = decode(document(POLICY.replace("message:", "mesage:"))).errors
    assert (error.location.line, error.location.column) == (13, 9)


def test_null_is_the_same_as_absent():
    """Kubernetes prunes null fields."""
    assert problems(POLICY.replace("  rules:", "  admission: null\n  rules:")) == []


def test_deep_nesting_is_an_error_and_no_crash():
    """A policy with thousands of nested loops gives a typed error."""
    body: object = {"list": "a", "pattern": {}}
    for _ in range(5000):
        body = {"list": "a", "foreach": [body]}

    rule = {"name": "r", "match": {}, "validate": {"foreach": [body]}}
    value = {
        "apiVersion": "kyverno.io/v1",
        "kind": "ClusterPolicy",
        "metadata": {"name": "deep"},
        "spec": {"rules": [rule]},
    }
    deep = Document(value, "deep.yaml", 0, 1)
    assert [error.code for error in decode(deep).errors] == ["too-deep"]


def test_paths_are_written_like_field_paths():
    """Keys that are no names are in brackets."""
    assert path_text(("a", 0, "b", "c.d/e")) == "a[0].b[c.d/e]"


def test_a_set_has_no_value_twice():
    """The error points at the second value; a plain list may repeat values."""
    found = Problems(document(POLICY))
    values = ["a", "b", "a"]
    assert set_of(text)(values, Cursor(found, ("spec", "names"))) == ("a", "b", "a")
    assert [(each.code, each.path, each.message) for each in found.errors] == [
        ("duplicate", "spec.names[2]", "`a` is in the list already")
    ]
    assert list_of(text)(values, Cursor(found)) == ("a", "b", "a")
    assert structural_schema(set_of(text))["x-kubernetes-list-type"] == "set"
