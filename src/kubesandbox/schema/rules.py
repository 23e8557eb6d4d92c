"""Rules of a schema (`x-kubernetes-validations`): compiled once per schema, evaluated on new and old values.

`compile_rules` gives a function over whole objects; `rule_problems` returns the errors of the rules themselves. The
words are the API server's.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, TypeAlias

from kubesandbox.objects.fielderrors import child, duplicate, forbidden, invalid, required
from kubesandbox.schema.correlation import UNRELATED, related_field, related_items
from kubesandbox.schema.rulesearch import has_rules
from pyverno.errors import BudgetExceededError, EvaluationError, ValueSyntaxError
from pyverno.kube.json import JSON, JSONObject, equal
from pyverno.kube.status import FieldError
from pyverno.kube.time.duration import parse_duration
from pyverno.kube.time.gotime import parse_rfc3339
from pyverno.lang.cel import CompileError, CostMeter, Environment, Program, types
from pyverno.lang.cel.checking.structs import SchemaTypes, StructTypes, escaped_name
from pyverno.lang.cel.presets import kubernetes_environment
from pyverno.lang.cel.scalars import Duration, Timestamp
from pyverno.lang.cel.types import Type, optional_of
from pyverno.lang.cel.values import NONE, Optional, Value

__all__ = ["Rules", "compile_rules", "rule_problems", "with_root_metadata"]

COST_BUDGET: Final = 10_000_000
_TEXT: Final[JSONObject] = {"type": "string"}
_ROOT: Final[JSONObject] = {
    "apiVersion": _TEXT,
    "kind": _TEXT,
    "metadata": {"type": "object", "properties": {"name": _TEXT, "generateName": _TEXT}},
}
_OUT_OF_COST: Final = "validation failed due to running out of cost budget, no further validation rules will be run"
_REASONS: Final[Mapping[str, Callable[[str, str], FieldError]]] = {
    "FieldValueForbidden": forbidden,
    "FieldValueRequired": required,
    "FieldValueDuplicate": lambda path, _detail: duplicate(path, ""),
}
_STEP: Final = re.compile(r"\.([^.\[\]]+)|\['((?:[^'\\]|\\.)*)'\]")

Convert: TypeAlias = Callable[[JSON], Value]


class _SpentError(Exception):
    """The cost budget is used up; no more rules are run."""


@dataclass(slots=True)
class _Run:
    meter: CostMeter
    errors: list[FieldError]


Node: TypeAlias = Callable[[JSON, JSON, str, _Run], None]
Rules: TypeAlias = Callable[[JSON, JSON], list[FieldError]]
"""Rules of a whole object: the object, and the one that is stored or UNRELATED."""


@dataclass(frozen=True, slots=True)
class _Rule:
    text: str
    program: Program | None
    problem: str
    message: str
    message_program: Program | None
    reason: str
    field_path: str
    uses_old: bool
    optional_old: bool


def with_root_metadata(schema: JSONObject) -> JSONObject:
    """Return the schema of a resource with what rules at its root may see besides its own fields."""
    return {**schema, "type": "object", "properties": {**(schema.get("properties") or {}), **_ROOT}}


def compile_rules(schema: JSONObject, version: tuple[int, int]) -> Rules | None:
    """Return the rules of a resource's schema, None when it has none.

    >>> schema = {"properties": {"spec": {"type": "object", "properties": {"n": {"type": "integer"}},
    ...     "x-kubernetes-validations": [{"rule": "self.n > 1", "message": "too few"}]}}}
    >>> [str(error) for error in compile_rules(schema, (1, 35))({"spec": {"n": 1}}, UNRELATED)]
    ['spec: Invalid value: too few']
    """
    if not has_rules(schema):
        return None
    node = _node(with_root_metadata(schema), kubernetes_environment(version))
    if node is None:
        return None

    def run(value: JSON, old: JSON) -> list[FieldError]:
        state = _Run(CostMeter(limit=COST_BUDGET), [])
        with suppress(_SpentError):
            node(value, old, "", state)
        return state.errors

    return run


def rule_problems(schema: JSONObject, version: tuple[int, int], *, is_root: bool = False) -> Iterator[tuple[int, str]]:
    """Yield the index of every rule of this level of a schema that does not compile, with the API server's text."""
    whole = with_root_metadata(schema) if is_root else schema
    for index, rule in enumerate(_compile(whole, kubernetes_environment(version))):
        if rule.problem:
            yield index, rule.problem


def _node(schema: JSONObject, environment: Environment) -> Node | None:
    """Return what judges a value and everything below it, None when there is no rule."""
    if not has_rules(schema):
        return None
    own = _own_rules(schema, environment)
    properties = schema.get("properties") or {}
    fields = [(key, node) for key, value in properties.items() if (node := _node(value, environment)) is not None]
    items = _node(schema["items"], environment) if isinstance(schema.get("items"), dict) else None
    values = schema.get("additionalProperties")
    every = _node(values, environment) if isinstance(values, dict) else None
    parts = [node for part in schema.get("allOf") or () if (node := _nested(schema, part, environment)) is not None]

    def judge(value: JSON, old: JSON, path: str, run: _Run) -> None:
        if value is None:
            return
        if own is not None:
            own(value, old, path, run)
        for part in parts:
            part(value, old, path, run)
        if type(value) is list and items is not None:
            pairs = zip(value, related_items(schema, value, old), strict=True)
            for index, (item, older) in enumerate(pairs):
                items(item, older, f"{path}[{index}]", run)
        elif type(value) is dict:
            for key, node in fields:
                if key in value:
                    node(value[key], related_field(old, key), child(path, key), run)
            if every is not None:
                for key, item in value.items():
                    if key not in properties:
                        every(item, related_field(old, key), f"{path}[{key}]", run)

    return judge


def _nested(schema: JSONObject, part: JSONObject, environment: Environment) -> Node | None:
    """Rules inside `allOf` see the types of the schema around them."""
    return _node({**schema, "allOf": None, **part}, environment) if has_rules(part) else None


def _own_rules(schema: JSONObject, environment: Environment) -> Node | None:
    rules = _compile(schema, environment)
    if not rules:
        return None
    kind = str(schema.get("type", ""))
    shows_value = kind not in ("object", "array")
    convert = _converter(schema)

    def judge(value: JSON, old: JSON, path: str, run: _Run) -> None:
        is_new = old is UNRELATED or old is None
        own = convert(value) if convert is not None else value
        older = None if is_new else convert(old) if convert is not None else old
        for rule in rules:
            if rule.program is None:
                run.errors.append(invalid(path, kind, f"rule compile error: {rule.problem}"))
                continue
            if rule.uses_old and is_new and not rule.optional_old:
                continue
            previous = (NONE if is_new else Optional(older)) if rule.optional_old else older
            bindings = {"self": own, "oldSelf": previous}
            if _holds(rule, rule.program, bindings, _Place(kind, path, run)):
                continue
            if not rule.uses_old and not is_new and equal(value, old):
                continue  # what was wrong before and did not change is let through
            place = path + rule.field_path if path else rule.field_path.removeprefix(".")
            error = _REASONS.get(rule.reason)
            detail = _message(rule, bindings, run)
            if error is not None:
                run.errors.append(error(place, detail))
            else:
                shown = invalid(place, value, detail)
                run.errors.append(shown if shows_value else FieldError(place, shown.kind, detail))

    return judge


@dataclass(frozen=True, slots=True)
class _Place:
    """The place where a rule is evaluated, and the form of its failures."""

    kind: str
    path: str
    run: _Run

    def report(self, text: str) -> None:
        self.run.errors.append(invalid(self.path, self.kind, text))


def _holds(rule: _Rule, program: Program, bindings: Mapping[str, Value], place: _Place) -> bool:
    """Evaluate a rule; an error of the evaluation is reported here and counts as held."""
    meter = place.run.meter
    if meter.left <= 0:
        place.report(_OUT_OF_COST)
        raise _SpentError
    try:
        return program.evaluate(bindings, meter=meter) is True
    except BudgetExceededError as error:
        what = (
            f"'{error}': no further validation rules will be run due to call cost exceeds limit for rule: {rule.text}"
        )
        place.report(_OUT_OF_COST if meter.left <= 0 else what)
        raise _SpentError from None
    except EvaluationError as error:
        text = str(error)
        if text.startswith("no such overload"):
            what = f"'{text}': call arguments did not match a supported operator, function or macro signature for rule"
            place.report(f"{what}: {rule.text}")
        else:
            place.report(f"{text} evaluating rule: {rule.text}")
        return True


def _message(rule: _Rule, bindings: Mapping[str, Value], run: _Run) -> str:
    if rule.message_program is not None:
        try:
            text = rule.message_program.evaluate(bindings, meter=run.meter)
        except (EvaluationError, BudgetExceededError):
            text = ""
        if isinstance(text, str) and text.strip() and "\n" not in text:
            return text.strip()
    return rule.message or f"failed rule: {rule.text}"


def _compile(schema: JSONObject, environment: Environment) -> list[_Rule]:
    written = schema.get("x-kubernetes-validations")
    if not isinstance(written, list):
        return []
    structs = SchemaTypes({"self": _with_nameable_properties(schema)})
    own = structs.type_of("self")
    scoped = environment.with_structs(StructTypes((structs, environment.structs)))
    return [_rule(item, schema, own, scoped) for item in written if isinstance(item, dict)]


def _rule(item: JSONObject, schema: JSONObject, own: Type, environment: Environment) -> _Rule:
    text = str(item.get("rule", "")).strip()
    optional_old = bool(item.get("optionalOldSelf"))
    scoped = environment.with_variables({"self": own, "oldSelf": optional_of(own) if optional_old else own})
    program, problem = None, ""
    if not text:
        problem = "rule is not specified"
    else:
        try:
            program = scoped.compile(text, expected=types.BOOL)
        except CompileError as error:
            problem = f"compilation failed: {error}"
    message_program = None
    if item.get("messageExpression"):
        try:
            message_program = scoped.compile(str(item["messageExpression"]), expected=types.STRING)
        except CompileError as error:
            problem = problem or f"messageExpression compilation failed: {error}"
    uses_old = "oldSelf" in (program.variables if program else frozenset())
    path = "".join(f".{name or key}" for name, key in _STEP.findall(str(item.get("fieldPath", ""))))
    return _Rule(
        text,
        program,
        problem,
        str(item.get("message", "")).strip(),
        message_program,
        str(item.get("reason", "")),
        path,
        uses_old,
        optional_old,
    )


def _with_nameable_properties(schema: JSONObject) -> JSONObject:
    """Return a schema in which properties are those that expressions may name.

    An object without properties gets one that no expression can name, so that it is a struct and not just anything.
    """
    if schema.get("x-kubernetes-embedded-resource"):
        schema = with_root_metadata(schema)
    changed: JSONObject = {}
    if isinstance(schema.get("properties"), dict) and schema["properties"]:
        changed["properties"] = {key: _with_nameable_properties(value) for key, value in schema["properties"].items()}
    elif schema.get("type") == "object" and not schema.get("additionalProperties"):
        changed["properties"] = {"": {}}
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            changed[key] = _with_nameable_properties(schema[key])
    return {**schema, **changed}


def _converter(schema: JSONObject) -> Convert | None:
    """Return what makes CEL values of JSON values, None where they are the same."""
    if schema.get("x-kubernetes-int-or-string"):
        return None
    scalar = _SCALARS.get((str(schema.get("type", "")), str(schema.get("format", ""))))
    if scalar is not None:
        return scalar
    if schema.get("type") == "number":
        return _double
    items = schema.get("items")
    if isinstance(items, dict):
        element = _converter(items)
        return _list_converter(element) if element is not None else None
    values = schema.get("additionalProperties")
    if isinstance(values, dict):
        element = _converter(values)
        return _map_converter(element) if element is not None else None
    return _struct_converter(schema.get("properties") or {})


def _struct_converter(properties: Mapping[str, JSONObject]) -> Convert | None:
    fields = {key: (escaped_name(key), _converter(value)) for key, value in properties.items()}
    if all(key == name and inner is None for key, (name, inner) in fields.items()):
        return None

    def convert(value: JSON) -> Value:
        if type(value) is not dict:
            return value
        found = {}
        for key, item in value.items():
            name, inner = fields.get(key, (key, None))
            found[name] = inner(item) if inner is not None and item is not None else item
        return found

    return convert


def _list_converter(element: Convert) -> Convert:
    return lambda value: [item if item is None else element(item) for item in value] if type(value) is list else value


def _map_converter(element: Convert) -> Convert:
    return lambda value: (
        {key: item if item is None else element(item) for key, item in value.items()} if type(value) is dict else value
    )


def _double(value: JSON) -> Value:
    return float(value) if type(value) is int else value


def _timestamp(value: JSON) -> Value:
    try:
        return Timestamp(parse_rfc3339(value if "T" in value else f"{value}T00:00:00Z").nanoseconds)
    except (ValueSyntaxError, TypeError):
        return value


def _duration(value: JSON) -> Value:
    try:
        return Duration(parse_duration(value))
    except (ValueSyntaxError, TypeError):
        return value


def _bytes(value: JSON) -> Value:
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, TypeError, ValueError):
        return value


_SCALARS: Final[Mapping[tuple[str, str], Convert]] = {
    ("string", "date-time"): _timestamp,
    ("string", "date"): _timestamp,
    ("string", "duration"): _duration,
    ("string", "byte"): _bytes,
}
