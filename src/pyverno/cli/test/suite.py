"""One test document of `pyverno test`: its files are loaded into a session, and its manifests reviewed.

A policy that cannot be loaded ends the suite; unreadable resources are reported and left out, as in Kyverno.
`test.check` compares the results with the expected ones.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pyverno.cli.test.suitefolder import SuiteFolder
from pyverno.compiler import Compilation, Compiled, compile_documents
from pyverno.engine.engine import Review
from pyverno.engine.request import Operation, User
from pyverno.engine.result import ResourceRef
from pyverno.errors import CombinedError, PyvernoError, UsageError, raise_all
from pyverno.kube.json import JSONObject
from pyverno.kube.kinds import KindTable
from pyverno.kube.resource import Resource
from pyverno.kube.yaml.documents import Document, expand_lists, load_documents
from pyverno.offline.authorizationrequests import load_authorization_requests
from pyverno.offline.clifiles import (
    ContextFile,
    read_cluster_resource,
    read_context,
    read_user_info,
    read_values,
)
from pyverno.offline.files import Loaded, find_yaml, load_files, read_file
from pyverno.offline.globalentries import mocked_data
from pyverno.offline.host import RecordedAnswer
from pyverno.offline.objects import ObjectStore
from pyverno.offline.policies import load_policy_documents
from pyverno.offline.resources import normalise, read_objects, unique
from pyverno.offline.session import CLEANUP_KINDS, DELETING_KINDS, Session
from pyverno.offline.system import System
from pyverno.offline.testfile import TestFile
from pyverno.offline.values import Values
from pyverno.policy.kinds import KNOWN_KINDS
from pyverno.value import dataclass, field, replace

if TYPE_CHECKING:
    from pyverno.engine.explain.nodes import RuleTrace
    from pyverno.engine.imagesource import ImageSource

__all__ = ["ReviewedManifest", "Suite", "load_suite"]

Log = Callable[[str], None]


def _silent(line: str) -> None:
    return None


@dataclass(frozen=True, slots=True)
class ReviewedManifest:
    """The review of one manifest.

    `operation` is set when a row names one; `payload` is the path of a payload as rows name it. `traces` are
    those of its rules, when the session collects explanations.
    """

    manifest: JSONObject
    review: Review
    operation: Operation | None = None
    payload: str = ""
    traces: tuple[RuleTrace, ...] = ()


@dataclass(slots=True)
class Suite:
    """A loaded test document."""

    test: TestFile
    folder: SuiteFolder
    manifests: list[JSONObject]
    session: Session
    payloads: list[tuple[str, JSONObject]] = field(default_factory=list)
    checks: list[tuple[str, str, JSONObject]] = field(default_factory=list)
    errors: list[PyvernoError] = field(default_factory=list)
    expected: dict[str, Mapping[ResourceRef, Sequence[JSONObject]]] = field(default_factory=dict)
    """Files of expected objects that were read."""
    _by_name: dict[str, list[Compiled]] = field(init=False)

    def __post_init__(self) -> None:
        self._by_name = {}
        for item in self.compilation.items:
            if item.policy is not None and not item.errors and item.policy.info.kind not in CLEANUP_KINDS:
                self._by_name.setdefault(item.policy.info.name, []).append(item)

    @property
    def compilation(self) -> Compilation:
        """The compiled policies, also those that are not valid."""
        return self.session.compilation

    @property
    def invalid(self) -> dict[str, Compiled]:
        """The policies that are not valid, by name."""
        return {item.written.name: item for item in self.compilation.items if item.errors and item.written is not None}

    def policies_named(self, name: str) -> Sequence[Compiled]:
        """Return the valid policies of a name; `test` never runs cleanup policies."""
        return self._by_name.get(name, ())

    def judge(self) -> list[ReviewedManifest]:
        """Review every manifest, once with the operation of the values and once per operation that rows name."""
        judged = []
        operations = {_row_operation(row.operation) for row in self.test.results if row.operation}
        deletes = any(policy.info.kind in DELETING_KINDS for policy in self.compilation.policies)
        if deletes and operations:
            raise UsageError("operation is not supported for deleting policies")
        for manifest in self.manifests:
            review = self.session.review(manifest)
            if deletes:
                # `test` never runs cleanup policies
                found = self.session.deletions(manifest, DELETING_KINDS)
                review = replace(review, results=(*review.results, *found))
            judged.append(self._review(manifest, review))
            judged.extend(
                self._review(manifest, self.session.review(manifest, operation=operation), operation)
                for operation in sorted(operations)
            )
        judged.extend(
            self._review(document, self.session.payload(document), payload=name) for name, document in self.payloads
        )
        judged.extend(
            self._review(document, self.session.check(document, mode), payload=name)
            for mode, name, document in self.checks
        )
        return judged

    def _review(
        self, manifest: JSONObject, review: Review, operation: Operation | None = None, payload: str = ""
    ) -> ReviewedManifest:
        collected = self.session.explanations
        if not collected:
            return ReviewedManifest(manifest, review, operation, payload)
        traces = tuple(trace for each in collected for trace in each.rules)
        collected.clear()
        return ReviewedManifest(manifest, review, operation, payload, traces)


def _row_operation(text: str) -> Operation:
    if text not in ("CREATE", "UPDATE", "DELETE"):
        raise UsageError(f'invalid operation "{text}", must be one of CREATE, UPDATE, DELETE')
    return Operation(text)


@contextmanager
def _loading(what: str) -> Iterator[None]:
    """Name what could not be loaded."""
    try:
        yield
    except CombinedError as error:
        raise CombinedError([_failed_loading(what, part) for part in error.parts]) from error
    except PyvernoError as error:
        raise _failed_loading(what, error) from error


def _failed_loading(what: str, cause: PyvernoError) -> UsageError:
    error = UsageError(f"failed to load {what} ({cause})")
    error.__cause__ = cause
    return error


def load_suite(
    test: TestFile,
    path: Path,
    log: Log = _silent,
    registries: ImageSource | None = None,
    roots: tuple[Path, ...] = (),
    *,
    looks_up: bool = False,
) -> Suite:
    """Load everything that a test document in the folder `path` names; raises UsageError for what ends the suite.

    `registries` read the images that its Context file does not record. With `roots`, files
    outside of these folders are not read. With `looks_up`, names of hosts are looked up.
    """
    folder = SuiteFolder(path, roots)
    log("  Loading values/variables ...")
    with _loading("values/variables"):
        values = _values(test, folder)
    user = User()
    if test.user_info:
        log("  Loading user infos ...")
        with _loading("request info"):
            user = read_user_info(_one(folder, test.user_info))
    log("  Loading policies ...")
    with _loading("policies"):
        compilation = _policies(test, folder)
    log("  Loading resources ...")
    with _loading("Kubernetes resources"):
        kinds, store = _cluster(test, folder)
    loaded = _load(test.resources, folder)
    valid, errors = read_objects(loaded.documents)
    documents, duplicates = unique(replace(each, value=normalise(each.value, kinds)) for each in valid)
    for duplicate in duplicates:
        view = Resource(duplicate.value)
        log(f"  warning: found duplicated resource {view.kind} {view.name} {view.namespace}")
    with _loading("JSON payloads"):
        payloads = _payloads(test, folder, log)
    checks = _checks(test, folder, log)
    with _loading("target resources"):
        targets = _targets(test, folder, kinds)
    if test.cluster_resources:
        log("Loading Kubernetes resources ...")
    log("  Loading exceptions ...")
    with _loading("exceptions"):
        exceptions = _exceptions(test, folder)
        _refuse_mixture(compilation, exceptions)
    with _loading("context"):
        context = read_context(_one(folder, test.context)) if test.context else ContextFile()
    if context.resources:
        known = [normalise(each, kinds) for each in context.resources]
        store = ObjectStore([*(store.objects if store is not None else ()), *known], kinds)
    manifests = [document.value for document in documents]
    for name in (name for row in test.results for name in row.object_files):
        _ = folder / name  # read later, when a name outside of the root would end all suites
    session = Session.open(
        compilation,
        exceptions=exceptions,
        global_data=mocked_data(test.global_entries, path),
        objects=store,
        targets=targets,
        answers=[RecordedAnswer(each.target, each.body, each.method, each.status) for each in test.api_call_responses],
        images=context.images,
        registries=registries,
        namespaces=manifests,
        values=values,
        user=user,
        kinds=kinds,
        system=System() if looks_up else None,
    )
    policies, objects = _count(_judging(compilation), "policy", "policies"), _count(len(manifests), "resource")
    log(f"  Applying {policies} to {objects} with {_count(len(exceptions.exceptions), 'exception')} ...")
    return Suite(test, folder, manifests, session, payloads, checks, [*loaded.errors, *errors])


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"


def _judging(compilation: Compilation) -> int:
    """Count the policies that rows may name: `test` never runs cleanup policies."""
    return sum(
        1 for item in compilation.items if item.policy is not None and item.policy.info.kind not in CLEANUP_KINDS
    )


def _payloads(test: TestFile, folder: SuiteFolder, log: Log) -> list[tuple[str, JSONObject]]:
    """Load JSON payloads with their paths, as rows name them."""
    if not test.json_payloads:
        return []
    log("  Loading JSON payloads ...")
    found: list[tuple[str, JSONObject]] = []
    for name in test.json_payloads:
        for document in _required([name], folder):
            if not isinstance(document.value, dict):
                raise UsageError("a JSON payload must be an object", location=document.location(()))
            found.append((posixpath.normpath(name), document.value))
    return found


def _checks(test: TestFile, folder: SuiteFolder, log: Log) -> list[tuple[str, str, JSONObject]]:
    """Load authorization requests: mode, path as rows name it, and the request."""
    found: list[tuple[str, str, JSONObject]] = []
    for mode, names in (("HTTP", test.http_payloads), ("Envoy", test.envoy_payloads)):
        if names:
            log(f"  Loading {mode} payloads ...")
        for name in names:
            for document in load_authorization_requests([str(folder / name)], mode):
                found.append((mode, posixpath.normpath(name), document.value))
    return found


def _exceptions(test: TestFile, folder: SuiteFolder) -> Compilation:
    exceptions = compile_documents(expand_lists(_required(test.exceptions, folder)))
    raise_all(exceptions.errors)
    return exceptions


def _refuse_mixture(compilation: Compilation, exceptions: Compilation) -> None:
    """Kyverno: exceptions of kyverno.io next to the API server's own policies are an error."""
    written = [item.written for item in exceptions.items if item.written is not None]
    legacy = any(each.api_version.startswith("kyverno.io/") for each in written)
    if legacy and any(policy.info.kind == "ValidatingAdmissionPolicy" for policy in compilation.policies):
        raise UsageError("exceptions cannot be applied to ValidatingAdmissionPolicies")


def _undecoded(compilation: Compilation) -> list[PyvernoError]:
    """Return the errors of documents that do not decode."""
    return [error for item in compilation.items if item.written is None for error in item.errors]


def _values(test: TestFile, folder: SuiteFolder) -> Values:
    if test.values is not None:
        return test.values
    return read_values(_one(folder, test.variables)) if test.variables else Values()


def _one(folder: SuiteFolder, name: str) -> Document:
    path = folder / name
    documents = load_documents(read_file(path), file=str(path))
    if len(documents) != 1:
        raise UsageError(f"`{path}` must hold one document, found {len(documents)}")
    return documents[0]


def _policies(test: TestFile, folder: SuiteFolder) -> Compilation:
    loaded = load_policy_documents([str(folder / name) for name in test.policies])
    compilation = compile_documents(loaded.documents)
    raise_all([*loaded.errors, *_undecoded(compilation)])
    return compilation


def _required(names: Sequence[str], folder: SuiteFolder) -> list[Document]:
    """Read files and folders that must be there."""
    loaded = load_files([str(folder / name) for name in names])
    raise_all(loaded.errors)
    return loaded.documents


def _load(names: Sequence[str], folder: SuiteFolder) -> Loaded:
    """Read resources: a folder counts only as the first entry (then alone), a bad file is one error."""
    if names and (folder / names[0]).is_dir():
        return load_files([str(path) for path in find_yaml(folder / names[0], recursive=False)])
    return load_files([str(folder / name) for name in names])


def _cluster(test: TestFile, folder: SuiteFolder) -> tuple[KindTable, ObjectStore | None]:
    if not test.cluster_resources:
        return KNOWN_KINDS, None
    objects: list[JSONObject] = []
    crds: list[JSONObject] = []
    for name in test.cluster_resources:
        found = read_cluster_resource(_one(folder, name))
        objects.extend(found.resources)
        for crd in found.crds:
            crds.extend(document.value for document in _required([crd], folder))
    kinds = KNOWN_KINDS.with_crds(crds) if crds else KNOWN_KINDS
    return kinds, ObjectStore([normalise(each, kinds) for each in objects], kinds)


def _targets(test: TestFile, folder: SuiteFolder, kinds: KindTable) -> ObjectStore | None:
    names = [
        *test.target_resources,
        *test.param_resources,
        *(row.clone_source_resource for row in test.results if row.clone_source_resource),
    ]
    if not names:
        return None
    objects, errors = read_objects(_required(list(dict.fromkeys(names)), folder))
    raise_all(errors)
    return ObjectStore([normalise(document.value, kinds) for document in objects], kinds)
