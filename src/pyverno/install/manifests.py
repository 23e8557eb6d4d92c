"""The manifests that install the controllers in a cluster: definitions, identities and workloads.

Roles grant only the permissions that the controllers use; ClusterRoles with the aggregation label add further kinds.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pyverno.install.background import BACKGROUND
from pyverno.install.cleanup import CLEANUP
from pyverno.install.component import (
    RBAC,
    READ,
    RECORD_KEYS,
    Component,
    Workload,
    component_identity,
    component_manifests,
    component_workload,
    metadata_of,
    policy_resources,
    rule,
)
from pyverno.install.definitions import definitions
from pyverno.install.reports import REPORTS
from pyverno.install.settings import InstallSettings
from pyverno.kube.json import JSONObject, encode
from pyverno.policy.kinds import WATCHED_POLICIES

__all__ = ["InstallSettings", "manifests"]

_ENTRIES: Final = "globalcontextentries"
_MADE: Final = ("validating", "mutating")
_WRITE: Final = ["get", "list", "create", "update", "delete"]


def manifests(settings: InstallSettings) -> Iterator[JSONObject]:
    """Yield everything in the order in which it has to be applied.

    >>> kinds = [each["kind"] for each in manifests(InstallSettings())]
    >>> kinds[0], kinds.count("Deployment")
    ('Namespace', 4)
    """
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": settings.namespace}}
    yield from definitions()
    admission = _admission(settings)
    yield from component_identity(admission, settings)
    yield _config_map(settings, admission.labels)
    yield _metrics_config_map(settings, admission.labels)
    yield from _serving(admission, settings)
    yield from component_workload(admission, settings)
    yield from component_manifests(BACKGROUND, settings)
    yield from component_manifests(REPORTS, settings)
    yield from component_manifests(CLEANUP, settings)


_POD_LABELS: Final = {"app.kubernetes.io/part-of": "kyverno", "app.kubernetes.io/component": "admission-controller"}
_LESS_LABELS: Final = {
    "kyverno_policy_execution_duration_seconds": ("resource_namespace", "resource_request_operation"),
    "kyverno_validating_policy_execution_duration_seconds": ("resource_namespace", "resource_request_operation"),
    "kyverno_mutating_policy_execution_duration_seconds": ("resource_namespace", "resource_request_operation"),
    "kyverno_admission_review_duration_seconds": ("resource_namespace",),
}
"""Histograms are many series each; these labels would multiply them."""


def _core_rules() -> list[JSONObject]:
    return [
        rule(["apiextensions.k8s.io"], ["customresourcedefinitions"], READ),
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
        rule([RBAC], ["rolebindings", "clusterrolebindings"], READ),
        rule(["kyverno.io"], [*policy_resources("kyverno.io"), _ENTRIES], READ),
        rule(["policies.kyverno.io"], policy_resources("policies.kyverno.io"), READ),
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
        rule([""], ["namespaces", "configmaps"], READ),
        rule(["authorization.k8s.io"], ["subjectaccessreviews"], ["create"]),
        rule(["events.k8s.io"], ["events"], ["create"]),
    ]


def _namespace_rules(settings: InstallSettings) -> list[JSONObject]:
    service = f"kyverno-svc.{settings.namespace}.svc"
    secrets = [f"{service}.kyverno-tls-ca", f"{service}.kyverno-tls-pair", RECORD_KEYS, *settings.secrets]
    return [
        rule([""], ["secrets"], ["create"]),
        rule([""], ["secrets"], ["get", "list", "watch", "update"], secrets),
        rule(["kyverno.io"], ["updaterequests"], ["list", "watch", "create"]),
        rule(["kyverno.io"], ["updaterequests/status"], ["patch"]),
        rule(["coordination.k8s.io"], ["leases"], ["create"]),
        rule(["coordination.k8s.io"], ["leases"], ["get", "update"], ["kyverno", "kyverno-health"]),
        rule(["coordination.k8s.io"], ["leases"], ["delete"], ["kyverno-health", "kyvernopre-lock"]),
        rule(["apps"], ["deployments"], ["get"], ["kyverno-admission-controller"]),
    ]


def _admission(settings: InstallSettings) -> Component:
    """Return the admission controller, which serves webhooks and recognises the accounts of the other controllers."""
    user = f"system:serviceaccount:{settings.namespace}"
    return Component(
        "admission",
        _core_rules,
        lambda: _namespace_rules(settings),
        takes_chart_roles=False,
        workload=Workload(
            container="kyverno",
            arguments=(
                f"--backgroundServiceAccountName={user}:{BACKGROUND.name}",
                f"--cleanupServiceAccountName={user}:{CLEANUP.name}",
                f"--reportsServiceAccountName={user}:{REPORTS.name}",
                *settings.arguments,
            ),
            environment={"KYVERNO_SVC": "kyverno-svc"},
            ports={"https": 9443, "metrics": 8000},
            probed="https",
            scheme="HTTPS",
            memory="96Mi",
            max_memory="512Mi",
            max_unavailable=0,  # a new pod serves before an old one stops
            service="kyverno-svc-metrics",
            selector=_POD_LABELS,
        ),
    )


def _config_map(settings: InstallSettings, labels: dict[str, str]) -> JSONObject:
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
        "metadata": metadata_of("kyverno", labels, settings.namespace),
        "data": {
            "resourceFilters": "\n".join(filters),
            "excludeGroups": "system:nodes",
            "webhooks": f'{{"namespaceSelector": {selector}}}',
            "webhookAnnotations": '{"admissions.enforcer/disabled": "true"}',
        },
    }


def _metrics_config_map(settings: InstallSettings, labels: dict[str, str]) -> JSONObject:
    exposure = {name: {"disabledLabelDimensions": list(labels)} for name, labels in _LESS_LABELS.items()}
    bounds = ", ".join(f"{bound:g}" for bound in settings.buckets)
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata_of("kyverno-metrics", labels, settings.namespace),
        "data": {
            "namespaces": '{"include": [], "exclude": []}',
            **({"bucketBoundaries": bounds} if bounds else {}),
            "metricsExposure": encode(exposure),
        },
    }


def _serving(component: Component, settings: InstallSettings) -> Iterator[JSONObject]:
    """Yield the Service of the webhooks, and the PodDisruptionBudget that keeps one replica."""
    yield {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata_of("kyverno-svc", component.labels, settings.namespace),
        "spec": {"selector": _POD_LABELS, "ports": [{"name": "https", "port": 443, "targetPort": "https"}]},
    }
    yield {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata_of(component.name, component.labels, settings.namespace),
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": _POD_LABELS}},
    }
