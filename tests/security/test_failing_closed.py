"""I4 and I5: an error is an error, never "not matched"; and data from outside never leaks into a text."""

from __future__ import annotations

from textwrap import indent

import pytest

from pyverno.compiler import compile_documents
from pyverno.controllers.state.policystore import PolicyStore
from pyverno.engine.engine import Engine, Review
from pyverno.engine.host import NoHost
from pyverno.engine.phases import ADMISSION
from pyverno.engine.request import Operation, Request
from pyverno.engine.result import Status
from pyverno.errors import HostError
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.yaml.documents import Document, expand_lists, load_documents
from pyverno.offline.host import OfflineHost, RecordedAnswer
from tests.security.asking import CONFIG_MAP, POD, Spy, ask, found, only, policy

NEEDS_LABEL = policy(
    "validate:\n  failureAction: Enforce\n  pattern:\n    metadata:\n      labels:\n        team: '?*'", on="Pod"
)


class Broken(NoHost):
    """A Host whose every call fails."""

    def __getattribute__(self, name: str) -> object:
        if name in {
            "api_call",
            "http_call",
            "config_map",
            "image_data",
            "global_entry",
            "get_object",
            "list_objects",
            "http_exchange",
        }:

            def fail(*_: object, **__: object) -> object:
                raise HostError("the world is down")

            return fail
        return super().__getattribute__(name)


@pytest.mark.parametrize(
    "entry",
    [
        "apiCall:\n  urlPath: /api/v1/namespaces/team/configmaps",
        "apiCall:\n  service:\n    url: https://x.example.com",
        "configMap:\n  name: a\n  namespace: team",
        "globalReference:\n  name: a",
        "imageRegistry:\n  reference: nginx",
    ],
)
def test_a_loader_that_fails_denies(entry: str) -> None:
    """CVE-2025-46342: a fault of any loader never turns Enforce and Fail into allow; with an answer it is judged."""
    text = found(entry)
    if "configMap" in entry:
        text = text.replace("{{ found }}", "{{ found.data.a }}")
    review = ask(text, host=Broken())
    assert (Status.ERROR, False) == (only(review)[0], review.decision.allowed)
    assert Status.FAIL == only(ask(text, host=Spy({"metadata": {}, "data": {"a": "1"}})))[0]


LISTERS = {
    "get": "resource.Get('v1', 'configmaps', 'team', 'a').metadata.name != ''",
    "list": "resource.List('v1', 'configmaps', 'team').items.size() >= 0",
    "global": "globalContext.Get('a', '') != null",
    "http": "http.Get('https://x.example.com').statusCode == 200",
    "image": "image.GetMetadata('nginx:1').image != ''",
}


@pytest.mark.parametrize("position", ["matchConditions", "variables", "validations"])
@pytest.mark.parametrize("lister", LISTERS)
def test_a_lister_of_an_expression_that_fails_denies(lister: str, position: str) -> None:
    """CVE-2025-46342: at every position in a policy, a failed call is an error of the rule, which denies."""
    spec: JSONObject = {
        "matchConstraints": {
            "resourceRules": [
                {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
            ]
        },
        "validations": [{"expression": "variables.a" if position == "variables" else "true"}],
    }
    named = [{"name": "a", "expression": LISTERS[lister]}]
    spec |= {position: [{"expression": LISTERS[lister]}] if position == "validations" else named}
    document = {"apiVersion": "policies.kyverno.io/v1", "kind": "ValidatingPolicy", "metadata": {"name": "guard"}}
    made = compile_documents([Document({**document, "spec": spec}, "policy.yaml")])
    assert () == made.errors, [str(error) for error in made.errors]
    request = Request.from_manifest(CONFIG_MAP, gvr=GVR("", "v1", "configmaps"))
    review = Engine(made.policy_set(), Broken()).review(request, ADMISSION)
    assert ([Status.ERROR], False) == ([each.status for each in review.results], review.decision.allowed)


@pytest.mark.parametrize("part", ["preconditions", "validate"])
def test_a_condition_that_errs_denies(part: str) -> None:
    """I5: whatever cannot be resolved in a condition is an error of the rule."""
    condition = "all:\n    - key: '{{ request.object.data.nothing }}'\n      operator: Equals\n      value: x"
    rule = {
        "preconditions": f"preconditions:\n    {condition}\nvalidate:\n  failureAction: Enforce\n  deny: {{}}",
        "validate": f"validate:\n  failureAction: Enforce\n  deny:\n    conditions:\n      {condition}".replace(
            "\n    - key", "\n      - key"
        )
        .replace("\n      operator", "\n        operator")
        .replace("\n      value", "\n        value"),
    }[part]
    review = ask(policy(rule))
    assert (Status.ERROR, False) == (only(review)[0], review.decision.allowed)
    twin = ask(policy(rule), {**CONFIG_MAP, "data": {"nothing": "y"}})
    assert (True, True) == (twin.decision.allowed, only(twin)[0] in (Status.SKIP, Status.PASS))


METADATA: list[JSONObject] = [
    {"deletionTimestamp": "2024-01-01T00:00:00Z"},
    {"deletionGracePeriodSeconds": 0},
    {"finalizers": ["example.com/hold"]},
    {"ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "1"}]},
    {"managedFields": [{"manager": "kyverno"}]},
    {"uid": "1"},
    {"selfLink": "/x"},
    {"generateName": "web-"},
    {"labels": {"app.kubernetes.io/managed-by": "kyverno"}},
    {"annotations": {"kyverno.io/verify-images": "{}"}},
    {"annotations": {"policies.kyverno.io/scored": "false"}},
    {"creationTimestamp": "2099-01-01T00:00:00Z"},
    {"generation": -1},
    {"resourceVersion": "0"},
    {"clusterName": "x"},
    {"name": "kyverno"},
]
FIELDS = (
    *("annotations", "creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "finalizers"),
    *("generateName", "generation", "labels", "managedFields", "ownerReferences", "resourceVersion", "selfLink"),
    *("uid", "initializers", "clusterName", "unknown"),
)
ODD: list[JSON] = [
    *(None, "", "kyverno", 0, -1, True, [], [None], ["x"], {}, {"x": None}, "2024-01-01T00:00:00Z", 1e300),
    *({"pod-policies.kyverno.io/x": "none"}, [{"kind": "ReplicaSet", "controller": True}]),
]


@pytest.mark.parametrize("order", ["before", "after", "nested"])
def test_a_list_that_errs_denies_beside_lists_that_pass(order: str) -> None:
    """An element of one list that passes does not hide that another list could not be read."""
    wrong = "- list: parse_json(request.object.data.a)[]\n  deny: {}"
    right = "- list: values(request.object.data)\n  deny: {conditions: {all: [{key: a, operator: Equals, value: b}]}}"
    missing = "- list: request.object.spec.nothing\n  deny: {}"
    nested = "- list: values(request.object.data)\n  foreach:\n" + indent(f"{wrong}\n{right}", "  ")

    def review(*entries: str) -> Review:
        head = "validate:\n  failureAction: Enforce\n  message: denied\n  foreach:\n"
        object_ = {**CONFIG_MAP, "data": {"a": "{not json"}}
        return ask(policy(head + indent("\n".join(entries), "  ")), object_)

    entries = {"before": (wrong, right), "after": (right, wrong), "nested": (nested,)}[order]
    found = review(*entries)
    assert not found.decision.allowed
    assert [Status.ERROR] == [result.status for result in found.results]
    assert [Status.PASS] == [result.status for result in review(missing, right).results]


@pytest.mark.parametrize("operation", [Operation.CREATE, Operation.UPDATE])
@pytest.mark.parametrize("field", FIELDS)
def test_no_value_of_any_metadata_skips_a_rule(field: str, operation: Operation) -> None:
    """CVE-2023-34091: each field with each kind of value, new or updated: denied all the same."""
    passing = {**POD, "metadata": {**POD["metadata"], "labels": {"team": "a"}}}
    for value in ODD:
        odd = {**POD, "metadata": {**POD["metadata"], field: value}}
        old = None if operation is Operation.CREATE else passing
        assert not ask(NEEDS_LABEL, odd, operation=operation, old=old).decision.allowed, (field, value)
        if field not in ("labels", "annotations"):
            good = {**passing, "metadata": {**passing["metadata"], field: value}}
            assert ask(NEEDS_LABEL, good, operation=operation, old=old).decision.allowed, (field, value)


@pytest.mark.parametrize("extra", METADATA, ids=lambda extra: next(iter(extra)))
def test_no_metadata_of_the_requester_skips_a_rule(extra: JSONObject) -> None:
    """CVE-2023-34091: no metadata changes the verdict; the labelled twin passes with the same metadata."""
    metadata = {**POD["metadata"], **extra}
    assert not ask(NEEDS_LABEL, {**POD, "metadata": metadata}).decision.allowed
    labelled = {**metadata, "labels": {**metadata.get("labels", {}), "team": "a"}}
    assert ask(NEEDS_LABEL, {**POD, "metadata": labelled}).decision.allowed


WRONG_TYPES: list[JSON] = [None, 7, "text", [], True, {"labels": 7}, {"labels": [1]}, {"name": {"a": 1}}]


@pytest.mark.parametrize("metadata", WRONG_TYPES, ids=repr)
def test_wrong_types_never_let_an_object_through(metadata: JSON) -> None:
    """I5: a malformed object is judged and denied; nothing is raised."""
    assert not ask(NEEDS_LABEL, {**POD, "metadata": metadata}).decision.allowed


def test_a_failed_patch_leaves_the_object_as_it_was() -> None:
    """0b4d37bd: rules after a failed patch see the whole object, never an empty one."""
    text = (
        policy("mutate:\n  patchesJson6902: |-\n    - op: test\n      path: /data/a\n      value: other").replace(
            "name: guard", "name: a-change"
        )
        + "---\n"
        + policy("validate:\n  failureAction: Enforce\n  message: a is 1\n  pattern:\n    data:\n      a: '!1'")
    )
    review = ask(text)
    assert [Status.ERROR, Status.FAIL] == [result.status for result in review.results]
    assert (CONFIG_MAP, False) == (review.resource, review.decision.allowed)


def test_the_body_of_an_answer_never_shows() -> None:
    """I4, GHSA-fmqp: a canary in the body of a failed call appears in no text."""
    answer = RecordedAnswer("https://x.example.com", {"canary": "canary-7d1f"}, status=500)
    review = ask(found("apiCall:\n  service:\n    url: https://x.example.com"), host=OfflineHost(answers=(answer,)))
    assert Status.ERROR == only(review)[0]
    assert "canary" not in repr(review.results) + repr(review.decision)


def test_a_delete_is_judged_too() -> None:
    """I5: an object that has only an old side is matched and denied."""
    rule = "validate:\n  failureAction: Enforce\n  message: keep\n  deny: {}"
    review = ask(policy(rule), operation=Operation.DELETE)
    assert (Status.FAIL, "keep") == only(review)


def test_image_rules_without_a_registry_deny() -> None:
    """I7: what cannot be verified is never a pass."""
    text = policy(
        "verifyImages:\n- imageReferences: ['*']\n  failureAction: Enforce\n  attestors:\n  - entries:\n"
        "    - keys:\n        publicKeys: k8s://a/b",
        on="Pod",
    )
    review = ask(text, POD)
    assert ([Status.ERROR, Status.FAIL], False) == ([each.status for each in review.results], review.decision.allowed)


_BUGS = {
    "validate.podSecurity of one rule": "pyverno.compiler.rules.clusterpolicy.lower_validate",
    "match": "pyverno.compiler.rules.clusterpolicy.lower_matcher",
    "autogen": "pyverno.compiler.rules.clusterpolicy.expand",
    "validation": "pyverno.compiler.validation.rules.validate",
    "decoding": "pyverno.compiler.compile.decode",
}


@pytest.mark.parametrize("place", _BUGS.values(), ids=_BUGS)
@pytest.mark.parametrize("action", ["Enforce", "Audit"])
def test_a_policy_whose_compilation_hits_a_bug_errs(place: str, action: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Section 4 of the design: it stays loaded as a rule that yields an error, which its action and policy judge."""
    text = policy(f"validate:\n  failureAction: {action}\n  pattern:\n    data: '*'", on="ConfigMap")
    body = next(iter(expand_lists(load_documents(text.encode(), file="")))).value

    def broken(*_: object, **__: object) -> object:
        raise ZeroDivisionError

    monkeypatch.setattr(place, broken)
    store = PolicyStore()
    assert ["internal"] == [error.code for error in store.put(body).errors]
    monkeypatch.undo()
    engine = Engine(store.policies.all, OfflineHost())
    review = engine.review(Request.from_manifest({**CONFIG_MAP, "data": None}), ADMISSION)
    assert ([Status.ERROR], action == "Audit") == ([each.status for each in review.results], review.decision.allowed)
    if place.endswith("lower_validate"):  # its match could be read
        assert () == engine.review(Request.from_manifest(POD), ADMISSION).results


@pytest.mark.parametrize("kind", ["ValidatingPolicy", "MutatingPolicy", "ImageValidatingPolicy"])
def test_a_policy_in_cel_whose_compilation_hits_a_bug_errs(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same for kinds of one rule: every request of their phase is an error."""

    def broken(*_: object, **__: object) -> object:
        raise ZeroDivisionError

    document: JSONObject = {"apiVersion": "policies.kyverno.io/v1", "kind": kind, "metadata": {"name": "a"}, "spec": {}}
    monkeypatch.setattr("pyverno.compiler.compile.decode", broken)
    store = PolicyStore()
    store.put(document)
    monkeypatch.undo()
    review = Engine(store.policies.all, OfflineHost()).review(Request.from_manifest(CONFIG_MAP), ADMISSION)
    assert ([Status.ERROR], False) == ([each.status for each in review.results], review.decision.allowed)
