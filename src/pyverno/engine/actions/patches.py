"""The two kinds of patch that a mutate rule writes: strategic merge and JSON patch.

A patch is a function of a run: it takes the object and returns the changed object, or the same object when nothing
changes.
"""

from __future__ import annotations

from typing import Protocol

from pyverno.engine.redaction import redact_values
from pyverno.engine.rule import Run
from pyverno.errors import BudgetExceededError, EvaluationError, ExpressionError, PatchError, PyvernoError
from pyverno.kube.gvk import parse_api_version
from pyverno.kube.json import JSON, weight
from pyverno.kube.patch.jsonpatch import apply_patch
from pyverno.kube.patch.mergedlists import MergeMemory
from pyverno.kube.patch.strategicmerge import strategic_merge
from pyverno.lang.pattern.mutate import Followers, Overlay, compile_overlay
from pyverno.lang.template import Template
from pyverno.lang.template.patchtext import PatchText
from pyverno.value import dataclass

__all__ = ["JsonPatch", "Patch", "StrategicMergePatch"]


class Patch(Protocol):
    """Changes an object."""

    def apply(self, document: JSON, run: Run, memory: MergeMemory | None = None) -> JSON:
        """Return the changed object; the same object when nothing changes.

        Patches that follow each other on one object may share a `memory`.
        """
        ...


@dataclass(frozen=True, slots=True)
class StrategicMergePatch:
    """`patchStrategicMerge` with its anchors; `compiled` is set when it has no variables."""

    template: Template
    compiled: Overlay | None = None

    def apply(self, document: JSON, run: Run, memory: MergeMemory | None = None) -> JSON:
        """Resolve the anchors against the object, then merge."""
        overlay, budget = self.compiled, run.runtime.budget
        patch: JSON = None
        if overlay is None:
            try:
                patch = self.template.render(run.scope, run.runtime, delete_request=run.is_delete)
            except ExpressionError as error:
                raise EvaluationError(f"variable substitution failed: {error.message}") from error
            budget.produce(weight(patch))
            overlay = compile_overlay(patch)
        try:
            followers: Followers = {}
            resolved = overlay.resolve(document, meter=budget, followers=followers)
            if resolved is None or resolved == {}:
                return document
            group, version = parse_api_version(document.get("apiVersion") or "")
            kind = document.get("kind") or ""
            merged = strategic_merge(
                document,
                resolved,
                group=group,
                version=version,
                kind=kind,
                meter=budget,
                memory=memory,
                followers=followers,
            )
            if merged is None:
                # kustomize: a patch changes an object, it cannot remove it
                raise PatchError("filter cannot create or delete objects")
            return merged
        except (ExpressionError, PatchError) as error:
            text = error.message if self.compiled is not None else redact_values(error.message, self.template, patch)
            raise PatchError(f"failed to patch resource: {text}") from error


@dataclass(frozen=True, slots=True)
class JsonPatch:
    """`patchesJson6902`: operations with variables in their values and paths."""

    operations: PatchText

    def apply(self, document: JSON, run: Run, memory: MergeMemory | None = None) -> JSON:
        """Apply the operations; a missing path is created or tolerated as Kyverno does."""
        try:
            operations = self.operations.render(run.scope, run.runtime, delete_request=run.is_delete)
        except ExpressionError as error:
            raise EvaluationError(f"variable substitution failed: {error.message}") from error
        budget = run.runtime.budget
        budget.produce(weight(operations))
        try:
            return apply_patch(document, operations, allow_missing_remove=True, create_parents=True, meter=budget)
        except BudgetExceededError:
            raise
        except PyvernoError as error:
            text = redact_values(error.message, self.operations.template, operations)
            raise PatchError(f"failed to patch resource: {text}") from error
