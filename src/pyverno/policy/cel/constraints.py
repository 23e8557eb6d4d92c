"""The matchConstraints (matchResources) of CEL policies and their bindings, as written.

The shape is Kubernetes' MatchResources. This module must not decide whether a request matches (see the engine's
matcher of constraints).
"""

from __future__ import annotations

from enum import StrEnum

from pyverno.kube.json import JSONObject
from pyverno.kube.yaml.fieldpath import Path
from pyverno.policy.match import label_selector
from pyverno.policy.schema import Field, Record, choice, list_of, text
from pyverno.value import dataclass, field

__all__ = ["CONSTRAINTS", "CONSTRAINT_FIELDS", "MatchConstraints", "MatchPolicy", "ResourceRule"]


class MatchPolicy(StrEnum):
    """Whether rules also match through other groups and versions that serve the same objects."""

    EXACT = "Exact"
    EQUIVALENT = "Equivalent"


@dataclass(frozen=True, slots=True)
class ResourceRule:
    """Operations on resources: a request is matched when every list has an entry that fits.

    Entries of `resources` are `pods`, `pods/status`, `pods/*`, `*/scale`, `*` (no subresources) or `*/*`. An empty
    `resource_names` fits every name. `scope` is `*`, `Cluster`, `Namespaced` or "" (not written).
    """

    api_groups: tuple[str, ...] = ()
    api_versions: tuple[str, ...] = ()
    operations: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    resource_names: tuple[str, ...] = ()
    scope: str = ""
    path: Path = ()


@dataclass(frozen=True, slots=True)
class MatchConstraints:
    """The matchConstraints of a policy or a binding; absent parts do not restrict. Label selectors stay plain JSON.

    `match_policy` is None when it is not written: the API server then writes Equivalent.
    """

    resource_rules: tuple[ResourceRule, ...] = ()
    exclude_resource_rules: tuple[ResourceRule, ...] = ()
    namespace_selector: JSONObject | None = None
    object_selector: JSONObject | None = None
    match_policy: MatchPolicy | None = None
    path: Path = ()
    raw: JSONObject = field(default_factory=dict)


_RULE = Record(
    ResourceRule,
    Field("api_groups", list_of(text)),
    Field("api_versions", list_of(text)),
    Field("operations", list_of(text)),
    Field("resources", list_of(text)),
    Field("resource_names", list_of(text)),
    Field("scope", text),
)

CONSTRAINT_FIELDS = (
    Field("resource_rules", list_of(_RULE)),
    Field("exclude_resource_rules", list_of(_RULE)),
    Field("namespace_selector", label_selector),
    Field("object_selector", label_selector),
    Field("match_policy", choice(MatchPolicy)),
)

CONSTRAINTS = Record(MatchConstraints, *CONSTRAINT_FIELDS)
