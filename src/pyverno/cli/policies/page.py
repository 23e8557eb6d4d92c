"""The policy library as one HTML page with a search, which loads nothing from the network.

The only script is the page's own; its hash is in the content security policy, so that no other script can run.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from typing import Final

from pyverno.offline.files import read_file
from pyverno.offline.policylibrary import Control
from pyverno.sinks.markup import html_text

__all__ = ["library_page"]

_STYLE: Final = """
:root { color-scheme: light dark; --line: #8884; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 75rem; padding: 0 1rem; }
h1 { font-size: 1.5rem; }
form { display: flex; flex-wrap: wrap; gap: .75rem; position: sticky; top: 0; background: Canvas; padding: .5rem 0; }
input, select { font: inherit; padding: .3rem .5rem; } input { flex: 1; min-width: 12rem; }
details { border-bottom: 1px solid var(--line); padding: .5rem 0; }
summary { cursor: pointer; } summary code { opacity: .75; }
pre { border: 1px solid var(--line); border-radius: .4rem; overflow-x: auto; padding: .75rem; }
.tag { border: 1px solid var(--line); border-radius: .4rem; font-size: .85em; padding: 0 .4rem; white-space: nowrap; }
.high { border-color: #c62828; } .medium { border-color: #ef6c00; } .low { border-color: #607d8b; }
"""
_SCRIPT: Final = """
const rows = [...document.querySelectorAll('details')];
const form = document.querySelector('form');
const count = document.querySelector('output');
function show() {
  const words = form.words.value.toLowerCase().split(/\\s+/).filter(Boolean);
  let shown = 0;
  for (const row of rows) {
    const fits = words.every(word => row.dataset.text.includes(word))
      && (!form.category.value || row.dataset.category === form.category.value)
      && (!form.severity.value || row.dataset.severity === form.severity.value);
    row.hidden = !fits;
    shown += fits ? 1 : 0;
  }
  count.textContent = `${shown} of ${rows.length}`;
}
form.addEventListener('input', show);
form.addEventListener('submit', event => event.preventDefault());
show();
"""


def library_page(controls: Sequence[Control]) -> str:
    """Return the page with every control: its title, its standards and its text."""
    return "\n".join(_page(controls)) + "\n"


def _page(controls: Sequence[Control]) -> Iterator[str]:
    digest = base64.b64encode(hashlib.sha256(_SCRIPT.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; base-uri 'none'"
    yield "<!DOCTYPE html>"
    yield '<html lang="en"><head><meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
    yield f"<title>Policy library</title><style>{_STYLE}</style></head><body>"
    yield f"<h1>Policy library</h1><p>{len(controls)} policies."
    yield "Try one: <code>pyverno apply @NAME -r manifests/</code></p>"
    yield '<form role="search"><input name="words" type="search" placeholder="Search" aria-label="Search">'
    yield from _select("category", "All categories", sorted({each.category for each in controls}))
    yield from _select("severity", "All severities", sorted({each.severity for each in controls}))
    yield '<output aria-live="polite"></output></form><main>'
    for control in controls:
        yield from _details(control)
    yield f"</main><script>{_SCRIPT}</script></body></html>"


def _select(name: str, every: str, values: Sequence[str]) -> Iterator[str]:
    yield f'<select name="{name}" aria-label="{name.title()}"><option value="">{every}</option>'
    for value in values:
        yield f"<option>{html_text(value)}</option>"
    yield "</select>"


def _details(control: Control) -> Iterator[str]:
    text = " ".join(
        (control.name, control.title, control.category, control.subject, control.description, *control.standards)
    )
    yield (
        f'<details data-text="{html_text(text.lower())}" data-category="{html_text(control.category)}" '
        f'data-severity="{html_text(control.severity)}">'
    )
    tags = [
        f'<span class="tag {html_text(control.severity)}">{html_text(control.severity)}</span>',
        *(
            f'<span class="tag">{html_text(each)}</span>'
            for each in (control.kind, control.subject, *control.standards)
        ),
    ]
    head = f"<strong>{html_text(control.title)}</strong> <code>@{html_text(control.name)}</code>"
    yield f"<summary>{head} {' '.join(tags)}</summary>"
    yield f"<p>{html_text(control.description)}</p>"
    yield f"<pre>{html_text(read_file(control.path).decode().rstrip())}</pre></details>"
