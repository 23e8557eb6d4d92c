"""Arguments of functions: their types, and the conditions under which they fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from pyverno.compiler.migration.expressions.value import Value
from pyverno.compiler.migration.outcome import UnconvertibleError
from pyverno.compiler.migration.schema import Schema, Shape
from pyverno.compiler.migration.text import Cel, CelType
from pyverno.value import replace

if TYPE_CHECKING:
    from pyverno.compiler.migration.expressions.translator import Translator

__all__ = ["Translation", "constant_text", "list_cel", "made", "text_cel"]

Translation: TypeAlias = Callable[..., Value]
"""The translation of a function: from the translator and the arguments to the value."""

_TEXTUAL = (Shape.STRING, Shape.QUANTITY, Shape.TIME)


def made(cel: Cel, schema: Schema, *arguments: Value) -> Value:
    """Return the result of a function; where an argument is null it fails, as in JMESPath."""
    nulls = tuple(each.present for each in arguments if not each.is_always)
    fails = bool(nulls) or any(each.fails for each in arguments)
    only_nulls = nulls if not any(each.fails and not each.nulls for each in arguments) else ()
    return Value(replace(cel, schema=schema), schema, fails=fails, nulls=only_nulls)


def text_cel(translator: Translator, name: str, value: Value) -> Cel:
    """Return an argument that must be a text; an unknown one is an error at run time on both sides if it is none."""
    if value.is_null:
        raise translator.refuse("always-an-error", f"{name}() of null is an error on every object", "mend the rule")
    if value.shape is Shape.ANY or (value.shape in _TEXTUAL and value.cel.type is not CelType.QUANTITY):
        return value.cel
    raise translator.refuse("always-an-error", f"{name}() of a {value.shape.value} is an error", "mend the rule")


def list_cel(translator: Translator, name: str, value: Value) -> Cel:
    """Return an argument that must be a list; a missing one is an error on both sides."""
    if value.is_null:
        raise translator.refuse("always-an-error", f"{name}() of null is an error on every object", "mend the rule")
    if value.shape not in (Shape.LIST, Shape.ANY):
        raise translator.refuse("always-an-error", f"{name}() of a {value.shape.value} is an error", "mend the rule")
    if value.sequence is not None:
        return value.sequence.written(total=value.is_always)
    return value.cel


def constant_text(translator: Translator, name: str, value: Value, what: str) -> str:
    """Return an argument that must be written in the rule."""
    if not value.is_constant or not isinstance(value.constant, str):
        raise translator.refuse("computed-argument", f"{name}() with {what} that is computed")
    return value.constant


def unsupported(translator: Translator, name: str, reason: str) -> UnconvertibleError:
    """Return the refusal of one form of a function."""
    return translator.refuse(f"function-{name.replace('_', '-')}", f"{name}() {reason}")
