"""A rule names a kind that no API serves.

A rule that matches `Deploymnet`, `deployment` or `pods` never runs. Kyverno accepts the policy, because the kind may
belong to a CustomResourceDefinition that is installed later. Reported are kinds that are almost those of Kubernetes or
Kyverno, names of resources (`pods`) in place of kinds, and kinds that a group of Kubernetes does not have. Kinds of
other groups are not reported; give their definitions with `--crd` and they are known.

Example::

    match:
      any:
      - resources:
          kinds: [deployment]

Write instead::

    match:
      any:
      - resources:
          kinds: [Deployment]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pyverno.compiler.lints.lint import Edit, Problem, Subject, Workspace
from pyverno.kube.gvk import parse_kind_selector
from pyverno.kube.kinds import KindTable
from pyverno.kube.wildcard import has_wildcard
from pyverno.kube.yaml.fieldpath import Path
from pyverno.policy.clusterpolicy import ClusterPolicy
from pyverno.policy.match import MatchBlocks
from pyverno.spelling import nearest, same_but_for_case

__all__ = ["check"]

_REMOVED = frozenset({"PodSecurityPolicy"})
"""Kinds that older versions of Kubernetes had; policies find manifests that still use them."""


def check(subject: Subject, workspace: Workspace) -> Iterator[Problem]:
    """Yield the kinds in match and exclude that cannot exist."""
    for section in _sections(subject):
        for block in section.blocks:
            for index, selector in enumerate(block.resources.kinds):
                problem = _problem(selector, (*block.resources.path, "kinds", index), workspace.kinds)
                if problem is not None:
                    yield problem


def _sections(subject: Subject) -> Iterable[MatchBlocks]:
    found: list[MatchBlocks | None] = []
    if isinstance(subject.written, ClusterPolicy):
        found = [section for rule in subject.written.spec.rules for section in (rule.match, rule.exclude)]
    else:
        from pyverno.policy.cleanup import CleanupPolicy  # most documents are of other kinds
        from pyverno.policy.exception import PolicyException

        match subject.written:
            case CleanupPolicy() as policy:
                found = [policy.spec.match, policy.spec.exclude]
            case PolicyException() as exception:
                found = [exception.spec.match]
    return [section for section in found if section is not None]


def _problem(selector: str, path: Path, kinds: KindTable) -> Problem | None:
    parsed = parse_kind_selector(selector)
    if not parsed.kind:
        text = f"`{selector}` is not of the form `Kind`, `version/Kind` or `group/version/Kind`, and matches nothing"
        return Problem(path, text)
    if has_wildcard(parsed.kind) or parsed.kind in _REMOVED or kinds.by_kind(parsed.kind):
        return None
    meant = _suggest_kind(parsed.kind, kinds)
    if meant:
        offset = selector.rindex(parsed.kind)
        edit = Edit(path, parsed.kind, meant, offset) if same_but_for_case(parsed.kind, meant) else None
        return Problem(path, f"no API has the kind `{parsed.kind}`: did you mean `{meant}`?", offset, edit=edit)
    if not has_wildcard(parsed.group) and any(info.group == parsed.group for info in kinds):
        return Problem(
            path, f"the API group `{parsed.group}` has no kind `{parsed.kind}`", selector.rindex(parsed.kind)
        )
    return None


def _suggest_kind(kind: str, kinds: KindTable) -> str:
    """Return the kind that a word almost is, or whose resource it names."""
    named = kinds.named(kind)
    if named:
        return named[0].kind
    return nearest(kind, {info.kind for info in kinds}, is_certain=True)
