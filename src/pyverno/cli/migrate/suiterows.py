"""Rows of a converted suite that fail although the policies decide alike: skips now passes, inadmissible objects."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Final

from pyverno.cli.test.check import Row
from pyverno.compiler.migration.outcome import Converted, Note
from pyverno.kube.json import JSONObject

__all__ = ["reference_of", "settle_rows"]

_SKIPPED_BEFORE: Final = "Want skip, got pass"


def reference_of(body: JSONObject) -> tuple[str, str]:
    """Return kind and name of an object, as the rows of a result table end.

    >>> reference_of({"kind": "Pod", "metadata": {"name": "a"}})
    ('Pod', 'a')
    """
    return str(body.get("kind", "")), str((body.get("metadata") or {}).get("name", ""))


def settle_rows(suite: JSONObject, rows: Sequence[Row], refused: Set[tuple[str, str]]) -> Converted:
    """Return the suite with rows that expect the new policies' results, and a note for each change.

    A row that expects a skip expects a pass where it got one; rows on `refused` objects are left out: only files hold
    such objects, because no API server admits them. Every other row stays, so that a difference makes it fail.
    """
    passes: dict[int, set[str]] = {}
    gone: dict[int, set[str]] = {}
    for row in rows:
        if not row.counts_as_failed or row.expected is None:
            continue
        place, name = row.expected.path[-1], row.resource.rpartition("/")[2]
        if not isinstance(place, int):
            continue
        if (row.expected.kind, name) in refused:
            gone.setdefault(place, set()).add(name)
        elif row.reason == _SKIPPED_BEFORE:
            passes.setdefault(place, set()).add(name)
    results: list[JSONObject] = []
    notes: list[Note] = []
    for place, written in enumerate(suite.get("results") or ()):
        now, out = passes.get(place, set()), gone.get(place, set())
        if not (now or out) or not written.get("resources"):
            results.append(written)
            continue
        path = f"results[{place}]"
        named = [(each, str(each).rpartition("/")[2]) for each in written["resources"]]
        rest = [each for each, name in named if name not in now | out]
        changed = [each for each, name in named if name in now]
        if rest:
            results.append({**written, "resources": rest})
        if changed:
            results.append({**written, "resources": changed, "result": "pass"})
            notes.append(Note("suite-skip", path, "a policy in CEL passes what the old rule skipped"))
        if out:
            text = f"an API server refuses {', '.join(sorted(out))}, and the rows that expect a result are left out"
            notes.append(Note("suite-refused", path, text))
    return Converted(({**suite, "results": results},), tuple(notes))
