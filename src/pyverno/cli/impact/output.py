"""The output of `pyverno impact`: changes in groups, with examples, as a table, Markdown, HTML or JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from pyverno.cli.impact.changes import Category, Change
from pyverno.kube.json import encode_indent
from pyverno.sinks.characters import one_line
from pyverno.sinks.markdown import markdown_cell
from pyverno.sinks.markup import html_text
from pyverno.value import dataclass

__all__ = ["Counts", "render"]

_HEADS = ("change", "policy", "namespace", "owner", "objects", "examples")


@dataclass(frozen=True, slots=True)
class Counts:
    """Numbers of judged requests, of recorded events without one, and of redacted ones.

    `matched` counts the requests to which a rule of either side applies.
    """

    judged: int
    skipped: int = 0
    redacted: int = 0
    matched: int = 0


@dataclass(frozen=True, slots=True)
class _Group:
    """Changes of one category, policy, namespace and owner."""

    category: Category
    policy: str
    namespace: str
    owner: str
    changes: tuple[Change, ...]


def render(changes: Sequence[Change], numbers: Counts, *, form: str, examples: int) -> str:
    """Return the changes in a format, with the numbers of requests that were compared or left out."""
    groups = _groups(changes)
    if form == "json":
        summary = {
            "judged": numbers.judged,
            "matched": numbers.matched,
            "skipped": numbers.skipped,
            "redacted": numbers.redacted,
            **{str(key): count for key, count in _counts(changes).items()},
        }
        listing = {"summary": summary, "changes": [each.to_json() for each in changes]}
        return encode_indent(listing, escape_html=False) + "\n"
    rows = [_row(group, examples) for group in groups]
    summary_text = _summary(changes, numbers)
    match form:
        case "markdown":
            return _markdown(rows, summary_text)
        case "html":
            return _html(rows, summary_text)
    return _table(rows) + summary_text + "\n"


def _groups(changes: Sequence[Change]) -> list[_Group]:
    found: dict[tuple[Category, str, str, str], list[Change]] = {}
    for each in changes:
        found.setdefault((each.category, each.policy, each.resource.namespace, each.owner), []).append(each)
    order = {category: number for number, category in enumerate(Category)}
    keys = sorted(found, key=lambda key: (order[key[0]], -len(found[key]), key[1:]))
    return [_Group(*key, tuple(found[key])) for key in keys]


def _counts(changes: Sequence[Change]) -> Counter[Category]:
    return Counter(category for category, _ in {(each.category, each.resource) for each in changes})


def _row(group: _Group, examples: int) -> tuple[str, ...]:
    shown = [
        f"{each.resource.kind}/{each.resource.name}" + f" ({each.detail})" * bool(each.detail) for each in group.changes
    ]
    more = [f"and {len(shown) - examples} more"] if len(shown) > examples > 0 else []
    texts = "; ".join([" ".join(text.split()) for text in shown[:examples]] + more)
    names = (one_line(each) for each in (group.policy, group.namespace, group.owner))
    return str(group.category), *names, str(len(group.changes)), texts


def _summary(changes: Sequence[Change], numbers: Counts) -> str:
    counts = _counts(changes)
    words = ", ".join(f"{counts[category]} {category}" for category in Category if counts[category])
    left = f"; {numbers.skipped} recorded events without an object are left out" if numbers.skipped else ""
    hidden = f"; {numbers.redacted} were judged without their confidential values" if numbers.redacted else ""
    none = "" if numbers.matched else "; no rule of either side applies to any of them"
    return f"{numbers.judged} judged: {words or 'no change'}{none}{left}{hidden}"


def _table(rows: Sequence[tuple[str, ...]]) -> str:
    if not rows:
        return ""
    lines = [tuple(head.upper() for head in _HEADS), *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(_HEADS) - 1)]
    return "".join(
        "  ".join((*(text.ljust(width) for text, width in zip(line, widths, strict=False)), line[-1])).rstrip() + "\n"
        for line in lines
    )


def _markdown(rows: Sequence[tuple[str, ...]], summary: str) -> str:
    if not rows:
        return f"{summary}\n"
    lines = [_HEADS, tuple("---" for _ in _HEADS), *(tuple(markdown_cell(text) for text in row) for row in rows)]
    return f"**{summary}**\n\n" + "".join("| " + " | ".join(line) + " |\n" for line in lines)


def _html(rows: Sequence[tuple[str, ...]], summary: str) -> str:
    cells = [f"<tr>{''.join(f'<td>{html_text(text)}</td>' for text in row)}</tr>" for row in rows]
    heads = "".join(f"<th>{head}</th>" for head in _HEADS)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>Impact of policies</title></head><body>\n'
        f"<p>{html_text(summary)}</p>\n<table>\n<tr>{heads}</tr>\n" + "\n".join(cells) + "\n</table>\n</body></html>\n"
    )
