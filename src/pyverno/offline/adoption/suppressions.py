"""Suppressions in manifests: comments and an annotation that accept failures, with a reason and an expiry.

A comment `# pyverno: ignore[policy/rule] reason, until 2027-01-31` above the first field holds for the whole object; at
or above a field or list element it holds for everything in it. The annotation `pyverno.io/ignore` holds for the object;
its value is the same text from the bracket on, one suppression a line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date

from pyverno.engine.rule import RuleInfo
from pyverno.errors import Location
from pyverno.kube.json import JSON
from pyverno.kube.yaml.documents import Document
from pyverno.kube.yaml.fieldpath import Path
from pyverno.lazyregex import regex
from pyverno.value import dataclass

__all__ = ["ANNOTATION", "Mistake", "Suppression", "SuppressionReader"]

ANNOTATION = "pyverno.io/ignore"

_COMMENT = regex(r"(?:^|\s)#\s*pyverno:\s*ignore\b(.*)$")
_WRITTEN = regex(r"^\s*\[([^\]]*)\]\s*(.*?)\s*$")
_UNTIL = regex(r"(?:^|[,;]?\s+)until\s+(\S+)$")
_LINT_CODE = regex(r"^[A-Z]+[0-9]*$")
_POLICY_GROUPS = ("kyverno.io", "policies.kyverno.io")


@dataclass(frozen=True, slots=True)
class Suppression:
    """Accepts failures of rules (`policy` or `policy/rule`) at a field of an object and below it.

    `until` is the last day on which it holds, None for ever.
    """

    names: tuple[str, ...]
    reason: str
    until: date | None
    path: Path
    location: Location

    def name_for(self, rule: RuleInfo, path: Path) -> str:
        """Return the name by which a failure of a rule at a path is accepted, "" where it is not."""
        if path[: len(self.path)] != self.path:
            return ""
        policy = rule.policy
        policies = {policy.name, policy.key}
        known = policies | {f"{each}/{name}" for each in policies for name in (rule.name, rule.origin) if name}
        return next((name for name in self.names if name in known), "")


@dataclass(frozen=True, slots=True)
class Mistake:
    """A suppression that cannot be read, and therefore suppresses nothing."""

    message: str
    path: Path


@dataclass(frozen=True, slots=True)
class _Comment:
    """The content of a comment, its line, and the line of the field that it belongs to."""

    text: str
    line: int
    target: int
    is_first: bool
    """Whether it is above the first field, and holds for the whole object."""


class SuppressionReader:
    """Reads the suppressions of manifests; the comments of a list are read once for all of its items."""

    __slots__ = ("_comments", "_last")

    def __init__(self) -> None:
        self._last: Document | None = None
        self._comments: Mapping[int, Sequence[_Comment]] = {}

    def read(self, document: Document) -> tuple[list[Suppression], list[Mistake]]:
        """Return the suppressions of a manifest, and those that cannot be read."""
        found: list[Suppression] = []
        mistakes: list[Mistake] = []
        for text, path, location in (*self._commented(document), *_annotated(document)):
            parsed = _parse(text, path, location, is_policy=_is_policy(document.value))
            if isinstance(parsed, Suppression):
                found.append(parsed)
            elif parsed is not None:
                mistakes.append(parsed)
        return found, mistakes

    def _commented(self, document: Document) -> Iterator[tuple[str, Path, Location]]:
        """Yield the texts of comments with the field that each belongs to."""
        if not document.mentions("pyverno:"):
            return
        if not document.shares_text(self._last):
            self._last, self._comments = document, _comments(document)
        if not self._comments:
            return
        paths = document.field_lines()
        own = [each for line in paths for each in self._comments.get(line, ())]
        for each in sorted(own, key=lambda comment: comment.line):
            path = () if each.is_first else paths[each.target]
            yield each.text, path, Location(document.file, each.line if document.line else 0, 1)


def _comments(document: Document) -> Mapping[int, Sequence[_Comment]]:
    """Return the comments of a document by the line of the field that they belong to."""
    first, lines = document.own_lines
    if next((line for line in lines if line.strip()), "").lstrip()[:1] in ("{", "["):
        return {}  # JSON has no comments
    head = next((at for at, line in enumerate(lines) if _is_content(line)), len(lines))
    found: dict[int, list[_Comment]] = {}
    below = -1
    for at in range(len(lines) - 1, -1, -1):
        line = lines[at]
        comment = _COMMENT.search(line) if "pyverno:" in line else None
        if comment is not None:
            target = first + (below if line.lstrip().startswith("#") else at)
            found.setdefault(target, []).append(_Comment(comment[1], first + at, target, at < head))
        if _is_content(line):
            below = at
    return found


def _is_content(line: str) -> bool:
    text = line.strip()
    return bool(text) and not text.startswith("#") and text != "---"


def _annotated(document: Document) -> Iterator[tuple[str, Path, Location]]:
    value = document.value
    metadata = value.get("metadata") if isinstance(value, dict) else None
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    text = annotations.get(ANNOTATION) if isinstance(annotations, dict) else None
    if isinstance(text, str):
        location = document.location(("metadata", "annotations", ANNOTATION))
        yield from ((line, (), location) for line in text.splitlines() if line.strip())


def _is_policy(value: JSON) -> bool:
    group = str(value.get("apiVersion")).partition("/")[0] if isinstance(value, dict) else ""
    return group in _POLICY_GROUPS


def _parse(text: str, path: Path, location: Location, *, is_policy: bool) -> Suppression | Mistake | None:
    """Read what follows `ignore`; None for a comment that `pyverno lint` reads."""
    written = _WRITTEN.match(text)
    names = _split(written[1]) if written is not None else ()
    if is_policy and all(_LINT_CODE.match(name) for name in names):
        return None
    if written is None or not names:
        return Mistake(f"the suppression at {location} names no rule: write `ignore[policy/rule] reason`", path)
    reason, until = written[2], None
    dated = _UNTIL.search(reason)
    if dated is not None:
        try:
            until = date.fromisoformat(dated[1])
        except ValueError:
            return Mistake(f"the suppression at {location} ends on `{dated[1]}`, which is no date as 2027-01-31", path)
        reason = reason[: dated.start()]
    return Suppression(names, reason.strip(), until, path, location)


def _split(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())
