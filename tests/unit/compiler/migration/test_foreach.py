"""Foreach in CEL: what each form becomes, and that it decides as before."""

from __future__ import annotations

import pytest

from pyverno.compiler.migration.foreach import elements_pass
from pyverno.compiler.migration.outcome import UnconvertibleError
from pyverno.kube.json import JSONObject
from tests.support.migration import compare_rule, convert_rule, names_for

ALL = "(object.spec.?initContainers.orValue([]) + object.spec.containers)"
LIST = "request.object.spec.[initContainers, containers][]"


def deny(key: str, operator: str, value: object) -> JSONObject:
    """Return the check of an element by one condition."""
    return {"deny": {"conditions": {"all": [{"key": key, "operator": operator, "value": value}]}}}


PRIVILEGED = deny("{{ element.securityContext.privileged || `false` }}", "Equals", True)
NAMED = {"all": [{"key": "{{ element.name }}", "operator": "NotEquals", "value": "web"}]}
CASES: list[tuple[str, list[JSONObject], str]] = [
    (
        "Pod",
        [{"list": "request.object.spec.containers", **PRIVILEGED}],
        "object.spec.containers.all(c, !c.?securityContext.?privileged.orValue(false))",
    ),
    ("Pod", [{"list": LIST, **PRIVILEGED}], f"{ALL}.all(c, !c.?securityContext.?privileged.orValue(false))"),
    (
        "Pod",
        [{"list": "request.object.spec.containers", "pattern": {"image": "r.io/*"}}],
        "object.spec.containers.all(c, c.image.startsWith('r.io/'))",
    ),
    (
        "Pod",
        [{"list": "request.object.spec.containers", "anyPattern": [{"image": "r.io/*"}, {"name": "web"}]}],
        "object.spec.containers.all(c, c.image.startsWith('r.io/') || c.name == 'web')",
    ),
    (
        "Pod",
        [{"list": "request.object.spec.containers", "preconditions": NAMED, **PRIVILEGED}],
        "object.spec.containers.all(c, c.name == 'web' || !c.?securityContext.?privileged.orValue(false))",
    ),
    (
        "Pod",
        [
            {"list": "request.object.spec.containers", **PRIVILEGED},
            {"list": "request.object.spec.volumes", **deny("{{ element.hostPath.path || '' }}", "Equals", "/")},
        ],
        "object.spec.containers.all(c, !c.?securityContext.?privileged.orValue(false)) && "
        "object.spec.?volumes.orValue([]).all(v, v.?hostPath.?path.orValue('') != '/')",
    ),
    (
        "Pod",
        [
            {
                "list": "request.object.spec.containers",
                "foreach": [{"list": "element.ports", **deny("{{ element.hostPort || `0` }}", "GreaterThan", 0)}],
            }
        ],
        "object.spec.containers.all(c, c.?ports.orValue([]).all(p, !(p.?hostPort.orValue(0) > 0)))",
    ),
    (
        "Pod",
        [
            {
                "list": "request.object.spec.containers",
                "foreach": [
                    {"list": "element.ports", **deny("{{ element0.name }}-{{ element1.name || 'x' }}", "Equals", "a-x")}
                ],
            }
        ],
        "object.spec.containers.all(c, c.?ports.orValue([]).all(p, c.name + '-' + p.?name.orValue('x') != 'a-x'))",
    ),
    (
        "Pod",
        [{"list": "request.object.spec.containers[].image", **deny("{{ element }}", "AnyIn", ["nginx:1.25"])}],
        "object.spec.containers.all(c, !(c.image == 'nginx:1.25' || "
        "c.image.matches('^[^\\\\\\\\]*[*?][^\\\\\\\\]*$') && 'nginx:1.25'.matches('(?s)^\\\\Q' + "
        "c.image.replace('*', '\\\\E.*\\\\Q').replace('?', '\\\\E.\\\\Q') + '\\\\E$')))",
    ),
    (
        "Pod",
        [{"list": "request.object.spec.containers", **deny("{{ elementIndex }}", "GreaterThan", 1)}],
        "object.spec.containers.all(i, e, !(i > 1))",
    ),
    (
        "Pod",
        [{"list": "request.object.spec.securityContext", **deny("{{ element.runAsUser || `1` }}", "Equals", 0)}],
        "!has(object.spec.securityContext) || object.spec.?securityContext.?runAsUser.orValue(1) != 0",
    ),
    (
        "Pod",
        [
            {
                "list": "request.object.spec.containers",
                "context": [{"name": "tag", "variable": {"jmesPath": "element.image", "default": "none"}}],
                **deny("{{ tag }}", "Equals", "*:latest"),
            }
        ],
        "object.spec.containers.all(c, !c.image.endsWith(':latest'))",
    ),
    ("Pod", [{"list": "request.object.spec.nothing", **PRIVILEGED}], "true"),
]


@pytest.mark.parametrize(("kind", "entries", "expected"), CASES)
def test_a_foreach_becomes_a_loop_that_decides_as_before(kind: str, entries: list[JSONObject], expected: str) -> None:
    """The expression reads as written by hand, and no generated object is judged otherwise."""
    rule = {"validate": {"foreach": entries}}
    made = convert_rule(rule, kind)
    assert expected == made["spec"]["validations"][0]["expression"]
    assert None is compare_rule(rule, kind, made, count=60).counterexample


@pytest.mark.parametrize(
    ("entry", "code"),
    [
        ({}, "foreach"),
        ({"list": "request.object.spec.containers"}, "foreach"),
        ({"list": "request.object.spec.containers", "elementScope": False, "pattern": {"spec": {}}}, "element-scope"),
        ({"list": "request.object.spec.containers[].image", "pattern": "x"}, "element-scope"),
        ({"list": "request.object.spec.containers", "pattern": {"image": "{{ request.name }}"}}, "variable-in-pattern"),
        ({"list": "request.roles", **PRIVILEGED}, "roles"),
    ],
)
def test_a_foreach_without_an_exact_form_is_refused(entry: JSONObject, code: str) -> None:
    """The path of the refusal begins with the entry."""
    with pytest.raises(UnconvertibleError) as raised:
        elements_pass([entry], names_for("Pod"), "validate.foreach")
    assert code == raised.value.refused.code
    assert raised.value.refused.path.startswith("validate.foreach[0]")


def test_an_error_in_a_precondition_is_not_forgotten() -> None:
    """Kyverno refuses the object when the precondition of an element fails; so does the ternary."""
    failing = {"all": [{"key": "{{ element.livenessProbe.periodSeconds }}", "operator": "Equals", "value": 1}]}
    entry = {"list": "request.object.spec.containers", "preconditions": failing, **PRIVILEGED}
    expected = (
        "object.spec.containers.all(c, "
        "c.livenessProbe.periodSeconds == 1 ? !c.?securityContext.?privileged.orValue(false) : true)"
    )
    assert expected == elements_pass([entry], names_for("Pod"), "").text
