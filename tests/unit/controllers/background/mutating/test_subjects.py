"""Existing objects that a rule may match: which kinds are listed, and which cannot be."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pyverno.controllers.background.mutating.subjects import Subject, list_subjects, resources_of
from pyverno.engine.cel.constraints import ConstraintMatcher, ResourceRule
from pyverno.engine.match import Filter, Matcher
from pyverno.errors import PyvernoError
from pyverno.kube.gvk import parse_kind_selector
from pyverno.kube.kinds import BUILTIN_KINDS
from tests.support.apiserver import serving, status


def constraints(group: str, version: str, *resources: str) -> ConstraintMatcher:
    """Return constraints on resources of a group."""
    rule = ResourceRule.of(groups=[group], versions=[version], operations=["CREATE"], resources=resources)
    return ConstraintMatcher((rule,))


def selectors(*kinds: str) -> Matcher:
    """Return a match block of kinds."""
    return Matcher(any_of=(Filter(kinds=tuple(map(parse_kind_selector, kinds))),))


@pytest.mark.parametrize(
    ("matcher", "expected"),
    [
        (constraints("", "v1", "configmaps"), [("v1", "ConfigMap", "")]),
        (constraints("apps", "*", "deployments", "deployments/status"), ["", "status"]),
        (constraints("*", "*", "horizontalpodautoscalers"), [("autoscaling/v2", "HorizontalPodAutoscaler", "")]),
        (constraints("", "v1", "gadgets", "pods/none"), []),
        (selectors("HorizontalPodAutoscaler"), [("autoscaling/v2", "HorizontalPodAutoscaler", "")]),
        (selectors("Pod", "v1/Pod", "Gadget"), [("v1", "Pod", "")]),
    ],
)
def test_every_kind_is_listed_once(matcher: Any, expected: list[Any]) -> None:
    """The version is the one that the cluster prefers; subresources are those that rules name."""
    found = [(info.api_version, info.kind, subresource) for info, subresource in resources_of(matcher, BUILTIN_KINDS)]
    wanted = [("apps/v1", "Deployment", each) if isinstance(each, str) else each for each in expected]
    assert sorted(wanted) == sorted(found)


def listed(matcher: Any, namespace: str = "", **answers: Any) -> list[Any]:
    """Return the subjects found when the server gives these answers for resources."""

    async def run() -> list[Subject | PyvernoError]:
        async with serving() as (script, client):
            for resource, answer in answers.items():
                script.on(f"GET /api/v1/{resource}", answer)
            return [each async for each in list_subjects(client, matcher, BUILTIN_KINDS, namespace)]

    return asyncio.run(run())


def test_a_kind_that_may_not_be_listed_does_not_stop_the_others() -> None:
    """A forbidden list is one error; a kind without the list verb has no objects."""
    items = {"kind": "PodList", "apiVersion": "v1", "items": [{"metadata": {"name": "web"}}]}
    matcher = selectors("Secret", "Pod", "Node")
    found = listed(matcher, pods=items, secrets=status(403, "Forbidden"), nodes=status(405, "MethodNotAllowed"))
    errors = [each.message for each in found if isinstance(each, PyvernoError)]
    objects = [each.document for each in found if isinstance(each, Subject)]
    assert ["Forbidden"] == errors
    assert [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}}] == objects


def test_a_policy_of_a_namespace_lists_no_cluster_scoped_kinds() -> None:
    """A namespaced policy cannot match them."""
    assert [] == listed(selectors("Node"), "shop", nodes={"kind": "NodeList", "items": [{"metadata": {"name": "a"}}]})


def test_a_subresource_of_another_kind_is_an_error() -> None:
    """A `scale` has its own kind and can only be the target of a rule."""
    (error,) = listed(constraints("apps", "v1", "deployments/scale"))
    assert "deployments/scale can only be changed as a target of another resource" == error.message
