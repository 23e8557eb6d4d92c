"""Rules that Kyverno's policy webhook rejects are errors with its texts, all of them at once."""

import subprocess
import sys

import pytest

from pyverno.compiler import compile_document
from pyverno.compiler.validation.rules import validate
from pyverno.policy.decode import decode
from tests.unit.policy.documents import POLICY, cluster_policy, document

BACKGROUND_OFF = POLICY.replace("  rules:", "  background: false\n  rules:")
DENY = "        deny: {conditions: {any: [%s]}}\n"
HEAD = POLICY.partition("      match:")[0]
MATCH = POLICY.partition("    - name: pods\n")[2].partition("      validate:")[0]
PATTERN = "      validate:\n" + POLICY.partition("      validate:\n")[2]


def found(text: str) -> list[str]:
    decoded = decode(document(text))
    assert decoded.errors == ()
    return [error.message for error in validate(decoded.policy).errors]


def rule(*, match: str = MATCH, action: str = PATTERN, extra: str = "", background: bool = True) -> str:
    head = HEAD if background else HEAD.replace("  rules:", "  background: false\n  rules:")
    return head + match + extra + action


def test_a_good_policy_has_no_problems():
    """The smallest useful policy is valid and gives no warning."""
    problems = validate(cluster_policy(POLICY))
    assert (problems.errors, problems.warnings) == ((), ())


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "        any:\n",
            "        all: [{resources: {kinds: [Pod]}}]\n        any:\n",
            "Can't specify any and all together",
        ),
        (
            "        any:\n",
            "        resources: {kinds: [Pod]}\n        any:\n",
            "can't specify any/all together with match resources",
        ),
        ("kinds: [Pod]", "kinds: []", "match resources not specified"),
        (
            "kinds: [Pod]",
            "names: [a]",
            "policy can only deal with the metadata field of the resource if the rule does not match any kind",
        ),
        (
            "kinds: [Pod]",
            "kinds: [Pod]\n              name: a\n              names: [b]",
            "Both name and names can not be specified together",
        ),
        ("kinds: [Pod]", "kinds: [Pod]\n              selector: {}", "The requirements are not specified in selector"),
        (
            "kinds: [Pod]",
            "kinds: [Pod]\n            subjects: [{kind: Robot, name: a}]",
            "kind must be 'User', 'Group', or 'ServiceAccount'",
        ),
        (
            "kinds: [Pod]",
            "kinds: [Pod]\n            subjects: [{kind: ServiceAccount, name: a}]",
            "namespace is required when Kind is ServiceAccount",
        ),
        ("kinds: [Pod]", "kinds: [Pod]\n            roles: [admin]", "Role is expected to be in namespace:name format"),
        ("kinds: [Pod]", "kinds: ['*', Pod]", "wildcard policy can not deal with more than one kind"),
        (
            "kinds: [Pod]",
            "kinds: ['*']",
            "policy can only deal with the metadata field of the resource if the rule does not match any kind",
        ),
        (
            "      validate:",
            "      exclude: {any: [{resources: {kinds: [Pod]}}]}\n      validate:",
            "Rule is matching an empty set",
        ),
        (
            "kinds: [Pod]",
            "kinds: ['{{ request.kind }}']",
            'policy contains invalid variables: rule "pods" should not have variables in match section',
        ),
    ],
)
def test_match_problems_are_found(old, new, expected):
    """Forms, users, selectors and kinds are checked."""
    assert expected in found(BACKGROUND_OFF.replace(old, new))


def test_a_wildcard_kind_needs_background_off():
    """A scan of everything is refused."""
    messages = found(
        POLICY.replace("kinds: [Pod]", "kinds: ['*']").replace(
            "spec:\n            hostNetwork: false", "metadata: {name: a}"
        )
    )
    assert messages == [
        "wildcard policy not allowed in background mode. "
        "Set spec.background=false to disable background mode for this policy rule "
    ]


def test_a_namespaced_policy_sees_its_namespace_only():
    """Namespaces and cluster-scoped kinds are refused in a Policy."""
    text = POLICY.replace("kind: ClusterPolicy", "kind: Policy").replace(
        "kinds: [Pod]", "kinds: [Namespace]\n              namespaces: [a]"
    )
    assert sorted(found(text)) == [
        "Cluster wide resource 'Namespace' not allowed in namespaced policy",
        "Filtering namespaces not allowed in namespaced policies",
    ]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("webhookTimeoutSeconds: 31", "the timeout value must be between 1 and 30 seconds"),
        (
            "failurePolicy: Fail\n  webhookConfiguration: {failurePolicy: Fail}",
            "remove the deprecated field and use spec.webhookConfiguration.failurePolicy instead",
        ),
        ("admission: false\n  background: false", "disabling both admission and background processing is not allowed"),
        (
            "validationFailureActionOverrides: [{action: Audit, namespaces: [a]}, {action: enforce, namespaces: [a]}]",
            "conflicting namespaces found in path: spec.validationFailureActionOverrides[1].namespaces: a",
        ),
        (
            "validationFailureActionOverrides: [{action: Audit, namespaces: ['a*']}, "
            "{action: Enforce, namespaces: [ab]}]",
            "wildcard pattern 'a*' matches with namespace 'ab'",
        ),
    ],
)
def test_spec_problems_are_found(spec, expected):
    """Modes, timeouts, aliases and overrides are checked."""
    assert found(POLICY.replace("  rules:", f"  {spec}\n  rules:")) == [expected]


def test_names_are_checked():
    """Names fit into labels and are unique; the annotation has no `all`."""
    text = (POLICY + POLICY.partition("  rules:\n")[2]).replace(
        "  name: check", f"  name: {'n' * 64}\n  annotations: {{pod-policies.kyverno.io/autogen-controllers: all}}"
    )
    assert sorted(found(text)) == [
        "Autogen annotation does not support 'all' anymore, remove the annotation or set it to a valid value",
        "Duplicate rule name: 'pods'",
        "Too long: may not be more than 63 bytes",
    ]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("{key: a, operator: Equals}", "entered value of `key`, `value` or `operator` is missing or misspelled"),
        ("{key: a, operator: Equals, value: 1, vale: 2}", "unknown field `vale`"),
        (
            "{key: '{{ request.operation }}', operator: Equals, value: CREAT}",
            "unknown value 'CREAT' found under the 'value' field. Only the following values are "
            "allowed: [CREATE, UPDATE, DELETE, CONNECT]: did you mean `CREATE`?",
        ),
        (
            "{key: '{{request.operation}}', operator: AnyIn, value: [1]}",
            "'value[0]' found to be a number. The provided values are expected to be strings",
        ),
    ],
)
def test_condition_problems_are_found(condition, expected):
    """Conditions are complete and spelled right."""
    assert found(rule(action="      validate:\n" + DENY % condition)) == [expected]


def test_an_unknown_operator_lists_the_known_ones():
    """Spelling matters, and so does case."""
    for wrong in ("equals", "Eqals"):
        (message,) = found(rule(action="      validate:\n" + DENY % f"{{key: a, operator: {wrong}, value: a}}"))
        assert message.startswith('entered value of `operator` is invalid. valid values: ["Equal" "Equals"')
        assert message.endswith("did you mean `Equals`?")


def test_a_condition_of_a_loop_needs_an_operator():
    """Key and value may be missing there, the operator may not."""
    loop = "        foreach:\n          - list: request.object.spec.containers\n    "
    action = "      validate:\n" + loop + DENY
    assert [] == found(rule(action=action % "{key: '{{ element.name }}', operator: Equals, value: a}"))
    (message,) = found(rule(action=action % "{key: '{{ element.name }}', value: a}"))
    assert message.startswith("entered value of `operator` is invalid. valid values: [")


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        (
            "{name: request.a, variable: {value: 1}}",
            "entry name request.a is invalid as it conflicts with a pre-defined variable request",
        ),
        ("{name: a, variable: {}}", "a variable must define a value or a jmesPath expression"),
        (
            "{name: a, variable: {value: 1, default: 2}}",
            "a variable must define a default value only when a jmesPath expression is defined",
        ),
        ("{name: a, configMap: {name: c}}", "a namespace is required for configMap context entry"),
        ("{name: a, imageRegistry: {reference: 'a b'}}", "bad image: a b: invalid reference format"),
        ("{name: a, apiCall: {urlPath: /a, service: {url: b}}}", "a URLPath cannot be used for service API calls"),
    ],
)
def test_context_problems_are_found(entry, expected):
    """Context entries have usable names and one source."""
    assert expected in found(rule(extra=f"      context:\n        - {entry}\n"))


def test_a_query_that_does_not_parse_is_found():
    """JMESPath is compiled at admission."""
    (message,) = found(rule(extra="      context:\n        - {name: a, variable: {jmesPath: 'a['}}\n"))
    assert message.startswith("failed to parse JMESPath a[: ")


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        ("      validate: {message: a}\n", "one of pattern, anyPattern, deny, foreach, cel must be specified"),
        (
            "      validate: {message: a, assert: {object: {a: 1}}}\n",
            "one of pattern, anyPattern, deny, foreach, cel must be specified",
        ),
        (
            "      validate: {pattern: {a: b}, deny: {}}\n",
            "only one of pattern, anyPattern, deny, foreach, cel can be specified",
        ),
        ("      validate: {pattern: {+(a): b}}\n", "unsupported anchor +(a)"),
        ("      validate: {pattern: {^(a): b}}\n", "existence anchor should have value of type list"),
        ("      validate: {foreach: [{pattern: {a: b}}]}\n", "foreach.list is required"),
        (
            "      validate: {foreach: [{list: a}]}\n",
            "one of pattern, anyPattern, deny, or a nested foreach must be specified",
        ),
        (
            "      validate: {pattern: {metadata: {labels: {a: 1}}}}\n",
            'labels and annotations supports only string values, "use double quotes around the non string values"',
        ),
        (
            "      validate: {cel: {expressions: [{expression: 'true'}], paramKind: {kind: A, apiVersion: v1}}}\n",
            "cel.paramRef is required",
        ),
        (
            "      validate: {podSecurity: {level: baseline, exclude: [{controlName: Capabilities}]}}\n",
            "exclude.images must be specified for the container level control",
        ),
        (
            "      mutate: {patchStrategicMerge: {a: b}, patchesJson6902: '[]'}\n",
            "only one of `patchStrategicMerge` or `patchesJson6902` is allowed",
        ),
        (
            "      mutate: {patchesJson6902: '[{op: add, path: a, value: 1}]'}\n",
            "path must begin with a forward slash: a",
        ),
        ("      mutate: {patchesJson6902: '[{op: sub, path: /a}]'}\n", "unexpected kind: sub"),
        (
            "      mutate: {foreach: [{list: a, patchStrategicMerge: {a: b}, foreach: "
            "[{list: b, patchesJson6902: '[]'}]}]}\n",
            "a nested foreach cannot contain other declarations",
        ),
        (
            "      mutate: {mutateExistingOnPolicyUpdate: true, patchStrategicMerge: {a: b}}\n",
            "rules[0].mutate.targets has to be specified when mutateExistingOnPolicyUpdate is set",
        ),
        (
            "      generate: {apiVersion: v1, kind: ConfigMap, name: a, data: {}}\n",
            "target namespace must be set for a namespaced resource",
        ),
        (
            "      generate: {apiVersion: v1, kind: Namespace, name: a, namespace: b, data: {}}\n",
            "target namespace must not be set for a cluster-wide resource",
        ),
        ("      generate: {apiVersion: v1, kind: ConfigMap, namespace: b, data: {}}\n", "name can not be empty"),
        (
            "      generate: {apiVersion: v1, kind: ConfigMap, name: a, namespace: b, data: {(x): y}}\n",
            "anchors not supported on generate resources: unsupported anchor (x)",
        ),
        ("      verifyImages: [{failureAction: Enforce, imageReferences: []}]\n", "An image reference is required"),
        (
            "      verifyImages: [{imageReferences: [a]}]\n",
            "mutateDigest must be set to false for ‘Audit’ failure action",
        ),
        (
            "      verifyImages: [{failureAction: Enforce, imageReferences: [a], attestors: "
            "[{count: 2, entries: [{keys: {kms: a}}]}]}]\n",
            "Count cannot exceed length of entries",
        ),
        (
            "      verifyImages: [{failureAction: Enforce, imageReferences: [a], attestors: "
            "[{entries: [{keyless: {issuer: a}}]}]}]\n",
            "Either Rekor URL or roots are required",
        ),
    ],
)
def test_action_problems_are_found(action, expected):
    """Each action is checked for what it needs."""
    assert expected in found(rule(action=action))


def test_unknown_kinds_may_be_generated_anywhere():
    """The scope of a custom kind is unknown offline, so its namespace is not checked."""
    assert found(rule(action="      generate: {apiVersion: example.com/v1, kind: Widget, name: a, data: {}}\n")) == []


@pytest.mark.parametrize(
    ("variable", "background", "expected"),
    [
        ("{{ request.object.a }}", True, []),
        ("{{ request.userInfo.username }}", False, []),
        (
            "{{ request.roles }}",
            True,
            [
                "only select variables are allowed in background mode. Set spec.background=false to "
                "disable background mode for this policy rule: variable {{ request.roles }} is not allowed"
            ],
        ),
        (
            "{{ serviceAccountName }}",
            True,
            [
                "only select variables are allowed in background mode. Set spec.background=false to "
                "disable background mode for this policy rule: variable {{ serviceAccountName }} is not allowed"
            ],
        ),
        ("{{ length(a) }}", True, []),
        ("{{ @ }}", True, []),
        ("{{ element.a }}", True, ["variable 'element.a' present outside of foreach at path /validate/message"]),
    ],
)
def test_variables_are_checked_by_their_text(variable, background, expected):
    """Background mode knows no user; elements exist in loops only."""
    assert (
        found(rule(action=PATTERN.replace("host network is not allowed", f"'{variable}'"), background=background))
        == expected
    )


@pytest.mark.parametrize(
    ("variable", "background", "reason"),
    [
        ("foo.bar", False, "foo.bar is not defined: no context entry is named `foo`"),
        ("requst.object.metadata.name", True, "did you mean `request.object.metadata.name`?"),
        ("teems.data.x", True, "did you mean `teams.data.x`?"),
        ("teams.x", True, "expected `teams.data` or `teams.metadata`"),
        ("request", True, "expected a field of it, such as `request.object`"),
        ("target.a", True, "only rules with `mutate.targets` have a `target`"),
    ],
)
def test_a_variable_that_nothing_defines_is_refused_with_what_was_meant(variable, background, reason):
    """The message begins as Kyverno's does, and has a suggestion in place of a regular expression."""
    (message,) = found(
        rule(
            extra="      context:\n        - {name: teams, configMap: {name: c, namespace: d}}\n",
            action=PATTERN.replace("host network is not allowed", f"'{{{{ {variable} }}}}'"),
            background=background,
        )
    )
    assert message.startswith(
        "policy contains invalid variables: variable substitution failed for rule pods: variable "
    )
    assert message.endswith(reason)
    assert "regex" not in message


def test_a_context_entry_defines_a_variable():
    """Names of context entries are known, with dashes in quotes too."""
    text = rule(
        extra="      context:\n        - {name: my-map, configMap: {name: c, namespace: d}}\n",
        action=PATTERN.replace("host network is not allowed", "'{{ \"my-map\".data.x }}'"),
    )
    assert found(text) == []


def test_targets_may_not_decide_about_themselves():
    """The rule's own context and preconditions do not see the target."""
    text = rule(
        match=MATCH.replace("[Pod]", "[Secret]"),
        extra="      preconditions: {all: [{key: '{{ target.a }}', operator: Equals, value: b}]}\n",
        action=(
            "      mutate: {targets: [{apiVersion: v1, kind: ConfigMap, name: a}], "
            "patchStrategicMerge: {a: '{{ target.b }}'}}\n"
        ),
    )
    (message,) = found(text)
    assert message.startswith(
        "policy contains invalid variables: invalid variables defined at mutate.targets[0]: variable target.a "
    )


def test_all_problems_come_at_once_and_copies_repeat_none():
    """Upstream stops at the first problem; pyverno reports each problem once despite autogen copies."""
    text = rule(
        action="      validate: {pattern: {+(a): b}}\n", extra="      context:\n        - {name: a, variable: {}}\n"
    )
    assert found(text) == ["a variable must define a value or a jmesPath expression", "unsupported anchor +(a)"]


def test_immutable_parts_of_a_generate_rule_stay():
    """An update may change data, not the match of a synchronised rule."""
    action = (
        "      generate: {{apiVersion: v1, kind: ConfigMap, name: {}, namespace: b, "
        "synchronize: true, data: {{a: {}}}}}\n"
    )
    old = cluster_policy(rule(action=action.format("a", "x")))
    data = cluster_policy(rule(action=action.format("a", "z")))
    match = cluster_policy(rule(action=action.format("a", "x"), match=MATCH.replace("[Pod]", "[Service]")))
    target = cluster_policy(rule(action=action.format("b", "x")))
    assert [error.message for error in validate(data, old=old).errors] == []
    assert [error.message for error in validate(match, old=old).errors] == [
        "changes of immutable fields of a rule spec in a generate rule is disallowed"
    ]
    assert validate(target, old=old).warnings == (
        "no synchronization will be performed to the old target resource upon policy updates: "
        "changes in the generate rule pattern could result in stale targets",
    )


def test_defaults_that_only_one_of_two_definitions_fills_in_are_no_change():
    """A policy that was stored by Kyverno's definitions is updated by ours, and the other way round."""
    action = (
        "      generate: {{apiVersion: v1, kind: ConfigMap, name: a, namespace: b, "
        "synchronize: true, data: {{a: {}}}}}\n"
    )
    call = "      context: [{{name: a, apiCall: {{urlPath: /version{}}}}}]\n"
    filled = "      skipBackgroundRequests: true\n      exclude: {}\n" + call.format(", method: GET")
    stored = cluster_policy(rule(action=action.format("x"), extra=filled))
    written = cluster_policy(rule(action=action.format("y"), extra=call.format("")))
    background = cluster_policy(
        rule(action=action.format("y"), extra="      skipBackgroundRequests: false\n" + call.format(""))
    )
    refused = ["changes of immutable fields of a rule spec in a generate rule is disallowed"]
    assert ([], [], refused) == tuple(
        [error.message for error in validate(new, old=old).errors]
        for new, old in ((written, stored), (stored, written), (background, stored))
    )


BLOCKS = "{any: [{resources: {kinds: [Pod]}}]}"


@pytest.mark.parametrize(
    ("kind", "spec", "expected"),
    [
        (
            "ClusterCleanupPolicy",
            f"{{schedule: '* * * *', match: {BLOCKS}}}",
            [
                "schedule spec in the cleanupPolicy is not in proper cron format: "
                "syntax error: expected exactly 5 fields, found 4: [* * * *]"
            ],
        ),
        (
            "ClusterCleanupPolicy",
            f"{{schedule: '0 * * 13 *', match: {BLOCKS}}}",
            [
                "schedule spec in the cleanupPolicy is not in proper cron format: "
                "syntax error in month field: end of range (13) above maximum (12): 13"
            ],
        ),
        (
            "ClusterCleanupPolicy",
            f"{{schedule: '* * * * *', match: {BLOCKS}, context: [{{name: a, configMap: {{name: b}}}}]}}",
            ["ConfigMap is not allowed in CleanUp Policy"],
        ),
        (
            "ClusterCleanupPolicy",
            "{schedule: '* * * * *', match: {any: [{resources: {kinds: [Pod]}, clusterRoles: [a]}]}}",
            ["Usage of user info is forbidden"],
        ),
        (
            "ClusterCleanupPolicy",
            f"{{schedule: '* * * * *', match: {BLOCKS}, exclude: {BLOCKS}}}",
            ["CleanupPolicy is matching an empty set"],
        ),
        (
            "PolicyException",
            f"{{match: {BLOCKS}, exceptions: [{{policyName: '', ruleNames: [a]}}]}}",
            ["An exception requires a policy name"],
        ),
        (
            "PolicyException",
            "{match: {any: [{resources: {kinds: [Pod]}, clusterRoles: [a]}]}, "
            "exceptions: [{policyName: p, ruleNames: [a]}]}",
            ["Usage of user info is forbidden"],
        ),
        (
            "PolicyException",
            f"{{match: {BLOCKS}, exceptions: [{{policyName: p, ruleNames: [a]}}], podSecurity: "
            f"[{{controlName: Sysctls, images: [a]}}]}}",
            ["exclude.images must not be specified for the pod level control"],
        ),
        ("GlobalContextEntry", "{}", ["A global context entry should either have KubernetesResource or APICall"]),
        (
            "GlobalContextEntry",
            "{kubernetesResource: {version: v1beta1, resource: a}}",
            ["A Resource entry requires a group"],
        ),
        (
            "GlobalContextEntry",
            "{apiCall: {urlPath: /a, refreshInterval: 0s}}",
            ["A Resource entry requires a refresh interval greater than 0 seconds"],
        ),
        (
            "GlobalContextEntry",
            "{kubernetesResource: {version: v1, resource: a}, projections: [{name: x, jmesPath: a}]}",
            ["A projection entry requires a name different from the global context entry name"],
        ),
    ],
)
def test_other_documents_are_checked(kind, spec, expected):
    """Cleanup policies, exceptions and global context entries have their own checks."""
    version = "v2beta1" if kind == "GlobalContextEntry" else "v2"
    assert found(f"apiVersion: kyverno.io/{version}\nkind: {kind}\nmetadata: {{name: x}}\nspec: {spec}") == expected


CEL = "apiVersion: policies.kyverno.io/v1\nkind: {}\nmetadata: {{name: p, namespace: team}}\nspec:\n"
PODS = (
    "  matchConstraints:\n"
    '    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]\n'
)


@pytest.mark.parametrize(
    ("kind", "body", "expected"),
    [
        ("ValidatingPolicy", "  validations: [{expression: 'true'}]\n", ["match-constraints"]),
        ("DeletingPolicy", f"{PODS}  schedule: often\n", ["schedule"]),
        ("GeneratingPolicy", f"{PODS}  generate: [{{}}]\n", ["generate"]),
        ("PolicyException", "  policyRefs: []\n", ["exception"]),
        ("ValidatingPolicy", f"{PODS}  validations: [{{expression: 'object.spec.x +'}}]\n", ["cel-compile"]),
        (
            "NamespacedValidatingPolicy",
            f"{PODS}  validations: [{{expression: \"http.Get('a').b == 1\"}}]\n",
            ["http"],
        ),
    ],
)
def test_an_error_of_a_cel_policy_is_reported_once(kind, body, expected):
    """Validation, lowering and the copies for pod controllers may all find the same mistake."""
    compiled = compile_document(document(CEL.format(kind) + body))
    assert expected == [error.code for error in compiled.errors]


def test_mistakes_of_one_place_are_reported_together():
    """A place that has several mistakes is no reason to leave out the others."""
    template = '  generate: [{template: {interpolate: cel, value: "a: ((object.x +))\\nb: ((object.y -))"}}]\n'
    compiled = compile_document(document(CEL.format("GeneratingPolicy") + PODS + template))
    assert ["spec.generate[0].template.value"] * 2 == [error.path for error in compiled.errors]


def test_policies_without_cel_do_without_cel():
    """A run that needs no expressions does not load the language."""
    program = (
        "import sys\nfrom pyverno.compiler import compile_document\n"
        "from pyverno.kube.yaml.documents import load_documents\n"
        f"assert not compile_document(load_documents({POLICY!r})[0]).errors\n"
        "print([name for name in sys.modules if name.startswith('pyverno.lang.cel')])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
