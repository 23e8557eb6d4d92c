"""A rule can match no object.

Reported is only what is certain: blocks of `all` without a common kind, an `exclude` that covers every block of the
`match`, namespaces for kinds that live in none, a label selector that contradicts itself, and a policy in CEL whose
`excludeResourceRules` cover its `resourceRules`.

Example::

    match:
      all:
      - resources:
          kinds: [Pod]
      - resources:
          kinds: [Deployment]

Write instead::

    match:
      any:
      - resources:
          kinds: [Pod]
      - resources:
          kinds: [Deployment]
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyverno.compiler.lints.lint import Problem, Subject, Workspace
from pyverno.kube.gvk import parse_kind_selector
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.kinds import KindTable
from pyverno.kube.wildcard import has_wildcard
from pyverno.kube.yaml.fieldpath import Path
from pyverno.policy.clusterpolicy import ClusterPolicy
from pyverno.policy.match import MatchBlocks, ResourceFilter
from pyverno.policy.rule import Rule

if TYPE_CHECKING:
    from pyverno.policy.cel.constraints import ResourceRule

__all__ = ["check"]


def check(subject: Subject, workspace: Workspace) -> Iterator[Problem]:
    """Yield the rules and policies that certainly match nothing."""
    if isinstance(subject.written, ClusterPolicy):
        for rule in subject.written.spec.rules:
            yield from _rule_problems(rule, workspace.kinds)
        return
    from pyverno.compiler.lints.checks.unknown_resource import constraints_of  # loaded with the policies in CEL

    for constraints in constraints_of(subject):
        for name in ("namespaceSelector", "objectSelector"):
            yield from _selector_problems(constraints.raw.get(name), (*constraints.path, name))
        if constraints.resource_rules and all(
            any(_covers(other, rule) for other in constraints.exclude_resource_rules)
            for rule in constraints.resource_rules
        ):
            text = "excludeResourceRules exclude everything that resourceRules match"
            yield Problem((*constraints.path, "excludeResourceRules"), text, key=True)


def _covers(outer: ResourceRule, inner: ResourceRule) -> bool:
    """Return whether everything that a rule matches is matched by another one."""
    if outer.resource_names or outer.scope not in ("", "*", inner.scope):
        return False
    pairs = (
        (outer.api_groups, inner.api_groups),
        (outer.api_versions, inner.api_versions),
        (outer.operations, inner.operations),
    )
    return all("*" in wide or set(narrow) <= set(wide) for wide, narrow in pairs) and (
        "*/*" in outer.resources or set(inner.resources) <= set(outer.resources)
    )


def _rule_problems(rule: Rule, kinds: KindTable) -> Iterator[Problem]:
    match = rule.match
    if len(match.all) > 1 and not match.any:
        named = [set(block.resources.kinds) for block in match.all if block.resources.kinds]
        plain = all(not has_wildcard(kind) and "/" not in kind and "." not in kind for each in named for kind in each)
        if len(named) > 1 and plain and not set.intersection(*named):
            text = "no object is of all these kinds at once: use `any` in place of `all`"
            yield Problem((*match.path, "all"), text, key=True)
    if rule.exclude is not None and _excludes_all(match, rule.exclude):
        yield Problem(rule.exclude.path, "the exclude covers everything that the rule matches", key=True)
    for block in match.blocks:
        yield from _block_problems(block, kinds)


def _excludes_all(match: MatchBlocks, exclude: MatchBlocks) -> bool:
    if exclude.all or not match.blocks:
        return False
    blocks = exclude.any or ((exclude.flat,) if exclude.flat is not None else ())
    # blocks of `all` narrow each other: it is enough that one of them is excluded
    found = [any(_contains(outer, inner) for outer in blocks) for inner in match.blocks]
    return any(found) if match.all else all(found)


def _contains(outer: ResourceFilter, inner: ResourceFilter) -> bool:
    """Return whether every request that a block matches is matched by another one, judging by what is written."""
    if outer.is_empty:
        return False
    wide, narrow = _conditions(outer.raw), _conditions(inner.raw)
    for key, value in wide.items():
        other = narrow.get(key)
        if value == other:
            continue
        if key != "kinds" or not isinstance(value, list) or not isinstance(other, list) or not set(other) <= set(value):
            return False
    return bool(wide)


def _conditions(raw: JSONObject) -> JSONObject:
    resources = raw.get("resources")
    flat = {**raw, **(resources if isinstance(resources, dict) else {})}
    return {key: value for key, value in flat.items() if key != "resources" and value}


def _block_problems(block: ResourceFilter, kinds: KindTable) -> Iterator[Problem]:
    resources = block.resources
    for name in ("selector", "namespaceSelector"):
        written = block.raw.get("resources")
        yield from _selector_problems(written.get(name) if isinstance(written, dict) else None, (*resources.path, name))
    if resources.namespaces and not any(has_wildcard(name) for name in resources.namespaces) and resources.kinds:
        scopes = {_scope(kind, kinds) for kind in resources.kinds}
        if scopes == {False}:
            listed = ", ".join(f"`{kind}`" for kind in resources.kinds)
            text = f"objects of the kinds {listed} live in no namespace, so that the rule matches none of them"
            yield Problem((*resources.path, "namespaces"), text, key=True)


def _scope(selector: str, kinds: KindTable) -> bool | None:
    """Return whether a kind lives in namespaces; None where that is unknown, and for Namespace, which has its name."""
    parsed = parse_kind_selector(selector)
    found = {info.namespaced for info in kinds.by_kind(parsed.kind) if parsed.matches(info.gvk)}
    return found.pop() if len(found) == 1 and parsed.kind != "Namespace" else None


def _selector_problems(selector: JSON, path: Path) -> Iterator[Problem]:
    """Yield the keys of a label selector whose requirements contradict each other."""
    if not isinstance(selector, dict):
        return
    labels = selector.get("matchLabels")
    labels = labels if isinstance(labels, dict) else {}
    requirements = selector.get("matchExpressions")
    exists: set[str] = set(labels)
    absent: dict[str, int] = {}
    for index, each in enumerate(requirements if isinstance(requirements, list) else ()):
        if not isinstance(each, dict) or not isinstance(each.get("key"), str):
            continue
        key, operator, values = each["key"], each.get("operator"), each.get("values") or []
        fixed = labels.get(key)
        is_wild = isinstance(fixed, str) and has_wildcard(fixed)
        if operator == "DoesNotExist":
            absent[key] = index
        elif operator in ("Exists", "In"):
            exists.add(key)
        is_refused = (operator == "In" and fixed not in values) or (operator == "NotIn" and fixed in values)
        if fixed is not None and not is_wild and is_refused:
            text = f"the label `{key}` cannot be `{fixed}` and fulfil this at the same time"
            yield Problem((*path, "matchExpressions", index), text)
    for key, index in absent.items():
        if key in exists:
            text = f"the label `{key}` must exist and must not exist at the same time"
            yield Problem((*path, "matchExpressions", index), text)
