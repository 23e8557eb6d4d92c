"""Texts of documents take other values, and keep what they can."""

from __future__ import annotations

import re
from random import Random
from typing import Any

import pytest

from pyverno.kube.yaml.documents import load_documents
from pyverno.kube.yaml.rewrite import rewrite

TEXT = """\
# about all
a: 'one'   # first
# about b
b:
  # inside b
  c: 2  # two

  d: |
    text # no comment
e:
- f: 1
  g: [1, 2]  # flow
# the end
"""


def value() -> Any:
    """Return the value of the text."""
    return load_documents(TEXT)[0].value


def changed(new: Any, old: Any, text: str = TEXT) -> str | None:
    """Return the text with another value."""
    return rewrite(text, [old], [new])


def test_what_stays_keeps_comments_and_quotes() -> None:
    """Changing one number keeps all other text."""
    old = value()
    found = changed({**old, "b": {**old["b"], "c": 3}}, old)
    assert TEXT.replace("c: 2  # two", "c: 3") == found


def test_an_entry_goes_with_its_lines() -> None:
    """The comment above it stays."""
    old = value()
    assert TEXT.replace("a: 'one'   # first\n", "") == changed({key: old[key] for key in ("b", "e")}, old)


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        (("new", "a", "b", "e"), "# about all\nnew:\n  x: 1\na: 'one'   # first\n"),
        (("a", "new", "b", "e"), "a: 'one'   # first\nnew:\n  x: 1\n# about b\n"),
        (("a", "b", "e", "new"), "  g: [1, 2]  # flow\nnew:\n  x: 1\n# the end\n"),
    ],
)
def test_an_entry_comes_where_the_new_value_has_it(order: tuple[str, ...], expected: str) -> None:
    """New entries may come first, between others, or last."""
    old = value()
    new = {**old, "new": {"x": 1}}
    found = changed({key: new[key] for key in order}, old)
    assert found is not None
    assert expected in found


def test_what_moves_takes_its_text_along() -> None:
    """Comments inside, quotes, blocks, at another indentation."""
    old = value()
    found = changed({"a": old["a"], "e": old["e"], "under": {"all": [old["b"]]}}, old)
    assert found is not None
    assert "under:\n  all:\n  - c: 2  # two\n\n    d: |\n      text # no comment\n" in found


def test_a_map_of_one_line_moves_as_it_is() -> None:
    """With its quotes and spaces."""
    old = load_documents("match:\n  resources: {kinds: [ 'Pod' ]}\n")[0].value
    assert isinstance(old, dict)
    new = {"match": {"any": [{"resources": old["match"]["resources"]}]}}
    assert "match:\n  any:\n  - resources: {kinds: [ 'Pod' ]}\n" == changed(
        new, old, "match:\n  resources: {kinds: [ 'Pod' ]}\n"
    )


def test_places_count_characters() -> None:
    """Letters of several bytes before a change move nothing."""
    old = load_documents("a: 'é😀'  # ü\nb: 1 # ß\n")[0].value
    assert isinstance(old, dict)
    assert "a: 'é😀'  # ü\nb: 2\n" == changed({**old, "b": 2}, old, "a: 'é😀'  # ü\nb: 1 # ß\n")


def test_documents_of_a_stream_change_one_by_one() -> None:
    """Markers and comments between them stay."""
    text = "# one\n---\na: 1\n---\n# two\nb: 2 # b\n"
    old = [each.value for each in load_documents(text)]
    assert "# one\n---\na: 5\n---\n# two\nb: 2 # b\n" == rewrite(text, old, [{"a": 5}, old[1]])


@pytest.mark.parametrize(
    "text",
    ["a: &x {b: 1}\nc: *x\n", "a: 1\r\nb: 2\r\n", "{a: 1, b: 2}\n", "a: 1\nb: {c: 1, d: 2}\r\n"],
)
def test_other_forms_are_left_to_the_caller(text: str) -> None:
    """Other forms yield None, never a text with another meaning."""
    old = load_documents(text)[0].value
    assert isinstance(old, dict)
    assert rewrite(text, [old], [{**old, "new": 1}]) is None


def _random_value(random: Random, depth: int) -> Any:
    kind = random.choice(("map", "list", "leaf")) if depth else "leaf"
    if kind == "map":
        return {f"k{number}": _random_value(random, depth - 1) for number in range(random.randint(0, 4))}
    if kind == "list":
        return [_random_value(random, depth - 1) for _ in range(random.randint(0, 3))]
    return random.choice((1, True, None, "x", "# no", "a: b", "two\nlines\n", "", "- x"))


def _write(value: Any, random: Random, column: int = 0) -> list[str]:
    """Write a value as a person might: comments above and behind, several styles."""
    from pyverno.kube.yaml.writer import dump_yaml

    lines = dump_yaml(value, sort_keys=False).splitlines() if value or not isinstance(value, dict) else ["{}"]
    found = []
    is_block = False
    for line in lines:
        is_block = is_block and (line.startswith(" ") or not line)
        if not is_block and line.strip() and random.random() < 0.3:
            found.append(f"{' ' * (len(line) - len(line.lstrip(' ')))}# above {random.randint(0, 9)}")
        is_block = is_block or line.rstrip().endswith(("|", "|-"))
        plain = not is_block and not line.rstrip().endswith(("|", "|-"))
        found.append(f"{line}  # behind" if plain and random.random() < 0.3 else line)
    return found


def _mutate(value: Any, random: Random) -> Any:
    match value:
        case dict() if value:
            key = random.choice([*value])
            action = random.choice(("cut", "change", "wrap", "add", "deeper", "deeper"))
            if action == "cut":
                return {name: item for name, item in value.items() if name != key}
            if action == "add":
                items = [*value.items()]
                items.insert(random.randint(0, len(items)), ("new", _random_value(random, 2)))
                return dict(items)
            inner = {"wrap": lambda item: {"any": [item]}, "change": lambda _: 7}.get(
                action, lambda item: _mutate(item, random)
            )
            return {name: inner(item) if name == key else item for name, item in value.items()}
        case list() if value:
            index = random.randrange(len(value))
            return [_mutate(item, random) if place == index else item for place, item in enumerate(value)]
    return "changed"


def test_a_rewritten_text_reads_as_the_new_value_and_keeps_the_rest() -> None:
    """Over many texts and changes; comments that are apart from what changed are all there."""
    done = 0
    for seed in range(300):
        random = Random(seed)  # noqa: S311 - reproducible, not secret
        value = {f"k{number}": _random_value(random, 3) for number in range(3)}
        text = "\n".join(_write(value, random)) + "\n"
        old = load_documents(text)[0].value
        assert value == old, text
        new = _mutate(old, random)
        found = rewrite(text, [old], [new])
        if found is None:
            continue
        done += 1
        assert [new] == [each.value for each in load_documents(found)] or not new, text
        untouched = [name for name in value if isinstance(new, dict) and new.get(name, 0) is old[name]]
        for name in untouched:
            (own,) = load_documents("\n".join([*_entry_lines(text, name)]))
            assert own.value == {name: old[name]}
            assert _entry_lines(text, name) == _entry_lines(found, name), (text, found)
    assert done > 200


def _entry_lines(text: str, name: str) -> list[str]:
    """Return the lines of an entry of the outermost map, without comments behind its last one."""
    lines = text.split("\n")
    start = next(index for index, line in enumerate(lines) if line.startswith(f"{name}:"))
    end = start + 1
    while end < len(lines) and not re.match(r"(k\d+|new):", lines[end]):
        end += 1
    found = lines[start:end]
    while found[-1].startswith("#") or not found[-1].strip():
        found.pop()
    return found
