"""Texts with variables inside, `a-{{ b }}-c`, as sums of texts in CEL."""

from __future__ import annotations

from collections.abc import Sequence

from pyverno.compiler.migration.expressions.value import TEXT, Value, constant
from pyverno.compiler.migration.outcome import UnconvertibleError
from pyverno.compiler.migration.schema import Shape
from pyverno.compiler.migration.text import Cel, CelType, Level, call, literal
from pyverno.value import replace

__all__ = ["as_text", "concatenated"]


def concatenated(pieces: Sequence[str | Value], path: str) -> Value:
    """Return the text that literal pieces and values make together.

    >>> concatenated(["a-", Value(Cel("object.x", CelType.STRING), TEXT)], "").cel.text
    "'a-' + object.x"
    """
    parts: list[Cel] = []
    fails = False
    for piece in pieces:
        if isinstance(piece, str):
            parts.append(literal(piece))
            continue
        if piece.is_constant and isinstance(piece.constant, str):
            parts.append(piece.cel)
            continue
        fails = fails or piece.fails
        parts.append(as_text(piece, path))
    if not parts:
        return constant("")
    text = " + ".join(each.within(Level.SUM) for each in parts)
    level = Level.SUM if len(parts) > 1 else parts[0].level
    return Value(Cel(text, CelType.STRING, level), TEXT, fails=fails)


def as_text(value: Value, path: str) -> Cel:
    """Return a value as it is inserted into a text: texts as they are, other scalars as JSON, null as `null`."""
    if value.is_null:
        return literal("null")
    if value.is_constant and isinstance(value.constant, str):
        return value.cel
    if value.is_text and value.cel.type is not CelType.QUANTITY:
        return value.or_value(literal("null"))
    if value.shape in (Shape.INT, Shape.BOOL, Shape.INT_OR_STRING):
        if value.is_always:
            return call("string", value.cel, returns=CelType.STRING)
        known = replace(value, cel=call("string", value.cel, returns=CelType.STRING), reference=None, optional=None)
        return known.or_value(literal("null"))
    if value.shape is Shape.ANY:
        # a text in a cluster is a text here; anything but a scalar is an error on this side
        return call("string", value.or_value(literal("null")), returns=CelType.STRING)
    raise UnconvertibleError(
        "text-of-value", path, f"a {value.shape.value} inside of a text", "write the expression by hand"
    )
