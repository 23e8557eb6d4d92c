"""`mutate`: change the object, the elements of its lists, or existing objects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from pyverno.engine.actions.elements import Elements
from pyverno.engine.actions.exemption import SkippedByException
from pyverno.engine.actions.existing import ExistingObject, ExistingObjects
from pyverno.engine.actions.patches import Patch
from pyverno.engine.faults import error_verdict
from pyverno.engine.redaction import redact_errors
from pyverno.engine.result import ResourceRef, Status, Verdict
from pyverno.engine.rule import Binding, Exemption, Run
from pyverno.engine.rules.guards import Preconditions
from pyverno.errors import BudgetExceededError, EvaluationError, ExpressionError, HostError, PyvernoError
from pyverno.kube.gvk import GVK, parse_api_version
from pyverno.kube.json import JSON, equal
from pyverno.kube.patch.mergedlists import MergeMemory
from pyverno.kube.wildcard import count_wildcards, has_wildcard
from pyverno.kube.wildcard import match as wildcard_match
from pyverno.lang.template import Template
from pyverno.value import dataclass

__all__ = ["Change", "ForeachChange", "MutateElements", "MutateExisting", "MutateRule", "PatchChange", "Targets"]


class Change(Protocol):
    """The change of one object by a mutate rule."""

    @property
    def nothing(self) -> str:
        """Text of the SKIP when nothing changed."""
        ...

    def apply(self, document: JSON, run: Run) -> JSON:
        """Return the changed object, the same one when nothing changes; raises PyvernoError."""
        ...


@dataclass(frozen=True, slots=True)
class PatchChange:
    """One patch of the whole object."""

    patch: Patch
    nothing: str = "no patches applied"

    def apply(self, document: JSON, run: Run) -> JSON:
        """Apply the patch."""
        return self.patch.apply(document, run)


@dataclass(frozen=True, slots=True)
class MutateElements:
    """One foreach entry: a patch, or nested entries, for every element."""

    elements: Elements
    patch: Patch | None = None
    nested: tuple[MutateElements, ...] = ()
    reverse: bool = False


@dataclass(frozen=True, slots=True)
class ForeachChange:
    """Foreach entries in order; patches pile up on the object from element to element."""

    entries: tuple[MutateElements, ...]
    nothing: str = "0 elements processed"

    def apply(self, document: JSON, run: Run) -> JSON:
        """Apply the patches of all elements."""
        return _apply_entries(self.entries, document, run, MergeMemory())


def _apply_entries(entries: Sequence[MutateElements], document: JSON, run: Run, memory: MergeMemory) -> JSON:
    for entry in entries:
        try:
            values = entry.elements.values(run)
        except (BudgetExceededError, HostError):
            raise
        except ExpressionError as error:
            listed = entry.elements.query.text
            # COMPAT: upstream prints the error twice (E1.30)
            raise EvaluationError(f"failed to evaluate list {listed}: {error.message}: {error.message}") from error
        try:
            changed = _apply_elements(entry, values, document, run, memory=memory)
        except (BudgetExceededError, HostError):
            raise
        except ExpressionError as error:
            raise EvaluationError(f"failed to mutate elements: {error.message}") from error
        if changed is not document:
            document = changed
            run = _with_object(run, document)
    return document


def _apply_elements(
    entry: MutateElements, values: list[JSON], document: JSON, run: Run, *, memory: MergeMemory
) -> JSON:
    for index, _, inner in entry.elements.visit(run, values, reverse=entry.reverse):
        if entry.elements.preconditions is not None:
            try:
                if entry.elements.preconditions.unmet(inner) is not None:
                    continue
            except (BudgetExceededError, HostError):
                raise
            except ExpressionError as error:
                # COMPAT: upstream's number is that of the element
                reason = f"failed to evaluate mutate.foreach[{index}].preconditions: {error.message}"
                raise EvaluationError(reason) from error
        if entry.nested:
            document = _apply_entries(entry.nested, document, inner, memory)
        elif entry.patch is not None:
            document = entry.patch.apply(document, inner, memory)
    return document


def _with_object(run: Run, document: JSON) -> Run:
    """Return the run in which variables see the changed object (the target, where the rule changes one)."""
    if run.scope.has("target"):
        return run.with_scope(run.scope.with_values(target=document))
    request = run.request.with_object(document)
    value = dict(run.scope["request"])
    value["object"] = document
    return run.with_request(request, run.scope.with_values(request=value))


def _describe(document: JSON) -> str:
    ref = ResourceRef.of(document)
    if not ref.kind and not ref.name:
        return "mutated resource"
    return f"mutated {ref.kind}/{ref.name}" + (f" in namespace {ref.namespace}" if ref.namespace else "")


@dataclass(frozen=True, slots=True)
class MutateRule(SkippedByException):
    """Changes the object of the request."""

    change: Change

    def run(self, run: Run) -> Sequence[Verdict]:
        """Apply the change; no difference means SKIP."""
        document = run.resource
        if document is None:
            return ()
        try:
            changed = self.change.apply(document, run)
        except (BudgetExceededError, HostError):
            raise
        except PyvernoError as error:
            return (Verdict(Status.ERROR, error.message),)
        if changed is document or equal(changed, document):
            return (Verdict(Status.SKIP, self.change.nothing),)
        return (Verdict(Status.PASS, _describe(changed), patched=changed),)


@dataclass(frozen=True, slots=True)
class TargetName:
    """Name or namespace of targets.

    With text of the request in it, `most_wildcards` are those that the policy wrote: a requester must not add objects,
    by a wildcard or by no text at all, which selects them all.
    """

    text: Template
    most_wildcards: int | None = None

    def render(self, run: Run) -> str:
        """Return the text; raises EvaluationError when it is none, or has a wildcard of the request."""
        text = _render_text(self.text, run)
        if self.most_wildcards is not None and count_wildcards(text) > self.most_wildcards:
            raise EvaluationError(f"a variable yields a wildcard in {self.text.document} of a target")
        return text

    def selects_all(self, text: str) -> bool:
        """Return whether variables of the request left nothing of the text."""
        return not text and self.most_wildcards is not None


@dataclass(frozen=True, slots=True)
class Targets:
    """One entry of `mutate.targets`: which existing objects, and what must hold for each of them."""

    api_version: Template
    kind: Template
    namespace: TargetName
    name: TargetName
    selector: Template | None = None
    bindings: tuple[Binding, ...] = ()
    preconditions: Preconditions | None = None

    def find(self, run: Run) -> Sequence[ExistingObject]:
        """Read the objects; wildcards in names and namespaces list and filter."""
        names = [(each, _render_text(each, run)) for each in (self.api_version, self.kind)]
        names += ((each.text, each.render(run)) for each in (self.namespace, self.name))
        selector = self.selector.render(run.scope, run.runtime) if self.selector is not None else None
        used = names if self.selector is None else [*names, (self.selector, selector)]
        return redact_errors(lambda: self._read(run, *(text for _, text in names), selector=selector), *used)

    def _read(
        self, run: Run, api_version: str, kind: str, namespace: str, name: str, *, selector: JSON
    ) -> Sequence[ExistingObject]:
        kind, _, subresource = kind.partition("/")
        objects = ExistingObjects(run.broker, api_version, kind, subresource)
        namespace = namespace or run.rule.info.policy.namespace
        is_in_no_namespace = run.broker.host.kinds.is_namespaced(GVK(*parse_api_version(api_version), kind)) is False
        if self.name.selects_all(name) or (self.namespace.selects_all(namespace) and not is_in_no_namespace):
            raise EvaluationError("the variables in name or namespace of a target yield an empty text")
        has_place = (namespace and not has_wildcard(namespace)) or is_in_no_namespace
        if name and not has_wildcard(name) and has_place and selector is None:
            found = objects.get(namespace, name)
            return () if found is None else (found,)
        listed = "" if has_wildcard(namespace) else namespace
        documents = (
            document
            for document in run.broker.list_objects(api_version, kind, listed, selector)
            if (ref := ResourceRef.of(document))
            and (not name or wildcard_match(name, ref.name))
            and (not namespace or wildcard_match(namespace, ref.namespace))
        )
        return tuple(objects.of(documents))


def _render_text(template: Template, run: Run) -> str:
    value = template.render(run.scope, run.runtime, delete_request=run.is_delete)
    if not isinstance(value, str):
        raise EvaluationError("the fields of a target must be strings after substituting variables")
    return value


@dataclass(frozen=True, slots=True)
class MutateExisting:
    """Changes existing objects when a request triggers it; the request's own object stays as it is."""

    targets: tuple[Targets, ...]
    change: Change

    def run(self, run: Run) -> Sequence[Verdict]:
        """Return one verdict per target; a target that fails does not stop the others.

        When several entries select one object, each continues from the result of the one before: the last effect holds
        all changes.
        """
        verdicts: list[Verdict] = []
        changed: dict[tuple[ResourceRef, str], JSON] = {}
        for entry in self.targets:
            try:
                found = entry.find(run)
            except Exception as error:
                # COMPAT: upstream prints an empty prefix (E1.29)
                verdicts.append(error_verdict(error, prefix=": "))
                continue
            for existing in found:
                place = (existing.owner, existing.subresource)
                verdict = self._one(entry, existing, run, changed.get(place, existing.document))
                if verdict.patched is not None:
                    changed[place] = verdict.patched
                verdicts.append(verdict)
        return verdicts

    def exempt(self, run: Run, exemptions: Sequence[Exemption]) -> Sequence[Verdict] | None:
        """Skip the rule and name the exceptions."""
        keys = tuple(exemption.key for exemption in exemptions)
        text = "rule is skipped due to policy exception " + ", ".join(keys)
        return (Verdict(Status.SKIP, text, exceptions=keys),)

    def _one(self, entry: Targets, existing: ExistingObject, run: Run, document: JSON) -> Verdict:
        target = existing.ref
        inner = run.with_scope(run.scope.with_values(target=document))
        try:
            for binding in entry.bindings:
                inner = inner.with_scope(binding.bind(inner))
            if entry.preconditions is not None:
                verdict = entry.preconditions.check(inner)
                if verdict is not None:
                    return verdict._replace(target=target)
            changed = self.change.apply(document, inner)
        except Exception as error:
            return error_verdict(error, target=target)
        if changed is document or equal(changed, document):
            return Verdict(Status.SKIP, self.change.nothing, target=target)
        effects = (existing.patched(changed),)
        return Verdict(Status.PASS, _describe(changed), patched=changed, effects=effects, target=target)
