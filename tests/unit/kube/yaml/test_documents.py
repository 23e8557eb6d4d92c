"""Documents: values by Kubernetes' YAML rules, places of nodes, limits and clear errors."""

from __future__ import annotations

import time

import pytest

from pyverno.errors import DocumentError
from pyverno.kube.yaml.documents import Document, expand_lists, load_documents


def values(text: str | bytes, **options: str) -> list[object]:
    return [document.value for document in load_documents(text, **options)]  # type: ignore[arg-type]


STREAMS = {
    "two documents": ("a: 1\n---\nb: 2\n", [{"a": 1}, {"b": 2}]),
    "empty documents are skipped": ("---\n---\n# only a comment\n---\na: 1\n...\n---\n", [{"a": 1}]),
    "a text at the end of a file that does not end its line": ("a: |\n  b", [{"a": "b\n"}]),
    "end mark without a new document": ("a: 1\n...\n", [{"a": 1}]),
    "content behind the marker": ("--- {a: 1}\n--- [2]\n", [{"a": 1}, [2]]),
    "directive": ("%YAML 1.1\n---\na: yes\n", [{"a": True}]),
    "directive of a later document": ("a: 1\n...\n%YAML 1.1\n---\nb: 2\n", [{"a": 1}, {"b": 2}]),
    "nothing": ("", []),
    "json": ('{"a": [1, 1.5, "\\ud83d\\ude00"]}', [{"a": [1, 1.5, "😀"]}]),
    "json documents": ('{"a": 1}\n---\n{"b": 2}\n', [{"a": 1}, {"b": 2}]),
    "flow style that is not json": ("{a: yes, b: [x, ~]}", [{"a": True, "b": ["x", None]}]),
    "byte order mark": (b"\xef\xbb\xbfa: 1", [{"a": 1}]),
    "utf-16": ("a: ü".encode("utf-16"), [{"a": "ü"}]),
    "dashes inside a block text": ("a: |\n  ---\n  x\nb: 1\n", [{"a": "---\nx\n", "b": 1}]),
    "merge key": ("x: &x {a: 1, b: 2}\nw:\n  <<: *x\n  b: 3\n", [{"x": {"a": 1, "b": 2}, "w": {"a": 1, "b": 3}}]),
    "merge of a list: earlier ones win": (
        "- &a {k: 1}\n- &b {k: 2, l: 3}\n- {<<: [*a, *b]}\n",
        [[{"k": 1}, {"k": 2, "l": 3}, {"k": 1, "l": 3}]],
    ),
    "quoted merge key is data": ('"<<": 1\n', [{"<<": 1}]),
    "keys become text": ("1: a\nyes: b\n1.5: c\n0x10: d\n", [{"1": "a", "true": "b", "1.5": "c", "16": "d"}]),
    "tags": (
        "a: !!str 1\nb: !!int '3'\nc: !!binary aGk=\nd: !mine x\ne: !!float 1\n",
        [{"a": "1", "b": 3, "c": "hi", "d": "x", "e": 1}],
    ),
    "block texts": ("a: |-\n  x\n   y\nb: >\n  one\n  two\n", [{"a": "x\n y", "b": "one two\n"}]),
}


@pytest.mark.parametrize("name", STREAMS)
def test_stream_gives_its_documents(name: str) -> None:
    """A stream is split and typed as sigs.k8s.io/yaml does."""
    text, expected = STREAMS[name]
    assert expected == values(text)


PROBLEMS = {
    "duplicate key": ("a: 1\nb: 2\na: 3", "f:3:1: key `a` is already set on line 1"),
    "duplicate key on one line": ("{b: 1, c: 2, b: 3}", "f:1:14: key `b` is already set on line 1"),
    "duplicate key in json": ('{"a": 1,\n "a": 2}', "f:2:2: key `a` is already set on line 1"),
    "open quote": ("a: 1\nb: 'x", "f:2:4: the quote that opens here is never closed"),
    "open bracket": ("a: [1", "f:1:4: the `[` that opens here is not closed (expected `,` or `]`)"),
    "tab": ("a:\n\t- b", "f:2:1: no value can start with this character (tabs cannot indent; text needs quotes)"),
    "colon": ("a: b: c", "f:1:5: `:` is not allowed here (missing quotes or wrong indentation?)"),
    "unknown anchor": ("a: *x", "f:1:4: unknown anchor `x`"),
    "anchor in itself": ("a: &x [*x]", "f:1:8: anchor `x` contains itself"),
    "nan": ("a: .nan", "f:1:4: `.nan` has no JSON value"),
    "infinity": ("a:\n- -.inf", "f:2:3: `-.inf` has no JSON value"),
    "null key": ("~: 1", "f:1:1: a mapping key cannot be null"),
    "complex key": ("? [a]\n: b", "f:1:3: a mapping key must be a scalar"),
    "nul": ("a: \x00", "f:1:4: character U+0000 is not allowed in YAML"),
    "bad utf-8": (b"a: 1\nb: \xff", "f:2:4: the source is not valid UTF-8"),
    "lone surrogate": ("a: \ud800", "f:1:4: character U+D800 is not allowed in YAML"),
    "escaped surrogate": ('a: "\\ud800"', "f:1:7: the escape sequence is not a Unicode character"),
    "bad base64": ("a: !!binary '*'", "f:1:4: `!!binary` value is not valid base64"),
    "tag that does not fit": ("a: !!int x", "f:1:4: `x` is not a value of tag `!!int`"),
    "later document": ("a: 1\n---\nb: 'x", "f:3:4: the quote that opens here is never closed"),
    "merge of a scalar": ("a: {<<: 1}", "f:1:5: `<<` needs a mapping or a list of mappings"),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_problem_is_one_error_with_its_place(name: str) -> None:
    """Everything that is not right is one DocumentError: file, line, column, reason."""
    text, expected = PROBLEMS[name]
    with pytest.raises(DocumentError) as caught:
        load_documents(text, file="f")  # type: ignore[arg-type]
    assert expected == str(caught.value)


def test_the_last_duplicate_wins_with_the_option() -> None:
    """`duplicate_keys="last"` reads as Go's lenient decoder."""
    assert [{"a": 3}] == values("a: 1\na: 3", duplicate_keys="last")
    assert [{"a": 3}] == values('{"a": 1, "a": 3}', duplicate_keys="last")


def test_json_with_odd_spacing_has_no_false_duplicates() -> None:
    """Blanks before a colon and colons inside strings are not duplicates."""
    assert [{"a": 'x":y', 'q"': {"b": 1}}] == values('{"a" : "x\\":y", "q\\u0022": {"b":1}}')


def test_locations_of_nodes_and_keys() -> None:
    """A path gives line and column of the value or its key, and of the nearest ancestor when it does not exist."""
    first, second = load_documents("a: 1\n---\n# note\nspec:\n  rules:\n  - name: x\n    on: {k: v}\n", file="p.yaml")
    assert "p.yaml:1:4" == str(first.location(("a",)))
    assert (4, 1) == (second.line, second.index)
    assert "p.yaml:6:11" == str(second.location(("spec", "rules", 0, "name")))
    assert "p.yaml:6:5" == str(second.location(("spec", "rules", 0, "name"), key=True))
    assert "p.yaml:7:13" == str(second.location(("spec", "rules", 0, "true", "k")))
    assert "p.yaml:6:5" == str(second.location(("spec", "rules", 0, "missing", "deeper")))
    assert "p.yaml:4:1" == str(second.location())


def test_locations_behind_aliases_and_merges() -> None:
    """A node behind an alias is where it is written; its key where the alias is used."""
    (document,) = load_documents("x: &x\n  a: 1\nw: *x\nz:\n  <<: *x\n", file="f")
    assert "f:2:6" == str(document.location(("w", "a")))
    assert "f:3:1" == str(document.location(("w",), key=True))
    assert "f:2:6" == str(document.location(("z", "a")))


def test_locations_in_json() -> None:
    """JSON documents have places as well."""
    (document,) = load_documents('\n{"a":\n [1, {"b": 2}]}', file="f")
    assert "f:3:12" == str(document.location(("a", 1, "b")))
    assert 2 == document.line


def test_document_without_source_has_its_line() -> None:
    """A document made by hand points at its first line."""
    assert "x:7:1" == str(Document({}, "x", 0, 7).location(("a",)))


def test_lists_expand_with_positions() -> None:
    """Items of `List` and `*List` become documents that know where they are, nested lists included."""
    text = "kind: List\nitems:\n- kind: Pod\n- kind: PodList\n  items:\n  - kind: Job\n    a: 1\n- 5\n"
    items = expand_lists(load_documents(text, file="f"))
    assert [{"kind": "Pod"}, {"kind": "Job", "a": 1}, 5] == [item.value for item in items]
    assert ["f:3:3", "f:6:5", "f:8:3"] == [str(item.location()) for item in items]
    assert "f:7:8" == str(items[1].location(("a",)))
    plain = load_documents("kind: AllowList\nspec: 1\n")
    assert plain == expand_lists(plain)


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ("- ", ""), ('{"a":', "}")])
def test_a_document_has_at_most_10000_levels(opening: str, closing: str) -> None:
    """10,000 levels are read, one more is an error, and neither is a crash."""
    inner = "" if opening == "[" else "1"
    assert 1 == len(load_documents(opening * 10_000 + inner + closing * 10_000))
    with pytest.raises(DocumentError, match=r"deep|nest"):
        load_documents(opening * 10_001 + inner + closing * 10_001)


def test_alias_bomb_is_refused_at_once() -> None:
    """Nine levels of nine aliases each end in an error before they are expanded."""
    lines = ["a: &a [x,x,x,x,x,x,x,x,x]"]
    lines += [f"{b}: &{b} [{','.join(['*' + a] * 9)}]" for a, b in zip("abcdefgh", "bcdefghi", strict=True)]
    started = time.process_time()
    with pytest.raises(DocumentError, match="aliases expand to more than"):
        load_documents("\n".join(lines))
    assert time.process_time() - started < 1


def test_alias_expansion_below_the_limit_is_read() -> None:
    """Aliases may produce up to ten times the document."""
    text = "a: &a " + "x" * 100 + "\nb: [" + ", ".join(["*a"] * 10) + "]\n"
    assert 10 == len(load_documents(text)[0].value["b"])


def test_brackets_in_yaml_are_nested_a_few_hundred_levels_at_most() -> None:
    """libyaml looks at every open bracket for each node: half a megabyte took it 13 seconds."""
    assert 1 == len(load_documents("[a, " * 500 + "b" + "]" * 500))
    assert 1 == len(load_documents("- " * 9_000 + "a"))
    with pytest.raises(DocumentError, match="nested deeper than 500 levels of brackets"):
        load_documents("[a, " * 501 + "b" + "]" * 501)
    with pytest.raises(DocumentError, match=r"f:1:2001: .*deeper than 500"):
        load_documents("[a, " * 10_000 + "b, " * 100_000, file="f")


def test_items_of_a_list_share_what_their_text_was_split_into() -> None:
    """A text is searched and split once, and not once for each of its items."""
    first, last = expand_lists(load_documents("kind: List\nitems:\n- kind: A\n- kind: B # word\n"))
    assert first.own_lines[1] is last.own_lines[1]
    assert first.shares_text(last)
    assert (True, False) == (first.mentions("word"), first.mentions("other"))
    assert ({3: ()}, {4: ()}) == tuple(dict([*each.field_lines().items()][:1]) for each in (first, last))
