"""CEL values for the output: as JSON, which never fails, and as short texts of bounded length."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from pyverno.errors import EvaluationError
from pyverno.kube.json import JSON, encode_indent
from pyverno.kube.quantity import Quantity
from pyverno.kube.semver import Version
from pyverno.lang.cel.checking.scope import Names
from pyverno.lang.cel.json_values import to_json
from pyverno.lang.cel.scalars import Uint
from pyverno.lang.cel.values import Optional, StructValue, Value, map_items, type_name

__all__ = ["CUT", "Printer"]

CUT = "…"


class Printer:
    """Prints the values of one environment, whose `string(x)` knows the texts of its libraries' own types."""

    __slots__ = ("_names",)

    def __init__(self, names: Names) -> None:
        self._names = names

    def plain(self, value: Value) -> JSON:
        """Return a value as JSON: absent optionals are null, other types are their texts.

        Raises EvaluationError for a value that is nested too deeply.
        """
        try:
            return self._plain(value)
        except RecursionError:
            raise EvaluationError("the value is nested too deeply to be printed") from None

    def brief(self, value: Value, room: int) -> str:
        """Return a value on one line of at most `room` characters; longer ones end with `…`.

        Only the shown part of the value is rendered.

        >>> from pyverno.lang.cel import STANDARD
        >>> Printer(STANDARD.names).brief({"a": [1, 2, 3]}, 8)
        '{"a": [1…'
        """
        shown = ""
        try:
            for piece in self._pieces(value, room):
                shown += piece
                if len(shown) > room:
                    return shown[:room] + CUT
        except RecursionError:
            return shown + CUT
        return shown

    def _plain(self, value: Value) -> JSON:
        if isinstance(value, (list, tuple)):
            return [self._plain(item) for item in value]
        if isinstance(value, dict):
            return {self._key(key): self._plain(item) for key, item in map_items(value)}
        if isinstance(value, StructValue):
            return {name: self._plain(item) for name, item in value.fields.items()}
        if isinstance(value, Optional):
            return self._plain(value.value) if value.present else None
        return self._scalar(value)

    def _scalar(self, value: Value) -> JSON:
        if isinstance(value, float) and not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        try:
            return to_json(value)
        except EvaluationError:
            return self._opaque(value)

    def _opaque(self, value: Value) -> str:
        if isinstance(value, (Quantity, Version)):
            return str(value)
        name = type_name(value)
        for overload in self._names.functions.get("string", ()):
            if overload.signature.params[0].name == name and not overload.in_context:
                return str(overload.apply(value))
        text = getattr(value, "text", None)
        return text if isinstance(text, str) else f"<{name}>"

    def _key(self, key: Value) -> str:
        if isinstance(key, bool):
            return "true" if key else "false"
        return key if isinstance(key, str) else str(key)

    def _pieces(self, value: Value, room: int) -> Iterator[str]:
        # a deeper level is entered only after a piece of this one, so that `room` also bounds the depth
        if isinstance(value, str):
            yield _format_json(value[: room + 1])
        elif isinstance(value, (list, tuple)):
            yield "["
            for number, item in enumerate(value):
                if number:
                    yield ", "
                yield from self._pieces(item, room)
            yield "]"
        elif isinstance(value, dict):
            yield "{"
            yield from self._entries(((self._scalar_text(key, room), item) for key, item in map_items(value)), room)
        elif isinstance(value, StructValue):
            yield f"{value.cel_type}{{"
            yield from self._entries(value.fields.items(), room)
        elif isinstance(value, Optional):
            yield "optional.of(" if value.present else "optional.none()"
            if value.present:
                yield from self._pieces(value.value, room)
                yield ")"
        else:
            yield self._scalar_text(value, room)

    def _entries(self, entries: Iterable[tuple[str, Value]], room: int) -> Iterator[str]:
        for number, (key, item) in enumerate(entries):
            yield f"{', ' if number else ''}{key}: "
            yield from self._pieces(item, room)
        yield "}"

    def _scalar_text(self, value: Value, room: int) -> str:
        if isinstance(value, Uint):
            return repr(value)
        if isinstance(value, (str, bytes)):
            value = value[: room + 1]
        shown = self._scalar(value)
        # the type has no text form
        return shown if isinstance(shown, str) and shown == f"<{type_name(value)}>" else _format_json(shown)


def _format_json(value: JSON) -> str:
    return encode_indent(value, escape_html=False)
