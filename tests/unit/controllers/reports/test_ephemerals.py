"""Ephemeral reports wait, by object, until those of a burst are together."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest

from pyverno.cluster.access import Access
from pyverno.cluster.client import Client
from pyverno.cluster.informer import Notice
from pyverno.controllers.reports.ephemerals import Ephemerals
from pyverno.controllers.reports.identity import ObjectId
from pyverno.kube.kinds import KindTable
from tests.support.recordkeys import SEALS

WEB = ObjectId("", "pod", "team", "1")
"""The kind is not served in these tests."""


CREATED = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp())


class Stage:
    """Ephemeral reports with a clock that tests set; their watch brings what tests send."""

    def __init__(self) -> None:
        self.now = 100.0
        self.found = Ephemerals(
            Client(Access("https://127.0.0.1:1")),
            lambda: KindTable(()),
            collect_seconds=1.0,
            seals=SEALS,
            on_change=lambda _: None,
            now=lambda: self.now,
        )

    def send(self, notice: Notice, name: str, uid: str = "1", version: int = 1, judged: int = CREATED) -> None:
        """Bring a change of a report on the Pod `web`, with a result of a time."""
        labels = {"uid": uid, "group": "", "version": "v1", "kind": "Pod"}
        metadata = {
            "name": name,
            "namespace": "team",
            "resourceVersion": str(version),
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {f"audit.kyverno.io/resource.{key}": value for key, value in labels.items()},
            "annotations": {"audit.kyverno.io/resource.name": "web"},
        }
        body = {
            "metadata": metadata,
            "spec": {"results": [{"policy": name, "timestamp": {"seconds": judged, "nanos": 0}}]},
        }
        body = SEALS.seal(body)
        asyncio.run(self.found.informers[0]._take({"type": notice.value, "object": body}))


@pytest.fixture
def stage() -> Stage:
    """Return ephemeral reports without an API server."""
    return Stage()


def test_the_first_report_starts_the_time_and_no_other_prolongs_it(stage: Stage) -> None:
    """Neither later reports nor changes of the first one do, so that a stream of requests is reported each second."""
    assert 0 == stage.found.seconds_left(WEB)
    stage.send(Notice.ADDED, "a")
    assert 1.0 == stage.found.seconds_left(WEB)
    stage.now += 0.75
    stage.send(Notice.ADDED, "b")
    stage.send(Notice.MODIFIED, "a")
    assert 0.25 == stage.found.seconds_left(WEB)
    stage.now += 5
    assert 0 == stage.found.seconds_left(WEB)
    assert ["a", "b"] == [each.name for each in stage.found.find(WEB)]


@pytest.mark.parametrize(("late", "counts"), [(0, True), (-600, True), (600, True), (3600, False), (10**8, False)])
def test_a_report_that_was_kept_and_written_again_does_not_count(stage: Stage, late: int, counts: bool) -> None:
    """Its seal is ours, but policy or request may have been others; a slow write and clocks are excused."""
    stage.send(Notice.ADDED, "a", judged=CREATED - late)
    assert (["a"] if counts else []) == [each.name for each in stage.found.find(WEB)]
    assert ([] if counts else ["a"]) == [each.name for each in stage.found.foreign(WEB)]


def test_the_next_report_after_a_merge_starts_a_time_of_its_own(stage: Stage) -> None:
    """Even if the watch has not brought the deletion of the merged ones."""
    stage.send(Notice.ADDED, "a")
    stage.now += 1
    for each in stage.found.find(WEB):
        stage.found.forget(each)
    assert () == stage.found.find(WEB)
    stage.send(Notice.ADDED, "b")
    assert 1.0 == stage.found.seconds_left(WEB)
    stage.send(Notice.DELETED, "a")
    assert ["b"] == [each.name for each in stage.found.find(WEB)]
    stage.send(Notice.DELETED, "b")
    assert (0, []) == (stage.found.seconds_left(WEB), list(stage.found.waiting()))


def test_reports_without_a_uid_wait_for_the_name_of_their_object(stage: Stage) -> None:
    """They are forgotten under that name, also when they go into the report of a real object."""
    stage.send(Notice.ADDED, "a", uid="")
    nameless = WEB._replace(uid="name:web")
    assert [nameless] == list(stage.found.waiting())
    stage.found.forget(stage.found.find(nameless)[0])
    assert [] == list(stage.found.waiting())


def test_reports_of_one_second_are_in_the_order_of_their_writes(stage: Stage) -> None:
    """Times of creation are in seconds, and a list has the order of names."""
    for name, version in (("a", 10), ("b", 9), ("c", 8)):
        stage.send(Notice.ADDED, name, version=version)
    assert ["c", "b", "a"] == [each.name for each in stage.found.find(WEB)]
