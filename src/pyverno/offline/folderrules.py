"""Rules for searching folders, and the files that a search left out."""

from __future__ import annotations

from pyverno.value import dataclass

__all__ = ["COMMAND_FILE", "HELM_TEMPLATES", "FolderRules", "Skipped"]

HELM_TEMPLATES = "Helm templates"
"""The note for the folder `templates` of a chart."""

COMMAND_FILE = "a file of the command line"
"""The note for test suites, values files and other files that belong beside policies."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file or folder that was skipped, with the reason."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class FolderRules:
    """Rules for searching folders.

    `include` and `exclude` are globs: without a slash they fit a name at any depth, with one the path below the folder
    (`**` fits any number of folders). `skips_foreign` leaves out what is recognised as no manifest.
    """

    recursive: bool = True
    suffixes: tuple[str, ...] = (".yaml", ".yml", ".json")
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    skips_foreign: bool = True
