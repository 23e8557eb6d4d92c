"""`patchesJson6902`: operations as the old dialect applies them, which makes parents and tolerates what is missing.

`add` makes missing parents, `remove` of a missing field does nothing, both unlike in a policy in CEL. Operations whose
paths touch each other go into mutations of their own, because conditions look at the object before all operations of
one mutation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyverno.compiler.migration.mutations.changes import Change, Operation, when
from pyverno.compiler.migration.mutations.place import Place
from pyverno.compiler.migration.mutations.values import Expressions, has_variable, write_text, write_value
from pyverno.compiler.migration.outcome import UnconvertibleError
from pyverno.compiler.migration.schema import Shape
from pyverno.compiler.migration.text import TRUE, Cel, CelType, all_of, any_of, compare, literal
from pyverno.errors import PyvernoError
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.patch.jsonpatch import unescape_key
from pyverno.kube.yaml.documents import load_documents
from pyverno.lazyregex import regex
from pyverno.value import dataclass

__all__ = ["json_patches", "read_operations"]

_INDEX: Final = regex(r"\{\{\s*elementIndex[0-9]*\s*\}\}")


@dataclass(frozen=True, slots=True)
class _Spot:
    """The target of a path: its place, its presence, and the steps to it with theirs."""

    place: Place
    steps: tuple[tuple[Place, Cel], ...]
    is_in_list: bool

    @property
    def is_there(self) -> Cel:
        return all_of(present for _, present in self.steps)

    def touches(self, other: _Spot) -> bool:
        """Return whether a change at one path can affect the other."""
        for (one, present), (two, _) in zip(self.steps, other.steps, strict=False):
            if one.pointer != two.pointer:
                # elements of one list move when one of them is added or removed
                return self.is_in_list or other.is_in_list
            if present.text != "true":
                return True  # a parent that one of them adds
        return True  # one is below the other


def read_operations(written: JSON, path: str) -> list[JSONObject]:
    """Return the operations of a patch, which is text in YAML or JSON; raises UnconvertibleError."""
    value = written
    if isinstance(written, str):
        try:
            documents = [each.value for each in load_documents(written)]
        except PyvernoError as error:
            advice = "write every variable in quotes"
            raise UnconvertibleError("patch-text", path, f"the patch is no YAML: {error.message}", advice) from error
        value = documents[0] if documents else []
    items = [value] if isinstance(value, dict) else value
    if not isinstance(items, list) or not all(isinstance(each, dict) for each in items):
        raise UnconvertibleError("patch-text", path, "the patch is no list of operations")
    return items


def json_patches(
    operations: Sequence[JSONObject], root: Place, expressions: Expressions, path: str
) -> list[tuple[Change, ...]]:
    """Return the changes of the operations, one tuple for each mutation; raises UnconvertibleError."""
    groups: list[list[Change]] = []
    earlier: list[_Spot] = []
    for number, operation in enumerate(operations):
        below = f"{path}[{number}]"
        spots = [_find(each, root, expressions, below) for each in _paths(operation, below)]
        if not groups or any(one.touches(other) for one in spots for other in earlier):
            groups.append([])
            earlier = []
        groups[-1] += _operation(operation, spots, expressions, below)
        earlier += spots
    return [tuple(group) for group in groups if group]


def _paths(operation: JSONObject, path: str) -> list[str]:
    found = [operation.get(name) for name in ("path", "from") if name in operation]
    for each in found:
        if not isinstance(each, str) or not each.startswith("/"):
            raise UnconvertibleError("patch-path", path, "the operation has no path below the object")
    if "path" not in operation:
        raise UnconvertibleError("patch-path", path, "the operation has no path")
    return [str(each) for each in found]


def _operation(operation: JSONObject, spots: Sequence[_Spot], expressions: Expressions, path: str) -> Sequence[Change]:
    name, spot = operation.get("op"), spots[0]
    match name:
        case "add":
            return _add(operation, spot, expressions, path)
        case "remove":
            return when(spot.is_there, [Operation("remove", spot.place.pointer)])
        case "replace":
            return [Operation("replace", spot.place.pointer, _value(operation, expressions, path))]
        case "move" | "copy":
            if len(spots) < 2:
                raise UnconvertibleError("patch-path", path, "the operation has no `from`")
            if any(present.text != "true" for _, present in spot.steps[:-1]):
                reason = f"`{name}` to a parent that can be missing"
                raise UnconvertibleError("patch-parent", path, reason, "add the parent first, in its own operation")
            return [Operation(name, spot.place.pointer, source=spots[1].place.pointer)]
        case "test":
            reason = "a failing `test` is an error in the old dialect and drops the patch without one in CEL"
            raise UnconvertibleError("patch-test", path, reason, "make it a precondition")
    raise UnconvertibleError("patch-operation", path, f"`{name}` is no operation of a JSON patch")


def _value(operation: JSONObject, expressions: Expressions, path: str) -> Cel:
    if "value" not in operation:
        raise UnconvertibleError("patch-value", path, "the operation has no value")
    return write_value(operation["value"], expressions, f"{path}.value")


def _add(operation: JSONObject, spot: _Spot, expressions: Expressions, path: str) -> Sequence[Change]:
    """Return the addition, and for each parent that can be missing the addition of all that is below it."""
    value = _value(operation, expressions, path)
    if spot.place.value.schema.shape is Shape.STRING and value.type not in (CelType.STRING, CelType.DYN):
        raise UnconvertibleError("number-for-text", path, "the field is a text", "put the value in quotes")
    changes: Sequence[Change] = [Operation("add", spot.place.pointer, value)]
    steps = spot.steps
    for at in range(len(steps) - 2, -1, -1):
        parent, present = steps[at]
        if present.text == "true":
            continue
        made = value
        for below, _ in reversed(steps[at + 1 :]):
            made = _wrap(below, made, path)
        changes = when(present, changes, [Operation("add", parent.pointer, made)])
    return changes


def _wrap(place: Place, value: Cel, path: str) -> Cel:
    last = place.pointer.parts[-1]
    if isinstance(last, Cel):
        raise UnconvertibleError("patch-parent", path, "the parent of a computed name can be missing")
    name = unescape_key(last.rpartition("/")[2])
    if name in ("-", "0"):
        return Cel(f"[{value.text}]", CelType.LIST)
    if name.isdigit():
        raise UnconvertibleError("patch-parent", path, "the list of the element can be missing")
    return Cel(f"{{{literal(name).text}: {value.text}}}", CelType.MAP)


def _find(target: str, root: Place, expressions: Expressions, path: str) -> _Spot:
    place = root
    steps: list[tuple[Place, Cel]] = []
    names = target.split("/")[1:]
    for number, written in enumerate(names):
        is_last = number == len(names) - 1
        is_list = place.value.schema.shape is Shape.LIST
        name = written if has_variable(written) else unescape_key(written)
        if _INDEX.fullmatch(written):
            if expressions.value("{{ element }}", path).text.rpartition("[")[0] == place.value.value().text:
                steps = [(each, TRUE) for each, _ in steps]  # inside of a loop over this list
            place = place.element(expressions.value(written, path))
            steps.append((place, TRUE))
        elif has_variable(written):
            key = write_text(written, expressions, path)
            if not is_last or place.value.schema.shape not in (Shape.MAP, Shape.ANY):
                reason = "a variable is a part of the path that is no entry of a map"
                raise UnconvertibleError("patch-path", path, reason, "write the path in full")
            present = Cel(f"({key.text} in {place.value.value().text})", CelType.BOOL)
            place = place.at(place.pointer.computed_key(key))
            steps.append((place, present))
        elif is_list or name == "-" or (name.lstrip("-").isdigit() and place.value.schema.shape is Shape.ANY):
            place, present = _element(place, name, path)
            steps.append((place, present))
        else:
            place = place.field(name)
            steps.append((place, _own_presence(place)))
    return _Spot(place, tuple(steps), is_list)


def _own_presence(place: Place) -> Cel:
    return place.value.is_set()


def _element(place: Place, name: str, path: str) -> tuple[Place, Cel]:
    """Return the place of an element by its number, or behind the last one."""
    size = place.value.value().method("size", returns=CelType.INT)
    if name == "-":
        behind = place.element(Cel("0"))
        return behind.at(place.pointer.last()), any_of([Cel("false", CelType.BOOL)])
    if name.isdigit():
        found = place.element(Cel(name))
        return found, compare(size, ">", literal(int(name)))
    raise UnconvertibleError("patch-path", path, f"`{name}` counts from the end of the list", "write the number")
