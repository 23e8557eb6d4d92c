"""The objects of test suites, with which the comparison of the tested policies begins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from pyverno.cli.test.find import find_suites
from pyverno.cli.test.options import DEFAULT_FILE
from pyverno.kube.json import JSONObject
from pyverno.kube.yaml.documents import expand_lists
from pyverno.offline.manifests import load_manifests

__all__ = ["Examples", "suite_examples"]


class Examples:
    """Objects by the files of the policies that suites judge them with."""

    def __init__(self, by_file: Mapping[Path, Sequence[JSONObject]] | None = None) -> None:
        """Take the objects by file or folder of policies."""
        self._by_file = dict(by_file or {})

    def of(self, file: str) -> tuple[JSONObject, ...]:
        """Return the objects for the policies of a file."""
        path = Path(file).resolve()
        return tuple(each for place, objects in self._by_file.items() if path.is_relative_to(place) for each in objects)


def suite_examples(sources: Sequence[str]) -> Examples:
    """Return the objects of the suites of files and folders; an unreadable file becomes an error of its suite later."""
    found: dict[Path, list[JSONObject]] = {}
    with ExitStack() as stack:
        for suite in (each for source in sources for each in find_suites(source, DEFAULT_FILE, "", stack)):
            if suite.test is None:
                continue
            names = suite.test.document.value.get("resources") or ()
            objects = _load([str(suite.path.parent / str(each)) for each in names])
            for policy in suite.test.policies:
                found.setdefault((suite.path.parent / policy).resolve(), []).extend(objects)
    return Examples(found)


def _load(names: Sequence[str]) -> list[JSONObject]:
    values = [each.value for each in expand_lists(load_manifests(names).documents)]
    return [each for each in values if isinstance(each, dict) and each.get("kind")]
