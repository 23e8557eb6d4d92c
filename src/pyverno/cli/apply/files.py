"""Changed and generated objects of `pyverno apply`, written to one file or into a folder.

A named file (.yaml or .yml) starts empty and receives all objects; in a folder each object is appended to the file of
its name. Names come from resources and policies, so they are never trusted as paths.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from pyverno.errors import UsageError
from pyverno.kube.json import JSON
from pyverno.kube.resource import Resource
from pyverno.kube.yaml.writer import dump_yaml
from pyverno.offline.files import SUFFIXES
from pyverno.sinks.filenames import file_name, inside

# trust rows: output-file

__all__ = ["ObjectFiles"]

_FOLDER_MODE = 0o700
_FILE_MODE = 0o600
_NO_LINKS = getattr(os, "O_NOFOLLOW", 0)  # Windows has none


class ObjectFiles:
    """Writes objects below a path; raises UsageError when the path cannot be used."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._is_folder = path.suffix not in SUFFIXES
        try:
            if self._is_folder:
                path.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
            else:
                path.parent.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
                self._write(path, "", os.O_TRUNC)
        except OSError as error:
            raise _refusal(path, error) from error

    def write_mutated(self, document: JSON, name: str = "") -> None:
        """Append a changed object (`NAME-mutated.yaml` in a folder); `name` is the one it had before."""
        view = Resource(document if isinstance(document, dict) else {})
        self._append(f"{name or view.name or view.generate_name or 'unnamed'}-mutated", document)

    def write_generated(self, policy: str, document: JSON) -> None:
        """Append a generated object (`POLICY-generated.yaml` in a folder)."""
        self._append(f"{policy}-generated", document)

    def _append(self, name: str, document: JSON) -> None:
        path = self._path
        if self._is_folder:
            path = inside(path, file_name(name, ".yaml"))
        text = dump_yaml(document, indent=4, indent_lists=True) + "\n---\n\n"
        try:
            self._write(path, text, os.O_APPEND)
        except OSError as error:
            raise _refusal(path, error) from error

    @staticmethod
    def _write(path: Path, text: str, how: int) -> None:
        # never write through a link; objects may be Secrets, so only the user may read the files
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | _NO_LINKS | how, _FILE_MODE)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            found = os.fstat(descriptor)
            if hasattr(os, "fchmod") and stat.S_ISREG(found.st_mode) and found.st_mode & 0o077:
                os.fchmod(descriptor, _FILE_MODE)
            file.write(text)


def _refusal(path: Path, error: OSError) -> UsageError:
    why = "it is a symbolic link" if error.errno == errno.ELOOP else (error.strerror or str(error)).lower()
    return UsageError(f"cannot write to `{path}`: {why}")
