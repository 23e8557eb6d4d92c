"""Escalation: users grant only permissions that they have."""

from __future__ import annotations

import pytest

from kubesandbox.authorization.access import PolicyRule
from kubesandbox.authorization.escalation import check_escalation, covers
from kubesandbox.authorization.rbac import GROUP, RbacAuthorizer
from pyverno.engine.request import Operation, User
from pyverno.kube.status import StatusError
from tests.support.admissionstage import cluster, request

JIM = User("jim", ("system:authenticated",))
PODS = {"apiGroups": ["", "apps"], "resources": ["pods", "deployments"], "verbs": ["get", "list"]}


def body(kind, name, **fields):
    metadata = {"name": name, **({"namespace": "x"} if not kind.startswith("Cluster") else {})}
    return {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": metadata, **fields}


def bound(role, *, name="held", user="jim"):
    reference = {"apiGroup": GROUP, "kind": "ClusterRole", "name": role}
    subjects = [{"apiGroup": GROUP, "kind": "User", "name": user}]
    return body("ClusterRoleBinding", name, roleRef=reference, subjects=subjects)


def held(*rules):
    return (body("ClusterRole", "held", rules=list(rules)), bound("held"))


def refusal(written, *bodies, user=JIM, **options) -> StatusError:
    _, view = cluster(*bodies)
    with pytest.raises(StatusError) as refused:
        check_escalation(request(written, user=user, **options), view, RbacAuthorizer(view))
    return refused.value


def allowed(written, *bodies, user=JIM, **options) -> None:
    _, view = cluster(*bodies)
    check_escalation(request(written, user=user, **options), view, RbacAuthorizer(view))


def test_a_role_with_rights_that_are_not_held_is_refused():
    """The error lists the missing rights by group and resource, with all verbs."""
    error = refusal(body("ClusterRole", "esc", rules=[PODS]), *held({**PODS, "apiGroups": [""]}))
    expected = (
        'clusterroles.rbac.authorization.k8s.io "esc" is forbidden: user "jim" (groups=["system:authenticated"]) is '
        "attempting to grant RBAC permissions not currently held:\n"
        '{APIGroups:["apps"], Resources:["deployments"], Verbs:["get" "list"]}\n'
        '{APIGroups:["apps"], Resources:["pods"], Verbs:["get" "list"]}'
    )
    assert (403, expected) == (error.status, error.message)


def test_roles_that_could_not_be_found_are_named():
    """A refusal may come of a binding to a role that is missing."""
    error = refusal(body("ClusterRole", "esc", rules=[PODS]), bound("nothing"))
    assert error.message.endswith('; resolution errors: [clusterroles.rbac.authorization.k8s.io "nothing" not found]')


def test_held_rights_may_be_given():
    """Wildcards cover what they stand for."""
    allowed(body("ClusterRole", "esc", rules=[PODS]), *held({"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}))


def test_who_may_escalate_may_give_anything():
    """The verb `escalate` on the role is the way around, and so is being a master."""
    escalate = {"apiGroups": [GROUP], "resources": ["clusterroles"], "verbs": ["escalate"]}
    allowed(body("ClusterRole", "esc", rules=[PODS]), *held(escalate))
    allowed(body("ClusterRole", "esc", rules=[PODS]), user=User("root", ("system:masters",)))


def test_bindings_need_the_rights_of_their_role():
    """A binding gives what its role holds, in its namespace or everywhere."""
    view = body("ClusterRole", "view", rules=[PODS])
    reference = {"apiGroup": GROUP, "kind": "ClusterRole", "name": "view"}
    written = body("RoleBinding", "b", roleRef=reference, subjects=[])
    assert 'rolebindings.rbac.authorization.k8s.io "b" is forbidden: ' in refusal(written, view).message
    allowed(written, view, *held(PODS))
    bind = {"apiGroups": [GROUP], "resources": ["clusterroles"], "verbs": ["bind"], "resourceNames": ["view"]}
    allowed(written, view, *held(bind))


def test_a_binding_needs_a_role_that_exists():
    """Unless the writer may bind it anyway."""
    reference = {"apiGroup": GROUP, "kind": "ClusterRole", "name": "nope"}
    written = body("RoleBinding", "b", roleRef=reference, subjects=[])
    error = refusal(written)
    assert (404, 'rolebindings.rbac.authorization.k8s.io "nope" not found') == (error.status, error.message)


def test_aggregation_is_for_those_who_may_everything():
    """Rules that an aggregated role will contain cannot be checked in advance."""
    rule = {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}
    error = refusal(body("ClusterRole", "agg", rules=[], aggregationRule=rule))
    assert "must have cluster-admin privileges to use the aggregationRule" in error.message


def test_owners_and_finalizers_may_always_be_written():
    """The garbage collector needs no rights for what it does to roles."""
    role = body("ClusterRole", "r", rules=[PODS])
    metadata = {**role["metadata"], "finalizers": ["a/b"], "ownerReferences": []}
    allowed({**role, "metadata": metadata}, old=role, operation=Operation.UPDATE)
    assert 403 == refusal({**role, "rules": [PODS, PODS]}, old=role, operation=Operation.UPDATE).status


@pytest.mark.parametrize(
    ("held_rule", "wanted", "expected"),
    [
        (PolicyRule(("get",), ("",), ("*/status",)), PolicyRule(("get",), ("",), ("pods/status",)), 0),
        (PolicyRule(("get",), ("",), ("pods",)), PolicyRule(("get",), ("",), ("pods/status",)), 1),
        (PolicyRule(("get",), ("",), ("pods",), ("a",)), PolicyRule(("get",), ("",), ("pods",)), 1),
        (PolicyRule(("get",), ("",), ("pods",)), PolicyRule(("get",), ("",), ("pods",), ("a",)), 0),
        (PolicyRule(("get",), ("",), ("pods",), ("a",)), PolicyRule(("get",), ("",), ("pods",), ("a", "b")), 1),
        (PolicyRule(("get",), urls=("/a/*",)), PolicyRule(("get",), urls=("/a/b", "/c")), 1),
        (PolicyRule(("*",), urls=("*",)), PolicyRule(("get", "post"), urls=("/a", "/b")), 0),
    ],
)
def test_rules_cover_rules_part_by_part(held_rule, wanted, expected):
    """Names narrow, wildcards widen."""
    assert expected == len(covers([held_rule], [wanted]))
