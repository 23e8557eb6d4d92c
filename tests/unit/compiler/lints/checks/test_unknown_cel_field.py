"""Fields that expressions in CEL read and no matched object has."""

from __future__ import annotations

import pytest

from tests.support.linting import cel_policy, found

VARIABLES = "variables: [{name: containers, expression: object.spec.template.spec.containers}]\n"


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("object.spec.replica > 1", "`replica` here: did you mean `replicas`?"),
        ("has(object.spec.templat)", "`templat` here: did you mean `template`?"),
        ("object.spec.?replica.orValue(1) > 0", "`replica` here: did you mean `replicas`?"),
        ("variables.containers.all(c, has(c.img))", "`img` here"),
        ("object.spec.template.spec.containers.filter(c, c.image != '').all(d, d.imag != '')", "`imag` here"),
        ("object.spec.template.spec.containers[0].securitycontext == null", "`securitycontext` here"),
        ("oldObject.sepc == null", "`sepc` here: did you mean `spec`?"),
    ],
)
def test_a_field_that_no_deployment_has_is_found(expression: str, message: str) -> None:
    """Through chains, lists, macros and variables, at the character of the field."""
    text = cel_policy(VARIABLES + f"validations:\n- expression: {expression}")
    [line] = found(text, "PV105")
    column = 17 + expression.rindex(message.split("`")[1])
    expected = f"10:{column} Deployment has no field {message}"
    assert expected == line[: len(expected)]


@pytest.mark.parametrize(
    "expression",
    [
        "object.spec.replicas > 1",
        "object.metadata.labels.team == 'x' && object.metadata.?annotations['a'].orValue('') == ''",
        "object.spec.template.spec.nodeSelector.disk == 'object.spec.nothing'",
        "object.spec.selector.matchLabels.all(k, k.startsWith('a'))",
        "(object.spec.template.spec.containers + object.spec.template.spec.initContainers).all(c, c.anything == 1)",
        "object.spec.template.spec.containers.all(c, c.ports.exists(p, p.containerPort > 1)) && [1].all(c, c.x == 1)",
        "variables.unknown.anything == 1 || object.spec.template.spec.containers.map(c, c.name).size() > 1",
        "request.anything == 1",
    ],
)
def test_what_may_exist_is_not_reported(expression: str) -> None:
    """Maps, results of functions and elements of other lists are left alone."""
    from pyverno.compiler.lints.fieldaccess import FieldReader
    from pyverno.compiler.lints.fields import builtin_fields
    from pyverno.kube.gvk import GVK

    table = builtin_fields()
    deployment = table.type_of(GVK("apps", "v1", "Deployment"))
    assert deployment is not None
    reader = FieldReader(table, frozenset({deployment}))
    reader.declare("containers", "object.spec.template.spec.containers")
    assert [] == [*reader.unknown(expression)]


def test_several_kinds_need_one_that_has_the_field() -> None:
    """A policy for pods and deployments may read the fields of both."""
    body = "validations:\n- expression: object.spec.replicas > 1 || object.spec.hostPID"
    text = cel_policy(body, group="apps, ''", resource="deployments, pods")
    assert [] == found(text, "PV105")


def test_the_cel_of_a_rule_is_checked() -> None:
    """Rules of a ClusterPolicy name kinds, not resources."""
    from tests.support.linting import policy, rule

    body = "validate:\n  cel:\n    expressions:\n    - expression: object.spec.hostPid == false"
    [line] = found(policy(rule(body)), "PV105")
    assert "12:35 Pod has no field `hostPid` here: did you mean `hostPID`?" == line


@pytest.mark.parametrize("quote", ["'", '"', "'''"])
def test_what_is_not_closed_is_read_once(quote: str) -> None:
    """A search from each quote to the end would take minutes; what a literal holds is no field."""
    from pyverno.compiler.lints.fieldaccess import FieldReader
    from pyverno.compiler.lints.fields import builtin_fields
    from pyverno.kube.gvk import GVK

    table = builtin_fields()
    pod = table.type_of(GVK("", "v1", "Pod"))
    assert pod is not None
    text = f"object.spec == {quote}object.sepc" + f"\\{quote[0]}" * 20_000
    assert [] == [*FieldReader(table, frozenset({pod})).unknown(text)]
    # neither is the end of a bracket looked for from each of them
    assert [] == [*FieldReader(table, frozenset({pod})).unknown("object[object.spec.orValue(" * 4000)]
