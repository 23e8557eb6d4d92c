"""Selection of manifests in a folder: suffixes, globs, `.pyvernoignore`, and files of other tools.

A file that a command line names itself is always read; the rules here are for files found in folders.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path, PurePath

from pyverno.errors import UsageError
from pyverno.kube.json import JSON
from pyverno.offline.folderrules import (
    COMMAND_FILE,
    HELM_TEMPLATES,
    LEADING_DOT,
    LEFT_OUT_FILE,
    LEFT_OUT_FOLDER,
    SPECIAL,
    FolderRules,
    Skipped,
    check_name,
    is_special,
    list_folder,
)
from pyverno.offline.links import FollowedLinks
from pyverno.value import dataclass

# trust rows: ignore-file, judged-file

__all__ = ["IGNORE_FILE", "find_files", "fits_glob", "foreign_reason", "may_be_manifest"]

IGNORE_FILE = ".pyvernoignore"
"""Name of the files with patterns of files and folders that are not read, in the syntax of `.gitignore`."""

_NOT_MANIFESTS = {
    "chart.yaml": "a Helm chart",
    "chart.lock": "a Helm chart",
    "kustomization.yaml": "a kustomization",
    "kustomization.yml": "a kustomization",
}
_FOREIGN_GROUPS = {
    "kustomize.config.k8s.io": "a kustomization",
    "cli.kyverno.io": COMMAND_FILE,
}
_TEMPLATES = "templates"
_OWN_NAMES = frozenset({".git", ".pyverno.yaml"})
"""Names with a leading dot that are not counted: no commit holds the first, and the other is read."""
_TOOLS = frozenset(
    f".{name}" for name in ("cache", "circleci", "devcontainer", "github", "gitlab", "idea", "tox", "venv", "vscode")
)
"""Folders of other tools at the top of a tree: a note about them in every run would hide the others."""
_MOST_READ = 1 << 20


@dataclass(frozen=True, slots=True)
class _Pattern:
    """One line of an ignore file, for paths below `base`."""

    base: PurePath
    glob: str
    is_negated: bool = False
    only_folders: bool = False

    def fits(self, path: PurePath, *, is_folder: bool) -> bool:
        """Return whether the pattern names this path."""
        return (is_folder or not self.only_folders) and fits_glob(path.relative_to(self.base), self.glob)


@dataclass(slots=True)
class _Search:
    """One search below a folder; `skipped` takes what was recognised and left out."""

    root: Path
    rules: FolderRules
    skipped: list[Skipped]
    links: FollowedLinks


def find_files(folder: Path, rules: FolderRules, skipped: list[Skipped]) -> Iterator[Path]:
    """Yield the files below a folder in order of name, and add what is no manifest to `skipped`.

    Names that start with a dot are left out. Raises UsageError for a folder that cannot be read.
    """
    yield from _files(_Search(folder, rules, skipped, FollowedLinks(folder)), folder, ())


def _files(search: _Search, folder: Path, ignored: tuple[_Pattern, ...]) -> Iterator[Path]:
    entries, dotted = list_folder(folder, search.root)
    rules = search.rules
    if rules.skips_foreign:
        ignored += _read_ignore_file(folder, search.root)
        usual = _OWN_NAMES | _TOOLS if folder == search.root else _OWN_NAMES
        unusual = [each for each in dotted if each.name not in usual]
        search.skipped += _dotted(unusual, rules)  # guard: names with a leading dot are counted
    is_chart = rules.skips_foreign and any(entry.name == "Chart.yaml" for entry in entries)
    for entry in entries:
        is_folder = entry.is_dir()
        if not is_folder and not _has_suffix(entry, rules):
            continue
        left_out_by = _left_out_by(search, entry, ignored, is_folder=is_folder)
        if left_out_by:
            what = LEFT_OUT_FOLDER if is_folder else LEFT_OUT_FILE
            search.skipped.append(Skipped(str(entry), what, left_out_by))  # guard: what is left out is counted
            continue
        check_name(entry)
        if search.links.leave_out(entry, search.skipped):
            continue
        if is_folder:
            if is_chart and entry.name == _TEMPLATES:
                search.skipped.append(Skipped(str(entry), HELM_TEMPLATES))
            elif rules.recursive and search.links.should_enter(entry):
                yield from _files(search, entry, ignored)
            continue
        reason = _NOT_MANIFESTS.get(entry.name.lower(), "") if rules.skips_foreign else ""
        reason = reason or (SPECIAL if is_special(entry) else "")
        if reason:
            search.skipped.append(Skipped(str(entry), reason))
        else:
            yield entry


def _dotted(entries: Sequence[Path], rules: FolderRules) -> Iterator[Skipped]:
    """Yield the folders that a leading dot leaves out, and the files that may be manifests."""
    for entry in entries:
        is_folder = entry.is_dir()
        if rules.recursive if is_folder else _has_suffix(entry, rules) and _may_hold_manifest(entry):
            yield Skipped(str(entry), LEFT_OUT_FOLDER if is_folder else LEFT_OUT_FILE, LEADING_DOT)


def _may_hold_manifest(file: Path) -> bool:
    """Return whether a file may be a manifest; one that is large, or cannot be read, may."""
    try:
        return not file.is_file() or file.stat().st_size > _MOST_READ or may_be_manifest(file.read_bytes())
    except OSError:
        return True


def _left_out_by(search: _Search, entry: Path, ignored: Sequence[_Pattern], *, is_folder: bool) -> str:
    """Return the flag or file that leaves out a file or folder, "" if none does."""
    rules, path = search.rules, entry.relative_to(search.root)
    for pattern in reversed(ignored):  # the last one that fits decides
        if pattern.fits(entry, is_folder=is_folder):
            if not pattern.is_negated:
                return str(pattern.base / IGNORE_FILE)
            break
    if any(fits_glob(path, glob) for glob in rules.exclude):
        return "--exclude"
    is_included = is_folder or not rules.include or any(fits_glob(path, glob) for glob in rules.include)
    return "" if is_included else "--include"


def _has_suffix(path: Path, rules: FolderRules) -> bool:
    return (path.suffix.lower() if rules.skips_foreign else path.suffix) in rules.suffixes


def _read_ignore_file(folder: Path, root: Path) -> tuple[_Pattern, ...]:
    path = folder / IGNORE_FILE
    if not path.is_file():
        return ()
    if path.is_symlink() and not path.resolve().is_relative_to(root.resolve()):
        text = f"`{path}` is a link that leads out of `{root}`"
        raise UsageError(text, file=str(path))  # guard: patterns come from no file outside
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read `{path}`: it is not a readable text file", file=str(path)) from error
    return tuple(_parse_pattern(folder, line.strip()) for line in lines if line.strip() and line.strip()[0] != "#")


def _parse_pattern(folder: Path, line: str) -> _Pattern:
    is_negated = line.startswith("!")
    glob = line[1:] if is_negated else line
    only_folders = glob.endswith("/")
    return _Pattern(folder, glob.rstrip("/"), is_negated, only_folders)


def fits_glob(path: PurePath, glob: str) -> bool:
    """Return whether a glob names a relative path.

    >>> fits_glob(PurePath("a/b/pod.yaml"), "*.yaml"), fits_glob(PurePath("a/b/pod.yaml"), "a/**/pod.yaml")
    (True, True)
    >>> fits_glob(PurePath("a/b/pod.yaml"), "/*.yaml"), fits_glob(PurePath("a/b/pod.yaml"), "a/*.yaml")
    (False, False)
    """
    if "/" not in glob:
        return fnmatchcase(path.name, glob)
    # a pattern for the first parts names everything below them
    wanted = tuple(part for part in glob.split("/") if part not in ("", "."))
    return _fit_parts(path.parts, wanted)


def _fit_parts(parts: Sequence[str], wanted: Sequence[str]) -> bool:
    reached = {0}
    for part in parts:
        following: set[int] = set()
        for position in _through_stars(reached, wanted):
            if position == len(wanted):
                continue
            if wanted[position] == "**":
                following.add(position)
            elif fnmatchcase(part, wanted[position]):
                following.add(position + 1)
        reached = following
    return len(wanted) in _through_stars(reached, wanted)


def _through_stars(reached: set[int], wanted: Sequence[str]) -> set[int]:
    """Add the positions behind each `**`, which also fits no folder at all."""
    found = set(reached)
    for position, part in enumerate(wanted):
        if part == "**" and position in found:
            found.add(position + 1)
    return found


def foreign_reason(values: Sequence[JSON]) -> str:
    """Return the reason why no document of a file can be an object of a cluster, "" if one can.

    >>> foreign_reason([{"replicaCount": 1}])
    'no manifest: apiVersion and kind are missing'
    >>> foreign_reason([{"replicaCount": 1}, {"kind": "Pod"}])
    ''
    """
    if not values:
        return "empty"
    reasons = [_foreign_document(value) for value in values]
    return reasons[0] if all(reasons) else ""


def _foreign_document(value: JSON) -> str:
    if not isinstance(value, dict) or ("apiVersion" not in value and "kind" not in value):
        return "no manifest: apiVersion and kind are missing"
    group = value.get("apiVersion")
    return _FOREIGN_GROUPS.get(group.partition("/")[0], "") if isinstance(group, str) else ""


def may_be_manifest(data: bytes) -> bool:
    """Return whether a file that cannot be parsed may have been meant as a manifest: both words occur in it."""
    text = data.lower()
    return b"apiversion" in text and b"kind" in text
