"""The other parts of a rule that record: context entries, guards, lists of a foreach, exceptions and actions."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from pyverno.engine.actions.elements import Elements
from pyverno.engine.actions.pattern import AnyPatternCheck, PatternCheck
from pyverno.engine.actions.pod_security import PodSecurityRule
from pyverno.engine.effects import CreateEffect, Effect, PatchEffect
from pyverno.engine.explain.nodes import (
    CheckNode,
    ContextNode,
    ControlNode,
    EffectNode,
    ElementNode,
    ExceptionNode,
    FieldPath,
    ForeachNode,
    Hidden,
    Node,
    PatchNode,
    Shown,
)
from pyverno.engine.explain.patterns import RecordedPattern
from pyverno.engine.explain.recorder import Recorder
from pyverno.engine.explain.secrecy import Secrecy, shortened, source_name
from pyverno.engine.match import IndexKey
from pyverno.engine.result import ResourceRef, Verdict
from pyverno.engine.rule import Action, Binding, Exemption, Guard, RuleInfo, Run
from pyverno.engine.scope import Scope
from pyverno.errors import PyvernoError
from pyverno.kube.json import JSON
from pyverno.kube.patch.jsondiff import create_patch
from pyverno.kube.resource import Resource
from pyverno.lang.pattern.validate import Pattern
from pyverno.podsecurity import CHECKS, CONTROLS, Exclude

__all__ = [
    "RecordedAction",
    "RecordedAnyPattern",
    "RecordedBinding",
    "RecordedElements",
    "RecordedExemption",
    "RecordedGuard",
    "RecordedPatternCheck",
]

MAX_ELEMENTS = 200
"""Elements of one list that are recorded."""

_CONTROL_OF = {check.id: control.name for control in CONTROLS for check in control.checks}


class RecordedBinding:
    """A context entry that records its value when it is loaded."""

    __slots__ = ("_inner", "_place", "_recorder", "_secrecy")

    def __init__(self, inner: Binding, recorder: Recorder, secrecy: Secrecy, place: FieldPath) -> None:
        self._inner = inner
        self._recorder = recorder
        self._secrecy = secrecy
        self._place = place

    @property
    def name(self) -> str:
        """The name that the entry binds."""
        return self._inner.name

    def bind(self, run: Run) -> Scope:
        """Bind as the entry does; the value passes through here."""
        inner = self._inner.bind(run)
        name = self._inner.name

        def load() -> JSON:
            source = source_name(self._inner)
            try:
                value = inner[name]
            except PyvernoError as error:
                self._recorder.add(ContextNode(self._place, name, source, error=error.message))
                raise
            hidden = self._secrecy.entry(name)
            held = Hidden(hidden) if hidden else Shown(shortened(value))
            self._recorder.add(ContextNode(self._place, name, source, held))
            return value

        return run.scope.bind(name, load)


class RecordedGuard:
    """A guard that always runs, so that it is recorded."""

    __slots__ = ("_inner",)

    def __init__(self, inner: Guard) -> None:
        self._inner = inner

    def check(self, run: Run) -> Verdict | None:
        """Answer as the guard does."""
        return self._inner.check(run)

    def surely_holds(self, key: IndexKey) -> bool:
        """Leave the answer to `check`."""
        return False


class RecordedElements(Elements):
    """A list of a foreach that records its elements, each with what was looked at for it."""

    __slots__ = ("place", "recorder", "secrecy")
    secrecy: Secrecy
    place: FieldPath
    recorder: Recorder

    @classmethod
    def of(cls, inner: Elements, recorder: Recorder, secrecy: Secrecy, place: FieldPath) -> RecordedElements:
        """Return the same list, recorded."""
        made = cls(inner.query, inner.bindings, inner.preconditions, inner.depth)
        for name, value in (("recorder", recorder), ("secrecy", secrecy), ("place", place)):
            object.__setattr__(made, name, value)
        return made

    def values(self, run: Run) -> list[JSON]:
        """Evaluate the list, and record how long it is."""
        try:
            values = Elements.values(self, run)
        except PyvernoError as error:
            self.recorder.add(ForeachNode(self.place, self.query.text, None, error.message))
            raise
        self.recorder.add(ForeachNode(self.place, self.query.text, len(values)))
        return values

    def visit(self, run: Run, values: list[JSON], *, reverse: bool = False) -> Iterator[tuple[int, JSON, Run]]:
        """Visit the elements; what happens between two of them belongs to the first."""
        source = self.secrecy.of_text(self.query.text)
        for count, (index, element, inner) in enumerate(Elements.visit(self, run, values, reverse=reverse)):
            if count >= MAX_ELEMENTS:
                yield index, element, inner
                continue
            children: list[Node] = []
            try:
                with self.recorder.inside() as children:
                    yield index, element, inner
            finally:
                held = Hidden(source) if source else Shown(shortened(element))
                self.recorder.add(ElementNode(index, held, tuple(children)))


class RecordedExemption:
    """A PolicyException that records whether it applies. `part` is the exception with recorded parts."""

    __slots__ = ("_inner", "_part", "_recorder")

    def __init__(self, inner: Exemption, part: Exemption, recorder: Recorder) -> None:
        self._inner = inner
        self._part = part
        self._recorder = recorder

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return self._inner.key

    @property
    def pod_security(self) -> Sequence[Exclude]:
        """The excludes of the exception."""
        return self._inner.pod_security

    @property
    def is_full(self) -> bool:
        """Whether the whole rule is exempt."""
        return self._inner.is_full

    @property
    def priority(self) -> int:
        """The priority of the exception."""
        return self._inner.priority

    @property
    def reports_pass(self) -> bool:
        """Whether an exempt policy is reported as pass."""
        return self._inner.reports_pass

    @property
    def allowances(self) -> Mapping[str, JSON]:
        """The variable `exceptions` of expressions."""
        return self._inner.allowances

    @property
    def policy_names(self) -> Collection[str]:
        """The policies that the exception refers to."""
        return self._inner.policy_names

    def names_rule(self, info: RuleInfo) -> bool:
        """Answer as the exception does."""
        return self._inner.names_rule(info)

    def applies(self, run: Run, resource: Resource) -> bool:
        """Answer as the exception does, and record it."""
        applies: bool | None = None
        problem = ""
        children: list[Node] = []
        try:
            with self._recorder.inside() as children:
                applies = self._part.applies(run, resource)
            return applies
        except PyvernoError as error:
            problem = error.message
            raise
        finally:
            self._recorder.add(ExceptionNode(self._inner.key, applies, problem, tuple(children)))


class RecordedPatternCheck(PatternCheck):
    """A pattern with variables: what they make of it is recorded when it is matched."""

    __slots__ = ("recorder", "secrecy")
    secrecy: Secrecy
    recorder: Recorder

    def make(self, document: JSON, run: Run) -> Pattern:
        """Compile the pattern of one request, recorded."""
        return _recorded_pattern(PatternCheck.make(self, document, run), self)


class RecordedAnyPattern(AnyPatternCheck):
    """Alternatives with variables, recorded as above."""

    __slots__ = ("recorder", "secrecy")
    secrecy: Secrecy
    recorder: Recorder

    def make(self, document: JSON, run: Run) -> Pattern:
        """Compile one alternative of one request, recorded."""
        return _recorded_pattern(AnyPatternCheck.make(self, document, run), self)


def _recorded_pattern(pattern: Pattern, check: RecordedPatternCheck | RecordedAnyPattern) -> Pattern:
    return RecordedPattern(
        pattern.tree,
        float_numbers=pattern.float_numbers,
        recorder=check.recorder,
        secrecy=check.secrecy,
        source=check.secrecy.source(check.template),
    )


class RecordedAction:
    """An action that records its verdicts and what led to them."""

    __slots__ = ("_inner", "_kind", "_place", "_recorder", "_secrecy")

    def __init__(self, inner: Action, kind: str, recorder: Recorder, secrecy: Secrecy, place: FieldPath) -> None:
        self._inner = inner
        self._kind = kind
        self._recorder = recorder
        self._secrecy = secrecy
        self._place = place

    def run(self, run: Run) -> Sequence[Verdict]:
        """Do the work of the action."""
        children: list[Node] = []
        verdicts: Sequence[Verdict] = ()
        try:
            with self._recorder.inside() as children:
                verdicts = self._inner.run(run)
            return verdicts
        finally:
            self._record(verdicts, children, run)

    def exempt(self, run: Run, exemptions: Sequence[Exemption]) -> Sequence[Verdict] | None:
        """Judge the run under exceptions as the action does."""
        children: list[Node] = []
        verdicts: Sequence[Verdict] | None = None
        try:
            with self._recorder.inside() as children:
                verdicts = self._inner.exempt(run, exemptions)
            return verdicts
        finally:
            if verdicts is not None:
                self._record(verdicts, children, run)

    def _record(self, verdicts: Sequence[Verdict], children: list[Node], run: Run) -> None:
        extra: list[Node] = []
        if isinstance(self._inner, PodSecurityRule):
            extra += _controls(self._inner, run)
        for verdict in verdicts:
            if verdict.patched is not None and verdict.target is None and not self._recorder.hides_object:
                operations = create_patch(run.resource, verdict.patched)
                if self._secrecy.holds_foreign_values:
                    operations = [{name: each[name] for name in ("op", "path")} for each in operations]
                extra.append(PatchNode(tuple(operations)))
            extra += [EffectNode(*_effect(effect)) for effect in verdict.effects]
        statuses = tuple(verdict.status.value for verdict in verdicts)
        message = next((verdict.message for verdict in verdicts), "")
        self._recorder.add(CheckNode(self._kind, self._place, statuses, message, (*children, *extra)))


def _controls(rule: PodSecurityRule, run: Run) -> Iterator[ControlNode]:
    """Yield every check of the level with its outcome, as the rule's own excludes leave it."""
    try:
        outcome = rule.check.check(run.resource, run.request.gvk.kind)
    except PyvernoError:
        return  # the verdict holds the error
    violated = {violation.check_id: violation for violation in outcome.violations}
    chosen = {check_id for check_id, _ in rule.check.judges}
    for check in CHECKS:
        if check.id not in chosen:
            continue
        violation = violated.get(check.id)
        if violation is None:
            yield ControlNode(check.id, _CONTROL_OF[check.id], True)
        else:
            fields = tuple(error.field for error in violation.errors)
            yield ControlNode(check.id, _CONTROL_OF[check.id], False, violation.reason, fields)


def _effect(effect: Effect) -> tuple[str, str]:
    if isinstance(effect, CreateEffect):
        return "create", str(ResourceRef.of(effect.resource))
    return ("patch" if isinstance(effect, PatchEffect) else "delete"), str(effect.target)
