"""A pattern has a list where the objects have a map, or a map where they have a list.

Such a pattern fails for every object that has the field, and the API server refuses such a patch. The shapes of
fields are known from Kubernetes' schemas of all versions, and from the definitions that `--crd` gives; a rule that also
matches another kind is not checked.

Example::

    validate:
      pattern:
        spec:
          containers:
            image: "*:*"

Write instead::

    validate:
      pattern:
        spec:
          containers:
          - image: "*:*"
"""

from __future__ import annotations

from collections.abc import Iterator

from pyverno.compiler.lints.fields import ANY, FieldTable
from pyverno.compiler.lints.lint import Problem, Subject, Workspace
from pyverno.compiler.lints.walking import Types, typed_patterns
from pyverno.kube.json import JSON
from pyverno.kube.yaml.fieldpath import Path
from pyverno.lang.pattern.anchors import parse_anchor
from pyverno.policy.clusterpolicy import ClusterPolicy

__all__ = ["check"]


def check(subject: Subject, workspace: Workspace) -> Iterator[Problem]:
    """Yield the lists and maps of patterns and patches at places where no matched kind has one."""
    if not isinstance(subject.written, ClusterPolicy):
        return
    for rule in subject.written.spec.rules:
        name = f"an object of kind {', '.join(dict.fromkeys(rule.match.kinds()))}"
        for pattern, path, types in typed_patterns(rule, workspace):
            yield from _misshapen(pattern, path, types, workspace.fields(), name)


def _misshapen(pattern: JSON, path: Path, types: Types, table: FieldTable, name: str) -> Iterator[Problem]:
    known = {_shape(each) for each in types}
    shape = "list" if isinstance(pattern, list) else "map" if isinstance(pattern, dict) else ""
    if shape and ANY not in known and shape not in known:
        hint = ": begin its items with `- `" if known == {"list"} else ""
        yield Problem(path, f"{name} is a {' or '.join(sorted(known))}, and this is a {shape}{hint}")
        return
    if isinstance(pattern, list):
        inner = frozenset(table.element(each) for each in types)
        for index, item in enumerate(pattern):
            yield from _misshapen(item, (*path, index), inner, table, f"an item of {name}")
    elif isinstance(pattern, dict):
        for key, value in pattern.items():
            anchor = parse_anchor(key)
            field = key if anchor is None else anchor.key
            children = frozenset(found for each in types if (found := table.child(each, field)) is not None)
            if children:
                yield from _misshapen(value, (*path, key), children, table, f"`{field}`")


def _shape(type_: int | str) -> str:
    if isinstance(type_, int):
        return "map"
    return ANY if type_ == ANY else "list" if type_.startswith("[") else "plain value"
