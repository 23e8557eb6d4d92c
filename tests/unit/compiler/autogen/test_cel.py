"""CEL policies about Pods get copies for pod controllers, exactly as upstream makes them."""

from dataclasses import replace

import pytest

from pyverno.compiler.autogen.cel import (
    POD_CONTROLLERS,
    constraints_for,
    expand_cel,
    guarded_conditions,
    rewrite_mutation,
    rewrite_text,
)
from pyverno.policy.cel.imagepolicy import ImageValidatingPolicy
from pyverno.policy.cel.policies import VALIDATING_SPEC, MutatingPolicy, ValidatingPolicy
from pyverno.policy.decode import decode
from pyverno.policy.schema import Cursor, Problems
from pyverno.policy.validate import NamedExpression
from tests.unit.policy.documents import document

TEMPLATE = "object.spec.template"
CRON = "object.spec.jobTemplate.spec.template"
POD_RULE = '{apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [pods]}'


def policy(kind, body, *, rules=POD_RULE, constraints="", controllers=None):
    autogen = "" if controllers is None else f"  autogen: {{podControllers: {{controllers: {controllers}}}}}\n"
    text = (
        f"apiVersion: policies.kyverno.io/v1\nkind: {kind}\nmetadata: {{name: p, namespace: team}}\nspec:\n"
        f"  matchConstraints:\n    resourceRules: [{rules}]\n{constraints}{autogen}{body}"
    )
    decoded = decode(document(text))
    assert decoded.errors == ()
    return decoded.policy


def validating(body="  validations: [{expression: 'object.spec.x'}]\n", **kwargs):
    found = policy("ValidatingPolicy", body, **kwargs)
    assert isinstance(found, ValidatingPolicy)
    return found


def names(found):
    return [config.name for config in expand_cel(found)]


def test_a_policy_has_two_copies():
    """One for what has a pod template, one for cron jobs, whose template is deeper."""
    defaults, cron = expand_cel(validating())
    assert (defaults.name, [target.resource for target in defaults.targets]) == (
        "defaults",
        ["daemonsets", "deployments", "replicasets", "statefulsets", "jobs"],
    )
    assert (cron.name, [target.kind for target in cron.targets]) == ("cronjobs", ["CronJob"])
    assert [each.text for each in defaults.policy.spec.expressions()] == [f"{TEMPLATE}.spec.x"]
    assert [each.text for each in cron.policy.spec.expressions()] == [f"{CRON}.spec.x"]


def test_constraints_of_a_copy_have_one_rule_per_group():
    """Operations and namespaceSelector are taken over, the match policy is not."""
    extra = "    namespaceSelector: {matchLabels: {a: b}}\n    matchPolicy: Exact\n"
    constraints = expand_cel(validating(constraints=extra))[0].policy.spec.match_constraints
    assert constraints.raw == {
        "resourceRules": [
            {
                "apiGroups": ["apps"],
                "apiVersions": ["v1"],
                "operations": ["CREATE", "UPDATE"],
                "resources": ["daemonsets", "deployments", "replicasets", "statefulsets"],
            },
            {
                "apiGroups": ["batch"],
                "apiVersions": ["v1"],
                "operations": ["CREATE", "UPDATE"],
                "resources": ["jobs"],
            },
        ],
        "namespaceSelector": {"matchLabels": {"a": "b"}},
    }
    assert constraints.match_policy is None


@pytest.mark.parametrize(
    ("controllers", "expected"),
    [
        ("[]", []),
        ("[deployments]", ["defaults"]),
        ("[cronjobs]", ["cronjobs"]),
        ("[jobs, cronjobs, jobs]", ["defaults", "cronjobs"]),
        ("[pods, Deployment]", []),
    ],
)
def test_controllers_are_selected_by_resource_name(controllers, expected):
    """An empty list switches copies off, unknown names are ignored."""
    assert names(validating(controllers=controllers)) == expected


@pytest.mark.parametrize(
    "kwargs",
    [
        {"rules": f"{POD_RULE}, {POD_RULE}"},
        {"rules": POD_RULE.replace("[pods]", "[pods, services]")},
        {"rules": POD_RULE.replace("[pods]", "['*']")},
        {"rules": POD_RULE.replace("[v1]", "['*']")},
        {"rules": POD_RULE.replace('[""]', "['', apps]")},
        {"rules": POD_RULE.replace("[pods]", "[pods], resourceNames: [a]")},
        {"rules": POD_RULE.replace("operations: [CREATE, UPDATE], ", "")},
        {"constraints": "    excludeResourceRules: [{resources: [pods]}]\n"},
        {"constraints": "    objectSelector: {matchLabels: {a: b}}\n"},
        {"constraints": "    objectSelector: {matchExpressions: [{key: a, operator: Exists}]}\n"},
    ],
)
def test_what_holds_for_pods_only_has_no_copies(kwargs):
    """Names, labels and exclusions of Pods do not carry over to Pod controllers."""
    assert names(validating(**kwargs)) == []


def test_constraints_that_match_nothing_are_none():
    """Without targets or operations a copy could never match."""
    origin = validating().spec.match_constraints
    assert constraints_for((), origin) is None
    (rule,) = origin.resource_rules
    idle = replace(origin, resource_rules=(replace(rule, operations=()),))
    assert constraints_for((POD_CONTROLLERS["jobs"],), idle) is None


def test_an_empty_object_selector_requires_nothing():
    """It is what the API server writes as a default."""
    assert names(validating(constraints="    objectSelector: {}\n")) == ["defaults", "cronjobs"]


def test_a_policy_on_payloads_has_no_copies():
    """Without constraints there is nothing about Pods."""
    text = (
        "apiVersion: policies.kyverno.io/v1\nkind: ValidatingPolicy\nmetadata: {name: p}\n"
        "spec: {evaluation: {mode: JSON}}"
    )
    found = decode(document(text)).policy
    assert isinstance(found, ValidatingPolicy)
    assert expand_cel(found) == ()


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("object.spec.containers", f"{TEMPLATE}.spec.containers"),
        ("oldObject.spec", "oldObject.spec.template.spec"),
        ("object.metadata.?labels.x", f"{TEMPLATE}.metadata.?labels.x"),
        ("object.metadata.name", f"{TEMPLATE}.metadata.name"),
        ("object.metadata.namespace != 'a'", "object.metadata.namespace != 'a'"),
        ("object.metadata.namespace", "object.metadata.namespace"),
        ("object.metadata.namespaceX", f"{TEMPLATE}.metadata.namespaceX"),
        ("namespaceObject.metadata.labels", "namespaceObject.metadata.labels"),
        ("object['spec'] + object.?spec", "object['spec'] + object.?spec"),
        ("myobject.spec", f"my{TEMPLATE}.spec"),
        ("object.specX", f"{TEMPLATE}.specX"),
        ("object.spec == oldObject.spec", f"{TEMPLATE}.spec == oldObject.spec.template.spec"),
    ],
)
def test_text_is_replaced_without_looking_at_words(written, expected):
    """Only `.namespace` of the object's own metadata is spared."""
    assert rewrite_text(written, "defaults") == expected


def test_every_text_of_a_validating_policy_is_rewritten():
    """Variables, messages and conditions too; the policy itself stays as it is."""
    body = (
        "  matchConditions: [{name: a, expression: object.metadata.labels.a}]\n"
        "  variables: [{name: b, expression: object.spec.b}]\n"
        "  validations: [{expression: variables.b, message: set object.spec.b}]\n"
    )
    origin = validating(body)
    copy = expand_cel(origin)[1].policy
    assert [each.text for each in copy.spec.expressions()] == [
        f"{CRON}.metadata.labels.a",
        f"{CRON}.spec.b",
        "variables.b",
    ]
    assert copy.spec.validations[0].message == f"set {CRON}.spec.b"
    assert copy.spec.validations[0].path == ("spec", "validations", 0)
    assert (copy.name, copy.namespace, copy.document) == (origin.name, origin.namespace, origin.document)
    assert origin.spec.validations[0].message == "set object.spec.b"


def test_image_policies_are_rewritten_as_text():
    """Image extractors are among the texts."""
    body = (
        "  images: [{name: i, expression: 'object.spec.x'}]\n"
        "  attestors: [{name: a, cosign: {}}]\n  validations: [{expression: 'true'}]\n"
    )
    found = policy("NamespacedImageValidatingPolicy", body)
    assert isinstance(found, ImageValidatingPolicy)
    assert [config.policy.spec.images[0].expression for config in expand_cel(found)] == [
        f"{TEMPLATE}.spec.x",
        f"{CRON}.spec.x",
    ]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (
            "Object{spec: Object.spec{hostNetwork: false}}",
            "Object{spec: Object.spec{template: Object.spec.template{"
            "spec: Object.spec.template.spec{hostNetwork: false}}}}",
        ),
        ("object.metadata.labels.a", "object.spec.template.metadata.labels.a"),
        ("object.metadata.annotations", "object.spec.template.metadata.annotations"),
        ("object.metadata.name", "object.metadata.name"),
        ("myobject.spec", "myobject.spec"),
        ("namespaceObject.spec", "namespaceObject.spec"),
        ("Object{}", "Object{}"),
        ("true ? Object{a: 1} : Object{}", "true ? Object{a: 1} : Object{}"),
        ("Object {a: 1}", "Object{spec: Object.spec{template: Object.spec.template{a: 1}}}"),
        (" Object{a: 1} ", "Object{spec: Object.spec{template: Object.spec.template{a: 1}}}"),
        ("Object{a: '}'}", "Object{spec: Object.spec{template: Object.spec.template{a: '}}}'}"),
        ("Object{a: {", "Object{a: {"),
        ("Objects{a: 1}", "Objects{a: 1}"),
    ],
)
def test_mutations_are_wrapped_and_rewritten_by_words(written, expected):
    """Only an expression that starts with an object literal is wrapped; braces count also within strings."""
    assert rewrite_mutation(written, "defaults") == expected


def test_cron_jobs_are_wrapped_four_levels_deep():
    """The type names follow the path."""
    assert rewrite_mutation("Object{a: 1}", "cronjobs") == (
        "Object{spec: Object.spec{jobTemplate: Object.spec.jobTemplate{spec: Object.spec.jobTemplate.spec{"
        "template: Object.spec.jobTemplate.spec.template{a: 1}}}}}"
    )


def test_patches_and_variables_of_mutations_stay():
    """Only match conditions and ApplyConfiguration are rewritten."""
    body = (
        "  matchConditions: [{name: a, expression: object.spec.a}]\n"
        "  variables: [{name: b, expression: object.spec.b}]\n"
        "  mutations:\n"
        "    - {patchType: JSONPatch, jsonPatch: {expression: object.spec.c}}\n"
        "    - {patchType: ApplyConfiguration, applyConfiguration: {expression: object.spec.d}}\n"
        "    - {patchType: ApplyConfiguration}\n"
        "  targetMatchConditions: [{name: e, expression: object.spec.e}]\n"
    )
    found = policy("MutatingPolicy", body)
    assert isinstance(found, MutatingPolicy)
    copy = expand_cel(found)[0].policy
    assert [each.text for each in copy.spec.expressions()] == [
        f"{TEMPLATE}.spec.a",
        "object.spec.b",
        "object.spec.c",
        f"{TEMPLATE}.spec.d",
        "object.spec.e",
    ]
    assert copy.spec.match_constraints.resource_rules[0].api_groups == ("apps",)


def test_conditions_for_a_shared_webhook_are_guarded():
    """A condition of one copy lets the objects of the others through."""
    conditions = (NamedExpression("a", "b", ("spec",)),)
    targets = (POD_CONTROLLERS["jobs"], POD_CONTROLLERS["deployments"])
    assert guarded_conditions(conditions, targets, config="defaults") == (
        NamedExpression(
            "autogen-defaults-a",
            "!((object.apiVersion == 'apps/v1' && object.kind =='Deployment') || "
            "(object.apiVersion == 'batch/v1' && object.kind =='Job')) || (b)",
            ("spec",),
        ),
    )
    assert guarded_conditions(conditions, ()) == ()


def test_a_copy_is_what_its_text_decodes_to():
    """Whatever of a policy has a text with the object in it: the copy's values are those of the rewritten JSON."""
    body = """  matchConditions: [{name: "object.spec", expression: "object.spec.a == oldObject.metadata.b"}]
  variables: [{name: "v.object.metadata", expression: "object.metadata.namespace + object.spec.c"}]
  validations:
  - {expression: "object.spec.d", message: "object.spec.e", messageExpression: "object.spec.f", reason: "object.spec"}
  - {expression: "true"}
  auditAnnotations: [{key: "object.spec.g", valueExpression: "object.metadata.name"}]
  validationActions: [Audit, Warn]
  failurePolicy: Ignore
  webhookConfiguration: {timeoutSeconds: 7}
  evaluation: {background: {enabled: false}}
"""
    constraints = (
        "    namespaceSelector: {matchLabels: {object.spec.h: object.metadata.i}, "
        "matchExpressions: [{key: k, operator: Exists}]}\n"
    )
    found = validating(body, constraints=constraints, controllers="[jobs, cronjobs, object.spec.j]")
    copies = expand_cel(found)
    assert [copy.name for copy in copies] == ["defaults", "cronjobs"]
    for copy in copies:
        problems = Problems(found.document)
        assert VALIDATING_SPEC(copy.policy.spec.raw, Cursor(problems, ("spec",))) == copy.policy.spec
        assert problems.errors == []
        assert "object.spec.e" not in repr(copy.policy.spec)
