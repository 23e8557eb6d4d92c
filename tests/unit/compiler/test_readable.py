"""A mistake in the structure of a policy hides no other mistake that is certain."""

from __future__ import annotations

import pytest

from pyverno.compiler.compile import compile_document, compile_documents
from pyverno.compiler.readable import read_part
from pyverno.errors import PolicyError
from pyverno.kube.yaml.documents import Document, load_documents

MATCH = "match: {any: [{resources: {kinds: [Pod]}}]}"
HEAD = "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: a}\nspec:\n  rules:\n"
GOOD = f"  - {{name: good, {MATCH}, validate: {{message: m, pattern: {{kind: Pod}}}}}}\n"
UNKNOWN = f"  - {{name: typo, {MATCH}, validate: {{message: m, patern: {{kind: Pod}}}}}}\n"
TYPE = "  - {name: type, match: {any: [{resources: {kinds: Pod}}]}, validate: {message: m, pattern: {kind: Pod}}}\n"
NAMELESS = f"  - {{{MATCH}, validate: {{message: m, pattern: {{kind: Pod}}}}}}\n"
SYNTAX = f"  - {{name: syntax, {MATCH}, validate: {{message: '{{{{ bad( }}}}', pattern: {{kind: Pod}}}}}}\n"
CEL = """apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: v}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
  validations: [{expression: "object.foo ("}, {expression: "true", messag: x}]
"""


def document(text: str) -> Document:
    [found] = load_documents(text)
    return found


def places(text: str) -> list[tuple[str, int]]:
    """Return path and line of each error; a policy with errors of its structure is never run."""
    [found] = compile_documents([document(text)]).items
    assert found.policy is None
    assert found.written is None
    return [(error.path, error.location.line if error.location else 0) for error in found.errors]


@pytest.mark.parametrize("bad", [UNKNOWN, TYPE, NAMELESS, "  - 5\n"], ids=["unknown", "type", "nameless", "no rule"])
def test_a_rule_that_does_not_decode_hides_no_mistake_of_another_rule(bad: str) -> None:
    """Other rules are checked in full, at their own places; right ones stay without errors."""
    found = places(HEAD + GOOD + bad + SYNTAX)
    assert ("spec.rules[1]", 7) == (found[0][0][:13], found[0][1])
    assert [("spec.rules[2].validate.message", 8)] == [each for each in found if "rules[1]" not in each[0]]


def test_a_field_that_no_policy_has_hides_nothing() -> None:
    """Everything else counts: nothing depends on a field that has no meaning."""
    found = places(HEAD + SYNTAX + "  bakground: true\n")
    assert [("spec.bakground", 7), ("spec.rules[0].validate.message", 6)] == found
    found = places(CEL)
    assert [("spec.validations[1].messag", 6), ("spec.validations[0].expression", 6)] == found


def test_a_wrong_setting_of_the_policy_lets_nothing_be_certain() -> None:
    """Whether variables of the user are allowed depends on `background`: nothing is guessed about it."""
    variable = (
        f"  - {{name: user, {MATCH}, validate: {{message: '{{{{ request.userInfo }}}}', pattern: {{kind: Pod}}}}}}\n"
    )
    assert [("spec.background", 7)] == places(HEAD + variable + "  background: 'false'\n")


def test_what_replaces_a_rule_causes_no_errors() -> None:
    """Neither the rule nor the policy as a whole is judged by it."""
    twice = UNKNOWN + UNKNOWN + TYPE
    assert ["spec.rules[0].validate.patern", "spec.rules[1].validate.patern", "spec.rules[2].match"] == [
        path.removesuffix(".any[0].resources.kinds") for path, _ in places(HEAD + twice)
    ]


@pytest.mark.parametrize("key", ["a]b", "[", "", "5", "spec.rules[0]"])
def test_keys_that_look_like_paths_end_no_run(key: str) -> None:
    """The path of an error is a text; where it leads nowhere, only the structure is reported."""
    found = places(HEAD + SYNTAX + f"  ? '{key}'\n  : null\n")
    assert found


def test_errors_that_a_setting_allows_are_left_out_here_too() -> None:
    """With `http_in_namespaces` calls of services are no error of a namespaced policy, decoded or not."""
    text = CEL.replace("kind: Validating", "kind: NamespacedValidating").replace(
        "{name: v}", "{name: v, namespace: shop}"
    )
    text = text.replace('"object.foo ("', "http.Get('http://a').x == 'b'")
    codes = [
        {error.code for error in compile_document(document(text), http_in_namespaces=each).errors}
        for each in (False, True)
    ]
    assert {"http"} == codes[0] - codes[1]
    assert {"unknown-field"} == codes[1]


def test_a_part_is_a_copy() -> None:
    """The document itself is not changed."""
    given = document(HEAD + UNKNOWN + "  bakground: true\n")
    before = str(given.value)
    assert read_part(given, [PolicyError("", path="spec.bakground", code="unknown-field")]) is not None
    assert before == str(given.value)
