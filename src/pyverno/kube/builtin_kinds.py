"""Data: the kinds that Kubernetes 1.32 to 1.37 serve by themselves.

Served versions of all these releases stand side by side. No code here; `kinds` turns the rows into a table.
"""

from __future__ import annotations

from typing import TypeAlias

__all__ = ["GROUPS", "SUBRESOURCE_KINDS", "Group", "Row"]

Row: TypeAlias = tuple[str, str, str, bool, str, str]
"""Plural, kind, short names, whether namespaced, subresources, categories (lists are separated by blanks)."""

Group: TypeAlias = tuple[str, str, tuple[Row, ...]]
"""Name, versions in order of preference, rows."""

SUBRESOURCE_KINDS: dict[str, tuple[str, str, str]] = {
    "scale": ("autoscaling", "v1", "Scale"),
    "eviction": ("policy", "v1", "Eviction"),
    "token": ("authentication.k8s.io", "v1", "TokenRequest"),
    "pods/attach": ("", "v1", "PodAttachOptions"),
    "pods/binding": ("", "v1", "Binding"),
    "pods/exec": ("", "v1", "PodExecOptions"),
    "pods/portforward": ("", "v1", "PodPortForwardOptions"),
    "pods/proxy": ("", "v1", "PodProxyOptions"),
    "nodes/proxy": ("", "v1", "NodeProxyOptions"),
    "services/proxy": ("", "v1", "ServiceProxyOptions"),
}
"""Subresources whose objects have a kind of their own, by name or by `plural/name`."""

_CORE: tuple[Row, ...] = (
    ("bindings", "Binding", "", True, "", ""),
    ("componentstatuses", "ComponentStatus", "cs", False, "", ""),
    ("configmaps", "ConfigMap", "cm", True, "", ""),
    ("endpoints", "Endpoints", "ep", True, "", ""),
    ("events", "Event", "ev", True, "", ""),
    ("limitranges", "LimitRange", "limits", True, "", ""),
    ("namespaces", "Namespace", "ns", False, "finalize status", ""),
    ("nodes", "Node", "no", False, "proxy status", ""),
    ("persistentvolumeclaims", "PersistentVolumeClaim", "pvc", True, "status", ""),
    ("persistentvolumes", "PersistentVolume", "pv", False, "status", ""),
    (
        "pods",
        "Pod",
        "po",
        True,
        "attach binding ephemeralcontainers eviction exec log portforward proxy resize status",
        "all",
    ),
    ("podtemplates", "PodTemplate", "", True, "", ""),
    ("replicationcontrollers", "ReplicationController", "rc", True, "scale status", "all"),
    ("resourcequotas", "ResourceQuota", "quota", True, "status", ""),
    ("secrets", "Secret", "", True, "", ""),
    ("serviceaccounts", "ServiceAccount", "sa", True, "token", ""),
    ("services", "Service", "svc", True, "proxy status", "all"),
)

_APPS: tuple[Row, ...] = (
    ("controllerrevisions", "ControllerRevision", "", True, "", ""),
    ("daemonsets", "DaemonSet", "ds", True, "status", "all"),
    ("deployments", "Deployment", "deploy", True, "scale status", "all"),
    ("replicasets", "ReplicaSet", "rs", True, "scale status", "all"),
    ("statefulsets", "StatefulSet", "sts", True, "scale status", "all"),
)

_ADMISSION_WEBHOOKS: tuple[Row, ...] = (
    ("mutatingwebhookconfigurations", "MutatingWebhookConfiguration", "", False, "", "api-extensions"),
    ("validatingwebhookconfigurations", "ValidatingWebhookConfiguration", "", False, "", "api-extensions"),
)
_ADMISSION_VALIDATING: tuple[Row, ...] = (
    ("validatingadmissionpolicies", "ValidatingAdmissionPolicy", "", False, "status", "api-extensions"),
    ("validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", "", False, "", "api-extensions"),
)
_ADMISSION_MUTATING: tuple[Row, ...] = (
    ("mutatingadmissionpolicies", "MutatingAdmissionPolicy", "", False, "", "api-extensions"),
    ("mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding", "", False, "", "api-extensions"),
)

_HPA: tuple[Row, ...] = (("horizontalpodautoscalers", "HorizontalPodAutoscaler", "hpa", True, "status", "all"),)
_ADDRESSES: tuple[Row, ...] = (
    ("ipaddresses", "IPAddress", "ip", False, "", ""),
    ("servicecidrs", "ServiceCIDR", "", False, "status", ""),
)
_DEVICES: tuple[Row, ...] = (
    ("deviceclasses", "DeviceClass", "", False, "", ""),
    ("resourceclaims", "ResourceClaim", "", True, "status", ""),
    ("resourceclaimtemplates", "ResourceClaimTemplate", "", True, "", ""),
    ("resourceslices", "ResourceSlice", "", False, "", ""),
)
_TAINTS: tuple[Row, ...] = (("devicetaintrules", "DeviceTaintRule", "", False, "status", ""),)
_ATTRIBUTES: tuple[Row, ...] = (("volumeattributesclasses", "VolumeAttributesClass", "vac", False, "", ""),)
_BUNDLES: tuple[Row, ...] = (("clustertrustbundles", "ClusterTrustBundle", "", False, "", ""),)
_POD_CERTIFICATES: tuple[Row, ...] = (("podcertificaterequests", "PodCertificateRequest", "", True, "status", ""),)
_CANDIDATES: tuple[Row, ...] = (("leasecandidates", "LeaseCandidate", "", True, "", ""),)
_WORKLOADS: tuple[Row, ...] = (("workloads", "Workload", "", True, "", ""),)
_MIGRATIONS: tuple[Row, ...] = (("storageversionmigrations", "StorageVersionMigration", "", False, "status", ""),)

GROUPS: tuple[Group, ...] = (
    ("", "v1", _CORE),
    ("apps", "v1", _APPS),
    ("admissionregistration.k8s.io", "v1", _ADMISSION_WEBHOOKS),
    ("admissionregistration.k8s.io", "v1 v1beta1 v1alpha1", _ADMISSION_VALIDATING),
    ("admissionregistration.k8s.io", "v1 v1beta1 v1alpha1", _ADMISSION_MUTATING),
    (
        "apiextensions.k8s.io",
        "v1",
        (("customresourcedefinitions", "CustomResourceDefinition", "crd crds", False, "status", "api-extensions"),),
    ),
    ("apiregistration.k8s.io", "v1", (("apiservices", "APIService", "", False, "status", "api-extensions"),)),
    (
        "authentication.k8s.io",
        "v1",
        (
            ("selfsubjectreviews", "SelfSubjectReview", "", False, "", ""),
            ("tokenreviews", "TokenReview", "", False, "", ""),
        ),
    ),
    (
        "authorization.k8s.io",
        "v1",
        (
            ("localsubjectaccessreviews", "LocalSubjectAccessReview", "", True, "", ""),
            ("selfsubjectaccessreviews", "SelfSubjectAccessReview", "", False, "", ""),
            ("selfsubjectrulesreviews", "SelfSubjectRulesReview", "", False, "", ""),
            ("subjectaccessreviews", "SubjectAccessReview", "", False, "", ""),
        ),
    ),
    ("autoscaling", "v2 v1", _HPA),
    (
        "batch",
        "v1",
        (
            ("cronjobs", "CronJob", "cj", True, "status", "all"),
            ("jobs", "Job", "", True, "status", "all"),
        ),
    ),
    (
        "certificates.k8s.io",
        "v1",
        (("certificatesigningrequests", "CertificateSigningRequest", "csr", False, "approval status", ""),),
    ),
    ("certificates.k8s.io", "v1beta1 v1alpha1", _BUNDLES),
    ("certificates.k8s.io", "v1beta1 v1alpha1", _POD_CERTIFICATES),
    ("coordination.k8s.io", "v1", (("leases", "Lease", "", True, "", ""),)),
    ("coordination.k8s.io", "v1beta1 v1alpha2", _CANDIDATES),
    ("discovery.k8s.io", "v1", (("endpointslices", "EndpointSlice", "", True, "", ""),)),
    ("events.k8s.io", "v1", (("events", "Event", "ev", True, "", ""),)),
    (
        "flowcontrol.apiserver.k8s.io",
        "v1",
        (
            ("flowschemas", "FlowSchema", "", False, "status", ""),
            ("prioritylevelconfigurations", "PriorityLevelConfiguration", "", False, "status", ""),
        ),
    ),
    ("internal.apiserver.k8s.io", "v1alpha1", (("storageversions", "StorageVersion", "", False, "status", ""),)),
    (
        "networking.k8s.io",
        "v1",
        (
            ("ingressclasses", "IngressClass", "", False, "", ""),
            ("ingresses", "Ingress", "ing", True, "status", ""),
            ("networkpolicies", "NetworkPolicy", "netpol", True, "", ""),
        ),
    ),
    ("networking.k8s.io", "v1 v1beta1", _ADDRESSES),
    ("node.k8s.io", "v1", (("runtimeclasses", "RuntimeClass", "", False, "", ""),)),
    ("policy", "v1", (("poddisruptionbudgets", "PodDisruptionBudget", "pdb", True, "status", ""),)),
    (
        "rbac.authorization.k8s.io",
        "v1",
        (
            ("clusterrolebindings", "ClusterRoleBinding", "", False, "", ""),
            ("clusterroles", "ClusterRole", "", False, "", ""),
            ("rolebindings", "RoleBinding", "", True, "", ""),
            ("roles", "Role", "", True, "", ""),
        ),
    ),
    ("resource.k8s.io", "v1 v1beta2 v1beta1", _DEVICES),
    ("resource.k8s.io", "v1beta2 v1alpha3", _TAINTS),
    ("scheduling.k8s.io", "v1", (("priorityclasses", "PriorityClass", "pc", False, "", ""),)),
    ("scheduling.k8s.io", "v1alpha2 v1alpha1", _WORKLOADS),
    ("scheduling.k8s.io", "v1alpha2", (("podgroups", "PodGroup", "", True, "status", ""),)),
    (
        "storage.k8s.io",
        "v1",
        (
            ("csidrivers", "CSIDriver", "", False, "", ""),
            ("csinodes", "CSINode", "", False, "", ""),
            ("csistoragecapacities", "CSIStorageCapacity", "", True, "", ""),
            ("storageclasses", "StorageClass", "sc", False, "", ""),
            ("volumeattachments", "VolumeAttachment", "", False, "status", ""),
        ),
    ),
    ("storage.k8s.io", "v1 v1beta1 v1alpha1", _ATTRIBUTES),
    ("storagemigration.k8s.io", "v1beta1 v1alpha1", _MIGRATIONS),
)
