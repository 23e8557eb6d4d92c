"""A rule does the same as another one.

Two rules with the same match, exclude, preconditions and check give every result twice: the second can go. Names,
messages and failure actions are not compared. Kinds of policies are compared among themselves.

Example::

    rules:
    - name: check-team
      match: {any: [{resources: {kinds: [Pod]}}]}
      validate: {pattern: {metadata: {labels: {team: "?*"}}}}
    - name: require-team      # the same under another name
      match: {any: [{resources: {kinds: [Pod]}}]}
      validate: {pattern: {metadata: {labels: {team: "?*"}}}}
"""

from __future__ import annotations

from collections.abc import Iterator

from pyverno.compiler.lints.lint import Problem, Subject, Workspace
from pyverno.compiler.lints.selection import NamedRule, cel_rules, written_rules

__all__ = ["check"]


def check(subject: Subject, workspace: Workspace) -> Iterator[Problem]:
    """Yield the rules that repeat one of this policy or of a policy before it."""
    first = workspace.memo.get("shadowed-rule")
    if first is None:
        first = workspace.memo["shadowed-rule"] = _firsts(workspace)
    assert isinstance(first, dict)  # noqa: S101  # made below
    for rule in (*written_rules(subject), *cel_rules(subject)):
        origin = first.get((rule.selection, rule.action))
        if origin is not None and not _is_same(origin, rule) and rule.is_comparable(origin):
            yield Problem(rule.path, f"{rule.name} does the same as {origin.qualified_name(rule)}")


def _is_same(one: NamedRule, other: NamedRule) -> bool:
    return one.subject is other.subject and one.path == other.path


def _firsts(workspace: Workspace) -> dict[tuple[str, str], NamedRule]:
    found: dict[tuple[str, str], NamedRule] = {}
    for subject in workspace.subjects:
        for rule in (*written_rules(subject), *cel_rules(subject)):
            found.setdefault((rule.selection, rule.action), rule)
    return found
