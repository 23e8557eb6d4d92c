"""One review of the playground: texts in, diagnostics, results, changes and generated objects out.

It opens the same session as the command line and the library; only the texts are read here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeVar

from pyverno.compiler import Compilation
from pyverno.engine.effects import CreateEffect, DeleteEffect, PatchEffect
from pyverno.engine.request import Operation
from pyverno.engine.result import ResourceRef, RuleResult, Status
from pyverno.errors import NOWHERE, PyvernoError, UsageError
from pyverno.kube.json import JSONObject
from pyverno.kube.kinds import KindTable
from pyverno.kube.yaml.documents import Document
from pyverno.kube.yaml.writer import dump_yaml
from pyverno.offline.clifiles import read_context, read_user_info, read_values
from pyverno.offline.objects import ObjectStore
from pyverno.offline.resources import normalise
from pyverno.offline.session import CLEANUP_KINDS, DELETING_KINDS, Session
from pyverno.policy.kinds import KNOWN_KINDS
from pyverno.report.finding import finding
from pyverno.report.ruleplaces import RulePlaces
from pyverno.ui.playground.compiled import (
    check_version,
    compile_text,
    find_server,
    kinds_of,
    lint_texts,
    read_documents,
    server_with,
)
from pyverno.ui.playground.explaining import explain_rules, place_of, read_change_wanted
from pyverno.value import dataclass, field

if TYPE_CHECKING:
    from pyverno.ui.playground.apiserver import ApiServer

__all__ = ["INPUTS", "review_texts"]

INPUTS: Final = (
    "policies",
    "resources",
    "oldResources",
    "clusterResources",
    "exceptions",
    "values",
    "userInfo",
    "context",
    "crds",
)
"""The texts of a review; `policies` and `resources` are needed, the others are as the files of `pyverno apply`."""

_PROBLEMS: Final = (Status.FAIL, Status.ERROR, Status.WARN)
_OPERATIONS: Final = tuple(operation.value for operation in Operation)

_T = TypeVar("_T")


@dataclass(slots=True)
class _Texts:
    """The texts of a request, and their problems, each with its text, line and column."""

    texts: Mapping[str, str]
    version: str = ""
    problems: list[JSONObject] = field(default_factory=list)
    server: ApiServer | None = None

    def add(self, error: PyvernoError, name: str, severity: str = "error") -> None:
        """Add an error; its location names the text, unless `name` does."""
        location = error.location or NOWHERE
        self.problems.append(
            {
                "input": location.file or name,
                "line": location.line,
                "column": location.column,
                "severity": severity,
                "code": error.code,
                "path": error.path,
                "message": error.message,
            }
        )

    def documents(self, name: str) -> Sequence[Document]:
        """Return the documents of a text, with the items of lists."""
        return self._try(name, lambda: read_documents(self.texts[name], name), ())

    def compiled(self, name: str) -> Compilation:
        """Return the policies or exceptions of a text, compiled."""
        compilation = self._try(name, lambda: compile_text(self.texts[name], name), Compilation(()))
        for item in compilation.items:
            for error in item.errors:
                self.add(error, name)
            for text in item.warnings:
                self.add(PyvernoError(text, location=item.document.location(())), name, "warning")
        return compilation

    def lint(self) -> None:
        """Add the lints' findings in the policies; unreadable texts are already among the problems."""
        with suppress(PyvernoError):
            for each in lint_texts(self.texts["policies"], self.texts["crds"], self.version):
                text = f"{each.code} {each.message}"
                self.add(PyvernoError(text, location=each.location), each.location.file, each.severity.value)

    def check_version(self, policies: Compilation) -> None:
        """Add fields and functions that the Kubernetes version lacks; compiling has checked the newest, ""."""
        if self.version:
            for each in check_version(policies, self.texts["crds"], self.version):
                self.add(each, "policies", "warning")

    def kinds(self) -> KindTable:
        """Return the kinds that the Kubernetes version serves, with those of `crds`."""
        return self._try("crds", lambda: kinds_of(self.texts["crds"], self.version), KNOWN_KINDS)

    def _try(self, name: str, read: Callable[[], _T], otherwise: _T) -> _T:
        try:
            return read()
        except PyvernoError as error:
            self.add(error, name)
            return otherwise

    def start_server(self) -> None:
        """Emulate the API server of the Kubernetes version, with `crds`; without a version there is none."""
        if self.version:
            self.server = find_server(self.version)
            with suppress(PyvernoError):  # reading the kinds of this text has added the same error
                self.server, warnings = server_with(self.version, self.texts["crds"])
                for each in warnings:
                    self.add(each, "crds", "warning")

    def objects(self, name: str, kinds: KindTable) -> Sequence[tuple[Document, JSONObject]]:
        """Return the objects of a text as a cluster would see them, with their documents.

        With a Kubernetes version they are as its API server sends them to admission: complete, without unknown fields.
        """
        found, server = [], self.server
        for document in self.documents(name):
            try:
                if not isinstance(document.value, dict) or not (
                    document.value.get("kind") and document.value.get("apiVersion")
                ):
                    raise UsageError("the document is no resource: apiVersion and kind are missing")
                manifest = normalise(document.value, kinds, has_nulls=document.may_hold_null)
                if server is not None:
                    manifest, warnings = server.receive(manifest)
                    for text, path in warnings:
                        self.add(PyvernoError(text, location=document.location(path)), name, "warning")
                found.append((document, manifest))
            except PyvernoError as error:
                self.add(UsageError(error.message, location=document.location(())), name)
        return found

    def single(self, name: str, read: Callable[[Document], _T]) -> _T | None:
        """Return the content of a text with one document; None when it is empty or invalid."""
        documents = self.documents(name)
        try:
            if len(documents) > 1:
                raise UsageError("expected one document", location=documents[1].location(()))
            return read(documents[0]) if documents else None
        except PyvernoError as error:
            self.add(error, name)
            return None


def review_texts(request: JSONObject) -> JSONObject:
    """Review every resource with all policies.

    `request` holds texts by the names of INPUTS, `operation` (CREATE, UPDATE, DELETE, CONNECT), and
    `kubernetesVersion`: objects get its defaults and lose unknown fields, and policies are checked for its kinds,
    fields and functions. Without one, objects are reviewed as written, as by `pyverno apply`. Errors of texts and
    findings of lints are in `problems`, with line and column; the rest is still reviewed. With `explain` (true) every
    review has `rules`: the values that each rule read, as lines with places. `change` names one result whose smallest
    change is searched. Raises UsageError for a request of another form.
    """
    version = _read_text(request, "kubernetesVersion")
    texts = _Texts({name: _read_text(request, name) for name in INPUTS}, version)
    operation, change = _operation(request), read_change_wanted(request)
    explains = change is not None or request.get("explain") is True
    policies, exceptions = texts.compiled("policies"), texts.compiled("exceptions")
    texts.start_server()
    texts.lint()
    texts.check_version(policies)
    kinds = texts.kinds()
    resources = texts.objects("resources", kinds)
    old = {_key(manifest): manifest for _, manifest in texts.objects("oldResources", kinds)}
    own = [manifest for _, manifest in resources]
    others = [manifest for _, manifest in texts.objects("clusterResources", kinds)]
    context = texts.single("context", read_context)
    if context is not None:
        others.extend(normalise(each, kinds) for each in context.resources)
    session = Session.open(
        policies,
        exceptions=exceptions,
        objects=ObjectStore([*own, *others], kinds),
        images=() if context is None else context.images,
        namespaces=[*own, *others],
        values=texts.single("values", read_values),
        user=texts.single("userInfo", read_user_info),
        kinds=kinds,
    )
    reviews: list[JSONObject] = []
    places = RulePlaces(session.compilation)
    for number, (document, manifest) in enumerate(resources if session.policies else ()):
        before = old.get(_key(manifest))
        as_operation = operation or (Operation.UPDATE if before is not None else None)
        try:
            found = _review(session, places, document, manifest, old=before, operation=as_operation)
            if explains:
                wanted = change if change is not None and change.resource == number else None
                found["rules"] = explain_rules(
                    session,
                    document,
                    manifest,
                    operation=as_operation,
                    old=before,
                    change=wanted,
                    rule_places=places,
                )
            reviews.append(found)
        except PyvernoError as error:
            texts.add(error, "resources")
    infos = [policy.info for policy in session.policies]
    return {
        "problems": texts.problems,
        "reviews": reviews,
        "policies": [{"kind": each.kind, "name": each.name, "namespace": each.namespace} for each in infos],
    }


def _review(
    session: Session,
    places: RulePlaces,
    document: Document,
    manifest: JSONObject,
    *,
    old: JSONObject | None,
    operation: Operation | None,
) -> JSONObject:
    review = session.review(manifest, operation=operation, old=old)
    results = (*review.results, *session.deletions(manifest, CLEANUP_KINDS | DELETING_KINDS))
    decision = review.decision
    ref = ResourceRef.of(manifest)
    found: JSONObject = {
        "resource": _reference(ref),
        "line": document.location(()).line,
        "operation": review.request.operation.value,
        "allowed": decision.allowed,
        "message": decision.message,
        "warnings": list(decision.warnings),
        "results": [_result(session, places, each, document, manifest) for each in results],
        "effects": [each for result in results for each in _effects(result)],
    }
    if review.resource != manifest and isinstance(review.resource, dict):
        found["before"] = dump_yaml(manifest, sort_keys=False)
        found["after"] = dump_yaml(review.resource, sort_keys=False)
        found["patch"] = list(decision.patch)
    return found


def _result(
    session: Session,
    places: RulePlaces,
    result: RuleResult,
    document: Document,
    manifest: JSONObject,
) -> JSONObject:
    blamed = session.blame(manifest, result) if result.status in _PROBLEMS and result.target is None else None
    place = places.of_result(result)
    found = finding(result, result.target or ResourceRef.of(manifest), document, blamed=blamed, rule_location=place)
    item = found.to_json()
    return {
        "policy": found.policy,
        "kind": result.rule.policy.kind,
        "rule": found.rule,
        "type": result.rule.type.value,
        "status": result.status.value,
        "message": found.message,
        "action": result.action.value,
        "severity": found.severity,
        "path": found.path,
        "exceptions": list(found.exceptions),
        "properties": dict(found.properties),
        "place": place_of(found.location),
        "rulePlace": place_of(found.rule_location),
        "resource": item["resource"],
    }


def _effects(result: RuleResult) -> Iterable[JSONObject]:
    for effect in result.effects:
        match effect:
            case CreateEffect():
                yield {
                    "type": "create",
                    "policy": result.rule.policy.key,
                    "rule": result.rule_name,
                    "resource": _reference(ResourceRef.of(effect.resource)),
                    "text": dump_yaml(effect.resource, sort_keys=False),
                }
            case PatchEffect():
                yield {
                    "type": "patch",
                    "policy": result.rule.policy.key,
                    "rule": result.rule_name,
                    "resource": _reference(effect.target),
                    "before": dump_yaml(effect.before, sort_keys=False),
                    "after": dump_yaml(effect.after, sort_keys=False),
                }
            case DeleteEffect():
                yield {
                    "type": "delete",
                    "policy": result.rule.policy.key,
                    "rule": result.rule_name,
                    "resource": _reference(effect.target),
                }


def _key(manifest: JSONObject) -> tuple[str, ...]:
    ref = ResourceRef.of(manifest)
    return (ref.api_version, ref.kind, ref.namespace, ref.name)


def _reference(ref: ResourceRef) -> JSONObject:
    return {"apiVersion": ref.api_version, "kind": ref.kind, "namespace": ref.namespace, "name": ref.name}


def _read_text(request: JSONObject, name: str) -> str:
    text = request.get(name, "")
    if not isinstance(text, str):
        raise UsageError(f"`{name}` must be a text")
    return text


def _operation(request: JSONObject) -> Operation | None:
    text = _read_text(request, "operation")
    if not text:
        return None
    if text not in _OPERATIONS:
        raise UsageError(f"`operation` must be one of {', '.join(_OPERATIONS)}")
    return Operation(text)
