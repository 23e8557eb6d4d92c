"""Mutations in CEL: how a MutatingPolicy changes an object."""

from __future__ import annotations

import pytest

from tests.support.celpolicies import CONFIG_MAP, ERROR, ask, conditions, kyverno, named, said

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
    """Fields without a mention stay, an atomic list is replaced, a new container is added."""
    review = mutated(
        "Object{spec: Object.spec{containers: [Object.spec.containers{name: 'b', image: 'b:2'}, "
        "Object.spec.containers{name: 'a', args: ['y']}, Object.spec.containers{name: 'n', image: 'n:1'}]}}",
        evaluation={"useServerSideApply": True},
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
    """An apply configuration never removes a field: `optional.none()` leaves it unchanged, null sets it to null."""
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
        (
            "Object{spec: Object.spec{containers: ['b', 'b'].map(name, Object.spec.containers{name: name})}}",
            False,
            "error applying patch: failed to convert patch object to typed object: .spec.containers: "
            'duplicate entries for key [name="b"]',
        ),
        (
            "Object{spec: Object.spec{hostNetwork: 'no', nodes: 1}}",
            False,
            "error applying patch: failed to convert patch object to typed object: errors:\n  .spec.hostNetwork: ",
        ),
        (
            "Object{spec: Object.spec{containers: [Object.spec.containers{name: 'a', args: ['y']}]}}",
            False,
            "error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: "
            ".spec.containers[0].args",
        ),
        (
            "[JSONPatch{op: 'remove', path: '/spec/absent'}]",
            True,
            "JSON Patch: error in remove for path: '/spec/absent': Unable to remove nonexistent key: absent: ",
        ),
        ("[JSONPatch{op: 'replace', path: '', value: 'text'}]", True, "JSON Patch: "),
        ("[JSONPatch{op: 'jump', path: '/spec'}]", True, "JSON Patch: "),
        ("[JSONPatch{op: object.spec.hostNetwork, path: '/spec'}]", True, "unexpected type"),
    ],
)
def test_what_can_not_be_applied_is_an_error_and_changes_nothing(expression, patch, message):
    """The request is denied unless the policy ignores errors; the result is the same either way."""
    review = mutated(expression, patch=patch)
    ((status, text),) = said(review)
    assert ("error", True) == (status, text.startswith(f"failed to evaluate policy: {message}")), text
    assert POD == review.resource
    assert not review.decision.allowed
    ignored = mutated(expression, patch=patch, failurePolicy="Ignore")
    assert ([("error", text)], POD, True) == (said(ignored), ignored.resource, ignored.decision.allowed)


def test_a_mutation_that_fails_takes_those_before_it_along():
    """A policy applies all its mutations or none; later policies still run."""
    texts = ["Object{data: Object.data{a: 'x'}}", "Object{data: Object.data{b: object.missing}}"]
    mutations = [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": text}} for text in texts]
    policies = (
        kyverno("MutatingPolicy", name="half", mutations=mutations, failurePolicy="Ignore"),
        kyverno("MutatingPolicy", name="whole", mutations=mutations[:1]),
    )
    review = ask(*policies)
    assert ["error", "pass"] == [status for status, _ in said(review)]
    assert {"key": "value", "a": "x"} == review.resource["data"]


@pytest.mark.parametrize(
    "expression",
    [
        "Object{?data: optional.none()}",
        "Object{data: Object.data{?key: optional.none(), new: 'x'}}",
        "Object{data: Object.data{?new: optional.of('x')}}",
        "Object{kind: 'Secret', apiVersion: 'v2', data: Object.data{new: 'x'}}",
    ],
)
def test_a_field_without_a_value_is_left_out(expression):
    """The configuration removes nothing, and its own kind is ignored."""
    changed = {**CONFIG_MAP, "data": {"key": "value", "new": "x"}}
    review = mutated(expression, resource=CONFIG_MAP)
    assert (CONFIG_MAP if "?data" in expression else changed) == review.resource


@pytest.mark.parametrize("expression", ["oldObject == {}", "request.oldObject == {}", "request.object == object"])
def test_an_object_that_there_is_none_of_is_an_empty_map(expression):
    """A CREATE has no old object."""
    review = mutated("Object{}", resource=CONFIG_MAP, matchConditions=conditions(expression))
    assert [("pass", "success")] == said(review)


def test_the_pieces_of_a_policy_see_the_object_as_it_is_by_then():
    """A variable is computed once, on first use; conditions may use them."""
    steps = ["Object{data: Object.data{b: variables.seen}}", "Object{data: Object.data{c: variables.seen}}"]
    policy = kyverno(
        "MutatingPolicy",
        variables=named(seen="string(object.data.size())"),
        matchConditions=conditions("variables.seen == '1'"),
        mutations=[{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": text}} for text in steps],
    )
    assert {"key": "value", "b": "1", "c": "1"} == ask(policy).resource["data"]


@pytest.mark.parametrize(("failure_policy", "allowed"), [("Fail", False), ("Ignore", True)])
def test_conditions_that_fail_are_errors(failure_policy, allowed):
    """The failurePolicy decides about the request only."""
    review = mutated("Object{}", failurePolicy=failure_policy, matchConditions=conditions(ERROR), resource=CONFIG_MAP)
    assert (["error"], allowed) == ([result.status.value for result in review.results], review.decision.allowed)


def test_a_mutation_that_changes_nothing_has_no_patch():
    """It passes; the object is the same."""
    (result,) = mutated("Object{spec: Object.spec{hostNetwork: true}}").results
    assert ("success", None) == (result.message, result.patched)
