"""The objects that rows of `pyverno test` name, found by their names however many there are."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Sequence

from pyverno.cli.test.suite import ReviewedManifest
from pyverno.engine.request import Operation
from pyverno.engine.result import ResourceRef
from pyverno.kube.json import JSONObject
from pyverno.offline.testfile import ExpectedResult, ResourceSpec
from pyverno.value import dataclass

__all__ = ["Subject", "Subjects", "subjects_of"]


@dataclass(frozen=True, slots=True)
class Subject:
    """An object that rows may name: a manifest, or an existing object that a rule patched."""

    document: JSONObject
    judged: ReviewedManifest
    is_target: bool = False

    @property
    def ref(self) -> ResourceRef:
        """The reference of the object."""
        return ResourceRef.of(self.document)

    @property
    def text(self) -> str:
        """The object as the table shows it."""
        if self.judged.payload:
            return self.judged.payload
        ref = self.ref
        return f"{ref.api_version}/{ref.kind}/{ref.namespace}/{ref.name}"


def subjects_of(judged: Iterable[ReviewedManifest]) -> Iterator[Subject]:
    """Yield every object that rows may name."""
    for item in judged:
        yield Subject(item.manifest, item)
        for result in item.review.results:
            if result.target is not None and isinstance(result.patched, dict):
                yield Subject(result.patched, item, is_target=True)


class Subjects:
    """All objects of a suite, by what rows may call them: a name, NAMESPACE/NAME, a resource, the path of a payload."""

    def __init__(self, judged: Iterable[ReviewedManifest]) -> None:
        self.all: Sequence[Subject] = tuple(subjects_of(judged))
        self._named: dict[str, list[int]] = {}
        self._payloads: dict[str, list[int]] = {}
        self._resources: dict[tuple[str, str, str], list[int]] = {}
        self._triggers: dict[Operation | None, list[Subject]] = {}
        for place, subject in enumerate(self.all):
            if not subject.is_target:
                self._triggers.setdefault(subject.judged.operation, []).append(subject)
            if subject.judged.payload:
                self._payloads.setdefault(subject.judged.payload, []).append(place)
                continue
            ref = subject.ref
            for name in (ref.name, f"{ref.namespace}/{ref.name}"):
                self._named.setdefault(name, []).append(place)
            self._resources.setdefault((ref.api_version, ref.namespace, ref.name), []).append(place)

    def select(self, row: ExpectedResult) -> list[tuple[Subject, bool]]:
        """Return the subjects that a row is for, each with whether the row names it.

        That is every subject if the names of a row match nothing, as in Kyverno.
        """
        operation = Operation(row.operation) if row.operation else None
        places = {place for name in row.resources for place in self._places(name)}
        places.update(place for spec in row.resource_specs for place in self._resources.get(_key(spec), ()))
        found = [self.all[place] for place in sorted(places)]
        named = [(subject, True) for subject in found if subject.judged.operation is operation]
        if named and row.resources:
            return named
        known = {id(subject) for subject, _ in named}
        return [(subject, id(subject) in known) for subject in self._triggers.get(operation, ())]

    def has_any_of(self, row: ExpectedResult) -> bool:
        """Return whether a row names some object, whatever the operation of its review is."""
        return any(map(self.has_name, row.resources)) or any(map(self.has_resource, row.resource_specs))

    def has_name(self, name: str) -> bool:
        """Return whether an object, or a payload, has a name that a row gives."""
        return any(True for _ in self._places(name))

    def has_resource(self, spec: ResourceSpec) -> bool:
        """Return whether there is a resource that a row names in parts."""
        return _key(spec) in self._resources

    def _places(self, name: str) -> Iterator[int]:
        yield from self._named.get(name, ())
        yield from self._payloads.get(posixpath.normpath(name), ())


def _key(spec: ResourceSpec) -> tuple[str, str, str]:
    api_version = f"{spec.group}/{spec.version}" if spec.group else spec.version
    return api_version, spec.namespace, spec.name
