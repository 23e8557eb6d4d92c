"""Laws of the fast tiers: generated functions agree with the closures, or leave the verdict to them."""

from __future__ import annotations

import contextlib

from pyverno.compiler import compile_documents
from pyverno.engine.engine import Engine
from pyverno.engine.host import NoHost
from pyverno.engine.phases import VALIDATING
from pyverno.engine.policyset import PolicySet
from pyverno.engine.request import Operation, Request
from pyverno.engine.result import RuleResult
from pyverno.errors import PyvernoError, UnknownKeyError
from pyverno.kube.json import JSON, JSONObject, encode
from pyverno.kube.yaml.documents import Document, load_documents
from pyverno.lang.codegen import Source
from pyverno.lang.jmespath import compile_expression
from pyverno.lang.jmespath.fast.expressions import NoFastFormError, write_expression
from pyverno.lang.pattern.outcome import Status
from pyverno.lang.pattern.validate import Pattern, compile_pattern
from pyverno.lang.runtime import Runtime
from tests.property import inputs as st
from tests.property.inputs import Draw, Inputs, law
from tests.property.test_patterns import CASES, EACH, PATTERNS, RESOURCES


class SupplyingHost(NoHost):
    """A Host that claims user-supplied variables but has none, so that the engine must not look at the object alone."""

    supplies_variables = True


# --- the parts: paths of patterns, values of expressions ------------------------------------------------------------


@law(CASES, st.booleans(), few=150, each=EACH)
def test_a_generated_path_is_that_of_the_exact_match(case: tuple[JSON, list[JSON]], float_numbers: bool) -> None:
    """A path means a FAIL at that path, no path means PASS, an exception means nothing."""
    pattern, resources = case
    compiled = compile_pattern(pattern, float_numbers=float_numbers)
    if compiled.failing_path is None:
        return
    for resource in resources:
        path = _failing_path(compiled, resource)
        if path is not None:
            outcome = compiled.match(resource)
            assert (path, outcome.status) == (outcome.path, Status.FAIL if path else Status.PASS)


def _failing_path(compiled: Pattern, resource: JSON) -> str | None:
    """Return the result of the generated function; None when it raises, because then the exact match decides."""
    assert compiled.failing_path is not None
    try:
        return compiled.failing_path(resource)
    except Exception:
        return None


NAMES = st.sampled_from(["a", "b", "c"])
CHAINS = st.lists(NAMES, min_size=1, max_size=3).map(".".join)
DEFAULTS = st.sampled_from(["`[]`", "`0`", '`"x"`', "`null`", "'ab'", "`{}`"])
LISTS = st.one_of(
    CHAINS.map("{}[]".format),
    CHAINS.map("{}[].keys(@)".format),
    CHAINS.map("{}[].keys(@)[]".format),
    st.tuples(CHAINS, NAMES).map(lambda drawn: f"{drawn[0]}[].{drawn[1]}"),
    st.tuples(CHAINS, NAMES, NAMES).map(lambda drawn: "{}.[{}, {}][]".format(*drawn)),
    st.tuples(CHAINS, NAMES, NAMES).map(lambda drawn: "{}.[{}, {}]".format(*drawn)),
)
EXPRESSIONS = st.one_of(
    CHAINS, LISTS, st.tuples(CHAINS | LISTS, DEFAULTS).map(lambda drawn: f"{drawn[0]} || {drawn[1]}")
)
SCALARS = st.sampled_from([None, True, False, 0, 1, 5, 1.5, "", "a", "ab", "5", "a*", "1Gi", "60s"])
DATA = st.recursive(
    SCALARS,
    lambda children: st.one_of(
        st.dictionaries(NAMES, children, max_size=3),
        st.lists(children, max_size=3),
        st.lists(st.dictionaries(NAMES, children, max_size=2), max_size=3),
    ),
    max_leaves=10,
)
OBJECTS = st.dictionaries(NAMES, DATA, max_size=3)


@law(EXPRESSIONS, OBJECTS, few=300)
def test_generated_source_gives_the_value_of_the_expression(text: str, data: JSONObject) -> None:
    """Where the generated function returns a value, the expression returns the same."""
    expression = compile_expression(f"top.{text}")
    source = Source(arguments=1)
    try:
        number = write_expression(source, 0, expression, {("top",): 0})
    except NoFastFormError:
        return
    source.line(0, "return v{}", number)
    try:
        found = source.build()(data)
    except Exception:  # then the expression itself decides
        with contextlib.suppress(UnknownKeyError, PyvernoError):
            expression.evaluate({"top": data}, Runtime())
        return
    expected = expression.evaluate({"top": data}, Runtime())
    assert (encode(found), type(found)) == (encode(expected), type(expected))


# --- whole rules ----------------------------------------------------------------------------------------------------

OPERATORS = st.sampled_from(
    ["Equals", "NotEquals", "AnyIn", "AllIn", "AnyNotIn", "AllNotIn", "In", "GreaterThan", "LessThanOrEquals", "Odd"]
)
VALUES = st.one_of(SCALARS, st.lists(st.sampled_from(["a", "ab", "a*", "b", "5"]), max_size=3))


def variables(root: str) -> Inputs[str]:
    """Generate texts that are one variable below a root."""
    return EXPRESSIONS.map(lambda text: "{{ " + f"{root}.{text}" + " }}")


def conditions(root: str) -> Inputs[JSON]:
    """Generate conditions whose sides are fixed or variables."""
    sides = st.tuples(variables(root), VALUES) | st.tuples(VALUES, variables(root))
    sides |= st.tuples(variables(root), variables("request.object"))
    one = st.tuples(sides, OPERATORS).map(
        lambda drawn: {"key": drawn[0][0], "operator": drawn[1], "value": drawn[0][1]}
    )
    some = st.lists(one, min_size=1, max_size=2)
    return st.one_of(
        some.map(lambda items: {"all": items}),
        some.map(lambda items: {"any": items}),
        st.tuples(some, some).map(lambda drawn: {"any": drawn[0], "all": drawn[1]}),
    )


MESSAGES = st.sampled_from(["", "no", "no.", "not {{ request.object.a }}"])
PATTERN_MAPS = PATTERNS.filter(lambda pattern: isinstance(pattern, dict))
DENY = conditions("request.object").map(lambda written: {"deny": {"conditions": written}})
FOREACH = st.tuples(LISTS | CHAINS, conditions("element")).map(
    lambda drawn: {"foreach": [{"list": f"request.object.{drawn[0]}", "deny": {"conditions": drawn[1]}}]}
)
CHECKS = st.one_of(
    PATTERN_MAPS.map(lambda pattern: {"pattern": pattern}),
    st.lists(PATTERN_MAPS, min_size=1, max_size=2).map(lambda patterns: {"anyPattern": patterns}),
    DENY,
    FOREACH,
)


OBJECTS_EACH = 8
"""Objects per set of policies: compiling policies costs more than judging."""

MAPS = RESOURCES.filter(lambda value: isinstance(value, dict))


def rules_and_objects(draw: Draw) -> tuple[list[JSONObject], list[JSONObject]]:
    """Draw the checks of a few rules with objects that have much of what they ask for."""
    checks = [{"message": draw(MESSAGES), **draw(CHECKS)} for _ in range(draw(st.integers(1, 3)))]
    bodies = [draw(OBJECTS | MAPS) for _ in range(OBJECTS_EACH)]
    if draw(st.booleans()):
        pattern, resources = draw(CASES)
        if isinstance(pattern, dict):
            checks.append({"message": draw(MESSAGES), "pattern": pattern})
            related = [resource for resource in resources if isinstance(resource, dict)] or [{}]
            bodies = [{**body, **related[index % len(related)]} for index, body in enumerate(bodies)]
    return checks, bodies


def policy(checks: list[JSONObject], *, apply_one: bool, action: str) -> Document:
    """Write the checks as a policy about ConfigMaps."""
    rules = [
        {
            "name": f"rule-{index}",
            "match": {"any": [{"resources": {"kinds": ["ConfigMap"]}}]},
            "validate": {"failureAction": action, **check},
        }
        for index, check in enumerate(checks)
    ]
    spec = {"applyRules": "One" if apply_one else "All", "rules": rules}
    written = {"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": {"name": "generated"}, "spec": spec}
    return load_documents(encode(written))[0]


@law(
    st.composite(rules_and_objects),
    st.booleans(),
    st.sampled_from(["Audit", "Enforce"]),
    st.sampled_from(["CREATE", "UPDATE"]),
    few=75,
    each=OBJECTS_EACH,
)
def test_both_tiers_give_the_same_results(
    drawn: tuple[list[JSONObject], list[JSONObject]], apply_one: bool, action: str, operation: str
) -> None:
    """With and without fast tiers all rules give the same status, text, detail and action, in the same order."""
    checks, bodies = drawn
    policies = PolicySet(compile_documents([policy(checks, apply_one=apply_one, action=action)]).policies)
    assert len(bodies) == OBJECTS_EACH
    for body in bodies:
        manifest = {**body, "apiVersion": "v1", "kind": "ConfigMap"}
        request = Request.from_manifest(manifest, operation=Operation(operation))
        fast, exact = (_said(Engine(policies, host), request) for host in (NoHost(), SupplyingHost()))
        assert fast == exact


@law(
    st.lists(PATTERN_MAPS, min_size=2, max_size=6),
    st.lists(MAPS, min_size=OBJECTS_EACH, max_size=OBJECTS_EACH),
    few=75,
    each=OBJECTS_EACH,
)
def test_fused_policies_give_the_same_results(patterns: list[JSON], bodies: list[JSONObject]) -> None:
    """Policies that share one pass-check give the same results as each of them alone, in any order."""
    documents = []
    for index, pattern in enumerate(patterns):
        document = policy([{"pattern": pattern}], apply_one=False, action="Audit")
        document.value["metadata"]["name"] = f"generated-{index}"
        documents.append(document)
    policies = PolicySet(compile_documents(documents).policies)
    key = lambda result: result.rule.policy.name  # noqa: E731 - said once, used twice
    assert len(bodies) == OBJECTS_EACH
    for body in bodies:
        request = Request.from_manifest({**body, "apiVersion": "v1", "kind": "ConfigMap"})
        fast, exact = (_said(Engine(policies, host), request) for host in (NoHost(), SupplyingHost()))
        assert sorted(fast, key=key) == sorted(exact, key=key)


def _said(engine: Engine, request: Request) -> list[RuleResult]:
    return list(engine.review(request, VALIDATING).results)
