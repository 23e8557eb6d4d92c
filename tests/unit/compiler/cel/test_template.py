"""Templates of GeneratingPolicies are YAML with expressions, and what they yield is data."""

from __future__ import annotations

import pytest

from tests.support.celpolicies import CONFIG_MAP, ask, compiled, kyverno, named, said

HEAD = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: x}\n"


def policy(text, *, interpolate="cel", **spec):
    template = {"value": text, **({"interpolate": interpolate} if interpolate else {})}
    return kyverno("GeneratingPolicy", generate=[{"template": template}], **spec)


def rendered(text, **how):
    """Return the objects that a template gives."""
    review = ask(policy(text, **how), resource={**CONFIG_MAP, "data": {"key": "(( 1 ))", "n": "x"}})
    assert ["pass"] == [result.status.value for result in review.results], said(review)
    return [effect.resource for effect in review.effects]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("(( 1 + 1 ))", 2),
        ("((true))", True),
        ("(( variables.map ))", {"a": "b"}),
        ("(( [1, 2] ))", [1, 2]),
        ("(( null ))", None),
        ("a-(( 1 + 1 ))-(( true ))", "a-2-true"),
        ("a(( 1.5 ))", "a1.5"),
        ("(( object.data.key ))", "(( 1 ))"),
        ("x(( object.data.key ))", "x(( 1 ))"),
        ("'(( ((1 + 1)) * 2 ))'", 4),
        ("\"(( ':)'.size() ))\"", 2),
        ("\"(( '))'.size() ))\"", 2),
        (r"'\((x))'", "((x))"),
        (r"'\((x)) (( 1 ))'", "((x)) 1"),
        ("'( (x) )'", "( (x) )"),
        ("x))", "x))"),
    ],
)
def test_placeholders(written, expected):
    """One that is the whole text keeps its type; what it yields is never read again."""
    (document,) = rendered(f"{HEAD}data:\n  v: {written}\n", variables=named(map="{'a': 'b'}"))
    assert expected == document["data"]["v"]


def test_texts_stay_as_they_are_without_interpolation():
    """Templates have placeholders only where the policy enables interpolation."""
    (document,) = rendered(f"{HEAD}data:\n  v: (( 1 ))\n", interpolate=None)
    assert {"v": "(( 1 ))"} == document["data"]


def test_templates_have_several_documents():
    """Each gives an object, the items of a list are objects of their own."""
    items = "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: (( 'b' ))}}\n"
    assert ["a", "b"] == [document["metadata"]["name"] for document in rendered(f"{HEAD}---\n{items}")]


def test_an_escaped_key_is_a_key():
    """The backslash is removed even in a text without placeholders."""
    (document,) = rendered(HEAD + "data:\n  '\\((k))': v\n")
    assert {"((k))": "v"} == document["data"]


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ("v: (( ))", "empty placeholder at offset 0"),
        ("v: a (( 1", "unclosed placeholder at offset 2"),
        ("v: (( 1 )", "unclosed placeholder at offset 0"),
        ("(( 'a' )): v", "placeholders are not supported in mapping keys"),
        ("v: (( nothing ))", "undeclared reference to 'nothing'"),
        ("v: [", "the template is not valid YAML"),
    ],
)
def test_a_template_that_is_not_valid_is_an_error_of_the_policy(written, problem):
    """It is found when the policy is compiled."""
    (error, *_) = compiled(policy(f"{HEAD}data:\n  {written}\n")).errors
    assert problem in error.message
    assert "spec.generate[0].template.value" == error.path


@pytest.mark.parametrize(("value", "kind"), [("{'a': 'b'}", "map"), ("[1]", "list"), ("null", "null")])
def test_only_scalars_go_into_a_text(value, kind):
    """A map or list in a text is an error when the template is rendered."""
    review = ask(policy(f'{HEAD}data:\n  v: "a-(( {value} ))"\n'))
    text = f'placeholder "(( {value} ))" embedded in a string must evaluate to a scalar, found a {kind}'
    assert [("error", f"failed to evaluate policy: {text}")] == said(review)
