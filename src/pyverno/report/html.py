"""An overview as one self-contained HTML page: no script, no font, no picture from elsewhere.

All text of policies, resources and messages is escaped; as a second guard, a content security policy forbids everything
but the page's own style.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from pyverno.report.collected import STATUSES, Collected
from pyverno.report.overview import Group, Overview
from pyverno.sinks.markup import html_text

__all__ = ["MAX_ROWS", "html_page", "html_row"]

MAX_ROWS: Final = 5000
"""The number of results that a page shows."""

_MAX_GROUPS: Final = 30
_COLORS: Final = {"fail": "#c62828", "error": "#6a1b9a", "warn": "#b45309", "skip": "#546e7a", "pass": "#2e7d32"}
_STYLE: Final = """
:root { color-scheme: light dark; --line: #8884; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 75rem; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
table { border-collapse: collapse; width: 100%; }
th, td { border-bottom: 1px solid var(--line); padding: .35rem .5rem; text-align: left; vertical-align: top; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
td.message { white-space: pre-wrap; overflow-wrap: anywhere; }
.status { border-radius: .25rem; color: #fff; display: inline-block; min-width: 3.2rem; padding: 0 .4rem; }
.status { text-align: center; }
.tiles { display: flex; flex-wrap: wrap; gap: .75rem; padding: 0; }
.tiles li { border: 1px solid var(--line); border-radius: .5rem; list-style: none; }
.tiles li { min-width: 6rem; padding: .5rem 1rem; }
.tiles strong { display: block; font-size: 1.6rem; }
svg { display: block; } .note { opacity: .75; }
@media print { body { margin: 0; max-width: none; } details { display: block; } }
"""


def html_page(overview: Overview, title: str = "Policy report", made: str = "") -> str:
    """Return the page; `made` holds the time and the source of the results."""
    return "\n".join(_page(overview, title, made)) + "\n"


def _page(overview: Overview, title: str, made: str) -> Iterator[str]:
    yield "<!DOCTYPE html>"
    yield '<html lang="en"><head><meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    yield f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
    yield f"<title>{html_text(title)}</title><style>{_STYLE}</style></head><body><main>"
    yield f"<h1>{html_text(title)}</h1>"
    if made:
        yield f'<p class="note">{html_text(made)}</p>'
    for problem in overview.problems:
        yield f'<p role="alert"><strong>Not complete:</strong> {html_text(problem)}</p>'
    yield '<ul class="tiles">'
    for status in STATUSES:
        yield f"<li><strong>{overview.counts[status]}</strong>{_badge(status)}</li>"
    yield "</ul>"
    yield from _groups(overview)
    if overview.has_baseline:
        yield from _rows("New problems", overview.new, len(overview.new))
        yield from _rows("Resolved since", overview.resolved, len(overview.resolved))
    problems = [each for each in overview.results if each.finding.is_problem]
    yield from _rows("Problems", problems, sum(overview.counts[each] for each in ("fail", "error", "warn")))
    yield "</main></body></html>"


def _groups(overview: Overview) -> Iterator[str]:
    shown = overview.groups[:_MAX_GROUPS]
    most = max((sum(group.counts.values()) for group in shown), default=0)
    name = overview.grouping
    yield f"<h2>By {html_text(name)}</h2><table><thead><tr>"
    yield f"<th scope=col>{html_text(name.title())}</th><th scope=col>Severity</th>"
    yield "".join(f'<th scope=col class="number">{status.title()}</th>' for status in STATUSES)
    yield "<th scope=col>Share</th></tr></thead><tbody>"
    for group in shown:
        cells = "".join(f'<td class="number">{group.counts[status]}</td>' for status in STATUSES)
        yield f"<tr><td>{html_text(group.label)}</td><td>{html_text(group.severity)}</td>{cells}"
        yield f"<td>{_bar(group, most)}</td></tr>"
    yield "</tbody></table>"
    if len(overview.groups) > len(shown):
        yield f'<p class="note">{len(overview.groups) - len(shown)} more are not shown.</p>'


def _bar(group: Group, most: int) -> str:
    """Draw the counts of a group as one bar, as long as its share of the largest group."""
    parts: list[str] = []
    x = 0.0
    for status in STATUSES:
        width = 160 * group.counts[status] / most if most else 0
        if width:
            parts.append(f'<rect x="{x:.1f}" y="2" width="{width:.1f}" height="12" fill="{_COLORS[status]}"/>')
        x += width
    label = ", ".join(f"{group.counts[status]} {status}" for status in STATUSES if group.counts[status])
    return f'<svg width="160" height="16" role="img" aria-label="{html_text(label)}">{"".join(parts)}</svg>'


def _rows(title: str, results: Sequence[Collected], total: int) -> Iterator[str]:
    yield f"<h2>{html_text(title)} ({total})</h2>"
    if not results:
        yield '<p class="note">None.</p>'
        return
    heads = ("Status", "Severity", "Policy", "Rule", "Namespace", "Resource", "Message")
    yield f"<table><thead><tr>{''.join(f'<th scope=col>{head}</th>' for head in heads)}</tr></thead><tbody>"
    yield from map(html_row, results[:MAX_ROWS])
    yield "</tbody></table>"
    if total > MAX_ROWS:
        yield f'<p class="note">{total - MAX_ROWS} more are not shown.</p>'


def html_row(each: Collected) -> str:
    """Return the row of a table for one result."""
    found, ref = each.finding, each.finding.resource
    texts = (found.severity, found.policy, found.rule, ref.namespace, f"{ref.kind}/{ref.name}".strip("/"))
    cells = "".join(f"<td>{html_text(text)}</td>" for text in texts)
    return f'<tr><td>{_badge(found.status)}</td>{cells}<td class="message">{html_text(found.message)}</td></tr>'


def _badge(status: str) -> str:
    return f'<span class="status" style="background:{_COLORS[status]}">{status}</span>'
