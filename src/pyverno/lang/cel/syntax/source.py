"""The text of one expression, places in it, and the problems found there, printed as cel-go prints them."""

from __future__ import annotations

from typing import Final

from pyverno.errors import ExpressionSyntaxError, Location
from pyverno.value import dataclass, field

__all__ = ["CompileError", "Issue", "Source"]

MAX_CODE_POINTS: Final = 100_000
MAX_ISSUES_SHOWN: Final = 100
MAX_LINE_SHOWN: Final = 16_384
DESCRIPTION: Final = "<input>"


@dataclass(frozen=True, slots=True)
class Source:
    """One expression as written; `description` names it in messages.

    >>> Source("a +\\nb").place(4)
    (2, 0)
    """

    text: str
    description: str = DESCRIPTION

    def place(self, offset: int) -> tuple[int, int]:
        """Return (line counted from 1, column counted from 0) of a code point offset."""
        line_start = self.text.rfind("\n", 0, offset) + 1
        return self.text.count("\n", 0, offset) + 1, offset - line_start

    def line(self, number: int) -> str:
        """Return a line's text; lines count from 1."""
        lines = self.text.split("\n")
        return lines[number - 1] if 0 < number <= len(lines) else ""


@dataclass(frozen=True, slots=True, order=True)
class Issue:
    """One problem at a code point offset of the expression.

    For a name that is not declared, `unknown` is the name, and `known` are the names that could stand in its place.
    """

    offset: int
    message: str
    unknown: str = field(default="", compare=False, repr=False)
    known: tuple[str, ...] = field(default=(), compare=False, repr=False)

    def display(self, source: Source) -> str:
        """Print in cel-go's layout: place and text, the source line, and a caret below the column.

        A line of more than 16,384 bytes is left out.

        >>> print(Issue(1, "undefined field 'x'").display(Source("a.x")))
        ERROR: <input>:1:2: undefined field 'x'
         | a.x
         | .^
        """
        number, column = source.place(self.offset)
        head = f"ERROR: {source.description}:{number}:{column + 1}: {self.message}"
        text = source.line(number).replace("\t", " ")
        if len(text.encode("utf-8", "surrogatepass")) > MAX_LINE_SHOWN:
            return head
        # cel-go: common/error.go marks characters outside ASCII with full-width dots and carets
        dots = "".join("．" if ord(char) > 127 else "." for char in text[:column])
        wide = column < len(text) and ord(text[column]) > 127
        return f"{head}\n | {text}\n | {dots}{'＾' if wide else '^'}"


class CompileError(ExpressionSyntaxError):
    """An expression that does not parse or does not type-check; carries every problem found.

    `issues` are in cel-go's order (by place), `source` is the expression; the message is cel-go's whole report, which
    shows the first 100.
    """

    code = "cel-compile"

    def __init__(
        self, issues: tuple[Issue, ...], source: Source, *, location: Location | None = None, path: str = ""
    ) -> None:
        self.issues = tuple(sorted(issues, key=lambda issue: issue.offset))
        self.source = source
        lines = [issue.display(source) for issue in self.issues[:MAX_ISSUES_SHOWN]]
        if len(self.issues) > MAX_ISSUES_SHOWN:
            lines.append(f"{len(self.issues) - MAX_ISSUES_SHOWN} more errors were truncated")
        text = "\n".join(lines)
        super().__init__(text, offset=self.issues[0].offset if self.issues else 0, location=location, path=path)
