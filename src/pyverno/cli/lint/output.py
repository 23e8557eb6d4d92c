"""The output of `pyverno lint`: findings with their lines, or in a format for machines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from pyverno.cli.terminal import Stream, terminal_of
from pyverno.compiler.lints.lint import Diagnostic, Severity
from pyverno.compiler.lints.registry import LINTS, find_lint
from pyverno.engine.result import ResourceRef
from pyverno.errors import PyvernoError
from pyverno.kube.json import JSONObject, encode_indent
from pyverno.kube.yaml.writer import dump_yaml
from pyverno.report.finding import Finding
from pyverno.report.formats.registry import FORMATTERS
from pyverno.report.problem import Problem, problems_of
from pyverno.sinks.characters import block, one_line, visible
from pyverno.sinks.runners import without_commands

__all__ = ["lint_findings", "print_diagnostics", "print_explanation", "print_list"]

_WIDEST = 160


def print_diagnostics(
    found: Sequence[Diagnostic],
    errors: Sequence[PyvernoError],
    stream: Stream,
    *,
    style: str,
    quiet: bool,
    documents: int,
    fixed: int,
) -> None:
    """Print findings in a format; text shows the line of each, and ends with a summary.

    `errors` are inputs that could not be read: formats for machines have them, too.
    """
    problems = problems_of(errors)
    if style == "text":
        stream.write("".join(_text_lines(found, quiet=quiet)))
        if not quiet:
            stream.write(_summary(found, documents, fixed))
    elif style in ("json", "yaml"):
        listing = _listing(found, problems, documents, fixed)
        stream.write(encode_indent(listing, escape_html=False) + "\n" if style == "json" else dump_yaml(listing))
    else:
        terminal_of(stream, style).write(FORMATTERS[style](lint_findings(found), problems))


def lint_findings(found: Sequence[Diagnostic], *, status: str = "") -> Iterator[Finding]:
    """Yield diagnostics as findings about policies, for the formats of reports; `status` is that of all of them."""
    for each in found:
        raw = each.document.value if each.document is not None else {}
        yield Finding(
            policy=each.code,
            rule="",
            resource=ResourceRef.of(raw),
            status=status or ("fail" if each.severity is Severity.ERROR else "warn"),
            message=each.message,
            category="lint",
            title=each.name,
            location=each.location,
        )


def _text_lines(found: Sequence[Diagnostic], *, quiet: bool) -> Iterator[str]:
    for each in found:
        yield one_line(f"{each.location}: {each.code} ") + block(each.message, "    ") + "\n"
        if not quiet and "\n" not in each.message:
            yield from _source_lines(each)


def _source_lines(each: Diagnostic) -> Iterator[str]:
    """Yield the line of a finding and a mark below its column; the ends of long lines are left out."""
    column = each.location.column
    line = each.document.line_text(each.location.line) if each.document is not None else None
    if line is not None and len(line) <= _WIDEST:
        line = line.rstrip("\r")
        yield f"    {without_commands(visible(line))}\n"
        blank = "".join("\t" if character == "\t" else " " for character in line[: max(column - 1, 0)])
        yield f"    {blank}^\n"


def _summary(found: Sequence[Diagnostic], documents: int, fixed: int) -> str:
    what = f"{documents} document{'s' * (documents != 1)}"
    done = f"Fixed {fixed}. " if fixed else ""
    if not found:
        return f"{done}No problems in {what}.\n"
    fixable = sum(each.edit is not None for each in found)
    hint = f"; {fixable} can be corrected with --fix" if fixable else ""
    return f"{done}Found {len(found)} problem{'s' * (len(found) != 1)} in {what}{hint}.\n"


def _listing(found: Sequence[Diagnostic], problems: Sequence[Problem], documents: int, fixed: int) -> JSONObject:
    counts = Counter(str(each.severity) for each in found)
    summary = {"documents": documents, "error": counts["error"], "warning": counts["warning"], "fixed": fixed}
    return {
        "findings": [dict(each.to_json()) for each in found],
        "errors": [each.to_json() for each in problems],
        "summary": summary,
    }


def print_list(stream: Stream) -> None:
    """Print the code, severity, name and summary of every lint."""
    for lint in LINTS:
        mark = "fixable" if lint.is_fixable else ""
        summary = lint.documentation.partition("\n")[0].rstrip(".")
        stream.write(f"{lint.code}  {lint.severity:<7}  {mark:<7}  {lint.name:<20}  {summary}\n")


def print_explanation(code: str, stream: Stream) -> None:
    """Print the documentation of a lint."""
    lint = find_lint(code)
    if lint is not None:
        fix = "\n\nSome findings can be corrected with --fix." if lint.is_fixable else ""
        stream.write(f"{lint.code} {lint.name} ({lint.severity})\n\n{lint.documentation}{fix}\n")
