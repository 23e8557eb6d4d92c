"""The objects that a policy lists."""

from __future__ import annotations

from typing import Any

from pyverno.compiler.compile import compile_document
from pyverno.controllers.cleanup.candidates import candidates_of
from pyverno.kube.yaml.documents import Document
from pyverno.policy.cel.policies import DeletingPolicy
from pyverno.policy.cleanup import CleanupPolicy
from pyverno.policy.kinds import KNOWN_KINDS
from tests.support.cleanupstage import cleanup_policy, deleting_policy


def listed(body: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Return kind, namespace and selector of the lists for a policy."""
    written = compile_document(Document(body, "")).written
    assert isinstance(written, (CleanupPolicy, DeletingPolicy))
    return [(each.info.kind, each.namespace, each.selector) for each in candidates_of(written, KNOWN_KINDS)]


def rules(*resources: str, group: str = "", **rest: Any) -> dict[str, Any]:
    """Return matchConstraints."""
    return {"resourceRules": [{"apiGroups": [group], "apiVersions": ["v1"], "resources": list(resources)}], **rest}


def test_each_kind_is_listed_once_in_one_version() -> None:
    """A kind may be named several times; subresources and unknown kinds are left out."""
    kinds = ("Pod", "v1/Pod", "Pod/status", "batch/*/CronJob", "apps/v1/Deployment", "Nothing")
    assert [("Pod", "", ""), ("CronJob", "", ""), ("Deployment", "", "")] == listed(cleanup_policy(kinds=kinds))


def test_a_policy_of_a_namespace_sees_nothing_else() -> None:
    """Cluster-scoped kinds are left out."""
    policy = cleanup_policy(kinds=("Namespace", "Pod"), namespace="team")
    assert [("Pod", "team", "")] == listed(policy)
    deleting = deleting_policy(namespace="team", matchConstraints=rules("pods", "namespaces"))
    assert [("Pod", "team", "")] == listed(deleting)


def test_an_object_selector_is_left_to_the_api_server() -> None:
    """The list request carries it as a query parameter."""
    expressions = [
        {"key": "tier", "operator": "In", "values": ["a", "b"]},
        {"key": "old", "operator": "NotIn", "values": ["c"]},
        {"key": "x", "operator": "DoesNotExist"},
    ]
    selector = {"matchLabels": {"app": "web"}, "matchExpressions": expressions}
    found = listed(deleting_policy(matchConstraints=rules("pods", objectSelector=selector)))
    assert [("Pod", "", "app=web,tier in (a,b),old notin (c),!x")] == found


def test_objects_that_a_policy_names_are_read_by_name() -> None:
    """A role may be limited to these names; a wildcard, a block without names, or too many names need a whole list."""

    def names(*blocks: dict[str, Any]) -> list[str]:
        body = cleanup_policy(match={"any": [{"resources": {"kinds": ["Secret"], **each}} for each in blocks]})
        written = compile_document(Document(body, "")).written
        assert isinstance(written, CleanupPolicy)
        return [each.name for each in candidates_of(written, KNOWN_KINDS)]

    assert ["a", "b"] == names({"names": ["b", "a"]}, {"name": "a"})
    assert [""] == names({"names": ["a", "b*"]})
    assert [""] == names({"names": ["a"]}, {"namespaces": ["team"]})
    assert [""] == names({"names": [f"n{number}" for number in range(100)]})


def test_wildcards_stand_for_what_is_served() -> None:
    """They match groups, versions and resources that the cluster serves."""
    found = {kind for kind, _, _ in listed(deleting_policy(matchConstraints=rules("*", group="apps")))}
    assert {"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "ControllerRevision"} == found
