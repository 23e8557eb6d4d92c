"""A test suite made from a review: its texts as files, and a `kyverno-test.yaml` that expects its results."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator, Mapping
from typing import Final

from pyverno.kube.json import JSONObject
from pyverno.kube.yaml.writer import dump_yaml

__all__ = ["suite_files", "zip_files"]

_LISTS: Final = {
    "policies": "policies",
    "resources": "resources",
    "exceptions": "exceptions",
    "clusterResources": "clusterResources",
}
_SINGLES: Final = {"values": "variables", "userInfo": "userinfo", "context": "context"}
_MUTATION: Final = "Mutation"
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)


def suite_files(request: JSONObject, answer: JSONObject, name: str = "playground") -> Mapping[str, str]:
    """Return the files of a suite by name, given the request of a review and its answer.

    Old resources and definitions of custom kinds have no field in a suite and are left out.
    """
    files: dict[str, str] = {}
    suite: JSONObject = {"apiVersion": "cli.kyverno.io/v1alpha1", "kind": "Test", "metadata": {"name": name}}
    for text, field in (*_LISTS.items(), *_SINGLES.items()):
        if str(request.get(text) or "").strip():
            file = f"{text}.yaml"
            files[file] = request[text]
            suite[field] = [file] if text in _LISTS else file
    rows: list[JSONObject] = []
    for number, review in enumerate(answer["reviews"]):
        changed = _only_change(review)
        if changed:
            files[f"patched-{number}.yaml"] = review["after"]
        for row in _rows(review, str(request.get("operation") or "")):
            if changed == (row["policy"], row.get("rule", "")):
                row["patchedResources"] = f"patched-{number}.yaml"
            rows.append(row)
    suite["results"] = rows
    return {"kyverno-test.yaml": dump_yaml(suite, sort_keys=False), **files}


def zip_files(files: Mapping[str, str], folder: str = "playground") -> bytes:
    """Return a ZIP file with the files in a folder; equal files give equal bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(zipfile.ZipInfo(f"{folder}/{name}", _EPOCH), text)
    return buffer.getvalue()


def _rows(review: JSONObject, operation: str) -> Iterator[JSONObject]:
    for result in review["results"]:
        resource = result["resource"]
        name, namespace = resource.get("name", ""), resource.get("namespace", "")
        row = {
            "policy": result["policy"],
            "rule": result["rule"],
            "resources": [f"{namespace}/{name}" if namespace else name],
            "kind": resource.get("kind", ""),
            "operation": operation,
            "result": result["status"],
        }
        yield {key: value for key, value in row.items() if value}


def _only_change(review: JSONObject) -> tuple[str, str] | None:
    """Return policy and rule of the one rule that changed the resource; None when there are several, or none."""
    found = [each for each in review["results"] if each["type"] == _MUTATION and each["status"] == "pass"]
    return (found[0]["policy"], found[0]["rule"]) if "after" in review and len(found) == 1 else None
