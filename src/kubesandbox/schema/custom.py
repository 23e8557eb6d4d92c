"""The schema of one version of a custom resource, with everything that is compiled from it when it is first needed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

from kubesandbox.objects.fielderrors import child, invalid, is_blocking
from kubesandbox.schema.checking import Check, compile_check
from kubesandbox.schema.correlation import UNRELATED, related_field
from kubesandbox.schema.embedded import EmbeddedCheck, compile_embedded
from kubesandbox.schema.listtypes import ListCheck, compile_list_types
from kubesandbox.schema.pruning import Defaulter, Pruner, compile_defaults, compile_pruning
from kubesandbox.schema.rulesearch import has_rules
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.status import FieldError

if TYPE_CHECKING:
    from kubesandbox.schema.rules import Rules

__all__ = ["CustomSchema"]

_SKIPPED: Final = (
    "some validation rules were not checked because the object was invalid; correct the existing errors to complete "
    "validation"
)
_INT32_MAX: Final = 2**31 - 1


class CustomSchema:
    """One version of a CustomResourceDefinition; `version` is that of Kubernetes, in whose CEL rules are written."""

    def __init__(self, crd: JSONObject, entry: JSONObject, version: tuple[int, int]) -> None:
        spec = crd.get("spec") or {}
        self.name: str = str(entry.get("name", ""))
        self.schema: JSONObject = (entry.get("schema") or {}).get("openAPIV3Schema") or {}
        self.keeps_unknown = bool(spec.get("preserveUnknownFields")) or not self.schema
        subresources = entry.get("subresources") or {}
        self.has_status = isinstance(subresources.get("status"), dict)
        self.scale: JSONObject | None = subresources.get("scale")
        self._version = version

    def prune(self, body: JSONObject, problems: list[str]) -> JSONObject:
        """Return the object without fields that the schema does not know."""
        pruned: JSONObject = body if self.keeps_unknown else self._pruner(body, None, problems)
        return pruned

    def default(self, body: JSONObject) -> JSONObject:
        """Return the object with the defaults of the schema."""
        filled: JSONObject = self._defaulter(body) if self._defaulter is not None else body
        return filled

    def validate(
        self,
        body: JSONObject,
        old: JSONObject | None,
        *,
        subresource: str = "",
        found: Iterable[FieldError] = (),
    ) -> list[FieldError]:
        """Return what is wrong with an object, after what was `found` before; what is as it was is let through."""
        errors = list(found)
        older: JSON = UNRELATED if old is None else old
        if subresource == "status":
            errors += self._status_errors(body.get("status"), related_field(older, "status"))
        else:
            self._check(body, older, "", errors)
        errors += self._scale_errors(body, subresource)
        if self._embedded is not None:
            self._embedded(body, "", errors)
        if self._lists is not None:
            self._lists(body, "", errors)
        if self._rules is not None:
            if any(is_blocking(error) for error in errors):
                errors.append(invalid("<nil>", None, _SKIPPED))
            else:
                errors += self._rules(body, older)
        return errors

    def _status_errors(self, status: JSON, old: JSON) -> list[FieldError]:
        """A status is judged by itself: texts name fields from there on."""
        found: list[FieldError] = []
        if status is not None:
            self._status_check(status, old, "", found)
        return [replace(error, field=child("status", error.field) if error.field else "status") for error in found]

    def _scale_errors(self, body: JSONObject, subresource: str) -> list[FieldError]:
        if not self.scale:
            return []
        path = str(self.scale.get("statusReplicasPath" if subresource == "status" else "specReplicasPath", ""))
        value: JSON = body
        for step in path.strip(".").split("."):
            value = value.get(step) if isinstance(value, dict) else None
        if not isinstance(value, int) or isinstance(value, bool):
            return []
        if value < 0:
            return [invalid(path, value, "should be a non-negative integer")]
        if value > _INT32_MAX:
            return [invalid(path, value, f"should be less than or equal to {_INT32_MAX}")]
        return []

    @cached_property
    def _pruner(self) -> Pruner:
        return compile_pruning(self.schema, is_root=True)

    @cached_property
    def _defaulter(self) -> Defaulter | None:
        return compile_defaults(self.schema)

    @cached_property
    def _check(self) -> Check:
        return compile_check(self.schema)

    @cached_property
    def _status_check(self) -> Check:
        return compile_check((self.schema.get("properties") or {}).get("status") or {})

    @cached_property
    def _embedded(self) -> EmbeddedCheck | None:
        return compile_embedded(self.schema)

    @cached_property
    def _lists(self) -> ListCheck | None:
        return compile_list_types(self.schema)

    @cached_property
    def _rules(self) -> Rules | None:
        if not has_rules(self.schema):
            return None
        from kubesandbox.schema.rules import compile_rules  # loads CEL

        return compile_rules(self.schema, self._version)
