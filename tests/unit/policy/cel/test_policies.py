"""The CEL kinds decode with their defaults, and every expression knows its place."""

import pytest

from pyverno.policy.cel.blocks import Evaluation, EvaluationMode, Expression, PatchType, ReinvocationPolicy
from pyverno.policy.cel.constraints import MatchPolicy
from pyverno.policy.cel.imagepolicy import Identity, ImageValidatingPolicy, Key, ValidationConfiguration
from pyverno.policy.cel.policies import DeletingPolicy, GeneratingPolicy, MutatingPolicy, ValidatingPolicy
from pyverno.policy.cleanup import PropagationPolicy
from pyverno.policy.clusterpolicy import FailurePolicy
from pyverno.policy.decode import decode
from pyverno.policy.kinds import POLICY_KINDS, Family
from tests.unit.policy.documents import document, problems

CONSTRAINTS = """\
  matchConstraints:
    resourceRules:
      - {apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}
"""
VALIDATING = CONSTRAINTS + "  validations: [{expression: 'true'}]\n"
SPECS = {
    "ValidatingPolicy": VALIDATING,
    "MutatingPolicy": CONSTRAINTS
    + "  mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: 'Object{}'}}]\n",
    "GeneratingPolicy": CONSTRAINTS + "  generate: [{expression: 'true'}]\n",
    "DeletingPolicy": CONSTRAINTS + "  schedule: '* * * * *'\n",
    "ImageValidatingPolicy": VALIDATING + "  attestors: [{name: a, cosign: {key: {data: k}}}]\n",
}


def written(kind, body, *, version="v1"):
    head = f"apiVersion: policies.kyverno.io/{version}\nkind: {kind}\n"
    return f"{head}metadata: {{name: p, namespace: team}}\nspec:\n{body}"


def decoded(kind, body, *, version="v1"):
    result = decode(document(written(kind, body, version=version)))
    assert result.errors == ()
    return result.policy


@pytest.mark.parametrize(
    ("kind", "version"),
    [(row.kind, version) for row in POLICY_KINDS if row.family is Family.CEL for version in row.versions],
)
def test_every_kind_decodes_in_every_version(kind, version):
    """All versions share one schema, and a namespaced twin is its cluster-wide kind with a namespace."""
    policy = decoded(kind, SPECS[kind.removeprefix("Namespaced")], version=version)
    assert (policy.kind, policy.is_namespaced) == (kind, kind.startswith("Namespaced"))
    assert policy.key == ("team/p" if policy.is_namespaced else "p")
    assert policy.spec.match_constraints.resource_rules[0].resources == ("pods",)


def test_defaults_are_those_of_kyverno():
    """A short policy denies, fails closed, and runs at admission and in scans."""
    spec = decoded("ValidatingPolicy", VALIDATING).spec
    assert [action.value for action in spec.actions] == ["Deny"]
    assert (spec.failure_policy, spec.evaluation, spec.timeout_seconds) == (FailurePolicy.FAIL, Evaluation(), None)
    assert (spec.autogen.pod_controllers, spec.autogen.admission_policy) == (None, False)
    assert spec.match_constraints.match_policy is None


def test_an_empty_list_of_actions_means_deny():
    """Upstream falls back to Deny for an empty list as for an absent one."""
    spec = decoded("ValidatingPolicy", VALIDATING + "  validationActions: []\n").spec
    assert [action.value for action in spec.actions] == ["Deny"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("evaluation: {mode: JSON}", Evaluation(mode=EvaluationMode.JSON)),
        ("evaluation: {admission: {enabled: false}}", Evaluation(admission=False)),
        ("evaluation: {admission: {}, background: {enabled: false}}", Evaluation(background=False)),
        ("evaluation: {}", Evaluation()),
    ],
)
def test_switches_of_evaluation_are_flattened(line, expected):
    """An evaluation setting without a value keeps its default."""
    assert decoded("ValidatingPolicy", f"{VALIDATING}  {line}\n").spec.evaluation == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("autogen: {podControllers: {controllers: []}}", ((), False)),
        ("autogen: {podControllers: {}}", (None, False)),
        (
            "autogen: {podControllers: {controllers: [jobs]}, validatingAdmissionPolicy: {enabled: true}}",
            (("jobs",), True),
        ),
    ],
)
def test_no_controllers_differ_from_all_of_them(line, expected):
    """An empty list disables autogen; an absent one enables it for all controllers."""
    autogen = decoded("ValidatingPolicy", f"{VALIDATING}  {line}\n").spec.autogen
    assert (autogen.pod_controllers, autogen.admission_policy) == expected


def test_every_expression_of_a_validating_policy_has_its_path():
    """The path leads to the text of the expression in the document."""
    body = (
        CONSTRAINTS
        + "  matchConditions: [{name: a, expression: c}]\n"
        + "  variables: [{name: v, expression: v}]\n"
        + "  validations: [{expression: x, messageExpression: m, message: o, reason: Invalid}]\n"
        + "  auditAnnotations: [{key: k, valueExpression: w}]\n"
        + "  webhookConfiguration: {timeoutSeconds: 7}\n"
    )
    policy = decoded("ValidatingPolicy", body)
    assert isinstance(policy, ValidatingPolicy)
    assert list(policy.spec.expressions()) == [
        Expression("c", ("spec", "matchConditions", 0, "expression")),
        Expression("v", ("spec", "variables", 0, "expression")),
        Expression("x", ("spec", "validations", 0, "expression")),
        Expression("m", ("spec", "validations", 0, "messageExpression")),
        Expression("w", ("spec", "auditAnnotations", 0, "valueExpression")),
    ]
    assert policy.spec.timeout_seconds == 7


def test_a_mutating_policy_knows_its_targets():
    """Targets are constraints or an expression; only the expression that the patch type names counts."""
    body = (
        "  mutations:\n"
        "    - {patchType: JSONPatch, jsonPatch: {expression: j}, applyConfiguration: {expression: a}}\n"
        "    - {patchType: ApplyConfiguration}\n"
        "  reinvocationPolicy: IfNeeded\n"
        "  targetMatchConstraints: {expression: t, matchPolicy: Exact, resourceRules: [{resources: [pods]}]}\n"
        "  targetMatchConditions: [{name: c, expression: u}]\n"
        "  evaluation: {mutateExisting: {enabled: true}, skipBackgroundRequests: false, useServerSideApply: true}\n"
    )
    policy = decoded("MutatingPolicy", body)
    assert isinstance(policy, MutatingPolicy)
    first, second = policy.spec.mutations
    assert (first.patch_type, first.expression) == (
        PatchType.JSON_PATCH,
        Expression("j", ("spec", "mutations", 0, "jsonPatch", "expression")),
    )
    assert second.expression is None
    targets = policy.spec.target_match_constraints
    assert targets.expression == Expression("t", ("spec", "targetMatchConstraints", "expression"))
    assert (targets.constraints.match_policy, targets.constraints.resource_rules[0].resources) == (
        MatchPolicy.EXACT,
        ("pods",),
    )
    assert policy.spec.reinvocation_policy is ReinvocationPolicy.IF_NEEDED
    assert policy.spec.evaluation == Evaluation(
        mutate_existing=True, skip_background_requests=False, use_server_side_apply=True
    )
    assert [each.text for each in policy.spec.expressions()] == ["j", "t", "u"]


def test_a_generating_policy_has_expressions_or_templates():
    """A template is text with or without placeholders."""
    body = (
        "  generate:\n"
        "    - expression: g\n"
        "    - template: {value: 'kind: ConfigMap', interpolate: cel}\n"
        "    - template: {value: 'kind: Secret'}\n"
        "  useServerSideApply: true\n"
        "  evaluation: {synchronize: {enabled: true}, orphanDownstreamOnPolicyDelete: {enabled: true}}\n"
    )
    policy = decoded("GeneratingPolicy", body)
    assert isinstance(policy, GeneratingPolicy)
    assert [(each.template, each.is_interpolated) for each in policy.spec.generate] == [
        (None, False),
        ("kind: ConfigMap", True),
        ("kind: Secret", False),
    ]
    assert policy.spec.generate[1].template_path == ("spec", "generate", 1, "template", "value")
    assert policy.spec.evaluation == Evaluation(synchronize=True, orphan_downstream_on_policy_delete=True)
    assert [each.text for each in policy.spec.expressions()] == ["g"]


def test_a_deleting_policy_has_a_schedule():
    """Conditions and propagation policy are optional."""
    body = SPECS["DeletingPolicy"] + "  conditions: [{name: c, expression: d}]\n  deletionPropagationPolicy: Orphan\n"
    policy = decoded("NamespacedDeletingPolicy", body)
    assert isinstance(policy, DeletingPolicy)
    assert (policy.spec.schedule, policy.spec.deletion_propagation_policy) == ("* * * * *", PropagationPolicy.ORPHAN)
    assert [each.path for each in policy.spec.expressions()] == [("spec", "conditions", 0, "expression")]


def test_an_image_policy_knows_its_attestors():
    """Keys, identities, certificates and roots may be CEL expressions, each with its path."""
    body = VALIDATING + (
        "  matchImageReferences: [{glob: 'ghcr.io/*'}, {expression: r}]\n"
        "  images: [{name: i, expression: e}]\n"
        "  attestations: [{name: sbom, referrer: {type: t}}, {name: s, intoto: {type: u}}]\n"
        "  credentials: {providers: [github], secrets: [s], allowInsecureRegistry: true}\n"
        "  validationConfigurations: {required: false}\n"
        "  attestors:\n"
        "    - name: signed\n"
        "      cosign:\n"
        "        key: {expression: k, hashAlgorithm: sha256}\n"
        "        keyless: {identities: [{issuerRegExp: i, subjectExpression: s}], roots: r}\n"
        "        certificate: {cert: {value: c}, certChain: {expression: d}}\n"
        "        source: {repository: r, tagPrefix: t, PullSecrets: [{name: p}]}\n"
        "        ctlog: {url: u, insecureIgnoreSCT: true}\n"
        "        tuf: {mirror: m, root: {path: p}}\n"
        "    - {name: notated, notary: {certs: {expression: z}}}\n"
    )
    policy = decoded("ImageValidatingPolicy", body)
    assert isinstance(policy, ImageValidatingPolicy)
    cosign = policy.spec.attestors[0].cosign
    path = ("spec", "attestors", 0, "cosign")
    assert cosign.key == Key(
        hash_algorithm="sha256", expression=Expression("k", (*path, "key", "expression")), path=(*path, "key")
    )
    place = (*path, "keyless", "identities", 0)
    assert cosign.keyless.identities == (
        Identity(issuer_reg_exp="i", subject_expression=Expression("s", (*place, "subjectExpression")), path=place),
    )
    assert (cosign.source.pull_secrets, cosign.ctlog.insecure_ignore_sct, cosign.tuf.root_path) == (("p",), True, "p")
    assert [(each.intoto, each.referrer) for each in policy.spec.attestations] == [("", "t"), ("u", "")]
    assert policy.spec.validation_configurations == ValidationConfiguration(required=False)
    assert [each.text for each in policy.spec.expressions()] == ["r", "e", "k", "s", "d", "z", "true"]


@pytest.mark.parametrize(
    ("kind", "body", "code", "path"),
    [
        ("ValidatingPolicy", "  validation: []\n", "unknown-field", "spec.validation"),
        ("ValidatingPolicy", "  validations: [{message: m}]\n", "missing-field", "spec.validations[0]"),
        ("ValidatingPolicy", "  validationActions: [Enforce]\n", "unknown-value", "spec.validationActions[0]"),
        ("ValidatingPolicy", "  failurePolicy: fail\n", "unknown-value", "spec.failurePolicy"),
        ("ValidatingPolicy", "  evaluation: {mutateExisting: {}}\n", "unknown-field", "spec.evaluation.mutateExisting"),
        ("ValidatingPolicy", "  evaluation: {mode: Json}\n", "unknown-value", "spec.evaluation.mode"),
        ("ValidatingPolicy", "  variables: [{name: v, expression: 1}]\n", "wrong-type", "spec.variables[0].expression"),
        ("MutatingPolicy", "  mutations: [{patchType: jsonPatch}]\n", "unknown-value", "spec.mutations[0].patchType"),
        ("GeneratingPolicy", "  matchConditions: []\n", "missing-field", "spec"),
        ("GeneratingPolicy", "  failurePolicy: Fail\n  generate: []\n", "unknown-field", "spec.failurePolicy"),
        ("DeletingPolicy", "  variables: []\n", "missing-field", "spec"),
        ("DeletingPolicy", "  schedule: x\n  matchConditions: []\n", "unknown-field", "spec.matchConditions"),
        ("ImageValidatingPolicy", "  validations: []\n", "missing-field", "spec"),
    ],
)
def test_what_the_schema_refuses_is_located(kind, body, code, path):
    """Unknown fields and values, wrong types and missing fields are errors at their places."""
    assert [(code, path)] == [found[:2] for found in problems(written(kind, body))]


def test_namespaced_kinds_have_no_alpha_version():
    """The Namespaced twins came with v1beta1."""
    text = written("NamespacedValidatingPolicy", VALIDATING, version="v1alpha1")
    assert [found[0] for found in problems(text)] == ["unknown-version"]
