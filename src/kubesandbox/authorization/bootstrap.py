"""The roles and bindings that every cluster has from its first second.

They are facts of Kubernetes, kept as short texts: `verbs | groups | resources [| names]`, or `verbs | urls`; `READ`,
`WRITE` and `ALL` stand for lists of verbs, `core` for the group without a name. Roles for parts that a sandbox does not
have (volumes, clouds, autoscaling) are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kubesandbox.authentication.certificates import ADMIN_GROUP
from kubesandbox.authorization.rbac import GROUP
from pyverno.kube.json import JSONObject

__all__ = ["bootstrap_objects"]

_VERBS = {
    "READ": "get list watch",
    "WRITE": "create delete deletecollection patch update",
    "ALL": "create delete deletecollection get list patch update watch",
    "MOST": "create delete get list patch update watch",
}
_EVENTS = "create patch update | core events.k8s.io | events"
_HEALTH = "/healthz /livez /readyz /version /version/"

_ROLES: Mapping[str, tuple[str, ...]] = {
    "cluster-admin": ("* | * | *", "* | *"),
    "system:aggregate-to-admin": (
        "create | authorization.k8s.io | localsubjectaccessreviews",
        "ALL | rbac.authorization.k8s.io | rolebindings roles",
    ),
    "system:aggregate-to-edit": (
        "READ | core | pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy",
        "impersonate | core | serviceaccounts",
        "WRITE | core | pods pods/attach pods/exec pods/portforward pods/proxy",
        "create | core | pods/eviction",
        "WRITE | core | configmaps persistentvolumeclaims replicationcontrollers replicationcontrollers/scale secrets"
        " serviceaccounts services services/proxy",
        "create | core | serviceaccounts/token",
        "WRITE | core events.k8s.io | events",
        "WRITE | apps | daemonsets deployments deployments/rollback deployments/scale replicasets replicasets/scale"
        " statefulsets statefulsets/scale",
        "WRITE | autoscaling | horizontalpodautoscalers",
        "WRITE | batch | cronjobs jobs",
        "WRITE | extensions | daemonsets deployments deployments/rollback deployments/scale ingresses networkpolicies"
        " replicasets replicasets/scale replicationcontrollers/scale",
        "WRITE | policy | poddisruptionbudgets",
        "WRITE | networking.k8s.io | ingresses networkpolicies",
        "ALL | coordination.k8s.io | leases",
        "WRITE | resource.k8s.io | resourceclaims resourceclaimtemplates",
    ),
    "system:aggregate-to-view": (
        "READ | core | configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status pods"
        " replicationcontrollers replicationcontrollers/scale serviceaccounts services services/status",
        "READ | core | bindings limitranges namespaces/status pods/log pods/status replicationcontrollers/status"
        " resourcequotas resourcequotas/status",
        "READ | core | namespaces",
        "READ | core events.k8s.io | events",
        "READ | discovery.k8s.io | endpointslices",
        "READ | apps | controllerrevisions daemonsets daemonsets/status deployments deployments/scale"
        " deployments/status replicasets replicasets/scale replicasets/status statefulsets statefulsets/scale"
        " statefulsets/status",
        "READ | autoscaling | horizontalpodautoscalers horizontalpodautoscalers/status",
        "READ | batch | cronjobs cronjobs/status jobs jobs/status",
        "READ | extensions | daemonsets daemonsets/status deployments deployments/scale deployments/status ingresses"
        " ingresses/status networkpolicies replicasets replicasets/scale replicasets/status"
        " replicationcontrollers/scale",
        "READ | policy | poddisruptionbudgets poddisruptionbudgets/status",
        "READ | networking.k8s.io | ingresses ingresses/status networkpolicies",
        "READ | resource.k8s.io | resourceclaims resourceclaims/status resourceclaimtemplates",
    ),
    "system:auth-delegator": (
        "create | authentication.k8s.io | tokenreviews",
        "create | authorization.k8s.io | subjectaccessreviews",
    ),
    "system:basic-user": (
        "create | authorization.k8s.io | selfsubjectaccessreviews selfsubjectrulesreviews",
        "create | authentication.k8s.io | selfsubjectreviews",
    ),
    "system:certificates.k8s.io:certificatesigningrequests:nodeclient": (
        "create | certificates.k8s.io | certificatesigningrequests/nodeclient",
    ),
    "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient": (
        "create | certificates.k8s.io | certificatesigningrequests/selfnodeclient",
    ),
    "system:certificates.k8s.io:kube-apiserver-client-approver": (
        "approve | certificates.k8s.io | signers | kubernetes.io/kube-apiserver-client",
    ),
    "system:certificates.k8s.io:kube-apiserver-client-kubelet-approver": (
        "approve | certificates.k8s.io | signers | kubernetes.io/kube-apiserver-client-kubelet",
    ),
    "system:certificates.k8s.io:kubelet-serving-approver": (
        "approve | certificates.k8s.io | signers | kubernetes.io/kubelet-serving",
    ),
    "system:certificates.k8s.io:legacy-unknown-approver": (
        "approve | certificates.k8s.io | signers | kubernetes.io/legacy-unknown",
    ),
    "system:discovery": (f"get | /api /api/* /apis /apis/* /openapi /openapi/* {_HEALTH}",),
    "system:kube-controller-manager": (
        _EVENTS,
        "create | coordination.k8s.io | leases",
        "get update | coordination.k8s.io | leases | kube-controller-manager",
        "create | core | secrets serviceaccounts",
        "delete | core | secrets",
        "get | core | configmaps namespaces secrets serviceaccounts",
        "update | core | secrets serviceaccounts",
        "create | authentication.k8s.io | tokenreviews",
        "create | authorization.k8s.io | subjectaccessreviews",
        "list watch | * | *",
        "create | core | serviceaccounts/token",
    ),
    "system:kube-scheduler": (
        _EVENTS,
        "create | coordination.k8s.io | leases",
        "get list update watch | coordination.k8s.io | leases | kube-scheduler",
        "ALL | coordination.k8s.io | leasecandidates",
        "READ | core | nodes",
        "delete READ | core | pods",
        "create | core | bindings pods/binding",
        "patch update | core | pods/status",
        "READ | core | replicationcontrollers services",
        "READ | apps extensions | replicasets",
        "READ | apps | statefulsets",
        "READ | policy | poddisruptionbudgets",
        "READ | core | persistentvolumeclaims persistentvolumes",
        "create | authentication.k8s.io | tokenreviews",
        "create | authorization.k8s.io | subjectaccessreviews",
        "READ | storage.k8s.io | csinodes",
        "READ | storage.k8s.io | volumeattachments",
        "READ | core | namespaces",
        "READ | storage.k8s.io | csidrivers",
        "READ | storage.k8s.io | csistoragecapacities",
        "READ | resource.k8s.io | deviceclasses",
        "get list patch update watch | resource.k8s.io | resourceclaims",
        "get list patch update watch | resource.k8s.io | resourceclaims/status",
        "update | core | pods/finalizers",
        "READ | resource.k8s.io | resourceslices",
    ),
    "system:kubelet-api-admin": (
        "READ | core | nodes",
        "proxy | core | nodes",
        "* | core | nodes/log nodes/metrics nodes/proxy nodes/stats",
        "* | core | nodes/configz nodes/healthz nodes/pods",
    ),
    "system:monitoring": (
        "get | /healthz /healthz/* /livez /livez/* /metrics /metrics/slis /readyz /readyz/*",
        "get | core | nodes/metrics",
    ),
    "system:node": (
        "create | authentication.k8s.io | tokenreviews",
        "create | authorization.k8s.io | localsubjectaccessreviews subjectaccessreviews",
        "READ | core | services",
        "create READ | core | nodes",
        "patch update | core | nodes/status",
        "patch update | core | nodes",
        _EVENTS,
        "READ | core | pods",
        "create delete | core | pods",
        "patch update | core | pods/status",
        "create | core | pods/eviction",
        "READ | core | configmaps secrets",
        "get | core | persistentvolumeclaims persistentvolumes",
        "get | core | endpoints",
        "create READ | certificates.k8s.io | certificatesigningrequests",
        "create delete get patch update | coordination.k8s.io | leases",
        "get | storage.k8s.io | volumeattachments",
        "create | core | serviceaccounts/token",
        "get patch update | core | persistentvolumeclaims/status",
        "READ | storage.k8s.io | csidrivers",
        "create delete get patch update | storage.k8s.io | csinodes",
        "READ | node.k8s.io | runtimeclasses",
        "get | resource.k8s.io | resourceclaims",
        "deletecollection | resource.k8s.io | resourceslices",
        "get | core | serviceaccounts",
    ),
    "system:node-problem-detector": ("get | core | nodes", "patch | core | nodes/status", _EVENTS),
    "system:public-info-viewer": (f"get | {_HEALTH}",),
    "system:service-account-issuer-discovery": (
        "get | /.well-known/openid-configuration /.well-known/openid-configuration/ /openid/v1/jwks /openid/v1/jwks/",
    ),
}

_CONTROLLERS: Mapping[str, tuple[str, ...]] = {
    "certificate-controller": (
        "delete READ | certificates.k8s.io | certificatesigningrequests",
        "update | certificates.k8s.io | certificatesigningrequests/approval certificatesigningrequests/status",
        "approve | certificates.k8s.io | signers | kubernetes.io/kube-apiserver-client-kubelet",
        "sign | certificates.k8s.io | signers | kubernetes.io/kube-apiserver-client"
        " kubernetes.io/kube-apiserver-client-kubelet kubernetes.io/kubelet-serving kubernetes.io/legacy-unknown",
        "create | authorization.k8s.io | subjectaccessreviews",
        _EVENTS,
    ),
    "clusterrole-aggregation-controller": (
        "escalate get list patch update watch | rbac.authorization.k8s.io | clusterroles",
    ),
    "cronjob-controller": (
        "get list update watch | batch | cronjobs",
        "MOST | batch | jobs",
        "update | batch | cronjobs/status",
        "update | batch | cronjobs/finalizers",
        "delete list watch | core | pods",
        _EVENTS,
    ),
    "daemon-set-controller": (
        "READ | apps extensions | daemonsets",
        "update | apps extensions | daemonsets/status",
        "update | apps extensions | daemonsets/finalizers",
        "list watch | core | nodes",
        "create delete list patch watch | core | pods",
        "create | core | pods/binding",
        "MOST | apps | controllerrevisions",
        _EVENTS,
    ),
    "deployment-controller": (
        "get list update watch | apps extensions | deployments",
        "update | apps extensions | deployments/status",
        "update | apps extensions | deployments/finalizers",
        "MOST | apps extensions | replicasets",
        "get list update watch | core | pods",
        _EVENTS,
    ),
    "disruption-controller": (
        "READ | apps extensions | deployments",
        "READ | apps extensions | replicasets",
        "READ | core | replicationcontrollers",
        "READ | policy | poddisruptionbudgets",
        "READ | apps | statefulsets",
        "update | policy | poddisruptionbudgets/status",
        "patch update | core | pods/status",
        "get | * | */scale",
        _EVENTS,
    ),
    "endpoint-controller": (
        "READ | core | pods services",
        "create delete get list update watch | core | endpoints",
        "create | core | endpoints/restricted",
        _EVENTS,
    ),
    "endpointslice-controller": (
        "READ | core | nodes pods services",
        "update | core | services/finalizers",
        "create delete get list update watch | discovery.k8s.io | endpointslices",
        _EVENTS,
    ),
    "generic-garbage-collector": ("delete get list patch update watch | * | *", _EVENTS),
    "job-controller": (
        "get list patch update watch | batch | jobs",
        "update | batch | jobs/status",
        "update | batch | jobs/finalizers",
        "create delete list patch watch | core | pods",
        _EVENTS,
    ),
    "namespace-controller": (
        "delete READ | core | namespaces",
        "update | core | namespaces/finalize namespaces/status",
        "delete deletecollection READ | * | *",
    ),
    "node-controller": (
        "delete get list patch update watch | core | nodes",
        "patch update | core | nodes/status",
        "patch update | core | pods/status",
        "delete READ | core | pods",
        _EVENTS,
    ),
    "pod-garbage-collector": ("delete list watch | core | pods", "READ | core | nodes", "patch | core | pods/status"),
    "replicaset-controller": (
        "get list update watch | apps extensions | replicasets",
        "update | apps extensions | replicasets/status",
        "update | apps extensions | replicasets/finalizers",
        "create delete list patch watch | core | pods",
        _EVENTS,
    ),
    "resourcequota-controller": ("list watch | * | *", "update | core | resourcequotas/status", _EVENTS),
    "root-ca-cert-publisher": ("create update | core | configmaps", _EVENTS),
    "service-account-controller": ("create | core | serviceaccounts", _EVENTS),
    "statefulset-controller": (
        "list watch | core | pods",
        "READ | apps | statefulsets",
        "update | apps | statefulsets/status",
        "update | apps | statefulsets/finalizers",
        "create delete get patch update | core | pods",
        "MOST | apps | controllerrevisions",
        "create READ | core | persistentvolumeclaims",
        "delete update | core | persistentvolumeclaims",
        "update | core | pods/finalizers",
        _EVENTS,
    ),
    "ttl-after-finished-controller": ("delete READ | batch | jobs", _EVENTS),
    "validatingadmissionpolicy-status-controller": (
        "READ | admissionregistration.k8s.io | validatingadmissionpolicies",
        "get patch update | admissionregistration.k8s.io | validatingadmissionpolicies/status",
        _EVENTS,
    ),
}

_AGGREGATED = {"admin": "", "edit": "admin", "view": "edit"}
"""Aggregated ClusterRoles → the ClusterRole that aggregates them."""

_SUBJECTS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "cluster-admin": (("Group", "system:masters"),),
    "system:basic-user": (("Group", "system:authenticated"),),
    "system:discovery": (("Group", "system:authenticated"),),
    "system:kube-controller-manager": (("User", "system:kube-controller-manager"),),
    "system:kube-scheduler": (("User", "system:kube-scheduler"),),
    "system:monitoring": (("Group", "system:monitoring"),),
    "system:node": (),
    "system:public-info-viewer": (("Group", "system:authenticated"), ("Group", "system:unauthenticated")),
    "system:service-account-issuer-discovery": (("Group", "system:serviceaccounts"),),
}


def bootstrap_objects() -> Iterator[JSONObject]:
    """Yield the ClusterRoles, the ClusterRoleBindings, and the Role and RoleBinding of kube-system.

    >>> [each["metadata"]["name"] for each in bootstrap_objects()][:3]
    ['cluster-admin', 'system:aggregate-to-admin', 'system:aggregate-to-edit']
    """
    for name, rules in _ROLES.items():
        part_of = name.removeprefix("system:aggregate-to-") if name.startswith("system:aggregate-to-") else ""
        yield {**_head("ClusterRole", name, part_of=part_of), "rules": [_rule(text) for text in rules]}
    for name, part_of in _AGGREGATED.items():
        selector = {"matchLabels": {_aggregation_label(name): "true"}}
        role = _head("ClusterRole", name, part_of=part_of)
        # the rules equal the aggregation controller's result, so that it has nothing to change
        parts = [each for part in _collect(name) for each in _ROLES[f"system:aggregate-to-{part}"]]
        rule = {"clusterRoleSelectors": [selector]}
        yield {**role, "aggregationRule": rule, "rules": [_rule(text) for text in parts]}
    for name, rules in _CONTROLLERS.items():
        full = f"system:controller:{name}"
        yield {**_head("ClusterRole", full), "rules": [_rule(text) for text in rules]}
        account = {"kind": "ServiceAccount", "name": name, "namespace": "kube-system"}
        yield _binding(full, full, [account])
    for name, subjects in _SUBJECTS.items():
        yield _binding(name, name, [_subject(*subject) for subject in subjects])
    yield _binding(ADMIN_GROUP, "cluster-admin", [_subject("Group", ADMIN_GROUP)])
    yield from _delegation()


def _collect(name: str) -> tuple[str, ...]:
    """Return the roles that an aggregated role consists of, in the aggregation controller's order."""
    parts = {"view": ("view",), "edit": ("edit", "view"), "admin": ("edit", "view", "admin")}
    return parts[name]


def _delegation() -> Iterator[JSONObject]:
    """Yield the objects from which extension servers read how clients authenticate."""
    name = "extension-apiserver-authentication-reader"
    role = _head("Role", name, namespace="kube-system")
    yield {**role, "rules": [_rule("READ | core | configmaps | extension-apiserver-authentication")]}
    managers = ("system:kube-controller-manager", "system:kube-scheduler")
    yield {
        **_head("RoleBinding", f"system::{name}", namespace="kube-system"),
        "roleRef": {"apiGroup": GROUP, "kind": "Role", "name": name},
        "subjects": [_subject("User", user) for user in managers],
    }


def _head(kind: str, name: str, *, namespace: str = "", part_of: str = "") -> JSONObject:
    labels = {"kubernetes.io/bootstrapping": "rbac-defaults"}
    if part_of:
        labels[_aggregation_label(part_of)] = "true"
    metadata: JSONObject = {
        "name": name,
        "labels": labels,
        "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
    }
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": metadata}


def _aggregation_label(name: str) -> str:
    return f"rbac.authorization.k8s.io/aggregate-to-{name}"


def _binding(name: str, role: str, subjects: list[JSONObject]) -> JSONObject:
    body = {
        **_head("ClusterRoleBinding", name),
        "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": role},
    }
    return {**body, "subjects": subjects} if subjects else body


def _subject(kind: str, name: str) -> JSONObject:
    return {"kind": kind, "apiGroup": GROUP, "name": name}


def _rule(text: str) -> JSONObject:
    parts = [part.split() for part in text.split("|")]
    verbs = sorted(verb for word in parts[0] for verb in _VERBS.get(word, word).split())
    if len(parts) == 2:
        return {"nonResourceURLs": sorted(parts[1]), "verbs": verbs}
    groups = ["" if group == "core" else group for group in parts[1]]
    rule: JSONObject = {"apiGroups": groups, "resources": parts[2], "verbs": verbs}
    if len(parts) > 3:
        rule["resourceNames"] = parts[3]
    return rule
