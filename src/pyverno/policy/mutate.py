"""The `mutate` block of a rule, as written.

Patches stay plain JSON or text. This module must not patch anything.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.yaml.fieldpath import Path
from pyverno.policy.context import CONTEXT, ContextEntry
from pyverno.policy.match import label_selector
from pyverno.policy.schema import Cursor, Field, Record, boolean, choice, free, list_of, text
from pyverno.value import dataclass, field

__all__ = ["MUTATE", "ForeachOrder", "Mutate", "MutateForeach", "Target"]


class ForeachOrder(StrEnum):
    """In which order the elements of a list are visited."""

    ASCENDING = "Ascending"
    DESCENDING = "Descending"


@dataclass(frozen=True, slots=True)
class Target:
    """Existing resources that a rule changes; names may hold wildcards and variables."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    selector: JSONObject | None = None
    context: tuple[ContextEntry, ...] = ()
    preconditions: JSON = None
    path: Path = ()
    raw: JSONObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MutateForeach:
    """A patch for every element of a list; `elements` is the JMESPath expression of `list`."""

    elements: str = ""
    order: ForeachOrder | None = None
    context: tuple[ContextEntry, ...] = ()
    preconditions: JSON = None
    patch_strategic_merge: JSON = None
    patches_json6902: str = ""
    foreach: tuple[MutateForeach, ...] = ()
    path: Path = ()
    raw: JSONObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Mutate:
    """A change of the resource, or of `targets` when there are any (None = none written)."""

    mutate_existing_on_policy_update: bool | None = None
    targets: tuple[Target, ...] | None = None
    patch_strategic_merge: JSON = None
    patches_json6902: str = ""
    foreach: tuple[MutateForeach, ...] = ()
    path: Path = ()
    raw: JSONObject = field(default_factory=dict)


def _foreach_list(value: JSON, cursor: Cursor) -> Any:
    return list_of(_FOREACH)(value, cursor)


_PATCHES = (
    Field("patch_strategic_merge", free),
    Field("patches_json6902", text, json="patchesJson6902"),
)

_FOREACH = Record(
    MutateForeach,
    Field("elements", text, json="list"),
    Field("order", choice(ForeachOrder)),
    Field("context", CONTEXT),
    Field("preconditions", free),
    *_PATCHES,
    Field("foreach", _foreach_list),
)

_TARGET = Record(
    Target,
    Field("api_version", text),
    Field("kind", text),
    Field("namespace", text),
    Field("name", text),
    Field("uid", text),
    Field("selector", label_selector),
    Field("context", CONTEXT),
    Field("preconditions", free),
)

MUTATE = Record(
    Mutate,
    Field("mutate_existing_on_policy_update", boolean),
    Field("targets", list_of(_TARGET)),
    *_PATCHES,
    Field("foreach", list_of(_FOREACH)),
)
