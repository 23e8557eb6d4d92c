"""Defaults of everything that is not a workload: services, storage, access, admission, networks, definitions."""

from __future__ import annotations

import base64
from typing import Final

from kubesandbox.defaults.hook import Hook, Hooks, absent, in_order, zero
from pyverno.kube.json import JSONObject

__all__ = ["OBJECT_DEFAULTS"]

_CORE: Final = "io.k8s.api.core.v1"
_AUTOSCALING: Final = "io.k8s.api.autoscaling"
_RBAC: Final = "io.k8s.api.rbac.v1"
_NETWORKING: Final = "io.k8s.api.networking.v1"
_ADMISSION: Final = "io.k8s.api.admissionregistration"
_STORAGE: Final = "io.k8s.api.storage.v1"
_FLOW: Final = "io.k8s.api.flowcontrol.v1"
_EXTENSIONS: Final = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1"
_RBAC_GROUP: Final = "rbac.authorization.k8s.io"
_REACHABLE: Final = ("ClusterIP", "NodePort", "LoadBalancer")


def _service(spec: JSONObject) -> None:
    zero(sessionAffinity="None", type="ClusterIP")(spec)
    if spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    elif spec["sessionAffinity"] == "ClientIP":
        client = (spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}
        if client.get("timeoutSeconds") is None:
            spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": 10800}}
    if _is_external(spec):
        zero(externalTrafficPolicy="Cluster")(spec)
    if spec["type"] in _REACHABLE:
        absent(internalTrafficPolicy="Cluster")(spec)
    if spec["type"] == "LoadBalancer":
        absent(allocateLoadBalancerNodePorts=True)(spec)


def _is_external(spec: JSONObject) -> bool:
    return spec["type"] in ("NodePort", "LoadBalancer") or (
        spec["type"] == "ClusterIP" and bool(spec.get("externalIPs"))
    )


def _service_port(port: JSONObject) -> None:
    zero(protocol="TCP", targetPort=port.get("port", 0))(port)


def _namespace(body: JSONObject) -> None:
    metadata = body.get("metadata") or {}
    name = metadata.get("name")
    if name and (metadata.get("labels") or {}).get("kubernetes.io/metadata.name") != name:
        labels = {**(metadata.get("labels") or {}), "kubernetes.io/metadata.name": name}
        body["metadata"] = {**metadata, "labels": labels}


def _secret(body: JSONObject) -> None:
    """Move `stringData` into `data`, base64-encoded."""
    zero(type="Opaque")(body)
    texts = body.pop("stringData", None)
    if texts:
        data = {key: base64.b64encode(str(text).encode("utf-8", "replace")).decode() for key, text in texts.items()}
        body["data"] = {**(body.get("data") or {}), **data}


def _node_status(status: JSONObject) -> None:
    if status.get("allocatable") is None and status.get("capacity"):
        status["allocatable"] = status["capacity"]


def _limit_range_item(item: JSONObject) -> None:
    if item.get("type") != "Container":
        return
    default = {**(item.get("max") or {}), **(item.get("default") or {})}
    request = {**(item.get("min") or {}), **default, **(item.get("defaultRequest") or {})}
    item.update({key: value for key, value in (("default", default), ("defaultRequest", request)) if value})


def _subject(subject: JSONObject) -> None:
    if not subject.get("apiGroup") and subject.get("kind") in ("User", "Group"):
        subject["apiGroup"] = _RBAC_GROUP


def _network_policy(spec: JSONObject) -> None:
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]


def _csi_driver(spec: JSONObject) -> None:
    absent(
        attachRequired=True,
        podInfoOnMount=False,
        storageCapacity=False,
        fsGroupPolicy="ReadWriteOnceWithFSType",
        requiresRepublish=False,
        seLinuxMount=False,
    )(spec)
    if not spec.get("volumeLifecycleModes"):
        spec["volumeLifecycleModes"] = ["Persistent"]


def _autoscaler(spec: JSONObject) -> None:
    absent(minReplicas=1)(spec)
    if not spec.get("metrics"):
        target = {"type": "Utilization", "averageUtilization": 80}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]


def _autoscaler_behavior(behavior: JSONObject) -> None:
    # Kubernetes: pkg/apis/autoscaling/v2/defaults.go; a policy is allowed to add four pods or to double them
    for direction, rules in _SCALING.items():
        behavior[direction] = rules | {
            key: value for key, value in (behavior.get(direction) or {}).items() if value is not None
        }


def _definition(body: JSONObject) -> None:
    spec = dict(body.get("spec") or {})
    names = dict(spec.get("names") or {})
    kind = names.get("kind") or ""
    if kind:
        zero(singular=kind.lower(), listKind=f"{kind}List")(names)
    spec["names"] = names
    if spec.get("conversion") is None:
        spec["conversion"] = {"strategy": "None"}
    body["spec"] = spec
    status = dict(body.get("status") or {})
    stored = next((v.get("name") for v in spec.get("versions") or () if v.get("storage")), None)
    if not status.get("storedVersions") and stored:
        status["storedVersions"] = [stored]
    body["status"] = status


_DOUBLE: Final[JSONObject] = {"type": "Percent", "value": 100, "periodSeconds": 15}
_SCALING: Final[JSONObject] = {
    "scaleUp": {
        "stabilizationWindowSeconds": 0,
        "selectPolicy": "Max",
        "policies": [{"type": "Pods", "value": 4, "periodSeconds": 15}, _DOUBLE],
    },
    "scaleDown": {"selectPolicy": "Max", "policies": [_DOUBLE]},
}
_WEBHOOK: Final[Hook] = absent(
    failurePolicy="Fail", matchPolicy="Equivalent", namespaceSelector={}, objectSelector={}, timeoutSeconds=10
)
_MATCH: Final[Hook] = absent(matchPolicy="Equivalent", namespaceSelector={}, objectSelector={})
_ROLE_REF: Final[Hook] = zero(apiGroup=_RBAC_GROUP)
_CLAIM: Final[Hook] = absent(volumeMode="Filesystem")
_PORT: Final[Hook] = absent(port=443)
_ENDPOINT_PORT: Final[Hook] = absent(name="", protocol="TCP")

OBJECT_DEFAULTS: Final[Hooks] = {
    f"{_CORE}.ServiceSpec": _service,
    f"{_CORE}.ServicePort": _service_port,
    f"{_CORE}.Namespace": _namespace,
    f"{_CORE}.NamespaceStatus": zero(phase="Active"),
    f"{_CORE}.NodeStatus": _node_status,
    f"{_CORE}.Secret": _secret,
    f"{_CORE}.PersistentVolumeSpec": in_order(
        zero(persistentVolumeReclaimPolicy="Retain"), absent(volumeMode="Filesystem")
    ),
    f"{_CORE}.PersistentVolumeStatus": zero(phase="Pending"),
    f"{_CORE}.PersistentVolumeClaimSpec": _CLAIM,
    f"{_CORE}.PersistentVolumeClaimStatus": zero(phase="Pending"),
    f"{_CORE}.EndpointPort": zero(protocol="TCP"),
    f"{_CORE}.LimitRangeItem": _limit_range_item,
    f"{_AUTOSCALING}.v1.HorizontalPodAutoscalerSpec": absent(minReplicas=1),
    f"{_AUTOSCALING}.v2.HorizontalPodAutoscalerSpec": _autoscaler,
    f"{_AUTOSCALING}.v2.HorizontalPodAutoscalerBehavior": _autoscaler_behavior,
    f"{_RBAC}.RoleRef": _ROLE_REF,
    f"{_RBAC}.Subject": _subject,
    f"{_NETWORKING}.NetworkPolicySpec": _network_policy,
    f"{_NETWORKING}.NetworkPolicyPort": absent(protocol="TCP"),
    f"{_NETWORKING}.IngressClassParametersReference": absent(scope="Cluster"),
    f"{_STORAGE}.StorageClass": absent(reclaimPolicy="Delete", volumeBindingMode="Immediate"),
    f"{_STORAGE}.CSIDriverSpec": _csi_driver,
    "io.k8s.api.scheduling.v1.PriorityClass": absent(preemptionPolicy="PreemptLowerPriority"),
    "io.k8s.api.discovery.v1.EndpointPort": _ENDPOINT_PORT,
    f"{_FLOW}.FlowSchemaSpec": zero(matchingPrecedence=1000),
    f"{_FLOW}.ExemptPriorityLevelConfiguration": absent(nominalConcurrencyShares=0, lendablePercent=0),
    f"{_FLOW}.LimitedPriorityLevelConfiguration": absent(nominalConcurrencyShares=30, lendablePercent=0),
    f"{_FLOW}.QueuingConfiguration": zero(handSize=8, queues=64, queueLengthLimit=50),
    f"{_ADMISSION}.v1.ValidatingWebhook": _WEBHOOK,
    f"{_ADMISSION}.v1.MutatingWebhook": in_order(_WEBHOOK, absent(reinvocationPolicy="Never")),
    f"{_ADMISSION}.v1.RuleWithOperations": absent(scope="*"),
    f"{_ADMISSION}.v1.ServiceReference": _PORT,
    **{
        f"{_ADMISSION}.{version}.{kind}": hook
        for version in ("v1", "v1beta1", "v1alpha1")
        for kind, hook in (
            ("ValidatingAdmissionPolicySpec", absent(failurePolicy="Fail")),
            ("MutatingAdmissionPolicySpec", absent(failurePolicy="Fail")),
            ("MatchResources", _MATCH),
            ("NamedRuleWithOperations", absent(scope="*")),
        )
    },
    f"{_ADMISSION}.v1alpha1.ParamRef": absent(parameterNotFoundAction="Deny"),
    f"{_EXTENSIONS}.CustomResourceDefinition": _definition,
    f"{_EXTENSIONS}.ServiceReference": _PORT,
    "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.ServiceReference": _PORT,
}
