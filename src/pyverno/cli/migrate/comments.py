"""Comments above a policy and above its rules, which the text of the conversion keeps."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from pyverno.value import dataclass, field

__all__ = ["Comments", "read_comments", "split_documents", "with_rule_comments"]

_SEPARATOR: Final = re.compile(r"^---[^\n]*\n?", re.MULTILINE)
_RULE: Final = re.compile(r"^\s*-\s+name:\s*[\"']?([^\"'#]+?)[\"']?\s*(?:#.*)?$")


@dataclass(frozen=True, slots=True)
class Comments:
    """The lines above a policy, and by the name of a rule those above it, without indentation."""

    head: tuple[str, ...] = ()
    rules: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def read_comments(text: str) -> tuple[Comments, ...]:
    """Return the comments of every document of a YAML stream.

    >>> found = read_comments("# why\\nkind: X\\nspec:\\n  rules:\\n  # because\\n  - name: a\\n")
    >>> found[0].head, dict(found[0].rules)
    (('# why',), {'a': ('# because',)})
    """
    return tuple(_read(part) for part in split_documents(text))


def split_documents(text: str) -> list[str]:
    """Return the texts of the documents of a YAML stream, without those that hold only comments."""
    return [part for part in _SEPARATOR.split(text) if _has_content(part)]


def _has_content(part: str) -> bool:
    return any(line.strip() and not line.lstrip().startswith("#") for line in part.splitlines())


def _read(part: str) -> Comments:
    head: list[str] = []
    rules: dict[str, tuple[str, ...]] = {}
    waiting: list[str] = []
    is_head = True
    for line in part.splitlines():
        stripped = line.strip()
        if stripped.startswith("#"):
            (head if is_head else waiting).append(stripped)
            continue
        if not stripped:
            continue
        is_head = False
        found = _RULE.match(line)
        if found is not None and waiting:
            rules.setdefault(found[1], tuple(waiting))
        waiting = []
    return Comments(tuple(head), rules)


def with_rule_comments(text: str, counts: Sequence[tuple[str, int]], comments: Comments) -> str:
    """Put the comments of rules above their validations; `counts` are the rules in order with how many they have.

    >>> comments = Comments(rules={"b": ("# because",)})
    >>> text = "spec:\\n  validations:\\n  - expression: x\\n  - expression: y\\n"
    >>> print(with_rule_comments(text, [("a", 1), ("b", 1)], comments), end="")
    spec:
      validations:
      - expression: x
      # because
      - expression: y
    """
    above = [comments.rules.get(rule, ()) if index == 0 else () for rule, count in counts for index in range(count)]
    lines: list[str] = []
    number, is_inside = 0, False
    for line in text.splitlines():
        if line.startswith("  ") and not line.startswith("   ") and not line.startswith("  -"):
            is_inside = line == "  validations:"
        if is_inside and line.startswith("  - ") and number < len(above):
            lines += [f"  {comment}" for comment in above[number]]
            number += 1
        lines.append(line)
    return "\n".join(lines) + "\n"
