"""Laws of documents: written documents read back with the same value, and no text crashes the reader."""

from __future__ import annotations

import contextlib
import json

from pyverno.errors import DocumentError
from pyverno.kube.json import JSON, equal
from pyverno.kube.yaml.blocks import BlockReader
from pyverno.kube.yaml.documents import load_documents
from pyverno.kube.yaml.events import build_value
from pyverno.kube.yaml.writer import dump_yaml
from tests.property import inputs as st
from tests.property.inputs import law

WORDS = st.sampled_from(
    [
        "yes",
        "no",
        "on",
        "null",
        "~",
        "1e3",
        "0x1",
        "017",
        "1_0",
        "2001-01-01",
        "12:30",
        ".inf",
        "<<",
        "=",
        "---",
        "...",
        "a",
        "é",
    ]
)
FRAGMENTS = st.lists(
    st.one_of(WORDS, st.sampled_from(list(" \n\t:#-?,[]{}&*!|>'\"%@`\\\r\x85\u2028\x00")), st.text(max_size=3)),
    max_size=6,
).map("".join)
TEXTS = FRAGMENTS.filter(lambda text: not any("\ud800" <= character <= "\udfff" for character in text))
# Whole floats beyond 2**53 read back as the integer that their shortest digits name, as in Go.
FLOATS = st.floats().filter(lambda f: abs(f) < 2**53 or abs(f) > 2**63)
NUMBERS = st.one_of(st.integers(-(2**63), 2**63 - 1), FLOATS, st.sampled_from([1e21, 1e-7]))
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(TEXTS, inner, max_size=4)),
    max_leaves=12,
)


def read(text: str) -> JSON:
    documents = load_documents(text)
    return documents[0].value if documents else None


@law(VALUES, st.booleans(), st.sampled_from([(2, False), (2, True), (4, True)]), few=300)
def test_written_yaml_reads_back(value: JSON, sort_keys: bool, layout: tuple[int, bool]) -> None:
    """load(dump(x)) == x, by value, in every layout."""
    text = dump_yaml(value, sort_keys=sort_keys, indent=layout[0], indent_lists=layout[1])
    assert equal(value, read(text))


@law(st.one_of(st.dictionaries(TEXTS, VALUES, max_size=4), st.lists(VALUES, max_size=4)), few=200)
def test_json_reads_as_itself(value: JSON) -> None:
    """JSON text is a document with the same value."""
    assert equal(value, read(json.dumps(value)))


LINES = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from(["", "- ", "a:", "b: ", "- c: ", "? "]), FRAGMENTS).map(
        lambda parts: "  " * parts[0] + parts[1] + parts[2]
    ),
    max_size=8,
).map("\n".join)


@law(LINES, few=300)
def test_any_text_is_read_or_refused(text: str) -> None:
    """For any text the answer is documents, each with its position, or a DocumentError."""
    with contextlib.suppress(DocumentError):
        for document in load_documents(text):
            assert document.location(("a", 0)).line >= 1


BLOCK_WORDS = st.sampled_from(
    [
        "1",
        "yes",
        "x",
        "x y",
        "~",
        "{}",
        "[]",
        "'q'",
        '"q"',
        "-1",
        "--f=1",
        "a:b",
        "a: b",
        "x #c",
        "|",
        "|-",
        ">",
        ">-",
        "-",
        "",
        "e:",
    ]
)
BLOCK_LINES = st.lists(
    st.tuples(
        st.sampled_from(["", "  ", "    ", "      ", " "]),
        st.sampled_from(["", "- ", "-  ", "# "]),
        st.sampled_from(["", "a: ", "b:", "c: ", "'d': ", "yes: ", "f:e: ", "f::", ".: ", "=(g): ", "(h): ", "X(i):"]),
        BLOCK_WORDS,
        st.sampled_from(["", "", "", " "]),
    ).map("".join),
    max_size=7,
).map(lambda lines: "\n".join(lines) + "\n")


@law(BLOCK_LINES, few=1000)
def test_fast_reader_agrees_with_libyaml(text: str) -> None:
    """Where the block reader answers, libyaml's events give the same value with the same types."""
    reader = BlockReader()
    is_read, value = reader.read(text)
    if is_read:
        expected = build_value(text)
        assert (repr(expected), expected) == (repr(value), value)
        assert reader.may_hold_null or value is None or "None" not in repr(value)
