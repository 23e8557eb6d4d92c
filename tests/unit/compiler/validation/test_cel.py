"""CEL policies that upstream refuses before it compiles an expression are errors with their location."""

import pytest

from pyverno.compiler.validation.cel import check_cel_exception, check_cel_policy, uses_name
from pyverno.compiler.validation.findings import Findings
from pyverno.policy.cel.exception import CelException
from pyverno.policy.decode import decode
from tests.unit.policy.documents import document

RULES = '  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE]}]}\n'
REQUIRED = "Required value: a matchConstraints with at least one resource rule is required"
MODES = "disabling both admission and mutateExisting evaluation modes is not allowed"


def found(kind, body, **kwargs):
    text = f"apiVersion: policies.kyverno.io/v1\nkind: {kind}\nmetadata: {{name: p, namespace: team}}\nspec:\n{body}"
    source = document(text)
    decoded = decode(source)
    assert decoded.errors == ()
    findings = Findings(source)
    if isinstance(decoded.policy, CelException):
        check_cel_exception(decoded.policy, findings)
    else:
        check_cel_policy(decoded.policy, findings, **kwargs)
    return findings.problems()


def errors(kind, body, **kwargs):
    return [(error.path, error.message) for error in found(kind, body, **kwargs).errors]


@pytest.mark.parametrize(
    ("kind", "body", "expected"),
    [
        ("ValidatingPolicy", RULES, []),
        ("ValidatingPolicy", "  variables: []\n", [("spec.matchConstraints", REQUIRED)]),
        ("ValidatingPolicy", "  matchConstraints: {}\n", [("spec.matchConstraints", REQUIRED)]),
        ("ImageValidatingPolicy", "  attestors: []\n  validations: []\n", [("spec.matchConstraints", REQUIRED)]),
        (
            "ImageValidatingPolicy",
            "  matchConstraints: {resourceRules: []}\n  attestors: []\n  validations: []\n",
            [("spec.matchConstraints", REQUIRED)],
        ),
        ("GeneratingPolicy", "  generate: [{expression: x}]\n", [("spec.matchConstraints", REQUIRED)]),
        ("DeletingPolicy", "  schedule: '@daily'\n", [("spec.matchConstraints", REQUIRED)]),
        ("ValidatingPolicy", "  evaluation: {mode: JSON}\n", []),
        ("ValidatingPolicy", "  evaluation: {mode: Envoy}\n", []),
        ("ImageValidatingPolicy", "  evaluation: {mode: JSON}\n  attestors: []\n  validations: []\n", []),
    ],
)
def test_constraints_are_required_for_kubernetes_objects(kind, body, expected):
    """A policy that matches nothing protects nothing (d70926cd); other payloads are matched by conditions alone."""
    assert errors(kind, body) == expected


TWICE = "[{name: a, expression: b}, {name: c, expression: b}, {name: a, expression: d}]\n"


@pytest.mark.parametrize(
    ("kind", "field", "rest"),
    [
        ("ValidatingPolicy", "variables", ""),
        ("ValidatingPolicy", "matchConditions", ""),
        ("MutatingPolicy", "targetMatchConditions", ""),
        ("GeneratingPolicy", "variables", "  generate: [{expression: x}]\n"),
        ("DeletingPolicy", "conditions", "  schedule: '@daily'\n"),
    ],
)
def test_names_are_unique(kind, field, rest):
    """They are the keys of lists that are maps."""
    expected = [(f"spec.{field}[2]", 'Duplicate value: {"name":"a"}')]
    assert errors(kind, f"{RULES}{rest}  {field}: {TWICE}") == expected


def test_names_of_image_policies_may_repeat():
    """The schema of that kind has no keys."""
    assert errors("ImageValidatingPolicy", f"{RULES}  attestors: []\n  validations: []\n  variables: {TWICE}") == []


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("  evaluation: {admission: {enabled: false}}\n", [("spec.evaluation", MODES)]),
        ("  evaluation: {admission: {enabled: false}, mutateExisting: {enabled: true}}\n", []),
    ],
)
def test_a_mutating_policy_runs_at_some_time(body, expected):
    """At admission, on existing objects, or both."""
    assert errors("MutatingPolicy", RULES + body) == expected


@pytest.mark.parametrize(
    ("expression", "enabled", "is_refused"),
    [
        ("variables.x == 1", "true", True),
        ("'variables.x' == object.a", "true", False),
        ("variables.x ==", "true", False),
        ("variables.x == 1", "false", False),
    ],
)
def test_conditions_of_a_generated_admission_policy_know_no_variables(expression, enabled, is_refused):
    """Kubernetes evaluates them before it computes variables."""
    body = (
        f'{RULES}  matchConditions: [{{name: a, expression: "{expression}"}}]\n'
        f"  autogen: {{mutatingAdmissionPolicy: {{enabled: {enabled}}}}}\n"
    )
    places = [path for path, _ in errors("MutatingPolicy", body)]
    assert places == (["spec.matchConditions[0].expression"] if is_refused else [])


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("{expression: a}", []),
        ("{template: {value: a}}", []),
        ("{}", [("spec.generate[0]", "exactly one of expression or template must be set")]),
        (
            "{expression: a, template: {value: b}}",
            [("spec.generate[0]", "exactly one of expression or template must be set")],
        ),
        ("{template: {value: ''}}", [("spec.generate[0].template.value", "must be at least 1 character long")]),
    ],
)
def test_generate_entries_have_one_form(entry, expected):
    """An expression or a template, never both."""
    assert errors("GeneratingPolicy", f"{RULES}  generate: [{entry}]\n") == expected


def test_there_is_something_to_generate():
    """An empty list is refused by the schema."""
    assert errors("GeneratingPolicy", f"{RULES}  generate: []\n") == [("spec.generate", "must have at least 1 item")]


@pytest.mark.parametrize(
    ("schedule", "message"),
    [
        ("* * * * *", None),
        ("0 0 L * *", None),
        ("", "schedule is required"),
        ("@every 1h", "schedule spec in the deletingPolicy is not in proper cron format: "),
        ("1 2", "schedule spec in the deletingPolicy is not in proper cron format: "),
    ],
)
def test_schedules_are_cron_lines(schedule, message):
    """They are read by the parser that runs them."""
    problems = errors("NamespacedDeletingPolicy", f"{RULES}  schedule: '{schedule}'\n")
    assert [path for path, _ in problems] == ([] if message is None else ["spec.schedule"])
    assert all(text.startswith(message) for _, text in problems)


@pytest.mark.parametrize(
    ("kind", "expression", "is_refused"),
    [
        ("NamespacedValidatingPolicy", "http.Get('x').a == 1", True),
        ("NamespacedValidatingPolicy", ".http.Get('x').a == 1", True),
        ("NamespacedValidatingPolicy", "object.http == 'http'", False),
        ("ValidatingPolicy", "http.Get('x').a == 1", False),
    ],
)
def test_namespaced_policies_make_no_http_calls(kind, expression, is_refused):
    """HTTP calls are refused even if their answer is unused."""
    body = f'{RULES}  variables: [{{name: a, expression: "{expression}"}}]\n'
    places = [path for path, _ in errors(kind, body)]
    assert places == (["spec.variables[0].expression"] if is_refused else [])


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("  attestors: [{name: a, cosign: {}}]\n", []),
        ("  attestors: [{name: a}]\n", [("spec.attestors[0]", "exactly one of cosign or notary must be set")]),
        (
            "  attestors: [{name: a, cosign: {}, notary: {}}]\n",
            [("spec.attestors[0]", "exactly one of cosign or notary must be set")],
        ),
        (
            "  attestors: [{name: a, notary: {certs: {}}}]\n",
            [("spec.attestors[0].notary.certs", "exactly one of value or expression must be set")],
        ),
        (
            "  attestors: []\n  matchImageReferences: [{}, {glob: a, expression: b}]\n",
            [
                ("spec.matchImageReferences[0]", "either glob or expression must be set"),
                ("spec.matchImageReferences[1]", "only one of glob or expression can be set"),
            ],
        ),
    ],
)
def test_alternatives_of_image_policies(lines, expected):
    """A policy must write exactly one of the schema's alternatives."""
    assert errors("ImageValidatingPolicy", f"{RULES}  validations: []\n{lines}") == expected


@pytest.mark.parametrize(
    ("references", "expected"),
    [
        ("[{name: a, kind: b}]", []),
        ("[]", [("spec.policyRefs", "must specify at least one policy ref")]),
        (
            "[{name: '', kind: ''}]",
            [
                ("spec.policyRefs[0].name", "must specify policy name"),
                ("spec.policyRefs[0].kind", "must specify policy kind"),
            ],
        ),
    ],
)
def test_exceptions_name_policies(references, expected):
    """An exception to nothing is a mistake."""
    assert errors("PolicyException", f"  policyRefs: {references}\n") == expected


def test_words_that_no_request_has_are_warned_about():
    """Upstream accepts them, and the rule then never matches."""
    body = "  matchConstraints: {resourceRules: [{operations: [CREATE, Update], scope: namespaced}]}\n"
    problems = found("ValidatingPolicy", body)
    assert problems.errors == ()
    assert [warning.partition(": ")[2] for warning in problems.warnings] == [
        "unknown operation `Update` matches no request: did you mean `UPDATE`?",
        "unknown scope `namespaced` matches no request: did you mean `Namespaced`?",
    ]


def test_deep_expressions_are_left_to_the_compiler():
    """An expression that cannot be parsed mentions no name."""
    assert uses_name("(" * 5000 + "http" + ")" * 5000, "http") is False
