"""The work of `pyverno report`: read, filter, compare, write."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from pyverno.cli.errors import Exit, report_error, report_note
from pyverno.cli.report.replacements import Replacement, compare_replacement, read_replacements
from pyverno.cli.report.sources import Source, read_cluster, read_files
from pyverno.cli.style import Style, style_for
from pyverno.cli.terminal import STDOUT
from pyverno.errors import UsageError
from pyverno.kube.wildcard import match
from pyverno.report.collected import SEVERITIES, STATUSES, Collected
from pyverno.report.csvtext import csv_lines
from pyverno.report.formats.listing import json_document, yaml_document
from pyverno.report.formats.registry import WRITERS
from pyverno.report.html import html_page
from pyverno.report.markdown import markdown_table
from pyverno.report.overview import Overview, overview_of
from pyverno.report.problem import Problem
from pyverno.report.table import draw_table
from pyverno.sinks.markdown import markdown_text
from pyverno.sinks.terminal import terminal_text
from pyverno.value import dataclass

# trust rows: named-file

__all__ = ["ReportOptions", "run_report"]

_FOUND: Final = 1
_HEADERS: Final = ("STATUS", "SEVERITY", "POLICY", "RULE", "NAMESPACE", "RESOURCE", "MESSAGE")
_MAX_MESSAGE: Final = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOptions:
    """All flags of the command."""

    files: tuple[str, ...] = ()
    kubeconfig: str = ""
    context: str = ""
    namespaces: tuple[str, ...] = ()
    policies: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    severities: tuple[str, ...] = ()
    statuses: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    grouping: str = "policy"
    since: tuple[str, ...] = ()
    replacements: tuple[str, ...] = ()
    fail_on: tuple[str, ...] = ()
    form: str = "table"
    output: str = ""
    summary_only: bool = False
    remove_color: bool = False


def run_report(options: ReportOptions) -> None:
    """Print the report, or write it to a file; raises Exit(1) when results have a status of `--fail-on`."""
    _check(options)
    replacements = read_replacements(options.replacements)
    source = _read(options)
    results = _filter(source.results, options)
    if replacements:
        _compare(replacements, results, source)
        return
    baseline = _filter(read_files(options.since).results, options) if options.since else None
    overview = overview_of(results, options.grouping, baseline, source.problems)
    pieces = _WRITERS[options.form](overview, options, source)
    if options.output:
        _write(options.output, map(terminal_text, pieces) if options.form == "table" else pieces)
    elif source.results or not source.problems or options.form != "table":
        STDOUT.of(options.form).writelines(pieces)
    for problem in source.problems:
        report_error(problem)
    if source.results and not results:
        report_note(f"the filters select none of {len(source.results)} results")
    if source.problems or any(overview.counts[status] for status in options.fail_on):
        raise Exit(_FOUND)


def _compare(replacements: Sequence[Replacement], results: Sequence[Collected], source: Source) -> None:
    """Print which objects only a policy or only its replacement has a problem with; raises Exit(1) if there are any."""
    found = [compare_replacement(each, results) for each in replacements]
    STDOUT.write("\n".join(text for text, _ in found))
    for problem in source.problems:
        report_error(problem)
    if source.problems or not all(is_same for _, is_same in found):
        raise Exit(_FOUND)


def _check(options: ReportOptions) -> None:
    """Raise UsageError for an unknown status: it would select nothing, or never fail."""
    flags = (
        ("--status", options.statuses, STATUSES),
        ("--fail-on", options.fail_on, STATUSES),
        ("--severity", options.severities, SEVERITIES[:-1]),
    )
    for name, given, known in flags:
        wrong = next((each for each in given if each not in known), None)
        if wrong is not None:
            raise UsageError(f'invalid argument "{wrong}" for "{name}" flag: expected {", ".join(known)}')


def _read(options: ReportOptions) -> Source:
    if options.files:
        if options.kubeconfig or options.context:
            raise UsageError("give either files or --kubeconfig and --context, not both")
        return read_files(options.files)
    return read_cluster(options.kubeconfig, options.context, options.namespaces)


def _filter(results: Iterable[Collected], options: ReportOptions) -> Sequence[Collected]:
    """Return the results that every given filter selects; names may have wildcards."""
    tests: list[Callable[[Collected], bool]] = []

    def add(patterns: Sequence[str], text: Callable[[Collected], str]) -> None:
        if patterns:
            tests.append(lambda each: any(match(pattern, text(each)) for pattern in patterns))

    add(options.policies, lambda each: each.finding.policy)
    add(options.kinds, lambda each: each.finding.resource.kind)
    add(options.severities, lambda each: each.finding.severity)
    add(options.statuses, lambda each: each.finding.status)
    add(options.sources, lambda each: each.source)
    add(options.namespaces, lambda each: each.finding.resource.namespace)
    return tuple(each for each in results if all(test(each) for test in tests))


def _write(path: str, pieces: Iterable[str]) -> None:
    try:
        with Path(path).open("wb") as file:
            file.writelines(piece.encode() for piece in pieces)
    except OSError as error:
        raise UsageError(f"cannot write `{path}`: {(error.strerror or str(error)).lower()}") from None


# ---------------------------------------------------------------------------------------------------------- writing


def _table(overview: Overview, options: ReportOptions, source: Source) -> Iterator[str]:
    style = style_for(STDOUT, remove_color=options.remove_color or bool(options.output))
    total = sum(overview.counts.values())
    parts = [f"{total} results in {source.name}: " + ", ".join(f"{overview.counts[each]} {each}" for each in STATUSES)]
    heads = (overview.grouping.upper(), "SEVERITY", *(each.upper() for each in STATUSES))
    rows = [(group.label, group.severity, *(str(group.counts[each]) for each in STATUSES)) for group in overview.groups]
    if rows:
        parts.append(draw_table(heads, rows, paint_header=style.header))
    if overview.has_baseline:
        parts.append(f"{len(overview.new)} new, {len(overview.resolved)} resolved since {', '.join(options.since)}")
    shown = overview.new if overview.has_baseline else [each for each in overview.results if each.finding.is_problem]
    if shown and not options.summary_only:
        rows = [_row(each) for each in shown]
        parts.append(draw_table(_HEADERS, rows, paint_header=style.header, paint_cell=_painter(style)))
    yield "\n\n".join(parts) + "\n"


def _painter(style: Style) -> Callable[[int, str], str]:
    """Return the function that colours the first column by its status."""

    def paint(column: int, text: str) -> str:
        if column or not text.strip():
            return text
        painted = style.result(text.strip().title())
        return text.replace(text.strip(), painted.replace(text.strip().title(), text.strip()))

    return paint


def _row(each: Collected) -> tuple[str, ...]:
    found, ref = each.finding, each.finding.resource
    message = found.message if len(found.message) <= _MAX_MESSAGE else f"{found.message[: _MAX_MESSAGE - 1]}…"
    resource = f"{ref.kind}/{ref.name}".strip("/")
    return (found.status, found.severity, found.policy, found.rule, ref.namespace, resource, message)


def _markdown(overview: Overview, options: ReportOptions, _source: Source) -> Iterator[str]:
    heads = (overview.grouping.title(), "Severity", *(each.title() for each in STATUSES))
    rows = [(group.label, group.severity, *(str(group.counts[each]) for each in STATUSES)) for group in overview.groups]
    parts = ["# Policy report\n", markdown_table(heads, rows)]
    parts += [f"> Not complete: {markdown_text(problem)}\n" for problem in overview.problems]
    if overview.has_baseline:
        parts.append(f"## New problems ({len(overview.new)})\n")
        parts.append(markdown_table(_HEADERS, [_row(each) for each in overview.new]))
        parts.append(f"{len(overview.resolved)} resolved.\n")
    problems = [each for each in overview.results if each.finding.is_problem]
    if not options.summary_only:
        parts += [f"## Problems ({len(problems)})\n", markdown_table(_HEADERS, [_row(each) for each in problems])]
    yield "\n".join(parts)


def _json(overview: Overview, _options: ReportOptions, _source: Source) -> Iterator[str]:
    yield from json_document(overview.fields())
    yield "\n"


def _yaml(overview: Overview, _options: ReportOptions, _source: Source) -> Iterator[str]:
    return yaml_document(overview.fields())


def _html(overview: Overview, _options: ReportOptions, source: Source) -> Iterator[str]:
    newest = max((each.seconds for each in overview.results), default=0)
    yield html_page(overview, made=f"From {source.name}{_since(newest)}.")


def _since(seconds: int) -> str:
    if not seconds:
        return ""
    from datetime import UTC, datetime

    return f", newest result of {datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"


def _csv(overview: Overview, _options: ReportOptions, _source: Source) -> Iterator[str]:
    return csv_lines(overview.results)


def _findings(name: str) -> Callable[[Overview, ReportOptions, Source], Iterator[str]]:
    return lambda overview, _options, _source: WRITERS[name](
        (each.finding for each in overview.results), [Problem(text) for text in overview.problems]
    )


_WRITERS: Final[Mapping[str, Callable[[Overview, ReportOptions, Source], Iterator[str]]]] = {
    "table": _table,
    "json": _json,
    "yaml": _yaml,
    "markdown": _markdown,
    "html": _html,
    "csv": _csv,
    "sarif": _findings("sarif"),
    "junit": _findings("junit"),
}
