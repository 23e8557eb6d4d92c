"""Placeholders: the places of an expression that values of nested variables fill when it runs.

Values are inserted as data, after all parsing is done.
"""

from __future__ import annotations

from collections.abc import Callable

from pyverno.errors import EvaluationError
from pyverno.kube.json import JSON
from pyverno.lang.jmespath.jsontext import read_json
from pyverno.lang.jmespath.parser import BARE_PLACEHOLDER
from pyverno.lang.jmespath.tokens import PLACEHOLDER
from pyverno.lang.jmespath.values import PlaceholderValues, text_of
from pyverno.lang.runtime import Runtime

__all__ = ["compile_key", "filler", "number_filler", "text_filler"]

_Fill = Callable[[Runtime, PlaceholderValues], JSON]


def _placeholder(placeholders: PlaceholderValues, index: int) -> JSON:
    if index >= len(placeholders):
        raise EvaluationError(f"no value was given for the nested variable {index}")
    return placeholders[index]


def _bare(value: JSON, runtime: Runtime) -> JSON:
    """Return a placeholder's value where a JSON literal has a whole value: the text of a label may well be a number."""
    if not isinstance(value, str):
        return value
    return read_json(value, runtime.budget, f"a nested variable ({len(value)} characters) is not JSON")


def compile_key(text: str) -> str | Callable[[Runtime, PlaceholderValues], str]:
    """Return a plain key unchanged, or the function that fills its placeholders."""
    return text_filler(text) if PLACEHOLDER.search(text) else text


def text_filler(text: str) -> Callable[[Runtime, PlaceholderValues], str]:
    """Compile a text with placeholders: values are inserted as data, after all parsing is done."""
    pieces = PLACEHOLDER.split(text)
    literals, indices = pieces[::2], [int(piece) for piece in pieces[1::2]]

    def fill(runtime: Runtime, placeholders: PlaceholderValues) -> str:
        result = [literals[0]]
        for index, literal in zip(indices, literals[1:], strict=True):
            result.append(text_of(_placeholder(placeholders, index), runtime.budget))
            result.append(literal)
        runtime.budget.produce(sum(map(len, result)))
        return "".join(result)

    return fill


def number_filler(text: str) -> Callable[[Runtime, PlaceholderValues], int]:
    """Compile an index with placeholders; what fills them must make it a whole number."""
    fill = text_filler(text)

    def number(runtime: Runtime, placeholders: PlaceholderValues) -> int:
        shown = fill(runtime, placeholders)
        digits = shown.removeprefix("-")
        if not (digits.isascii() and digits.isdigit() and len(digits) < 19):
            raise EvaluationError(
                f"an index must be a whole number but got {len(shown)} characters",
                detailed=f"an index must be a whole number but got: {shown[:64]}",
            )
        return int(shown)

    return number


def filler(value: JSON) -> _Fill | None:
    """Compile a literal with placeholders in its texts and keys; None when it has none."""
    if isinstance(value, str):
        bare = BARE_PLACEHOLDER.fullmatch(value)
        if bare is not None:
            index = int(bare.group(1))
            return lambda runtime, placeholders: _bare(_placeholder(placeholders, index), runtime)
        return text_filler(value) if PLACEHOLDER.search(value) else None
    if isinstance(value, list):
        items = [(item, filler(item)) for item in value]
        if all(fill is None for _, fill in items):
            return None
        return lambda runtime, placeholders: [fill(runtime, placeholders) if fill else item for item, fill in items]
    if isinstance(value, dict):
        return _object_filler(value)
    return None


def _object_filler(value: dict[str, JSON]) -> _Fill | None:
    members = [(compile_key(key), item, filler(item)) for key, item in value.items()]
    if all(isinstance(key, str) and fill is None for key, _, fill in members):
        return None
    return lambda runtime, placeholders: {
        (key if isinstance(key, str) else key(runtime, placeholders)): fill(runtime, placeholders) if fill else item
        for key, item, fill in members
    }
