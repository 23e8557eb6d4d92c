"""Every function documents itself: its examples run, its signature and note are there."""

from itertools import product

import pytest

from pyverno.errors import EvaluationError, PyvernoError
from pyverno.kube.json import decode, encode, equal
from pyverno.lang.jmespath import FUNCTIONS
from pyverno.lang.jmespath.functions import TOPICS
from pyverno.lang.runtime import Runtime
from tests.unit.lang.jmespath.hosts import evaluate

EXAMPLES = [(name, text, expected) for name, found in FUNCTIONS.items() for text, expected in found.examples]


@pytest.mark.parametrize(("name", "text", "expected"), EXAMPLES)
def test_the_example_of_a_docstring_holds(name, text, expected):
    """`>>> expression` gives the JSON on the next line, or that error."""
    assert f"{name}(" in text
    if expected.startswith("error: "):
        with pytest.raises(EvaluationError) as caught:
            evaluate(text, {})
        assert expected.removeprefix("error: ") == caught.value.message
    else:
        assert equal(decode(expected), evaluate(text, {}))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_has_note_documentation_and_example(name):
    """Generated pages and `jp function` need all three."""
    found = FUNCTIONS[name]
    assert name == found.name
    assert found.note
    assert not found.note.endswith(".")
    assert found.documentation
    assert found.examples


@pytest.mark.parametrize("topic", TOPICS)
def test_the_table_of_topics_lists_what_modules_register(topic):
    """Otherwise a function would not be found, or under a name that loads nothing."""
    load, names = TOPICS[topic]
    assert names.split() == [each.name for each in load()]


def test_a_name_that_is_no_function_is_not_found():
    """The table is a mapping like any other."""
    assert "no_such" not in FUNCTIONS
    assert FUNCTIONS.get("no_such") is None


def test_all_functions_of_the_language_are_there():
    """26 standard names, of which `sum` is Kyverno's, and Kyverno's own."""
    standard = {name for name, found in FUNCTIONS.items() if found.standard}
    assert 25 == len(standard)
    assert "sum" not in standard
    assert 51 == len(FUNCTIONS) - len(standard)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("split", "split(string, string) array[string]"),
        ("lookup", "lookup(object|array, string|number) any"),
        ("time_now", "time_now() string"),
        ("label_match", "label_match(object, object) bool"),
    ],
)
def test_signatures_are_written_as_upstream(name, expected):
    """`jp function` prints them."""
    assert expected == FUNCTIONS[name].signature


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("base64_decode", [123], "JMESPath function 'base64_decode': argument #1 is not of type string"),
        ("pattern_match", ["foo", []], "JMESPath function 'pattern_match': argument #2 is not of type String or Real"),
        ("truncate", ["foo", True], "JMESPath function 'truncate': argument #2 is not of type float64"),
        ("sha1", [], "JMESPath function 'sha1': 1 argument is out of bounds (0)"),
    ],
)
def test_a_direct_call_names_function_and_argument(name, arguments, message):
    """The check of Kyverno's own handlers, behind that of the language."""
    with pytest.raises(EvaluationError) as caught:
        FUNCTIONS[name].apply(arguments, Runtime())
    assert message == caught.value.message


class LazyMap(dict):
    """A document that loads its keys when they are read."""

    def materialise(self):
        return dict(self)


VALUES = (None, True, 3, 2.5, "", "a", "5m", [], ["a"], [1, 2], [{"a": 1}], {}, {"a": "b"}, LazyMap(a=1))


def outcome(invoke, arguments):
    """Return what a call gives or raises, and what is left of the budget."""
    runtime = Runtime()
    try:
        result = encode(invoke(list(arguments), runtime))
    except PyvernoError as error:
        result = f"{type(error).__name__}: {error.message}"
    return result, runtime.budget.steps, runtime.budget.produced_bytes


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_compiled_call_is_the_call_with_all_checks(name):
    """Same result, same error, same charge: for every function, with each number of arguments and every type."""
    found = FUNCTIONS[name]
    for count in range(4):
        invoke = found.caller(count)
        for arguments in (
            product(VALUES, repeat=count) if count < 3 else zip(VALUES, VALUES[1:], VALUES[2:], strict=False)
        ):
            assert outcome(found.call, arguments) == outcome(invoke, arguments), arguments
