"""JMESPath in CEL, beyond what the table of conditions shows."""

from __future__ import annotations

import pytest

from pyverno.compiler.migration.expressions import is_static, translate, translate_query
from pyverno.compiler.migration.expressions.value import constant, truth
from pyverno.compiler.migration.outcome import UnconvertibleError
from tests.support.migration import names_for


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("request.object.spec.containers", "object.spec.containers"),
        ("request.object.spec.volumes[].name", "object.spec.?volumes.orValue([]).map(v, v.name)"),
        ("request.object.spec.containers[?ports].name", "object.spec.containers.map(c, has(c.ports), c.name)"),
        (
            "request.object.spec.containers[].[livenessProbe, readinessProbe][]",
            "object.spec.containers.map(c, [?c.?livenessProbe, ?c.?readinessProbe]).flatten()",
        ),
        (
            "request.object.spec.containers[].ports[].containerPort",
            "object.spec.containers.map(c, c.?ports.orValue([]).map(p, p.containerPort)).flatten()",
        ),
        (
            "request.object.spec.containers[1:]",
            "size(object.spec.containers) > 1 ? object.spec.containers.slice(1, size(object.spec.containers)) : []",
        ),
        (
            "request.object.spec.containers[:1]",
            "object.spec.containers.slice(0, math.least(1, size(object.spec.containers)))",
        ),
        ("request.object.metadata.labels.*", "object.metadata.?labels.orValue({}).map(k, object.metadata.labels[k])"),
        (
            "request.object.spec.[initContainers, containers][]",
            "object.spec.?initContainers.orValue([]) + object.spec.containers",
        ),
        ("[`1`, `2`][]", "[1, 2]"),
        ("request.object.spec.containers.name", "''"),
        ("request.object.spec.nothing", "''"),
    ],
)
def test_lists_become_macros(text: str, expected: str) -> None:
    """A query that is null on every object becomes an empty list."""
    assert expected == translate_query(text, names_for("Pod"), "list").or_empty().text


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("@", "whole-context"),
        ("foo", "name"),
        ("request.object.spec.containers[::2]", "slice"),
        ("request.object.spec.containers[-2:]", "slice"),
        ("request.object.spec.*", "values"),
        ("request.object.metadata.{{ request.name }}", "computed-key"),
        ("length(`5`)", "always-an-error"),
        ("keys(`[]`)", "always-an-error"),
        ("regex_match(", "syntax"),
        ("{{ request.name }}", "nested-variables"),
        ("map(&securityContext, request.object.spec.containers)", "function-map"),
        ("replace_all(request.object.spec, 'a', 'b')", "always-an-error"),
        ("truncate(request.object.metadata.name, request.object.spec.priority)", "function-truncate"),
        ("semver_compare(request.object.metadata.name, '1.x')", "function-semver-compare"),
        ("regex_replace_all('(?P<a>x)', request.object.metadata.name, '${a}')", "function-regex-replace-all"),
    ],
)
def test_what_has_no_exact_form_is_refused(text: str, code: str) -> None:
    """Each refusal has a stable code and a next step."""
    with pytest.raises(UnconvertibleError) as raised:
        translate_query(text, names_for("Pod"), "list")
    assert (code, "list") == (raised.value.refused.code, raised.value.refused.path)
    assert raised.value.refused.advice


def test_a_missing_field_at_the_end_of_a_variable_is_an_error() -> None:
    """A whole expression is loud, an operand is quiet."""
    loud = translate("{{ request.object.metadata.labels.team }}", names_for("Pod"), "")
    assert ("object.metadata.labels.team", True) == (loud.cel.text, loud.fails)
    quiet = translate_query("request.object.metadata.labels.team", names_for("Pod"), "")
    assert "object.metadata.?labels.?team.hasValue()" == quiet.present.text


def test_unknown_kinds_are_read_as_the_rule_reads_them() -> None:
    """The assumption is noted once, so that a person can check it."""
    names = names_for("Widget")
    value = translate("{{ request.object.spec.size || `1` }}", names, "key")
    assert "object.?spec.?size.orValue(1)" == value.cel.text
    assert ["assumed-type"] == [note.code for note in names.notes]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("request.object.spec.hostNetwork", "object.spec.?hostNetwork.orValue(false)"),
        ("request.object.spec.volumes", "has(object.spec.volumes)"),
        ("request.object.metadata.labels.team", "object.metadata.?labels.?team.orValue('') != ''"),
        ("request.object.spec.priority", "has(object.spec.priority)"),
        ("request.object.spec.volumes[0].emptyDir", "size(object.spec.?volumes[?0].?emptyDir.orValue({})) > 0"),
    ],
)
def test_truth_is_that_of_jmespath(text: str, expected: str) -> None:
    """Empty texts, lists and maps are false; numbers never are."""
    assert expected == truth(translate_query(text, names_for("Pod"), "")).text


def test_constants_keep_their_value() -> None:
    """Whole numbers of JMESPath's literals are whole in CEL."""
    assert ["3", "0.5", "'a'", "[1, 2]"] == [constant(each).cel.text for each in (3.0, 0.5, "a", [1, 2])]
    assert is_static({"a": 1})
    assert "5" == translate(5, names_for("Pod"), "").cel.text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("NET || VOLUMES", "object.spec.?hostNetwork.orValue(false) || has(object.spec.volumes)"),
        ("VOLUMES || NET", "has(object.spec.volumes) || object.spec.?hostNetwork.orValue(false)"),
        ("NET && VOLUMES", "object.spec.?hostNetwork.orValue(false) && has(object.spec.volumes)"),
        ("(NET || VOLUMES) || `false`", "object.spec.?hostNetwork.orValue(false) || has(object.spec.volumes)"),
    ],
)
def test_a_bool_or_another_type_is_only_true_or_false(text: str, expected: str) -> None:
    """CEL has no type for a bool or a list; whether it counts as true can be said, its value cannot."""
    mixed = text.replace("NET", "request.object.spec.hostNetwork").replace("VOLUMES", "request.object.spec.volumes")
    assert f"!({expected})" == translate_query(f"!({mixed})", names_for("Pod"), "").cel.text
    for whole in (mixed, f"to_string({mixed})", f"({mixed}) == `true`", f"[{mixed}]", f"({mixed}) | @"):
        with pytest.raises(UnconvertibleError) as raised:
            translate_query(whole, names_for("Pod"), "key")
        assert ("truth-only", "key") == (raised.value.refused.code, raised.value.refused.path)
