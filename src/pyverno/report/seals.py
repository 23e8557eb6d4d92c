"""Seals of stored reports: who may write reports in a namespace could write results in our name.

An ephemeral report counts with the seal of a key of the installation, and so do results in a report that no scan gives
again. A report without one is for others to read, and is replaced.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import orjson

from pyverno.engine.imageverification.recordkeys import RecordKeys, Seal
from pyverno.kube.json import JSON, JSONObject, encode
from pyverno.report.objectmark import MARK
from pyverno.value import dataclass

# trust rows: stored-report

__all__ = ["SEAL_ANNOTATION", "ReportSeals"]

SEAL_ANNOTATION: Final = "pyverno.io/seal"
_PREFIX: Final = "audit.kyverno.io/resource."
_LABELS: Final = ("uid", "group", "version", "kind")


@dataclass(frozen=True, slots=True)
class ReportSeals:
    """Seals reports and checks them by the current keys."""

    keys: Callable[[], RecordKeys]

    @property
    def can_check(self) -> bool:
        """Return whether any key is known; without one every report is foreign."""
        return bool(self.keys())

    def seal(self, report: JSONObject) -> JSONObject:
        """Return a report with its seal; the same one when there is no key."""
        found = self.keys().seal(_message(report))
        if found is None:
            return report
        metadata = report["metadata"]
        annotations = {**(metadata.get("annotations") or {}), SEAL_ANNOTATION: f"{found.key}:{found.code}"}
        return {**report, "metadata": {**metadata, "annotations": annotations}}

    def holds(self, report: JSONObject) -> bool:
        """Return whether we wrote the results of a report, about this object."""
        text = _text(_mapping(_metadata(report).get("annotations")).get(SEAL_ANNOTATION))
        key, _, code = text.partition(":")
        return self.keys().holds(_message(report), Seal(key, code)) and _is_owned_by_subject(report)


def _message(report: JSONObject) -> bytes:
    metadata = _metadata(report)
    place: list[JSON] = ["report", metadata.get("namespace") or ""]
    spec = report.get("spec")
    if isinstance(spec, dict):
        labels = _mapping(metadata.get("labels"))
        annotations = _mapping(metadata.get("annotations"))
        place += ["ephemeral", annotations.get(f"{_PREFIX}name") or "", annotations.get(MARK) or ""]
        place += [[labels.get(f"{_PREFIX}{part}") or "" for part in _LABELS], spec.get("results") or ""]
    else:
        place += [metadata.get("name"), report.get("scope"), report.get("summary"), report.get("results")]
    return _written(place)


def _written(place: list[JSON]) -> bytes:
    """Write JSON in one form; reports hold no fractions, which have several."""
    try:
        return orjson.dumps(place, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # lone surrogates, and integers beyond 64 bits
        return encode(place).encode("utf-8", "surrogatepass")


def _is_owned_by_subject(report: JSONObject) -> bool:
    """Return whether the owner of an ephemeral report is the object that it is about; it may have none yet."""
    metadata = _metadata(report)
    owners = metadata.get("ownerReferences")
    if "spec" not in report or not owners:
        return True
    owner = owners[0] if isinstance(owners, list) and isinstance(owners[0], dict) else {}
    labels, annotations = _mapping(metadata.get("labels")), _mapping(metadata.get("annotations"))
    about = labels.get(f"{_PREFIX}kind"), annotations.get(f"{_PREFIX}name")
    # the uid of an object is not known yet when it is created
    return (owner.get("kind"), owner.get("name")) == about and labels.get(f"{_PREFIX}uid") in ("", owner.get("uid"))


def _metadata(report: JSONObject) -> JSONObject:
    return _mapping(report.get("metadata"))


def _mapping(value: JSON) -> JSONObject:
    return value if isinstance(value, dict) else {}


def _text(value: JSON) -> str:
    return value if isinstance(value, str) else ""
