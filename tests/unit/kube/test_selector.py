"""Label selectors."""

import pytest

from pyverno.errors import ValueSyntaxError
from pyverno.kube.selector import compile_selector, parse_selector_text


@pytest.mark.parametrize(
    ("selector", "labels", "expected"),
    [
        ({}, {}, True),
        (None, {}, False),
        ({"matchLabels": {"a": "b"}}, {"a": "b", "c": "d"}, True),
        ({"matchLabels": {"a": "b"}}, {}, False),
        ({"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}, {"a": "b"}, True),
        ({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["b"]}]}, {}, True),
        ({"matchExpressions": [{"key": "a", "operator": "Exists"}]}, {"a": ""}, True),
        ({"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}, {"a": ""}, False),
    ],
)
def test_selectors_match_as_in_kubernetes(selector, labels, expected):
    """NotIn holds for a missing key."""
    assert expected is compile_selector(selector)(labels)


@pytest.mark.parametrize(
    "selector",
    [
        {"matchLabels": {"a b": "c"}},
        {"matchLabels": {"a": "-"}},
        {"matchLabels": {"a": 1}},
        {"matchLabels": []},
        {"matchLabels": {"a*": "b"}},
        {"matchExpressions": [{"key": "a", "operator": "In"}]},
        {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["x"]}]},
        {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]},
    ],
)
def test_invalid_selectors_are_errors_not_mismatches(selector):
    """An error must not read as false."""
    with pytest.raises(ValueSyntaxError):
        compile_selector(selector)


@pytest.mark.parametrize(
    ("wanted", "labels", "expected"),
    [
        ({"app*": "web-*"}, {"app.x": "web-1"}, True),
        ({"app*": "web-*"}, {}, False),
        ({"a": "?*"}, {"a": ""}, False),
        ({"*": "x"}, {"k": "x"}, True),
    ],
)
def test_wildcards_are_expanded_against_the_labels(wanted, labels, expected):
    """Wildcards are expanded only on request."""
    assert expected is compile_selector({"matchLabels": wanted}, wildcards=True)(labels)


def test_unresolved_wildcards_become_zero():
    """As upstream, so that the text stays a valid label."""
    assert compile_selector({"matchLabels": {"app*": "web-?"}}, wildcards=True)({"app0": "web-0"})
    with pytest.raises(ValueSyntaxError):
        compile_selector({"matchLabels": {"a": "-*"}}, wildcards=True)({})


@pytest.mark.parametrize(
    ("text", "labels", "expected"),
    [
        ("", {}, True),
        ("a", {"a": ""}, True),
        ("!a", {}, True),
        ("a=b,c!=d", {"a": "b"}, True),
        ("a in (b, c)", {"a": "c"}, True),
        ("a notin (b)", {}, True),
        ("a in (,b)", {"a": ""}, True),
        ("n>3,n<9", {"n": "5"}, True),
        ("n>3", {"n": "x"}, False),
    ],
)
def test_selectors_are_read_from_texts(text, labels, expected):
    """The form of URLs and command lines."""
    assert expected is parse_selector_text(text)(labels)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (",", "found ',', expected: !, identifier, or 'end of string'"),
        ("a,", "found '', expected: identifier after ','"),
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("a in b", "unable to parse requirement: found 'b' expected: '('"),
    ],
)
def test_textual_errors_have_apimachinerys_texts(text, message):
    """Clients print these errors."""
    with pytest.raises(ValueSyntaxError) as caught:
        parse_selector_text(text)
    assert message == str(caught.value)
