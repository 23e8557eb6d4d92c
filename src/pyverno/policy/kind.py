"""A policy kind: its names and versions, its decoder, and the parts of the system that serve it.

The kinds themselves are the rows of `kinds`.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from pyverno.kube.gvk import GVR
from pyverno.policy.schema import Shape
from pyverno.value import dataclass

__all__ = ["UNLABELLED", "Family", "PolicyAction", "PolicyKind"]


class Family(StrEnum):
    """The part of the system that a kind belongs to."""

    RULES = "rules"
    CLEANUP = "cleanup"
    EXCEPTION = "exception"
    CONTEXT = "context"
    CEL = "cel"
    CEL_EXCEPTION = "cel-exception"
    ADMISSION = "admission"


class PolicyAction(StrEnum):
    """The action of policies of a kind, where the kind decides it (rules of a ClusterPolicy decide by themselves)."""

    VALIDATE = "validate"
    MUTATE = "mutate"
    GENERATE = "generate"
    VERIFY_IMAGES = "verify images"
    DELETE = "delete"


UNLABELLED = "validatingadmissionpolicy.apiserver.io"
"""Kyverno: reports on namespaced CEL policies other than those that mutate are found under this label."""


@dataclass(frozen=True, slots=True)
class PolicyKind:
    """One kind: names, scope, served versions (the stored one first), and how its documents are decoded.

    `decoder` returns the shape of a version and imports its module only then, so that a run loads the kinds that it
    meets; None for a version that is recognised but cannot be used yet. `replacement` names the kinds that an author
    should move to. `watched` is the version that controllers read.

    `routes` are the webhook paths that evaluate policies of the kind, each with `mutate` or `validate`; a kind without
    routes has no webhooks (rules share `/validate` and `/mutate`). `binds` names the
    kind that a binding puts into force, `becomes` the admission policy of Kubernetes that a policy may be turned into.
    `action` is what policies of the kind do. `libraries` names the CEL libraries of the kind (`lang.cel.presets`).
    `source` is its name in reports, `label` the prefix of the label by which reports on a policy are found, `metric`
    its word in names of metrics. Literal lists and maps of a kind that `is_homogeneous` have elements of one type; one
    that `checks_literals` refuses bad literals when it is compiled.
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
    label: str = UNLABELLED
    metric: str = ""
    binds: str = ""
    becomes: str = ""
    action: PolicyAction | None = None
    is_homogeneous: bool = True
    checks_literals: bool = True

    @property
    def deletes(self) -> bool:
        """Whether policies of the kind delete objects, on a schedule."""
        return self.action is PolicyAction.DELETE

    @property
    def gvr(self) -> GVR:
        """The resource that controllers watch."""
        return GVR(self.group, self.watched or self.versions[0], self.plural)

    @property
    def api_version(self) -> str:
        """The `apiVersion` in which controllers read the kind."""
        return f"{self.group}/{self.gvr.version}"

    @property
    def has_status(self) -> bool:
        """Whether objects of the kind have a status of their own."""
        return self.family not in (Family.EXCEPTION, Family.CEL_EXCEPTION)

    @property
    def takes_part_in_admission(self) -> bool:
        """Whether admission webhooks evaluate policies of this kind."""
        return self.family is Family.RULES or bool(self.routes)
