"""Mutations in CEL: what a MutatingPolicy makes of an object."""

from __future__ import annotations

import pytest

from tests.unit.engine.celpolicies import CONFIG_MAP, ERROR, ask, conditions, kyverno, named, said

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web", "namespace": "team"},
    "spec": {
        "hostNetwork": True,
        "containers": [
            {"name": "a", "image": "a:1", "args": ["x"], "ports": [{"containerPort": 53, "protocol": "UDP"}]},
            {"name": "b", "image": "b:1"},
        ],
    },
}


def mutated(expression, *, patch=False, resource=POD, **spec):
    """Review an object by one mutation of each text."""
    written = {"expression": expression}
    mutation = (
        {"patchType": "JSONPatch", "jsonPatch": written}
        if patch
        else {"patchType": "ApplyConfiguration", "applyConfiguration": written}
    )
    return ask(kyverno("MutatingPolicy", mutations=[mutation], **spec), resource=resource)


def containers(review):
    return review.resource["spec"]["containers"]


def test_containers_are_merged_by_name():
    """What is not mentioned stays, an atomic list is replaced, a new one is added."""
    review = mutated(
        "Object{spec: Object.spec{containers: [Object.spec.containers{name: 'b', image: 'b:2'}, "
        "Object.spec.containers{name: 'a', args: ['y']}, Object.spec.containers{name: 'n', image: 'n:1'}]}}"
    )
    first, second = POD["spec"]["containers"]
    assert [
        {**second, "image": "b:2"},
        {**first, "args": ["y"]},
        {"name": "n", "image": "n:1"},
    ] == containers(review)


def test_ports_are_merged_by_all_of_their_keys():
    """The same number of another protocol is another port."""
    port = "Object.spec.containers.ports{containerPort: 53, name: 'dns'}"
    review = mutated(
        f"Object{{spec: Object.spec{{containers: [Object.spec.containers{{name: 'a', ports: [{port}]}}]}}}}"
    )
    udp = {"containerPort": 53, "protocol": "UDP"}
    assert [udp, {"containerPort": 53, "name": "dns"}] == containers(review)[0]["ports"]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("Object{spec: Object.spec{?hostNetwork: optional.none()}}", True),
        ("Object{spec: Object.spec{?hostNetwork: optional.of(false)}}", False),
        ("Object{spec: Object.spec{hostNetwork: null}}", None),
        ("has(object.spec.absent) ? Object{} : Object{spec: Object.spec{hostNetwork: false}}", False),
    ],
)
def test_an_optional_field_that_is_none_is_not_mentioned(expression, expected):
    """A configuration never removes: none says nothing, a null empties."""
    assert expected == mutated(expression).resource["spec"]["hostNetwork"]


@pytest.mark.parametrize(
    ("operations", "expected"),
    [
        ("op: 'remove', path: '/spec/hostNetwork'", None),
        ("op: 'replace', path: '/spec/hostNetwork', value: false", False),
        (
            "op: 'test', path: '/spec/hostNetwork', value: true}, JSONPatch{op: 'remove', path: '/spec/hostNetwork'",
            None,
        ),
        ("op: 'remove', path: '/spec/hostNetwork'}, JSONPatch{op: 'test', path: '/metadata/name', value: 'x'", True),
    ],
)
def test_json_patches_are_all_or_nothing(operations, expected):
    """A failing test drops the operations of its expression, without an error."""
    review = mutated(f"[JSONPatch{{{operations}}}]", patch=True)
    assert ["pass"] == [result.status.value for result in review.results]
    assert expected == review.resource["spec"].get("hostNetwork")


def test_json_patches_may_hold_objects_and_escaped_keys():
    """A value may be an Object literal or any map; a key with a slash is escaped."""
    review = mutated(
        "[JSONPatch{op: 'add', path: '/metadata/labels', value: Object.metadata.labels{team: 'a'}}, "
        "JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('x.io/y'), value: 'z'}]",
        patch=True,
    )
    assert {"team": "a", "x.io/y": "z"} == review.resource["metadata"]["labels"]


@pytest.mark.parametrize(
    ("expression", "patch", "message"),
    [
        (
            "Object{spec: Object.metadata{}}",
            False,
            'type mismatch: unexpected type name "Object.metadata", expected "Ob',
        ),
        ("Object{spec: object.missing}", False, "no such key: missing"),
        ("Object{kind: 'Secret'}", False, "ApplyConfiguration: kind may not be changed"),
        ("Object{apiVersion: 'v2'}", False, "ApplyConfiguration: apiVersion may not be changed"),
        (
            "Object{spec: Object.spec{containers: [Object.spec.containers{image: 'x'}]}}",
            False,
            '.spec.containers: associative list with keys has an element that omits key field "name"',
        ),
        ("[JSONPatch{op: 'remove', path: '/spec/absent'}]", True, "JSON Patch: "),
        ("[JSONPatch{op: 'replace', path: '', value: 'text'}]", True, "JSON Patch: "),
        ("[JSONPatch{op: 'jump', path: '/spec'}]", True, "JSON Patch: "),
        ("[JSONPatch{op: object.spec.hostNetwork, path: '/spec'}]", True, "unexpected type"),
    ],
)
def test_what_can_not_be_applied_is_an_error_and_changes_nothing(expression, patch, message):
    """The request is denied unless the policy ignores errors; then it says nothing at all."""
    review = mutated(expression, patch=patch)
    ((status, text),) = said(review)
    assert ("error", True) == (status, text.startswith(f"failed to evaluate policy: {message}")), text
    assert POD == review.resource
    assert not review.decision.allowed
    ignored = mutated(expression, patch=patch, failurePolicy="Ignore")
    assert ([], POD, True) == (said(ignored), ignored.resource, ignored.decision.allowed)


def test_the_pieces_of_a_policy_see_the_object_as_it_is_by_then():
    """Variables are computed anew for each mutation; conditions may use them."""
    steps = ["Object{data: Object.data{b: variables.seen}}", "Object{data: Object.data{c: variables.seen}}"]
    policy = kyverno(
        "MutatingPolicy",
        variables=named(seen="string(object.data.size())"),
        matchConditions=conditions("variables.seen == '1'"),
        mutations=[{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": text}} for text in steps],
    )
    assert {"key": "value", "b": "1", "c": "2"} == ask(policy).resource["data"]


@pytest.mark.parametrize(("failure_policy", "expected"), [("Fail", ["error"]), ("Ignore", [])])
def test_conditions_that_fail_follow_the_failure_policy(failure_policy, expected):
    """As everywhere."""
    review = mutated("Object{}", failurePolicy=failure_policy, matchConditions=conditions(ERROR), resource=CONFIG_MAP)
    assert expected == [result.status.value for result in review.results]


def test_a_mutation_that_changes_nothing_has_no_patch():
    """It passes; the object is the same."""
    (result,) = mutated("Object{spec: Object.spec{hostNetwork: true}}").results
    assert ("success", None) == (result.message, result.patched)
