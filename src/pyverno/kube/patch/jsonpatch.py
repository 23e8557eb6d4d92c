"""Apply a JSON Patch (RFC 6902) as evanphx/json-patch v5 does.

Patching returns a new value that shares everything the patch does not touch; the given document never changes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Final

from pyverno.errors import PatchError
from pyverno.kube.json import JSON, JSONObject, encode, equal
from pyverno.kube.meter import UNMETERED, Meter
from pyverno.value import dataclass

__all__ = ["MAX_COPIED_NODES", "MAX_PADDING", "apply_patch", "escape_key", "unescape_key"]

MAX_PADDING: Final = 10_000
"""Largest index up to which a missing list is filled with nulls while parents are created."""

MAX_COPIED_NODES: Final = 1_000_000
"""Values that all `copy` operations of one patch may duplicate together."""

_COPIED_PER_STEP: Final = 256
_COUNTED_PER_STEP: Final = 8
_COUNTED_PER_CHARGE: Final = 2048
_MOVED_PER_STEP: Final = 4096
_CHARACTERS_PER_NODE: Final = 64
_MISSING: Final = "missing value"
_BAD_INDEX: Final = "invalid index referenced"
_BAD_STATE: Final = "invalid state detected"


def escape_key(key: str) -> str:
    """Return a key as a step of a JSON pointer.

    >>> escape_key("app.kubernetes.io/name~")
    'app.kubernetes.io~1name~0'
    """
    return key.replace("~", "~0").replace("/", "~1")


def unescape_key(step: str) -> str:
    """Return the key that a step of a JSON pointer names.

    >>> unescape_key("app.kubernetes.io~1name~0")
    'app.kubernetes.io/name~'
    """
    return step.replace("~1", "/").replace("~0", "~")


def apply_patch(
    document: JSON,
    operations: Sequence[JSONObject],
    *,
    allow_missing_remove: bool = False,
    create_parents: bool = False,
    missing_is_null: bool = False,
    meter: Meter = UNMETERED,
) -> JSON:
    """Return the document after all operations, in order (`add`, `remove`, `replace`, `move`, `copy`, `test`).

    The index `-1` is a list's last element (for `add`: the place behind it, like `-`). `allow_missing_remove` ignores
    the removal of a missing value; `create_parents` lets `add` create missing objects and lists on its way (Kyverno
    sets both). `missing_is_null` lets `replace` and `copy` read a missing key as null, as API servers do (evanphx v4).
    Raises PatchError with evanphx's text. Operations are charged to `meter` with the lists and maps that they copy and
    move.

    >>> apply_patch({"a": [1, 2]}, [{"op": "add", "path": "/a/-", "value": 3}, {"op": "remove", "path": "/a/0"}])
    {'a': [2, 3]}
    """
    if not isinstance(operations, list | tuple):
        raise PatchError("a JSON patch must be a list of operations")
    for operation in operations:
        _validate(operation)
    run = _Run(document, _Options(allow_missing_remove, create_parents, missing_is_null), meter)
    for operation in operations:
        meter.charge_steps(4 + len(operation["path"]) // 16)
        _OPERATIONS[operation["op"]](run, operation)
    return run.root


@dataclass(frozen=True, slots=True)
class _Options:
    allow_missing_remove: bool
    create_parents: bool
    missing_is_null: bool


_NEEDS: Final[dict[str, str]] = {
    "add": "value",
    "replace": "value",
    "move": "from",
    "copy": "from",
    "remove": "",
    "test": "",
}


def _validate(operation: JSON) -> None:
    if not isinstance(operation, dict):
        raise PatchError(f"invalid operation {encode(operation)}: an operation is an object")
    op = operation.get("op")
    needed = _NEEDS.get(op) if isinstance(op, str) else None
    problem = ""
    if needed is None:
        problem = "unsupported operation"
    elif needed and (needed not in operation or (needed == "from" and not isinstance(operation["from"], str))):
        problem = f"failed to decode '{needed}': operation, missing {needed} field: {_MISSING}"
    elif not isinstance(operation.get("path"), str):
        problem = f"failed to decode 'path': operation missing path field: {_MISSING}"
    if problem:
        raise PatchError(f"invalid operation {encode(operation)}: {problem}")


class _Absent(Exception):  # noqa: N818  # a control signal between lookup and operation
    """A step names nothing; the text is the reason."""


class _Run:
    """A document under patching: containers on a changed path are copied once, then changed in place."""

    __slots__ = ("_owned", "copied", "meter", "options", "root")

    def __init__(self, document: JSON, options: _Options, meter: Meter) -> None:
        self.root = document
        self.meter = meter
        self.options = options
        self.copied = 0
        # Containers made by this run, kept alive so that their ids stay theirs.
        self._owned: dict[int, JSON] = {}

    def own(self, value: JSON) -> JSON:
        """Return a container of this run with the same content."""
        if id(value) in self._owned:
            return value
        self.meter.charge_steps(1 + len(value) // _COPIED_PER_STEP)
        fresh = dict(value) if isinstance(value, dict) else list(value)
        self._owned[id(fresh)] = fresh
        return fresh

    def release(self) -> None:
        """Stop changing earlier copies in place, because two places will share a value."""
        self._owned.clear()

    def find(self, path: str) -> tuple[JSON, str] | None:
        """Return the container and last key that `path` names, for reading; None when a parent is missing."""
        steps = path.split("/")
        if len(steps) < 2:
            return None if path else (self.root, "")
        if not isinstance(self.root, dict | list):  # a scalar was moved or copied there
            return None
        node = self.root
        for step in steps[1:-1]:
            try:
                node = self.get(node, unescape_key(step))
            except _Absent:
                return None
            if not isinstance(node, dict | list):
                return None
        return node, unescape_key(steps[-1])

    def change(self, path: str) -> tuple[JSON, str] | None:
        """Return what `find` returns, with every container on the way owned by this run."""
        if self.find(path) is None or not isinstance(self.root, dict | list):
            return None
        steps = path.split("/")
        node = self.root = self.own(self.root)
        for step in steps[1:-1]:
            key = unescape_key(step)
            place = key if isinstance(node, dict) else self.index(node, key)
            node[place] = self.own(node[place])
            node = node[place]
        return node, unescape_key(steps[-1])

    def get(self, node: JSON, key: str) -> JSON:
        if isinstance(node, dict):
            if key not in node:
                if self.options.missing_is_null:
                    return None
                raise _Absent(f"unable to get nonexistent key: {key}: {_MISSING}")
            return node[key]
        return node[self.index(node, key)]

    def index(self, node: list[JSON], key: str) -> int:
        """Return the position that `key` names in a list; raises _Absent for a missing one."""
        number = _integer(key)
        if number is None:
            raise _Absent(f'strconv.Atoi: parsing "{key}": invalid syntax')
        return self.position(number, len(node), len(node))

    def position(self, number: int, length: int, end: int) -> int:
        """Return `number` as an index below `end`; negative numbers count back from `length`."""
        if number >= end or number < -length:
            raise _Absent(f"Unable to access invalid index: {number}: {_BAD_INDEX}")
        return number if number >= 0 else number + length

    def insert(self, node: JSON, key: str, value: JSON) -> None:
        if isinstance(node, dict):
            node[key] = value
        elif key == "-":
            node.append(value)
        else:
            number = _integer(key)
            if number is None:
                syntax = f'strconv.Atoi: parsing "{key}": invalid syntax'
                raise _Absent(f"value was not a proper array index: '{key}': {syntax}")
            room = len(node) + 1
            self.meter.charge_steps(room // _MOVED_PER_STEP)
            node.insert(self.position(number, room, room), value)

    def delete(self, node: JSON, key: str) -> None:
        if isinstance(node, dict):
            if key in node:
                del node[key]
            elif not self.options.allow_missing_remove:
                raise _Absent(f"unable to remove nonexistent key: {key}: {_MISSING}")
            return
        self.meter.charge_steps(len(node) // _MOVED_PER_STEP)
        try:
            del node[self.index(node, key)]
        except _Absent:
            if _integer(key) is None or not self.options.allow_missing_remove:
                raise


def _integer(text: str) -> int | None:
    """Read a list index as Go's Atoi does."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    return int(text) if digits.isascii() and digits.isdigit() and len(digits) < 19 else None


def _add(run: _Run, operation: JSONObject) -> None:
    path, value = operation["path"], operation["value"]
    if path == "":
        if not isinstance(value, dict | list):
            raise PatchError("add operation value for the whole document must be object or array")
        run.root = value
        return
    if run.options.create_parents:
        _create_parents(run, path)
    found = run.change(path)
    if found is None:
        raise PatchError(f'add operation does not apply: doc is missing path: "{path}": {_MISSING}')
    try:
        run.insert(*found, value)
    except _Absent as reason:
        raise PatchError(f"error in add for path: '{path}': {reason}") from None


def _create_parents(run: _Run, path: str) -> None:
    """Create objects, or lists when the next step is an index, where the parents of `path` are missing or null."""
    steps = path.split("/")[1:]
    if len(steps) < 2 or not isinstance(run.root, dict | list):
        return
    node = run.root = run.own(run.root)
    for step, following in pairwise(steps):
        key = unescape_key(step)
        try:
            child = run.get(node, key)
        except _Absent:
            child = None
        if child is not None and not isinstance(child, dict | list):
            raise PatchError(_BAD_STATE)
        if child is None:
            child = run.own(_new_parent(run, following))
            _put_parent(run, node, key, child)
        else:
            place = key if isinstance(node, dict) else run.index(node, key)
            child = node[place] = run.own(child)
        node = child


def _new_parent(run: _Run, following: str) -> JSON:
    number = 0 if following == "-" else _integer(following)
    if number is None:
        return {}
    if number < -1:
        raise PatchError(f"Unable to ensure path for negative index other than -1: {number}: {_BAD_INDEX}")
    return [None] * _padding(number)


def _put_parent(run: _Run, node: JSON, key: str, child: JSON) -> None:
    # COMPAT: a null element of a list is pushed aside, not replaced, as evanphx does.
    if isinstance(node, list):
        number = _integer(key)
        if number is not None and number > len(node):
            node.extend([None] * _padding(number - len(node)))
    try:
        run.insert(node, key, child)
    except _Absent:
        return  # the lookup that follows reports the missing path


def _padding(count: int) -> int:
    if count > MAX_PADDING:
        raise PatchError(f"Unable to create array of size {count}, limit is {MAX_PADDING}")
    return max(0, count)


def _remove(run: _Run, operation: JSONObject) -> None:
    path = operation["path"]
    if run.find(path) is None or not isinstance(run.root, dict | list):
        if run.options.allow_missing_remove:
            return
        raise PatchError(f'remove operation does not apply: doc is missing path: "{path}": {_MISSING}')
    _remove_at(run, path, f"error in remove for path: '{path}'")


def _remove_at(run: _Run, path: str, context: str) -> None:
    found = run.change(path)
    try:
        if found:
            run.delete(*found)
    except _Absent as reason:
        raise PatchError(f"{context}: {reason}") from None


def _replace(run: _Run, operation: JSONObject) -> None:
    path, value = operation["path"], operation["value"]
    if path == "":
        if not isinstance(value, dict | list):
            raise PatchError("replace operation value must be object or array")
        run.root = value
        return
    found = run.find(path)
    if found is None:
        raise PatchError(f"replace operation does not apply: doc is missing path: {path}: {_MISSING}")
    try:
        run.get(*found)
    except (_Absent, TypeError):
        raise PatchError(f"replace operation does not apply: doc is missing key: {path}: {_MISSING}") from None
    node, key = run.change(path) or found
    node[key if isinstance(node, dict) else run.index(node, key)] = value


def _read_from(run: _Run, operation: JSONObject, missing: str, failed: str) -> JSON:
    found = run.find(operation["from"])
    if found is None or not isinstance(found[0], dict | list):
        raise PatchError(missing)
    try:
        return run.get(*found)
    except _Absent as reason:
        raise PatchError(f"{failed}: {reason}") from None


def _move(run: _Run, operation: JSONObject) -> None:
    source, path = operation["from"], operation["path"]
    if source == "":
        raise PatchError(f"unable to move entire document to another path: {_BAD_STATE}")
    failed = f"error in move for path: '{unescape_key(source.rpartition('/')[2])}'"
    missing = f"move operation does not apply: doc is missing from path: {source}: {_MISSING}"
    value = _read_from(run, operation, missing, failed)
    _remove_at(run, source, failed)
    _put(run, path, value, "move", f"error in move for path: '{path}'")


def _copy(run: _Run, operation: JSONObject) -> None:
    source, path = operation["from"], operation["path"]
    if source == "":
        value = run.root
    else:
        missing = f'copy operation does not apply: doc is missing from path: "{source}": {_MISSING}'
        value = _read_from(run, operation, missing, f"error in copy for from: '{source}'")
    run.copied += _count(value, MAX_COPIED_NODES - run.copied, run.meter)
    if run.copied > MAX_COPIED_NODES:
        raise PatchError(f"Unable to complete the copy, copies exceed the limit of {MAX_COPIED_NODES} values")
    run.release()
    _put(run, path, value, "copy", "error while adding value during copy")


def _put(run: _Run, path: str, value: JSON, verb: str, failed: str) -> None:
    if path == "":
        # COMPAT: evanphx sets the empty key of the root here; the RFC means the whole document.
        run.root = value
        return
    found = run.change(path)
    if found is None:
        raise PatchError(f"{verb} operation does not apply: doc is missing destination path: {path}: {_MISSING}")
    try:
        run.insert(*found, value)
    except _Absent as reason:
        raise PatchError(f"{failed}: {reason}") from None


def _count(value: JSON, limit: int, meter: Meter) -> int:
    """Count and charge the values inside a value up to just past `limit`; long texts count several times."""
    waiting, count, charged = [value], 0, 0
    while waiting and count <= limit:
        node = waiting.pop()
        count += 1
        if count - charged >= _COUNTED_PER_CHARGE:
            meter.charge_steps((count - charged) // _COUNTED_PER_STEP)
            charged = count
        if isinstance(node, str):
            count += len(node) // _CHARACTERS_PER_NODE
        elif isinstance(node, dict):
            waiting.extend(node.values())
        elif isinstance(node, list):
            waiting.extend(node)
    meter.charge_steps((count - charged) // _COUNTED_PER_STEP)
    return count


def _test(run: _Run, operation: JSONObject) -> None:
    path, expected = operation["path"], operation.get("value")
    value: JSON
    if path == "":
        value = run.root
    else:
        found = run.find(path)
        if found is None or not isinstance(found[0], dict | list):
            raise PatchError(f"test operation does not apply: is missing path: {path}: {_MISSING}")
        node, key = found
        if isinstance(node, dict):
            value = node.get(key)
        else:
            try:
                value = run.get(node, key)
            except _Absent as reason:
                raise PatchError(f"error in test for path: '{path}': {reason}") from None
    if not equal(value, expected):
        raise PatchError(f"testing value {path} failed: test failed")


_OPERATIONS: Final[dict[str, Callable[[_Run, JSONObject], None]]] = {
    "add": _add,
    "remove": _remove,
    "replace": _replace,
    "move": _move,
    "copy": _copy,
    "test": _test,
}
