"""The place in the file of each character of a scalar, whatever its style."""

from __future__ import annotations

import pytest

from pyverno.kube.yaml.documents import load_documents

STYLES = {
    "plain": "a:\n  b: one two three\n",
    "plain on lines": "a:\n  b: one\n     two\n\n     three\n",
    "double": 'a:\n  b: "one \\"t\\x77o\\" three"\n',
    "double on lines": 'a:\n  b: "one \\\n    two\n    three"\n',
    "single": "a:\n  b: 'one ''two'' three'\n",
    "single on lines": "a:\n  b: 'one\n    two\n\n    three'\n",
    "literal": "a:\n  b: |\n    one\n      two\n\n    three\n",
    "literal with indicator": "a:\n  b: |2-\n      one\n    two three\n",
    "folded": "a:\n  b: >-\n    one\n    two\n\n    three\n",
    "folded with deeper lines": "a:\n  b: >\n    one\n      two\n      x\n    three\n",
    "anchored": "a:\n  b: &x !!str one two three\n",
    "in a later document": "x: 1\n---\na:\n  b: |\n    one\n    two three\n",
}


@pytest.mark.parametrize("style", STYLES)
def test_a_character_is_found_in_every_style(style: str) -> None:
    """The text at the place begins with the word whose first character was looked for."""
    text = STYLES[style]
    document = load_documents(text)[-1]
    value = document.value["a"]["b"]
    found = {}
    for word in value.replace("'", "").replace('"', "").split():
        place = document.character(("a", "b"), value.index(word))
        found[word] = text.split("\n")[place.line - 1][place.column - 1 :].replace("\\x77", "w")[: len(word)]
    assert {word: word for word in found} == found


@pytest.mark.parametrize("style", STYLES)
def test_an_offset_past_the_end_stays_inside_the_file(style: str) -> None:
    """A parser that points behind the text gets the place after its last character."""
    text = STYLES[style]
    document = load_documents(text)[-1]
    place = document.character(("a", "b"), 10_000)
    assert 0 < place.line <= text.count("\n") + 1


def test_a_document_without_text_has_no_characters() -> None:
    """An object of an API server has no file; its place is the document's."""
    from pyverno.kube.yaml.documents import Document

    assert "x:1:1" == str(Document({"a": "b"}, "x").character(("a",), 0))


@pytest.mark.parametrize("quote", ["'", '"'])
def test_blanks_inside_of_a_line_are_looked_at_once(quote: str) -> None:
    """A look from each of them to the end of the line would take half a minute."""
    value = f"a{' ' * 200_000}b"
    assert "a:1:200006" == str(load_documents(f"a: {quote}{value}{quote}\n", file="a")[0].character(("a",), 200_001))
