"""Table-driven decoding of JSON documents into typed values, with every problem collected and located.

A shape is a function from (value, cursor) to a typed value; `Record` builds shapes out of tables of `Field`. A shape
never raises for a bad document: it reports to the cursor and continues, so that one pass finds every problem. This
module must not know any policy kind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, Final, TypeAlias

from pyverno.errors import PolicyError
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.yaml.fieldpath import Path, Source, locate, path_text
from pyverno.kube.yaml.scalars import TYPE_REMEDIES
from pyverno.spelling import did_you_mean
from pyverno.value import dataclass, field, is_dataclass
from pyverno.value import fields as fields_of

__all__ = [
    "Choice",
    "Cursor",
    "Field",
    "ListOf",
    "MapOf",
    "Problems",
    "Record",
    "SetOf",
    "Shape",
    "boolean",
    "choice",
    "describe_type",
    "free",
    "integer",
    "list_of",
    "map_of",
    "set_of",
    "text",
]


@dataclass(slots=True)
class Problems:
    """Collects the errors and warnings of one document."""

    source: Source
    errors: list[PolicyError] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Cursor:
    """The position of decoding inside a document, and the collector of its problems."""

    problems: Problems
    path: Path = ()

    def child(self, step: str | int) -> Cursor:
        """Return the cursor of a member or an item."""
        return Cursor(self.problems, (*self.path, step))

    def error(self, code: str, message: str, *, key: bool = False) -> None:
        """Record an error at this place; `key` points at the name of the field instead of its value."""
        where = locate(self.problems.source, self.path, key=key)
        self.problems.errors.append(PolicyError(message, location=where, path=path_text(self.path), code=code))

    def warn(self, message: str) -> None:
        """Record a warning about this place."""
        where = locate(self.problems.source, self.path, key=True)
        parts = (str(where), path_text(self.path), message)
        self.problems.warnings.append(": ".join(part for part in parts if part))

    def wrong_type(self, expected: str, value: JSON) -> None:
        """Record that a value has another JSON type than expected."""
        found = describe_type(value)
        remedy = TYPE_REMEDIES.get(f"{expected}, found {found}", "")
        self.error("wrong-type", f"expected {expected}, found {found}{remedy}")


Shape: TypeAlias = Callable[[JSON, Cursor], Any]
"""Turns one JSON value into a typed value and reports its problems to the cursor."""


_TYPES = {bool: "a boolean", int: "a number", float: "a number", str: "a string", list: "a list"}


def describe_type(value: JSON) -> str:
    """Return the type of a value as error texts name it.

    >>> describe_type(None), describe_type([]), describe_type({})
    ('null', 'a list', 'an object')
    """
    return "null" if value is None else _TYPES.get(type(value), "an object")


def text(value: JSON, cursor: Cursor) -> str:
    """Accept a string."""
    if isinstance(value, str):
        return value
    cursor.wrong_type("a string", value)
    return ""


def boolean(value: JSON, cursor: Cursor) -> bool:
    """Accept true or false."""
    if isinstance(value, bool):
        return value
    cursor.wrong_type("a boolean", value)
    return False


def integer(value: JSON, cursor: Cursor) -> int:
    """Accept a whole number."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    cursor.wrong_type("an integer", value)
    return 0


def free(value: JSON, cursor: Cursor) -> JSON:
    """Accept any JSON value unchanged."""
    return value


# These shapes return a value of exactly this type unchanged, so that they need not be called.
_PLAIN: Final[Mapping[Shape, type]] = {text: str, boolean: bool, integer: int}


class ListOf:
    """The shape of a list whose items have one shape; the value is a tuple."""

    __slots__ = ("_plain", "item")

    def __init__(self, item: Shape) -> None:
        self.item = item
        self._plain = _PLAIN.get(item)

    def __call__(self, value: JSON, cursor: Cursor) -> tuple[Any, ...]:
        """Decode one list."""
        if not isinstance(value, list):
            cursor.wrong_type("a list", value)
            return ()
        plain = self._plain
        if plain is not None and all([each.__class__ is plain for each in value]):  # noqa: C419  # quicker
            return tuple(value)
        item = self.item
        return tuple(item(each, cursor.child(index)) for index, each in enumerate(value))


class SetOf(ListOf):
    """The shape of a list whose items have one shape and differ from each other; the value is a tuple."""

    __slots__ = ()

    def __call__(self, value: JSON, cursor: Cursor) -> tuple[Any, ...]:
        """Decode one list."""
        items = super().__call__(value, cursor)
        for index, item in enumerate(items):
            if item in items[:index]:
                cursor.child(index).error("duplicate", f"`{value[index]}` is in the list already")
        return items


class MapOf:
    """The shape of an object with free keys whose values have one shape; the value is a new dict."""

    __slots__ = ("_plain", "item")

    def __init__(self, item: Shape) -> None:
        self.item = item
        self._plain = _PLAIN.get(item)

    def __call__(self, value: JSON, cursor: Cursor) -> dict[str, Any]:
        """Decode one object."""
        if not isinstance(value, dict):
            cursor.wrong_type("an object", value)
            return {}
        plain = self._plain
        if plain is not None and all([each.__class__ is plain for each in value.values()]):  # noqa: C419  # quicker
            return dict(value)
        item = self.item
        return {key: item(each, cursor.child(key)) for key, each in value.items()}


class Choice:
    """The shape of a string out of an enumeration: its `members`, and all `spellings` with what they mean."""

    __slots__ = ("members", "spellings")

    def __init__(self, kind: type[StrEnum], aliases: Mapping[str, str]) -> None:
        self.spellings: dict[str, StrEnum] = {str(member.value): member for member in kind}
        self.spellings.update({alias: kind(target) for alias, target in aliases.items()})
        self.members = tuple(str(member.value) for member in kind)

    def __call__(self, value: JSON, cursor: Cursor) -> StrEnum | None:
        """Decode one string."""
        written = text(value, cursor)
        if not isinstance(value, str):
            return None
        found = self.spellings.get(written)
        if found is None:
            listed = ", ".join(f"`{member}`" for member in self.members)
            hint = did_you_mean(written, self.members)
            cursor.error("unknown-value", f"unknown value `{written}`, expected one of {listed}{hint}")
        return found


def list_of(item: Shape) -> ListOf:
    """Return the shape of a list whose items have one shape; the value is a tuple."""
    return ListOf(item)


def set_of(item: Shape) -> SetOf:
    """Return the shape of a list whose items have one shape and differ from each other; the value is a tuple."""
    return SetOf(item)


def map_of(item: Shape) -> MapOf:
    """Return the shape of an object with free keys whose values have one shape; the value is a new dict."""
    return MapOf(item)


def choice(kind: type[StrEnum], *, aliases: Mapping[str, str] | None = None) -> Choice:
    """Return the shape of a string out of an enumeration; `aliases` maps other accepted spellings to members."""
    return Choice(kind, aliases or {})


@dataclass(frozen=True, slots=True)
class Field:
    """One row of a record's table.

    `name` is the attribute; `json` the name in documents, by default `name` in camel case. A null counts as absent,
    and an absent field takes the default of the dataclass. `deprecated` is the advice of a warning.
    """

    name: str
    shape: Shape
    json: str = ""
    required: bool = False
    deprecated: str = ""

    def __post_init__(self) -> None:
        if not self.json:
            head, *tail = self.name.split("_")
            object.__setattr__(self, "json", head + "".join(part.capitalize() for part in tail))


class Record:
    """The shape of an object with known fields.

    `build` gets the decoded fields by name; when it is a dataclass with attributes `path` or `raw` it gets these too
    (`extras` names them, and `document`, for other builders).
    `check` sees the values before they are built, and may report problems that concern several fields.
    """

    __slots__ = ("_build", "_check", "_extras", "fields")

    def __init__(
        self,
        build: Callable[..., Any],
        *fields: Field,
        check: Callable[[dict[str, Any], Cursor], None] | None = None,
        extras: tuple[str, ...] | None = None,
    ) -> None:
        self._build = build
        self._check = check
        self.fields: dict[str, Field] = {each.json: each for each in fields}
        if extras is None:
            known = {each.name for each in fields_of(build)} if is_dataclass(build) else set()
            extras = tuple(sorted(known & {"path", "raw"}))
        self._extras = extras

    @property
    def description(self) -> str:
        """The first sentence about what is built, the empty text where that is no class of ours."""
        build = self._build
        if not isinstance(build, type) or not is_dataclass(build):
            return ""
        return (build.__doc__ or "").partition("\n")[0].partition(". ")[0].rstrip(".") + "."

    def without(self, *names: str) -> Record:
        """Return this record without some JSON fields (an older or newer version of a kind)."""
        kept = [each for key, each in self.fields.items() if key not in names]
        return Record(self._build, *kept, check=self._check, extras=self._extras)

    def replacing(self, *fields: Field) -> Record:
        """Return this record with other rows for some JSON fields."""
        rows = {**self.fields, **{each.json: each for each in fields}}
        return Record(self._build, *rows.values(), check=self._check, extras=self._extras)

    def __call__(self, value: JSON, cursor: Cursor) -> Any:
        """Decode one object; returns None when something in it was reported."""
        if not isinstance(value, dict):
            cursor.wrong_type("an object", value)
            return None
        before = len(cursor.problems.errors)
        self._report_unknown(value, cursor)
        values = self._decode_fields(value, cursor)
        if self._check is not None and len(cursor.problems.errors) == before:
            self._check(values, cursor)
        if len(cursor.problems.errors) > before:
            return None
        if "path" in self._extras:
            values["path"] = cursor.path
        if "raw" in self._extras:
            values["raw"] = value
        if "document" in self._extras:
            values["document"] = cursor.problems.source
        return self._build(**values)

    def _report_unknown(self, value: JSONObject, cursor: Cursor) -> None:
        if value.keys() <= self.fields.keys():
            return
        for key in value:
            if key not in self.fields:
                hint = did_you_mean(key, self.fields)
                cursor.child(key).error("unknown-field", f"unknown field `{key}`{hint}", key=True)

    def _decode_fields(self, value: JSONObject, cursor: Cursor) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for key, row in self.fields.items():
            written = value.get(key)
            if written is None:
                if row.required:
                    cursor.error("missing-field", f"required field `{key}` is missing", key=True)
                continue
            if written.__class__ is _PLAIN.get(row.shape) and not row.deprecated:
                values[row.name] = written
                continue
            place = cursor.child(key)
            if row.deprecated:
                place.warn(f"`{key}` is deprecated: {row.deprecated}")
            values[row.name] = row.shape(written, place)
        return values
