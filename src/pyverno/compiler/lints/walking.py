"""The parts of rules that several lints look at: patterns, overlays, texts with their paths, and types of objects."""

from __future__ import annotations

from collections.abc import Iterator

from pyverno.compiler.lints.fields import FieldType
from pyverno.compiler.lints.lint import Workspace
from pyverno.kube.gvk import parse_kind_selector
from pyverno.kube.json import JSON
from pyverno.kube.wildcard import has_wildcard
from pyverno.kube.yaml.fieldpath import Path
from pyverno.policy.mutate import Mutate, MutateForeach
from pyverno.policy.rule import Rule
from pyverno.policy.validate import Validate, ValidateForeach

__all__ = ["Types", "leaves", "maps", "overlays", "pattern_texts", "patterns", "texts", "typed_patterns"]

Types = frozenset[FieldType]
"""The types that a place of an object may have, one for each kind."""


def _object_types(rule: Rule, workspace: Workspace) -> Types | None:
    """Return the types of all kinds that a rule matches, None where one of them is unknown."""
    types: set[FieldType] = set()
    table = workspace.fields()
    for written in rule.match.kinds():
        selector = parse_kind_selector(written)
        if has_wildcard(selector.kind) or selector.subresource:
            return None
        infos = [info for info in workspace.kinds.by_kind(selector.kind) if selector.matches(info.gvk)]
        found = [table.type_of(info.gvk) for info in infos]
        if not found or None in found:
            return None
        types.update(each for each in found if each is not None)
    return frozenset(types) or None


def patterns(rule: Rule) -> Iterator[tuple[JSON, Path, bool]]:
    """Yield the patterns of a rule that validates with their paths, and whether they are those of the object itself."""
    if isinstance(rule.action, Validate):
        yield from _patterns(rule.action, is_object=True)


def _patterns(block: Validate | ValidateForeach, *, is_object: bool) -> Iterator[tuple[JSON, Path, bool]]:
    if block.pattern is not None:
        yield block.pattern, (*block.path, "pattern"), is_object
    if isinstance(block.any_pattern, list):
        for index, pattern in enumerate(block.any_pattern):
            yield pattern, (*block.path, "anyPattern", index), is_object
    for entry in block.foreach:
        yield from _patterns(entry, is_object=False)


def overlays(rule: Rule) -> Iterator[tuple[JSON, Path, bool]]:
    """Yield the strategic merge patches of a rule with their paths, and whether they patch the matched object."""
    if isinstance(rule.action, Mutate):
        yield from _overlays(rule.action, is_object=rule.action.targets is None)


def _overlays(block: Mutate | MutateForeach, *, is_object: bool) -> Iterator[tuple[JSON, Path, bool]]:
    if block.patch_strategic_merge is not None:
        yield block.patch_strategic_merge, (*block.path, "patchStrategicMerge"), is_object
    for entry in block.foreach:
        yield from _overlays(entry, is_object=is_object)


def typed_patterns(rule: Rule, workspace: Workspace) -> Iterator[tuple[JSON, Path, Types]]:
    """Yield the patterns and patches of matched objects with their paths and types; none where a type is unknown."""
    found = [(pattern, path) for each in (patterns(rule), overlays(rule)) for pattern, path, mine in each if mine]
    types = _object_types(rule, workspace) if found else None
    if types is not None:
        yield from ((pattern, path, types) for pattern, path in found)


def pattern_texts(rule: Rule) -> Iterator[tuple[str, Path]]:
    """Yield every text in the patterns of a rule with its path."""
    for pattern, path, _ in patterns(rule):
        yield from texts(pattern, path)


def maps(value: JSON, path: Path) -> Iterator[tuple[dict[str, JSON], Path]]:
    """Yield every map of a document with its path, in document order; does not recurse."""
    pending: list[tuple[JSON, Path]] = [(value, path)]
    while pending:
        current, place = pending.pop()
        if isinstance(current, dict):
            yield current, place
            pending.extend((member, (*place, key)) for key, member in reversed(current.items()))
        elif isinstance(current, list):
            pending.extend((current[index], (*place, index)) for index in reversed(range(len(current))))


def leaves(value: JSON, path: Path) -> Iterator[tuple[JSON, Path]]:
    """Yield every value that is neither a map nor a list with its path, in document order."""
    pending: list[tuple[JSON, Path]] = [(value, path)]
    while pending:
        current, place = pending.pop()
        if isinstance(current, dict):
            pending.extend((member, (*place, key)) for key, member in reversed(current.items()))
        elif isinstance(current, list):
            pending.extend((current[index], (*place, index)) for index in reversed(range(len(current))))
        else:
            yield current, place


def texts(value: JSON, path: Path) -> Iterator[tuple[str, Path]]:
    """Yield every text of a document with its path, in document order; names of fields are left out."""
    yield from ((leaf, place) for leaf, place in leaves(value, path) if isinstance(leaf, str))
