"""The checks of each resource: two tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, TypeAlias

from kubesandbox.types.customresources import definition_update_errors, validate_definition
from kubesandbox.validation import access, admission, cluster, plain, services, storage
from kubesandbox.validation.check import Check, Errors, needed, struct
from kubesandbox.validation.workloads import controllers as workloads
from kubesandbox.validation.workloads import jobs, pods
from pyverno.kube.json import JSON, JSONObject

__all__ = ["ADDED_CHECKS", "UPDATE_CHECKS", "Update", "kind_checks"]

Update: TypeAlias = Callable[[JSONObject, JSONObject, str, Errors], bool]
"""The new object, the stored one, the subresource, and errors: returns whether nothing more is to be judged."""

_RBAC: Final = "rbac.authorization.k8s.io"
_ADMISSION: Final = "admissionregistration.k8s.io"
_DEFINITIONS: Final = "customresourcedefinitions.apiextensions.k8s.io"


def _definition(body: JSON, path: str, errors: Errors, *, version: tuple[int, int]) -> None:
    errors += validate_definition(body, version)


def _definition_update(body: JSONObject, old: JSONObject, subresource: str, errors: Errors) -> bool:
    errors += definition_update_errors(body, old)
    return False


_CHECKS: Final[Mapping[str, Check]] = {
    # the schemas require lists here that an API server accepts empty
    "endpointslices.discovery.k8s.io": struct({"addressType": needed()}),
    "limitranges": struct({}),
    "configmaps": plain.config_map,
    "persistentvolumeclaims": storage.claim,
    "replicationcontrollers": workloads.replication_controller,
    "pods": pods.pod,
    "secrets": plain.secret,
    "services": services.service,
    "daemonsets.apps": workloads.daemon_set,
    "deployments.apps": workloads.deployment,
    "replicasets.apps": workloads.replica_set,
    "statefulsets.apps": workloads.stateful_set,
    "horizontalpodautoscalers.autoscaling": plain.autoscaler,
    "cronjobs.batch": jobs.cron_job,
    "jobs.batch": jobs.job,
    "ingresses.networking.k8s.io": services.ingress,
    "networkpolicies.networking.k8s.io": services.network_policy,
    "poddisruptionbudgets.policy": plain.disruption_budget,
    f"clusterrolebindings.{_RBAC}": access.binding(is_namespaced=False),
    f"clusterroles.{_RBAC}": access.cluster_role,
    f"rolebindings.{_RBAC}": access.binding(is_namespaced=True),
    f"roles.{_RBAC}": access.role,
    "priorityclasses.scheduling.k8s.io": plain.priority_class,
    f"mutatingadmissionpolicybindings.{_ADMISSION}": admission.policy_binding(is_validating=False),
    f"validatingadmissionpolicybindings.{_ADMISSION}": admission.policy_binding(is_validating=True),
}


def kind_checks(version: tuple[int, int]) -> Mapping[str, Check]:
    """Return the checks of all resources; expressions are those of a version of Kubernetes."""
    return {
        **_CHECKS,
        f"mutatingadmissionpolicies.{_ADMISSION}": partial(admission.mutating_policy, version=version),
        f"mutatingwebhookconfigurations.{_ADMISSION}": partial(admission.webhook_configuration, version=version),
        f"validatingadmissionpolicies.{_ADMISSION}": partial(admission.validating_policy, version=version),
        f"validatingwebhookconfigurations.{_ADMISSION}": partial(admission.webhook_configuration, version=version),
        _DEFINITIONS: partial(_definition, version=version),
    }


ADDED_CHECKS: Final[Mapping[str, Check]] = {"events": cluster.event, "namespaces": cluster.namespace}
"""Checks beside those of the schema."""

UPDATE_CHECKS: Final[Mapping[str, Update]] = {
    "configmaps": plain.config_map_update,
    "pods": pods.pod_update,
    "secrets": plain.secret_update,
    "services": services.service_update,
    "daemonsets.apps": workloads.daemon_set_update,
    "deployments.apps": workloads.deployment_update,
    "replicasets.apps": workloads.replica_set_update,
    "statefulsets.apps": workloads.stateful_set_update,
    "jobs.batch": jobs.job_update,
    f"clusterrolebindings.{_RBAC}": access.binding_update,
    f"rolebindings.{_RBAC}": access.binding_update,
    "priorityclasses.scheduling.k8s.io": plain.priority_class_update,
    _DEFINITIONS: _definition_update,
}
