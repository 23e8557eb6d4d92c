"""The one registry of policy kinds and their versions; every other part of the system derives its lists from it.

To add a kind: write its dataclass and record in a module of this package, and put the record into its row here.
This module must not know what the kinds do.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from importlib import import_module

from pyverno.policy.schema import Shape
from pyverno.value import dataclass, field

__all__ = ["POLICY_KINDS", "Family", "PolicyKind", "find_kind", "is_policy"]


class Family(StrEnum):
    """Which part of the system a kind belongs to."""

    RULES = "rules"
    CLEANUP = "cleanup"
    EXCEPTION = "exception"
    CONTEXT = "context"
    CEL = "cel"
    CEL_EXCEPTION = "cel-exception"
    ADMISSION = "admission"


@dataclass(frozen=True, slots=True)
class PolicyKind:
    """One kind: names, scope, served versions (the stored one first), and how its documents are decoded.

    `forms` names the shape of each version (`module.NAME` of this package), so that a run loads the kinds that it meets
    and no others; a version without form is recognised but can not be used yet. `replacement` names the kinds that an
    author should move to.
    """

    group: str
    kind: str
    plural: str
    namespaced: bool
    family: Family
    versions: tuple[str, ...]
    short_names: tuple[str, ...] = ()
    deprecated_versions: tuple[str, ...] = ()
    replacement: str = ""
    forms: Mapping[str, str] = field(default_factory=dict)

    @property
    def shapes(self) -> Mapping[str, Shape]:
        """The shapes by version; their modules are imported when they are first asked for."""
        return {version: _shape(form) for version, form in self.forms.items()}


def _shape(form: str) -> Shape:
    module, _, name = form.rpartition(".")
    shape: Shape = getattr(import_module(f"pyverno.policy.{module}"), name)
    return shape


_KYVERNO = "kyverno.io"
_CEL = "policies.kyverno.io"
_KUBERNETES = "admissionregistration.k8s.io"


_CEL_VERSIONS = ("v1beta1", "v1", "v1alpha1")
_ADMISSION_VERSIONS = ("v1", "v1beta1", "v1alpha1")


def _cel(kind: str, plural: str, short: str, shape: str) -> tuple[PolicyKind, PolicyKind]:
    cluster = PolicyKind(
        _CEL,
        kind,
        plural,
        False,
        Family.CEL,
        _CEL_VERSIONS,
        (short,),
        deprecated_versions=("v1alpha1",),
        forms=dict.fromkeys(_CEL_VERSIONS, shape),
    )
    namespaced = PolicyKind(
        _CEL,
        f"Namespaced{kind}",
        f"namespaced{plural}",
        True,
        Family.CEL,
        _CEL_VERSIONS[:2],
        (f"n{short}",),
        forms=dict.fromkeys(_CEL_VERSIONS[:2], shape),
    )
    return cluster, namespaced


def _admission(kind: str, plural: str, policy: str, binding: str) -> tuple[PolicyKind, PolicyKind]:
    rows = ((kind, plural, policy), (f"{kind}Binding", f"{kind.lower()}bindings", binding))
    first, second = (
        PolicyKind(
            _KUBERNETES,
            name,
            names,
            False,
            Family.ADMISSION,
            _ADMISSION_VERSIONS,
            forms=dict.fromkeys(_ADMISSION_VERSIONS, shape),
        )
        for name, names, shape in rows
    )
    return first, second


POLICY_KINDS: tuple[PolicyKind, ...] = (
    PolicyKind(
        _KYVERNO,
        "ClusterPolicy",
        "clusterpolicies",
        False,
        Family.RULES,
        ("v1", "v2beta1"),
        ("cpol",),
        replacement="ValidatingPolicy, MutatingPolicy, GeneratingPolicy or ImageValidatingPolicy",
        forms={"v1": "clusterpolicy.CLUSTER_POLICY", "v2beta1": "clusterpolicy.CLUSTER_POLICY_V2BETA1"},
    ),
    PolicyKind(
        _KYVERNO,
        "Policy",
        "policies",
        True,
        Family.RULES,
        ("v1", "v2beta1"),
        ("pol",),
        replacement="NamespacedValidatingPolicy, NamespacedMutatingPolicy, NamespacedGeneratingPolicy or "
        "NamespacedImageValidatingPolicy",
        forms={"v1": "clusterpolicy.CLUSTER_POLICY", "v2beta1": "clusterpolicy.CLUSTER_POLICY_V2BETA1"},
    ),
    PolicyKind(
        _KYVERNO,
        "ClusterCleanupPolicy",
        "clustercleanuppolicies",
        False,
        Family.CLEANUP,
        ("v2", "v2beta1"),
        ("ccleanpol",),
        deprecated_versions=("v2beta1",),
        replacement="DeletingPolicy",
        forms={"v2": "cleanup.CLEANUP_POLICY", "v2beta1": "cleanup.CLEANUP_POLICY"},
    ),
    PolicyKind(
        _KYVERNO,
        "CleanupPolicy",
        "cleanuppolicies",
        True,
        Family.CLEANUP,
        ("v2", "v2beta1"),
        ("cleanpol",),
        deprecated_versions=("v2beta1",),
        replacement="NamespacedDeletingPolicy",
        forms={"v2": "cleanup.CLEANUP_POLICY", "v2beta1": "cleanup.CLEANUP_POLICY"},
    ),
    PolicyKind(
        _KYVERNO,
        "PolicyException",
        "policyexceptions",
        True,
        Family.EXCEPTION,
        ("v2", "v2beta1"),
        ("polex",),
        deprecated_versions=("v2beta1",),
        replacement="PolicyException",
        forms={"v2": "exception.POLICY_EXCEPTION", "v2beta1": "exception.POLICY_EXCEPTION"},
    ),
    PolicyKind(
        _KYVERNO,
        "GlobalContextEntry",
        "globalcontextentries",
        False,
        Family.CONTEXT,
        ("v2beta1", "v2", "v2alpha1"),
        ("gctxentry",),
        deprecated_versions=("v2alpha1",),
        forms=dict.fromkeys(("v2", "v2beta1", "v2alpha1"), "globalcontext.GLOBAL_CONTEXT_ENTRY"),
    ),
    *_cel("ValidatingPolicy", "validatingpolicies", "vpol", "cel.policies.VALIDATING_POLICY"),
    *_cel("MutatingPolicy", "mutatingpolicies", "mpol", "cel.policies.MUTATING_POLICY"),
    *_cel("GeneratingPolicy", "generatingpolicies", "gpol", "cel.policies.GENERATING_POLICY"),
    *_cel("DeletingPolicy", "deletingpolicies", "dpol", "cel.policies.DELETING_POLICY"),
    *_cel("ImageValidatingPolicy", "imagevalidatingpolicies", "ivpol", "cel.imagepolicy.IMAGE_VALIDATING_POLICY"),
    PolicyKind(
        _CEL,
        "PolicyException",
        "policyexceptions",
        True,
        Family.CEL_EXCEPTION,
        _CEL_VERSIONS,
        deprecated_versions=("v1alpha1",),
        forms=dict.fromkeys(_CEL_VERSIONS, "cel.exception.CEL_EXCEPTION"),
    ),
    *_admission(
        "ValidatingAdmissionPolicy",
        "validatingadmissionpolicies",
        "cel.admissionpolicy.VALIDATING_ADMISSION_POLICY",
        "cel.admissionpolicy.VALIDATING_ADMISSION_POLICY_BINDING",
    ),
    *_admission(
        "MutatingAdmissionPolicy",
        "mutatingadmissionpolicies",
        "cel.admissionpolicy.MUTATING_ADMISSION_POLICY",
        "cel.admissionpolicy.MUTATING_ADMISSION_POLICY_BINDING",
    ),
)
"""Every kind of policy document that Kyverno knows."""

_BY_NAME: dict[tuple[str, str], PolicyKind] = {(row.group, row.kind): row for row in POLICY_KINDS}


def find_kind(group: str, kind: str) -> PolicyKind | None:
    """Return the row of a kind, whatever its version.

    >>> find_kind("kyverno.io", "Policy").namespaced
    True
    """
    return _BY_NAME.get((group, kind))


def is_policy(value: object) -> bool:
    """Tell whether a JSON document is of a kind in the registry (its version is not looked at).

    >>> is_policy({"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy"})
    True
    """
    if not isinstance(value, dict):
        return False
    api_version, kind = value.get("apiVersion"), value.get("kind")
    if not isinstance(api_version, str) or not isinstance(kind, str):
        return False
    return find_kind(api_version.rpartition("/")[0], kind) is not None
