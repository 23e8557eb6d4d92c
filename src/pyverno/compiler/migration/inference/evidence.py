"""Evidence of rules about one value, and the schema that follows from it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from pyverno.kube.json import JSON, JSONObject

__all__ = ["Evidence", "type_of"]

_TYPES: Final[dict[type, str]] = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    dict: "object",
    list: "array",
}
_ANYTHING: Final[JSONObject] = {"x-kubernetes-preserve-unknown-fields": True}


def type_of(value: JSON) -> str:
    """Return the JSON type of a value, an empty text for null.

    >>> type_of("a"), type_of(True), type_of(None)
    ('string', 'boolean', '')
    """
    return _TYPES.get(type(value), "")


class Evidence:
    """Evidence of rules about one value: its types, its fields, its entries, its elements.

    >>> found = Evidence()
    >>> found.field("replicas").show("integer")
    >>> found.schema()
    {'type': 'object', 'properties': {'replicas': {'type': 'integer'}}}
    """

    __slots__ = (
        *("_element", "_entry", "_examples", "_members", "_suspected", "_types"),
        *("constants", "fields", "lists", "name"),
    )

    def __init__(self, name: str = "") -> None:
        """Take the name of the field that holds the value, which shows a list where nothing else does."""
        self.name = name
        self.fields: dict[str, Evidence] = {}
        self.constants: dict[str, JSON] = {}
        self.lists: dict[str, tuple[JSON, ...]] = {}
        self._entry: Evidence | None = None
        self._element: Evidence | None = None
        self._types: set[str] = set()
        self._members: set[str] = set()
        self._suspected: list[str] = []
        self._examples: set[str] = set()

    def field(self, name: str) -> Evidence:
        """Return the evidence on a field, which makes the value an object."""
        return self.fields.setdefault(name, Evidence(name))

    def entry(self) -> Evidence:
        """Return the evidence on the values of a map with free keys."""
        self._entry = self._entry or Evidence()
        return self._entry

    def element(self) -> Evidence:
        """Return the evidence on the elements of a list."""
        self._element = self._element or Evidence()
        return self._element

    @property
    def is_list(self) -> bool:
        """Whether something shows that the value is a list."""
        return self._element is not None or "array" in self._types

    def show(self, name: str) -> None:
        """Note a type that the value certainly has where the rule decides anything."""
        if name:
            self._types.add(name)

    def show_member(self, name: str) -> None:
        """Note the type of the value, or of its elements if it is a list."""
        if name:
            self._members.add(name)

    def suspect(self, name: str) -> None:
        """Note a type that the value has if nothing else shows one."""
        self._suspected.append(name)

    def remember(self, value: JSON) -> None:
        """Keep a constant, or a pattern, that rules hold the value, or an element of it, against; or a list of them."""
        found = [
            each
            for each in (value if isinstance(value, list) else (value,))
            if each is not None and not isinstance(each, (dict, list))
        ]
        for each in found:
            self.constants.setdefault(repr(each), each)
        if isinstance(value, list) and len(found) > 1:
            self.lists.setdefault(repr(found), tuple(found))

    def below(self) -> Iterator[tuple[str | int, Evidence]]:
        """Yield the fields with their names, then the element with 0."""
        yield from self.fields.items()
        if self._element is not None:
            yield 0, self._element

    def compare_with(self, value: JSON) -> None:
        """Note that the value is compared with, or replaced by, a constant."""
        self.remember(value)
        self.show(type_of(value))
        for item in value if isinstance(value, list) else ():
            self.element().show(type_of(item))

    def see(self, value: JSON) -> None:
        """Note the types of an example in the places that are known already."""
        if value is None:
            return
        self._examples.add(type_of(value))
        if isinstance(value, dict):
            for name, below in self.fields.items():
                below.see(value.get(name))
            if self._entry is not None:
                for each in value.values():
                    self._entry.see(each)
        if isinstance(value, list):
            for each in value:
                self.element().see(each)

    def schema(self) -> JSONObject:
        """Return the structural schema of the value."""
        types = self._certain()
        if not types:
            types = {self._likely()}
        if types == {"object"}:
            return self._object()
        if types == {"array"}:
            element = self.element()
            for name in self._members:
                element.show(name)
            return {"type": "array", "items": element.schema()}
        if types <= {"integer", "number"}:
            return {"type": "number" if "number" in types else "integer"}
        if types == {"integer", "string"}:
            return {"x-kubernetes-int-or-string": True}
        return {"type": types.pop()} if len(types) == 1 else dict(_ANYTHING)

    def _certain(self) -> set[str]:
        if self._examples:
            return self._examples
        types = set(self._types)
        if self.fields or self._entry is not None:
            types.add("object")
        if self._element is not None:
            types.add("array")
        return types

    def _likely(self) -> str:
        if self._members:
            return "array" if _is_plural(self.name) else next(iter(sorted(self._members)))
        return next(iter(self._suspected), "string")

    def _object(self) -> JSONObject:
        if self._entry is not None:
            return {"type": "object", "additionalProperties": self._entry.schema()}
        if not self.fields:
            return {"type": "object", "additionalProperties": dict(_ANYTHING)}
        return {"type": "object", "properties": {name: each.schema() for name, each in sorted(self.fields.items())}}


def _is_plural(name: str, endings: Iterable[str] = ("ss", "us", "is")) -> bool:
    return name.endswith("s") and not any(name.endswith(each) for each in endings)
