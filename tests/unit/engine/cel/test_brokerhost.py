"""Calls of CEL libraries are confined to the namespace of the policy, one path segment at a time."""

from __future__ import annotations

import pytest

from pyverno.engine.broker import Broker
from pyverno.engine.cel.brokerhost import BrokerHost
from pyverno.errors import BudgetExceededError
from pyverno.lang.cel.host import Decision
from pyverno.lang.runtime import Budget
from pyverno.offline.host import OfflineHost, RecordedAnswer
from pyverno.offline.objects import ObjectStore
from tests.support.celpolicies import CONFIG_MAP, ask, compiled, kyverno, said, validations


def config_map(name, namespace, **labels):
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"in": namespace}}


OBJECTS = (
    config_map("shared", "team", tier="gold"),
    config_map("plain", "team"),
    config_map("shared", "other"),
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}},
    {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "token", "namespace": "other"}, "data": {"a": "Yg=="}},
)


def asked(expression, *, kind="ValidatingPolicy", annotations=None, host=None):
    """Return status and message of a policy with one validation."""
    metadata = {**CONFIG_MAP["metadata"], "annotations": annotations or {}}
    host = host or OfflineHost(objects=ObjectStore(OBJECTS))
    review = ask(
        kyverno(kind, validations=validations(expression)), resource={**CONFIG_MAP, "metadata": metadata}, host=host
    )
    (result,) = said(review)
    return result


@pytest.mark.parametrize(
    "expression",
    [
        "resource.Get('v1', 'configmaps', 'other', 'shared').data['in'] == 'other'",
        "resource.get(resource.toGVR('v1', 'ConfigMap'), 'team', 'shared').data['in'] == 'team'",
        "dyn(resource.Get('v1', 'configmaps', 'team', 'none')) == null",
        "resource.List('v1', 'configmaps', '').items.size() == 3",
        "resource.List('v1', 'configmaps', 'team').items.size() == 2",
        "resource.List('v1', 'configmaps', 'team', {'tier': 'gold'}).items.size() == 1",
        "resource.Get('v1', 'namespaces', '', 'team').metadata.name == 'team'",
        "globalContext.Get('none') == null",
    ],
)
def test_a_cluster_policy_reads_the_namespace_it_names(expression):
    """Objects by name, lists by label; what does not exist is null."""
    assert ("pass", "success") == asked(expression)


@pytest.mark.parametrize(
    "expression",
    [
        "resource.Get('v1', 'configmaps', 'shared').data['in'] == 'team'",
        "resource.List('v1', 'configmaps').items.size() == 2",
        "dyn(resource.Get('v1', 'secrets', 'token')) == null",
    ],
)
def test_a_namespaced_policy_reads_its_own_namespace(expression):
    """It has no way to name another."""
    assert ("pass", "success") == asked(expression, kind="NamespacedValidatingPolicy")


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("resource.Get('v1', 'configmaps', 'other', 'shared').data.x == ''", "found no matching overload"),
        ("resource.List('v1', 'configmaps', 'other').items.size() == 0", "found no matching overload"),
        ("http.Get('https://example.com') == 1", "http.* is not allowed in namespaced policies"),
        ("globalContext.Get('x', '') == null", "globalContext.* is not allowed in namespaced policies"),
    ],
)
def test_a_namespaced_policy_that_reads_more_does_not_compile(expression, problem):
    """The functions for other namespaces are not declared at all."""
    errors = compiled(kyverno("NamespacedValidatingPolicy", validations=validations(expression))).errors
    assert problem in str(errors[0])


def test_a_namespaced_policy_is_refused_what_slips_through():
    """The host checks the namespace again, even for calls that the compiler accepted."""
    team = "error: a policy of namespace `team`"
    for expression, problem in (
        ("resource.Post('v1', 'configmaps', {'a': 'b'}).x == 1", "may only use GET, not POST"),
        ("dyn(resource.Get('v1', 'namespaces', 'team')) == null", "may not read the cluster-wide namespaces"),
        ("resource.List('v1', 'nodes').items.size() == 0", "may not read the cluster-wide nodes"),
    ):
        assert ("error", f"{team} {problem}") == asked(expression, kind="NamespacedValidatingPolicy")


@pytest.mark.parametrize(
    "name",
    ["other/secrets/token", "../other", "..", ".", "a?labelSelector=b", "a#b", "a%2fb", "a\\b", "", "a\nb"],
)
@pytest.mark.parametrize("kind", ["ValidatingPolicy", "NamespacedValidatingPolicy"])
def test_an_argument_is_one_segment_of_a_path(kind, name):
    """Data of a request that is used as a name cannot turn the question into another one."""
    for call in ("Get('v1', 'configmaps', {}{})", "Get('v1', {}{}, 'x')", "Get({}{}, 'configmaps', 'x')"):
        value = "object.metadata.annotations.name"
        between = "" if kind.startswith("Namespaced") else "'team', "
        if call.startswith("Get('v1', 'c"):
            written = call.format(between, value)
        else:
            written = call.format("", value).replace("'x'", f"{between}'x'")
        if name == "other/secrets/token" and "Get(object" in written:
            continue
        status, text = asked(f"dyn(resource.{written}) == null", kind=kind, annotations={"name": name})
        assert "error" == status, (written, text)
        assert "invalid" in text or "is required" in text


@pytest.mark.parametrize("value", ["a,tier=x", "a&limit=1", "a%2Cb", "a b"])
def test_a_label_of_a_list_is_a_label(value):
    """A value that is no label value could be a second requirement, or another parameter."""
    text = "resource.List('v1', 'configmaps', 'team', {'tier': object.metadata.annotations.v}).items.size() >= 0"
    status, message = asked(text, annotations={"v": value})
    assert ("error", "error: invalid label") == (status, message)


def test_http_is_refused_by_default():
    """Nothing answers unless the Host does; the error names the call and nothing else."""
    expression = "http.Get('https://example.com/x').statusCode == 200"
    message = "error: request failed: no answer is recorded for `GET https://example.com/x`"
    assert ("error", message) == asked(expression)
    host = OfflineHost(answers=(RecordedAnswer("https://example.com/x", {"a": 1}),))
    assert ("pass", "success") == asked(expression, host=host)


def test_projections_of_a_known_entry_have_to_exist():
    """An entry that is not there is null, a projection of one that is there is a mistake."""
    host = OfflineHost(global_entries={"nodes": [1], "nodes.names": ["a"]})
    assert "pass" == asked("globalContext.Get('nodes', 'names') == ['a']", host=host)[0]
    message = "error: failed to get global reference: global context entry `nodes` has no projection `x`"
    assert ("error", message) == asked("globalContext.Get('nodes', 'x') == null", host=host)


@pytest.mark.parametrize(("questions", "status"), [(100, "pass"), (101, "error")])
def test_a_review_may_ask_a_hundred_questions(questions, status):
    """Each is counted once, where it leaves the engine; one too many is an error of the policy."""
    numbers = ", ".join(map(str, range(questions)))
    expression = f"[{numbers}].all(i, dyn(resource.Get('v1', 'configmaps', 'team', 'none' + string(i))) == null)"
    assert asked(expression)[0] == status


class Permissive(OfflineHost):
    """A host that allows every access check; `asked` counts the checks."""

    asked = 0

    def authorize(self, check):
        self.asked += 1
        return Decision(allowed=True)


def authorized(kind, question, host):
    """Return status and message of a rule whose `validate.cel` calls the authorizer."""
    metadata = {"name": "check", **({"namespace": "team"} if kind == "Policy" else {})}
    cel = {"expressions": [{"expression": f"authorizer.{question}.check('get').allowed()"}]}
    rule = {"name": "ask", "match": {"any": [{"resources": {"kinds": ["ConfigMap"]}}]}, "validate": {"cel": cel}}
    policy = {"apiVersion": "kyverno.io/v1", "kind": kind, "metadata": metadata, "spec": {"rules": [rule]}}
    (result,) = said(ask(policy, host=host))
    return result


@pytest.mark.parametrize(
    "question",
    [
        "group('').resource('pods').namespace('other')",
        "group('').resource('nodes')",
        "path('/healthz')",
        "serviceAccount('other', 'robot').group('').resource('pods').namespace('team')",
    ],
)
def test_a_namespaced_policy_checks_access_in_its_namespace_only(question):
    """It cannot check other namespaces or their service accounts; a cluster policy can."""
    host = Permissive()
    status, message = authorized("Policy", question, host)
    assert ("fail", 0) == (status, host.asked)  # an error under failurePolicy Fail
    assert "a policy of namespace `team` may not ask" in message
    assert "pass" == authorized("ClusterPolicy", question, host)[0]


def test_a_namespaced_policy_may_ask_about_its_own_namespace():
    """The user of the request, and service accounts of the namespace."""
    host = Permissive()
    for account in ("", "serviceAccount('team', 'robot')."):
        assert "pass" == authorized("Policy", f"{account}group('').resource('pods').namespace('team')", host)[0]
    assert 2 == host.asked


class OddHost(OfflineHost):
    """A Host with a fixed answer of the API server."""

    answer = None

    def api_call(self, path, *, method, body):
        return self.answer


@pytest.mark.parametrize("answer", [None, [], "x", 1])
@pytest.mark.parametrize(
    "expression",
    [
        "resource.List('v1', 'configmaps', '').items.size() == 0",
        "dyn(resource.Get('v1', 'configmaps', 'a', 'b')) == null",
    ],
)
def test_an_answer_that_is_no_object_is_an_error(expression, answer):
    """It must not read as an object that does not exist, nor as an empty list."""
    host = OddHost(objects=ObjectStore(OBJECTS))
    host.answer = answer
    assert ("error", True) == (asked(expression, host=host)[0], "that is no object" in asked(expression, host=host)[1])


@pytest.mark.parametrize(
    "read",
    [
        lambda host: host.get_resource("v1", "configmaps", "a", "b"),
        lambda host: host.list_resources("v1", "configmaps", "a", {}),
        lambda host: host.post_resource("v1", "configmaps", "a", {}),
        lambda host: host.image_answer({"configData": {"a": "x" * 32_000}}),
    ],
)
def test_answers_count_as_read(read):
    """A review pays for their bytes: a hundred calls of 32 MiB each would end the process."""
    host = OddHost(objects=ObjectStore([]))
    host.answer = {"data": {"a": "x" * 32_000}}
    budget = Budget(steps=1500)
    reading = BrokerHost(Broker(host, budget))
    read(reading)
    assert 1000 < 1500 - budget.steps < 1010
    with pytest.raises(BudgetExceededError):
        read(reading)
