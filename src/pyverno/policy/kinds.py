"""The one registry of policy kinds: what each is called, how it is decoded, and which parts of the system serve it.

Webhook routes, CEL environments, CustomResourceDefinitions, watches, reports and metrics derive from these rows. To add
a kind, write its dataclass and record in a module of this package and add its row here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pyverno.kube.builtin_kinds import Group
from pyverno.kube.gvk import version_order
from pyverno.kube.kinds import BUILTIN_KINDS, KindInfo, KindTable, read_groups
from pyverno.policy import decoders
from pyverno.policy.kind import UNLABELLED, Family, PolicyAction, PolicyKind
from pyverno.policy.schema import Shape

__all__ = [
    "CEL_MUTATION_KINDS",
    "DELETING_POLICIES",
    "KNOWN_KINDS",
    "POLICY_KINDS",
    "RULE_KINDS",
    "WATCHED_EXCEPTIONS",
    "WATCHED_POLICIES",
    "Family",
    "PolicyAction",
    "PolicyKind",
    "find_kind",
    "is_policy",
    "kind_of",
    "kinds_of",
]


_KYVERNO = "kyverno.io"
_CEL = "policies.kyverno.io"
_KUBERNETES = "admissionregistration.k8s.io"
_CEL_VERSIONS = ("v1beta1", "v1", "v1alpha1")
_ADMISSION_VERSIONS = ("v1", "v1beta1", "v1alpha1")


# ---------------------------------------------------------------------------------------------------------- rows


def _cel(
    kind: str,
    short: str,
    decoder: Callable[[str], Shape],
    action: PolicyAction,
    libraries: tuple[str, ...],
    *,
    routes: tuple[tuple[str, str], ...] = (),
    source: str = "",
    metric: str = "",
    twin_label: str = "",
    becomes: str = "",
    is_homogeneous: bool = True,
    checks_literals: bool = True,
) -> tuple[PolicyKind, PolicyKind]:
    """Return a kind of policies.kyverno.io and its namespaced twin; `routes` are suffixes of the paths of both."""
    plural = f"{kind[:-1].lower()}ies"

    def row(scope: str, versions: tuple[str, ...], label: str) -> PolicyKind:
        name = f"{scope[:1]}{short}"
        return PolicyKind(
            _CEL,
            f"{scope}{kind}",
            f"{scope.lower()}{plural}",
            bool(scope),
            Family.CEL,
            versions,
            decoder,
            (name.lower(),),
            deprecated_versions=() if scope else ("v1alpha1",),
            watched="v1",
            routes=tuple((f"/{name.lower()}{suffix}", webhook) for suffix, webhook in routes),
            libraries=libraries,
            source=source or f"Kyverno{kind}",
            label=label or UNLABELLED,
            metric=metric,
            becomes="" if scope else becomes,
            action=action,
            is_homogeneous=is_homogeneous,
            checks_literals=checks_literals,
        )

    return row("", _CEL_VERSIONS, f"{short}.kyverno.io"), row("Namespaced", _CEL_VERSIONS[:2], twin_label)


def _admission(
    kind: str, action: PolicyAction, policy: Callable[[str], Shape], binding: Callable[[str], Shape], label: str
) -> tuple[PolicyKind, PolicyKind]:
    """Return an admission policy of Kubernetes and its binding."""
    plural = f"{kind[:-1].lower()}ies"
    return (
        PolicyKind(
            _KUBERNETES,
            kind,
            plural,
            False,
            Family.ADMISSION,
            _ADMISSION_VERSIONS,
            policy,
            source=kind,
            label=label,
            action=action,
        ),
        PolicyKind(
            _KUBERNETES,
            f"{kind}Binding",
            f"{kind.lower()}bindings",
            False,
            Family.ADMISSION,
            _ADMISSION_VERSIONS,
            binding,
            source=kind,
            binds=kind,
        ),
    )


POLICY_KINDS: tuple[PolicyKind, ...] = (
    PolicyKind(
        _KYVERNO,
        "ClusterPolicy",
        "clusterpolicies",
        False,
        Family.RULES,
        ("v1", "v2beta1"),
        decoders.cluster_policy,
        ("cpol",),
        becomes="ValidatingAdmissionPolicy",
        replacement="ValidatingPolicy, MutatingPolicy, GeneratingPolicy or ImageValidatingPolicy",
        label="cpol.kyverno.io",
    ),
    PolicyKind(
        _KYVERNO,
        "Policy",
        "policies",
        True,
        Family.RULES,
        ("v1", "v2beta1"),
        decoders.cluster_policy,
        ("pol",),
        replacement="NamespacedValidatingPolicy, NamespacedMutatingPolicy, NamespacedGeneratingPolicy or "
        "NamespacedImageValidatingPolicy",
        label="pol.kyverno.io",
    ),
    PolicyKind(
        _KYVERNO,
        "ClusterCleanupPolicy",
        "clustercleanuppolicies",
        False,
        Family.CLEANUP,
        ("v2", "v2beta1"),
        decoders.cleanup_policy,
        ("ccleanpol",),
        deprecated_versions=("v2beta1",),
        replacement="DeletingPolicy",
        action=PolicyAction.DELETE,
    ),
    PolicyKind(
        _KYVERNO,
        "CleanupPolicy",
        "cleanuppolicies",
        True,
        Family.CLEANUP,
        ("v2", "v2beta1"),
        decoders.cleanup_policy,
        ("cleanpol",),
        deprecated_versions=("v2beta1",),
        replacement="NamespacedDeletingPolicy",
        action=PolicyAction.DELETE,
    ),
    PolicyKind(
        _KYVERNO,
        "PolicyException",
        "policyexceptions",
        True,
        Family.EXCEPTION,
        ("v2", "v2beta1"),
        decoders.policy_exception,
        ("polex",),
        deprecated_versions=("v2beta1",),
        replacement="PolicyException",
    ),
    PolicyKind(
        _KYVERNO,
        "GlobalContextEntry",
        "globalcontextentries",
        False,
        Family.CONTEXT,
        ("v2beta1", "v2", "v2alpha1"),
        decoders.global_context_entry,
        ("gctxentry",),
        deprecated_versions=("v2alpha1",),
    ),
    *_cel(
        "ValidatingPolicy",
        "vpol",
        decoders.validating_policy,
        PolicyAction.VALIDATE,
        ("user", "x509", "two-variable-comprehensions", "or-value"),
        routes=(("", "validate"),),
        metric="validating",
        becomes="ValidatingAdmissionPolicy",
    ),
    *_cel(
        "MutatingPolicy",
        "mpol",
        decoders.mutating_policy,
        PolicyAction.MUTATE,
        ("user", "x509", "two-variable-comprehensions", "or-value", "json-patch"),
        routes=(("", "mutate"),),
        metric="mutating",
        becomes="MutatingAdmissionPolicy",
        twin_label="mpol.kyverno.io",
    ),
    *_cel(
        "GeneratingPolicy",
        "gpol",
        decoders.generating_policy,
        PolicyAction.GENERATE,
        ("x509", "generator", "or-value"),
        routes=(("", "validate"),),
        metric="generating",
        is_homogeneous=False,
        checks_literals=False,
    ),
    *_cel(
        "DeletingPolicy",
        "dpol",
        decoders.deleting_policy,
        PolicyAction.DELETE,
        ("x509", "or-value"),
        source="kyverno",
        checks_literals=False,
    ),
    *_cel(
        "ImageValidatingPolicy",
        "ivpol",
        decoders.image_validating_policy,
        PolicyAction.VERIFY_IMAGES,
        ("user", "two-variable-comprehensions", "image-verification"),
        routes=(("/validate", "validate"), ("/mutate", "mutate")),
        metric="image_validating",
    ),
    PolicyKind(
        _CEL,
        "PolicyException",
        "policyexceptions",
        True,
        Family.CEL_EXCEPTION,
        _CEL_VERSIONS,
        decoders.cel_exception,
        deprecated_versions=("v1alpha1",),
        watched="v1",
    ),
    *_admission(
        "ValidatingAdmissionPolicy",
        PolicyAction.VALIDATE,
        decoders.validating_admission_policy,
        decoders.validating_admission_policy_binding,
        UNLABELLED,
    ),
    *_admission(
        "MutatingAdmissionPolicy",
        PolicyAction.MUTATE,
        decoders.mutating_admission_policy,
        decoders.mutating_admission_policy_binding,
        "mutatingadmissionpolicy.apiserver.io",
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


def kinds_of(*families: Family) -> frozenset[str]:
    """Return the names of all kinds of some families.

    >>> sorted(kinds_of(Family.RULES))
    ['ClusterPolicy', 'Policy']
    """
    return frozenset(row.kind for row in POLICY_KINDS if row.family in families)


def kind_of(family: Family, *, is_namespaced: bool, metric: str = "") -> PolicyKind:
    """Return the cluster-wide or the namespaced kind of a family (and, in CEL, of what its policies do).

    >>> kind_of(Family.CEL, is_namespaced=True, metric="mutating").kind
    'NamespacedMutatingPolicy'
    """
    return next(
        row for row in POLICY_KINDS if (row.family, row.namespaced, row.metric) == (family, is_namespaced, metric)
    )


RULE_KINDS = kinds_of(Family.RULES)
"""The kinds whose policies consist of rules: ClusterPolicy and Policy."""

WATCHED_POLICIES = tuple(row.gvr for row in POLICY_KINDS if row.takes_part_in_admission)
"""The resources that controllers watch for policies that take part in admission; those of rules come first."""

DELETING_POLICIES = tuple(row.gvr for row in POLICY_KINDS if row.deletes)
"""The resources that the cleanup controller watches for policies that delete."""

WATCHED_EXCEPTIONS = tuple(row.gvr for row in POLICY_KINDS if row.family in (Family.EXCEPTION, Family.CEL_EXCEPTION))
"""The resources that controllers watch for exceptions."""

CEL_MUTATION_KINDS = frozenset(
    row.kind for row in POLICY_KINDS if row.family is Family.CEL and row.action is PolicyAction.MUTATE
)
"""MutatingPolicy and its namespaced twin."""


# -------------------------------------------------------------------------------- what a cluster with Kyverno serves

_KYVERNO_CATEGORY = "kyverno"
_OTHER_GROUPS: tuple[Group, ...] = (
    ("kyverno.io", "v2 v1beta1", (("updaterequests", "UpdateRequest", "ur", True, "status", _KYVERNO_CATEGORY),)),
    (
        "reports.kyverno.io",
        "v1",
        (
            ("ephemeralreports", "EphemeralReport", "ephr", True, "", _KYVERNO_CATEGORY),
            ("clusterephemeralreports", "ClusterEphemeralReport", "cephr", False, "", _KYVERNO_CATEGORY),
        ),
    ),
    (
        "wgpolicyk8s.io",
        "v1alpha2",
        (
            ("policyreports", "PolicyReport", "polr", True, "", ""),
            ("clusterpolicyreports", "ClusterPolicyReport", "cpolr", False, "", ""),
        ),
    ),
    (
        "openreports.io",
        "v1alpha1",
        (
            ("reports", "Report", "reps", True, "", ""),
            ("clusterreports", "ClusterReport", "creps", False, "", ""),
        ),
    ),
    ("policyreporter.kyverno.io", "v1alpha1", (("targetconfigs", "TargetConfig", "tcfg", False, "", ""),)),
)
"""Work orders and reports, which are no policies."""


def _known_kinds() -> Iterator[KindInfo]:
    yield from BUILTIN_KINDS
    for row in POLICY_KINDS:
        if row.family is not Family.ADMISSION:  # those are Kubernetes' own
            names = (row.plural, row.kind, " ".join(row.short_names), row.namespaced)
            written = (*names, "status" if row.has_status else "", _KYVERNO_CATEGORY)
            yield from read_groups([(row.group, " ".join(sorted(row.versions, key=version_order)), (written,))])
    yield from read_groups(_OTHER_GROUPS)


KNOWN_KINDS = KindTable(_known_kinds)
"""Kinds that a cluster of Kubernetes 1.32 to 1.37 with Kyverno may serve; built on first use."""


def is_policy(value: object) -> bool:
    """Return whether a JSON document is of a kind in the registry (its version is not looked at).

    >>> is_policy({"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy"})
    True
    """
    if not isinstance(value, dict):
        return False
    api_version, kind = value.get("apiVersion"), value.get("kind")
    if not isinstance(api_version, str) or not isinstance(kind, str):
        return False
    return find_kind(api_version.rpartition("/")[0], kind) is not None
