"""A pattern has a field that the objects it is for do not have.

A pattern with `spec.container` fails for every Pod, one with `=(hostPid)` passes for every Pod, and a patch with a
misspelt field is refused by the API server when it is too late. The fields of all kinds that the rule matches are
known from Kubernetes' schemas of all versions, and from the definitions that `--crd` gives; a rule that also matches
another kind is not checked.

Example::

    validate:
      pattern:
        spec:
          =(hostPid): false

Write instead::

    validate:
      pattern:
        spec:
          =(hostPID): false
"""

from __future__ import annotations

from collections.abc import Iterator

from pyverno.compiler.lints.fields import FieldTable
from pyverno.compiler.lints.lint import Edit, Problem, Subject, Workspace
from pyverno.compiler.lints.walking import Types, typed_patterns
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.yaml.fieldpath import Path
from pyverno.lang.pattern.anchors import parse_anchor
from pyverno.policy.clusterpolicy import ClusterPolicy
from pyverno.spelling import did_you_mean, same_but_for_case

__all__ = ["check"]


def check(subject: Subject, workspace: Workspace) -> Iterator[Problem]:
    """Yield the keys of patterns and patches that no matched kind has as a field."""
    if not isinstance(subject.written, ClusterPolicy):
        return
    for rule in subject.written.spec.rules:
        kinds = ", ".join(dict.fromkeys(rule.match.kinds()))
        for pattern, path, types in typed_patterns(rule, workspace):
            yield from _unknown(pattern, path, types, workspace.fields(), kinds)


def _unknown(pattern: JSON, path: Path, types: Types, table: FieldTable, kinds: str) -> Iterator[Problem]:
    if isinstance(pattern, list):
        inner = frozenset(table.element(each) for each in types)
        for index, item in enumerate(pattern):
            yield from _unknown(item, (*path, index), inner, table, kinds)
    elif isinstance(pattern, dict) and all(isinstance(each, int) for each in types):
        yield from _unknown_keys(pattern, path, types, table, kinds)


def _unknown_keys(pattern: JSONObject, path: Path, types: Types, table: FieldTable, kinds: str) -> Iterator[Problem]:
    for key, value in pattern.items():
        anchor = parse_anchor(key)
        name = key if anchor is None else anchor.key
        if not name.isidentifier():
            continue  # wildcards, variables, directives of patches, and what `malformed-anchor` reports
        children = [table.child(each, name) for each in types]
        known = frozenset(each for each in children if each is not None)
        if known:
            yield from _unknown(value, (*path, key), known, table, kinds)
            continue
        names = {each for parent in types for each in table.names(parent)}
        hint = did_you_mean(name, names)
        twin = next((each for each in names if same_but_for_case(name, each)), "")
        place = (*path, key)
        edit = Edit(place, name, twin, key.index(name), key=True) if twin else None
        text = f"{kinds} {'have' if ',' in kinds else 'has'} no field `{name}` here{hint}"
        yield Problem(place, text, key=True, edit=edit)
