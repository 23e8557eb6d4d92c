"""The manifests that install the controllers in a cluster: definitions, identities, and what runs.

Roles hold what the controllers use and nothing else; further kinds are added by ClusterRoles with the aggregation
label. This module must never apply anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pyverno.install.background import BACKGROUND
from pyverno.install.cleanup import CLEANUP
from pyverno.install.component import (
    RBAC,
    component_manifests,
    isolation,
    policy_resources,
    role_binding,
    rule,
    volumes,
)
from pyverno.install.definitions import definitions
from pyverno.install.reports import REPORTS
from pyverno.install.settings import InstallSettings
from pyverno.kube.json import JSONObject, encode
from pyverno.policy.kinds import WATCHED_POLICIES

__all__ = ["InstallSettings", "manifests"]

_ADMISSION: Final = "kyverno-admission-controller"
_ROLE: Final = "kyverno:admission-controller"
_AGGREGATION: Final = "rbac.kyverno.io/aggregate-to-admission-controller"
_ENTRIES: Final = "globalcontextentries"
_MADE: Final = ("validating", "mutating")
_READ: Final = ["get", "list", "watch"]
_WRITE: Final = ["get", "list", "create", "update", "delete"]


def manifests(settings: InstallSettings) -> Iterator[JSONObject]:
    """Yield everything in the order in which it has to be applied.

    >>> kinds = [each["kind"] for each in manifests(InstallSettings())]
    >>> kinds[0], kinds.count("Deployment")
    ('Namespace', 4)
    """
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": settings.namespace}}
    yield from definitions()
    yield from _identity(settings)
    yield _config_map(settings)
    yield _metrics_config_map(settings)
    yield from _running(settings)
    yield from component_manifests(BACKGROUND, settings)
    yield from component_manifests(REPORTS, settings)
    yield from component_manifests(CLEANUP, settings)


def _metadata(name: str, settings: InstallSettings | None, **labels: str) -> JSONObject:
    found: JSONObject = {"name": name, "labels": {**_LABELS, **labels}}
    if settings is not None:
        found["namespace"] = settings.namespace
    return found


_LABELS: Final = {
    "app.kubernetes.io/part-of": "kyverno",
    "app.kubernetes.io/component": "admission-controller",
    "app.kubernetes.io/name": "kyverno",
}
_POD_LABELS: Final = {"app.kubernetes.io/part-of": "kyverno", "app.kubernetes.io/component": "admission-controller"}
_TOKENS: Final = "/var/run/secrets"
_LESS_LABELS: Final = {
    "kyverno_policy_execution_duration_seconds": ("resource_namespace", "resource_request_operation"),
    "kyverno_validating_policy_execution_duration_seconds": ("resource_namespace", "resource_request_operation"),
    "kyverno_mutating_policy_execution_duration_seconds": ("resource_namespace", "resource_request_operation"),
    "kyverno_admission_review_duration_seconds": ("resource_namespace",),
}
"""Histograms are many series each; these labels would multiply them."""


def _core_rules() -> list[JSONObject]:
    return [
        rule(["apiextensions.k8s.io"], ["customresourcedefinitions"], _READ),
        rule(
            ["admissionregistration.k8s.io"],
            ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"],
            [*_WRITE, "watch"],
        ),
        rule(
            ["admissionregistration.k8s.io"],
            [f"{word}admissionpolicies" for word in _MADE] + [f"{word}admissionpolicybindings" for word in _MADE],
            _WRITE,
        ),
        rule([RBAC], ["rolebindings", "clusterrolebindings"], _READ),
        rule(["kyverno.io"], [*policy_resources("kyverno.io"), _ENTRIES], _READ),
        rule(["policies.kyverno.io"], policy_resources("policies.kyverno.io"), _READ),
        rule(
            ["kyverno.io"],
            ["clusterpolicies/status", "policies/status", f"{_ENTRIES}/status"],
            ["patch"],
        ),
        rule(
            ["policies.kyverno.io"],
            [f"{gvr.resource}/status" for gvr in WATCHED_POLICIES if gvr.group == "policies.kyverno.io"],
            ["patch"],
        ),
        rule(["reports.kyverno.io"], ["ephemeralreports", "clusterephemeralreports"], ["list", "watch", "create"]),
        rule([""], ["namespaces", "configmaps"], _READ),
        rule(["authorization.k8s.io"], ["subjectaccessreviews"], ["create"]),
        rule(["events.k8s.io"], ["events"], ["create"]),
    ]


def _namespace_rules(settings: InstallSettings) -> list[JSONObject]:
    service = f"kyverno-svc.{settings.namespace}.svc"
    secrets = [f"{service}.kyverno-tls-ca", f"{service}.kyverno-tls-pair", *settings.secrets]
    return [
        rule([""], ["secrets"], ["create"]),
        rule([""], ["secrets"], ["get", "list", "watch", "update"], secrets),
        rule(["kyverno.io"], ["updaterequests"], ["list", "watch", "create"]),
        rule(["kyverno.io"], ["updaterequests/status"], ["patch"]),
        rule(["coordination.k8s.io"], ["leases"], ["create"]),
        rule(["coordination.k8s.io"], ["leases"], ["get", "update"], ["kyverno", "kyverno-health"]),
        rule(["coordination.k8s.io"], ["leases"], ["delete"], ["kyverno-health", "kyvernopre-lock"]),
        rule(["apps"], ["deployments"], ["get"], [_ADMISSION]),
    ]


def _identity(settings: InstallSettings) -> Iterator[JSONObject]:
    account = {"kind": "ServiceAccount", "name": _ADMISSION, "namespace": settings.namespace}
    yield {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _metadata(_ADMISSION, settings)}
    yield {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRole",
        "metadata": _metadata(_ROLE, None),
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {_AGGREGATION: "true"}}]},
    }
    yield {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRole",
        "metadata": _metadata(f"{_ROLE}:core", None, **{_AGGREGATION: "true"}),
        "rules": _core_rules(),
    }
    yield role_binding("ClusterRoleBinding", _metadata(_ROLE, None), "ClusterRole", _ROLE, account)
    # what policies look up in the cluster; without secrets
    yield role_binding("ClusterRoleBinding", _metadata(f"{_ROLE}:view", None), "ClusterRole", "view", account)
    yield {
        "apiVersion": f"{RBAC}/v1",
        "kind": "Role",
        "metadata": _metadata(_ROLE, settings),
        "rules": _namespace_rules(settings),
    }
    yield role_binding("RoleBinding", _metadata(_ROLE, settings), "Role", _ROLE, account)


def _config_map(settings: InstallSettings) -> JSONObject:
    filters = [f"[*/*,{settings.namespace},*]", *(f"[*/*,{name},*]" for name in ("kube-system", "kube-public"))]
    filters += ["[*/*,kube-node-lease,*]", "[Event,*,*]", "[Node,*,*]", "[Node/?*,*,*]", "[APIService,*,*]"]
    filters += ["[TokenReview,*,*]", "[SubjectAccessReview,*,*]", "[SelfSubjectAccessReview,*,*]"]
    filters += ["[Binding,*,*]", "[Pod/binding,*,*]", "[ReplicaSet,*,*]", "[ReplicaSet/?*,*,*]"]
    filters += ["[EphemeralReport,*,*]", "[ClusterEphemeralReport,*,*]"]
    excluded = ", ".join(
        f'{{"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["{name}"]}}'
        for name in ("kube-system", settings.namespace)
    )
    selector = f'{{"matchExpressions": [{excluded}]}}'
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": _metadata("kyverno", settings),
        "data": {
            "resourceFilters": "\n".join(filters),
            "excludeGroups": "system:nodes",
            "webhooks": f'{{"namespaceSelector": {selector}}}',
            "webhookAnnotations": '{"admissions.enforcer/disabled": "true"}',
        },
    }


def _metrics_config_map(settings: InstallSettings) -> JSONObject:
    exposure = {name: {"disabledLabelDimensions": list(labels)} for name, labels in _LESS_LABELS.items()}
    bounds = ", ".join(f"{bound:g}" for bound in settings.buckets)
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": _metadata("kyverno-metrics", settings),
        "data": {
            "namespaces": '{"include": [], "exclude": []}',
            **({"bucketBoundaries": bounds} if bounds else {}),
            "metricsExposure": encode(exposure),
        },
    }


def _running(settings: InstallSettings) -> Iterator[JSONObject]:
    yield {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata("kyverno-svc", settings),
        "spec": {"selector": _POD_LABELS, "ports": [{"name": "https", "port": 443, "targetPort": "https"}]},
    }
    yield {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata("kyverno-svc-metrics", settings),
        "spec": {"selector": _POD_LABELS, "ports": [{"name": "metrics-port", "port": 8000, "targetPort": "metrics"}]},
    }
    yield _deployment(settings)
    yield {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": _metadata(_ADMISSION, settings),
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": _POD_LABELS}},
    }
    ingress = [{"ports": [{"port": port, "protocol": "TCP"} for port in (9443, 8000)]}]
    yield {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": _metadata(_ADMISSION, settings),
        "spec": {"podSelector": {"matchLabels": _POD_LABELS}, "policyTypes": ["Ingress"], "ingress": ingress},
    }


def _deployment(settings: InstallSettings) -> JSONObject:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _metadata(_ADMISSION, settings),
        "spec": {
            "replicas": settings.replicas,
            "revisionHistoryLimit": 10,
            # a new pod serves before an old one goes
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "selector": {"matchLabels": _POD_LABELS},
            "template": {"metadata": {"labels": _LABELS}, "spec": _pod(settings)},
        },
    }


def _pod(settings: InstallSettings) -> JSONObject:
    name = {"fieldRef": {"fieldPath": "metadata.name"}}
    namespace = {"fieldRef": {"fieldPath": "metadata.namespace"}}
    return {
        "serviceAccountName": _ADMISSION,
        "automountServiceAccountToken": False,
        **({"hostUsers": False} if settings.user_namespaces else {}),
        "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [_apart()]}},
        "terminationGracePeriodSeconds": 30,
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [
            {
                "name": "kyverno",
                "image": settings.image,
                "args": [
                    "controller",
                    "admission",
                    "--loggingFormat=json",
                    *_account(settings),
                    *settings.arguments,
                ],
                "env": [
                    {"name": "KYVERNO_NAMESPACE", "valueFrom": namespace},
                    {"name": "KYVERNO_POD_NAME", "valueFrom": name},
                    {"name": "KYVERNO_SERVICEACCOUNT_NAME", "value": _ADMISSION},
                    {"name": "KYVERNO_DEPLOYMENT", "value": _ADMISSION},
                    {"name": "INIT_CONFIG", "value": "kyverno"},
                    {"name": "METRICS_CONFIG", "value": "kyverno-metrics"},
                    {"name": "KYVERNO_SVC", "value": "kyverno-svc"},
                ],
                "ports": [{"name": "https", "containerPort": 9443}, {"name": "metrics", "containerPort": 8000}],
                "startupProbe": {**_probe("readiness"), "failureThreshold": 30, "periodSeconds": 2},
                "livenessProbe": {**_probe("liveness"), "periodSeconds": 30, "timeoutSeconds": 10},
                "readinessProbe": {**_probe("readiness"), "periodSeconds": 5, "failureThreshold": 3},
                "resources": {"requests": {"cpu": "100m", "memory": "96Mi"}, "limits": {"memory": "512Mi"}},
                **isolation(),
            }
        ],
        "volumes": volumes(),
    }


def _account(settings: InstallSettings) -> Iterator[str]:
    user = f"system:serviceaccount:{settings.namespace}"
    yield f"--backgroundServiceAccountName={user}:{BACKGROUND.name}"
    yield f"--cleanupServiceAccountName={user}:{CLEANUP.name}"
    yield f"--reportsServiceAccountName=system:serviceaccount:{settings.namespace}:{REPORTS.name}"


def _apart() -> JSONObject:
    """Return the wish that replicas run on different nodes."""
    selector = {"matchLabels": _POD_LABELS}
    return {"weight": 1, "podAffinityTerm": {"topologyKey": "kubernetes.io/hostname", "labelSelector": selector}}


def _probe(path: str) -> JSONObject:
    return {"httpGet": {"path": f"/health/{path}", "port": "https", "scheme": "HTTPS"}}
