"""Messages: struct types whose fields always have a value, by default the zero of their type.

So are protobuf messages and Go structs in CEL: `has(x.f)` states whether a field differs from its zero, `x.f` never
fails. A document becomes a message by `read`, which checks names and types.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from typing import Any, Final

from pyverno.errors import DocumentError, EvaluationError
from pyverno.kube.json import JSON
from pyverno.lang.cel.checking.structs import DeclaredTypes
from pyverno.lang.cel.json_values import with_doubles
from pyverno.lang.cel.scalars import Timestamp, Uint
from pyverno.lang.cel.times import parse_timestamp
from pyverno.lang.cel.types import Type
from pyverno.lang.cel.values import StructValue, Value

__all__ = ["MessageTypes"]

_INT_BITS: Final = 64


class MessageTypes(DeclaredTypes):
    """Message types as tables: fields by message name, and the words of enum fields, whose values are their positions.

    `is_strict` follows protobuf's JSON: unknown fields are refused, names may be written in lower camel case, numbers
    as text. Otherwise it is Go's: unknown fields are passed over and the case of names does not count.

    >>> from pyverno.lang.cel.types import INT, STRING, struct
    >>> messages = MessageTypes({"Call": {"to": struct("Peer")}, "Peer": {"name": STRING, "port_value": INT}})
    >>> messages.read("Call", {"to": {"portValue": 80}}).fields["to"].fields["port_value"]
    80
    >>> messages.read("Call", {}).fields["to"].fields["name"]
    ''
    """

    def __init__(
        self,
        messages: Mapping[str, Mapping[str, Type]],
        *,
        enums: Mapping[tuple[str, str], tuple[str, ...]] | None = None,
        is_strict: bool = True,
    ) -> None:
        super().__init__(messages)
        self._messages = messages
        self._enums = enums or {}
        self._is_strict = is_strict
        spelt = _lower_camel if is_strict else str.lower
        self._names = {name: {spelt(field): field for field in fields} for name, fields in messages.items()}

    def construct(self, name: str, fields: dict[str, Value]) -> Value:
        """Return the message that a literal writes."""
        return StructValue(name, _Fields(self, self._messages[name], fields))

    def read(self, name: str, value: JSON) -> StructValue:
        """Return the message that a document holds; raises DocumentError for what does not fit, with its path."""
        return self._message(name, value, "")

    def zero(self, declared: Type) -> Value:
        """Return the default value of a field."""
        if declared.kind == "struct":
            return self.construct(declared.name, {})
        make = _ZEROS.get(declared.kind, dict)
        return make()

    def _message(self, name: str, value: JSON, path: str) -> StructValue:
        if not isinstance(value, dict):
            raise _wrong(path, "an object")
        found: dict[str, Value] = {}
        declared, names = self._messages[name], self._names[name]
        for key, item in value.items():
            field = key if key in declared else names.get(key if self._is_strict else key.lower())
            if field is None:
                if self._is_strict:
                    raise DocumentError(f"unknown field `{_join(path, key)}`")
                continue
            if item is None:
                continue
            words = self._enums.get((name, field))
            where = _join(path, key)
            read = _enum(item, words, where) if words else self._value(declared[field], item, where)
            if self._is_set(declared[field], read):
                found[field] = read
        message: StructValue = self.construct(name, found)
        return message

    def _is_set(self, declared: Type, value: Value) -> bool:
        """Return whether a value is set: no zero is; only protobuf distinguishes an empty message from none."""
        if declared.kind == "struct":
            return self._is_strict or bool(value.fields)
        return bool(value != self.zero(declared))

    def _value(self, declared: Type, value: JSON, path: str) -> Value:
        if declared.kind == "struct":
            return self._message(declared.name, value, path)
        if declared.kind == "list":
            if not isinstance(value, list):
                raise _wrong(path, "a list")
            return [self._value(declared.params[0], item, f"{path}[{index}]") for index, item in enumerate(value)]
        if declared.kind == "map":
            if not isinstance(value, dict):
                raise _wrong(path, "an object")
            return {key: self._value(declared.params[1], item, _join(path, key)) for key, item in value.items()}
        read, what = _SCALARS[declared.kind]
        if type(value) is str and self._is_strict and declared.kind in ("int", "uint"):
            value = _number(value)
        try:
            return read(value)
        except (TypeError, ValueError, binascii.Error, EvaluationError):
            raise _wrong(path, what) from None


class _Fields(dict[str, Value]):
    """The fields that are set; another declared one gives its zero."""

    __slots__ = ("_declared", "_types")

    def __init__(self, types: MessageTypes, declared: Mapping[str, Type], fields: Mapping[str, Value]) -> None:
        super().__init__(fields)
        self._types = types
        self._declared = declared

    def __missing__(self, name: str) -> Value:
        return self._types.zero(self._declared[name])


def _lower_camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _wrong(path: str, what: str) -> DocumentError:
    return DocumentError(f"`{path}` must be {what}" if path else f"the document must be {what}")


def _number(text: str) -> JSON:
    try:
        return int(text)
    except ValueError:
        return text


def _enum(value: JSON, words: tuple[str, ...], path: str) -> int:
    if isinstance(value, str) and value in words:
        return words.index(value)
    if type(value) is int:
        return value
    raise _wrong(path, f"one of {', '.join(words)}")


def _of(kind: type) -> Callable[[Any], Value]:
    def read(value: Any) -> Value:
        if type(value) is not kind:
            raise TypeError
        return value

    return read


def _int(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != int(value):
        raise TypeError
    if not -(2 ** (_INT_BITS - 1)) <= value < 2 ** (_INT_BITS - 1):
        raise ValueError
    return int(value)


def _uint(value: Any) -> Uint:
    number = _int(value)
    if number < 0:
        raise ValueError
    return Uint(number)


def _bytes(value: Any) -> bytes:
    if not isinstance(value, str):
        raise TypeError
    return base64.b64decode(value.encode("ascii"), validate=True)


def _timestamp(value: Any) -> Timestamp:
    if not isinstance(value, str):
        raise TypeError
    return parse_timestamp(value)


_SCALARS: Final[Mapping[str, tuple[Callable[[Any], Value], str]]] = {
    "bool": (_of(bool), "true or false"),
    "bytes": (_bytes, "a text in base64"),
    "dyn": (with_doubles, "anything"),
    "int": (_int, "a whole number"),
    "string": (_of(str), "a text"),
    "timestamp": (_timestamp, "a time such as `2024-01-31T12:00:00Z`"),
    "uint": (_uint, "a whole number that is not negative"),
}
_ZEROS: Final[Mapping[str, Callable[[], Value]]] = {
    "bool": bool,
    "bytes": bytes,
    "int": int,
    "list": list,
    "string": str,
    "timestamp": lambda: Timestamp(0),
    "uint": lambda: Uint(0),
}
