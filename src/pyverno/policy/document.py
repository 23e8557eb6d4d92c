"""The common part of policy documents: apiVersion, kind and metadata, as a record that decodes and as a decoded value.

This module must not know any policy kind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.yaml.fieldpath import Source
from pyverno.policy.schema import Cursor, Field, Record, Shape, free, map_of, text
from pyverno.value import dataclass, field

__all__ = ["Metadata", "PolicyDocument", "policy_record"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyDocument:
    """The head of a decoded document; `document` locates everything in it, `raw` is what was written."""

    kind: str
    api_version: str
    name: str
    document: Source
    namespace: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    uid: str = ""
    raw: JSONObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Metadata:
    """The part of the metadata that policies use."""

    name: str = ""
    generate_name: str = ""
    namespace: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    uid: str = ""
    resource_version: str = ""


def _metadata(**values: object) -> Metadata:
    known = {key: value for key, value in values.items() if key not in _UNUSED}
    return Metadata(**known)  # type: ignore[arg-type]  # the table below types them


_UNUSED = (
    "creation_timestamp",
    "deletion_timestamp",
    "deletion_grace_period_seconds",
    "finalizers",
    "generation",
    "managed_fields",
    "owner_references",
    "self_link",
    "cluster_name",
    "initializers",
)

METADATA = Record(
    _metadata,
    Field("name", text),
    Field("generate_name", text),
    Field("namespace", text),
    Field("labels", map_of(text)),
    Field("annotations", map_of(text)),
    Field("uid", text),
    Field("resource_version", text),
    *(Field(name, free) for name in _UNUSED),
)


def _require_name(metadata: Metadata, cursor: Cursor) -> None:
    if not metadata.name and not metadata.generate_name:
        cursor.error("missing-field", "required field `name` is missing", key=True)


def policy_record(build: Callable[..., Any], spec: Shape) -> Record:
    """Return the shape of a whole document of one policy kind; `build` gets metadata as single arguments."""

    def metadata(value: JSON, cursor: Cursor) -> Metadata | None:
        decoded: Metadata | None = METADATA(value, cursor)
        if decoded is not None:
            _require_name(decoded, cursor)
        return decoded

    def built(*, metadata: Metadata, status: object = None, **values: object) -> object:
        return build(
            name=metadata.name or metadata.generate_name,
            namespace=metadata.namespace or None,
            labels=metadata.labels,
            annotations=metadata.annotations,
            uid=metadata.uid,
            **values,
        )

    return Record(
        built,
        Field("api_version", text, required=True),
        Field("kind", text, required=True),
        Field("metadata", metadata, required=True),
        Field("spec", spec, required=True),
        Field("status", free),
        extras=("document", "raw"),
    )
