"""matchConstraints select requests as the API server does."""

import pytest

from pyverno.engine.cel.constraints import NEVER_INTERCEPTED, ConstraintMatcher, ResourceRule, resource_of
from pyverno.engine.match import IndexKey
from pyverno.engine.request import Operation, Request
from pyverno.kube.gvk import GVK, GVR
from pyverno.kube.kinds import BUILTIN_KINDS, KindTable
from pyverno.kube.resource import Resource
from pyverno.kube.selector import compile_selector

PODS = GVR("", "v1", "pods")


def rule(resources="pods", *, groups="", versions="v1", operations="CREATE", names="", scope=""):
    return ResourceRule.of(
        groups=groups.split(",") if groups else [""],
        versions=versions.split(","),
        operations=operations.split(","),
        resources=resources.split(","),
        names=names.split(",") if names else (),
        scope=scope,
    )


def manifest(kind="Pod", api_version="v1", *, namespace="team", name="a", labels=None, **metadata):
    found = {"name": name, **({"namespace": namespace} if namespace else {}), **metadata}
    if labels is not None:
        found["labels"] = labels
    return {"apiVersion": api_version, "kind": kind, "metadata": found}


def request(value=None, **kwargs):
    return Request.from_manifest(manifest() if value is None else value, **kwargs)


def key(asked):
    return IndexKey(asked.gvk, asked.subresource, asked.operation.value, asked.namespace, False, asked.gvr)


def reason(matcher, asked):
    """Return the mismatch, having checked that the answers from the index key agree with it."""
    found = matcher.mismatch(asked, Resource(asked.subject))
    if found is None:
        assert matcher.may_match(key(asked))
    else:
        assert not matcher.surely_matches(key(asked))
    return found


def matches(matcher, asked):
    return reason(matcher, asked) is None


@pytest.mark.parametrize(
    ("resources", "subresource", "expected"),
    [
        ("pods", "", True),
        ("pods", "status", False),
        ("pods/status", "status", True),
        ("pods/status", "", False),
        ("pods/*", "", True),
        ("pods/*", "exec", True),
        ("*/status", "status", True),
        ("*/status", "exec", False),
        ("*/scale", "", False),
        ("*", "", True),
        ("*", "status", False),
        ("*/*", "status", True),
        ("*/*", "", True),
        ("services,pods", "", True),
        ("pod", "", False),
        ("po*", "", False),
    ],
)
def test_resources_and_their_subresources(resources, subresource, expected):
    """`*` alone leaves subresources out, `x/*` takes x itself in, and there are no other wildcards."""
    matcher = ConstraintMatcher((rule(resources),))
    assert expected is matches(matcher, request(gvr=PODS, subresource=subresource))


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"groups": "apps"}, False),
        ({"groups": "*"}, True),
        ({"versions": "v2"}, False),
        ({"versions": "v2,*"}, True),
        ({"operations": "UPDATE"}, False),
        ({"operations": "*"}, True),
        ({"names": "b,a"}, True),
        ({"names": "b"}, False),
        ({"names": "a*"}, False),
        ({"scope": "*"}, True),
        ({"scope": "Namespaced"}, True),
        ({"scope": "Cluster"}, False),
        ({"scope": "namespaced"}, False),
    ],
)
def test_every_part_of_a_rule_has_to_fit(changed, expected):
    """Each part is a list of exact texts or `*`; names know no wildcards at all."""
    assert expected is matches(ConstraintMatcher((rule(**changed),)), request())


def test_an_empty_part_fits_nothing():
    """A rule without operations is not a rule for all of them."""
    empty = ResourceRule.of(groups=[""], versions=["v1"], operations=[], resources=["pods"])
    assert not matches(ConstraintMatcher((empty,)), request())


def test_no_rules_at_all_fit_everything():
    """Bindings may narrow by selectors alone."""
    assert matches(ConstraintMatcher(), request())
    assert ConstraintMatcher().surely_matches(key(request()))


@pytest.mark.parametrize(("scope", "expected"), [("Cluster", True), ("Namespaced", False)])
def test_a_namespace_is_cluster_wide(scope, expected):
    """The namespace of a request for a Namespace is its own name, which does not make it namespaced."""
    asked = Request.from_admission_review(
        {
            "kind": {"group": "", "version": "v1", "kind": "Namespace"},
            "resource": {"group": "", "version": "v1", "resource": "namespaces"},
            "operation": "CREATE",
            "name": "team",
            "namespace": "team",
            "object": manifest("Namespace", namespace="", name="team"),
        }
    )
    assert expected is matches(ConstraintMatcher((rule("namespaces", scope=scope),)), asked)


def test_a_manifest_without_namespace_is_still_namespaced():
    """An object of a namespaced kind has the scope Namespaced before the API server writes its namespace."""
    assert matches(ConstraintMatcher((rule(scope="Namespaced"),)), request(manifest(namespace="")))


@pytest.mark.parametrize(
    ("kind", "api_version", "resource"),
    [
        ("Ingress", "networking.k8s.io/v1", "ingresses"),
        ("NetworkPolicy", "networking.k8s.io/v1", "networkpolicies"),
        ("Deployment", "apps/v7", "deployments"),
        ("Proxy", "example.com/v1", "proxies"),
        ("Foo", "example.com/v1", "foos"),
        ("Bus", "example.com/v1", "buses"),
    ],
)
def test_the_resource_follows_from_the_kind(kind, api_version, resource):
    """Offline a request names a kind only; unknown kinds get the name that apimachinery guesses."""
    group, _, version = api_version.partition("/")
    matcher = ConstraintMatcher((rule(resource, groups=group, versions=version),))
    assert matches(matcher, request(manifest(kind, api_version)))


def test_custom_kinds_have_the_names_of_their_definition():
    """The table may come from a cluster or from CRDs."""
    crd = {
        "spec": {
            "group": "x.io",
            "names": {"kind": "Foo", "plural": "fooses"},
            "scope": "Namespaced",
            "versions": [{"name": "v1", "served": True}],
        }
    }
    kinds = BUILTIN_KINDS.with_crds([crd])
    matcher = ConstraintMatcher((rule("fooses", groups="x.io"),), kinds=kinds)
    assert matches(matcher, request(manifest("Foo", "x.io/v1")))


def test_excludes_win():
    """Exclude rules take precedence over resource rules; they may name single objects."""
    asked = request()
    whole = ConstraintMatcher((rule(),), (rule("*/*"),))
    assert reason(whole, asked) == "excluded by excludeResourceRules"
    assert not whole.may_match(key(asked))
    single = ConstraintMatcher((rule(),), (rule(names="b"),))
    assert matches(single, asked)
    assert not single.surely_matches(key(asked))
    assert not matches(single, request(manifest(name="b")))


@pytest.mark.parametrize(
    ("value", "labels", "expected"),
    [
        (manifest(), {"env": "test"}, True),
        (manifest(), {"env": "prod"}, False),
        (manifest("ClusterRole", "rbac.authorization.k8s.io/v1", namespace=""), {"env": "prod"}, True),
        (manifest("Namespace", namespace="", labels={"env": "test"}), {"env": "prod"}, True),
        (manifest("Namespace", namespace="", labels={"env": "prod"}), {"env": "test"}, False),
    ],
)
def test_the_namespace_selector_fits_cluster_wide_objects(value, labels, expected):
    """Cluster-wide objects always fit; a Namespace is judged by the labels that it is going to have."""
    selector = compile_selector({"matchLabels": {"env": "test"}})
    matcher = ConstraintMatcher(namespace_selector=selector)
    assert expected is matches(matcher, request(value, namespace_labels=labels))


def test_a_namespace_that_goes_is_judged_by_its_live_labels():
    """A DELETE has no new object, so the live namespace's labels count."""
    selector = compile_selector({"matchLabels": {"env": "test"}})
    matcher = ConstraintMatcher(namespace_selector=selector)
    value = manifest("Namespace", namespace="", labels={"env": "test"})
    assert matches(matcher, request(value, operation=Operation.DELETE))
    assert not matches(matcher, request(value, operation=Operation.DELETE, namespace_labels={"env": "prod"}))


def test_an_unknown_namespace_has_its_name_label():
    """Offline the labels of a namespace may be unknown; its name is not."""
    selector = compile_selector({"matchLabels": {"kubernetes.io/metadata.name": "team"}})
    assert matches(ConstraintMatcher(namespace_selector=selector), request())


@pytest.mark.parametrize(
    ("new", "old", "operation", "expected"),
    [
        ({"a": "b"}, {}, Operation.UPDATE, True),
        ({}, {"a": "b"}, Operation.UPDATE, True),
        ({}, {}, Operation.UPDATE, False),
        ({"a": "b"}, None, Operation.DELETE, True),
        ({"a": 1}, None, Operation.CREATE, False),
    ],
)
def test_the_object_selector_looks_at_both_objects(new, old, operation, expected):
    """Taking the label away does not hide an update."""
    matcher = ConstraintMatcher(object_selector=compile_selector({"matchLabels": {"a": "b"}}))
    before = None if old is None else manifest(labels=old)
    assert expected is matches(matcher, request(manifest(labels=new), old=before, operation=operation))


@pytest.mark.parametrize(
    ("groups", "versions", "resource", "kind", "api_version", "expected"),
    [
        ("autoscaling", "v1", "horizontalpodautoscalers", "HorizontalPodAutoscaler", "autoscaling/v2", True),
        ("events.k8s.io", "v1", "events", "Event", "v1", True),
        ("apps", "v1beta9", "deployments", "Deployment", "apps/v1", False),
        ("kyverno.io", "v2", "policyexceptions", "PolicyException", "policies.kyverno.io/v1", False),
    ],
)
def test_equivalent_resources_match_where_they_share_a_storage(groups, versions, resource, kind, api_version, expected):
    """Other served versions hold the same objects, other groups only where they share a storage."""
    only = rule(resource, groups=groups, versions=versions)
    asked = request(manifest(kind, api_version))
    assert expected is matches(ConstraintMatcher((only,), is_equivalent=True), asked)
    assert not matches(ConstraintMatcher((only,)), asked)


def test_excludes_are_equivalent_too():
    """An exclude rule for another version excludes."""
    every = rule("*", groups="*", versions="*")
    other = rule("horizontalpodautoscalers", groups="autoscaling", versions="v1")
    asked = request(manifest("HorizontalPodAutoscaler", "autoscaling/v2"))
    assert not matches(ConstraintMatcher((every,), (other,), is_equivalent=True), asked)
    assert matches(ConstraintMatcher((every,), (other,)), asked)


def test_names_that_are_not_given_yet():
    """The API server sees an empty name; Kyverno compares the prefix with the names of the list."""
    asked = request(manifest(name="", generateName="web-1-"))
    matcher = ConstraintMatcher((rule(names="web"),))
    assert not matches(matcher, asked)
    assert matches(ConstraintMatcher((rule(names="web"),), matches_generated_names=True), asked)
    assert not matches(ConstraintMatcher((rule(names="web-1-2"),), matches_generated_names=True), asked)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (manifest(), True),
        (manifest(namespace="other"), False),
        (manifest("Namespace", namespace="", name="team"), False),
        (manifest("Namespace", namespace="team", name="team"), False),
        (manifest("ClusterRole", "rbac.authorization.k8s.io/v1", namespace="team"), False),
    ],
)
def test_a_namespaced_policy_is_confined(value, expected):
    """It matches objects of its own namespace, and no cluster-wide object even if its metadata names the namespace."""
    matcher = ConstraintMatcher((rule("*", groups="*", versions="*"),), policy_namespace="team")
    assert expected is matches(matcher, request(value))
    assert expected is matcher.surely_matches(key(request(value)))


def test_the_namespace_of_the_request_counts():
    """The namespace in the object's metadata does not override the request's namespace."""
    matcher = ConstraintMatcher((rule(),), policy_namespace="team")
    asked = Request(Operation.CREATE, manifest(), None, GVK("", "v1", "Pod"), PODS, namespace="other", name="a")
    assert reason(matcher, asked) == "the policy is confined to namespace team"


def test_admission_policies_are_never_shown_to_themselves():
    """A policy cannot lock its own kind; webhook configurations it can."""
    group = "admissionregistration.k8s.io"
    matcher = ConstraintMatcher((rule("*", groups="*", versions="*"),), never=NEVER_INTERCEPTED)
    refused = manifest("ValidatingAdmissionPolicyBinding", f"{group}/v1", namespace="")
    assert not matches(matcher, request(refused))
    assert not matcher.may_match(key(request(refused)))
    assert matches(matcher, request(manifest("ValidatingWebhookConfiguration", f"{group}/v1", namespace="")))


@pytest.mark.parametrize(
    ("matcher", "expected"),
    [
        (ConstraintMatcher((rule(),)), True),
        (ConstraintMatcher((rule(names="a"),)), False),
        (ConstraintMatcher((rule(),), object_selector=compile_selector({"matchLabels": {"a": "b"}})), False),
        (ConstraintMatcher((rule(),), namespace_selector=compile_selector({"matchLabels": {"a": "b"}})), False),
        (ConstraintMatcher((rule("services"),)), False),
    ],
)
def test_certainty_needs_nothing_but_the_key(matcher, expected):
    """Names and selectors leave a doubt."""
    assert expected is matcher.surely_matches(key(request()))


def test_a_request_without_object_is_not_matched():
    """A request without any object gives no result."""
    asked = Request(Operation.CONNECT, None, None, GVK("", "v1", "Pod"), PODS)
    assert ConstraintMatcher().mismatch(asked, Resource({})) == "the request holds no object"


def test_the_reason_names_the_request():
    """The reason names the operation, resource or name that no rule matches."""
    asked = request(gvr=PODS, subresource="status")
    assert reason(ConstraintMatcher((rule(),)), asked) == "operation CREATE on v1/pods/status is not matched"
    assert reason(ConstraintMatcher((rule(names="b"),)), request()) == "name a is not one of resourceNames"


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("Certificate", "certificates"),
        ("NodeClass", "nodeclasses"),
        ("AuthorizationPolicy", "authorizationpolicies"),
        ("Gateway", "gateways"),
        ("SecurityContextConstraints", "securitycontextconstraints"),
    ],
)
def test_the_resource_of_an_unknown_kind_is_its_english_plural(kind, expected):
    """Policies in CEL name resources; offline, nothing but the kind of a custom resource is known."""
    assert resource_of(GVK("x.io", "v1", kind), KindTable()).resource == expected
