"""Conditions that record both of their sides, what held, and what was never looked at."""

from __future__ import annotations

from collections.abc import Mapping

from pyverno.engine.explain.nodes import ConditionNode, ConditionsNode, FieldPath, GroupNode, Held, Hidden, Node, Shown
from pyverno.engine.explain.recorder import Recorder
from pyverno.engine.explain.secrecy import Secrecy, shortened
from pyverno.engine.rules.conditions import Condition, ConditionBlock, ConditionOutcome, Conditions, condition_test
from pyverno.errors import PyvernoError
from pyverno.kube.json import JSON
from pyverno.lang.runtime import Runtime
from pyverno.lang.template import Template
from pyverno.value import replace

__all__ = ["recorded_conditions"]


def recorded_conditions(conditions: Conditions, recorder: Recorder, secrecy: Secrecy, place: FieldPath) -> Conditions:
    """Return the same conditions, recorded."""
    maker = _Maker(recorder, secrecy)
    blocks = tuple(
        maker.block(block, place if conditions.is_single_block else (*place, index))
        for index, block in enumerate(conditions.blocks)
    )
    listed = tuple(maker.condition(each, (*place, index)) for index, each in enumerate(conditions.listed))
    made = _RecordedConditions(blocks, listed, conditions.is_single_block)
    object.__setattr__(made, "recorder", recorder)
    object.__setattr__(made, "place", place)
    return made


class _Side(Template):
    """A template that keeps its last value."""

    __slots__ = ("last",)
    last: list[JSON]

    @classmethod
    def of(cls, template: Template) -> Template:
        """Return the template with recording; a static one is returned unchanged."""
        if template.is_static:
            return template
        made: Template = cls.__new__(cls)
        for name in ("document", "variables", "errors", "_render", "_failure", "_steps"):
            object.__setattr__(made, name, getattr(template, name))
        object.__setattr__(made, "last", [])
        return made

    def render(
        self, scope: Mapping[str, JSON], runtime: Runtime, *, path: str = "", delete_request: bool = False
    ) -> JSON:
        """Render as the template does."""
        value = Template.render(self, scope, runtime, path=path, delete_request=delete_request)
        self.last[:] = [value]
        return value


class _Maker:
    def __init__(self, recorder: Recorder, secrecy: Secrecy) -> None:
        self._recorder = recorder
        self._secrecy = secrecy

    def block(self, block: ConditionBlock, place: FieldPath) -> ConditionBlock:
        any_of = block.any
        recorded_any = (
            None
            if any_of is None
            else tuple(self.condition(each, (*place, "any", index)) for index, each in enumerate(any_of))
        )
        recorded_all = tuple(self.condition(each, (*place, "all", index)) for index, each in enumerate(block.all))
        made = _RecordedBlock(recorded_any, recorded_all)
        object.__setattr__(made, "recorder", self._recorder)
        object.__setattr__(made, "place", place)
        return made

    def condition(self, condition: Condition, place: FieldPath) -> Condition:
        key, value = _Side.of(condition.key), _Side.of(condition.value)
        test = condition_test(condition, key, value)
        recorder, secrecy = self._recorder, self._secrecy
        reads = secrecy.reads(condition.key, condition.value)

        def recorded(scope: Mapping[str, JSON], runtime: Runtime, deleting: bool) -> bool:
            holds: bool | None = None
            problem = ""
            children: list[Node] = []
            try:
                with recorder.inside() as children:
                    holds = test(scope, runtime, deleting)
            except PyvernoError as error:
                problem = error.message
                raise
            finally:
                for child in children:  # context entries that the condition was the first to read
                    recorder.add(child)
                sides = (
                    _record_side(key, condition.key, secrecy),
                    _record_side(value, condition.value, secrecy),
                )
                texts = (shortened(key.document), condition.operator, shortened(value.document))
                recorder.add(ConditionNode(place, *texts, *sides, holds, problem, reads))
            return holds

        return replace(condition, _test=recorded)


def _record_side(side: Template, written: Template, secrecy: Secrecy) -> Held | None:
    if written.is_static:
        return Shown(shortened(written.document))
    if not isinstance(side, _Side) or not side.last:
        return None
    source = secrecy.source(written)
    return Hidden(source) if source else Shown(shortened(side.last.pop()))


class _RecordedBlock(ConditionBlock):
    __slots__ = ("place", "recorder")
    place: FieldPath
    recorder: Recorder

    def check(self, scope: Mapping[str, JSON], runtime: Runtime, *, delete_request: bool = False) -> ConditionOutcome:
        met: bool | None = None
        children: list[Node] = []
        try:
            with self.recorder.inside() as children:
                outcome = ConditionBlock.check(self, scope, runtime, delete_request=delete_request)
            met = outcome.met
            return outcome
        finally:
            conditions = tuple(each for each in children if isinstance(each, ConditionNode))
            for each in children:
                if not isinstance(each, ConditionNode):
                    self.recorder.add(each)
            self.recorder.add(GroupNode(self.place, met, self.any is not None, conditions))


class _RecordedConditions(Conditions):
    __slots__ = ("place", "recorder")
    place: FieldPath
    recorder: Recorder

    def check(self, scope: Mapping[str, JSON], runtime: Runtime, *, delete_request: bool = False) -> ConditionOutcome:
        """Check as the conditions do, and record it."""
        met: bool | None = None
        problem = ""
        children: list[Node] = []
        try:
            with self.recorder.inside() as children:
                outcome = Conditions.check(self, scope, runtime, delete_request=delete_request)
            met = outcome.met
            return outcome
        except PyvernoError as error:
            problem = error.message
            raise
        finally:
            self.recorder.add(ConditionsNode(self.place, met, problem, tuple(children)))
