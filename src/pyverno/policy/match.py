"""The match and exclude blocks of legacy policies, exceptions and cleanup policies, as written.

This module must not decide whether a resource matches (see the engine's matcher).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum

from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.yaml.fieldpath import Path
from pyverno.policy.schema import Cursor, Field, Record, Shape, choice, list_of, map_of, text
from pyverno.value import dataclass, field

__all__ = [
    "FILTER",
    "MATCH",
    "MATCH_WITHOUT_FLAT",
    "MatchBlocks",
    "Operation",
    "ResourceDescription",
    "ResourceFilter",
    "Subject",
    "UserInfo",
    "label_selector",
]


class Operation(StrEnum):
    """An admission operation."""

    CREATE = "CREATE"
    CONNECT = "CONNECT"
    UPDATE = "UPDATE"
    DELETE = "DELETE"


@dataclass(frozen=True, slots=True)
class ResourceDescription:
    """The required form of a resource; absent parts do not restrict. Label selectors stay plain JSON."""

    kinds: tuple[str, ...] = ()
    name: str = ""
    names: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()
    annotations: Mapping[str, str] = field(default_factory=dict)
    selector: JSONObject | None = None
    namespace_selector: JSONObject | None = None
    operations: tuple[Operation, ...] = ()
    path: Path = ()

    @property
    def is_empty(self) -> bool:
        """Return whether the block does not restrict the resource."""
        return not (
            self.kinds
            or self.name
            or self.names
            or self.namespaces
            or self.annotations
            or self.selector is not None
            or self.namespace_selector is not None
            or self.operations
        )


@dataclass(frozen=True, slots=True)
class Subject:
    """A user, group or service account."""

    kind: str
    name: str
    namespace: str = ""
    api_group: str = ""
    path: Path = ()


@dataclass(frozen=True, slots=True)
class UserInfo:
    """The required user: subjects, roles (`namespace:name`) and cluster roles."""

    subjects: tuple[Subject, ...] = ()
    roles: tuple[str, ...] = ()
    cluster_roles: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Return whether the block does not restrict the user."""
        return not (self.subjects or self.roles or self.cluster_roles)


@dataclass(frozen=True, slots=True)
class ResourceFilter:
    """One block: everything in it has to hold."""

    resources: ResourceDescription = field(default_factory=ResourceDescription)
    user_info: UserInfo = field(default_factory=UserInfo)
    path: Path = ()
    raw: JSONObject = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """Return whether the block restricts nothing."""
        return self.resources.is_empty and self.user_info.is_empty


@dataclass(frozen=True, slots=True)
class MatchBlocks:
    """A whole match or exclude section: `any` blocks, `all` blocks, or the legacy flat block."""

    any: tuple[ResourceFilter, ...] = ()
    all: tuple[ResourceFilter, ...] = ()
    flat: ResourceFilter | None = None
    path: Path = ()
    raw: JSONObject = field(default_factory=dict)

    @property
    def blocks(self) -> tuple[ResourceFilter, ...]:
        """Return every block: the flat one first, then `all`, then `any` (upstream's order)."""
        flat = () if self.flat is None else (self.flat,)
        return (*flat, *self.all, *self.any)

    @property
    def is_empty(self) -> bool:
        """Return whether the section is empty."""
        return not self.any and not self.all and (self.flat is None or self.flat.is_empty)

    def kinds(self) -> Iterator[str]:
        """Yield the kind selectors of every block."""
        for block in self.blocks:
            yield from block.resources.kinds


def _requirement(key: str, operator: str, values: tuple[str, ...] = ()) -> None:
    return None


_LABEL_SELECTOR = Record(
    lambda **_: None,
    Field("match_labels", map_of(text)),
    Field(
        "match_expressions",
        list_of(
            Record(
                _requirement,
                Field("key", text, required=True),
                Field("operator", text, required=True),
                Field("values", list_of(text)),
            )
        ),
    ),
)


def label_selector(value: JSON, cursor: Cursor) -> JSONObject:
    """Accept a label selector and keep it as plain JSON."""
    _LABEL_SELECTOR(value, cursor)
    return value if isinstance(value, dict) else {}


RESOURCES = Record(
    ResourceDescription,
    Field("kinds", list_of(text)),
    Field("name", text),
    Field("names", list_of(text)),
    Field("namespaces", list_of(text)),
    Field("annotations", map_of(text)),
    Field("selector", label_selector),
    Field("namespace_selector", label_selector),
    Field("operations", list_of(choice(Operation))),
)

SUBJECT = Record(
    Subject,
    Field("kind", text, required=True),
    Field("name", text, required=True),
    Field("namespace", text),
    Field("api_group", text),
)

_FILTER_FIELDS = (
    Field("resources", RESOURCES),
    Field("subjects", list_of(SUBJECT)),
    Field("roles", list_of(text)),
    Field("cluster_roles", list_of(text)),
)


def _filter(
    *,
    path: Path,
    raw: JSONObject,
    resources: ResourceDescription | None = None,
    subjects: tuple[Subject, ...] = (),
    roles: tuple[str, ...] = (),
    cluster_roles: tuple[str, ...] = (),
) -> ResourceFilter:
    described = resources if resources is not None else ResourceDescription(path=(*path, "resources"))
    return ResourceFilter(described, UserInfo(subjects, roles, cluster_roles), path, raw)


FILTER: Shape = Record(_filter, *_FILTER_FIELDS, extras=("path", "raw"))


def _blocks(
    *,
    path: Path,
    raw: JSONObject,
    any: tuple[ResourceFilter, ...] = (),
    all: tuple[ResourceFilter, ...] = (),
    **flat_parts: object,
) -> MatchBlocks:
    flat = None
    if flat_parts:
        written = {key: raw[key] for key in ("resources", "subjects", "roles", "clusterRoles") if key in raw}
        flat = _filter(path=path, raw=written, **flat_parts)  # type: ignore[arg-type]  # the table below types them
    return MatchBlocks(any, all, flat, path, raw)


_ANY_ALL = (Field("any", list_of(FILTER)), Field("all", list_of(FILTER)))

MATCH = Record(_blocks, *_ANY_ALL, *_FILTER_FIELDS, extras=("path", "raw"))
MATCH_WITHOUT_FLAT = MATCH.without("resources", "subjects", "roles", "clusterRoles")
