"""Type checking finds what a policy's expressions get wrong about the kinds that it matches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pyverno.compiler.cel.typechecking import check_types, kinds_to_check, known_schemas
from pyverno.kube.kinds import BUILTIN_KINDS
from pyverno.kube.schemas import schema_set
from pyverno.kube.yaml.documents import Document
from pyverno.policy.cel.constraints import MatchConstraints, ResourceRule
from pyverno.policy.decode import decode

if TYPE_CHECKING:
    from pyverno.compiler.cel.typechecking import TypeChecking
    from pyverno.kube.json import JSON, JSONObject

CRD: JSONObject = {
    "kind": "CustomResourceDefinition",
    "spec": {
        "group": "x.io",
        "scope": "Namespaced",
        "names": {"kind": "Box", "plural": "boxes"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}},
                    }
                },
            },
            {"name": "v2", "served": True},
        ],
    },
}


def rule(group: str, version: str, *resources: str) -> JSONObject:
    """A rule of matchConstraints."""
    return {"apiGroups": [group], "apiVersions": [version], "operations": ["CREATE"], "resources": list(resources)}


def policy(kind: str, *rules: JSONObject, **spec: JSON) -> JSONObject:
    """A policy document."""
    group = "admissionregistration.k8s.io" if "Admission" in kind else "policies.kyverno.io"
    return {
        "apiVersion": f"{group}/v1",
        "kind": kind,
        "metadata": {"name": "checked"},
        "spec": {"matchConstraints": {"resourceRules": list(rules)}, **spec},
    }


def check(document: JSONObject, version: tuple[int, int] = (1, 34)) -> TypeChecking:
    """Type-check a policy without decoding errors."""
    decoded = decode(Document(document))
    assert [] == [str(error) for error in decoded.errors]
    schemas = known_schemas(schema_set(".".join(map(str, version))), [CRD])
    return check_types(decoded.policy, schemas, version)  # type: ignore[arg-type]  # the tests write checkable kinds


def native(*expressions: str, resources: tuple[str, ...] = ("deployments",), **spec: JSON) -> JSONObject:
    """A ValidatingAdmissionPolicy about kinds of `apps/v1`."""
    validations = [{"expression": each} for each in expressions]
    return policy("ValidatingAdmissionPolicy", rule("apps", "v1", *resources), validations=validations, **spec)


def problems(document: JSONObject) -> list[tuple[str, str]]:
    """Field and the first problem's text without its place, of each warning."""
    return [
        (each.field_ref, each.warning.splitlines()[0].partition("ERROR: <input>:")[2].partition(": ")[2])
        for each in check(document).warnings
    ]


def test_the_warning_is_that_of_the_api_server():
    """One paragraph per kind for which the expression is wrong, in order of group, version and kind."""
    text = "ERROR: <input>:1:7: undefined field 'replicas'\n | object.replicas > 1\n | ......^\n"
    found = check(native("object.replicas > 1", resources=("statefulsets", "deployments")))
    expected = f"apps/v1, Kind=Deployment: {text}\napps/v1, Kind=StatefulSet: {text}"
    warning = {"fieldRef": "spec.validations[0].expression", "warning": expected}
    assert {"expressionWarnings": [warning]} == found.to_json()


def test_core_kinds_have_an_empty_group():
    """As Go writes a group, version and kind."""
    document = policy("ValidatingAdmissionPolicy", rule("", "v1", "pods"), validations=[{"expression": "object.x"}])
    assert check(document).warnings[0].warning.startswith("/v1, Kind=Pod: ERROR: ")


@pytest.mark.parametrize(
    ("rules", "kinds"),
    [
        ([("apps", "v1", "deployments")], ["Deployment"]),
        ([("apps", "v1", "Deployment")], ["Deployment"]),
        ([("apps", "v1", "deployments", "*", "deployments/scale", "*/*")], ["Deployment"]),
        ([("apps", "*", "deployments")], []),
        ([("*", "v1", "deployments")], []),
        ([("apps", "v1", "nothing")], []),
        ([("batch", "v1", "jobs"), ("apps", "v1", "daemonsets")], ["DaemonSet", "Job"]),
        ([("", "v1", "events")], ["Event", "Event"]),
    ],
)
def test_kinds_are_those_that_rules_name(rules, kinds):
    """Without wildcards and subresources; the empty group stands for any, as in Kubernetes' REST mapper."""
    written = tuple(
        ResourceRule(api_groups=(group,), api_versions=(version,), resources=tuple(resources))
        for group, version, *resources in rules
    )
    assert kinds == [gvk.kind for gvk in kinds_to_check(MatchConstraints(written), BUILTIN_KINDS)]


def test_a_rule_gives_at_most_ten_kinds():
    """The first ten in order of resource names; rules after it are not looked at."""
    names = sorted({info.plural for info in BUILTIN_KINDS if info.gvk.api_version == "v1"})
    many = ResourceRule(("",), ("v1",), (), tuple(names))
    found = kinds_to_check(
        MatchConstraints((many, ResourceRule(("apps",), ("v1",), (), ("deployments",)))), BUILTIN_KINDS
    )
    assert (10, False) == (len(found), any(gvk.kind == "Deployment" for gvk in found))
    assert () == kinds_to_check(None, BUILTIN_KINDS)


@pytest.mark.parametrize(
    "expression",
    [
        "object.spec.replicas > 1",
        "oldObject == null || object.metadata.labels['a'] == oldObject.metadata.labels['a']",
        "object.spec.template.spec.containers.all(c, has(c.securityContext))",
        "object.spec.strategy.rollingUpdate.maxSurge == '25%'",
        "object.metadata.creationTimestamp < timestamp('2030-01-01T00:00:00Z')",
        "authorizer.requestResource.check('get').allowed()",
        "authorizer.group('').resource('pods').check('get').allowed()",
        "request.userInfo.username == 'a' && namespaceObject.metadata.name == 'b'",
    ],
)
def test_what_the_schema_has_is_no_warning(expression):
    """Neither is what every policy has."""
    assert ((), 1) == ((found := check(native(expression))).warnings, len(found.kinds))


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (
            {"validations": [{"expression": "true", "messageExpression": "'n ' + object.spec.replicas"}]},
            [
                (
                    "spec.validations[0].messageExpression",
                    "found no matching overload for '_+_' applied to '(string, int)'",
                )
            ],
        ),
        (
            {
                "variables": [{"name": "size", "expression": "object.spec.replicas"}],
                "validations": [{"expression": "variables.size == ''"}],
            },
            [("spec.validations[0].expression", "found no matching overload for '_==_' applied to '(int, string)'")],
        ),
        (
            {
                "variables": [{"name": "size", "expression": "object.nothing"}],
                "matchConditions": [{"name": "a", "expression": "object.nothing"}],
                "auditAnnotations": [{"key": "a", "valueExpression": "object.nothing"}],
                "validations": [{"expression": "variables.size == 1"}],
            },
            [],
        ),
        (
            {
                "variables": [{"name": "spec", "expression": "object.spec"}],
                "validations": [{"expression": "variables.spec.nothing == 1"}],
            },
            [],
        ),
        (
            {"validations": [{"expression": "variables.nothing"}]},
            [("spec.validations[0].expression", "undefined field 'nothing'")],
        ),
        (
            {"validations": [{"expression": "params.x == 1"}]},
            [("spec.validations[0].expression", "undeclared reference to 'params' (in container '')")],
        ),
    ],
)
def test_checked_are_validations_and_their_messages(spec, expected):
    """Variables lend them their types: plain types, lists and maps; what is wrong in a variable is not shown."""
    assert expected == problems(policy("ValidatingAdmissionPolicy", rule("apps", "v1", "deployments"), **spec))


@pytest.mark.parametrize(
    ("kind", "expression", "expected"),
    [
        (("v1", "ConfigMap"), "params.dat.x == ''", ["undefined field 'dat'"]),
        (("v1", "ConfigMap"), "params.data.x == ''", []),
        (
            ("x.io/v1", "Box"),
            "params.spec.size == ''",
            ["found no matching overload for '_==_' applied to '(int, string)'"],
        ),
        (("y.io/v1", "Unknown"), "params.anything.at.all == ''", []),
    ],
)
def test_parameters_have_the_type_of_their_kind(kind, expression, expected):
    """And any type when there is no schema."""
    api_version, name = kind
    document = native(expression, paramKind={"apiVersion": api_version, "kind": name})
    assert expected == [problem for _, problem in problems(document)]


def test_custom_kinds_are_known_by_their_definition():
    """With the metadata that every object has; a version without a schema is not checked."""
    validations: JSON = [{"expression": "object.metadata.name == '' && object.spec.size > 1 && object.spec.sizes > 1"}]
    document = policy("ValidatingAdmissionPolicy", rule("x.io", "v1", "boxes"), validations=validations)
    assert [("spec.validations[0].expression", "undefined field 'sizes'")] == problems(document)
    document = policy("ValidatingAdmissionPolicy", rule("x.io", "v2", "boxes"), validations=validations)
    assert ((), {}) == ((found := check(document)).kinds, found.to_json())


def test_schemas_and_functions_are_those_of_a_kubernetes_version():
    """A field that came later is undefined before."""
    document = policy(
        "ValidatingAdmissionPolicy", rule("", "v1", "pods"), validations=[{"expression": "has(object.spec.resources)"}]
    )
    assert [1, 0] == [len(check(document, version).warnings) for version in ((1, 28), (1, 34))]


@pytest.mark.parametrize(
    ("document", "fields"),
    [
        (
            policy(
                "ValidatingPolicy",
                rule("apps", "v1", "deployments"),
                variables=[{"name": "a", "expression": "object.nothing"}],
                matchConditions=[{"name": "a", "expression": "object.nothing == 1"}],
                validations=[{"expression": "object.spec.replicas == 1"}, {"expression": "'a' in object.metadata"}],
            ),
            ["spec.matchConditions[0].expression", "spec.variables[0].expression"],
        ),
        (
            policy(
                "MutatingPolicy",
                rule("", "v1", "pods"),
                mutations=[
                    {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": text}}
                    for text in (
                        "Object{spec: Object.spec{volumes: object.spec.volumes + [Object.spec.volumes{name: 'a'}]}}",
                        "Object{spec: Object.spec{volumes: object.spec.volume}}",
                        "Object{spec: Object.spec{volumes: [object.spec.volumes[0], Object.spec.volumes{name: 'a'}]}}",
                    )
                ],
            ),
            ["spec.mutations[1].applyConfiguration.expression"],
        ),
        (
            policy(
                "MutatingPolicy",
                rule("", "v1", "pods"),
                targetMatchConstraints={"resourceRules": [rule("", "v1", "secrets")]},
                mutations=[
                    {"patchType": "JSONPatch", "jsonPatch": {"expression": "[JSONPatch{path: object.nothing}]"}}
                ],
            ),
            [],
        ),
        (
            policy(
                "ValidatingPolicy",
                rule("", "v1", "pods"),
                evaluation={"mode": "JSON"},
                validations=[{"expression": "object.nothing"}],
            ),
            [],
        ),
        (
            policy(
                "DeletingPolicy",
                rule("", "v1", "pods"),
                schedule="* * * * *",
                conditions=[{"name": "a", "expression": "object.status.phases == 'Failed'"}],
            ),
            ["spec.conditions[0].expression"],
        ),
        (
            policy(
                "GeneratingPolicy",
                rule("", "v1", "namespaces"),
                generate=[{"expression": "generator.Apply(object.metadata.names, [])"}],
            ),
            ["spec.generate[0].expression"],
        ),
        (
            policy(
                "MutatingAdmissionPolicy",
                rule("", "v1", "pods"),
                reinvocationPolicy="Never",
                mutations=[
                    {"patchType": "JSONPatch", "jsonPatch": {"expression": "[JSONPatch{path: object.nothing}]"}}
                ],
            ),
            ["spec.mutations[0].jsonPatch.expression"],
        ),
    ],
    ids=lambda value: value["kind"] if isinstance(value, dict) else None,
)
def test_other_kinds_are_checked_for_what_is_certainly_wrong(document, fields):
    """All their expressions; at run time objects are maps, so types that only differ from a struct are fine."""
    assert fields == [each.field_ref for each in check(document).warnings]


def rules(*validations: JSON, kinds: tuple[str, ...] = ("Deployment",), **cel: JSON) -> JSONObject:
    """A ClusterPolicy with one rule in CEL."""
    written = {
        "name": "check",
        "match": {"any": [{"resources": {"kinds": list(kinds)}}]},
        "celPreconditions": [{"name": "p", "expression": "object.metadata.nam == 'x'"}],
        "validate": {"cel": {"expressions": list(validations), **cel}},
    }
    return {
        "apiVersion": "kyverno.io/v1",
        "kind": "ClusterPolicy",
        "metadata": {"name": "check"},
        "spec": {"rules": [written]},
    }


def test_rules_in_cel_are_checked_for_the_kinds_that_they_match():
    """Preconditions, variables, expressions and messages, with the path inside of the rule."""
    document = rules(
        {"expression": "object.replicas > 1", "messageExpression": "object.spec.replica"},
        {"expression": "variables.number > 1"},
        variables=[{"name": "number", "expression": "object.spec.replicas"}, {"name": "v", "expression": "object.x"}],
    )
    prefix = "spec.rules[0]."
    assert [
        (f"{prefix}celPreconditions[0].expression", "undefined field 'nam'"),
        (f"{prefix}validate.cel.variables[1].expression", "undefined field 'x'"),
        (f"{prefix}validate.cel.expressions[0].expression", "undefined field 'replicas'"),
        (f"{prefix}validate.cel.expressions[0].messageExpression", "undefined field 'replica'"),
    ] == problems(document)


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        (("Pod", "apps/v1/Deployment"), ["Pod", "Deployment"]),
        (("v1/Pod", "*"), ["Pod"]),
        (("Pod/exec", "Deploy*"), []),
        (("x.io/v1/Box", "Nothing"), ["Box"]),
    ],
)
def test_kinds_of_rules_are_those_that_they_name(kinds, expected):
    """Without wildcards in the kind, and without subresources."""
    assert expected == [gvk.kind for gvk in check(rules({"expression": "true"}, kinds=kinds)).kinds]


def test_parameters_of_rules_are_typed():
    """By their paramKind."""
    document = rules({"expression": "params.spec.wrong == 1"}, paramKind={"apiVersion": "x.io/v1", "kind": "Box"})
    assert "undefined field 'wrong'" in [text for _, text in problems(document)]


def test_policies_that_judge_no_objects_are_not_checked():
    """Payloads and authorization requests have other types."""
    for mode in ("JSON", "Envoy", "HTTP"):
        document = policy("ValidatingPolicy", rule("", "v1", "pods"), validations=[], evaluation={"mode": mode})
        assert () == check(document).kinds
