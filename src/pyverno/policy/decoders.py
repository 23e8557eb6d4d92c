"""Shapes of policy documents by version; each function imports the module of its kind, and nothing else."""

from __future__ import annotations

from pyverno.policy.schema import Shape

__all__ = [
    "cel_exception",
    "cleanup_policy",
    "cluster_policy",
    "deleting_policy",
    "generating_policy",
    "global_context_entry",
    "image_validating_policy",
    "mutating_admission_policy",
    "mutating_admission_policy_binding",
    "mutating_policy",
    "policy_exception",
    "validating_admission_policy",
    "validating_admission_policy_binding",
    "validating_policy",
]


def cluster_policy(version: str) -> Shape:
    """Return the shape of ClusterPolicy and Policy."""
    from pyverno.policy.clusterpolicy import CLUSTER_POLICY, CLUSTER_POLICY_V2BETA1

    return CLUSTER_POLICY_V2BETA1 if version == "v2beta1" else CLUSTER_POLICY


def cleanup_policy(_version: str) -> Shape:
    """Return the shape of CleanupPolicy and ClusterCleanupPolicy."""
    from pyverno.policy.cleanup import CLEANUP_POLICY

    return CLEANUP_POLICY


def policy_exception(_version: str) -> Shape:
    """Return the shape of PolicyException of kyverno.io."""
    from pyverno.policy.exception import POLICY_EXCEPTION

    return POLICY_EXCEPTION


def global_context_entry(_version: str) -> Shape:
    """Return the shape of GlobalContextEntry."""
    from pyverno.policy.globalcontext import GLOBAL_CONTEXT_ENTRY

    return GLOBAL_CONTEXT_ENTRY


def validating_policy(_version: str) -> Shape:
    """Return the shape of ValidatingPolicy and its namespaced twin."""
    from pyverno.policy.cel.policies import VALIDATING_POLICY

    return VALIDATING_POLICY


def mutating_policy(_version: str) -> Shape:
    """Return the shape of MutatingPolicy and its namespaced twin."""
    from pyverno.policy.cel.policies import MUTATING_POLICY

    return MUTATING_POLICY


def generating_policy(_version: str) -> Shape:
    """Return the shape of GeneratingPolicy and its namespaced twin."""
    from pyverno.policy.cel.policies import GENERATING_POLICY

    return GENERATING_POLICY


def deleting_policy(_version: str) -> Shape:
    """Return the shape of DeletingPolicy and its namespaced twin."""
    from pyverno.policy.cel.policies import DELETING_POLICY

    return DELETING_POLICY


def image_validating_policy(_version: str) -> Shape:
    """Return the shape of ImageValidatingPolicy and its namespaced twin."""
    from pyverno.policy.cel.imagepolicy import IMAGE_VALIDATING_POLICY

    return IMAGE_VALIDATING_POLICY


def cel_exception(_version: str) -> Shape:
    """Return the shape of PolicyException of policies.kyverno.io."""
    from pyverno.policy.cel.exception import CEL_EXCEPTION

    return CEL_EXCEPTION


def validating_admission_policy(_version: str) -> Shape:
    """Return the shape of ValidatingAdmissionPolicy."""
    from pyverno.policy.cel.admissionpolicy import VALIDATING_ADMISSION_POLICY

    return VALIDATING_ADMISSION_POLICY


def validating_admission_policy_binding(_version: str) -> Shape:
    """Return the shape of ValidatingAdmissionPolicyBinding."""
    from pyverno.policy.cel.admissionpolicy import VALIDATING_ADMISSION_POLICY_BINDING

    return VALIDATING_ADMISSION_POLICY_BINDING


def mutating_admission_policy(_version: str) -> Shape:
    """Return the shape of MutatingAdmissionPolicy."""
    from pyverno.policy.cel.admissionpolicy import MUTATING_ADMISSION_POLICY

    return MUTATING_ADMISSION_POLICY


def mutating_admission_policy_binding(_version: str) -> Shape:
    """Return the shape of MutatingAdmissionPolicyBinding."""
    from pyverno.policy.cel.admissionpolicy import MUTATING_ADMISSION_POLICY_BINDING

    return MUTATING_ADMISSION_POLICY_BINDING
