"""Type errors of a value: fields that its schema tree does not declare, values of other types, ambiguous list items.

Error texts are those of structured-merge-diff (typed/validate.go), which checks a configuration before it merges it.
Missing fields are no errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from pyverno.errors import PatchError
from pyverno.kube.apply.fieldset import FieldPath, field_step, path_text
from pyverno.kube.apply.schematree import ListType, MapType, SchemaTree
from pyverno.kube.gofloat import float_verb_text
from pyverno.kube.json import JSON, encode

__all__ = ["problems"]


def problems(value: JSON, type: SchemaTree) -> str:
    """Return all type errors of a value joined into one text, "" without errors.

    >>> from pyverno.kube.apply.schematree import schema_tree_for
    >>> from pyverno.kube.gvk import GVK
    >>> from pyverno.kube.schemas import schema_set
    >>> tree = schema_tree_for(schema_set(), GVK("", "v1", "ConfigMap"))
    >>> print(problems({"data": {"a": 1}, "nope": 1}, tree))
    errors:
      .data.a: expected string, got &value.valueUnstructured{Value:1}
      .nope: field not declared in schema
    """
    found = list(_check(value, type, ()))
    return found[0] if len(found) == 1 else "\n".join(("errors:", *(f"  {text}" for text in found))) if found else ""


def _check(value: JSON, type: SchemaTree, path: FieldPath) -> Iterator[str]:
    if value is None:
        return
    match type.shape(value):
        case "map" if type.map is not None:
            yield from _check_map(value, type.map, path)
        case "list" if type.list is not None:
            yield from _check_list(value, type.list, path)
        case _ if type.scalar is not None:
            kinds, describe = _SCALARS[type.scalar]
            if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
                yield _located(path, describe(value))


def _check_map(value: JSON, form: MapType, path: FieldPath) -> Iterator[str]:
    if not isinstance(value, dict):
        yield _located(path, f"expected map, got {_go_wrapped(value)}")
        return
    for name, item in value.items():
        below = (*path, field_step(name))
        child = form.child(name)
        if child is None:
            yield _located(below, "field not declared in schema")
            # Kubernetes reports no further error of this map
            return
        yield from _check(item, child, below)


def _check_list(value: JSON, form: ListType, path: FieldPath) -> Iterator[str]:
    if not isinstance(value, list):
        yield _located(path, f"expected list, got {_go_wrapped(value)}")
        return
    seen: set[str] = set()
    for index, item in enumerate(value):
        step = f"i:{index}"
        if not form.is_atomic:
            try:
                step = form.step(item)
            except PatchError as error:
                yield _located(path, f"element {index}: {error.message}")
                return
            if step in seen:
                yield _located(path, f"duplicate entries for key {path_text((step,))}")
            seen.add(step)
        yield from _check(item, form.element, (*path, step))


def _located(path: FieldPath, text: str) -> str:
    return f"{path_text(path)}: {text}" if path else text


# ── Values as Go prints them ─────────────────────────────────────────────────────────────────────────────────────────

_GO_TYPES: Final[Mapping[type, str]] = {
    bool: "bool",
    int: "int64",
    float: "float64",
    str: "string",
    list: "[]interface {}",
    dict: "map[string]interface {}",
}
_SCALARS: Final[Mapping[str, tuple[tuple[type, ...], Callable[[JSON], str]]]] = {
    "numeric": ((int, float), lambda value: f"expected numeric (int or float), got {_GO_TYPES[type(value)]}"),
    "string": (
        (str,),
        lambda value: f"expected string, got &value.valueUnstructured{{Value:{_go_source(value)}}}",
    ),
    "boolean": ((bool,), lambda value: f"expected boolean, got {_go_wrapped(value)}"),
    "untyped": ((bool, int, float, str), lambda value: f"expected any scalar, got {_go_wrapped(value)}"),
}
"""The Python types of each scalar type, and the error text of other values."""


def _go_wrapped(value: JSON) -> str:
    """Return a value as Go prints it inside of its wrapper: `&{map[a:[1 <nil>]]}`."""
    return f"&{{{_go_text(value)}}}"


def _go_text(value: JSON) -> str:
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{_go_text(item)}' for key, item in sorted(value.items()))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(_go_text, value))}]"
    if isinstance(value, str):
        return value
    return "<nil>" if value is None else _number_or_bool(value)


def _go_source(value: JSON) -> str:
    """Return a value as Go source writes it."""
    if isinstance(value, dict):
        return _composite(
            "map[string]interface {}", (f"{encode(key)}:{_go_source(item)}" for key, item in sorted(value.items()))
        )
    if isinstance(value, list):
        return _composite("[]interface {}", map(_go_source, value))
    if value is None:
        return "interface {}(nil)"
    return encode(value) if isinstance(value, str) else _number_or_bool(value)


def _composite(type: str, items: Iterable[str]) -> str:
    return f"{type}{{{', '.join(items)}}}"


def _number_or_bool(value: JSON) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return float_verb_text(value) if isinstance(value, float) else str(value)
