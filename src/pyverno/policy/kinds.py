"""The one registry of policy kinds: what each is called, how it is decoded, and which parts of the system serve it.

Webhook routes, CEL environments, CustomResourceDefinitions, watches, reports and metrics derive from these rows. To add
a kind, write its dataclass and record in a module of this package and add its row here.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from pyverno.kube.gvk import GVR
from pyverno.policy.schema import Shape
from pyverno.value import dataclass

__all__ = [
    "CEL_MUTATION_KINDS",
    "POLICY_KINDS",
    "RULE_KINDS",
    "WATCHED_EXCEPTIONS",
    "WATCHED_POLICIES",
    "Family",
    "PolicyKind",
    "find_kind",
    "is_policy",
    "kinds_of",
]


class Family(StrEnum):
    """Which part of the system a kind belongs to."""

    RULES = "rules"
    CLEANUP = "cleanup"
    EXCEPTION = "exception"
    CONTEXT = "context"
    CEL = "cel"
    CEL_EXCEPTION = "cel-exception"
    ADMISSION = "admission"


_OTHERS = "validatingadmissionpolicy.apiserver.io"
"""Kyverno: reports on namespaced CEL policies other than those that mutate are found under this label."""


@dataclass(frozen=True, slots=True)
class PolicyKind:
    """One kind: names, scope, served versions (the stored one first), and how its documents are decoded.

    `decoder` returns the shape of a version and imports its module only then, so that a run loads the kinds that it
    meets; None for a version that is recognised but cannot be used yet. `replacement` names the kinds that an author
    should move to. `watched` is the version that controllers read.

    `routes` are the webhook paths that evaluate policies of the kind, each with `mutate` or `validate`; a kind without
    routes takes no part in admission webhooks of its own (rules share `/validate` and `/mutate`). `libraries` names the
    CEL libraries of the kind (`lang.cel.presets`). `source` is its name in reports, `label` the prefix of the label by
    which reports on a policy are found, `metric` its word in names of metrics. Literal lists and maps of a
    kind that `is_homogeneous` have elements of one type; one that `checks_literals` refuses bad literals when it is
    compiled.
    """

    group: str
    kind: str
    plural: str
    namespaced: bool
    family: Family
    versions: tuple[str, ...]
    decoder: Callable[[str], Shape | None]
    short_names: tuple[str, ...] = ()
    deprecated_versions: tuple[str, ...] = ()
    replacement: str = ""
    watched: str = ""
    routes: tuple[tuple[str, str], ...] = ()
    libraries: tuple[str, ...] = ()
    source: str = "kyverno"
    label: str = _OTHERS
    metric: str = ""
    is_homogeneous: bool = True
    checks_literals: bool = True

    @property
    def gvr(self) -> GVR:
        """The resource that controllers watch."""
        return GVR(self.group, self.watched or self.versions[0], self.plural)

    @property
    def takes_part_in_admission(self) -> bool:
        """Whether admission webhooks evaluate policies of this kind."""
        return self.family is Family.RULES or bool(self.routes)


_KYVERNO = "kyverno.io"
_CEL = "policies.kyverno.io"
_KUBERNETES = "admissionregistration.k8s.io"
_CEL_VERSIONS = ("v1beta1", "v1", "v1alpha1")
_ADMISSION_VERSIONS = ("v1", "v1beta1", "v1alpha1")


# ---------------------------------------------------------- decoders: each imports what it needs, and nothing else


def _cluster_policy(version: str) -> Shape:
    from pyverno.policy.clusterpolicy import CLUSTER_POLICY, CLUSTER_POLICY_V2BETA1

    return CLUSTER_POLICY_V2BETA1 if version == "v2beta1" else CLUSTER_POLICY


def _cleanup_policy(_version: str) -> Shape:
    from pyverno.policy.cleanup import CLEANUP_POLICY

    return CLEANUP_POLICY


def _policy_exception(_version: str) -> Shape:
    from pyverno.policy.exception import POLICY_EXCEPTION

    return POLICY_EXCEPTION


def _global_context_entry(_version: str) -> Shape:
    from pyverno.policy.globalcontext import GLOBAL_CONTEXT_ENTRY

    return GLOBAL_CONTEXT_ENTRY


def _validating_policy(_version: str) -> Shape:
    from pyverno.policy.cel.policies import VALIDATING_POLICY

    return VALIDATING_POLICY


def _mutating_policy(_version: str) -> Shape:
    from pyverno.policy.cel.policies import MUTATING_POLICY

    return MUTATING_POLICY


def _generating_policy(_version: str) -> Shape:
    from pyverno.policy.cel.policies import GENERATING_POLICY

    return GENERATING_POLICY


def _deleting_policy(_version: str) -> Shape:
    from pyverno.policy.cel.policies import DELETING_POLICY

    return DELETING_POLICY


def _image_validating_policy(_version: str) -> Shape:
    from pyverno.policy.cel.imagepolicy import IMAGE_VALIDATING_POLICY

    return IMAGE_VALIDATING_POLICY


def _cel_exception(_version: str) -> Shape:
    from pyverno.policy.cel.exception import CEL_EXCEPTION

    return CEL_EXCEPTION


def _validating_admission_policy(_version: str) -> Shape:
    from pyverno.policy.cel.admissionpolicy import VALIDATING_ADMISSION_POLICY

    return VALIDATING_ADMISSION_POLICY


def _validating_admission_policy_binding(_version: str) -> Shape:
    from pyverno.policy.cel.admissionpolicy import VALIDATING_ADMISSION_POLICY_BINDING

    return VALIDATING_ADMISSION_POLICY_BINDING


def _mutating_admission_policy(_version: str) -> Shape:
    from pyverno.policy.cel.admissionpolicy import MUTATING_ADMISSION_POLICY

    return MUTATING_ADMISSION_POLICY


def _mutating_admission_policy_binding(_version: str) -> Shape:
    from pyverno.policy.cel.admissionpolicy import MUTATING_ADMISSION_POLICY_BINDING

    return MUTATING_ADMISSION_POLICY_BINDING


# ---------------------------------------------------------------------------------------------------------- rows


def _cel(
    kind: str,
    short: str,
    decoder: Callable[[str], Shape],
    libraries: tuple[str, ...],
    *,
    routes: tuple[tuple[str, str], ...] = (),
    source: str = "",
    metric: str = "",
    twin_label: str = "",
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
            label=label or _OTHERS,
            metric=metric,
            is_homogeneous=is_homogeneous,
            checks_literals=checks_literals,
        )

    return row("", _CEL_VERSIONS, f"{short}.kyverno.io"), row("Namespaced", _CEL_VERSIONS[:2], twin_label)


def _admission(
    kind: str, policy: Callable[[str], Shape], binding: Callable[[str], Shape], label: str
) -> tuple[PolicyKind, PolicyKind]:
    """Return an admission policy of Kubernetes and its binding."""
    plural = f"{kind[:-1].lower()}ies"
    return (
        PolicyKind(
            _KUBERNETES, kind, plural, False, Family.ADMISSION, _ADMISSION_VERSIONS, policy, source=kind, label=label
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
        _cluster_policy,
        ("cpol",),
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
        _cluster_policy,
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
        _cleanup_policy,
        ("ccleanpol",),
        deprecated_versions=("v2beta1",),
        replacement="DeletingPolicy",
    ),
    PolicyKind(
        _KYVERNO,
        "CleanupPolicy",
        "cleanuppolicies",
        True,
        Family.CLEANUP,
        ("v2", "v2beta1"),
        _cleanup_policy,
        ("cleanpol",),
        deprecated_versions=("v2beta1",),
        replacement="NamespacedDeletingPolicy",
    ),
    PolicyKind(
        _KYVERNO,
        "PolicyException",
        "policyexceptions",
        True,
        Family.EXCEPTION,
        ("v2", "v2beta1"),
        _policy_exception,
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
        _global_context_entry,
        ("gctxentry",),
        deprecated_versions=("v2alpha1",),
    ),
    *_cel(
        "ValidatingPolicy",
        "vpol",
        _validating_policy,
        ("user", "x509", "two-variable-comprehensions", "or-value"),
        routes=(("", "validate"),),
        metric="validating",
    ),
    *_cel(
        "MutatingPolicy",
        "mpol",
        _mutating_policy,
        ("user", "x509", "two-variable-comprehensions", "or-value", "json-patch"),
        routes=(("", "mutate"),),
        metric="mutating",
        twin_label="mpol.kyverno.io",
    ),
    *_cel(
        "GeneratingPolicy",
        "gpol",
        _generating_policy,
        ("x509", "generator", "or-value"),
        routes=(("", "validate"),),
        metric="generating",
        is_homogeneous=False,
        checks_literals=False,
    ),
    *_cel(
        "DeletingPolicy",
        "dpol",
        _deleting_policy,
        ("x509", "or-value"),
        source="kyverno",
        checks_literals=False,
    ),
    *_cel(
        "ImageValidatingPolicy",
        "ivpol",
        _image_validating_policy,
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
        _cel_exception,
        deprecated_versions=("v1alpha1",),
        watched="v1",
    ),
    *_admission(
        "ValidatingAdmissionPolicy", _validating_admission_policy, _validating_admission_policy_binding, _OTHERS
    ),
    *_admission(
        "MutatingAdmissionPolicy",
        _mutating_admission_policy,
        _mutating_admission_policy_binding,
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


RULE_KINDS = kinds_of(Family.RULES)
"""The kinds whose policies consist of rules: ClusterPolicy and Policy."""

WATCHED_POLICIES = tuple(row.gvr for row in POLICY_KINDS if row.takes_part_in_admission)
"""The resources that controllers watch for policies that take part in admission; those of rules come first."""

WATCHED_EXCEPTIONS = tuple(row.gvr for row in POLICY_KINDS if row.family in (Family.EXCEPTION, Family.CEL_EXCEPTION))
"""The resources that controllers watch for exceptions."""

CEL_MUTATION_KINDS = frozenset(row.kind for row in POLICY_KINDS if row.metric == "mutating")
"""MutatingPolicy and its namespaced twin."""


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
