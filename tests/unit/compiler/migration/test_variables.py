"""Context entries in CEL."""

from __future__ import annotations

import pytest

from pyverno.compiler.migration.conditions import condition
from pyverno.compiler.migration.outcome import UnconvertibleError
from pyverno.compiler.migration.variables import inlined, variables_of
from pyverno.kube.json import JSONObject
from tests.support.migration import compare_rule, convert_rule, names_for


def expressions(*entries: JSONObject) -> list[tuple[str, str]]:
    """Return the variables that entries become."""
    _, found = variables_of(entries, names_for("Pod"), "context")
    return [(each.name, each.expression.text) for each in found]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ({"variable": {"value": ["a", "b"]}}, "['a', 'b']"),
        ({"variable": {"value": {"a": [1]}, "jmesPath": "a[0]"}}, "1"),
        ({"variable": {"jmesPath": "request.object.metadata.name"}}, "object.metadata.name"),
        (
            {"variable": {"jmesPath": "request.object.metadata.labels.team", "default": "none"}},
            "object.metadata.?labels.?team.orValue('none')",
        ),
        (
            {"variable": {"jmesPath": "length(request.object.spec.volumes)", "default": 0}},
            "has(object.spec.volumes) ? size(object.spec.volumes) : 0",
        ),
        ({"variable": {"value": "a-{{ request.namespace }}"}}, "'a-' + request.?namespace.orValue('')"),
        ({"configMap": {"name": "c", "namespace": "n"}}, "resource.Get('v1', 'configmaps', 'n', 'c')"),
        (
            {"configMap": {"name": "c", "namespace": "{{ request.namespace }}"}},
            "resource.Get('v1', 'configmaps', request.?namespace.orValue(''), 'c')",
        ),
        (
            {
                "apiCall": {
                    "urlPath": "/api/v1/namespaces/{{ request.namespace }}/pods",
                    "jmesPath": "items | length(@)",
                }
            },
            "size(resource.List('v1', 'pods', request.?namespace.orValue('')).items)",
        ),
        (
            {"apiCall": {"urlPath": "/apis/apps/v1/namespaces/n/deployments/d"}},
            "resource.Get('apps/v1', 'deployments', 'n', 'd')",
        ),
        ({"globalReference": {"name": "g"}}, "globalContext.Get('g', '')"),
    ],
)
def test_an_entry_becomes_an_expression(written: JSONObject, expected: str) -> None:
    """Each kind of entry has its form."""
    assert [("entry", expected)] == expressions({"name": "entry", **written})


@pytest.mark.parametrize(
    ("written", "code", "path"),
    [
        ({"imageRegistry": {"reference": "a"}}, "image-registry", "context[0].imageRegistry"),
        ({"apiCall": {"service": {"url": "http://a"}}}, "service-call", "context[0].apiCall.service"),
        ({"apiCall": {"urlPath": "/version"}}, "api-path", "context[0].apiCall.urlPath"),
        ({"apiCall": {"urlPath": "/api/v1/pods", "method": "POST"}}, "api-post", "context[0].apiCall.method"),
        ({"apiCall": {"urlPath": "/api/v1/pods", "default": []}}, "api-default", "context[0].apiCall.default"),
        ({"variable": {}}, "context", "context[0].variable"),
        ({"variable": {"value": "a", "jmesPath": "b"}}, "always-an-error", "context[0].variable"),
        (
            {"variable": {"jmesPath": "to_boolean(request.object.metadata.name)", "default": False}},
            "default-of-error",
            "context[0].variable",
        ),
        ({}, "context", "context[0]"),
    ],
)
def test_an_entry_without_a_form_is_refused(written: JSONObject, code: str, path: str) -> None:
    """The refusal has the field and a stable code."""
    with pytest.raises(UnconvertibleError) as raised:
        expressions({"name": "entry", **written})
    assert (code, path) == (raised.value.refused.code, raised.value.refused.path)


def test_names_that_cel_does_not_take_are_changed() -> None:
    """A dash is no part of a name; two entries never share one."""
    entries = ({"name": name, "variable": {"value": 1}} for name in ("allowed-repos", "allowedRepos", "1st"))
    assert ["allowedRepos", "allowedRepos2", "v1st"] == [name for name, _ in expressions(*entries)]


def test_an_entry_reads_the_ones_before_it() -> None:
    """Later entries use the variable, not its text."""
    found = expressions(
        {"name": "a", "variable": {"jmesPath": "request.object.metadata.name"}},
        {"name": "b", "variable": {"value": "{{ a }}-x"}},
    )
    assert [("a", "object.metadata.name"), ("b", "variables.a + '-x'")] == found


def test_inlined_entries_are_written_where_they_are_used() -> None:
    """Loops have no variables of their own."""
    entries = [{"name": "a", "variable": {"value": ["x", "y"]}}]
    names = inlined(entries, names_for("Pod"), "context")
    test = condition({"key": "{{ request.object.metadata.name }}", "operator": "AnyIn", "value": "{{ a }}"}, names, "")
    assert "object.metadata.name in ['x', 'y']" == test.text


@pytest.mark.parametrize(
    "entries",
    [
        [{"name": "a", "variable": {"jmesPath": "request.object.metadata.labels.team", "default": "none"}}],
        [{"name": "a", "variable": {"value": "{{ request.object.metadata.labels.team || 'none' }}"}}],
        [{"name": "a", "variable": {"jmesPath": "request.object.metadata.labels.team"}}],
        [{"name": "a", "variable": {"jmesPath": "request.object.metadata.labels.[team, app]|[0]", "default": "none"}}],
    ],
)
def test_rules_with_variables_decide_as_before(entries: list[JSONObject]) -> None:
    """Defaults and missing fields count alike."""
    check = {"all": [{"key": "{{ a }}", "operator": "AnyIn", "value": ["none", "web", "a"]}]}
    rule = {"context": entries, "validate": {"deny": {"conditions": check}}}
    assert None is compare_rule(rule, "Pod", convert_rule(rule, "Pod"), count=80).counterexample
