"""CEL as text: values with a type and a precedence, references to fields that can be missing, quoting, folding.

Features of the converter put expressions together with the functions here, never by pasting text: operands get
parentheses where they need them, and texts are quoted once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import IntEnum, StrEnum
from typing import Final

from pyverno.compiler.migration.lexical import last_call, sole_equality
from pyverno.compiler.migration.schema import ANY, Presence, Schema, Shape
from pyverno.kube.json import JSON
from pyverno.value import dataclass, replace

__all__ = [
    "FALSE",
    "TRUE",
    "Cel",
    "CelType",
    "Level",
    "Reference",
    "all_of",
    "any_of",
    "call",
    "compare",
    "element",
    "literal",
    "quote",
    "ternary",
]

_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_RESERVED: Final = frozenset({"true", "false", "null", "in"})
"""Words that are no names of fields after a dot; the others that CEL reserves are (`object.metadata.namespace`)."""

_TESTS: Final = frozenset(
    {"has", "hasValue", "all", "exists", "exists_one", "startsWith", "endsWith", "contains", "matches", "isQuantity"}
    | {"isSemver", "isURL", "isSorted", "isIP", "isCIDR", "containsIP", "isLessThan", "isGreaterThan"}
)
"""Functions that return a truth value."""

_ESCAPES: Final = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


class Level(IntEnum):
    """The binding strength of an expression, from the ternary to names and calls."""

    TERNARY = 0
    OR = 1
    AND = 2
    RELATION = 3
    SUM = 4
    PRODUCT = 5
    UNARY = 6
    PRIMARY = 7


class CelType(StrEnum):
    """The type of a value at run time, as far as the converter needs it."""

    BOOL = "bool"
    STRING = "string"
    INT = "int"
    DOUBLE = "double"
    NUMBER = "number"  # an int in a cluster, a double where a file was read as JSON
    LIST = "list"
    MAP = "map"
    NULL = "null"
    QUANTITY = "quantity"
    DURATION = "duration"
    TIMESTAMP = "timestamp"
    OPTIONAL = "optional"
    DYN = "dyn"


_TYPES: Final = {
    Shape.STRING: CelType.STRING,
    Shape.INT: CelType.INT,
    Shape.NUMBER: CelType.NUMBER,
    Shape.BOOL: CelType.BOOL,
    Shape.TIME: CelType.STRING,
    Shape.LIST: CelType.LIST,
    Shape.OBJECT: CelType.MAP,
    Shape.MAP: CelType.MAP,
}


@dataclass(frozen=True, slots=True)
class Cel:
    """An expression: its text, the type of its value, how strongly it binds, and the schema of the value if known."""

    text: str
    type: CelType = CelType.DYN
    level: Level = Level.PRIMARY
    schema: Schema = ANY

    def __str__(self) -> str:
        return self.text

    def within(self, level: Level) -> str:
        """Return the text as an operand of an operator of this level, in parentheses where it binds less.

        >>> Cel("a || b", CelType.BOOL, Level.OR).within(Level.AND)
        '(a || b)'
        """
        return self.text if self.level >= level else f"({self.text})"

    def not_(self) -> Cel:
        """Return the negation of a truth value.

        >>> str(Cel("a.b == 'c'", CelType.BOOL, Level.RELATION).not_()), str(TRUE.not_())
        ("a.b != 'c'", 'false')
        """
        if self.text in ("true", "false"):
            return FALSE if self.text == "true" else TRUE
        if self.level is Level.UNARY and self.text.startswith("!"):
            inner = self.text[1:]
            return Cel(inner, CelType.BOOL, Level.UNARY if inner.startswith("!") else Level.PRIMARY)
        if self.level is Level.RELATION and (found := sole_equality(self.text)) is not None:
            left, operator, right = found
            return replace(self, text=f"{left} {'!=' if operator == '==' else '=='} {right}")
        return Cel(f"!{self.within(Level.UNARY)}", CelType.BOOL, Level.UNARY)

    def as_condition(self) -> Cel:
        """Return a truth value whose type CEL knows: a field of the object is anything until it is compared.

        >>> str(Cel("object.a.?b.orValue(false)").as_condition()), str(Cel("has(a.b)").as_condition())
        ('object.a.?b.orValue(false) == true', 'has(a.b)')
        """
        if self.level is Level.PRIMARY and self.text not in ("true", "false") and last_call(self.text) not in _TESTS:
            return compare(self, "==", TRUE)
        return self

    def method(self, name: str, *arguments: Cel, returns: CelType = CelType.DYN) -> Cel:
        """Return the call of a function on this value.

        >>> str(Cel("c.image").method("startsWith", literal("nginx"), returns=CelType.BOOL))
        "c.image.startsWith('nginx')"
        """
        inner = ", ".join(each.text for each in arguments)
        return Cel(f"{self.within(Level.PRIMARY)}.{name}({inner})", returns)

    def macro(self, name: str, variable: str, body: Cel, returns: CelType = CelType.BOOL) -> Cel:
        """Return a macro over the elements: `all`, `exists`, `filter`, `map`.

        >>> str(Cel("l").macro("all", "e", compare(Cel("e"), ">", literal(1))))
        'l.all(e, e > 1)'
        """
        return Cel(f"{self.within(Level.PRIMARY)}.{name}({variable}, {body.text})", returns)


TRUE: Final = Cel("true", CelType.BOOL)
FALSE: Final = Cel("false", CelType.BOOL)


# ------------------------------------------------------------------------------------------------------------- building


def quote(text: str) -> str:
    r"""Return a text as a CEL string literal.

    >>> print(quote("it's a\\b"), quote('a "b"'))
    "it's a\\b" 'a "b"'
    """
    if "'" in text and '"' not in text:
        return '"' + "".join(c if c == "'" else _escape(c) for c in text) + '"'
    return "'" + "".join(map(_escape, text)) + "'"


def literal(value: JSON) -> Cel:
    """Return a constant: a scalar, a list or a map.

    >>> str(literal(["a", 1, True, None, {"b": 0.5}]))
    "['a', 1, true, null, {'b': 0.5}]"
    """
    match value:
        case None:
            return Cel("null", CelType.NULL)
        case bool():
            return TRUE if value else FALSE
        case int():
            return Cel(str(value), CelType.INT, Level.UNARY if value < 0 else Level.PRIMARY)
        case float():
            return Cel(repr(value), CelType.DOUBLE, Level.UNARY if value < 0 else Level.PRIMARY)
        case str():
            return Cel(quote(value), CelType.STRING)
        case list():
            return Cel(f"[{', '.join(literal(each).text for each in value)}]", CelType.LIST)
        case dict():
            inner = ", ".join(f"{quote(str(key))}: {literal(each).text}" for key, each in value.items())
            return Cel(f"{{{inner}}}", CelType.MAP)
    raise TypeError(type(value).__name__)


def all_of(parts: Iterable[Cel]) -> Cel:
    """Join truth values by `&&`, each once; true for none.

    >>> a, b = Cel("a || b", CelType.BOOL, Level.OR), Cel("c", CelType.BOOL)
    >>> str(all_of([a, b, TRUE])), str(all_of([]))
    ('(a || b) && c', 'true')
    """
    return _join(parts, " && ", Level.AND, neutral=TRUE, absorbing=FALSE)


def any_of(parts: Iterable[Cel]) -> Cel:
    """Join truth values by `||`, each once; false for none.

    >>> str(any_of([Cel("a && b", CelType.BOOL, Level.AND), Cel("c", CelType.BOOL), FALSE]))
    'a && b || c'
    """
    return _join(parts, " || ", Level.OR, neutral=FALSE, absorbing=TRUE)


def compare(left: Cel, operator: str, right: Cel) -> Cel:
    """Return a relation: `==`, `!=`, `<`, `<=`, `>`, `>=` or `in`."""
    text = f"{left.within(Level.SUM)} {operator} {right.within(Level.SUM)}"
    return Cel(text, CelType.BOOL, Level.RELATION)


def ternary(condition: Cel, yes: Cel, no: Cel) -> Cel:
    """Return a choice; a nested one only is in the last place without parentheses.

    >>> str(ternary(Cel("a", CelType.BOOL), literal(1), literal(2)))
    'a ? 1 : 2'
    """
    if condition.text in ("true", "false"):
        return yes if condition.text == "true" else no
    kind = yes.type if yes.type is no.type else CelType.DYN
    return Cel(f"{condition.within(Level.OR)} ? {yes.within(Level.OR)} : {no.text}", kind, Level.TERNARY)


def call(name: str, *arguments: Cel, returns: CelType = CelType.DYN) -> Cel:
    """Return the call of a function.

    >>> str(call("size", Cel("l"), returns=CelType.INT))
    'size(l)'
    """
    return Cel(f"{name}({', '.join(each.text for each in arguments)})", returns)


# ----------------------------------------------------------------------------------------------------------- references


@dataclass(frozen=True, slots=True)
class _Step:
    name: str
    schema: Schema

    @property
    def is_identifier(self) -> bool:
        return bool(_IDENTIFIER.match(self.name)) and self.name not in _RESERVED

    def select(self, *, optional: bool) -> str:
        mark = "?" if optional else ""
        if self.is_identifier:
            return f".{mark}{self.name}"
        return f"[{mark}{quote(self.name)}]"


@dataclass(frozen=True, slots=True)
class Reference:
    """A value below a root that certainly exists, such as `object`, by names of fields and keys.

    >>> from pyverno.compiler.migration.schema import SchemaBook
    >>> pod = Reference("object", SchemaBook().of("", "v1", "Pod"))
    >>> team = pod.field("metadata").field("labels").field("corp/team")
    >>> str(team.or_value(literal(""))), str(team.is_present())
    ("object.metadata.?labels[?'corp/team'].orValue('')", "object.metadata.?labels[?'corp/team'].hasValue()")
    >>> str(pod.field("spec").field("hostNetwork").is_present())
    'has(object.spec.hostNetwork)'
    """

    root: str
    root_schema: Schema = ANY
    steps: tuple[_Step, ...] = ()

    @property
    def schema(self) -> Schema:
        """The schema of the value."""
        return self.steps[-1].schema if self.steps else self.root_schema

    @property
    def type(self) -> CelType:
        """The type of the value if it is there and not null."""
        return _TYPES.get(self.schema.shape, CelType.DYN)

    @property
    def can_be_missing(self) -> bool:
        """Whether some admitted objects have no such value."""
        return any(step.schema.can_be_missing for step in self.steps)

    @property
    def can_be_null(self) -> bool:
        """Whether the value itself can be null in an admitted object."""
        return bool(self.steps) and self.schema.is_nullable

    def field(self, name: str) -> Reference:
        """Return the reference to a field, or to the entry of a map."""
        return replace(self, steps=(*self.steps, _Step(name, self.schema.field(name))))

    def assumed(self, *, keeps_null: bool = False) -> Reference:
        """Return the reference as one whose value is there, for use behind a guard.

        >>> str(Reference("object").field("spec").assumed().value()), Reference("a").field("b").assumed().can_be_missing
        ('object.spec', False)
        """
        steps = tuple(
            _Step(
                step.name,
                replace(
                    step.schema,
                    presence=Presence.REQUIRED,
                    is_nullable=step.schema.is_nullable and keeps_null and number == len(self.steps),
                ),
            )
            for number, step in enumerate(self.steps, 1)
        )
        return replace(self, steps=steps)

    def value(self) -> Cel:
        """Return the value where it is known to be there: `object.spec.hostNetwork`."""
        text = self.root + "".join(step.select(optional=False) for step in self.steps)
        return Cel(text, self.type, Level.PRIMARY, self.schema)

    def optional(self) -> Cel:
        """Return the value as an optional: `object.spec.?hostNetwork`."""
        text, seen = self.root, False
        for number, step in enumerate(self.steps, 1):
            seen = seen or step.schema.can_be_missing or number == len(self.steps)
            text += step.select(optional=seen)
        return Cel(text, CelType.OPTIONAL, Level.PRIMARY, self.schema)

    def or_value(self, default: Cel) -> Cel:
        """Return the value, or the default where it is missing (a null stays null)."""
        if not self.can_be_missing:
            return self.value()
        kind = self.type if self.type is default.type else CelType.DYN
        return Cel(f"{self.optional().text}.orValue({default.text})", kind, Level.PRIMARY, self.schema)

    def is_present(self) -> Cel:
        """Return whether the value is there, null included."""
        if not self.can_be_missing:
            return TRUE
        *above, last = self.steps
        if not any(step.schema.can_be_missing for step in above):
            if last.is_identifier:
                return Cel(f"has({self.value().text})", CelType.BOOL)
            return compare(literal(last.name), "in", replace(self, steps=tuple(above)).value())
        return Cel(f"{self.optional().text}.hasValue()", CelType.BOOL)

    def is_set(self) -> Cel:
        """Return whether the value is there and not null."""
        present = self.is_present()
        if not self.can_be_null:
            return present
        return all_of([present, compare(self.value(), "!=", literal(None))])

    def or_empty(self) -> Cel:
        """Return a list, map or text, the empty one where it is missing or null."""
        match self.type:
            case CelType.LIST:
                empty: JSON = []
            case CelType.MAP:
                empty = {}
            case _:
                empty = ""
        if not self.can_be_null:
            return self.or_value(literal(empty))
        return replace(ternary(self.is_set(), self.value(), literal(empty)), type=self.type, schema=self.schema)


def element(variable: str, schema: Schema) -> Reference:
    """Return the reference to the variable of a macro, an element of a list."""
    return Reference(variable, replace(schema, presence=Presence.REQUIRED))


# -------------------------------------------------------------------------------------------------------------- helpers


def _escape(character: str) -> str:
    known = _ESCAPES.get(character)
    if known is not None:
        return known
    if character == '"' or character.isprintable():
        return character
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _join(parts: Iterable[Cel], word: str, level: Level, *, neutral: Cel, absorbing: Cel) -> Cel:
    kept: dict[str, Cel] = {}
    for part in parts:
        if part.text == absorbing.text:
            return absorbing
        if part.text != neutral.text:
            kept.setdefault(part.text, part)
    if not kept:
        return neutral
    if len(kept) == 1:
        return next(iter(kept.values()))
    return Cel(word.join(each.within(level) for each in kept.values()), CelType.BOOL, level)
