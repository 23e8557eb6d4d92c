"""Conditions: preconditions, deny conditions and their kin, compiled once and checked often.

Three forms exist: a map of `any` and `all`, the older bare list, and a list of such maps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set

from pyverno.errors import EvaluationError, ExpressionError, SubstitutionError
from pyverno.kube.json import JSON
from pyverno.kube.wildcard import has_wildcard
from pyverno.lang.pattern.operators import BOTH_SIDES, Sides, compile_operator, is_negated, operator
from pyverno.lang.pattern.price import condition_price
from pyverno.lang.runtime import Runtime
from pyverno.lang.template import Template, compile_template
from pyverno.lang.template.syntax import parse_string
from pyverno.lazyregex import regex
from pyverno.value import dataclass

__all__ = [
    "Condition",
    "ConditionBlock",
    "ConditionOutcome",
    "Conditions",
    "as_float",
    "compile_conditions",
    "condition_test",
    "reads_data",
]

_EXACT_FLOAT = 2**53
_REQUEST = regex(r"\b(?:request|element[0-9]*|target|images)\b")
_WITHOUT_WILDCARDS = frozenset(
    {
        "request.namespace",
        "request.object.metadata.namespace",
        "request.oldObject.metadata.namespace",
        "request.operation",
    }
)
"""Variables that an API server fills in, or holds against what it filled in."""


Test = Callable[[Mapping[str, JSON], Runtime, bool], bool]


@dataclass(frozen=True, slots=True)
class ConditionOutcome:
    """Whether conditions are met, and the texts of those that decided it with what is between them."""

    met: bool
    pieces: tuple[str, ...] = ()

    @property
    def message(self) -> str:
        """The texts as they are written, joined."""
        return "".join(self.pieces)


_MET = ConditionOutcome(True)


@dataclass(frozen=True, slots=True)
class Condition:
    """One compiled condition; `message` is the text as it is written, only a denial replaces variables in it."""

    key: Template
    operator: str
    value: Template
    message: str
    sides: Sides
    _test: Test

    def holds(self, scope: Mapping[str, JSON], runtime: Runtime, *, delete_request: bool = False) -> bool:
        """Return whether the condition is true; raises SubstitutionError or EvaluationError."""
        return self._test(scope, runtime, delete_request)


@dataclass(frozen=True, slots=True)
class ConditionBlock:
    """A map of `any` and `all`: one of the first and every one of the second must hold; `any` is None when absent."""

    any: tuple[Condition, ...] | None
    all: tuple[Condition, ...]

    def check(self, scope: Mapping[str, JSON], runtime: Runtime, *, delete_request: bool = False) -> ConditionOutcome:
        """Return the outcome; `all` is looked at even when `any` failed, so that its errors are seen."""
        # Kyverno: pkg/engine/variables, evaluateAnyAllConditions
        true: list[str] = []
        false: list[str] = []
        any_holds = self.any is None
        for condition in self.any or ():
            if condition.holds(scope, runtime, delete_request=delete_request):
                any_holds = True
                true.append(condition.message)
                break
            false.append(condition.message)
        all_hold = True
        for condition in self.all:
            if not condition.holds(scope, runtime, delete_request=delete_request):
                all_hold = False
                false.append(condition.message)
                break
            true.append(condition.message)
        if any_holds and all_hold:
            return ConditionOutcome(True, _join(true, "; "))
        return ConditionOutcome(False, _join(false, "; "))

    def holds(self, scope: Mapping[str, JSON], runtime: Runtime, *, delete_request: bool = False) -> bool:
        """Return whether the block is met, `all` first; what comes after a decision is not evaluated."""
        # Kyverno: pkg/utils/conditions, CheckAnyAllConditions
        if not all(each.holds(scope, runtime, delete_request=delete_request) for each in self.all):
            return False
        return not self.any or any(each.holds(scope, runtime, delete_request=delete_request) for each in self.any)


@dataclass(frozen=True, slots=True)
class Conditions:
    """Compiled conditions: blocks that must all be met, or the conditions of a bare list, which must all hold."""

    blocks: tuple[ConditionBlock, ...] = ()
    listed: tuple[Condition, ...] = ()
    is_single_block: bool = False

    @property
    def is_empty(self) -> bool:
        """Return whether there is nothing to check."""
        return not self.blocks and not self.listed

    @property
    def has_messages(self) -> bool:
        """Return whether some condition has a message."""
        return bool(self.messages)

    @property
    def messages(self) -> frozenset[str]:
        """The texts of all conditions that have one."""
        nested = (condition for block in self.blocks for condition in (*(block.any or ()), *block.all))
        return frozenset(condition.message for condition in (*self.listed, *nested) if condition.message)

    @property
    def templates(self) -> tuple[Template, ...]:
        """Return the templates of all keys and values, for checks of the variables they use."""
        nested = (condition for block in self.blocks for condition in (*(block.any or ()), *block.all))
        return tuple(template for item in (*self.listed, *nested) for template in (item.key, item.value))

    def check(self, scope: Mapping[str, JSON], runtime: Runtime, *, delete_request: bool = False) -> ConditionOutcome:
        """Return whether the conditions are met, with the messages that belong to the outcome.

        Raises SubstitutionError when a variable cannot be resolved, EvaluationError for an unknown operator, and
        BudgetExceededError.

        >>> conditions = compile_conditions({"all": [{"key": "{{ a }}", "operator": "Equals", "value": "x"}]})
        >>> conditions.check({"a": "x"}, Runtime()).met
        True
        """
        if self.is_empty:
            return _MET
        if self.is_single_block:
            return self.blocks[0].check(scope, runtime, delete_request=delete_request)
        met: list[tuple[str, ...]] = []
        for block in self.blocks:
            outcome = block.check(scope, runtime, delete_request=delete_request)
            if not outcome.met:
                return outcome
            met.append(outcome.pieces)
        for condition in self.listed:
            if not condition.holds(scope, runtime, delete_request=delete_request):
                return ConditionOutcome(False, _join((condition.message,), ""))
            met.append(_join((condition.message,), ""))
        return ConditionOutcome(True, _join_groups(met, ";"))

    def hold(self, scope: Mapping[str, JSON], runtime: Runtime, *, delete_request: bool = False) -> bool:
        """Return whether the conditions of a cleanup policy or an exception are met.

        Other than in `check`, `all` comes before `any`, an empty `any` is met, and nothing is evaluated after a
        decision. Raises as `check` does.

        >>> conditions = compile_conditions({"any": [], "all": []})
        >>> conditions.hold({}, Runtime()), conditions.check({}, Runtime()).met
        (True, False)
        """
        return all(block.holds(scope, runtime, delete_request=delete_request) for block in self.blocks) and all(
            each.holds(scope, runtime, delete_request=delete_request) for each in self.listed
        )


def compile_conditions(
    conditions: JSON, *, blocks: bool = False, data: Set[str] = frozenset(), excuse: bool = False
) -> Conditions:
    """Compile the conditions of a policy; null is always met.

    With `blocks` a list holds maps of `any` and `all` (attestations, exceptions), otherwise it is taken for one only
    when its entries have such a key. `data` names the variables that the context took
    from the request. Conditions that `excuse` (exceptions, attestations) let an object pass when they hold; the others
    deny it, or make a rule apply. Nothing is raised: what is malformed fails when checked.

    >>> compile_conditions({"any": [], "all": []}).check({}, Runtime()).met
    False
    """
    if conditions is None:
        return Conditions()
    if isinstance(conditions, dict):
        return Conditions(blocks=(_block(conditions, data, excuse=excuse),), is_single_block=True)
    if not isinstance(conditions, list):
        return Conditions(listed=(_malformed(),))
    if blocks or any(isinstance(item, dict) and ("any" in item or "all" in item) for item in conditions):
        return Conditions(blocks=tuple(_block(item, data, excuse=excuse) for item in conditions))
    return Conditions(listed=tuple(_condition(item, data, excuse=excuse) for item in conditions))


def _block(block: JSON, data: Set[str], *, excuse: bool) -> ConditionBlock:
    if not isinstance(block, dict):
        return ConditionBlock(None, (_malformed(),))
    any_of, all_of = block.get("any"), block.get("all")
    if not isinstance(any_of, list | None) or not isinstance(all_of, list | None):
        return ConditionBlock(None, (_malformed(),))
    compiled = None if any_of is None else tuple(_condition(item, data, excuse=excuse) for item in any_of)
    return ConditionBlock(compiled, tuple(_condition(item, data, excuse=excuse) for item in all_of or ()))


def _condition(condition: JSON, data: Set[str], *, excuse: bool) -> Condition:
    if not isinstance(condition, dict):
        return _malformed()
    key = compile_template(condition.get("key"))
    value = compile_template(condition.get("value"))
    name, message = condition.get("operator"), condition.get("message")
    name = name if isinstance(name, str) else ""
    # the wildcard of an object denies by a positive operator and excuses by a negated one; in what excuses, it is the
    # other way round
    sides = _sides_of(key, value, data) if is_negated(name) is not excuse else BOTH_SIDES
    return Condition(
        key, name, value, message if isinstance(message, str) else "", sides, _test(key, name, value, sides)
    )


def condition_test(condition: Condition, key: Template, value: Template) -> Test:
    """Return the test of a condition whose sides are rendered by other templates of the same texts."""
    if condition.key is condition.value:
        return condition._test  # both are nothing: a malformed condition
    return _test(key, condition.operator, value, condition.sides)


def _malformed() -> Condition:
    def test(_scope: Mapping[str, JSON], _runtime: Runtime, _delete_request: bool) -> bool:
        raise EvaluationError("invalid condition")

    nothing = compile_template(None)
    return Condition(nothing, "", nothing, "", Sides(), test)


def _test(key: Template, name: str, value: Template, sides: Sides) -> Test:
    """Return the test of a condition, with as much work done beforehand as its static sides allow."""
    compare = operator(name, sides)
    if compare is None:
        return _unknown_operator(key, value)
    if not value.is_static:
        return _both_dynamic(key, compare, value)
    check = compile_operator(name, as_float(value.document), sides)
    assert check is not None  # noqa: S101 - the operator was found above
    if key.is_static:
        constant = check(as_float(key.document))
        return lambda _scope, _runtime, _deleting: constant
    document = value.document

    def test(scope: Mapping[str, JSON], runtime: Runtime, deleting: bool) -> bool:
        rendered = _key(key, scope, runtime, deleting)
        _charge(rendered, document, runtime)
        return check(rendered)

    return test


def _sides_of(key: Template, value: Template, data: Set[str]) -> Sides:
    """Return which side of a condition may hold patterns: text of the policy does, text of a requester does not.

    Text of the policy is a pattern; what a variable yields is data. Where both sides are variables, a side that reads
    the request (or what the context, foreach and targets take from it) is data, and the other one, a list of a
    ConfigMap say, holds the patterns; when that decides nothing, the key is data and the value holds the patterns.
    """
    if key.is_static or value.is_static:
        return Sides(key.is_static, value.is_static, _static_items(value))
    written = [variable.text for variable in value.variables]
    if has_own_wildcards(value.document, written) or not _reads_request(value, data):
        return Sides(key_is_pattern=False, written=_static_items(value))
    return Sides(not _reads_request(key, data), False, _static_items(value))


def _static_items(value: Template) -> frozenset[str]:
    """Return the literal texts of a list in a policy, without items that are variables."""
    items = value.document if isinstance(value.document, list) else ()
    return frozenset(item for item in items if isinstance(item, str) and "{{" not in item)


def has_own_wildcards(document: JSON, variables: Iterable[str]) -> bool:
    """Return whether the wildcards of a text with these variables are those of the policy.

    >>> has_own_wildcards("{{ request.namespace }}/*", ["request.namespace"])
    True
    >>> has_own_wildcards("{{ request.object.metadata.name }}*", ["request.object.metadata.name"])
    False
    """
    if not isinstance(document, str) or not has_wildcard(document):
        return False
    return all(text.strip() in _WITHOUT_WILDCARDS for text in variables)


def _reads_request(template: Template, data: Set[str]) -> bool:
    return any(reads_data(variable.text, data) for variable in template.variables if not variable.is_inner)


def reads_data(text: str, data: Set[str]) -> bool:
    """Return whether the value of a variable can hold text of the request, or of what the context took from it.

    >>> reads_data("request.object.metadata.name", set()), reads_data("to_upper(dropped)", {"dropped"})
    (True, True)

    Text of the policy, or of a ConfigMap that it reads, is none, also where the request decides which one.

    >>> reads_data("request.operation == 'CREATE' && '>1' || '*'", set()), reads_data("allowed.data.images", set())
    (False, False)
    >>> reads_data('allowed.data."{{ request.namespace }}"', set()), reads_data("'{{ request.namespace }}'", set())
    (False, True)
    """
    if not _REQUEST.search(text) and not any(name in text for name in data):
        return False
    # few policies mix text of the request with patterns
    from pyverno.lang.jmespath import compile_expression
    from pyverno.lang.jmespath.origins import can_hold

    def is_data(name: str) -> bool:
        return name in data or _REQUEST.fullmatch(name) is not None

    try:
        parsed = parse_string(f"{{{{ {text} }}}}")
        if parsed.whole is None:
            return True
        found: list[bool] = []  # of each variable inside, and of the whole one at last
        for each in parsed.occurrences:
            filled = any(found[number] for number in each.placeholders)
            found.append(each.constant is None and can_hold(compile_expression(each.text).ast, is_data, filled=filled))
        return found[parsed.whole]
    except (ExpressionError, RecursionError):
        return True


def _both_dynamic(key: Template, compare: Callable[[JSON, JSON], bool], value: Template) -> Test:
    def test(scope: Mapping[str, JSON], runtime: Runtime, deleting: bool) -> bool:
        rendered = _key(key, scope, runtime, deleting)
        against = _value(value, scope, runtime, deleting)
        _charge(rendered, against, runtime)
        return compare(rendered, against)

    return test


def _charge(key: JSON, value: JSON, runtime: Runtime) -> None:
    """Charge the budget for long texts, and for wildcards that meet every item of the other side."""
    if isinstance(key, (str, list)):
        steps = condition_price(key, value)
        if steps:
            runtime.budget.charge_steps(steps)


def _unknown_operator(key: Template, value: Template) -> Test:
    def test(scope: Mapping[str, JSON], runtime: Runtime, deleting: bool) -> bool:
        _key(key, scope, runtime, deleting)
        _value(value, scope, runtime, deleting)
        raise EvaluationError("failed to create handler for condition operator: %!w(<nil>)")

    return test


def _key(template: Template, scope: Mapping[str, JSON], runtime: Runtime, deleting: bool) -> JSON:
    try:
        return as_float(template.render(scope, runtime, delete_request=deleting))
    except SubstitutionError as error:
        raise SubstitutionError(f"failed to substitute variables in condition key: {error.message}") from error


def _value(template: Template, scope: Mapping[str, JSON], runtime: Runtime, deleting: bool) -> JSON:
    try:
        return as_float(template.render(scope, runtime, delete_request=deleting))
    except SubstitutionError as error:
        raise SubstitutionError(f"failed to substitute variables in condition value: {error.message}") from error


def as_float(value: JSON) -> JSON:
    """Return a single whole number as the float that conditions compare."""
    # Scalars of policies and of requests are floats in Kyverno; larger ones keep their exact value here
    if value.__class__ is int and -_EXACT_FLOAT < value < _EXACT_FLOAT:
        return float(value)
    return value


def _join(messages: Iterable[str], separator: str) -> tuple[str, ...]:
    return _join_groups([(message,) for message in messages if message], separator)


def _join_groups(groups: Iterable[tuple[str, ...]], separator: str) -> tuple[str, ...]:
    pieces: list[str] = []
    for group in groups:
        if group:
            pieces += (separator, *group) if pieces else group
    return tuple(pieces)
