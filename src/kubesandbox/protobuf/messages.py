"""Messages and their field numbers: a table that is read when the first request needs it.

In `messages.json` a field is written `name kind flags`. The kind is a scalar (`string int bool double bytes time micro
duration quantity intstr fields raw`) or the name of a message; `*` before it is a list, `%` a map from texts, `@` a
message that is a bare list in JSON. Flags: `p` for a pointer in Go, `o` where JSON leaves out zero values, `z` where it
leaves out zero structs, `i` for a message whose fields are among those of its parent. The numbers come from the Go
types of Kubernetes' API (see NOTICE).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import orjson

from pyverno.kube.gvk import GVK
from pyverno.value import dataclass

__all__ = ["Field", "Kind", "message", "message_of"]


@dataclass(frozen=True, slots=True)
class Kind:
    """The kind of a value: `list` and `map` of an `item`, `bare` or `message` by its name, or a scalar."""

    name: str
    item: Kind | None = None
    message: str = ""


@dataclass(frozen=True, slots=True)
class Field:
    """One field: its name in JSON, its kind, and which values JSON leaves out."""

    name: str
    kind: Kind
    is_pointer: bool
    omits_zero: bool
    omits_empty: bool
    is_inlined: bool


_SCALARS = frozenset(
    "string int bool double bytes time micro duration quantity intstr fields raw".split()  # noqa: SIM905
)


def message_of(kind: GVK) -> str | None:
    """Return the name of the message of a kind; options have the group and version of the objects that they select.

    >>> message_of(GVK("apps", "v1", "Deployment")), message_of(GVK("apps", "v1", "DeleteOptions"))
    ('apps/v1.Deployment', 'meta/v1.DeleteOptions')
    """
    kinds = _table().kinds
    return kinds.get(f"{kind.group}/{kind.version}/{kind.kind}") or kinds.get(f"*/{kind.kind}")


@cache
def message(name: str) -> Mapping[int, Field]:
    """Return the fields of a message by their numbers.

    >>> message("core/v1.Container")[2].name
    'image'
    """
    return {int(number): _field(text) for number, text in _table().messages[name].items()}


@dataclass(frozen=True, slots=True)
class _Table:
    """The content of the file."""

    kinds: Mapping[str, str]
    messages: Mapping[str, Mapping[str, str]]


@cache
def _table() -> _Table:
    import pkgutil

    content = pkgutil.get_data("kubesandbox.protobuf", "messages.json")
    if content is None:
        raise FileNotFoundError("messages.json")
    read = orjson.loads(content)
    return _Table(read["kinds"], read["messages"])


def _field(text: str) -> Field:
    name, kind, *rest = text.split(" ")
    flags = rest[0] if rest else ""
    return Field(name, _kind(kind), "p" in flags, "o" in flags, "z" in flags, "i" in flags)


def _kind(text: str) -> Kind:
    match text[0]:
        case "*":
            return Kind("list", _kind(text[1:]))
        case "%":
            return Kind("map", _kind(text[1:]))
        case "@":
            return Kind("bare", message=text[1:])
    return Kind(text) if text in _SCALARS else Kind("message", message=text)
