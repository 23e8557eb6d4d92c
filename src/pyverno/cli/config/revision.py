"""The configuration file of a revision of git, for pipelines that judge what others propose."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from pyverno.cli.args.configpath import CONFIG_FILE, PROJECT_FILE, TABLE, searched_folders
from pyverno.offline.adoption.changes import file_at

__all__ = ["read_at"]

_FILES: Final = ((CONFIG_FILE, b""), (PROJECT_FILE, TABLE))


def read_at(revision: str) -> tuple[str, bytes]:
    """Return the path and content of the nearest file as it was in a revision, two empty values if there was none.

    The folders are those in which a file is searched otherwise. Raises UsageError for an unknown revision.
    """
    folders = searched_folders(str(Path.cwd()))
    root = Path(folders[-1])
    for folder in folders:
        for name, mark in _FILES:
            path = Path(folder) / name
            data = file_at(root, revision, path.relative_to(root).as_posix(), flag="--config-revision")
            if data is not None and mark in data:
                return str(path), data
    return "", b""
