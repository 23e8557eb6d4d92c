"""One test document of `pyverno test`: its files are loaded, its policies asked, its rows checked.

Loading problems of policies end the suite; unreadable resources are reported and left out, as upstream. Judging is the
engine's business, comparing that of `test_check`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from pyverno.cli.evaluate import Evaluation, parse_operation
from pyverno.cli.global_context import global_entries
from pyverno.compiler import Compilation, Compiled, compile_documents
from pyverno.engine.engine import Review
from pyverno.engine.request import Operation, User
from pyverno.errors import PyvernoError, UsageError
from pyverno.kube.documents import Document, expand_lists, load_documents
from pyverno.kube.json import JSONObject
from pyverno.kube.kinds import BUILTIN_KINDS, KindTable
from pyverno.kube.resource import Resource
from pyverno.offline.companions import (
    ContextFile,
    Values,
    read_cluster_resource,
    read_context,
    read_user_info,
    read_values,
)
from pyverno.offline.files import Loaded, find_yaml, load_files, read_file
from pyverno.offline.host import OfflineHost, RecordedAnswer
from pyverno.offline.objects import ObjectStore
from pyverno.offline.resources import normalise, unique
from pyverno.offline.testfile import TestFile

__all__ = ["Judged", "Suite", "load_suite"]

Log = Callable[[str], None]


def _silent(line: str) -> None:
    return None


@dataclass(frozen=True, slots=True)
class Judged:
    """One manifest with what the policies said about it; `operation` is set when a row asked for that one."""

    manifest: JSONObject
    review: Review
    operation: Operation | None = None


@dataclass(slots=True)
class Suite:
    """A loaded test document, ready to be judged."""

    test: TestFile
    folder: Path
    compilation: Compilation
    manifests: list[JSONObject]
    evaluation: Evaluation
    errors: list[PyvernoError] = field(default_factory=list)

    @property
    def invalid(self) -> dict[str, Compiled]:
        """The policies that were refused, by name."""
        return {
            item.written.name: item for item in self.compilation.items if item.errors and item.written is not None
        }

    def judge(self) -> list[Judged]:
        """Ask the policies about every manifest, once as the values say and once per operation that rows ask for."""
        if not self.compilation.policies:
            return []
        judged = []
        asked = {
            parse_operation(row.operation, what="operation") for row in self.test.results if row.operation
        }
        if Operation.CONNECT in asked:
            raise UsageError('invalid operation "CONNECT", must be one of CREATE, UPDATE, DELETE')
        for manifest in self.manifests:
            judged.append(Judged(manifest, self.evaluation.review(manifest)))
            judged.extend(
                Judged(manifest, self.evaluation.review(manifest, operation=operation), operation)
                for operation in sorted(asked)
            )
        return judged


def load_suite(test: TestFile, folder: Path, log: Log = _silent) -> Suite:
    """Load everything that a test document names; raises PyvernoError for what ends the suite."""
    log("  Loading values/variables ...")
    values = _values(test, folder)
    user = User()
    if test.user_info:
        log("  Loading user infos ...")
        user = read_user_info(_one(folder, test.user_info))
    log("  Loading policies ...")
    compilation = _policies(test, folder)
    log("  Loading resources ...")
    kinds, store = _cluster(test, folder)
    loaded = _load(test.resources, folder)
    documents, duplicates = unique(_namespaced(loaded.documents, kinds))
    for duplicate in duplicates:
        view = Resource(duplicate.value)
        log(f"    warning: found duplicated resource {view.kind} {view.name} {view.namespace}")
    if test.cluster_resources:
        log("Loading Kubernetes resources ...")
    log("  Loading exceptions ...")
    exceptions = compile_documents(_required(test.exceptions, folder))
    if exceptions.errors:
        raise exceptions.errors[0]
    context = read_context(_one(folder, test.context)) if test.context else ContextFile()
    host = OfflineHost(
        objects=store,
        targets=_targets(test, folder, kinds),
        answers=tuple(RecordedAnswer(each.target, each.body, each.method, each.status) for each in test.api_call_responses),
        images={str(image.get("image")): image for image in context.images},
        global_entries=global_entries(test, folder, compilation.global_entries, store),
        supply=values.supply,
    )
    manifests = [document.value for document in documents]
    evaluation = Evaluation(
        policies=compilation.policies,
        host=host,
        exceptions=(*compilation.exceptions, *exceptions.exceptions),
        values=values,
        user=user,
        kinds=kinds,
        namespaces={Resource(each).name: each for each in manifests if Resource(each).kind == "Namespace"},
    )
    return Suite(test, folder, compilation, manifests, evaluation, loaded.errors)


def _values(test: TestFile, folder: Path) -> Values:
    if test.values is not None:
        return test.values
    return read_values(_one(folder, test.variables)) if test.variables else Values()


def _one(folder: Path, name: str) -> Document:
    path = folder / name
    documents = load_documents(read_file(path), file=str(path))
    if len(documents) != 1:
        raise UsageError(f"`{path}` must hold one document, found {len(documents)}")
    return documents[0]


def _policies(test: TestFile, folder: Path) -> Compilation:
    return compile_documents(expand_lists(_required(test.policies, folder)))


def _required(names: Sequence[str], folder: Path) -> list[Document]:
    """Read files and folders that must be there."""
    loaded = load_files([str(folder / name) for name in names])
    if loaded.errors:
        raise loaded.errors[0]
    return loaded.documents


def _load(names: Sequence[str], folder: Path) -> Loaded:
    """Read resources: a folder counts only as the first entry (then alone), a bad file is one error."""
    if names and (folder / names[0]).is_dir():
        return load_files([str(path) for path in find_yaml(folder / names[0], recursive=False)])
    return load_files([str(folder / name) for name in names])


def _namespaced(documents: Sequence[Document], kinds: KindTable) -> list[Document]:
    return [
        replace(document, value=normalise(document.value, kinds))
        for document in documents
        if isinstance(document.value, dict)
    ]


def _cluster(test: TestFile, folder: Path) -> tuple[KindTable, ObjectStore | None]:
    if not test.cluster_resources:
        return BUILTIN_KINDS, None
    objects: list[JSONObject] = []
    crds: list[JSONObject] = []
    for name in test.cluster_resources:
        found = read_cluster_resource(_one(folder, name))
        objects.extend(found.resources)
        for crd in found.crds:
            crds.extend(document.value for document in _required([crd], folder))
    kinds = BUILTIN_KINDS.with_crds(crds) if crds else BUILTIN_KINDS
    return kinds, ObjectStore([normalise(each, kinds) for each in objects], kinds)


def _targets(test: TestFile, folder: Path, kinds: KindTable) -> ObjectStore | None:
    names = [*test.target_resources, *(row.clone_source_resource for row in test.results if row.clone_source_resource)]
    if not names:
        return None
    documents = expand_lists(_required(list(dict.fromkeys(names)), folder))
    return ObjectStore([normalise(document.value, kinds) for document in documents], kinds)
