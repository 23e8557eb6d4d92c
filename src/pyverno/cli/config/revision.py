"""The configuration file of a revision of git, for pipelines that judge what others propose."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from pyverno.cli.args.configpath import CONFIG_FILE, PROJECT_FILE, TABLE, searched_folders
from pyverno.errors import UsageError
from pyverno.offline.git.repository import open_repository

__all__ = ["read_at"]

_FLAG: Final = "--config-revision"
_FILES: Final = ((CONFIG_FILE, b""), (PROJECT_FILE, TABLE))


def read_at(revision: str) -> tuple[str, bytes]:
    """Return the path and content of the nearest file as it was in a revision, two empty values if there was none.

    The folders are those in which a file is searched otherwise. Raises UsageError for what is no revision or no
    repository.
    """
    if revision.startswith("-"):
        raise UsageError(f"{_FLAG}: `{revision}` is no revision of git")
    with open_repository(Path.cwd(), _FLAG) as repository:
        files = repository.files(repository.commit(revision))
        searched = map(Path, searched_folders(str(Path.cwd().resolve())))
        for folder in (each for each in searched if each.is_relative_to(repository.root)):
            for name, mark in _FILES:
                path = (folder.relative_to(repository.root) / name).as_posix()
                if path in files and mark in (data := repository.content(files[path], path)):
                    return str(folder / name), data
    return "", b""
