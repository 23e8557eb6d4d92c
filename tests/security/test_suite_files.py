"""A test suite of a repository of others names files of that repository only: every field, by enumeration."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from pyverno.cli.test.check import check_rows, missing_files
from pyverno.cli.test.suite import load_suite
from pyverno.errors import PyvernoError
from pyverno.kube.yaml.documents import load_documents
from pyverno.offline.testfile import ExpectedResult, TestFile, read_test_file

_POLICY = """apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  rules:
  - name: r
    match: {any: [{resources: {kinds: [Pod]}}]}
    mutate: {patchStrategicMerge: {metadata: {labels: {a: b}}}}
"""
_POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n"
_ROW: dict[str, Any] = {"policy": "p", "rule": "r", "resources": ["a"], "kind": "Pod", "result": "pass"}
_SUITE: dict[str, Any] = {
    "apiVersion": "cli.kyverno.io/v1alpha1",
    "kind": "Test",
    "metadata": {"name": "a"},
    "policies": ["p.yaml"],
    "resources": ["pod.yaml"],
    "results": [_ROW],
}
_TEXTS = ("str", "tuple[str, ...]")


def _names(kind: Any) -> list[str]:
    return [each.name for each in dataclasses.fields(kind) if each.type in _TEXTS]


_FIELDS = [
    *(("", name) for name in _names(TestFile) if name != "name"),
    *(("results", name) for name in _names(ExpectedResult)),
    ("clusterResources", "crds"),
    ("globalContextEntries", "resource_files"),
]
_FILES = {
    *(("", name) for name in ("policies", "resources", "user_info", "variables", "context", "exceptions")),
    *(("", name) for name in ("target_resources", "json_payloads", "http_payloads", "cluster_resources")),
    ("results", "patched_resources"),
    ("clusterResources", "crds"),
}
"""Some of those that are names of files: the test must see that they are read."""


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(each.capitalize() for each in others)


def _suite(root: Path, place: str, name: str, value: str) -> Path:
    """Write a suite whose field is a name."""
    suite = {**_SUITE, "results": [dict(_ROW)]}
    for lists in (False, True):
        found: Any = [value] if lists else value
        if place == "":
            suite[_camel(name)] = found
        elif place == "results":
            suite["results"][0][_camel(name)] = found
        elif place == "clusterResources":
            cluster = {"apiVersion": "cli.kyverno.io/v1alpha1", "kind": "ClusterResource", "metadata": {"name": "a"}}
            (root / "suite" / "cluster.yaml").write_text(yaml.safe_dump({**cluster, "spec": {"crds": [value]}}))
            suite["clusterResources"] = ["cluster.yaml"]
        else:
            suite["globalContextEntries"] = [{"name": "a", "resourceFiles": [value]}]
        path = root / "suite" / "kyverno-test.yaml"
        path.write_text(yaml.safe_dump(suite))
        with suppress(PyvernoError):
            read_test_file(load_documents(path.read_bytes())[0])
            break
    return path


_OPENED: list[str] = []
_IS_RECORDING: list[bool] = []


def _record(event: str, arguments: tuple[Any, ...]) -> None:
    if _IS_RECORDING and event == "open" and isinstance(arguments[0], str):
        _OPENED.append(arguments[0])


@cache
def _install() -> None:
    sys.addaudithook(_record)  # none can be removed


@contextmanager
def _recording() -> Iterator[list[str]]:
    _install()
    _OPENED.clear()
    _IS_RECORDING.append(True)
    try:
        yield _OPENED
    finally:
        _IS_RECORDING.clear()


def _run(path: Path, root: Path | None) -> bool:
    """Run a suite; return whether it opened the file outside."""
    with _recording() as opened, suppress(PyvernoError):
        test = read_test_file(load_documents(path.read_bytes(), file=str(path))[0])
        suite = load_suite(test, path.parent, roots=() if root is None else (root,))
        judged = suite.judge()
        missing_files(suite, list(check_rows(suite, judged, test.results)))
    return any(each.endswith("outside.yaml") for each in opened)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository with a suite; beside it a file of the machine."""
    found = tmp_path / "repository"
    (found / "suite" / "d").mkdir(parents=True)
    (found / "suite" / "p.yaml").write_text(_POLICY)
    (found / "suite" / "pod.yaml").write_text(_POD)
    (found / "shared.yaml").write_text(_POD)
    (tmp_path / "outside.yaml").write_text("secret: 1\n")
    return found


@pytest.mark.parametrize(("place", "name"), _FIELDS)
def test_a_suite_of_others_stays_in_its_repository(root: Path, place: str, name: str) -> None:
    """No name leads to a file of the machine: absolute, by dots, or by a pattern."""
    outside = root.parent / "outside.yaml"
    names = ("../../outside.yaml", str(outside), "d/../../../outside.yaml", "**/../../../outside.yaml", "../../*.yaml")
    opened = [each for each in names if _run(_suite(root, place, name, each), root)]
    assert [] == opened
    if (place, name) in _FILES:
        assert _run(_suite(root, place, name, "../../outside.yaml"), None)


def test_a_suite_names_other_folders_of_its_repository(root: Path) -> None:
    """The twin: policies are often beside their tests."""
    path = _suite(root, "", "resources", "../shared.yaml")
    test = read_test_file(load_documents(path.read_bytes(), file=str(path))[0])
    assert 1 == len(load_suite(test, path.parent, roots=(root,)).manifests)
