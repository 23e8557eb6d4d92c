"""Matchers that record which block and which field decided, and the match nodes of requests that no rule saw."""

from __future__ import annotations

from collections.abc import Iterator

from pyverno.engine.cel.constraints import ConstraintMatcher
from pyverno.engine.explain.nodes import BlockNode, FieldNode, FieldPath, MatchNode
from pyverno.engine.explain.recorder import Recorder
from pyverno.engine.match import Filter, IndexKey, Matcher
from pyverno.engine.request import Request
from pyverno.engine.rule import RequestMatcher, RuleInfo
from pyverno.kube.resource import Resource

__all__ = ["RecordedConstraints", "RecordedMatcher", "RecordedRuleMatcher", "match_node"]

_OTHER = "the rule is for other kinds, operations or namespaces"
_CONSTRAINTS = (
    ("the namespaceSelector", "namespaceSelector"),
    ("the objectSelector", "objectSelector"),
    ("excluded by", "excludeResourceRules"),
    ("the policy is confined", "namespace"),
)


def match_node(
    matcher: RequestMatcher, request: Request, resource: Resource, *, role: str, place: FieldPath, reason: str | None
) -> MatchNode:
    """Return the node of a matcher that gave this reason (None = it selects the request)."""
    if isinstance(matcher, Matcher):
        blocks = tuple(_blocks(matcher, request, resource, place, reason))
    else:
        blocks = _constraint_blocks(place, reason)
    return MatchNode(role, place, reason is None, reason or "", blocks)


def _blocks(
    matcher: Matcher, request: Request, resource: Resource, place: FieldPath, reason: str | None
) -> Iterator[BlockNode]:
    if not isinstance(request.subject, dict):
        return
    ignores_user = request.user.is_empty
    kinds = (
        ("match", "any", matcher.any_of, ignores_user),
        ("match", "all", () if matcher.any_of else matcher.all_of, ignores_user),
        ("exclude", "any", matcher.exclude_any, False),
        ("exclude", "all", matcher.exclude_all, False),
    )
    for word, group, blocks, ignore in kinds:
        for index, block in enumerate(blocks):
            fields = tuple(_fields(block, request, resource, ignore_user=ignore))
            yield BlockNode((*place, word, group, index), all(each.holds for each in fields), fields)


def _fields(block: Filter, request: Request, resource: Resource, *, ignore_user: bool) -> Iterator[FieldNode]:
    """Yield the fields that the block restricts, up to the first that does not fit."""
    reason = block.first_mismatch(request, resource, ignore_user=ignore_user)
    user = not ignore_user
    restricted = (
        ("operations", bool(block.operations), "operation "),
        ("kinds", bool(block.kinds), "kind "),
        ("names", bool(block.names), "name "),
        ("namespaces", bool(block.namespaces), "namespace "),
        ("annotations", bool(block.annotations), "the annotations"),
        ("selector", block.selector is not None, "the selector"),
        ("namespaceSelector", block.namespace_selector is not None, ("the namespaceSelector", "a namespaceSelector")),
        ("roles", user and bool(block.roles), "the user has none of the roles"),
        ("clusterRoles", user and bool(block.cluster_roles), "the user has none of the clusterRoles"),
        ("subjects", user and bool(block.subjects), "the user is none"),
    )
    for name, is_restricted, start in restricted:
        if reason is not None and reason.startswith(start):
            yield FieldNode(name, False, reason)
            return
        if is_restricted:
            yield FieldNode(name, True)
    if reason is not None:
        yield FieldNode("", False, reason)


def _constraint_blocks(place: FieldPath, reason: str | None) -> tuple[BlockNode, ...]:
    if reason is None:
        return ()
    name = next((name for start, name in _CONSTRAINTS if reason.startswith(start)), "resourceRules")
    return (BlockNode((*place, name), False, (FieldNode(name, False, reason),)),)


class RecordedMatcher(Matcher):
    """Match blocks of an exception that record their answer; see `RecordedRuleMatcher` for those of rules."""

    __slots__ = ("recorder",)
    recorder: Recorder

    @classmethod
    def of(cls, matcher: Matcher, recorder: Recorder) -> RecordedMatcher:
        """Return the same matcher, recorded."""
        made = cls(matcher.any_of, matcher.all_of, matcher.exclude_any, matcher.exclude_all, matcher.policy_namespace)
        object.__setattr__(made, "recorder", recorder)
        return made

    def mismatch(self, request: Request, resource: Resource) -> str | None:
        """Decide as the matcher does, and record it."""
        reason = Matcher.mismatch(self, request, resource)
        self.recorder.add(match_node(self, request, resource, role="exception", place=(), reason=reason))
        return reason


class RecordedConstraints(ConstraintMatcher):
    """Constraints of a binding or of targets that record their answer."""

    __slots__ = ("place", "recorder")
    recorder: Recorder
    place: FieldPath

    @classmethod
    def of(cls, matcher: ConstraintMatcher, recorder: Recorder, place: FieldPath) -> RecordedConstraints:
        """Return the same constraints, recorded."""
        made = cls(
            matcher.rules,
            matcher.excludes,
            matcher.namespace_selector,
            matcher.object_selector,
            matcher.is_equivalent,
            matcher.policy_namespace,
            matcher.matches_generated_names,
            matcher.never,
            matcher.kinds,
        )
        object.__setattr__(made, "recorder", recorder)
        object.__setattr__(made, "place", place)
        return made

    def mismatch(self, request: Request, resource: Resource) -> str | None:
        """Decide as the constraints do, and record it."""
        reason = ConstraintMatcher.mismatch(self, request, resource)
        self.recorder.add(match_node(self, request, resource, role="binding", place=self.place, reason=reason))
        return reason


class RecordedRuleMatcher:
    """The matcher of a rule: begins the rule in the recorder, and records why it is or is not about the request."""

    __slots__ = ("_fits", "_info", "_inner", "_place", "_recorder")

    def __init__(self, inner: RequestMatcher, info: RuleInfo, recorder: Recorder, place: FieldPath) -> None:
        self._inner = inner
        self._info = info
        self._recorder = recorder
        self._place = place
        self._fits = True

    @property
    def blocks(self) -> tuple[Filter, ...]:
        """The blocks of the matcher."""
        return self._inner.blocks

    @property
    def policy_namespace(self) -> str:
        """The namespace of the matcher."""
        return self._inner.policy_namespace

    def may_match(self, key: IndexKey) -> bool:
        """Let every request through to `mismatch`, which records what the index key decides."""
        self._fits = self._inner.may_match(key)
        return True

    def surely_matches(self, key: IndexKey) -> bool:
        """Leave the answer to `mismatch`."""
        return False

    def names_operation(self, operation: str) -> bool:
        """Answer as the matcher does."""
        return self._inner.names_operation(operation)

    def mismatch(self, request: Request, resource: Resource) -> str | None:
        """Decide as matcher and index do, and record it; a second call judges the object before the update."""
        self._recorder.start(self._info)
        reason = self._inner.mismatch(request, resource)
        if reason is None and not self._fits:
            reason = _OTHER
        self._recorder.mismatch(reason)
        self._recorder.add(match_node(self._inner, request, resource, role="rule", place=self._place, reason=reason))
        return reason
