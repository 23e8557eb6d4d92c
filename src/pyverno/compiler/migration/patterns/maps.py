"""Maps, lists and anchors of patterns as CEL.

A pattern passes, fails, or skips: a condition anchor that does not hold skips its map, and a skip that reaches the top
means that the rule does not apply. `Verdict` keeps both questions apart: `ok` is true unless the pattern fails,
`passes` is true where it holds without a skip. They differ only where there are condition anchors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from pyverno.compiler.migration.outcome import UnconvertibleError, join_path
from pyverno.compiler.migration.patterns.labels import label_entries
from pyverno.compiler.migration.patterns.leaves import leaf_test
from pyverno.compiler.migration.patterns.verdict import Context, Verdict
from pyverno.compiler.migration.schema import ANY, Presence, Schema, Shape
from pyverno.compiler.migration.text import (
    FALSE,
    TRUE,
    Cel,
    CelType,
    Reference,
    all_of,
    any_of,
    compare,
    element,
    literal,
)
from pyverno.kube.json import JSON, JSONObject
from pyverno.lang.pattern.anchors import Anchor, Modifier, has_anchor_keys, parse_anchor
from pyverno.lang.pattern.leaf import compile_leaf
from pyverno.lang.pattern.metadata import TAGS, find_tag
from pyverno.value import dataclass

__all__ = ["any_holds", "holds", "parts_of"]

_ANCHORS_FIRST: Final = frozenset({Modifier.CONDITION, Modifier.EQUALITY, Modifier.EXISTENCE, Modifier.NEGATION})
_JUDGED: Final = frozenset(Modifier) - {Modifier.ADD_IF_ABSENT}
_SKIPPING: Final = frozenset({Modifier.CONDITION, Modifier.GLOBAL})
_Judge: TypeAlias = Callable[[JSON, Reference, str, Context], Verdict]
_Below: TypeAlias = tuple[JSON, _Judge]
"""The value below a key, and its converter: labels and metadata have rules of their own."""


def holds(pattern: JSON, value: Reference, path: str, context: Context | None = None) -> Cel:
    """Return whether a pattern does not fail on a value; raises UnconvertibleError.

    >>> from pyverno.compiler.migration.schema import SchemaBook
    >>> pod = Reference("object", SchemaBook().of("", "v1", "Pod"))
    >>> str(holds({"spec": {"=(hostNetwork)": False, "containers": [{"image": "!*:latest"}]}}, pod, "pattern"))
    "!object.spec.?hostNetwork.orValue(false) && object.spec.containers.all(c, !c.image.endsWith(':latest'))"
    """
    return _judge(pattern, value, path, context or Context()).ok


def parts_of(pattern: JSON, value: Reference, path: str, context: Context | None = None) -> tuple[Cel, ...]:
    """Return the same as `holds` as expressions that must all be true, where the pattern falls into such parts."""
    found = _judge(pattern, value, path, context or Context())
    return found.parts or (found.ok,)


def any_holds(patterns: Sequence[JSON], value: Reference, path: str, context: Context | None = None) -> Cel:
    """Return whether one of several patterns (anyPattern) passes, or all of them skip; raises UnconvertibleError."""
    context = context or Context()
    inner = Context(floats=True, assumes_types=context.assumes_types, taken=context.taken)
    found = [_judge(each, value, f"{path}[{index}]", inner) for index, each in enumerate(patterns)]
    if not found:
        return TRUE
    passed = any_of(each.passes for each in found)
    if not any(each.can_skip for each in found):
        return passed
    return any_of([passed, all_of(each.ok for each in found)])


# ------------------------------------------------------------------------------------------------------------- elements


def _judge(pattern: JSON, value: Reference, path: str, context: Context) -> Verdict:
    """Judge a value that is present; a missing one fails a map or list, and counts as null for a leaf."""
    match pattern:
        case dict():
            return _map(pattern, value, path, context)
        case list():
            return _list(pattern, value, path, context)
    return _scalar(pattern, value, path, context)


def _same(ok: Cel) -> Verdict:
    return Verdict(ok, ok)


def _scalar(pattern: JSON, value: Reference, path: str, context: Context) -> Verdict:
    schema = _assumed(value.schema, pattern, context)
    if schema.shape is Shape.LIST:
        name, inner = context.variable(value.steps[-1].name if value.steps else "")
        item = element(name, _assumed(schema.element, pattern, context))
        test = leaf_test(pattern, item.schema.shape, path, floats=inner.floats)
        found = value.or_empty().macro("all", name, test.on(item))
        return _same(found if test.accepts_missing else all_of([_is_there(value), found]))
    test = leaf_test(pattern, schema.shape, path, floats=context.floats)
    return _same(test.on(value))


def _is_there(value: Reference) -> Cel:
    return value.is_set() if value.steps else TRUE


def _list(pattern: list[JSON], value: Reference, path: str, context: Context) -> Verdict:
    schema = _assumed(value.schema, pattern, context)
    if not schema.is_known:
        raise _unknown(path)
    if schema.shape is not Shape.LIST or not pattern:
        return _same(FALSE)
    first = pattern[0]
    if isinstance(first, list):
        raise UnconvertibleError(
            "nested-list",
            path,
            "a list within a list is compared place by place",
            "write the check as a deny condition",
        )
    name, inner = context.variable(value.steps[-1].name if value.steps else "")
    item = element(name, _assumed(schema.element, first, context))
    found = _judge(first, item, f"{path}[0]", inner)
    items = _assume(value).value()
    ok = items.macro("all", name, found.ok)
    passes = ok
    if found.can_skip:
        some = items.macro("exists", name, found.passes)
        empty = compare(Cel(f"size({items.text})", CelType.INT), "==", literal(0))
        passes = all_of([ok, some if _is_never_empty(schema) else any_of([empty, some])])
    there = _is_there(value)
    if found.ok.text == "true":
        return Verdict(there, all_of([there, passes]))
    return Verdict(all_of([there, ok]), all_of([there, passes]))


def _is_never_empty(schema: Schema) -> bool:
    return schema.presence is Presence.NONZERO


# ----------------------------------------------------------------------------------------------------------------- maps


def _map(pattern: JSONObject, value: Reference, path: str, context: Context, *, is_metadata: bool = False) -> Verdict:
    schema = _assumed(value.schema, pattern, context)
    if not schema.is_known:
        raise _unknown(path)
    if schema.shape not in (Shape.OBJECT, Shape.MAP):
        return _same(FALSE)
    metadata = find_tag(pattern, "metadata")
    tags = {find_tag(pattern, tag) for tag in TAGS} if is_metadata else set()
    there = _assume(value)
    steps: list[_Step] = []
    for key in sorted(pattern):
        below = pattern[key]
        place = join_path(path, key)
        if key in tags and isinstance(below, dict):
            step = _step(key, (below, _labels), there, place, context)
        elif key == metadata and isinstance(below, dict):
            step = _step(key, (below, _metadata), there, place, context)
        else:
            step = _step(key, (below, _judge), there, place, context)
        steps.append(step)
    found = _join(steps, path)
    if not value.can_be_missing and not value.can_be_null:
        return found
    if any(step.implies_holder for step in steps) and not any(step.is_condition for step in steps):
        # a part that fails without the map makes a test for the map superfluous
        return _unguarded(pattern, value, path, context, is_metadata=is_metadata, guarded=found)
    guard = _is_there(value)
    return Verdict(
        all_of([guard, found.ok]), all_of([guard, found.passes]), (guard, *found.parts) if found.parts else ()
    )


def _unguarded(
    pattern: JSONObject, value: Reference, path: str, context: Context, *, is_metadata: bool, guarded: Verdict
) -> Verdict:
    """Return the verdict with optional paths in place of a guard, where every key is plain and has a default form."""
    if value.can_be_null or guarded.can_skip or any(parse_anchor(key) is not None for key in pattern):
        guard = _is_there(value)
        return Verdict(all_of([guard, guarded.ok]), all_of([guard, guarded.passes]))
    tags = {find_tag(pattern, tag) for tag in TAGS} if is_metadata else set()
    metadata = find_tag(pattern, "metadata")
    steps = []
    for key in sorted(pattern):
        judge: _Judge = _judge
        if isinstance(pattern[key], dict):
            judge = _labels if key in tags else _metadata if key == metadata else _judge
        steps.append(_step(key, (pattern[key], judge), value, join_path(path, key), context))
    return _join(steps, path)


def _metadata(pattern: JSON, value: Reference, path: str, context: Context) -> Verdict:
    return _map(pattern, value, path, context, is_metadata=True)


def _labels(pattern: JSON, value: Reference, path: str, context: Context) -> Verdict:
    """Judge labels or annotations: values that are no text are left out, keys can have wildcards."""
    if not pattern:
        return _map(pattern, value, path, context)
    kept = {key: text for key, text in pattern.items() if isinstance(text, str)}
    fixed, wild = label_entries(kept, value, path)
    if not wild:
        return _map(fixed, value, path, context)
    guard = _is_there(value)
    rest = [_map(fixed, _assume(value), path, context)] if fixed else []
    if any(each.can_skip for each in rest):
        raise UnconvertibleError(
            "label-wildcard", path, "a key with wildcards is beside a condition anchor", "write the full key"
        )
    return _same(all_of([guard, *wild, *(each.ok for each in rest)]))


@dataclass(frozen=True, slots=True)
class _Step:
    """One key: its verdict given that the map is there, and what the anchor makes of a skip or failure below.

    `implies_holder` means that the step is false where the map is missing.
    """

    anchor: Anchor | None
    verdict: Verdict
    has_anchors: bool
    skips_by_condition: bool = False
    implies_holder: bool = False

    @property
    def is_condition(self) -> bool:
        return self.anchor is not None and self.anchor.modifier in _SKIPPING

    @property
    def is_first(self) -> bool:
        return self.anchor is not None and self.anchor.modifier in _ANCHORS_FIRST


def _step(key: str, below: _Below, holder: Reference, path: str, context: Context) -> _Step:
    """Judge one key, given that the map is there."""
    pattern, judged = below
    anchor = parse_anchor(key)
    name = anchor.key if anchor is not None else key
    if anchor is not None and anchor.modifier is Modifier.ADD_IF_ABSENT:
        anchor, name = None, key
    value = holder.field(name)
    has_anchors = isinstance(pattern, (dict, list)) and has_anchor_keys(pattern, _JUDGED)
    if value.schema is ANY and not holder.schema.is_open:
        # a field that the schema does not have is pruned: it is never there
        return _Step(anchor, _absent(anchor, pattern), has_anchors)
    if anchor is None:
        if pattern == "*":
            return _Step(None, _same(value.is_set()), has_anchors=False, implies_holder=True)
        implies = isinstance(pattern, (dict, list)) or not _accepts_null(pattern)
        verdict = judged(pattern, value, path, context)
        return _Step(None, verdict, has_anchors, implies_holder=implies)
    present = value.is_present()
    match anchor.modifier:
        case Modifier.NEGATION:
            return _Step(anchor, _same(present.not_()), has_anchors=False)
        case Modifier.EXISTENCE:
            return _Step(anchor, _existence(pattern, value, path, context), has_anchors=False)
        case Modifier.EQUALITY:
            found, by_condition = _equality(below, value, path, context)
            return _Step(anchor, found, has_anchors, skips_by_condition=by_condition)
    inner = judged(pattern, _assume(value, keeps_null=True), path, context)
    if anchor.modifier is Modifier.CONDITION:
        direct = _direct_test(pattern, value, path, context)
        condition = all_of([present, inner.passes]) if direct is None else direct
        return _Step(anchor, Verdict(TRUE, condition), has_anchors, skips_by_condition=True)
    return _Step(anchor, Verdict(TRUE, any_of([present.not_(), inner.passes])), has_anchors, skips_by_condition=True)


def _direct_test(pattern: JSON, value: Reference, path: str, context: Context) -> Cel | None:
    """Return the test of a leaf that refuses a missing value and so needs no guard."""
    if isinstance(pattern, (dict, list)) or not value.schema.is_scalar:
        return None
    test = leaf_test(pattern, value.schema.shape, path, floats=context.floats)
    return None if test.accepts_missing else test.on(value)


def _equality(below: _Below, value: Reference, path: str, context: Context) -> tuple[Verdict, bool]:
    """Judge `=(k)`, where a missing key is fine; and return whether a skip below counts as a condition of this map."""
    pattern, judged = below
    if not isinstance(pattern, (dict, list)) and value.schema.is_scalar and not value.can_be_null:
        test = leaf_test(pattern, value.schema.shape, path, floats=context.floats)
        accepted = next((each for each in test.samples if test.accepts(each)), None)
        if accepted is not None and value.can_be_missing:
            return _same(test.test(value.or_value(literal(accepted)))), False
    inner = judged(pattern, _assume(value, keeps_null=True), path, context)
    absent = value.is_present().not_()
    by_condition = isinstance(pattern, dict) and any(
        parsed is not None and parsed.modifier is Modifier.GLOBAL for parsed in map(parse_anchor, pattern)
    )
    return Verdict(any_of([absent, inner.ok]), any_of([absent, inner.passes])), by_condition


def _existence(pattern: JSON, value: Reference, path: str, context: Context) -> Verdict:
    """Judge `^(k)`: some element of the list passes, for every pattern; a missing key is fine."""
    absent = value.is_present().not_()
    schema = _assumed(value.schema, [{}], context)
    if not schema.is_known:
        raise _unknown(path)
    if schema.shape is not Shape.LIST or not isinstance(pattern, list):
        return _same(absent)
    found = [value.is_set()] if value.can_be_null else []
    for index, each in enumerate(pattern):
        if not isinstance(each, dict):
            return _same(absent)
        name, inner = context.variable(value.steps[-1].name)
        item = element(name, _assumed(schema.element, each, context))
        passes = _judge(each, item, f"{path}[{index}]", inner).passes
        found.append(_assume(value).value().macro("exists", name, passes))
    return _same(any_of([absent, all_of(found)]))


def _absent(anchor: Anchor | None, pattern: JSON) -> Verdict:
    """Return the verdict on a key that no admitted object has."""
    if anchor is None:
        accepts = not isinstance(pattern, (dict, list)) and pattern != "*" and _accepts_null(pattern)
        return _same(TRUE if accepts else FALSE)
    if anchor.modifier is Modifier.CONDITION:
        return Verdict(TRUE, FALSE)
    return _same(TRUE)


def _accepts_null(pattern: JSON) -> bool:
    return compile_leaf(pattern)(None)


# ---------------------------------------------------------------------------------------------------------- combination


def _join(steps: Sequence[_Step], path: str) -> Verdict:
    """Combine the keys of one map in the order of the engine: anchors, then keys with anchors below, then the rest."""
    anchors = [each for each in steps if each.is_first]
    others = [each for each in steps if not each.is_first]
    front = [each for each in others if each.is_condition or each.has_anchors]
    back = [each for each in others if not (each.is_condition or each.has_anchors)]
    first, rest = _anchored(anchors, path), _sequence([*reversed(front), *back])
    if not anchors:
        return rest
    if not first.can_skip:
        return Verdict(
            all_of([first.ok, rest.ok]),
            all_of([first.passes, rest.passes]),
            (*first.parts, *(rest.parts or (rest.ok,))),
        )
    ok = all_of([first.ok, any_of([first.passes.not_(), rest.ok])])
    conditions = [each for each in anchors if each.is_condition]
    if conditions:
        # where the conditions hold, the other anchors and keys count; where one does not, nothing does
        gate = all_of(each.verdict.passes for each in conditions)
        kept = [each.verdict.ok for each in anchors if not each.is_condition]
        ok = any_of([gate.not_(), all_of([*kept, rest.ok])])
    return Verdict(ok, all_of([first.passes, rest.passes]))


def _anchored(steps: Sequence[_Step], path: str) -> Verdict:
    conditions = [each for each in steps if each.is_condition]
    others = [each for each in steps if not each.is_condition]
    if any(each.skips_by_condition for each in others) and len(steps) > 1:
        raise UnconvertibleError(
            "nested-global-anchor",
            path,
            "a global anchor directly below =( ) beside other anchors depends on the order of the keys",
            "move the global anchor to the top of the pattern",
        )
    if conditions:
        gate = all_of(each.verdict.passes for each in conditions)
        ok = all_of(each.verdict.ok for each in others)
        return Verdict(any_of([gate.not_(), ok]), all_of([gate, ok]))
    ok = all_of(each.verdict.ok for each in others)
    parts = _parts(others)
    if not others or not all(each.verdict.can_skip for each in others):
        return Verdict(ok, ok, parts)
    return Verdict(ok, all_of([ok, any_of(each.verdict.passes for each in others)]))


def _parts(steps: Sequence[_Step]) -> tuple[Cel, ...]:
    return tuple(part for each in steps for part in each.verdict.parts or (each.verdict.ok,) if part.text != "true")


def _sequence(steps: Sequence[_Step]) -> Verdict:
    """Combine keys of which the first that does not pass decides."""
    passes = all_of(each.verdict.passes for each in steps)
    if not any(each.verdict.can_skip for each in steps):
        return Verdict(passes, passes, _parts(steps))
    ok = TRUE
    for step in reversed(steps):
        verdict = step.verdict
        if verdict.can_skip:
            ok = all_of([verdict.ok, any_of([verdict.passes.not_(), ok])]) if ok.text != "true" else verdict.ok
        else:
            ok = all_of([verdict.ok, ok])
    return Verdict(ok, passes)


# -------------------------------------------------------------------------------------------------------------- helpers


def _assume(value: Reference, *, keeps_null: bool = False) -> Reference:
    """Return the reference as one whose value is there, because a guard is before it."""
    return value.assumed(keeps_null=keeps_null)


def _assumed(schema: Schema, pattern: JSON, context: Context) -> Schema:
    """Return the schema, or with `assumes_types` the type that the pattern suggests where there is none."""
    if schema.is_known or not context.assumes_types:
        return schema
    match pattern:
        case dict():
            shape = Shape.MAP
        case list():
            shape = Shape.LIST
        case bool():
            shape = Shape.BOOL
        case int():
            shape = Shape.INT
        case float():
            shape = Shape.NUMBER
        case _:
            shape = Shape.STRING
    return Schema(shape, schema.presence)


def _unknown(path: str) -> UnconvertibleError:
    return UnconvertibleError(
        "no-schema",
        path,
        "no schema declares the type of the field",
        "give the CustomResourceDefinition of the kind with --crd, or let --unsafe take the pattern's word",
    )
