"""Baselines: files with the failures that a repository is known to have, so that only new ones count.

An entry names rule, object and field, never a line. Entries are sorted, one a line, and equal ones are repeated, so
that files of two branches merge.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from pyverno.errors import PyvernoError, UsageError
from pyverno.kube.json import JSON, encode
from pyverno.kube.yaml.documents import load_documents
from pyverno.offline.files import read_file
from pyverno.offline.rewriting import replace_file

__all__ = ["Baseline", "Entry"]

Entry = tuple[str, ...]
"""Rule, kind, namespace, name and field of a failure (`report.identity`)."""

_FIELDS = ("rule", "kind", "namespace", "name", "field")
_VERSION = 1
_HEAD = "# Failures that are known; `pyverno apply --baseline FILE --update-baseline` writes this file.\n"


class Baseline:
    """The known failures of one run: those that still exist, and all current ones.

    >>> baseline = Baseline({("p/r", "Pod", "", "a", ""): 1})
    >>> baseline.take(("p/r", "Pod", "", "a", "")), baseline.take(("p/r", "Pod", "", "a", ""))
    (True, False)
    """

    def __init__(self, known: Mapping[Entry, int]) -> None:
        self._left = Counter(known)
        self._found: Counter[Entry] = Counter()
        self.used = 0

    @classmethod
    def read(cls, path: str, *, may_be_missing: bool = False) -> Baseline:
        """Read a file; raises UsageError for one that is no baseline."""
        if may_be_missing and not Path(path).exists():
            return cls({})
        try:
            documents = load_documents(read_file(Path(path)), file=path)
        except PyvernoError as error:
            hint = "" if Path(path).exists() else " (--update-baseline writes it)"
            raise UsageError(f"the baseline cannot be used: {error}{hint}") from error
        body = documents[0].value if len(documents) == 1 else None
        findings = body.get("findings") if isinstance(body, dict) and body.get("version") == _VERSION else None
        if not isinstance(findings, list):
            raise UsageError(f"`{path}` is not a baseline of version {_VERSION}")
        return cls(Counter(_read_entry(path, each) for each in findings))

    def take(self, entry: Entry) -> bool:
        """Count a failure, and return whether it is a known one."""
        self._found[entry] += 1
        if self._left[entry] < 1:
            return False
        self._left[entry] -= 1
        self.used += 1
        return True

    @property
    def gone(self) -> list[Entry]:
        """The known failures that were not found, in order."""
        return sorted((+self._left).elements())

    def write(self, path: str) -> int:
        """Write the found failures to the file, and return the number of entries; raises UsageError."""
        entries = sorted(self._found.elements())
        lines = [
            f"- {encode({key: text for key, text in zip(_FIELDS, entry, strict=True) if text})}\n" for entry in entries
        ]
        body = "".join(lines) if lines else ""
        text = f"{_HEAD}version: {_VERSION}\nfindings:{'' if lines else ' []'}\n{body}"
        replace_file(Path(path), text.encode())
        return len(entries)


def _read_entry(path: str, body: JSON) -> Entry:
    if not isinstance(body, dict) or not all(isinstance(text, str) for text in body.values()):
        raise UsageError(f"`{path}` is not a baseline: an entry is not a map of texts")
    unknown = [key for key in body if key not in _FIELDS]
    if unknown:
        raise UsageError(f"`{path}` is not a baseline: unknown field `{unknown[0]}` in an entry")
    return tuple(body.get(key, "") for key in _FIELDS)
