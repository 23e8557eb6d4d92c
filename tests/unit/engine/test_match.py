"""Match blocks: what fits, what the index key alone decides, and the reason when something does not fit."""

from __future__ import annotations

import pytest

from pyverno.engine.match import Filter, IndexKey, Matcher, Subject
from pyverno.engine.request import Request, User
from pyverno.kube.gvk import GVK, parse_kind_selector
from pyverno.kube.resource import Resource

POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "shop", "labels": {"app": "web"}}}
PODS = Filter(kinds=(parse_kind_selector("Pod"),))
CREATED = IndexKey(GVK("", "v1", "Pod"), "", "CREATE", "shop")


def is_shop(namespace):
    """Test a namespace."""
    return namespace == "shop"


def mismatch(matcher, **changes):
    """Return why a Pod is not matched."""
    request = Request.from_manifest(POD, **changes)
    return matcher.mismatch(request, Resource(request.subject))


@pytest.mark.parametrize(
    ("block", "reason"),
    [
        (Filter(), "the block is empty"),
        (Filter(kinds=(parse_kind_selector("Secret"),)), "kind Pod is not matched"),
        (Filter(operations=frozenset({"DELETE"})), "operation CREATE is not one of DELETE"),
        (Filter(names=(lambda name: name == "db",)), "name web is not matched"),
        (Filter(namespaces=(lambda name: name == "team",)), "namespace shop is not matched"),
        (Filter(annotations=(("a", "b"),)), "the annotations are not matched"),
        (Filter(selector=lambda labels: False), "the selector does not select the labels"),
        (
            Filter(namespace_selector=lambda labels: False),
            "the namespaceSelector does not select the labels of the namespace",
        ),
        (Filter(roles=frozenset({"shop:editor"})), "the user has none of the roles"),
        (Filter(cluster_roles=frozenset({"view"})), "the user has none of the clusterRoles"),
        (Filter(subjects=(Subject("User", "alice"),)), "the user is none of the subjects"),
    ],
)
def test_a_block_reports_what_does_not_fit(block, reason):
    """The first part that does not fit gives the reason, for `--explain` and reports."""
    request = Request.from_manifest(POD, user=User("bob"))
    assert reason == block.first_mismatch(request, Resource(POD))


def test_one_block_of_any_is_enough_and_all_needs_every_one():
    """The two ways to combine blocks."""
    other = Filter(names=(lambda name: name == "db",))
    assert None is mismatch(Matcher(any_of=(other, PODS)))
    assert None is not mismatch(Matcher(all_of=(other, PODS)))


def test_an_excluded_object_is_not_matched():
    """Exclusion wins over matching."""
    assert None is not mismatch(Matcher(any_of=(PODS,), exclude_any=(Filter(namespaces=(is_shop,)),)))


def test_a_policy_of_a_namespace_matches_nothing_outside_it():
    """Neither other namespaces nor Namespace objects."""
    inside, outside = Matcher(any_of=(PODS,), policy_namespace="shop"), Matcher(any_of=(PODS,), policy_namespace="x")
    assert (True, False) == (inside.may_match(CREATED), outside.may_match(CREATED))
    assert None is mismatch(inside)
    assert None is not mismatch(outside)


def test_the_index_key_rules_out_what_cannot_match():
    """Rules for other kinds, operations and namespaces are never evaluated."""
    assert [True, False, False, False] == [
        block.may_match(CREATED)
        for block in (
            PODS,
            Filter(kinds=(parse_kind_selector("Secret"),)),
            Filter(operations=frozenset({"DELETE"})),
            Filter(namespaces=(lambda name: name == "team",)),
        )
    ]


def test_only_blocks_of_kinds_operations_and_namespaces_are_certain():
    """A block about names, labels or users must look at each request."""
    assert Matcher(any_of=(PODS,)).surely_matches(CREATED)
    named = Filter(kinds=PODS.kinds, names=(lambda name: True,))
    assert not Matcher(any_of=(named,)).surely_matches(CREATED)
    assert not Matcher(any_of=(PODS,), exclude_any=(named,)).surely_matches(CREATED)


def test_an_operation_is_named_only_where_it_is_listed():
    """A block without operations matches deletions and does not name them."""
    deleting = Filter(kinds=PODS.kinds, operations=frozenset({"DELETE"}))
    assert [False, True] == [Matcher(any_of=(block,)).names_operation("DELETE") for block in (PODS, deleting)]


@pytest.mark.parametrize(
    ("subject", "fits"),
    [
        (Subject("User", "system:*"), True),
        (Subject("Group", "dev*"), True),
        (Subject("ServiceAccount", "robot", "shop"), True),
        (Subject("ServiceAccount", "robot", "team"), False),
        (Subject("Robot", "*"), False),
    ],
)
def test_subjects_fit_users_groups_and_service_accounts(subject, fits):
    """Wildcards are allowed; unknown kinds fit nothing."""
    assert fits is subject.matches(User("system:serviceaccount:shop:robot", ("devs",)))


def test_overlong_keys_are_distinguished():
    """Caches keep only keys whose texts may be names."""
    long = IndexKey(GVK("", "v1", "K" * 1000), "", "CREATE", "")
    assert (True, False) == (CREATED.is_short, long.is_short)
