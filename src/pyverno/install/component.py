"""The manifests of one controller: identity, roles, Deployment, metrics and network policy.

`manifests.py` changes those of the admission controller, which serves webhooks.

The cluster role is aggregated: a ClusterRole with the label `rbac.kyverno.io/aggregate-to-PART-controller: "true"`
extends what the controller may do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from pyverno.install.settings import InstallSettings
from pyverno.kube.json import JSON, JSONObject
from pyverno.policy.kinds import WATCHED_EXCEPTIONS, WATCHED_POLICIES
from pyverno.value import dataclass, field

__all__ = [
    "RBAC",
    "READ",
    "RECORD_KEYS",
    "Component",
    "Workload",
    "component_identity",
    "component_manifests",
    "component_workload",
    "metadata_of",
    "policy_resources",
    "role_binding",
    "rule",
]

RBAC: Final = "rbac.authorization.k8s.io"
READ: Final = ["get", "list", "watch"]
RECORD_KEYS: Final = "kyverno-image-record-keys"
"""The Secret with the keys of image records."""

_PART_OF: Final = {"app.kubernetes.io/part-of": "kyverno", "app.kubernetes.io/name": "kyverno"}
_TOKENS: Final = "/var/run/secrets"
_TOKEN_SECONDS: Final = 3600
_METRICS_PORT: Final = 8000
_WEBHOOK: Final = "https"
_HEALTH_PORT: Final = 9080


@dataclass(frozen=True, slots=True)
class Workload:
    """The workload of a controller: its container, with the port of its probes, and the Service of its metrics.

    `ports` are those of the container by name; `max_unavailable` is that of an update. `service` is the name of the
    Service of metrics. Pods are selected by the labels of the component, or by `selector`, which no update may change.
    """

    container: str = "controller"
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    ports: Mapping[str, int] = field(default_factory=lambda: {"metrics": _METRICS_PORT, "health": _HEALTH_PORT})
    probed: str = "health"
    scheme: str = "HTTP"
    memory: str = "64Mi"
    max_memory: str = "256Mi"
    max_unavailable: int | str = "40%"
    service: str = ""
    selector: Mapping[str, str] | None = None

    def probe(self, path: str, **times: int) -> JSONObject:
        """Return a probe of the container."""
        return {"httpGet": {"path": f"/health/{path}", "port": self.probed, "scheme": self.scheme}, **times}


@dataclass(frozen=True, slots=True)
class Component:
    """One controller: `part` is the word of its names (`kyverno-PART-controller`), the rules are those of its roles.

    `reads_cluster` binds it to the ClusterRole `view`, which shows no Secrets. `takes_chart_roles` also aggregates the
    roles with the labels of Kyverno's chart.
    """

    part: str
    cluster_rules: Callable[[], list[JSONObject]]
    namespace_rules: Callable[[], list[JSONObject]]
    reads_cluster: bool = True
    takes_chart_roles: bool = True
    workload: Workload = field(default_factory=Workload)

    @property
    def name(self) -> str:
        """The name of its Deployment and service account."""
        return f"kyverno-{self.part}-controller"

    @property
    def role(self) -> str:
        """The name of its roles."""
        return f"kyverno:{self.part}-controller"

    @property
    def aggregation(self) -> str:
        """The label of the ClusterRoles that extend its role."""
        return f"rbac.kyverno.io/aggregate-to-{self.part}-controller"

    @property
    def labels(self) -> dict[str, str]:
        """The labels of its objects."""
        return {**_PART_OF, "app.kubernetes.io/component": f"{self.part}-controller"}

    @property
    def selector(self) -> dict[str, str]:
        """The labels by which its pods are selected; those of Kyverno's pods match, so that a rollout replaces them."""
        if self.workload.selector is not None:
            return dict(self.workload.selector)
        return {key: value for key, value in self.labels.items() if key != "app.kubernetes.io/name"}

    @property
    def chart_labels(self) -> dict[str, str]:
        """The labels by which Kyverno's chart selects further roles of a controller."""
        return {
            "app.kubernetes.io/component": f"{self.part}-controller",
            "app.kubernetes.io/instance": "kyverno",
            "app.kubernetes.io/part-of": "kyverno",
        }


def component_manifests(component: Component, settings: InstallSettings) -> Iterator[JSONObject]:
    """Yield everything of one controller in the order in which it has to be applied."""
    yield from component_identity(component, settings)
    yield from component_workload(component, settings)


def component_workload(component: Component, settings: InstallSettings) -> Iterator[JSONObject]:
    """Yield the Deployment of a controller, the Service of its metrics, and the NetworkPolicy."""
    yield {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata_of(
            component.workload.service or f"{component.name}-metrics", component.labels, settings.namespace
        ),
        "spec": {
            "selector": component.selector,
            "ports": [{"name": "metrics-port", "port": _METRICS_PORT, "targetPort": "metrics"}],
        },
    }
    yield _deployment(component, settings)
    yield {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": metadata_of(component.name, component.labels, settings.namespace),
        "spec": {
            "podSelector": {"matchLabels": component.selector},
            "policyTypes": ["Ingress"],
            "ingress": list(_ingress(component, settings)),
        },
    }


def _ingress(component: Component, settings: InstallSettings) -> Iterator[JSONObject]:
    """Yield who may connect to which port: API servers alone to that of the webhook, if they are known."""
    callers = [{"ipBlock": {"cidr": each}} for each in settings.api_servers]
    ports = dict(component.workload.ports)
    webhook = ports.pop(_WEBHOOK, None) if callers else None
    if webhook is not None:
        yield {"ports": [{"port": webhook, "protocol": "TCP"}], "from": callers}
    yield {"ports": [{"port": port, "protocol": "TCP"} for port in ports.values()]}


def component_identity(component: Component, settings: InstallSettings) -> Iterator[JSONObject]:
    """Yield the service account of a controller, its roles and their bindings."""
    labels, namespace, role = component.labels, settings.namespace, component.role
    account = {"kind": "ServiceAccount", "name": component.name, "namespace": namespace}
    selectors = [{"matchLabels": {component.aggregation: "true"}}]
    if component.takes_chart_roles:  # Kyverno: the labels of its chart select as well
        selectors.append({"matchLabels": component.chart_labels})
    yield {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": metadata_of(component.name, labels, namespace),
    }
    yield {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRole",
        "metadata": metadata_of(role, labels),
        "aggregationRule": {"clusterRoleSelectors": selectors},
    }
    yield {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRole",
        "metadata": metadata_of(f"{role}:core", {**labels, component.aggregation: "true"}),
        "rules": component.cluster_rules(),
    }
    yield role_binding("ClusterRoleBinding", metadata_of(role, labels), "ClusterRole", role, account)
    if component.reads_cluster:
        view = metadata_of(f"{role}:view", labels)
        yield role_binding("ClusterRoleBinding", view, "ClusterRole", "view", account)
    yield {
        "apiVersion": f"{RBAC}/v1",
        "kind": "Role",
        "metadata": metadata_of(role, labels, namespace),
        "rules": component.namespace_rules(),
    }
    yield role_binding("RoleBinding", metadata_of(role, labels, namespace), "Role", role, account)


def metadata_of(name: str, labels: dict[str, str], namespace: str = "") -> JSONObject:
    """Return the metadata of an object of the installation."""
    found: JSONObject = {"name": name, "labels": labels}
    if namespace:
        found["namespace"] = namespace
    return found


def rule(groups: list[str], resources: list[str], verbs: list[str], names: list[str] | None = None) -> JSONObject:
    """Return a rule of a role; `names` limits it to objects with these names."""
    found: JSONObject = {"apiGroups": groups, "resources": resources, "verbs": verbs}
    if names:
        found["resourceNames"] = names
    return found


def policy_resources(group: str) -> list[str]:
    """Return the resources of policies and exceptions in a group, each once."""
    return list(dict.fromkeys(gvr.resource for gvr in (*WATCHED_POLICIES, *WATCHED_EXCEPTIONS) if gvr.group == group))


def role_binding(kind: str, metadata: JSONObject, role_kind: str, role: str, account: JSONObject) -> JSONObject:
    """Return a binding of a role to an account."""
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": kind,
        "metadata": metadata,
        "roleRef": {"apiGroup": RBAC, "kind": role_kind, "name": role},
        "subjects": [account],
    }


def _access_volume() -> JSONObject:
    """Return the volume with the credentials of a pod's service account, which are not mounted by default."""
    # includes the API server's defaults, so that applying it again changes nothing
    namespace = {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
    sources = [
        _token(),
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [namespace]}},
    ]
    return {"name": "access", "projected": {"sources": sources}}


def _token(**settings: str) -> JSONObject:
    """Return the source of a service account's token."""
    return {"serviceAccountToken": {"path": "token", "expirationSeconds": _TOKEN_SECONDS, **settings}}


def _deployment(component: Component, settings: InstallSettings) -> JSONObject:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata_of(component.name, component.labels, settings.namespace),
        "spec": {
            "replicas": settings.replicas,
            "revisionHistoryLimit": 10,
            "strategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxSurge": 1, "maxUnavailable": component.workload.max_unavailable},
            },
            "selector": {"matchLabels": component.selector},
            "template": {"metadata": {"labels": component.labels}, "spec": _pod(component, settings)},
        },
    }


def _pod(component: Component, settings: InstallSettings) -> JSONObject:
    workload = component.workload
    fields = {"KYVERNO_NAMESPACE": "metadata.namespace", "KYVERNO_POD_NAME": "metadata.name"}
    values = {
        "KYVERNO_SERVICEACCOUNT_NAME": component.name,
        "KYVERNO_DEPLOYMENT": component.name,
        "INIT_CONFIG": "kyverno",
        "METRICS_CONFIG": "kyverno-metrics",
        **workload.environment,
    }
    apart = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": component.selector}}
    preferred = [{"weight": 1, "podAffinityTerm": apart}]
    return {
        "serviceAccountName": component.name,
        "automountServiceAccountToken": False,
        **({"hostUsers": False} if settings.user_namespaces else {}),
        "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}},
        "terminationGracePeriodSeconds": 30,
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [
            {
                "name": workload.container,
                "image": settings.image,
                "args": ["controller", component.part, "--loggingFormat=json", *workload.arguments],
                "env": [
                    *({"name": key, "valueFrom": {"fieldRef": {"fieldPath": path}}} for key, path in fields.items()),
                    *({"name": key, "value": value} for key, value in values.items()),
                ],
                "ports": [{"name": name, "containerPort": port} for name, port in workload.ports.items()],
                "startupProbe": workload.probe("readiness", failureThreshold=30, periodSeconds=2),
                "livenessProbe": workload.probe("liveness", periodSeconds=30, timeoutSeconds=10),
                "readinessProbe": workload.probe("readiness", periodSeconds=5, failureThreshold=3),
                "resources": {
                    "requests": {"cpu": "100m", "memory": workload.memory},
                    "limits": {"memory": workload.max_memory},
                },
                **_isolation(),
            }
        ],
        "volumes": _volumes(),
    }


def _isolation() -> JSONObject:
    """Return the mounts and the security context of a controller's container."""
    return {
        "volumeMounts": [
            {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108 - an empty volume in the pod
            {"name": "access", "mountPath": f"{_TOKENS}/kubernetes.io/serviceaccount", "readOnly": True},
            {"name": "apicall", "mountPath": f"{_TOKENS}/kyverno/apicall", "readOnly": True},
        ],
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "runAsUser": 65534,
            "runAsGroup": 65534,
            "capabilities": {"drop": ["ALL"]},
        },
    }


def _volumes() -> list[JSON]:
    """Return the volumes of a controller's pod: scratch space in memory, and the tokens."""
    return [
        {"name": "tmp", "emptyDir": {"medium": "Memory", "sizeLimit": "16Mi"}},
        _access_volume(),
        {"name": "apicall", "projected": {"sources": [_token(audience="kyverno-svc.kyverno.io")]}},
    ]
