"""ClusterPolicy and Policy decode with their deprecated aliases."""

import pytest

from pyverno.policy.clusterpolicy import FailurePolicy, decode_rule
from pyverno.policy.decode import decode
from pyverno.policy.failureaction import FailureAction
from pyverno.policy.rule import VerifyImages
from pyverno.policy.validate import Validate
from tests.unit.policy.documents import POLICY, cluster_policy, document, problems


def with_spec(line: str) -> str:
    return POLICY.replace("  rules:", f"  {line}\n  rules:")


def test_defaults_are_those_of_kyverno():
    """A short policy is admitted, scanned, audited and fails closed."""
    spec = cluster_policy(POLICY).spec
    assert (spec.admission, spec.background, spec.failure_action, spec.failure_policy) == (
        True,
        True,
        FailureAction.AUDIT,
        FailurePolicy.FAIL,
    )


@pytest.mark.parametrize(
    ("line", "attribute", "expected"),
    [
        ("validationFailureAction: enforce", "failure_action", FailureAction.ENFORCE),
        ("failurePolicy: Ignore", "failure_policy", FailurePolicy.IGNORE),
        ("webhookConfiguration: {failurePolicy: Ignore}", "failure_policy", FailurePolicy.IGNORE),
        ("generateExisting: true", "generate_existing", True),
        ("generateExistingOnPolicyUpdate: true", "generate_existing", True),
        ("mutateExistingOnPolicyUpdate: true", "mutate_existing_on_policy_update", True),
        ("schemaValidation: false", "background", True),
    ],
)
def test_aliases_are_resolved(line, attribute, expected):
    """Deprecated fields mean what their replacements mean."""
    assert getattr(cluster_policy(with_spec(line)).spec, attribute) == expected


def test_the_oldest_alias_is_warned_about():
    """Kyverno 1.19 rejects generateExistingOnPolicyUpdate; older policies still have it."""
    warnings = decode(document(with_spec("generateExistingOnPolicyUpdate: true"))).warnings
    assert [warning.partition(": ")[2] for warning in warnings] == [
        "spec.generateExistingOnPolicyUpdate: `generateExistingOnPolicyUpdate` is deprecated: "
        "use `generate.generateExisting` of the rule"
    ]


def test_the_old_timeout_reaches_the_webhook():
    """webhookTimeoutSeconds is the timeout of the webhook."""
    assert cluster_policy(with_spec("webhookTimeoutSeconds: 7")).spec.webhook.timeout_seconds == 7


def test_a_rule_keeps_its_place_and_json():
    """A rule holds its location and its original JSON."""
    (rule,) = cluster_policy(POLICY).spec.rules
    assert rule.path == ("spec", "rules", 0)
    assert rule.raw["validate"]["pattern"] == {"spec": {"hostNetwork": False}}
    assert isinstance(rule.action, Validate)


@pytest.mark.parametrize(
    ("action", "text"),
    [
        ("validate: {}", "No operation defined in the rule 'r'."),
        (
            "validate: {message: a}\n      mutate: {patchesJson6902: '[]'}",
            "Multiple operations defined in the rule 'r'",
        ),
    ],
)
def test_a_rule_has_exactly_one_action(action, text):
    """None and several are errors; an empty block counts as none."""
    body = f"    - name: r\n      match: {{}}\n      {action}\n"
    ((code, path, message),) = problems(POLICY.partition("    - name")[0] + body)
    assert (code, path) == ("rule-action", "spec.rules[0]")
    assert message.startswith(text)


def test_flat_match_is_one_block():
    """The legacy form gives one filter, which includes the users."""
    text = POLICY.replace(
        "        any:\n          - resources:\n              kinds: [Pod]",
        "        resources:\n          kinds: [Pod]\n        clusterRoles: [admin]",
    )
    (rule,) = cluster_policy(text).spec.rules
    assert rule.match.any == ()
    assert rule.match.flat is not None
    assert (rule.match.flat.resources.kinds, rule.match.flat.user_info.cluster_roles) == (("Pod",), ("admin",))


def test_v2beta1_has_no_flat_match():
    """The newer version dropped the legacy form."""
    text = POLICY.replace("kyverno.io/v1", "kyverno.io/v2beta1").replace(
        "any:\n          - resources:\n              kinds: [Pod]", "resources:\n          kinds: [Pod]"
    )
    assert [path for _, path, _ in problems(text)] == ["spec.rules[0].match.resources"]


def test_legacy_image_fields_become_an_attestor():
    """image and key give a reference and a key entry."""
    text = POLICY.partition("      validate")[0] + (
        "      verifyImages:\n        - image: ghcr.io/a/*\n          key: PEM\n          annotations: {a: b}\n"
    )
    action = cluster_policy(text).spec.rules[0].action
    assert isinstance(action, VerifyImages)
    (entry,) = action.entries
    assert entry.image_references == ("ghcr.io/a/*",)
    assert entry.attestors[0].entries[0].keys.public_keys == "PEM"
    assert entry.attestors[0].entries[0].annotations == {"a": "b"}


def test_a_legacy_key_also_guards_attestations():
    """Attestations without attestors of their own are checked with the legacy key."""
    text = POLICY.partition("      validate")[0] + (
        "      verifyImages:\n        - image: ghcr.io/a/*\n          key: PEM\n          attestations: [{type: t}]\n"
    )
    (entry,) = cluster_policy(text).spec.rules[0].action.entries
    assert entry.attestors == ()
    assert entry.attestations[0].attestors[0].entries[0].keys.public_keys == "PEM"


def test_a_made_rule_points_at_its_origin():
    """decode_rule locates a copy at the rule it was made from."""
    policy = cluster_policy(POLICY)
    (rule,) = policy.spec.rules
    copy = decode_rule({**rule.raw, "name": "copy"}, policy=policy, path=rule.path)
    assert (copy.name, copy.path) == ("copy", rule.path)


def test_key_names_the_namespace_of_a_policy():
    """Exceptions name namespaced policies by namespace and name."""
    text = POLICY.replace("kind: ClusterPolicy", "kind: Policy").replace(
        "name: check", "name: check\n  namespace: team"
    )
    assert cluster_policy(text).key == "team/check"
