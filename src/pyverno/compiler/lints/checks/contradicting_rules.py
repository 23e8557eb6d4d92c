"""Two rules ask for different values of one field, or set one field to different values.

No object passes two patterns with the same match that want `team: blue` and `team: red`. Of two patches with the same
match, the later one silently wins. Reported are only fixed values at the same path of plain keys.

Example::

    - name: pull-always
      match: {any: [{resources: {kinds: [Deployment]}}]}
      mutate: {patchStrategicMerge: {spec: {replicas: 2}}}
    - name: pull-if-missing
      match: {any: [{resources: {kinds: [Deployment]}}]}
      mutate: {patchStrategicMerge: {spec: {replicas: 3}}}
"""

from __future__ import annotations

from collections.abc import Iterator

from pyverno.compiler.lints.lint import Problem, Subject, Workspace
from pyverno.compiler.lints.selection import NamedRule, written_rules
from pyverno.kube.json import JSON
from pyverno.kube.yaml.fieldpath import Path
from pyverno.lang.pattern.anchors import parse_anchor
from pyverno.lang.pattern.leaf import literal_texts
from pyverno.policy.clusterpolicy import ClusterPolicy
from pyverno.policy.mutate import Mutate
from pyverno.policy.rule import Rule
from pyverno.policy.validate import Validate
from pyverno.value import dataclass

__all__ = ["check"]

Values = frozenset[str]
"""The values that a leaf accepts, as texts."""


@dataclass(frozen=True, slots=True)
class _Demand:
    """A rule that wants a field to have one of some values."""

    rule: NamedRule
    place: Path
    values: Values


def check(subject: Subject, workspace: Workspace) -> Iterator[Problem]:
    """Yield the leaves that contradict one of a rule before them."""
    first = workspace.memo.get("contradicting-rules")
    if first is None:
        first = workspace.memo["contradicting-rules"] = _firsts(workspace)
    assert isinstance(first, dict)  # noqa: S101  # made below
    for key, demand in _demands(subject):
        origin = first[key]
        if origin.values.isdisjoint(demand.values) and demand.rule.is_comparable(origin.rule):
            where = origin.rule.qualified_name(demand.rule)
            wanted = " or ".join(sorted(f"`{text}`" for text in origin.values))
            verb = "sets it to" if key[1] == "mutate" else "asks for"
            yield Problem(demand.place, f"{where} {verb} {wanted} with the same match")


Key = tuple[str, str, Path]


def _firsts(workspace: Workspace) -> dict[Key, _Demand]:
    found: dict[Key, _Demand] = {}
    for subject in workspace.subjects:
        for key, demand in _demands(subject):
            found.setdefault(key, demand)
    return found


def _demands(subject: Subject) -> Iterator[tuple[Key, _Demand]]:
    if not isinstance(subject.written, ClusterPolicy):
        return
    for rule, named in zip(subject.written.spec.rules, written_rules(subject), strict=True):
        verb, document, path = _document(rule)
        for place, value in _plain_leaves(document, ()):
            values = _values(value, is_pattern=verb == "validate")
            if values:
                demand = _Demand(named, (*path, *place), values)
                yield (named.selection, verb, place), demand


def _document(rule: Rule) -> tuple[str, JSON, Path]:
    match rule.action:
        case Validate() as action:
            return "validate", action.pattern, (*action.path, "pattern")
        case Mutate() as action if action.targets is None:
            return "mutate", action.patch_strategic_merge, (*action.path, "patchStrategicMerge")
    return "", None, ()


def _plain_leaves(value: JSON, path: Path) -> Iterator[tuple[Path, JSON]]:
    """Yield the leaves below plain keys; one anchor among the keys of a map may decide about all of them."""
    if isinstance(value, dict):
        if not any(parse_anchor(key) is not None for key in value):
            for key, member in value.items():
                yield from _plain_leaves(member, (*path, key))
    elif not isinstance(value, list):
        yield path, value


def _values(value: JSON, *, is_pattern: bool) -> Values:
    """Return the values that a leaf accepts, none where these are not certain."""
    if isinstance(value, bool):
        return frozenset({str(value).lower()})
    if isinstance(value, int):
        return frozenset({str(value)})
    if not isinstance(value, str) or "{{" in value or "$(" in value:
        return frozenset()
    texts = literal_texts(value) if is_pattern else frozenset({value})
    found = [text.strip() for text in texts or () if not is_pattern or "|" not in text]
    if any(text[:1].isdigit() for text in found):
        return frozenset()  # a text may be equal to a number
    return frozenset(found)
