"""The policy library that comes with pyverno: found by name, described by its own annotations.

A name is a path in the library, with or without a leading `@`: a category (`pod-security`), a folder below it
(`pod-security/baseline`) or one control (`best-practices/disallow-latest-tag`); the last part of a control's path is
enough. Names that begin with `cel/` give the same controls as CEL policies.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from pyverno.errors import UsageError
from pyverno.kube.json import JSONObject
from pyverno.kube.yaml.documents import load_documents
from pyverno.offline.files import read_file
from pyverno.spelling import nearest
from pyverno.value import dataclass

# trust rows: package

__all__ = ["CEL_DIALECT", "LIBRARY_SIGN", "Control", "find_controls", "library_root", "list_controls"]

LIBRARY_SIGN = "@"
CEL_DIALECT = "cel"
_CASES = "cases"
_ABOUT = "policies.kyverno.io/"
_STANDARDS = "policies.pyverno.io/standards"


@dataclass(frozen=True, slots=True)
class Control:
    """One control of the library: its path as name, its policy file, and the policy's own description."""

    name: str
    path: Path
    kind: str
    title: str
    category: str
    severity: str
    subject: str
    description: str
    standards: tuple[str, ...] = ()

    @property
    def is_cel(self) -> bool:
        """Whether the policy is one of the CEL kinds."""
        return self.name.startswith(f"{CEL_DIALECT}/")

    @property
    def folder(self) -> Path:
        """The folder with the policy, its README and its cases."""
        return self.path.parent

    def to_json(self) -> JSONObject:
        """Return the control as a JSON object, without its path on this machine."""
        return {
            "name": self.name,
            "kind": self.kind,
            "title": self.title,
            "category": self.category,
            "severity": self.severity,
            "subject": self.subject,
            "standards": list(self.standards),
            "description": self.description,
        }


def library_root() -> Path:
    """Return the folder of the library: `policies` inside of the installed package, or of the source tree."""
    package = Path(__file__).resolve().parents[1]
    for folder in (package / "policies", package.parents[1] / "policies"):
        if (folder / "README.md").is_file():
            return folder
    raise UsageError("the policy library is missing in this installation: install pyverno again")


def list_controls(root: Path | None = None) -> tuple[Control, ...]:
    """Return every control of the library, in both dialects, in the order of their names.

    >>> any(control.name == "best-practices/disallow-latest-tag" for control in list_controls())
    True
    """
    root = library_root() if root is None else root
    return tuple(_control(root, name, path) for name, path in sorted(_policy_files(root)))


def find_controls(name: str, root: Path | None = None) -> tuple[Control, ...]:
    """Return the controls below a name of the library; raises UsageError, with the nearest names, for an unknown one.

    >>> [control.name for control in find_controls("@disallow-latest-tag")]
    ['best-practices/disallow-latest-tag']
    """
    root = library_root() if root is None else root
    return tuple(_control(root, found, path) for found, path in _select(root, name))


def _select(root: Path, name: str) -> list[tuple[str, Path]]:
    wanted = name.removeprefix(LIBRARY_SIGN).strip("/")
    files = sorted(_policy_files(root))
    below = [each for each in files if each[0] == wanted or each[0].startswith(f"{wanted}/")]
    if not below:
        prefix, _, last = wanted.rpartition("/")
        if prefix in ("", CEL_DIALECT):
            below = [
                each
                for each in files
                if each[0].rpartition("/")[2] == last and each[0].startswith(f"{CEL_DIALECT}/") == bool(prefix)
            ]
    if not below:
        raise UsageError(f"no policy `{name}` in the library{_suggest(wanted, files)}; see `pyverno policies list`")
    return below


def _suggest(wanted: str, files: Sequence[tuple[str, Path]]) -> str:
    near = nearest(wanted, {part for name, _ in files for part in _names(name)})
    return f": did you mean `{LIBRARY_SIGN}{near}`?" if near else ""


def _names(name: str) -> Iterator[str]:
    parts = name.split("/")
    for count in range(1, len(parts) + 1):
        yield "/".join(parts[:count])
    yield parts[-1]


def _policy_files(root: Path) -> Iterator[tuple[str, Path]]:
    for path in root.rglob("*.yaml"):
        folder = path.parent
        if _CASES not in path.relative_to(root).parts and (folder / "README.md").is_file():
            yield folder.relative_to(root).as_posix(), path


@cache
def _control(root: Path, name: str, path: Path) -> Control:
    document = load_documents(read_file(path), file=str(path))[0].value
    metadata = document["metadata"]
    annotations = metadata.get("annotations", {})
    about = {key.removeprefix(_ABOUT): str(text) for key, text in annotations.items() if key.startswith(_ABOUT)}
    standards = tuple(each.strip() for each in str(annotations.get(_STANDARDS, "")).split(";") if each.strip())
    return Control(
        name=name,
        path=path,
        kind=str(document["kind"]),
        title=about.get("title", str(metadata["name"])),
        category=about.get("category", ""),
        severity=about.get("severity", ""),
        subject=about.get("subject", ""),
        description=" ".join(about.get("description", "").split()),
        standards=standards,
    )
