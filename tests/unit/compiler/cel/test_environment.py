"""Names and functions of each kind's expressions; all others are errors before anything runs."""

from __future__ import annotations

import pytest

from pyverno.compiler.cel.environment import CelCompiler, environment_of_kind
from pyverno.compiler.parser import Parser
from pyverno.errors import EvaluationError
from pyverno.kube.yaml.documents import load_documents
from pyverno.policy.validate import NamedExpression
from tests.support.celpolicies import compiled, conditions, exception, kyverno, named, native, validations

MUTATION = [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{}"}}]
GENERATION = [{"expression": "generator.Apply('x', [])"}]
VALID = validations("true")


def problems(*documents):
    return [error.message for error in compiled(*documents).errors]


@pytest.mark.parametrize(
    ("policy", "problem"),
    [
        (kyverno(validations=validations("object.flag")), "output is expected to be of type bool"),
        (kyverno(validations=validations("bool(object.flag)")), ""),
        (kyverno(validations=validations("object.spec ==")), "Syntax error"),
        (kyverno(validations=validations("nothing == 1")), "undeclared reference to 'nothing'"),
        (kyverno(validations=validations("true", messageExpression="1")), "output is expected to be of type string"),
        (kyverno(validations=VALID, matchConditions=conditions("'x'")), "output is expected to be of type bool"),
        (kyverno(validations=VALID, auditAnnotations=[{"key": "k", "valueExpression": "1"}]),
         "either of type string or null_type"),
        (kyverno(validations=VALID, variables=named(b="variables.a", a="1")), "undefined field 'a'"),
        (kyverno(validations=VALID, variables=named(a="1", b="variables.a + 'x'")), "no matching overload for '_+_'"),
        (kyverno(validations=validations("variables.a == 1"), variables=named(a="1")), ""),
        (kyverno(validations=VALID, variables=named(a="1"), matchConditions=conditions("variables.a == 1")),
         "undefined"),
        (kyverno(validations=validations("request.nothing == ''")), "undefined field 'nothing'"),
        (kyverno(validations=validations("namespaceObject.data == ''")), "undefined field 'data'"),
        (kyverno(validations=validations("params == null")), "undeclared reference to 'params'"),
        (kyverno(validations=validations("size(exceptions.allowedValues) == 0")), ""),
        (kyverno(validations=validations("request.name == ''"), evaluation={"mode": "JSON"}), "undeclared reference"),
        (kyverno("MutatingPolicy", mutations=MUTATION, variables=named(a="true"),
                 matchConditions=conditions("variables.a")), ""),
        (kyverno("MutatingPolicy", mutations=[{"patchType": "ApplyConfiguration",
                 "applyConfiguration": {"expression": "object"}}]), "output is expected to be of type"),
        (kyverno("MutatingPolicy", mutations=[{"patchType": "JSONPatch",
                 "jsonPatch": {"expression": "Object{}"}}]), "output is expected to be of type"),
        (kyverno("GeneratingPolicy", generate=[{"expression": "'x'"}]), "output is expected to be of type bool"),
        (kyverno("GeneratingPolicy", generate=GENERATION, matchConditions=conditions("[1, 'x'].size() == 2")), ""),
        (kyverno(validations=validations("[1, 'x'].size() == 2")), "expected type 'int' but found 'string'"),
        (kyverno("DeletingPolicy", schedule="* * * * *", variables=named(a="true"),
                 conditions=conditions("variables.a")), ""),
        (native(validations=validations("params == null")), "undeclared reference to 'params'"),
        (native(validations=validations("params == null"), paramKind={"apiVersion": "v1", "kind": "A"}), ""),
        (native(validations=validations("resource.Get('v1', 'a', 'b', 'c') == null")), "undeclared reference"),
        (native(validations=validations("authorizer.group('').resource('pods').check('get').allowed()")), ""),
        (native(validations=validations("authorizer.requestResource.check('get').allowed()")), ""),
        (native(validations=VALID, auditAnnotations=[{"key": "k", "valueExpression": "1"}]),
         "either of type string or null_type"),
        (native(validations=validations("true", messageExpression="authorizer.path('/x').check('get').reason()")),
         "undeclared reference to 'authorizer'"),
        (native(validations=validations("true", messageExpression="string(variables.a)"),
                variables=named(a="authorizer.path('/x').check('get').allowed()")), ""),
        (kyverno("MutatingPolicy", mutations=MUTATION, targetMatchConstraints={"expression": "object"}),
         "output type must be a map"),
        (kyverno("MutatingPolicy", mutations=MUTATION, targetMatchConstraints={"expression": "'x'"}),
         "output type must be a map"),
        (kyverno("MutatingPolicy", mutations=MUTATION,
                 targetMatchConstraints={"expression": "resource.List('v1', 'pods', 'default')"}), ""),
        (exception(matchConditions=conditions("object.flag")), "output is expected to be of type bool"),
        (exception(matchConditions=conditions("size(exceptions.allowedValues) == 0")), "undeclared reference"),
    ],
)  # fmt: skip
def test_an_expression_is_checked_when_its_policy_is_compiled(policy, problem):
    """Names, types and results; a variable sees those before it."""
    found = problems(policy)
    assert bool(problem) == bool(found), found
    assert all(problem in message for message in found[:1]), found


def test_every_problem_has_its_path():
    """All expressions are compiled, however many of them are wrong."""
    policy = kyverno(validations=validations("1", "true", "2"), variables=named(a="x"), matchConditions=conditions("3"))
    assert [
        "spec.matchConditions[0].expression",
        "spec.variables[0].expression",
        "spec.validations[0].expression",
        "spec.validations[2].expression",
    ] == [error.path for error in compiled(policy).errors]


# --- what compilers keep of each other --------------------------------------------------------------------------------


def _compiler():
    return CelCompiler(environment_of_kind("ValidatingPolicy"), Parser(load_documents("a: b")[0]))


def _named(name, expression):
    return NamedExpression(name, expression, ("spec",))


def test_expressions_are_compiled_once_for_variables_of_the_same_types():
    """Another policy gets the same program; where a variable that it reads has another type, one of its own."""
    programs = []
    for value in ("'a'", "'b'", "1"):
        compiler = _compiler()
        compiler.variables([_named("v", value), _named("unread", "1.0" if value == "'a'" else "2")])
        programs.append(compiler.compile("dyn(variables.v) == 'a'", ("spec",)))
    assert programs[0] is programs[1]
    assert programs[0] is not programs[2]
    assert programs[2] is not None


def test_a_text_that_compiled_for_one_policy_may_not_compile_for_another():
    """Its variables are unknown there, or of a type that does not fit."""
    known = _compiler()
    known.variables([_named("v", "'a'")])
    assert known.compile("variables.v.startsWith('a')", ("spec",)) is not None
    for variables in ([], [_named("v", "1")]):
        other = _compiler()
        other.variables(variables)
        assert other.compile("variables.v.startsWith('a')", ("spec",)) is None
        assert other.parser.errors


def test_expressions_about_a_template_are_those_of_its_pod_looked_at_deeper():
    """The program of a copy gives what its text gives."""
    text = "object.spec.a == 'x' && has(object.metadata.b)"
    compiler = _compiler()
    assert compiler.compile(text, ("spec",)) is not None
    program = compiler.compile(text.replace("object.", "object.spec.template."), ("spec",))
    pod = {"spec": {"a": "x"}, "metadata": {"b": "y"}}
    assert program is not None
    assert program.evaluate({"object": {"spec": {"template": pod}}}) is True
    with pytest.raises(EvaluationError):
        program.evaluate({"object": pod})
