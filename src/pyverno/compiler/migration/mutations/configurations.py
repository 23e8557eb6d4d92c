"""Merges of plain fields as an ApplyConfiguration: the object that is laid over the one of the request.

Only maps with a schema and scalars are written so: there both merges do the same. Everything else becomes a JSON patch.
"""

from __future__ import annotations

from typing import Final

from pyverno.compiler.migration.mutations.place import Place
from pyverno.compiler.migration.mutations.values import Expressions, has_variable, write_text, write_value
from pyverno.compiler.migration.schema import Shape
from pyverno.compiler.migration.text import Cel, CelType, literal
from pyverno.kube.json import JSON, JSONObject
from pyverno.lang.pattern.anchors import Modifier, parse_anchor
from pyverno.lazyregex import regex

__all__ = ["write_configuration"]

_FIELD: Final = regex(r"[a-zA-Z_][a-zA-Z0-9_]*\Z")
_SCALARS: Final = {
    Shape.STRING: str,
    Shape.INT: int,
    Shape.BOOL: bool,
    Shape.QUANTITY: str,
}


def write_configuration(overlay: JSONObject, root: Place, expressions: Expressions, path: str) -> Cel | None:
    """Return the expression of an ApplyConfiguration, None where the merge of the engine does something else."""
    if root.pointer.parts:
        return None
    found = _object(overlay, root, "Object", expressions, path)
    return None if found is None else Cel(found, CelType.DYN)


def _object(overlay: JSONObject, place: Place, name: str, expressions: Expressions, path: str) -> str | None:
    fields = []
    for key, value in overlay.items():
        anchor = parse_anchor(key)
        if anchor is not None and (anchor.modifier is not Modifier.ADD_IF_ABSENT or isinstance(value, (dict, list))):
            return None
        field = key if anchor is None else anchor.key
        below = place.field(field)
        if not _FIELD.match(field) or has_variable(field) or below.value.schema.is_atomic:
            return None
        written = _value(value, below, f"{name}.{field}", expressions, f"{path}.{field}")
        if written is None:
            return None
        if anchor is not None:
            written = below.value.or_value(Cel(written)).text
        fields.append(f"{field}: {written}")
    return f"{name}{{{', '.join(fields)}}}"


def _value(value: JSON, place: Place, name: str, expressions: Expressions, path: str) -> str | None:
    shape = place.value.schema.shape
    match value:
        case dict() if shape is Shape.OBJECT:
            return _object(value, place, name, expressions, path)
        case dict() if shape is Shape.MAP:
            plain = all(each is not None and not isinstance(each, (dict, list)) for each in value.values())
            anchored = any(parse_anchor(key) is not None for key in value)
            texts = place.value.schema.values.shape is not Shape.STRING or all(
                isinstance(e, str) for e in value.values()
            )
            return write_value(value, expressions, path).text if plain and texts and not anchored else None
        case None | dict() | list():
            return None
        case str() if has_variable(value):
            found = write_text(value, expressions, path)
            return found.text if found.type in (CelType.STRING, CelType.INT, CelType.BOOL) else None
    wanted = _SCALARS.get(shape)
    return literal(value).text if wanted is not None and type(value) is wanted else None
