"""Defaults of Deployments, StatefulSets, DaemonSets, ReplicaSets, Jobs, CronJobs and autoscalers."""

from __future__ import annotations

from typing import Final

from kubesandbox.defaults.hook import Hook, Hooks, absent, in_order, zero
from pyverno.kube.json import JSONObject

__all__ = ["WORKLOAD_DEFAULTS", "WORKLOAD_DEFAULTS_1_35"]

_APPS: Final = "io.k8s.api.apps.v1"
_BATCH: Final = "io.k8s.api.batch.v1"
_CORE: Final = "io.k8s.api.core.v1"
_SCALING: Final = "io.k8s.api.autoscaling"
_INT32_MAX: Final = 2**31 - 1


def _rolling(field: str, **values: object) -> Hook:
    """Fill in a strategy whose default is RollingUpdate."""
    fill = absent(**values)

    def hook(spec: JSONObject) -> None:
        strategy = dict(spec.get(field) or {})
        if not strategy.get("type"):
            strategy["type"] = "RollingUpdate"
        if strategy["type"] == "RollingUpdate":
            strategy["rollingUpdate"] = dict(strategy.get("rollingUpdate") or {})
            fill(strategy["rollingUpdate"])
        spec[field] = strategy

    return hook


def _stateful_set(spec: JSONObject) -> None:
    strategy = dict(spec.get("updateStrategy") or {})
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
        strategy.setdefault("rollingUpdate", {})
    if strategy["type"] == "RollingUpdate" and strategy.get("rollingUpdate") is not None:
        strategy["rollingUpdate"] = {"partition": 0, **strategy["rollingUpdate"]}
    spec["updateStrategy"] = strategy
    retention = dict(spec.get("persistentVolumeClaimRetentionPolicy") or {})
    zero(whenDeleted="Retain", whenScaled="Retain")(retention)
    spec["persistentVolumeClaimRetentionPolicy"] = retention


def _claims(spec: JSONObject) -> None:
    """Claims of a StatefulSet are whole objects of their own, with kind and version."""
    if spec.get("volumeClaimTemplates"):
        spec["volumeClaimTemplates"] = [
            {"kind": "PersistentVolumeClaim", "apiVersion": "v1", **claim} for claim in spec["volumeClaimTemplates"]
        ]


def _template_labels(body: JSONObject) -> JSONObject:
    template = (body.get("spec") or {}).get("template") or {}
    labels: JSONObject = (template.get("metadata") or {}).get("labels") or {}
    return labels


def _label(body: JSONObject) -> None:
    labels = _template_labels(body)
    metadata = body.get("metadata") or {}
    if labels and not metadata.get("labels"):
        body["metadata"] = {**metadata, "labels": dict(labels)}


def _replication_controller(body: JSONObject) -> None:
    labels = _template_labels(body)
    spec = body.get("spec") or {}
    if labels and not spec.get("selector"):
        body["spec"] = {**spec, "selector": dict(labels)}
    _label(body)


def _job(spec: JSONObject) -> None:
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    if spec.get("backoffLimit") is None:
        spec["backoffLimit"] = 6 if spec.get("backoffLimitPerIndex") is None else _INT32_MAX
    if spec.get("podReplacementPolicy") is None:
        spec["podReplacementPolicy"] = "TerminatingOrFailed" if spec.get("podFailurePolicy") is None else "Failed"
    _JOB(spec)


_JOB: Final[Hook] = absent(parallelism=1, completionMode="NonIndexed", suspend=False, manualSelector=False)


def _job_object(body: JSONObject) -> None:
    _label(body)
    body["spec"] = dict(body.get("spec") or {})
    _job(body["spec"])


def _scaling_policy(kind: str, value: int) -> JSONObject:
    return {"type": kind, "value": value, "periodSeconds": 15}


def _autoscaler(spec: JSONObject) -> None:
    if spec.get("minReplicas") is None:
        spec["minReplicas"] = 1
    if not spec.get("metrics"):
        target = {"type": "Utilization", "averageUtilization": 80}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    behavior = spec.get("behavior")
    if behavior is not None:
        up = [_scaling_policy("Pods", 4), _scaling_policy("Percent", 100)]
        spec["behavior"] = {
            **behavior,
            "scaleUp": {
                "stabilizationWindowSeconds": 0,
                "selectPolicy": "Max",
                "policies": up,
                **(behavior.get("scaleUp") or {}),
            },
            "scaleDown": {
                "selectPolicy": "Max",
                "policies": [_scaling_policy("Percent", 100)],
                **(behavior.get("scaleDown") or {}),
            },
        }


def _unavailable(spec: JSONObject) -> None:
    strategy = spec["updateStrategy"]
    rolling = strategy.get("rollingUpdate")
    if strategy["type"] == "RollingUpdate" and rolling is not None and rolling.get("maxUnavailable") is None:
        spec["updateStrategy"] = {**strategy, "rollingUpdate": {**rolling, "maxUnavailable": 1}}


_STATEFUL_SET: Final[Hook] = in_order(
    absent(replicas=1, revisionHistoryLimit=10), zero(podManagementPolicy="OrderedReady"), _stateful_set, _claims
)
WORKLOAD_DEFAULTS_1_35: Final[Hooks] = {f"{_APPS}.StatefulSetSpec": in_order(_STATEFUL_SET, _unavailable)}
"""Defaults since Kubernetes 1.35."""

WORKLOAD_DEFAULTS: Final[Hooks] = {
    f"{_APPS}.DeploymentSpec": in_order(
        absent(replicas=1, revisionHistoryLimit=10, progressDeadlineSeconds=600),
        _rolling("strategy", maxUnavailable="25%", maxSurge="25%"),
    ),
    f"{_APPS}.StatefulSetSpec": _STATEFUL_SET,
    f"{_APPS}.DaemonSetSpec": in_order(
        absent(revisionHistoryLimit=10), _rolling("updateStrategy", maxUnavailable=1, maxSurge=0)
    ),
    f"{_APPS}.ReplicaSetSpec": absent(replicas=1),
    f"{_CORE}.ReplicationController": _replication_controller,
    f"{_CORE}.ReplicationControllerSpec": absent(replicas=1),
    f"{_BATCH}.Job": _job_object,
    f"{_BATCH}.CronJobSpec": in_order(
        zero(concurrencyPolicy="Allow"),
        absent(suspend=False, successfulJobsHistoryLimit=3, failedJobsHistoryLimit=1),
    ),
    f"{_BATCH}.PodFailurePolicyOnPodConditionsPattern": zero(status="True"),
    f"{_SCALING}.v2.HorizontalPodAutoscalerSpec": _autoscaler,
    f"{_SCALING}.v1.HorizontalPodAutoscalerSpec": absent(minReplicas=1),
}
