"""Generation in CEL: the objects that a GeneratingPolicy creates."""

from __future__ import annotations

import pytest

from tests.support.celpolicies import ERROR, ask, conditions, exception, kyverno, named, said

GENERATED = "policy evaluated successfully"


def generated(*expressions, kind="GeneratingPolicy", **spec):
    return ask(kyverno(kind, generate=[{"expression": text} for text in expressions], **spec))


def documents(review):
    return [effect.resource for effect in review.effects]


def cm(name, extra=""):
    return f"{{'apiVersion': dyn('v1'), 'kind': dyn('ConfigMap'), 'metadata': dyn({{'name': '{name}'}}){extra}}}"


def test_objects_are_placed_and_labelled_and_never_created():
    """The namespace is that of the call, what only a cluster may set is dropped, the trigger is in the labels."""
    text = cm("a", ", 'data': dyn({'k': object.data.key}), 'status': dyn({})").replace(
        "{'name'", "{'uid': 'u', 'labels': {'own': 'x'}, 'namespace': 'ignored', 'name'"
    )
    review = generated(f"generator.Apply('there', [{text}])", variables=named(unused=ERROR))
    assert [("pass", GENERATED)] == said(review)
    (found,) = documents(review)
    assert {"apiVersion", "kind", "metadata", "data"} == found.keys()
    labels = found["metadata"].pop("labels")
    assert {"name": "a", "namespace": "there"} == found["metadata"]
    assert ("x", "check", "settings", "team", "ConfigMap") == (
        labels["own"],
        *(labels[f"generate.kyverno.io/{key}"] for key in ("policy-name", "trigger-name", "trigger-namespace")),
        labels["generate.kyverno.io/trigger-kind"],
    )


def test_lists_are_taken_apart_and_calls_add_up():
    """A list object stands for its items; a false value generates just as well."""
    many = f"{{'apiVersion': dyn('v1'), 'kind': dyn('ConfigMapList'), 'items': dyn([{cm('b')}, {cm('c')}])}}"
    review = generated(f"!generator.Apply('x', [{cm('a')}, {many}])", f"generator.apply('y', [{cm('d')}])")
    found = [(document["metadata"]["namespace"], document["metadata"]["name"]) for document in documents(review)]
    assert [("x", "a"), ("x", "b"), ("x", "c"), ("y", "d")] == found


def test_a_cluster_wide_object_has_no_namespace():
    """The namespace argument of `Apply` is ignored for it."""
    text = cm("n").replace("ConfigMap", "Namespace")
    (found,) = documents(generated(f"generator.Apply('x', [{text}])"))
    assert "namespace" not in found["metadata"]


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("generator.Apply('other', [{}])", "a policy of namespace `team` may not generate in namespace `other`"),
        ("generator.Apply('', [{}])", "a policy of namespace `team` may not generate in namespace ``"),
        (
            "generator.Apply('team', [{}])".replace("{}", cm("n").replace("ConfigMap", "ClusterRole").replace(
                "'v1'", "'rbac.authorization.k8s.io/v1'")),
            "a policy of namespace `team` may not generate the cluster-scoped kind ClusterRole",
        ),
    ],
)  # fmt: skip
def test_a_policy_of_a_namespace_stays_in_it(expression, message):
    """It generates nothing elsewhere, and nothing that is cluster-wide."""
    review = generated(expression.replace("{}", cm("a")), kind="NamespacedGeneratingPolicy")
    assert ([("error", f"failed to evaluate policy: {message}")], ()) == (said(review), review.effects)


@pytest.mark.parametrize(
    ("objects", "problem"),
    [
        ("{'kind': dyn('AList'), 'items': dyn(['text'])}", "an object to generate must be a map with metadata"),
        ("{'kind': dyn('A'), 'metadata': dyn('text')}", "an object to generate must be a map with metadata"),
        ("{'kind': dyn('ConfigMap')}", "an object to generate has no apiVersion"),
        ("{'apiVersion': dyn('v1')}", "an object to generate has no kind"),
        (cm("a").replace("{'name'", "{'labels': 'x', 'name'"), "the labels of an object to generate must be a map"),
    ],
)
def test_what_is_no_object_is_an_error(objects, problem):
    """An error generates nothing, not even the objects of earlier expressions."""
    review = generated(f"generator.Apply('x', [{cm('a')}])", f"generator.Apply('x', [{objects}])")
    message = f"failed to evaluate policy: failed to generate resources: {problem}"
    assert ([("error", message)], ()) == (said(review), review.effects)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (["false"], []),
        ([ERROR, "false"], []),
        ([ERROR], [("error", "failed to evaluate policy: no such key: missing")]),
        (["true"], [("pass", GENERATED)]),
    ],
)
def test_conditions_that_fail_are_errors(written, expected):
    """A GeneratingPolicy has no failurePolicy."""
    text = f"generator.Apply('x', [{cm('a')}])"
    assert expected == said(generated(text, matchConditions=conditions(*written)))


def test_a_copy_names_its_source_and_outlives_the_policy():
    """An object with a uid was read from the cluster; an object that exists already is not taken over."""
    read = cm("a").replace("{'name'", "{'uid': 'u', 'name'")
    (copy,) = generated(f"generator.Apply('x', [{read}])").effects
    (made,) = generated(f"generator.Apply('x', [{cm('a')}])").effects
    assert ("u", None) == tuple(
        each.resource["metadata"]["labels"].get("generate.kyverno.io/source-uid") for each in (copy, made)
    )
    assert (True, False) == (copy.orphan_on_policy_delete, made.orphan_on_policy_delete)
    assert (False, False) == (copy.adopts, made.adopts)


def test_what_an_exception_allows_is_seen_by_conditions():
    """Without the exception the condition does not hold, and nothing is generated."""
    policy = kyverno(
        "GeneratingPolicy",
        generate=[{"expression": f"generator.Apply('x', [{cm('a')}])"}],
        matchConditions=conditions("'busybox' in exceptions.allowedImages"),
    )
    allowed = exception(kind="GeneratingPolicy", images=["busybox"])
    assert ["a"] == [document["metadata"]["name"] for document in documents(ask(policy, allowed))]
    assert [] == documents(ask(policy))


def test_owners_are_those_that_the_policy_writes():
    """A copy in another namespace has none: a cluster would delete it."""
    owner = "'ownerReferences': [{'apiVersion': 'v1', 'kind': 'Pod', 'name': 'p', 'uid': '1'}]"
    made = cm("a").replace("{'name'", f"{{{owner}, 'name'")
    copy = cm("a").replace("{'name'", f"{{{owner}, 'uid': 'u', 'namespace': 'here', 'name'")
    found = documents(generated(f"generator.Apply('there', [{made}, {copy}])"))
    assert [True, False] == ["ownerReferences" in document["metadata"] for document in found]
