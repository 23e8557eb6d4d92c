"""Fast verdicts of conditions, generated: whether an object is denied, without scopes, budgets or messages.

They exist for conditions whose variables read nothing but `request.object` and `element` in simple forms. A generated
verdict equals that of the conditions, or raises. See `codegen` for what makes the source
safe.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyverno.engine.result import RuleResult
from pyverno.engine.rule import FastTier, FastVerdict, PassCheck, PassCheckPart
from pyverno.engine.rules.conditions import Condition, Conditions, as_float
from pyverno.kube.json import JSON
from pyverno.kube.wildcard import has_wildcard
from pyverno.lang.codegen import Source
from pyverno.lang.jmespath.fast.expressions import NoFastFormError, write_expression
from pyverno.lang.pattern.operators import compile_operator, operator
from pyverno.lang.pattern.operators_equality import is_mere_text
from pyverno.lang.pattern.price import condition_price
from pyverno.lang.template import Template
from pyverno.lang.template.expression_text import ExpressionText
from pyverno.lang.template.syntax import parse_string
from pyverno.value import dataclass

__all__ = ["Answers", "compile_denial", "compile_denial_of_each", "denial_tier"]

_OBJECT = ("request", "object")
_ELEMENT = ("element",)
_EQUALS = frozenset({"Equal", "Equals"})
_SHORT = 256
_SAME = "v{} = v{} == c{} if type(v{}) is str and len(v{}) <= c{} else c{}(v{})"
_COMPARED_AS_TEXT = {
    "Equal": _SAME,
    "Equals": _SAME,
    "NotEqual": _SAME.replace("==", "!="),
    "NotEquals": _SAME.replace("==", "!="),
}

Results = Sequence[RuleResult]


@dataclass(frozen=True, slots=True)
class Answers:
    """The results that a fast verdict returns; `nothing` is for lists without elements."""

    denied: Results
    passed: Results
    nothing: Results = ()


def compile_denial(conditions: Conditions, answers: Answers) -> FastVerdict | None:
    """Return a function that checks whether the conditions deny it, or None when they are not simple."""
    writer = _Writer()
    try:
        writer.conditions(conditions, answers.denied, 0)
        writer.answer(answers.passed, 0)
        verdict: FastVerdict = writer.source.build()
    except (NoFastFormError, ValueError, RecursionError):
        return None
    return verdict


def compile_denial_of_each(query: ExpressionText, conditions: Conditions, answers: Answers) -> FastVerdict | None:
    """Return a function that checks whether the conditions deny one of the elements of a list in it."""
    if query.inner:
        return None
    writer = _Writer()
    source = writer.source
    try:
        found = write_expression(source, 0, query.expression, writer.roots)
        applied, element = source.variable(), source.variable()
        source.line(0, "v{} = False", applied)
        source.line(0, "for v{} in v{} if type(v{}) is list else [v{}]:", element, found, found, found)
        source.line(1, "if v{} is not None:", element)
        source.line(2, "v{} = True", applied)
        writer.roots[_ELEMENT] = element
        writer.conditions(conditions, answers.denied, 2)
        source.line(0, "if not v{}:", applied)
        writer.answer(answers.nothing, 1)
        writer.answer(answers.passed, 0)
        verdict: FastVerdict = source.build()
    except (NoFastFormError, ValueError, RecursionError):
        return None
    return verdict


@dataclass(frozen=True, slots=True, eq=False)
class _Denial:
    """A fast verdict, and what it returns for an object that it allows."""

    verdict: FastVerdict
    passed: Results


def denial_tier(verdict: FastVerdict | None, answers: Answers) -> FastTier:
    """Return the fast tier of a rule whose fast verdict is a denial; it passes where it gives `answers.passed`."""
    if verdict is None:
        return FastTier()
    passed = tuple(answers.passed)
    return FastTier(verdict, PassCheckPart(_Denial(verdict, answers.passed), _fuse), passed, is_apart=True)


def _fuse(denials: Sequence[_Denial]) -> PassCheck:
    pairs = tuple((each.verdict, each.passed) for each in denials)

    def passes(subject: JSON) -> bool:
        for verdict, passed in pairs:  # noqa: SIM110 - `all` costs as much as a short verdict
            if verdict(subject) is not passed:
                return False
        return True

    return passes


class _Writer:
    """Writes conditions as source; `roots` names the variables that hold the object and the element."""

    def __init__(self) -> None:
        self.source = Source(arguments=1)
        self.roots: dict[tuple[str, ...], int] = {_OBJECT: 0}

    def answer(self, value: Results, indent: int) -> None:
        self.source.line(indent, "return c{}", self.source.constant(value))

    def conditions(self, conditions: Conditions, denied: Results, indent: int) -> None:
        """Write a return of `denied` under the condition that all of these hold."""
        if conditions.listed or not conditions.is_single_block:
            raise NoFastFormError
        block = conditions.blocks[0]
        # every condition is looked at, so that an error in any of them sends the caller to the closures
        every = [self.condition(condition, indent) for condition in block.all]
        some = [self.condition(condition, indent) for condition in block.any or ()]
        if block.any is not None:
            either = " or ".join("v{}" for _ in some) or "False"
            every_holds = "".join("v{} and " for _ in every)
            self.source.line(indent, "if " + every_holds + "(" + either + "):", *every, *some)
        else:
            self.source.line(indent, "if " + (" and ".join("v{}" for _ in every) or "True") + ":", *every)
        self.answer(denied, indent + 1)

    def condition(self, condition: Condition, indent: int) -> int:
        """Write one condition; return the variable that holds its result."""
        key, value = condition.key, condition.value
        if key.is_static and value.is_static:
            raise NoFastFormError
        holds = self.source.variable()
        if value.is_static:
            self.against_fixed(holds, condition, self.side(key, indent), indent)
        elif key.is_static:
            self.fixed_against(holds, condition, self.side(value, indent), indent)
        else:
            found = (self.side(key, indent), self.side(value, indent))
            compared = self.source.constant(_compare(condition))
            self.source.line(indent, "v{} = c{}(v{}, v{})", holds, compared, *found)
        return holds

    def against_fixed(self, holds: int, condition: Condition, found: int, indent: int) -> None:
        name, fixed = condition.operator, condition.value.document
        check = compile_operator(name, as_float(fixed), condition.sides)
        if check is None:
            raise NoFastFormError

        def affordable(value: JSON) -> bool:
            _refuse_dear(value, fixed)
            return check(as_float(value))

        exact = self.source.constant(affordable)
        if name in _EQUALS and isinstance(fixed, bool):
            template = "v{} = v{} is c{} if type(v{}) is bool else c{}(v{})"
            self.source.line(indent, template, holds, found, self.source.constant(fixed), found, exact, found)
        elif name in _COMPARED_AS_TEXT and isinstance(fixed, str) and is_mere_text(fixed):
            template = _COMPARED_AS_TEXT[name]
            longest, text = self.source.constant(_SHORT), self.source.constant(fixed)
            self.source.line(indent, template, holds, found, text, found, found, longest, exact, found)
        elif name == "AnyNotIn" and _are_plain_texts(fixed):
            knows_all = self.source.constant(frozenset(fixed).issuperset)
            template = "v{} = not (type(v{}) is list and c{}(v{})) and c{}(v{})"
            self.source.line(indent, template, holds, found, knows_all, found, exact, found)
        else:
            self.source.line(indent, "v{} = c{}(v{})", holds, exact, found)

    def fixed_against(self, holds: int, condition: Condition, found: int, indent: int) -> None:
        name, fixed = condition.operator, condition.key.document
        key, exact = self.source.constant(fixed), self.source.constant(_compare(condition))
        if name == "AnyNotIn" and isinstance(fixed, str):
            template = "v{} = not (type(v{}) is list and c{} in v{}) and c{}(c{}, v{})"
            self.source.line(indent, template, holds, found, key, found, exact, key, found)
        else:
            self.source.line(indent, "v{} = c{}(c{}, v{})", holds, exact, key, found)

    def side(self, template: Template, indent: int) -> int:
        """Write one side of a condition that is one whole variable."""
        document = template.document
        if not isinstance(document, str) or template.errors:
            raise NoFastFormError
        if parse_string(document).whole is None or len(template.variables) != 1:
            raise NoFastFormError
        expression = template.variables[0].expression
        if expression is None:
            raise NoFastFormError
        return write_expression(self.source, indent, expression, self.roots)


def _compare(condition: Condition) -> Callable[[JSON, JSON], bool]:
    compare = operator(condition.operator, condition.sides)
    if compare is None:
        raise NoFastFormError

    def affordable(key: JSON, value: JSON) -> bool:
        _refuse_dear(key, value)
        return compare(as_float(key), as_float(value))

    return affordable


def _refuse_dear(key: JSON, value: JSON) -> None:
    """Leave conditions that have a price to the closures, which have a budget."""
    if isinstance(key, (str, list)) and condition_price(key, value):
        raise NoFastFormError


def _are_plain_texts(value: JSON) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) and not has_wildcard(item) for item in value)
