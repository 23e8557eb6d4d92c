"""`pyverno cel`: values, types, traces and functions of CEL expressions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pyverno.cli.cel.environment import ENVIRONMENTS
from pyverno.kube.yaml.documents import load_documents
from pyverno.lang.cel import STANDARD, types
from pyverno.lang.cel.syntax import ast
from pyverno.lang.cel.syntax.spans import Spans

if TYPE_CHECKING:
    from pathlib import Path

    from pyverno.kube.json import JSON
    from tests.support.commandline import Run

DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 3
  template: {spec: {containers: [{name: a, image: "nginx:1"}, {name: b, image: "ghcr.io/b"}]}}
"""

CRD = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boxes.x.io}
spec:
  group: x.io
  scope: Namespaced
  names: {kind: Box, plural: boxes}
  versions:
    - name: v1beta1
      served: true
      schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {old: {type: string}}}}}}
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}
"""

REVIEW = """\
apiVersion: admission.k8s.io/v1
kind: AdmissionReview
request: {uid: u, operation: DELETE, userInfo: {username: eve}, oldObject: {apiVersion: v1, kind: Pod}}
"""


POLICY = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: replicated}
spec:
  matchConstraints:
    resourceRules:
      - {apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments]}
  validations:
    - expression: object.replicas > 1
"""


@pytest.fixture
def files(folder: Path) -> Path:
    """Documents for expressions, in the working folder."""
    (folder / "deploy.yaml").write_text(DEPLOYMENT)
    (folder / "crd.yaml").write_text(CRD)
    (folder / "review.yaml").write_text(REVIEW)
    (folder / "values.yaml").write_text("a: 1\nvariables: {limit: 4}\nrequest: {operation: UPDATE}\n")
    (folder / "two.cel").write_text("object.spec.replicas\n  > 2\n")
    return folder


def _values(ran_out: str) -> list[JSON]:
    return [each.get("value") for each in json.loads(ran_out)]


@pytest.mark.usefixtures("files")
def test_eval_prints_yaml_with_type_and_cost_in_comments(cli: Run) -> None:
    """Several expressions are several documents."""
    ran = cli("cel", "eval", "object.spec.replicas * 2", "object.metadata", "--object", "deploy.yaml")
    expected = (
        "# object.spec.replicas * 2\n# type: int, cost: 4\n6\n---\n"
        "# object.metadata\n# type: dyn, cost: 2\nname: web\nnamespace: shop\n"
    )
    assert (0, expected, "") == (ran.code, ran.out, ran.err)
    assert [6, {"name": "web", "namespace": "shop"}] == [each.value for each in load_documents(ran.out)]


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("arguments", "values"),
    [
        (("object.kind", "-i", "deploy.yaml"), ["Deployment"]),
        (("request.operation", "oldObject == {}", "--object", "deploy.yaml"), ["CREATE", True]),
        (("oldObject == null", "--object", "deploy.yaml", "-e", "ValidatingAdmissionPolicy"), [True]),
        (("request.resource.resource", "request.namespace", "--object", "deploy.yaml"), ["deployments", "shop"]),
        (("namespaceObject.metadata.name", "-i", "deploy.yaml"), ["shop"]),
        (("request.operation", "--object", "deploy.yaml", "--old-object", "deploy.yaml"), ["UPDATE"]),
        (("request.operation", "object == {}", "--old-object", "deploy.yaml"), ["DELETE", True]),
        (("request.userInfo.username", "oldObject.kind", "-i", "review.yaml"), ["eve", "Pod"]),
        (("request.userInfo.username", "--request", "review.yaml"), ["eve"]),
        (("request.name + request.operation", "-i", "values.yaml", "--object", "deploy.yaml"), ["webUPDATE"]),
        (("a + variables.limit", "-i", "values.yaml"), [5]),
        (("exceptions.allowedImages", "variables"), [[], {}]),
        (("params.x", "--params", "values.yaml", "--var", "params={x: 7}"), [7]),
        (("x.map(i, i + y)", "--var", "x=[1, 2]", "--var", "y=1", "-e", "standard"), [[2, 3]]),
        (("-q", "two.cel", "--object", "deploy.yaml"), [True]),
        (("image('nginx').tag()", "quantity('1.5Gi')", "ip('::1')"), ["latest", "1536Mi", "::1"]),
        (("optional.none()", "optional.of([1])"), [None, [1]]),
        (("{1: 2u}", "b'hi'", "duration('90s')", "1.0 / 0.0", "type(1)"), [{"1": 2}, "aGk=", "90s", "Infinity", "int"]),
    ],
)
def test_eval_binds_documents_as_policies_do(cli: Run, arguments: tuple[str, ...], values: list[JSON]) -> None:
    """Objects, requests about them, variables of one's own."""
    ran = cli("cel", "eval", *arguments, "-o", "json")
    assert (0, values, "") == (ran.code, _values(ran.out), ran.err)


def test_eval_reads_standard_input_once(cli: Run) -> None:
    """As document or as expression."""
    assert [3] == _values(cli("cel", "eval", "object.a", "-i", "-", "-o", "json", stdin="object: {a: 3}").out)
    assert [2] == _values(cli("cel", "eval", "-", "-o", "json", stdin="1 + 1\n").out)
    ran = cli("cel", "eval", "-", "-i", "-", stdin="1")
    assert (1, "Error: standard input cannot be read for the input: it was read for an expression\n") == (
        ran.code,
        ran.err,
    )


TRACE = """\
# a.b == 3 || has(a.c)
# type: bool, cost: 3
true
# trace:
#   bool  true             a.b == 3 || has(a.c)
#   bool  true               a.b == 3
#   dyn   3                    a.b
#   dyn   {"b": 3}               a
#   bool  (not evaluated)    has(a.c)
#   dyn   (not evaluated)      a
"""


def test_trace_shows_every_sub_expression(cli: Run) -> None:
    """Outer ones first, with types and values, and what was never evaluated."""
    ran = cli("cel", "eval", "a.b == 3 || has(a.c)", "--var", "a={b: 3}", "--trace")
    assert (0, TRACE, "") == (ran.code, ran.out, ran.err)


@pytest.mark.usefixtures("files")
def test_trace_for_programs_has_places_and_visits(cli: Run) -> None:
    """A loop has one row per sub-expression."""
    text = "object.spec.template.spec.containers.map(c,\n  c.image)"
    ran = cli("cel", "eval", text, "--object", "deploy.yaml", "--trace", "-o", "yaml")
    (outcome,) = load_documents(ran.out)[0].value
    row = outcome["trace"][-2]
    assert ("c.image", 2, 3, "dyn", 2) == tuple(row[key] for key in ("expression", "line", "column", "type", "visits"))
    assert [{"value": "nginx:1"}, {"value": "ghcr.io/b"}] == row["results"]


def test_trace_shows_errors_and_what_chance_gave(cli: Run) -> None:
    """The traced run is the same run: an absorbed error is seen, a random text is the one that was printed."""
    (outcome,) = json.loads(cli("cel", "eval", "1 / 0 == 1 || true", "--trace", "-o", "json").out)
    assert (True, [{"error": "division by zero"}]) == (outcome["value"], outcome["trace"][1]["results"])
    (outcome,) = json.loads(cli("cel", "eval", "random('[a-z]{20}')", "--trace", "-o", "json").out)
    assert [{"value": outcome["value"]}] == outcome["trace"][0]["results"]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((), "at least one expression is required (an argument, or a file with -q)"),
        (("object.a",), "no such attribute(s): object"),
        (("object.a", "--var", "object={}"), "no such key: a"),
        (("1", "--var", "1=2"), 'invalid argument "1=2" for "--var" flag: expected NAME=YAML'),
        (("1", "--object", "gone.yaml"), "cannot read `gone.yaml`: no such file or directory"),
        (("1", "-e", "nope"), 'unknown environment "nope", must be one of standard, '),
        (("1", "-o", "xml"), 'invalid output format "xml", must be one of text, json, yaml'),
        (("1", "--kubernetes-version", "1.99"), 'invalid argument "1.99" for "--kubernetes-version" flag: '),
        (("1", "--cost-limit", "0"), "--cost-limit and --timeout must be greater than zero"),
        (("resource.Get('v1', 'pods', 'a', 'b')",), "failed to get resource: no cluster is available here"),
        (("http.Get('http://x')",), "HTTP calls are not available here"),
        (("1", "-i", "-"), "the input has keys that cannot be names of variables: a-b"),
    ],
)
def test_eval_reports_errors(cli: Run, arguments: tuple[str, ...], error: str) -> None:
    """On stderr, with exit code 1 and no traceback; the world is closed."""
    ran = cli("cel", "eval", *arguments, stdin="a-b: 1")
    assert (1, True) == (ran.code, error in ran.err), ran.err
    assert ran.err.startswith("Error: ")


def test_one_failing_expression_leaves_the_others(cli: Run) -> None:
    """The error names its expression; programs get it beside the values."""
    ran = cli("cel", "eval", "1 / 0", "1 +", "2", "-o", "json")
    failed, refused, good = json.loads(ran.out)
    assert (1, "division by zero", 2) == (ran.code, failed["error"], good["value"])
    assert (1, 4) == (refused["errors"][0]["line"], refused["errors"][0]["column"])
    assert ran.err.startswith("Error: 1 / 0: division by zero\nERROR: <input>:1:4: Syntax error: ")


@pytest.mark.parametrize("trace", [(), ("--trace",)])
def test_evaluation_is_bounded_by_cost_and_time(cli: Run, trace: tuple[str, ...]) -> None:
    """Whichever is used up first."""
    loop = "x.map(a, x.map(b, x.map(c, c))).size()"
    listed = f"x={list(range(1500))}"
    ran = cli("cel", "eval", loop, "--var", listed, *trace)
    assert (1, "Error: operation cancelled: actual cost limit exceeded\n") == (ran.code, ran.err)
    ran = cli("cel", "eval", loop, "--var", listed, "--cost-limit", "99999999999", "--timeout", "200ms", *trace)
    assert (1, "Error: the deadline of this review has passed\n") == (ran.code, ran.err)


@pytest.mark.parametrize("arguments", [(), ("--trace",), ("--trace", "-o", "json")])
def test_deep_input_is_an_error_or_an_answer(cli: Run, files: Path, arguments: tuple[str, ...]) -> None:
    """Never a traceback."""
    (files / "deep.json").write_text('{"a":' * 9000 + "1" + "}" * 9000)
    ran = cli("cel", "eval", "object", "-i", "deep.json", "--var", "object=1", *arguments)
    assert 0 == ran.code
    ran = cli("cel", "eval", "object.a", "--object", "deep.json", *arguments)
    assert (1, "Error: the value is nested too deeply to be printed\n") == (ran.code, ran.err)
    ran = cli("cel", "eval", "(" * 5000, *arguments)
    assert (1, True) == (ran.code, "expression recursion limit exceeded" in ran.err)
    ran = cli("cel", "eval", "1" + "+1" * 3_000, *arguments)
    assert (1, True) == (ran.code, "nested too deeply" in ran.err)


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("arguments", "type_"),
    [
        (("object.spec.replicas",), "dyn"),
        (("object.spec.replicas", "--kind", "Deployment"), "int"),
        (("object.spec.replicas", "--kind", "deploy.apps"), "int"),
        (("object.metadata.creationTimestamp", "--kind", "apps/v1/Deployment"), "timestamp"),
        (("oldObject.metadata.labels", "--kind", "Pod"), "map(string, string)"),
        (("object.spec.size", "--crd", "crd.yaml"), "int"),
        (("object.spec.old", "--crd", "crd.yaml", "--kind", "x.io/v1beta1/Box"), "string"),
        (("object.metadata.name", "--crd", "crd.yaml"), "string"),
        (("x.map(i, i > 1)", "--declare", "x=list(int)", "-e", "standard"), "list(bool)"),
        (("1 == 1", "--expect", "string", "--expect", "bool"), "bool"),
        (("Object{spec: Object.spec{a: 1}}", "-e", "MutatingPolicy", "--expect", "Object"), "Object"),
        (("request.userInfo.username", "-e", "kubernetes"), "string"),
    ],
)
def test_check_prints_the_type(cli: Run, arguments: tuple[str, ...], type_: str) -> None:
    """Options supply the schema of a kind or of a CustomResourceDefinition."""
    ran = cli("cel", "check", *arguments)
    assert (0, f"# {arguments[0]}\n{type_}\n", "") == (ran.code, ran.out, ran.err)


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (
            ("'a' + 1",),
            "ERROR: <input>:1:5: found no matching overload for '_+_' applied to '(string, int)'\n"
            " | 'a' + 1\n | ....^\n",
        ),
        (
            ("object.spec.replica", "--kind", "Deployment"),
            "ERROR: <input>:1:12: undefined field 'replica'\n | object.spec.replica\n | ...........^\n",
        ),
        (("1", "--expect", "bool"), "ERROR: <input>:1:1: output is expected to be of type bool\n | 1\n | ^\n"),
        (("1", "--expect", "nope"), 'Error: unknown type "nope"\n'),
        (("1", "--declare", "x"), 'Error: invalid argument "x" for "--declare" flag: expected NAME=TYPE\n'),
        (
            ("object", "--kind", "Event"),
            "Error: `Event` names several kinds (v1/Event, events.k8s.io/v1/Event): choose one with --kind "
            "GROUP/VERSION/KIND\n",
        ),
        (("object", "--kind", "Nope"), "Error: unknown kind `Nope`; give its CustomResourceDefinition with --crd\n"),
        (
            ("object", "--kind", "UpdateRequest"),
            "Error: Kubernetes 1.37 has no schema of UpdateRequest; give its CustomResourceDefinition with --crd\n",
        ),
        (("object", "--crd", "deploy.yaml"), "Error: the files of --crd hold no CustomResourceDefinition\n"),
        (
            ("semver('1.0.0')", "-e", "kubernetes", "--kubernetes-version", "1.32"),
            "ERROR: <input>:1:7: undeclared reference to 'semver' (in container '')\n | semver('1.0.0')\n | ......^\n",
        ),
    ],
)
def test_check_points_at_the_fault(cli: Run, arguments: tuple[str, ...], error: str) -> None:
    """In the layout of cel-go, with exit code 1."""
    ran = cli("cel", "check", *arguments)
    assert (1, "", error) == (ran.code, ran.out, ran.err)


WARNING = """\
apps/v1, Kind=Deployment: ERROR: <input>:1:7: undefined field 'replicas'
 | object.replicas > 1
 | ......^
"""


@pytest.fixture
def policies(files: Path) -> Path:
    """Policies of several kinds in a separate folder."""
    folder = files / "policies"
    folder.mkdir()
    (folder / "replicated.yaml").write_text(POLICY)
    boxes = POLICY.replace("name: replicated", "name: boxes").replace("apps", "x.io").replace("deployments", "boxes")
    (folder / "boxes.yaml").write_text(boxes.replace("object.replicas", "object.spec.size"))
    return files


@pytest.mark.usefixtures("policies")
def test_check_of_policies_shows_where_each_warning_is(cli: Run) -> None:
    """The place in the file, the field and the text of Kubernetes; a kind without a schema is not checked."""
    ran = cli("cel", "check", "--policy", "policies")
    expected = (
        "ValidatingAdmissionPolicy/boxes: not checked, it names no kind with a schema\n"
        "ValidatingAdmissionPolicy/replicated: 1 warning (apps/v1/Deployment)\n"
        "policies/replicated.yaml:9:19: spec.validations[0].expression\n"
    ) + "".join(f"  {line}\n" for line in WARNING.splitlines())
    assert (1, expected, "") == (ran.code, ran.out, ran.err)


@pytest.mark.usefixtures("policies")
@pytest.mark.parametrize("output", ["json", "yaml"])
def test_check_of_policies_for_programs_is_the_status_of_kubernetes(cli: Run, output: str) -> None:
    """By policy, what the API server writes into `status.typeChecking`."""
    ran = cli("cel", "check", "--policy", "policies", "--crd", "crd.yaml", "-o", output)
    warnings = [{"fieldRef": "spec.validations[0].expression", "warning": WARNING}]
    expected = {
        "ValidatingAdmissionPolicy/boxes": {},
        "ValidatingAdmissionPolicy/replicated": {"expressionWarnings": warnings},
    }
    assert (1, expected, "") == (ran.code, load_documents(ran.out)[0].value, ran.err)


@pytest.mark.usefixtures("policies")
def test_check_of_policies_without_warnings_succeeds(cli: Run) -> None:
    """A CustomResourceDefinition gives its kinds their schema."""
    ran = cli("cel", "check", "--policy", "policies/boxes.yaml", "--crd", "crd.yaml", "--kubernetes-version", "1.30")
    assert (0, "ValidatingAdmissionPolicy/boxes: no warnings (x.io/v1/Box)\n", "") == (ran.code, ran.out, ran.err)


@pytest.mark.usefixtures("policies")
@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (
            ("--policy", "policies", "1 + 1"),
            "--policy takes no expressions, and none of --kind, --declare and --expect",
        ),
        (("--policy", "policies", "--kind", "Pod"), "--policy takes no expressions, and none of --kind, "),
        (("--policy", "policies", "--crd", "deploy.yaml"), "the files of --crd hold no CustomResourceDefinition"),
        (("--policy", "gone.yaml"), "`gone.yaml` does not exist"),
        (("--policy", "deploy.yaml"), "deploy.yaml:2:7: kind: `apps/v1` kind `Deployment` is not a policy kind"),
        (("--policy", "empty.yaml"), "the files of --policy hold no policy of CEL expressions"),
    ],
)
def test_check_of_policies_reports_errors(cli: Run, files: Path, arguments: tuple[str, ...], error: str) -> None:
    """With exit code 1 and nothing on stdout."""
    (files / "empty.yaml").write_text("")
    ran = cli("cel", "check", *arguments)
    assert (1, "", True) == (ran.code, ran.out, ran.err.startswith(f"Error: {error}")), ran.err


@pytest.mark.usefixtures("policies")
def test_a_policy_that_does_not_compile_is_an_error(cli: Run, files: Path) -> None:
    """It is not checked; the others are."""
    (files / "policies" / "boxes.yaml").write_text(POLICY.replace("object.replicas > 1", "1 +"))
    ran = cli("cel", "check", "--policy", "policies", "-o", "json")
    assert (1, ["ValidatingAdmissionPolicy/replicated"]) == (ran.code, list(json.loads(ran.out)))
    assert ran.err.startswith("Error: policies/boxes.yaml:9:22: spec.validations[0].expression: ERROR: <input>:1:4: ")


def test_functions_come_from_the_environment(cli: Run) -> None:
    """With signatures, examples and libraries; a Kubernetes without a library does not list it."""
    ran = cli("cel", "functions", "sha256", "has")
    assert "Name: has\n  Signature: has(arg1)\n  Note:      a macro\n  Library:   standard\n\n" in ran.out
    assert "Name: sha256\n  Signature: sha256(string) -> string\n" in ran.out
    ran = cli("cel", "functions", "sha256", "-e", "kubernetes")
    assert (1, "", True) == (ran.code, ran.out, ran.err.startswith("Error: unknown function `sha256`"))
    listed = json.loads(cli("cel", "functions", "-e", "standard", "-o", "json").out)
    names = [each["name"] for each in listed]
    assert sorted(names) == names
    assert {"startsWith", "all", "matches"} <= set(names)
    assert "_+_" not in names
    assert "  Signature: _+_(int, int) -> int\n" in cli("cel", "functions", "_+_").out


@pytest.mark.parametrize("name", [*ENVIRONMENTS, "validatingpolicy"])
def test_every_environment_has_its_name_in_any_case(cli: Run, name: str) -> None:
    """It evaluates, checks and lists."""
    ran = cli("cel", "eval", "given.a.size()", "--var", "given={a: b}", "-e", name, "-o", "json")
    assert (0, [1]) == (ran.code, _values(ran.out)), ran.err
    assert "Name: size\n" in cli("cel", "functions", "size", "-e", name).out


@pytest.mark.parametrize(
    ("expression", "texts"),
    [
        ("(a + 1) * (b)", ["(a + 1) * (b)", "a + 1", "a", "b"]),
        ("((a).b[0]).c", ["((a).b[0]).c", "(a).b[0]", "(a).b", "a"]),
        ("-(a) == !b", ["-(a) == !b", "-(a)", "a", "!b", "b"]),
        (".a.?b[?'c']", [".a.?b[?'c']", ".a.?b", ".a"]),
        ("a ? [b] : [a]", ["a ? [b] : [a]", "a", "[b]", "b", "[a]", "a"]),
        ("{'c': a}", ["{'c': a}", "a"]),
        ("a.f.startsWith(b + 'x')", ["a.f.startsWith(b + 'x')", "a.f", "a", "b + 'x'", "b"]),
        ("[a].all(x, x == b)", ["[a].all(x, x == b)", "[a]", "a", "x == b", "x", "b"]),
        ("has(a.b) && b", ["has(a.b) && b", "has(a.b)", "a", "b"]),
        ("a in [b]", ["a in [b]", "a", "[b]", "b"]),
    ],
)
def test_spans_are_the_text_of_each_node(expression: str, texts: list[str]) -> None:
    """With the parentheses around operands, without those around the whole."""
    environment = STANDARD.with_variables({"a": types.DYN, "b": types.DYN})
    root = environment.check(expression).root
    spans = Spans(expression, root)
    silent = (ast.Literal, ast.Entry, ast.Field)
    assert texts == [spans.text(node) for node in ast.walk(root) if not isinstance(node, silent)]


@pytest.mark.parametrize(
    ("mode", "expression", "value"),
    [
        ("envoy", "object.attributes.request.http.headers['a'] + object.attributes.request.http.path", "b"),
        ("http", "object.attributes.Header('X-A').join()", ""),
    ],
)
def test_the_object_of_an_authorization_mode_is_a_request(cli: Run, mode: str, expression: str, value: str) -> None:
    """It has the fields and methods of one, and nothing else is taken for one."""
    request = "object={attributes: {request: {http: {headers: {a: b}}}}}" if mode == "envoy" else "object={}"
    ran = cli("cel", "eval", expression, "--var", request, "-e", mode, "-o", "json")
    assert (0, [value]) == (ran.code, _values(ran.out)), ran.err
    wrong = cli("cel", "eval", "object", "--var", "object={attributes: 1}", "-e", mode)
    assert (1, True) == (wrong.code, "`attributes` must be an object" in wrong.err)


def test_policies_of_kubernetes_may_ask_the_authorizer(cli: Run) -> None:
    """Offline an access check yields an error, not a denial."""
    ran = cli(
        "cel",
        "eval",
        "authorizer.path('/x').check('get').errored()",
        "-e",
        "ValidatingAdmissionPolicy",
        "--var",
        "object={apiVersion: v1, kind: Pod}",
        "-o",
        "json",
    )
    assert (0, [True]) == (ran.code, _values(ran.out)), ran.err
    refused = cli("cel", "check", "authorizer.path('/x')", "-e", "kubernetes")
    assert (1, True) == (refused.code, "undeclared reference to 'authorizer'" in refused.err)


@pytest.mark.parametrize("command", ["check", "eval"])
def test_a_file_name_in_place_of_an_expression_has_a_hint(cli: Run, command: str) -> None:
    """The error is that of the expression; the hint names the flag that reads files."""
    Path("rule.cel").write_text("object.spec.replicas > 1")
    run = cli("cel", command, "rule.cel")
    assert (1, True) == (
        run.code,
        "  hint: `rule.cel` is a file: `-q rule.cel` reads the expression in it\n" in run.err,
    )
