"""Paths into the object, and small walks along them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyverno.kube.json import JSON
from pyverno.kube.yaml.fieldpath import Path
from pyverno.lazyregex import regex

__all__ = ["Path", "common", "deepest", "elements", "parse_dotted", "parse_slashed", "value_at"]


_STEP = regex(r"([^.\[\]]+)|\[([^\]]*)\]")
_ABSENT = object()


def value_at(document: JSON, path: Path) -> JSON:
    """Return the value at a path, None where there is none.

    >>> value_at({"a": [{"b": 1}]}, ("a", 0, "b"))
    1
    """
    found = _walk(document, path)
    return None if found is _ABSENT else found


def exists(document: JSON, path: Path) -> bool:
    """Return whether there is a value at a path."""
    return _walk(document, path) is not _ABSENT


def _walk(document: JSON, path: Path) -> JSON:
    current = document
    for step in path:
        if isinstance(current, dict):
            current = current.get(step, _ABSENT)
        elif isinstance(current, list) and isinstance(step, int) and -len(current) <= step < len(current):
            current = current[step]
        else:
            return _ABSENT
    return current


def elements(document: JSON, path: Path) -> list[Path]:
    """Return the paths of the items of a list or map, none for anything else."""
    found = value_at(document, path)
    if isinstance(found, list):
        return [(*path, index) for index in range(len(found))]
    return [(*path, key) for key in found] if isinstance(found, dict) else []


def deepest(paths: Iterable[Path]) -> Path | None:
    """Return the longest path, the first of several; None when there is none."""
    return max(paths, key=len, default=None)


def common(paths: Sequence[Path]) -> Path:
    """Return what several paths have in common.

    >>> common([("a", 0, "b"), ("a", 1, "b")])
    ('a',)
    """
    first, last = min(paths, key=lambda path: tuple(map(str, path))), max(paths, key=lambda path: tuple(map(str, path)))
    shared: list[str | int] = []
    for one, other in zip(first, last, strict=False):
        if one != other:
            break
        shared.append(one)
    return tuple(shared)


def parse_slashed(path: str, document: JSON) -> Path:
    """Return the path of a pattern's failure on a document, whose keys may hold slashes.

    >>> parse_slashed("/spec/containers/0/image/", {})
    ('spec', 'containers', 0, 'image')
    >>> parse_slashed("/labels/app.org/name/", {"labels": {"app.org/name": ""}})
    ('labels', 'app.org/name')
    """
    rest = [step for step in path.split("/") if step]
    found: list[str | int] = []
    current = document
    while rest:
        size = 1
        if isinstance(current, dict):
            size = next((n for n in range(1, len(rest) + 1) if "/".join(rest[:n]) in current), 1)
        name = "/".join(rest[:size])
        is_index = not isinstance(current, dict) and name.isascii() and name.isdigit()
        step: str | int = int(name) if is_index else name
        found.append(step)
        current = value_at(current, (step,))
        rest = rest[size:]
    return tuple(found)


def parse_dotted(path: str) -> Path:
    """Return the path of a field as messages name it.

    >>> parse_dotted("spec.containers[0].ports[*].hostPort")
    ('spec', 'containers', 0, 'ports')
    """
    steps: list[str | int] = []
    for found in _STEP.finditer(path):
        name, index = found.groups()
        if index == "*":
            break
        steps.append(name if name is not None else int(index) if index.isdigit() else index.strip("'\""))
    return tuple(steps)
