"""Holes: the places of an expression that values of nested variables fill when it runs.

Values are inserted as data, after all parsing is done. This module must never parse what fills a hole as an expression.
"""

from __future__ import annotations

from collections.abc import Callable

from pyverno.errors import EvaluationError
from pyverno.kube.json import JSON
from pyverno.lang.jmespath.jsontext import read_json
from pyverno.lang.jmespath.parser import BARE_HOLE
from pyverno.lang.jmespath.tokens import HOLE
from pyverno.lang.jmespath.values import Holes, text_of
from pyverno.lang.runtime import Runtime

__all__ = ["compile_key", "filler", "number_filler", "text_filler"]

_Fill = Callable[[Runtime, Holes], JSON]


def _hole(holes: Holes, index: int) -> JSON:
    if index >= len(holes):
        raise EvaluationError(f"no value was given for the nested variable {index}")
    return holes[index]


def _bare(value: JSON, runtime: Runtime) -> JSON:
    """Return a hole's value where a JSON literal has a whole value: the text of a label may well be a number."""
    if not isinstance(value, str):
        return value
    return read_json(value, runtime.budget, f"a nested variable ({len(value)} characters) is not JSON")


def compile_key(text: str) -> str | Callable[[Runtime, Holes], str]:
    """Return a key as it is, or what fills the holes in it."""
    return text_filler(text) if HOLE.search(text) else text


def text_filler(text: str) -> Callable[[Runtime, Holes], str]:
    """Compile a text with holes: values are inserted as data, after all parsing is done."""
    pieces = HOLE.split(text)
    literals, indices = pieces[::2], [int(piece) for piece in pieces[1::2]]

    def fill(runtime: Runtime, holes: Holes) -> str:
        result = [literals[0]]
        for index, literal in zip(indices, literals[1:], strict=True):
            result.append(text_of(_hole(holes, index), runtime.budget))
            result.append(literal)
        runtime.budget.produce(sum(map(len, result)))
        return "".join(result)

    return fill


def number_filler(text: str) -> Callable[[Runtime, Holes], int]:
    """Compile an index with holes; what fills them must make it a whole number."""
    fill = text_filler(text)

    def number(runtime: Runtime, holes: Holes) -> int:
        shown = fill(runtime, holes)
        digits = shown.removeprefix("-")
        if not (digits.isascii() and digits.isdigit() and len(digits) < 19):
            raise EvaluationError(
                f"an index must be a whole number but got {len(shown)} characters",
                detailed=f"an index must be a whole number but got: {shown[:64]}",
            )
        return int(shown)

    return number


def filler(value: JSON) -> _Fill | None:
    """Compile a literal with holes in its texts and keys; None when it has none."""
    if isinstance(value, str):
        bare = BARE_HOLE.fullmatch(value)
        if bare is not None:
            index = int(bare.group(1))
            return lambda runtime, holes: _bare(_hole(holes, index), runtime)
        return text_filler(value) if HOLE.search(value) else None
    if isinstance(value, list):
        items = [(item, filler(item)) for item in value]
        if all(fill is None for _, fill in items):
            return None
        return lambda runtime, holes: [fill(runtime, holes) if fill else item for item, fill in items]
    if isinstance(value, dict):
        return _object_filler(value)
    return None


def _object_filler(value: dict[str, JSON]) -> _Fill | None:
    members = [(compile_key(key), item, filler(item)) for key, item in value.items()]
    if all(isinstance(key, str) and fill is None for key, _, fill in members):
        return None
    return lambda runtime, holes: {
        (key if isinstance(key, str) else key(runtime, holes)): fill(runtime, holes) if fill else item
        for key, item, fill in members
    }
