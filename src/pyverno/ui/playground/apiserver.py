"""The defaults and changes that an API server of one Kubernetes version makes before policies see an object.

Kinds that it does not serve are refused, unknown fields are dropped with a warning, and its defaults are filled in.
Custom kinds are those of the visitor's definitions, with the fields and defaults of their schemas.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from functools import lru_cache
from typing import Final

from kubesandbox.schema.schemas import ObjectSchemas
from kubesandbox.types.customresources import types_of
from kubesandbox.types.resources import ResourceType, builtin_table
from pyverno.compiler.lints.checks.unknown_resource import constraints_of
from pyverno.compiler.lints.lint import Subject
from pyverno.errors import UsageError
from pyverno.kube.gvk import GVK, KindSelector, parse_kind_selector
from pyverno.kube.json import JSONObject
from pyverno.kube.kinds import KindInfo, KindTable
from pyverno.kube.resource import Resource
from pyverno.kube.schemas import schema_set
from pyverno.kube.yaml.fieldpath import Path
from pyverno.lazyregex import regex
from pyverno.policy.clusterpolicy import ClusterPolicy
from pyverno.policy.kinds import KNOWN_KINDS

__all__ = ["ApiServer", "Warned", "api_server"]

Warned = tuple[str, tuple[str | int, ...]]
"""The text of a warning, and the path of its field."""

_DEFINITIONS: Final = "customresourcedefinitions.apiextensions.k8s.io"

_UNKNOWN: Final = regex(r'unknown field "([^"]+)"')
_STEP: Final = regex(r"\[(\d+)\]|([^.\[\]]+)")


class ApiServer:
    """The kinds, fields and defaults of one Kubernetes version."""

    def __init__(self, version: str) -> None:
        """Take a version such as `1.33`."""
        self._version = version
        self._schemas, self._table = ObjectSchemas(version), builtin_table(version)
        groups = {group for group, _, _ in schema_set().kinds}
        served = schema_set(version).kinds

        def is_served(info: KindInfo) -> bool:
            return info.group not in groups or (info.group, info.version, info.kind) in served

        self.kinds = KindTable(tuple(info for info in KNOWN_KINDS if is_served(info)))
        """Every known kind that this version serves; kinds of Kyverno and other projects are in every version."""
        # the table of kinds lacks API versions that only older Kubernetes served; the schemas have them
        self._all = frozenset((*(info.gvk for info in self.kinds), *(GVK(*each) for each in served)))

    def with_definition(self, body: JSONObject) -> tuple[ApiServer, Sequence[Warned]]:
        """Return the server with a CustomResourceDefinition, and warnings; one with errors adds no kind.

        Raises StatusError for values of wrong types.
        """
        found = self._table.by_kind(Resource(body).gvk)
        if found is None or found.key != _DEFINITIONS:
            return self, ()
        definition, warnings, is_valid = self._admit(found, body)
        if not is_valid:
            return self, warnings
        made = copy(self)
        made._schemas = self._schemas.with_crd(definition)
        made._table = self._table.with_types(types_of(definition))
        return made, warnings

    def check_kind(self, manifest: JSONObject) -> None:
        """Raise UsageError, as kubectl words it, for a kind of Kubernetes that this version does not serve."""
        view = Resource(manifest)
        if self.kinds.find(view.gvk) is None and KNOWN_KINDS.find(view.gvk) is not None:
            raise UsageError(
                f'no matches for kind "{view.kind}" in version "{view.api_version}" (Kubernetes {self._version})'
            )

    def unserved(self, subject: Subject) -> Iterator[tuple[Path, str]]:
        """Yield path and text of every kind in the rules of a policy that this version does not serve."""
        if isinstance(subject.written, ClusterPolicy):
            for rule in subject.written.spec.rules:
                for block in (each for part in (rule.match, rule.exclude) if part is not None for each in part.blocks):
                    for index, text in enumerate(block.resources.kinds):
                        written = parse_kind_selector(text)
                        selector = KindSelector(written.group, written.version, written.kind)
                        if not self._has(KNOWN_KINDS.select(selector), selector):
                            yield (*block.resources.path, "kinds", index), text
        for constraints in constraints_of(subject):
            for one in (*constraints.resource_rules, *constraints.exclude_resource_rules):
                for index, text in enumerate(one.resources):
                    known = [info for info in KNOWN_KINDS.named(text.partition("/")[0]) if info.plural == text]
                    if not self._has(known):
                        yield (*one.path, "resources", index), text

    def _has(self, known: Sequence[KindInfo], selector: KindSelector | None = None) -> bool:
        """Return whether any of the kinds is served, in any version that a selector allows; unknown ones are custom."""
        names = {(info.group, info.kind) for info in known}
        return not known or any(
            (gvk.group, gvk.kind) in names and (selector is None or selector.matches(gvk)) for gvk in self._all
        )

    def receive(self, manifest: JSONObject) -> tuple[JSONObject, Sequence[Warned]]:
        """Return an object with defaults and without unknown fields, and warnings, each with the path of its field.

        Raises UsageError for a kind that is not served, and StatusError for values of wrong types.
        """
        self.check_kind(manifest)
        found = self._table.by_kind(Resource(manifest).gvk)
        if found is None:
            return manifest, ()
        body, warnings, _ = self._admit(found, manifest)
        return body, warnings

    def _admit(self, type_: ResourceType, manifest: JSONObject) -> tuple[JSONObject, Sequence[Warned], bool]:
        """Return an object as it is stored, warnings, and whether it is valid."""
        decoded = self._schemas.decode(type_, manifest)
        body = self._schemas.default(type_, decoded.body)
        fields = [(text, each[1] if (each := _UNKNOWN.search(text)) else "") for text in decoded.problems]
        errors = self._schemas.validate(type_, body)
        fields += [(str(error), error.field) for error in errors]
        return body, [(f"Kubernetes {self._version}: {text}", _steps(path)) for text, path in fields], not errors


@lru_cache(maxsize=3)
def api_server(version: str) -> ApiServer:
    """Return the emulated API server of a Kubernetes version; only few versions are cached, to save memory."""
    return ApiServer(version)


def _steps(path: str) -> tuple[str | int, ...]:
    return tuple(int(index) if index else name for index, name in _STEP.findall(path))
