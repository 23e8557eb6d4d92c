"""Seals of reports: to what they bind results."""

from __future__ import annotations

from typing import Any

import pytest

from pyverno.engine.imageverification.recordkeys import NO_RECORD_KEYS
from pyverno.kube.json import JSONObject
from pyverno.report.seals import SEAL_ANNOTATION, ReportSeals
from tests.support.recordkeys import SEALS

PREFIX = "audit.kyverno.io/resource."
OWNER = {"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": "1"}


def _ephemeral(**metadata: Any) -> JSONObject:
    labels = {f"{PREFIX}uid": "1", f"{PREFIX}group": "", f"{PREFIX}version": "v1", f"{PREFIX}kind": "Pod"}
    given = {"namespace": "team", "labels": labels, "annotations": {f"{PREFIX}name": "web"}, **metadata}
    return {"metadata": given, "spec": {"results": [{"policy": "p", "result": "fail"}]}}


def _report() -> JSONObject:
    return {
        "metadata": {"name": "1", "namespace": "team", "annotations": {"note": "mine"}},
        "scope": OWNER,
        "summary": {"fail": 1},
        "results": [{"policy": "p", "result": "fail"}],
    }


@pytest.mark.parametrize("report", [_ephemeral(), _report()], ids=["ephemeral", "report"])
def test_a_sealed_report_is_ours(report: JSONObject) -> None:
    """What the API server and others add to its metadata changes nothing; other annotations stay."""
    sealed = SEALS.seal(report)
    stored = {
        **sealed,
        "metadata": {**sealed["metadata"], "uid": "7", "resourceVersion": "9", "ownerReferences": [OWNER]},
    }
    kept = {name: text for name, text in sealed["metadata"]["annotations"].items() if name != SEAL_ANNOTATION}
    assert (True, False, report["metadata"]["annotations"]) == (SEALS.holds(stored), SEALS.holds(report), kept)


@pytest.mark.parametrize("report", [_ephemeral(), _report()], ids=["ephemeral", "report"])
@pytest.mark.parametrize(
    "change",
    [
        {"metadata": {"namespace": "other"}},
        {"metadata": {"name": "2", "labels": {}}},
        {"metadata": {"annotations": None}},
        {"metadata": {"annotations": []}},
        {"metadata": {"annotations": {SEAL_ANNOTATION: 1}}},
        {"metadata": {"annotations": {SEAL_ANNOTATION: "a:é"}}},
        {"metadata": None},
        {"spec": {"results": [{"policy": "p", "result": "pass"}]}, "results": [{"policy": "p", "result": "pass"}]},
        {"spec": {"results": None}, "results": None},
    ],
    ids=str,
)
def test_a_changed_report_is_not(report: JSONObject, change: JSONObject) -> None:
    """Place, object and results are under the seal."""
    sealed = SEALS.seal(report)
    metadata = change.get("metadata", {})
    merged = {**sealed["metadata"], **metadata} if isinstance(metadata, dict) else metadata
    assert not SEALS.holds({**sealed, **{name: change[name] for name in change if name in sealed}, "metadata": merged})


@pytest.mark.parametrize(
    "owners", [[{**OWNER, "name": "other"}], [{**OWNER, "uid": "2"}], [{**OWNER, "kind": "Node"}], [None], "x"], ids=str
)
def test_another_owner_makes_it_a_report_on_another_object(owners: Any) -> None:
    """The first owner of an ephemeral report names its object."""
    sealed = SEALS.seal(_ephemeral())
    assert not SEALS.holds({**sealed, "metadata": {**sealed["metadata"], "ownerReferences": owners}})


def test_without_keys_no_report_is_ours() -> None:
    """Nothing is sealed, and what others sealed does not count."""
    seals = ReportSeals(lambda: NO_RECORD_KEYS)
    report = _report()
    assert (False, True, False) == (seals.can_check, seals.seal(report) is report, seals.holds(SEALS.seal(report)))


@pytest.mark.parametrize("mark", ["other", None])
def test_the_mark_of_the_object_is_under_the_seal(mark: str | None) -> None:
    """Without it, results would count for an object that was never judged."""
    sealed = SEALS.seal(_ephemeral(annotations={f"{PREFIX}name": "web", "pyverno.io/object": "mark"}))
    assert SEALS.holds(sealed)
    annotations = {**sealed["metadata"]["annotations"], "pyverno.io/object": mark}
    assert not SEALS.holds({**sealed, "metadata": {**sealed["metadata"], "annotations": annotations}})
