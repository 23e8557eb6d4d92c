"""Coverage and mutation score as text, JSON, Markdown and a self-contained HTML page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from pyverno.cli.style import Style
from pyverno.cli.test.coverage import PolicyCoverage, percent, to_json
from pyverno.cli.test.mutation import INVALID, KILLED, SURVIVED, MutantOutcome, mutation_json, score
from pyverno.errors import UsageError
from pyverno.kube.json import JSONObject, encode_indent
from pyverno.report.table import draw_table
from pyverno.sinks.markdown import markdown_cell, markdown_code, markdown_text
from pyverno.sinks.markup import html_text
from pyverno.sinks.records import json_text
from pyverno.value import dataclass

__all__ = ["Measures", "write_report"]

_STYLE: Final = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 75rem; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; }
th, td { border-bottom: 1px solid #8884; padding: .3rem .5rem; text-align: left; vertical-align: top; }
td.no { color: #c62828; } pre { margin: .3rem 0; overflow-x: auto; }
"""


@dataclass(frozen=True, slots=True)
class Measures:
    """The measurements; None where it was not requested."""

    coverage: tuple[PolicyCoverage, ...] | None = None
    mutants: tuple[MutantOutcome, ...] | None = None

    def to_json(self) -> JSONObject:
        """Return the measures for the JSON output."""
        found: JSONObject = {}
        if self.coverage is not None:
            found["coverage"] = to_json(self.coverage)
        if self.mutants is not None:
            found["mutation"] = mutation_json(self.mutants)
        return found

    def below(self, least: int) -> tuple[str, ...]:
        """Return a line for each measure below a percentage; a measure of nothing is always below."""
        found = []
        if least and self.coverage is not None and not any(each.branches for each in self.coverage):
            found.append(f"no rule was covered, so that coverage of {least}% is not reached")
        elif self.coverage is not None:
            branches = sum(len(each.branches) for each in self.coverage)
            share = percent(sum(each.covered for each in self.coverage), branches)
            found += [f"coverage {share}% is below {least}%"] if share < least else []
        if least and self.mutants is not None and all(each.outcome == INVALID for each in self.mutants):
            found.append(f"no mutant was run, so that a mutation score of {least}% is not reached")
        elif self.mutants is not None and score(self.mutants) < least:
            found.append(f"mutation score {score(self.mutants)}% is below {least}%")
        return tuple(found)

    def lines(self, style: Style, *, is_ascii: bool) -> Iterator[str]:
        """Yield the text of the command's output."""
        if self.coverage is not None:
            yield from _coverage_lines(self.coverage, style, is_ascii=is_ascii)
        if self.mutants is not None:
            yield from _mutation_lines(self.mutants, style, is_ascii=is_ascii)


_COVERAGE_HEADERS = ("POLICY", "RULES", "BRANCHES", "COVERED")
_MUTATION_HEADERS = ("POLICY", "MUTANTS", "KILLED", "SURVIVED", "SCORE")


def _coverage_rows(coverage: Sequence[PolicyCoverage]) -> list[list[str]]:
    return [
        [
            each.policy,
            f"{sum(each.rules.values())}/{len(each.rules)}",
            f"{each.covered}/{len(each.branches)}",
            f"{percent(each.covered, len(each.branches))}%",
        ]
        for each in coverage
    ]


def _coverage_total(coverage: Sequence[PolicyCoverage]) -> str:
    rules = [covered for each in coverage for covered in each.rules.values()]
    branches, covered = sum(len(each.branches) for each in coverage), sum(each.covered for each in coverage)
    return (
        f"Coverage: {sum(rules)} of {len(rules)} rules ({percent(sum(rules), len(rules))}%), "
        f"{covered} of {branches} branches ({percent(covered, branches)}%)"
    )


def _uncovered(coverage: Sequence[PolicyCoverage]) -> Iterator[str]:
    for each in coverage:
        for found in each.branches:
            if not found.is_covered:
                owner = f"{each.policy}/{found.branch.rule}" if found.branch.rule else each.policy
                yield f"{found.location}: {owner}: {found.text}"


def _coverage_lines(coverage: Sequence[PolicyCoverage], style: Style, *, is_ascii: bool) -> Iterator[str]:
    yield ""
    if coverage:
        yield draw_table(_COVERAGE_HEADERS, _coverage_rows(coverage), paint_header=style.header, is_ascii=is_ascii)
    missing = list(_uncovered(coverage))
    if missing:
        yield ""
        yield f"Branches that no row covers : {len(missing)}"
        yield from (f"  {line}" for line in missing)
    yield ""
    yield _coverage_total(coverage)


def _mutation_rows(mutants: Sequence[MutantOutcome]) -> list[list[str]]:
    by_policy: dict[tuple[str, str], list[MutantOutcome]] = {}
    for each in mutants:
        by_policy.setdefault((each.file, each.policy), []).append(each)
    return [
        [
            policy,
            str(sum(each.outcome != INVALID for each in own)),
            str(sum(each.outcome == KILLED for each in own)),
            str(sum(each.outcome == SURVIVED for each in own)),
            f"{score(own)}%",
        ]
        for (_, policy), own in by_policy.items()
    ]


def _mutation_total(mutants: Sequence[MutantOutcome]) -> str:
    counts = [sum(each.outcome == word for each in mutants) for word in (KILLED, SURVIVED, INVALID)]
    rest = f", {counts[2]} that are no valid policy left out" if counts[2] else ""
    return f"Mutation score: {score(mutants)}% ({counts[0]} of {counts[0] + counts[1]} mutants killed{rest})"


def _mutation_lines(mutants: Sequence[MutantOutcome], style: Style, *, is_ascii: bool) -> Iterator[str]:
    yield ""
    if mutants:
        yield draw_table(_MUTATION_HEADERS, _mutation_rows(mutants), paint_header=style.header, is_ascii=is_ascii)
    survivors = [each for each in mutants if each.outcome == SURVIVED]
    if survivors:
        yield ""
        yield f"Mutants that survived : {len(survivors)}"
    for each in survivors:
        yield f"  {each.location}: {each.policy}: {each.title}"
        for line in each.diff.splitlines():
            role = "pass" if line.startswith("+") else "fail" if line.startswith("-") else "note"
            yield f"    {style.role(line, role)}"
    yield ""
    yield _mutation_total(mutants)


def write_report(measures: Measures, path: Path) -> None:
    """Write the measures to a file in the format of its suffix; raises UsageError if that fails."""
    forms = {".json": _json, ".md": _markdown, ".html": _html}
    try:
        path.write_text(forms[path.suffix](measures), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write `{path}`: {(error.strerror or str(error)).lower()}") from error


def _json(measures: Measures) -> str:
    return json_text(encode_indent(measures.to_json())) + "\n"


def _markdown(measures: Measures) -> str:
    return "\n".join(_markdown_lines(measures)) + "\n"


def _markdown_lines(measures: Measures) -> Iterator[str]:
    yield "# Tests of policies"
    if measures.coverage is not None:
        yield from ("", "## Coverage", "", _coverage_total(measures.coverage), "")
        yield from _markdown_table(_COVERAGE_HEADERS, _coverage_rows(measures.coverage))
        missing = list(_uncovered(measures.coverage))
        if missing:
            yield from ("", "### Branches that no row covers", "")
            yield from (f"- {markdown_text(line)}" for line in missing)
    if measures.mutants is not None:
        yield from ("", "## Mutation score", "", _mutation_total(measures.mutants), "")
        yield from _markdown_table(_MUTATION_HEADERS, _mutation_rows(measures.mutants))
        for each in measures.mutants:
            if each.outcome == SURVIVED:
                title = markdown_text(f"{each.location}: {each.policy}: {each.title}")
                yield from ("", title, "", markdown_code(each.diff, "diff"))


def _markdown_table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield "".join(f"| {header} " for header in headers) + "|"
    yield "|---" * len(headers) + "|"
    for row in rows:
        yield "".join("| " + markdown_cell(cell) + " " for cell in row) + "|"


def _html(measures: Measures) -> str:
    return "\n".join(_html_lines(measures)) + "\n"


def _html_lines(measures: Measures) -> Iterator[str]:
    policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    yield '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>Tests of policies</title>'
    yield f'<meta http-equiv="Content-Security-Policy" content="{policy}"><style>{_STYLE}</style></head><body>'
    yield "<h1>Tests of policies</h1>"
    if measures.coverage is not None:
        yield f"<h2>Coverage</h2><p>{html_text(_coverage_total(measures.coverage))}</p>"
        yield from _html_table(_COVERAGE_HEADERS, _coverage_rows(measures.coverage))
        for each in measures.coverage:
            yield f"<details><summary>{html_text(each.policy)}</summary>"
            rows = [
                [
                    str(found.location),
                    *(found.branch.rule, found.branch.kind, found.branch.text, found.branch.outcome),
                    ", ".join(found.rows) or "no row",
                ]
                for found in each.branches
            ]
            yield from _html_table(("PLACE", "RULE", "KIND", "TEXT", "OUTCOME", "COVERED BY"), rows)
            yield "</details>"
    if measures.mutants is not None:
        yield f"<h2>Mutation score</h2><p>{html_text(_mutation_total(measures.mutants))}</p>"
        yield from _html_table(_MUTATION_HEADERS, _mutation_rows(measures.mutants))
        for mutant in measures.mutants:
            if mutant.outcome == SURVIVED:
                yield f"<h3>{html_text(f'{mutant.location}: {mutant.policy}: {mutant.title}')}</h3>"
                yield f"<pre>{html_text(mutant.diff)}</pre>"
    yield "</body></html>"


def _html_table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield "<table><thead><tr>" + "".join(f"<th scope=col>{html_text(each)}</th>" for each in headers) + "</tr></thead>"
    for row in rows:
        cells = "".join(f"<td{' class=no' if cell == 'no row' else ''}>{html_text(cell)}</td>" for cell in row)
        yield f"<tr>{cells}</tr>"
    yield "</table>"
