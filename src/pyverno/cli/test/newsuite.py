"""`pyverno test --write` for a folder without a suite: a test file of its policies, exceptions and manifests.

`test.write` adds the rows afterwards, from the engine's results.
"""

from __future__ import annotations

import os
from pathlib import Path

from pyverno.cli.skipped import report_skipped
from pyverno.errors import UsageError, raise_all
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.yaml.writer import dump_yaml
from pyverno.offline.clifiles import API_VERSION
from pyverno.offline.files import load_files
from pyverno.offline.folderrules import FolderRules
from pyverno.offline.links import OUTSIDE
from pyverno.policy.kinds import is_policy

# trust rows: judged-file

__all__ = ["make_suite"]

_EXCEPTION = "PolicyException"


def make_suite(folder: Path, file_name: str) -> Path:
    """Write a test file without rows into a folder and return its path.

    Raises UsageError for a folder without policies or without manifests, and for files that cannot be read.
    """
    files = _files(folder)
    for part, noun in (("policies", "policy"), ("resources", "resource")):
        if not files[part]:
            raise UsageError(f"`{folder}` has no {noun}, so that --write has nothing to test", file=str(folder))
    suite: JSONObject = {
        "apiVersion": API_VERSION,
        "kind": "Test",
        "metadata": {"name": folder.resolve().name or "policies"},
        **{part: names for part, names in files.items() if names},
        "results": [],
    }
    path = folder / file_name
    _create(path, dump_yaml(suite, sort_keys=False, indent_lists=True))
    return path


def _files(folder: Path) -> dict[str, list[str]]:
    """Return the names of the files below a folder, each in the list of a test file that it belongs to."""
    loaded = load_files([str(folder)], folders=FolderRules())
    raise_all(loaded.errors)
    report_skipped([each for each in loaded.skipped if each.left_out_by or each.reason == OUTSIDE])
    kinds: dict[str, set[str]] = {}
    for document in loaded.documents:
        name = Path(document.file).relative_to(folder).as_posix()
        kinds.setdefault(name, set()).add(_part(document.value))
    files: dict[str, list[str]] = {"policies": [], "exceptions": [], "resources": []}
    for name, parts in kinds.items():
        # a file of policies must hold nothing else, which loading it reports
        files[next(part for part in files if part in parts)].append(name)
    return files


def _part(value: JSON) -> str:
    if isinstance(value, dict) and value.get("kind") == _EXCEPTION:
        return "exceptions"
    return "policies" if is_policy(value) else "resources"


def _create(path: Path, text: str) -> None:
    """Write a file that does not exist yet; raises UsageError where that fails."""
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), "wb") as file:
            file.write(text.encode())
    except OSError as error:
        raise UsageError(f"cannot write `{path}`: {(error.strerror or str(error)).lower()}") from error
