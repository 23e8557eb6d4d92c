"""Messages: zeros, presence, and their JSON forms."""

from typing import Any

import pytest

from pyverno.errors import DocumentError
from pyverno.lang.cel import STANDARD
from pyverno.lang.cel.checking.structs import StructTypes
from pyverno.lang.cel.messages import MessageTypes
from pyverno.lang.cel.scalars import Uint
from pyverno.lang.cel.types import BOOL, BYTES, DYN, INT, STRING, TIMESTAMP, UINT, list_of, map_of, struct
from pyverno.lang.cel.values import equals

TABLES = {
    "Box": {
        "label_text": STRING,
        "count": INT,
        "size": UINT,
        "open": BOOL,
        "raw": BYTES,
        "made_at": TIMESTAMP,
        "colour": INT,
        "inner": struct("Lid"),
        "lids": list_of(struct("Lid")),
        "labels": map_of(STRING, STRING),
        "extra": map_of(STRING, DYN),
    },
    "Lid": {"name": STRING},
}
STRICT = MessageTypes(TABLES, enums={("Box", "colour"): ("NONE", "RED")})
LENIENT = MessageTypes(TABLES, is_strict=False)


@pytest.mark.parametrize(
    ("document", "field", "expected"),
    [
        ({"labelText": "a"}, "label_text", "a"),
        ({"label_text": "a"}, "label_text", "a"),
        ({"count": "-12"}, "count", -12),
        ({"count": 3.0}, "count", 3),
        ({"size": 7}, "size", Uint(7)),
        ({"raw": "aGk="}, "raw", b"hi"),
        ({"colour": "RED"}, "colour", 1),
        ({"colour": 9}, "colour", 9),
        ({"labels": {"a": "b"}}, "labels", {"a": "b"}),
        ({"extra": {"n": 1}}, "extra", {"n": 1.0}),
        ({"count": None}, "count", 0),
        ({}, "open", False),
    ],
)
def test_fields_are_read_as_protobuf_writes_them_in_json(document: Any, field: str, expected: Any) -> None:
    """Names in both spellings, numbers as text, bytes in base64, enums by word or number."""
    value = STRICT.read("Box", document).fields[field]
    assert (type(expected), expected) == (type(value), value)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([], "the document must be an object"),
        ({"nope": 1}, "unknown field `nope`"),
        ({"inner": {"nope": 1}}, "unknown field `inner.nope`"),
        ({"count": 1.5}, "`count` must be a whole number"),
        ({"count": "x"}, "`count` must be a whole number"),
        ({"count": True}, "`count` must be a whole number"),
        ({"count": 2**63}, "`count` must be a whole number"),
        ({"size": -1}, "`size` must be a whole number that is not negative"),
        ({"open": "true"}, "`open` must be true or false"),
        ({"raw": "?"}, "`raw` must be a text in base64"),
        ({"raw": 1}, "`raw` must be a text in base64"),
        ({"madeAt": "today"}, "`madeAt` must be a time such as `2024-01-31T12:00:00Z`"),
        ({"colour": "BLUE"}, "`colour` must be one of NONE, RED"),
        ({"lids": {}}, "`lids` must be a list"),
        ({"lids": [{}, {"name": 1}]}, "`lids[1].name` must be a text"),
        ({"labels": []}, "`labels` must be an object"),
        ({"labels": {"a": 1}}, "`labels.a` must be a text"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_path(document: Any, message: str) -> None:
    """Values of another type are refused instead of guessed."""
    with pytest.raises(DocumentError) as caught:
        STRICT.read("Box", document)
    assert message == caught.value.message


def test_go_passes_unknown_fields_over_and_ignores_the_case_of_names() -> None:
    """This is how Go's JSON decoder reads them; a number is not accepted as text."""
    message = LENIENT.read("Box", {"LABEL_TEXT": "a", "nope": 1, "inner": {}})
    assert {"label_text"} == set(message.fields)
    with pytest.raises(DocumentError):
        LENIENT.read("Box", {"count": "1"})


def test_a_zero_counts_as_not_set() -> None:
    """An explicit zero equals an absent field, so messages that differ only in that are equal."""
    written = STRICT.read("Box", {"count": 0, "labelText": "", "lids": [], "colour": "NONE"})
    assert set() == set(written.fields)
    assert equals(written, STRICT.read("Box", {}))
    assert not equals(written, STRICT.read("Box", {"count": 1}))


def test_literals_make_messages() -> None:
    """Fields that a literal omits are zero."""
    environment = STANDARD.with_structs(StructTypes((STRICT,)))
    assert environment.compile("Box{count: 1}.inner.name == '' && !has(Box{}.count)").evaluate({}) is True
