"""One review of the playground: texts in, diagnostics, results, changes and generated objects out.

It opens the same session as the command line and the library; only the texts are read here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeVar

from pyverno.compiler import Compilation, compile_documents
from pyverno.engine.effects import CreateEffect, DeleteEffect, PatchEffect
from pyverno.engine.request import Operation
from pyverno.engine.result import ResourceRef, RuleResult
from pyverno.errors import NOWHERE, Location, PyvernoError, UsageError
from pyverno.kube.json import JSONObject
from pyverno.kube.kinds import KindTable
from pyverno.kube.yaml.documents import Document, expand_lists, load_documents
from pyverno.kube.yaml.writer import dump_yaml
from pyverno.offline.clifiles import read_context, read_user_info, read_values
from pyverno.offline.objects import ObjectStore
from pyverno.offline.resources import normalise
from pyverno.offline.session import CLEANUP_KINDS, DELETING_KINDS, Session
from pyverno.policy.kinds import KNOWN_KINDS
from pyverno.report.finding import finding
from pyverno.value import dataclass, field

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

_OPERATIONS: Final = tuple(operation.value for operation in Operation)


_T = TypeVar("_T")


@dataclass(slots=True)
class _Texts:
    """The texts of a request, and what is wrong with them: each problem with its text, line and column."""

    texts: Mapping[str, str]
    problems: list[JSONObject] = field(default_factory=list)

    def add(self, error: PyvernoError, name: str, severity: str = "error") -> None:
        """Add what is wrong; its location names the text, unless `name` does."""
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
        try:
            return expand_lists(load_documents(self.texts[name], file=name))
        except PyvernoError as error:
            self.add(error, name)
            return ()

    def compiled(self, name: str) -> Compilation:
        """Return the policies or exceptions of a text, compiled."""
        documents = self.documents(name)
        compilation = compile_documents(documents)
        for document, item in zip(documents, compilation.items, strict=True):
            for error in item.errors:
                self.add(error, name)
            for text in item.warnings:
                self.add(PyvernoError(text, location=document.location(())), name, "warning")
        return compilation

    def objects(self, name: str, kinds: KindTable) -> Sequence[tuple[Document, JSONObject]]:
        """Return the objects of a text as a cluster would see them, with their documents."""
        found = []
        for document in self.documents(name):
            try:
                if not isinstance(document.value, dict) or not (
                    document.value.get("kind") and document.value.get("apiVersion")
                ):
                    raise UsageError("the document is no resource: apiVersion and kind are missing")
                found.append((document, normalise(document.value, kinds, has_nulls=document.may_hold_null)))
            except PyvernoError as error:
                self.add(UsageError(error.message, location=document.location(())), name)
        return found

    def companion(self, name: str, read: Callable[[Document], _T]) -> _T | None:
        """Return what a text with one document says; None where it is empty or wrong."""
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

    `request` holds texts by the names of INPUTS, and `operation` (CREATE, UPDATE, DELETE, CONNECT). What cannot be read
    or compiled is in `problems`, with line and column; the rest is still reviewed. Raises UsageError for a request of
    another form.
    """
    texts = _Texts({name: _text(request, name) for name in INPUTS})
    operation = _operation(request)
    policies, exceptions = texts.compiled("policies"), texts.compiled("exceptions")
    crds = [each.value for each in texts.documents("crds") if isinstance(each.value, dict)]
    kinds = KNOWN_KINDS.with_crds(crds) if crds else KNOWN_KINDS
    resources = texts.objects("resources", kinds)
    old = {_key(manifest): manifest for _, manifest in texts.objects("oldResources", kinds)}
    own = [manifest for _, manifest in resources]
    others = [manifest for _, manifest in texts.objects("clusterResources", kinds)]
    context = texts.companion("context", read_context)
    if context is not None:
        others.extend(normalise(each, kinds) for each in context.resources)
    session = Session.open(
        policies,
        exceptions=exceptions,
        objects=ObjectStore([*own, *others], kinds),
        images=() if context is None else context.images,
        namespaces=[*own, *others],
        values=texts.companion("values", read_values),
        user=texts.companion("userInfo", read_user_info),
        kinds=kinds,
    )
    reviews: list[JSONObject] = []
    for document, manifest in resources if session.policies else ():
        try:
            reviews.append(_review(session, document, manifest, old.get(_key(manifest)), operation))
        except PyvernoError as error:
            texts.add(error, "resources")
    infos = [policy.info for policy in session.policies]
    return {
        "problems": texts.problems,
        "reviews": reviews,
        "policies": [{"kind": each.kind, "name": each.name, "namespace": each.namespace} for each in infos],
    }


def _review(
    session: Session, document: Document, manifest: JSONObject, old: JSONObject | None, operation: Operation | None
) -> JSONObject:
    own = operation or (Operation.UPDATE if old is not None else None)
    review = session.review(manifest, operation=own, old=old)
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
        "results": [_result(each, ref, document) for each in results],
        "effects": [each for result in results for each in _effects(result)],
    }
    if review.resource != manifest and isinstance(review.resource, dict):
        found["before"] = dump_yaml(manifest, sort_keys=False)
        found["after"] = dump_yaml(review.resource, sort_keys=False)
        found["patch"] = list(decision.patch)
    return found


def _result(result: RuleResult, ref: ResourceRef, document: Document) -> JSONObject:
    found = finding(result, result.target or ref, document)
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
        "place": _place(found.location),
        "rulePlace": _place(found.rule_location),
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


def _place(location: Location) -> JSONObject:
    return {"input": location.file, "line": location.line, "column": location.column}


def _text(request: JSONObject, name: str) -> str:
    text = request.get(name, "")
    if not isinstance(text, str):
        raise UsageError(f"`{name}` must be a text")
    return text


def _operation(request: JSONObject) -> Operation | None:
    text = _text(request, "operation")
    if not text:
        return None
    if text not in _OPERATIONS:
        raise UsageError(f"`operation` must be one of {', '.join(_OPERATIONS)}")
    return Operation(text)
