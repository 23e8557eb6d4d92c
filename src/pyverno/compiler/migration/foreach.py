"""`validate.foreach` in CEL: `all` over the elements of each list.

Kyverno skips a list that is missing, elements that are null, and elements whose preconditions do not hold; anything
that is no list counts as one element. An error in an element refuses the object, as a failure does.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyverno.compiler.migration.conditions.blocks import Test, conditions_test
from pyverno.compiler.migration.expressions import Names, Value, translate_query
from pyverno.compiler.migration.expressions.translator import Translator
from pyverno.compiler.migration.expressions.value import INTEGER, constant
from pyverno.compiler.migration.outcome import UnconvertibleError, join_path
from pyverno.compiler.migration.patterns import any_holds, holds
from pyverno.compiler.migration.patterns.verdict import Context
from pyverno.compiler.migration.schema import Shape
from pyverno.compiler.migration.text import FALSE, TRUE, Cel, CelType, all_of, any_of, ternary
from pyverno.compiler.migration.variables import inlined
from pyverno.errors import ExpressionSyntaxError
from pyverno.kube.json import JSON, JSONObject, encode
from pyverno.lang.jmespath.ast import Node
from pyverno.lang.jmespath.expression import compile_expression
from pyverno.value import replace

__all__ = ["elements_pass"]


def elements_pass(entries: Sequence[JSONObject], names: Names, path: str, *, depth: int = 0) -> Cel:
    """Return whether all elements of all lists pass.

    >>> from pyverno.compiler.migration.expressions import names_of
    >>> from pyverno.compiler.migration.schema import SchemaBook
    >>> from pyverno.compiler.migration.text import Reference
    >>> names = names_of(Reference("object", SchemaBook().of("", "v1", "Pod")))
    >>> deny = {"conditions": {"all": [{"key": "{{ element.name }}", "operator": "Equals", "value": "x"}]}}
    >>> elements_pass([{"list": "request.object.spec.containers", "deny": deny}], names, "foreach").text
    "object.spec.containers.all(c, c.name != 'x')"
    """
    return all_of(_entry(each, names, f"{path}[{index}]", depth) for index, each in enumerate(entries))


def _entry(entry: JSONObject, names: Names, path: str, depth: int) -> Cel:
    text = entry.get("list")
    if not isinstance(text, str) or not text:
        raise UnconvertibleError("foreach", join_path(path, "list"), "a foreach without a list", "mend the rule")
    where = join_path(path, "list")
    translator = Translator(names, where)
    listed = translate_query(text, names, where)
    if listed.is_null:
        return TRUE
    if listed.shape is Shape.ANY:
        listed = translator.assumed(listed, Shape.LIST)
    if listed.shape is not Shape.LIST:
        inner = names.with_element(replace(listed, present=TRUE), constant(0), depth, "")
        return any_of([listed.present.not_(), _check(entry, inner, path, depth, listed)])
    if "elementIndex" in encode(entry):
        return _index(entry, names, path, depth, listed)
    sequence = translator.sequence_of(listed, _node(text))
    inside = frozenset(loop.variable for loop in sequence.loops)
    inner = names.with_element(replace(sequence.element, present=TRUE), None, depth, sequence.loops[-1].variable)
    inner = replace(inner, taken=inner.taken | inside)
    return sequence.all(lambda element: _check(entry, inner, path, depth, element))


def _index(entry: JSONObject, names: Names, path: str, depth: int, listed: Value) -> Cel:
    """Return the loop with the number of each element; the list must not leave nulls out."""
    translator = Translator(names, path)
    items = listed.or_empty()
    variable, number = translator.fresh("element"), translator.fresh("index")
    element = translator.variable(variable, translator.element_schema(listed))
    index = Value(Cel(number, CelType.INT), INTEGER)
    inner = names.with_element(element, index, depth, variable)
    inner = replace(inner, taken=inner.taken | {number})
    return items.macro("all", f"{number}, {variable}", _check(entry, inner, path, depth, element))


def _check(entry: JSONObject, names: Names, path: str, depth: int, element: Value) -> Cel:
    """Return whether one element passes."""
    names = inlined(entry.get("context") or [], names, join_path(path, "context"))
    before = _certain(conditions_test(entry.get("preconditions"), names, join_path(path, "preconditions")), names, path)
    if before.cel.text == "false":
        return TRUE
    found = _judge(entry, names, path, depth, element)
    if before.fails:
        return ternary(before.cel, found, TRUE)
    return any_of([before.cel.not_(), found])


def _judge(entry: JSONObject, names: Names, path: str, depth: int, element: Value) -> Cel:
    if entry.get("foreach"):
        return elements_pass(entry["foreach"], names, join_path(path, "foreach"), depth=depth + 1)
    if "deny" in entry:
        where = join_path(path, "deny.conditions")
        deny = entry["deny"] or {}
        if deny.get("conditions") is None:
            return FALSE
        return _certain(conditions_test(deny["conditions"], names, where, strict=False), names, where).cel.not_()
    return _patterns(entry, names, path, element)


def _certain(found: Test, names: Names, path: str) -> Test:
    """Return a test; raises UnconvertibleError where it can fail and must not: `all` forgets errors of elements."""
    if found.fails and names.errors is not None:
        code, reason, advice = names.errors
        raise UnconvertibleError(code, path, reason, advice)
    return found


def _patterns(entry: JSONObject, names: Names, path: str, element: Value) -> Cel:
    if entry.get("elementScope") is False or element.reference is None or element.shape is not Shape.OBJECT:
        raise UnconvertibleError(
            "element-scope",
            join_path(path, "list"),
            "the pattern is held against the whole object for elements that are no maps",
            "write the check of an element as deny conditions",
        )
    reference = element.reference
    context = Context(taken=tuple(sorted(names.taken)))
    for name, judge in (("pattern", holds), ("anyPattern", any_holds)):
        if name in entry:
            return judge(_static(entry[name], join_path(path, name)), reference, join_path(path, name), context)
    raise UnconvertibleError("foreach", path, "a foreach without a check", "mend the rule")


def _static(pattern: JSON, path: str) -> JSON:
    if "{{" in encode(pattern):
        raise UnconvertibleError("variable-in-pattern", path, "a pattern with variables", "write deny conditions")
    return pattern


def _node(text: str) -> Node:
    try:
        return compile_expression(text).ast
    except ExpressionSyntaxError:
        return compile_expression("e").ast  # a name for the variable of the loop is all that is wanted
