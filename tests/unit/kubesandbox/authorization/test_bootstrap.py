"""The roles that every cluster starts with."""

from __future__ import annotations

import pytest

from kubesandbox.authorization.access import AccessAttributes
from kubesandbox.authorization.bootstrap import bootstrap_objects
from kubesandbox.authorization.rbac import RbacAuthorizer
from kubesandbox.storage.store import Store
from pyverno.engine.request import User
from tests.support.admissionstage import in_store


@pytest.mark.parametrize(
    ("name", "groups", "attributes", "expected"),
    [
        ("x", ("system:authenticated",), {"verb": "get", "path": "/apis/apps/v1"}, True),
        ("x", ("system:unauthenticated",), {"verb": "get", "path": "/apis/apps/v1"}, False),
        ("x", ("system:unauthenticated",), {"verb": "get", "path": "/version"}, True),
        ("x", ("kubeadm:cluster-admins",), {"verb": "delete", "resource": "nodes"}, True),
        (
            "x",
            ("system:authenticated",),
            {"verb": "create", "group": "authorization.k8s.io", "resource": "selfsubjectaccessreviews"},
            True,
        ),
        ("x", ("system:authenticated",), {"verb": "list", "resource": "pods"}, False),
        (
            "system:serviceaccount:kube-system:job-controller",
            (),
            {"verb": "create", "resource": "pods", "namespace": "x"},
            True,
        ),
        (
            "system:serviceaccount:kube-system:job-controller",
            (),
            {"verb": "create", "resource": "secrets", "namespace": "x"},
            False,
        ),
    ],
)
def test_every_cluster_begins_with_the_same_rights(name, groups, attributes, expected):
    """By default users may discover the API, administrators may do everything, and controllers may work."""
    found = RbacAuthorizer(in_store(Store(), *bootstrap_objects()))
    assert expected is found.authorize(AccessAttributes(User(name, groups), **attributes)).allowed


def test_aggregated_roles_hold_the_rules_of_their_parts():
    """`admin` may what `edit` may, and `edit` what `view` may, from the beginning."""
    bodies = {each["metadata"]["name"]: each for each in bootstrap_objects() if each["kind"] == "ClusterRole"}
    parts = [bodies[f"system:aggregate-to-{part}"]["rules"] for part in ("edit", "view", "admin")]
    assert parts[1] == bodies["view"]["rules"]
    assert parts[0] + parts[1] == bodies["edit"]["rules"]
    assert parts[0] + parts[1] + parts[2] == bodies["admin"]["rules"]
    assert "true" == bodies["view"]["metadata"]["labels"]["rbac.authorization.k8s.io/aggregate-to-edit"]


def test_every_binding_finds_its_role():
    """No default binding names a missing role, and no name occurs twice."""
    bodies = list(bootstrap_objects())
    names = [(each["kind"], each["metadata"]["name"]) for each in bodies]
    assert len(names) == len(set(names))
    for each in bodies:
        if "roleRef" in each:
            assert (each["roleRef"]["kind"], each["roleRef"]["name"]) in names
