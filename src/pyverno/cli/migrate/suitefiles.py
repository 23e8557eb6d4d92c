"""The files of a converted suite: its new place, the files that it names, and those that are copied with it.

A suite keeps its place relative to the argument below which it was found. Files below that argument are copied to the
same place in the new folder; other files, and whole folders, are named by a path from the new place.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from pyverno.kube.json import JSON, JSONObject
from pyverno.value import dataclass

__all__ = ["MovedSuite", "relative", "split_suites"]

_FILE: Final = "kyverno-test.yaml"

_LISTS: Final = frozenset(
    {
        "policies",
        "exceptions",
        "resources",
        "targetresources",
        "paramresources",
        "jsonpayload",
        "jsonpayloads",
        "httppayloads",
        "envoypayloads",
        "clusterresources",
        "userinfo",
        "variables",
        "context",
    }
)
_OF_ROWS: Final = frozenset(
    {"patchedresources", "patchedresource", "generatedresource", "generatedresources", "clonesourceresource"}
)
_OF_ENTRIES: Final = frozenset({"resourcefiles"})
_BELOW: Final[Mapping[str, frozenset[str]]] = {"results": _OF_ROWS, "globalcontextentries": _OF_ENTRIES}


def split_suites(sources: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the arguments that hold policies, and the local ones that may hold suites.

    >>> split_suites(["a.yaml", "cases/kyverno-test.yaml"])
    (('a.yaml',), ('cases/kyverno-test.yaml',))
    """
    suites = tuple(each for each in sources if Path(each).name == _FILE)
    folders = tuple(each for each in sources if Path(each).is_dir())
    return tuple(each for each in sources if each not in suites), (*suites, *folders)


def relative(path: Path, folder: Path) -> str:
    """Return the path of a file as a suite in a folder writes it.

    >>> relative(Path("new/policy.yaml"), Path("new/cases"))
    '../policy.yaml'
    """
    return Path(os.path.relpath(path, folder)).as_posix()


@dataclass(frozen=True, slots=True)
class MovedSuite:
    """A suite that moves from a folder to another one; `root` is the argument below which it was found."""

    folder: Path
    target: Path
    root: Path

    def document(self, suite: JSONObject, copies: dict[Path, Path]) -> JSONObject:
        """Return the suite with the paths of its new place, and add the files to copy to `copies`."""

        def moved(text: str) -> str:
            return self._move(text, copies)

        changed: JSONObject = {}
        for key, value in suite.items():
            inner = _BELOW.get(key.lower())
            if key.lower() in _LISTS:
                changed[key] = _each(value, moved)
            elif inner is not None and isinstance(value, list):
                changed[key] = [_fields(each, inner, moved) for each in value]
            else:
                changed[key] = value
        return changed

    def _move(self, text: str, copies: dict[Path, Path]) -> str:
        source = self.folder / text
        if Path(text).is_absolute() or not source.exists():
            return text  # an address, or a file that is missing today
        within = Path(os.path.relpath(source, self.root))
        if source.is_dir() or ".." in within.parts:
            return relative(source, self.target)
        copies[source] = self.target / text
        return text


def _each(value: JSON, moved: Callable[[str], str]) -> JSON:
    if isinstance(value, list):
        return [moved(each) if isinstance(each, str) else each for each in value]
    return moved(value) if isinstance(value, str) else value


def _fields(value: JSON, names: frozenset[str], moved: Callable[[str], str]) -> JSON:
    if not isinstance(value, dict):
        return value
    return {key: _each(each, moved) if key.lower() in names else each for key, each in value.items()}
