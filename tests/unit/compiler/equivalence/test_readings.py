"""What policies read of objects, and the constants beside it."""

from __future__ import annotations

import pytest

from pyverno.compiler.equivalence.readings import readings_of
from pyverno.kube.json import JSON, JSONObject


def rule(**parts: JSON) -> JSONObject:
    """Return a policy with one rule."""
    return {"spec": {"rules": [parts]}}


def denied(key: str, value: JSON = None) -> JSONObject:
    """Return a policy that denies by a condition."""
    return rule(validate={"deny": {"conditions": {"all": [{"key": key, "operator": "Equals", "value": value}]}}})


def checked(*expressions: str, **variables: str) -> JSONObject:
    """Return a policy in CEL."""
    return {
        "spec": {
            "variables": [{"name": name, "expression": text} for name, text in variables.items()],
            "validations": [{"expression": text} for text in expressions],
        }
    }


ADDED = "{{ request.object.spec.containers[].securityContext.capabilities.add[] }}"
ADD = "spec containers 0 securityContext capabilities add 0"
POD = "request.kind.kind == 'Pod' ? object : object.spec.template"


@pytest.mark.parametrize(
    ("policy", "path", "constants"),
    [
        (denied("{{ request.object.metadata.labels.tier || '' }}", "prod"), "metadata labels tier", {"prod", ""}),
        (denied("{{ request.object.spec.containers[].image }}", ["a", "b"]), "spec containers 0 image", {"a", "b"}),
        (
            denied("{{ split(request.object.metadata.annotations.x || '', ',') | length(@) }}", 1),
            "metadata annotations x",
            {",", ""},
        ),
        (denied("{{ starts_with(request.object.spec.type, 'No') }}", value=True), "spec type", {"No"}),
        (denied("{{ request.object.spec.ports[?name == 'web'] | length(@) }}", 0), "spec ports 0 name", {"web"}),
        (rule(validate={"pattern": {"spec": {"=(replicas)": ">2"}}}), "spec replicas", {">2"}),
        (rule(match={"any": [{"resources": {"names": ["a*"]}}]}), "metadata name", {"a*"}),
        (rule(exclude={"resources": {"selector": {"matchLabels": {"a": "b?"}}}}), "metadata labels a", {"b?"}),
        (checked("object.spec.?type.orValue('') in ['A', 'B']"), "spec type", {"", "A", "B"}),
        (checked("variables.pod.spec.hostNetwork", pod=POD), "spec template spec hostNetwork", set()),
        (checked("object.spec.ports.all(p, p.name == 'web')"), "spec ports 0 name", {"web"}),
        (checked("object.metadata.labels['a/b'].startsWith('x')"), "metadata labels a/b", {"x"}),
        (checked("object.spec.ports.filter(p, p.port > 1)[0].name == 'y'"), "spec ports 0 name", {"y"}),
        (checked("quantity(object.data.size).compareTo(quantity('1Gi')) < 0"), "data size", {"1Gi"}),
    ],
)
def test_a_field_is_found_with_the_constants_beside_it(policy: JSONObject, path: str, constants: set[JSON]) -> None:
    """In patterns, conditions, match blocks and CEL, through variables, loops, filters and functions."""
    steps = tuple(int(each) if each == "0" else each for each in path.split())
    found = {each.steps: {*each.constants} for each in readings_of([policy])}
    assert found[steps] >= constants


@pytest.mark.parametrize(
    ("policy", "path"),
    [
        (rule(validate={"deny": {"conditions": [{"key": ADDED, "operator": "AnyNotIn", "value": ["A", "B"]}]}}), ADD),
        (checked("object.spec.containers.all(c, c.securityContext.capabilities.add.all(a, a in ['A', 'B']))"), ADD),
        (
            checked(
                "object.spec.containers.all(c, c.?securityContext.?capabilities.?add.orValue([])"
                ".all(a, a in variables.allowed))",
                allowed="['A', 'B']",
            ),
            ADD,
        ),
        (checked("['A', 'B'].exists(a, object.spec.type == a) || object.spec.type in ['A', 'B']"), "spec type"),
    ],
)
def test_constants_of_one_list_are_kept_together(policy: JSONObject, path: str) -> None:
    """Of an enumeration, one object can hold all values; a variable of constants is one."""
    steps = tuple(int(each) if each == "0" else each for each in path.split())
    assert ("A", "B") in next(each.lists for each in readings_of([policy]) if each.steps == steps)


def test_a_policy_that_is_no_policy_reads_nothing() -> None:
    """Wrong types are left to the compiler."""
    assert () == readings_of([{"spec": None}, {}, {"spec": {"rules": [None], "variables": [None]}}, checked("))")])
