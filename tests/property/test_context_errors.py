"""Law: an error of a variable is an error wherever an expression reads it; nothing turns it into an empty value."""

from __future__ import annotations

import pytest

from pyverno.engine.result import Status
from pyverno.engine.scope import Scope, VariableFaultError
from pyverno.errors import (
    BudgetExceededError,
    ContextEntryError,
    EvaluationError,
    HostError,
    PyvernoError,
    SubstitutionError,
    UnknownKeyError,
)
from pyverno.lang.jmespath import compile_expression
from pyverno.lang.runtime import Runtime
from pyverno.lang.template import compile_template
from tests.property.context_errors import readings
from tests.security.asking import Spy, ask, only, policy
from tests.security.test_failing_closed import Broken

ERRORS = {
    "evaluation": EvaluationError("planted"),
    "unknown-key": UnknownKeyError("planted"),
    "substitution": SubstitutionError("planted"),
    "context": ContextEntryError("planted"),
    "host": HostError("planted"),
    "budget": BudgetExceededError("planted", resource="steps"),
    "key": KeyError("planted"),
}


def planted(error: Exception) -> Scope:
    """Return a scope whose only variable `v` fails with an error."""

    def fail() -> object:
        raise error

    return Scope({"other": "x"}).bind("v", fail)


@pytest.mark.parametrize("kind", ERRORS)
def test_no_operator_and_no_function_absorbs_the_error_of_a_variable(kind: str) -> None:
    """Every operator, pair of operators and argument of a function, read twice: the second time from memory."""
    absorbed = []
    for text in readings("v"):
        scope = planted(ERRORS[kind])
        for _ in range(2):
            try:
                value = compile_expression(text).evaluate(scope, Runtime())
            except (ContextEntryError, HostError, BudgetExceededError, VariableFaultError):
                continue
            except PyvernoError as error:
                absorbed.append((text, error))
            else:
                absorbed.append((text, value))
    assert [] == absorbed


@pytest.mark.parametrize("kind", ERRORS)
def test_a_template_fails_with_the_error_of_its_variable(kind: str) -> None:
    """This holds for `@` too, which reads `target` first."""
    for document in ("{{ v[] }}", "a {{ v.*.b }}", {"{{ v[] }}": 1}, "{{ other.{{ v[] }} }}"):
        with pytest.raises((SubstitutionError, BudgetExceededError, VariableFaultError)):
            compile_template(document).render(planted(ERRORS[kind]), Runtime())
    scope = Scope({"request": {"object": {"a": "b"}}}).bind("target", lambda: planted(ERRORS[kind])["v"])
    with pytest.raises((PyvernoError, VariableFaultError)):
        compile_template({"a": {"b": {"c": "{{ @ }}"}}}).render(scope, Runtime())


ENTRIES = {
    "variable": "variable:\n    jmesPath: to_boolean(request.object.kind)",
    "value": "variable:\n    value: \"{{ to_boolean('{{request.object.kind}}') }}\"",
    "nil": "variable:\n    jmesPath: not_null(`null`)",
    "of a failed call": "variable:\n    jmesPath: broken.items[]\n    default: []",
    "of a failed variable": "variable:\n    jmesPath: untrue[]\n    default: []",
    "of images": "variable:\n    jmesPath: images.containers.*.registry\n    default: []",
    "apiCall": "apiCall:\n    urlPath: /api/v1/namespaces/team/configmaps",
    "query of apiCall": "apiCall:\n    urlPath: /api/v1/pods\n    jmesPath: items[].to_boolean(@) | [0].b",
    "service": "apiCall:\n    service:\n      url: https://x.example.com",
    "configMap": "configMap:\n    name: a\n    namespace: team",
    "globalReference": "globalReference:\n    name: a",
    "imageRegistry": "imageRegistry:\n    reference: nginx",
}
FORMS = (
    *("{}", "{}[]", "{}[].x", "{}.*", "{}.*.registry", "{}[?x]", "{} || 'x'", "length({}[] || `[]`)"),
    *(
        "keys({})[]",
        "to_string({}.*)",
        "to_array({})[]",
        "{} | [@.*][]",
        "{} == 'x'",
        "map(&x, {}[])",
        "not_null({}[], 'x')",
    ),
)
POSITIONS = {
    "precondition": 'preconditions:\n  all:\n  - key: "{{ EXPRESSION }}"\n    operator: NotEquals\n    value: zz\n'
    "validate:\n  deny: {}\n",
    "deny": 'validate:\n  deny:\n    conditions:\n      any:\n      - key: "{{ EXPRESSION }}"\n'
    "        operator: AnyNotIn\n        value: [ghcr.io]\n",
    "value of a condition": "validate:\n  deny:\n    conditions:\n      any:\n      - key: a\n"
    '        operator: AnyNotIn\n        value: "{{ EXPRESSION }}"\n',
    "pattern": 'validate:\n  pattern:\n    metadata:\n      =(labels):\n        "X(a)": "{{ EXPRESSION }}"\n',
    "foreach list": 'validate:\n  foreach:\n  - list: "EXPRESSION"\n    deny:\n      conditions:\n        any:\n'
    "        - key: a\n          operator: Equals\n          value: b\n",
    "foreach deny": "validate:\n  foreach:\n  - list: request.object.spec.containers\n    deny:\n      conditions:\n"
    '        any:\n        - key: "{{ EXPRESSION }}"\n          operator: Equals\n          value: b\n',
}
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web", "namespace": "team"},
    "spec": {"containers": [{"name": "app", "image": "nginx:1"}, {"name": "bad", "image": "not an image"}]},
}


def result(name: str, entry: str, position: str, expression: str) -> tuple[Status, str]:
    """Judge a Pod by one rule with the entries `broken` and `untrue`, the entry under test, and one expression."""
    context = (
        "context:\n- name: broken\n  apiCall:\n    urlPath: /api/v1/pods\n"
        "- name: untrue\n  variable:\n    value: \"{{ to_boolean('zz') }}\"\n"
    )
    if entry:
        context += f"- name: {name}\n  {entry}\n"
    host = Spy({"items": ["x"]}) if "items[].to_boolean" in entry else Broken()
    return only(ask(policy(context + POSITIONS[position].replace("EXPRESSION", expression), on="Pod"), POD, host=host))


@pytest.mark.parametrize("position", POSITIONS)
@pytest.mark.parametrize("kind", [*ENTRIES, "images"])
def test_a_rule_errs_wherever_it_reads_an_entry_that_errs(kind: str, position: str) -> None:
    """Never pass, skip, or a failure for an empty value: every kind of entry, in every position, under every form."""
    name, entry = ("images", "") if kind == "images" else ("v", ENTRIES[kind])
    read = "v.data.k" if kind == "configMap" else name
    judged = {form: result(name, entry, position, form.format(read))[0] for form in FORMS}
    assert dict.fromkeys(FORMS, Status.ERROR) == judged


@pytest.mark.parametrize("kind", [*ENTRIES, "images"])
def test_a_denial_stays_one_when_its_message_reads_an_entry_that_errs(kind: str) -> None:
    """The message is a text for people; whether the rule fails is known by then."""
    name, entry = ("images", "") if kind == "images" else ("v", ENTRIES[kind])
    read = "v.data.k" if kind == "configMap" else name
    for form in FORMS:
        rule = f'validate:\n  message: "{{{{ {form.format(read)} }}}}"\n  deny: {{}}\n'
        context = f"context:\n- name: {name}\n  {entry}\n" if entry else ""
        assert Status.FAIL == only(ask(policy(context + rule, on="Pod"), POD, host=Broken()))[0]


def test_a_key_that_is_not_there_stays_null() -> None:
    """The harmless twin: JMESPath's missing key is no error of a variable, so projections and defaults see null."""
    scope = Scope({"request": {"object": {}}}).bind("v", lambda: {"a": None})
    found = {
        text: compile_expression(text).evaluate(scope, Runtime())
        for text in ("v.b[]", "v.b || 'x'", "unknown[]", "unknown.a[].b", "!(v.b)", "request.object.spec.*", "v.b[?a]")
    }
    assert {
        "v.b[]": None,
        "v.b || 'x'": "x",
        "unknown[]": None,
        "unknown.a[].b": None,
        "!(v.b)": True,
        "request.object.spec.*": None,
        "v.b[?a]": None,
    } == found
