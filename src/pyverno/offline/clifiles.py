"""Input files of the command line: Values, UserInfo, Context, ClusterResource (cli.kyverno.io/v1alpha1).

Decoded strictly: an unknown field, a wrong type or a missing apiVersion is an error with file, line and column.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyverno.engine.request import User
from pyverno.errors import PyvernoError, UsageError
from pyverno.kube.gvk import GVK
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.yaml.documents import Document
from pyverno.offline.values import (
    NamespaceLabels,
    PolicyValues,
    ResourceValues,
    RuleValues,
    Subresource,
    Values,
)
from pyverno.policy.schema import Cursor, Field, Problems, Record, Shape, describe_type, free, list_of, map_of, text
from pyverno.value import dataclass

__all__ = [
    "API_VERSION",
    "VALUES",
    "VALUE_SHAPE",
    "ClusterResource",
    "ContextFile",
    "decode_file",
    "folded",
    "is_deprecated",
    "read_cluster_resource",
    "read_context",
    "read_user_info",
    "read_values",
]

API_VERSION = "cli.kyverno.io/v1alpha1"


def folded(record: Record) -> Shape:
    """Match field names whatever their case, as Kyverno's command line does for its own files."""
    spelled = {name.casefold(): name for name in record.fields}

    def shape(value: JSON, cursor: Cursor) -> Any:
        if isinstance(value, dict):
            value = {spelled.get(key.casefold(), key): item for key, item in value.items()}
        return record(value, cursor)

    return shape


def is_deprecated(document: Document) -> bool:
    """Return whether such a document lacks apiVersion or kind, or has its name at the top."""
    value = document.value
    return isinstance(value, dict) and (not value.get("apiVersion") or not value.get("kind") or "name" in value)


def decode_file(document: Document, kind: str, shape: Shape) -> Any:
    """Decode one document; raises UsageError for a deprecated schema, or one error that names all problems.

    Kyverno: apiVersion and kind must only be present; the role of a file decides how it is decoded.
    """
    if not isinstance(document.value, dict):
        raise UsageError(f"expected an object, found {describe_type(document.value)}", location=document.location(()))
    if is_deprecated(document):
        raise UsageError(
            f"the file uses a deprecated schema: expected apiVersion `{API_VERSION}` and kind `{kind}`",
            location=document.location(()),
        )
    problems = Problems(document)
    decoded = shape(document.value, Cursor(problems))
    if problems.errors:
        found = document.value.get("kind")
        if isinstance(found, str) and found != kind:
            raise UsageError(
                f"a file of the kind `{kind}` is expected, not `{found}`", location=document.location(("kind",))
            )
        raise _combined(problems.errors)
    return decoded


def _combined(errors: list[Any]) -> PyvernoError:
    first: PyvernoError = errors[0]
    if len(errors) == 1:
        return first
    others = "".join(f"\n  {error}" for error in errors[1:])
    return UsageError(f"{first.message}{others}", location=first.location, path=first.path)


def _subresource(subresource: JSONObject | None = None, parent: JSONObject | None = None) -> Subresource:
    own, above = subresource or {}, parent or {}
    return Subresource(_gvk(own), str(own.get("name") or "").partition("/")[2], _gvk(above))


def _gvk(resource: JSONObject) -> GVK:
    return GVK(str(resource.get("group") or ""), str(resource.get("version") or ""), str(resource.get("kind") or ""))


_NAME = Field("name", text, required=True)
_TYPE = (Field("api_version", text), Field("kind", text), Field("metadata", free))

_VALUE_FIELDS = (
    Field("global_values", map_of(free)),
    Field(
        "policies",
        list_of(
            folded(
                Record(
                    PolicyValues,
                    _NAME,
                    Field(
                        "rules",
                        list_of(
                            folded(
                                Record(
                                    RuleValues,
                                    _NAME,
                                    Field("values", map_of(free)),
                                    Field("foreach_values", map_of(free)),
                                )
                            )
                        ),
                    ),
                    Field("resources", list_of(folded(Record(ResourceValues, _NAME, Field("values", map_of(free)))))),
                )
            )
        ),
    ),
    Field(
        "namespace_selector",
        list_of(folded(Record(NamespaceLabels, _NAME, Field("labels", map_of(text))))),
    ),
    Field("namespaces", list_of(map_of(free))),
    Field(
        "subresources",
        list_of(
            folded(
                Record(
                    _subresource,
                    Field("subresource", map_of(free)),
                    Field("parent", map_of(free), json="parentResource"),
                )
            )
        ),
    ),
)


def _build(build: Callable[..., Any]) -> Callable[..., Any]:
    def without_type(api_version: str = "", kind: str = "", metadata: JSON = None, **values: Any) -> Any:
        return build(**values)

    return without_type


VALUES = folded(Record(_build(Values), *_TYPE, *_VALUE_FIELDS))
VALUE_SHAPE = folded(Record(Values, *_VALUE_FIELDS))


def read_values(document: Document) -> Values:
    """Decode a Values file."""
    values: Values = decode_file(document, "Values", VALUES)
    return values


def _user(**values: Any) -> User:
    info = values.get("user_info") or {}
    extra = {key: tuple(str(item) for item in items) for key, items in (info.get("extra") or {}).items()}
    return User(
        username=info.get("username", ""),
        groups=tuple(info.get("groups", ())),
        uid=info.get("uid", ""),
        extra=extra,
        roles=tuple(values.get("roles", ())),
        cluster_roles=tuple(values.get("cluster_roles", ())),
    )


USER_INFO = folded(
    Record(
        _build(_user),
        *_TYPE,
        Field("roles", list_of(text)),
        Field("cluster_roles", list_of(text)),
        Field(
            "user_info",
            folded(
                Record(
                    dict,
                    Field("username", text),
                    Field("groups", list_of(text)),
                    Field("uid", text),
                    Field("extra", map_of(list_of(text))),
                )
            ),
        ),
    )
)


def read_user_info(document: Document) -> User:
    """Decode a UserInfo file."""
    user: User = decode_file(document, "UserInfo", USER_INFO)
    return user


@dataclass(frozen=True, slots=True)
class ContextFile:
    """A Context file: objects and images that expressions may read."""

    resources: tuple[JSONObject, ...] = ()
    images: tuple[JSONObject, ...] = ()


def _spec_of(build: Callable[..., Any]) -> Callable[..., Any]:
    def with_spec(spec: Any = None, **_: Any) -> Any:
        return spec if spec is not None else build()

    return with_spec


CONTEXT_FILE = folded(
    Record(
        _spec_of(ContextFile),
        *_TYPE,
        Field(
            "spec",
            folded(
                Record(ContextFile, Field("resources", list_of(map_of(free))), Field("images", list_of(map_of(free))))
            ),
        ),
    )
)


def read_context(document: Document) -> ContextFile:
    """Decode a Context file."""
    context: ContextFile = decode_file(document, "Context", CONTEXT_FILE)
    return context


@dataclass(frozen=True, slots=True)
class ClusterResource:
    """A ClusterResource file: objects of a fake cluster, and the files of its CRDs."""

    crds: tuple[str, ...] = ()
    resources: tuple[JSONObject, ...] = ()


CLUSTER_RESOURCE = folded(
    Record(
        _spec_of(ClusterResource),
        *_TYPE,
        Field(
            "spec",
            folded(Record(ClusterResource, Field("crds", list_of(text)), Field("resources", list_of(map_of(free))))),
        ),
    )
)


def read_cluster_resource(document: Document) -> ClusterResource:
    """Decode a ClusterResource file."""
    resource: ClusterResource = decode_file(document, "ClusterResource", CLUSTER_RESOURCE)
    return resource
