"""Calls of Kyverno's libraries to the host, and how answers and errors reach expressions."""

from collections.abc import Mapping
from typing import Any

import pytest

from pyverno.compiler.cel.environment import environment_of_kind
from pyverno.errors import BudgetExceededError, EvaluationError, HostError
from pyverno.lang.cel import CompileError
from pyverno.lang.cel.faults import OperandError
from pyverno.lang.cel.host import AuthorizationCheck, Decision
from pyverno.lang.cel.libraries.authorizer import Authorizer
from pyverno.lang.cel.presets import kubernetes_environment
from pyverno.lang.cel.types import DYN, opaque
from pyverno.lang.runtime import Runtime

CLUSTER = environment_of_kind("ValidatingPolicy").with_variables({"object": DYN})
NAMESPACED = environment_of_kind("NamespacedValidatingPolicy")
OWN_GENERATING = environment_of_kind("NamespacedGeneratingPolicy")
GENERATING = environment_of_kind("GeneratingPolicy")
IMAGES = environment_of_kind("ImageValidatingPolicy")


class Recorder:
    """A host that records its calls in `asked` and answers from a table."""

    def __init__(self, **answers: Any) -> None:
        self.asked: list[tuple[Any, ...]] = []
        self._answers = answers

    def _answer(self, name: str, *question: Any) -> Any:
        self.asked.append((name, *question))
        answer = self._answers.get(name)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def get_resource(self, api_version: str, resource: str, namespace: str | None, name: str) -> Any:
        return self._answer("get", api_version, resource, namespace, name)

    def list_resources(self, api_version: str, resource: str, namespace: str | None, labels: Mapping[str, str]) -> Any:
        return self._answer("list", api_version, resource, namespace, dict(labels))

    def post_resource(self, api_version: str, resource: str, namespace: str | None, body: Any) -> Any:
        return self._answer("post", api_version, resource, namespace, body)

    def to_gvr(self, api_version: str, kind: str) -> Any:
        return self._answer("gvr", api_version, kind)

    def http(self, method: str, url: str, body: Any, headers: Mapping[str, str], ca_bundle: str) -> Any:
        return self._answer("http", method, url, body, dict(headers), ca_bundle)

    def global_context(self, name: str, projection: str) -> Any:
        return self._answer("global", name, projection)

    def image_metadata(self, reference: str) -> Any:
        return self._answer("image", reference)

    def generate(self, namespace: str | None, objects: list[Any]) -> None:
        self._answer("generate", namespace, objects)

    def authorize(self, check: AuthorizationCheck) -> Any:
        return self._answer("authorize", check.attributes, check.verb, check.service_account)

    def verify_image(self, image: str, attestors: list[Any], attestation: str | None) -> Any:
        return self._answer("verify", image, attestors, attestation)

    def image_payload(self, image: str, attestation: Any) -> Any:
        return self._answer("payload", image, attestation)


@pytest.mark.parametrize(
    ("environment", "text", "answers", "asked", "expected"),
    [
        (
            CLUSTER,
            "resource.Get('v1', 'configmaps', 'ns', 'cm').data.key == 'v'",
            {"get": {"data": {"key": "v"}}},
            ("get", "v1", "configmaps", "ns", "cm"),
            True,
        ),
        (CLUSTER, "dyn(resource.get('v1', 'pods', '', 'x')) == null", {}, ("get", "v1", "pods", "", "x"), True),
        (
            NAMESPACED,
            "resource.get('v1', 'configmaps', 'cm').a == 1",
            {"get": {"a": 1}},
            ("get", "v1", "configmaps", None, "cm"),
            True,
        ),
        (
            CLUSTER,
            "resource.List('apps/v1', 'deployments', 'ns', {'app': 'x'}).items.size()",
            {"list": {"items": [1, 2]}},
            ("list", "apps/v1", "deployments", "ns", {"app": "x"}),
            2,
        ),
        (
            CLUSTER,
            "resource.post('v1', 'things', {'a': [b'x']}).ok",
            {"post": {"ok": True}},
            ("post", "v1", "things", "", {"a": ["eA=="]}),
            True,
        ),
        (
            CLUSTER,
            "http.Get('https://x', {'A': 'b'})",
            {"http": (200, b'{"a": 1, "statusCode": 5}')},
            ("http", "GET", "https://x", None, {"A": "b"}, ""),
            {"a": 1.0, "statusCode": 200},
        ),
        (
            CLUSTER,
            "http.post('https://x', {'image': 'nginx'})",
            {"http": (500, b"oops")},
            ("http", "POST", "https://x", {"image": "nginx"}, {}, ""),
            {"body": None, "statusCode": 500},
        ),
        (CLUSTER, "globalContext.Get('d', 'n')", {"global": [1]}, ("global", "d", "n"), [1.0]),
        (CLUSTER, "globalContext.get('d')", {}, ("global", "d", ""), None),
        (CLUSTER, "image.getMetadata('nginx').digest", {"image": {"digest": "d"}}, ("image", "nginx"), "d"),
        (GENERATING, "generator.apply('ns', [{'kind': 'X'}])", {}, ("generate", "ns", [{"kind": "X"}]), True),
        (OWN_GENERATING, "generator.Apply('ns', [{'kind': 'X'}])", {}, ("generate", "ns", [{"kind": "X"}]), True),
        (OWN_GENERATING, "generator.apply([{'kind': 'X'}])", {}, ("generate", None, [{"kind": "X"}]), True),
        (IMAGES, "verifyImageSignatures('i', [1, 2])", {"verify": 2}, ("verify", "i", [1, 2], None), 2),
    ],
)
def test_libraries_ask_the_world(
    environment: Any, text: str, answers: dict[str, Any], asked: tuple[Any, ...], expected: Any
) -> None:
    """Each call is one request with plain values; answers are plain JSON."""
    host = Recorder(**answers)
    assert environment.compile(text).evaluate({}, host=host) == expected
    assert host.asked == [asked]


def test_a_gvr_stands_for_api_version_and_resource() -> None:
    """`ToGVR` uses discovery; its result serves Get and List."""
    host = Recorder(gvr=("apps", "v1", "deployments"), list={"items": []})
    program = CLUSTER.compile("resource.List(resource.ToGVR('apps/v1', 'Deployment'), 'ns').items.size() == 0")
    assert program.evaluate({}, host=host) is True
    assert host.asked[-1] == ("list", "apps/v1", "deployments", "ns", {})


@pytest.mark.parametrize(
    ("text", "answers", "expected"),
    [
        ("resource.get('v1', 'pods', 'a', 'b')", {"get": HostError("denied")}, "failed to get resource: denied"),
        ("resource.list('v1', 'pods', 'a')", {"list": HostError("denied")}, "failed to list resource: denied"),
        ("resource.toGVR('v1', 'X')", {"gvr": HostError("no")}, "failed to map kind to resource: no"),
        ("http.get('http://x')", {"http": HostError("refused")}, "request failed: refused"),
        ("http.client('no pem').get('x')", {}, "request failed: failed to parse PEM CA bundle for APICall"),
        ("globalContext.get('x', 'y')", {"global": HostError("bad")}, "failed to get global reference: bad"),
        ("image.getMetadata('x')", {"image": HostError("gone")}, "failed to get image data: gone"),
    ],
)
def test_errors_of_the_world_become_cel_errors(text: str, answers: dict[str, Any], expected: str) -> None:
    """They carry Kyverno's words in front, and can be absorbed like every CEL error."""
    with pytest.raises(EvaluationError) as caught:
        CLUSTER.compile(text).evaluate({}, host=Recorder(**answers))
    assert caught.value.message == expected
    assert CLUSTER.compile(f"{text} == dyn(1) || true").evaluate({}, host=Recorder(**answers)) is True


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ('pods "a" is forbidden in namespace "names"', '... "..." is forbidden in namespace "..."'),
        ("no names in namespaces, renames or a.b", "no ... in namespaces, renames or ....b"),
        ("/api/v1/namespaces/names/pods/a?x=%61", "/api/.../namespaces/.../.../...?x=%61"),
    ],
)
def test_computed_operands_are_hidden_as_whole_words(said: str, expected: str) -> None:
    """A text of an operand that is also a part of a longer word leaves that word alone."""
    program = CLUSTER.with_variables({"x": DYN}).compile("resource.get('v1', 'pods', x.where, x.name)")
    with pytest.raises(EvaluationError) as caught:
        program.evaluate({"x": {"where": "names", "name": "a"}}, host=Recorder(get=HostError(said)))
    assert f"failed to get resource: {expected}" == caught.value.message


def test_an_error_with_a_text_for_computed_operands_is_not_searched() -> None:
    """Words of the fixed text stay, even if the object holds them too."""
    program = GENERATING.with_variables({"x": DYN}).compile("generator.apply(x.where, [x])")
    error = OperandError("a policy may not generate in another namespace", "a policy may not generate in `b`")
    with pytest.raises(EvaluationError) as caught:
        program.evaluate({"x": {"where": "policy", "namespace": "may"}}, host=Recorder(generate=error))
    assert "a policy may not generate in another namespace" == caught.value.message


def test_namespaced_policies_can_not_name_a_namespace() -> None:
    """The overloads with a namespace do not exist for them."""
    from pyverno.lang.cel import CompileError

    with pytest.raises(CompileError, match="no matching overload"):
        NAMESPACED.compile("resource.get('v1', 'configmaps', 'other', 'cm') == dyn(null)")


def test_the_authorizer_collects_a_question() -> None:
    """Builder calls set the attributes, `check` calls the authorizer, and the decision holds the answer."""
    environment = kubernetes_environment().with_variables({"authorizer": opaque(Authorizer.cel_type)})
    text = (
        "authorizer.serviceAccount('ns', 'sa').group('apps').resource('deployments').subresource('scale')"
        ".namespace('n').name('d').labelSelector('a=b').check('update').{}"
    )
    host = Recorder(authorize=Decision(allowed=True, reason="because"))
    values = {"authorizer": Authorizer()}
    assert environment.compile(text.format("allowed()")).evaluate(values, host=host) is True
    attributes = {
        "group": "apps", "resource": "deployments", "subresource": "scale", "namespace": "n", "name": "d",
        "labelSelector": "a=b",
    }  # fmt: skip
    assert host.asked == [("authorize", attributes, "update", ("ns", "sa"))]
    assert environment.compile(text.format("reason()")).evaluate(values, host=host) == "because"
    failing = Recorder(authorize=HostError("down"))
    assert environment.compile(text.format("errored()")).evaluate(values, host=failing) is True
    assert environment.compile(text.format("error()")).evaluate(values, host=failing) == "down"


def test_three_checks_exceed_the_cost_limit() -> None:
    """A check costs 350,000 of a million."""
    environment = kubernetes_environment().with_variables({"authorizer": opaque(Authorizer.cel_type)})
    check = "authorizer.path('/healthz').check('get').allowed()"
    host = Recorder(authorize=Decision(allowed=True))
    values = {"authorizer": Authorizer()}
    assert environment.compile(f"{check} && {check}").evaluate(values, host=host) is True
    with pytest.raises(BudgetExceededError):
        environment.compile(f"{check} && {check} && {check}").evaluate(values, host=host)


class Clock:
    """A world of the runtime with a fixed clock and a fixed choice."""

    def now(self) -> int:
        return 60 * 10**9

    def random_bits(self, bits: int) -> int:
        return 1

    def lookup_host(self, name: str) -> tuple[str, ...]:
        return ()


def test_time_and_randomness_come_from_the_runtime() -> None:
    """A fixed world gives fixed values."""
    runtime = Runtime(host=Clock())
    assert CLUSTER.compile("time.now() == timestamp(60)").evaluate({}, runtime) is True
    assert CLUSTER.compile("random()").evaluate({}, runtime) == "11111111"
    assert CLUSTER.compile("random.random('[a-c]{2}-x')").evaluate({}, runtime) == "bb-x"
    with pytest.raises(EvaluationError, match="no clock is available here"):
        CLUSTER.compile("time.now() == timestamp(60)").evaluate({})


def test_only_a_policy_of_a_namespace_may_leave_it_out() -> None:
    """A cluster-wide policy has no namespace of its own."""
    with pytest.raises(CompileError, match="found no matching overload for 'apply'"):
        GENERATING.compile("generator.apply([{'kind': 'X'}])")
