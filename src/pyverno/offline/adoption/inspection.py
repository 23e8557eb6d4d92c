"""Charts and kustomizations, read before a program renders them: nothing of them lies elsewhere or is a program.

The programs themselves read what a kustomization names: web addresses and repositories of git by default, and files
through links. Whoever wrote the tree would choose what is fetched, and by whose credentials, or which file of this
machine is printed. Names of fields are compared without case, as the programs do.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NoReturn, TypeAlias

from pyverno.errors import UsageError
from pyverno.kube.json import JSON
from pyverno.kube.yaml.documents import Document, load_documents
from pyverno.lazyregex import regex
from pyverno.offline.files import read_file
from pyverno.offline.folderrules import check_depth, check_regular
from pyverno.offline.links import is_inside, tree_root
from pyverno.value import dataclass, field, replace

# trust rows: chart

__all__ = ["check_chart", "check_kustomization"]

Place: TypeAlias = tuple[str | int, ...]

_NAMES: Final = ("kustomization.yaml", "kustomization.yml", "Kustomization")
_MOST: Final = 10_000

_FOLDERS: Final = frozenset({"resources", "bases", "components"})
"""Fields with files and folders; those folders have kustomizations of their own."""
_CONFIGURATIONS: Final = frozenset({"generators", "transformers", "validators"})
"""Fields with configurations of parts of kustomize, in files, in folders or as text."""
_FILES: Final = frozenset({
    *("crds", "configurations", "patches", "patchesstrategicmerge", "path", "paths", "files", "file", "env", "envs"),
    *("valuesfile", "valuesfiles", "additionalvaluesfiles"),
})  # fmt: skip
_WITH_KEYS: Final = frozenset({"files", "env", "envs"})
"""Fields whose files may be written `KEY=FILE`."""
_CHARTS: Final = frozenset({"helmcharts", "helmchartinflationgenerator"})
_DATA: Final = frozenset({
    *("labels", "commonlabels", "annotations", "commonannotations", "pairs", "images", "replicas", "literals"),
    *("source", "target", "targets", "metadata", "valuesinline"),
})  # fmt: skip
"""Fields whose content is data, in which names of files have no meaning."""
_PLAIN: Final = frozenset({"apiversion", "kind", "metadata", "resources"})
_FUNCTIONS: Final = ("config.kubernetes.io/function", "config.k8s.io/function")

_REMOTE: Final = regex(
    r"(?i)[a-z][a-z0-9+.\-]*:.*|.*(://|::|\?).*|(www\.)?github\.com[/:].*|gh:.*|[^/]*@.*|.*\.git(/.*)?|(.*/)?_git/.*"
)
"""What kustomize, of any version, may take for the address of a repository or a file elsewhere."""
_INLINE_FIELDS: Final = _CONFIGURATIONS | {"patches", "patchesstrategicmerge"}
_INLINE: Final = regex(r"(?s).*(\n|\{|: ).*")

_HINT: Final = "`--remote-bases` allows it"
_PIPE: Final = "render it yourself, and pass the manifests with `-r -`"


def check_chart(chart: Path) -> None:
    """Raise UsageError for a chart with a link out of its repository, or with a pipe, a socket or a device.

    A chart that is a file is an archive, from which helm takes no links.
    """
    if not chart.is_dir():
        return
    root = tree_root(chart) or chart.resolve()
    for number, path in enumerate(_below(chart, chart, set())):
        if number > _MOST * 10:
            raise UsageError(f"`{chart}` has more than {_MOST * 10} files", file=str(chart))
        if path.is_symlink() and not is_inside(path, root):  # guard: a chart has no links out of its repository
            text = f"`{path}` is a link to a place outside of `{root}`: helm would print what is there"
            raise UsageError(text, file=str(path))
        check_regular(path)  # guard: a chart has no pipes


def _below(folder: Path, chart: Path, seen: set[str]) -> Iterator[Path]:
    check_depth(folder, chart)
    real = os.path.realpath(folder)
    if real in seen:
        return
    seen.add(real)
    try:
        entries = sorted(folder.iterdir())
    except OSError as error:
        raise UsageError(f"cannot read folder `{folder}`: {(error.strerror or str(error)).lower()}") from error
    for entry in entries:
        yield entry
        if entry.is_dir():
            yield from _below(entry, chart, seen)


def check_kustomization(folder: Path) -> None:
    """Raise UsageError, with its place, for what a kustomization or one of its bases has elsewhere or wants to run."""
    _Inspection(tree_root(folder) or folder.resolve()).folder(folder)


@dataclass(frozen=True, slots=True)
class _Scope:
    """A document with the folder from which it names files, as kustomize does it.

    `owner` is the folder of the kustomization of whose parts the objects are configurations; None for plain objects.
    """

    document: Document
    base: Path
    owner: Path | None = None

    def refuse(self, place: Place, text: str, hint: str) -> NoReturn:
        """Raise UsageError for what stands at a place."""
        raise UsageError(f"{text} ({hint})", location=self.document.location(place))


@dataclass(slots=True)
class _Inspection:
    """One inspection of a kustomization with everything it names, below `root`."""

    root: Path
    seen: set[tuple[str, bool]] = field(default_factory=set)

    def folder(self, folder: Path, owner: Path | None = None) -> None:
        """Inspect the kustomization of a folder; one whose objects are configurations must be plain."""
        folder = _settled(folder)
        check_depth(folder.resolve(), self.root)
        for name in _NAMES:
            path = folder / name
            if os.path.lexists(path):
                if not is_inside(path, self.root):  # guard: a kustomization is no link out of its tree
                    raise UsageError(f"`{path}` is outside of `{self.root}` ({_HINT})", file=str(path))
                for document in self._documents(path, is_configuration=owner is not None):
                    self._fields(_Scope(document, folder, owner), document.value, ())

    def _documents(self, path: Path, *, is_configuration: bool) -> tuple[Document, ...]:
        """Return the documents of a file; none if it was inspected before."""
        key = (os.path.realpath(path), is_configuration)
        if key in self.seen:
            return ()
        self.seen.add(key)
        if len(self.seen) > _MOST:
            raise UsageError(f"`{path}` and others: more than {_MOST} files of kustomizations", file=str(path))
        return load_documents(read_file(check_regular(path)), file=str(path))

    def _fields(self, scope: _Scope, value: JSON, at: Place) -> None:
        """Inspect the fields of a kustomization, or of the configuration of a part of kustomize, at any depth."""
        if isinstance(value, list):
            for index, each in enumerate(value):
                self._fields(scope, each, (*at, index))
        if not isinstance(value, dict):
            return
        for key, each in value.items():
            name, place = key.casefold(), (*at, key)
            if name in _CHARTS and each:  # guard: a kustomization renders no chart
                scope.refuse(place, f"`{key}` fetches and runs charts, which is not done here", _PIPE)
            if scope.owner is not None and not at and name not in _PLAIN:
                scope.refuse(place, f"`{key}` would change what kustomize runs, which is not done here", _PIPE)
            if name in _FOLDERS or name in _CONFIGURATIONS or name in _FILES:
                self._references(scope, name, each, place)
            elif name not in _DATA:
                self._fields(scope, each, place)

    def _references(self, scope: _Scope, name: str, value: JSON, place: Place) -> None:
        if isinstance(value, list):
            for index, each in enumerate(value):
                self._references(scope, name, each, (*place, index))
        elif isinstance(value, dict):
            self._fields(scope, value, place)
        elif isinstance(value, str) and value:
            configures = name in _CONFIGURATIONS or (scope.owner is not None and name in _FOLDERS)
            owner = (scope.owner or scope.base) if configures else None
            if name not in _INLINE_FIELDS or not _INLINE.fullmatch(value):
                self._reference(scope, name, value, place, owner)
            elif owner is not None:
                for document in load_documents(value, file=scope.document.file):
                    self._configuration(replace(scope, base=owner), document.value, place)

    def _reference(self, scope: _Scope, name: str, text: str, place: Place, owner: Path | None) -> None:
        named = text.partition("=")[2] if name in _WITH_KEYS and "=" in text else text
        if _REMOTE.fullmatch(named) or _REMOTE.fullmatch(text):  # guard: a kustomization names no other machine
            scope.refuse(place, f"`{text}` is on another machine, from which nothing is fetched", _HINT)
        path = Path(os.path.normpath(scope.base / named))
        if not is_inside(path, self.root):  # guard: a kustomization names nothing outside of its repository
            scope.refuse(place, f"`{text}` is outside of `{self.root}`", _HINT)
        if not path.exists():
            raise UsageError(f"`{text}` does not exist", location=scope.document.location(place))
        if path.is_dir():
            self.folder(path, owner)
            return
        check_regular(path)
        for document in self._documents(path, is_configuration=True) if owner is not None else ():
            self._configuration(_Scope(document, owner or scope.base), document.value, ())

    def _configuration(self, scope: _Scope, value: JSON, at: Place) -> None:
        """Inspect the configuration of a part of kustomize, which may be a program or a function in a container."""
        if not isinstance(value, dict):
            return
        fields = {key.casefold(): each for key, each in value.items()}
        kind, metadata = fields.get("kind"), fields.get("metadata")
        annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
        runs = isinstance(annotations, dict) and any(each in annotations for each in _FUNCTIONS)
        if runs or fields.get("apiversion") != "builtin":  # guard: a kustomization runs no program
            scope.refuse(at, f"`{kind}` is a program or a function, which is not run", _PIPE)
        if str(kind).casefold() in _CHARTS:
            scope.refuse(at, f"`{kind}` fetches and runs charts, which is not done here", _PIPE)
        self._fields(replace(scope, owner=None), value, at)


def _settled(folder: Path) -> Path:
    """Return a folder as it is written if no link is in it, else the real one, from which kustomize counts `..`."""
    real = Path(os.path.realpath(folder))
    return folder if real == Path.cwd().resolve() / os.path.normpath(folder) else real
