"""What is remembered of reports: a report of one namespace says nothing about objects of another."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from pyverno.cluster.access import Access
from pyverno.cluster.client import Client
from pyverno.controllers.reports.identity import ObjectId
from pyverno.controllers.reports.objects import pack_uid
from pyverno.controllers.reports.reportindex import ReportIndex
from pyverno.engine.imageverification.recordkeys import NO_RECORD_KEYS
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.kinds import BUILTIN_KINDS
from pyverno.kube.reportapis import POLICY_REPORTS
from pyverno.report.seals import ReportSeals

UID = "0c4f9d0a-9d5c-4b5e-8d0e-0d9c6a1f7d11"
OBJECT, FORGED = (ObjectId("", "pods", namespace, UID) for namespace in ("prod", "evil"))
REPORTS = POLICY_REPORTS.namespaced


def report(namespace: str, name: str = UID, policy: str = "p") -> JSONObject:
    """Return a report of a pod with one uid."""
    return {
        "metadata": {"name": name, "namespace": namespace},
        "scope": {"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": UID},
        "results": [{"policy": policy, "source": "kyverno", "result": "fail"}],
    }


class Stage:
    """An index, with the objects that it has looked at, and what it found in lists."""

    def __init__(self) -> None:
        """Begin without reports; no object is scanned."""
        self.changed: list[ObjectId] = []
        self.listed: list[dict[str, set[bytes]]] = []
        self.index = ReportIndex(
            Client(Access(server="http://127.0.0.1:1")),
            POLICY_REPORTS,
            lambda: BUILTIN_KINDS,
            match_scan=lambda _id, _digest: False,
            seals=ReportSeals(lambda: NO_RECORD_KEYS),
            on_change=self.changed.append,
            on_list=self._note,
        )

    def _note(self, _: GVR, listed: Mapping[str, AbstractSet[bytes]]) -> None:
        self.listed.append({namespace: set(uids) for namespace, uids in listed.items()})


def test_a_report_with_the_uid_of_another_namespace_does_not_replace_its_note() -> None:
    """Who may write reports in one namespace could otherwise keep those of any object as they are."""
    stage = Stage()
    stage.index.put(REPORTS, report("prod"))
    stage.index.put(REPORTS, report("evil", policy="forged"))
    assert [OBJECT, FORGED] == stage.changed
    assert [OBJECT, FORGED] == list(stage.index.unsettled())
    stage.index.settle(OBJECT, [report("prod")], None)
    assert [FORGED] == list(stage.index.unsettled())
    stage.index.unsettle(OBJECT)
    assert [OBJECT, FORGED] == sorted(stage.index.unsettled(), key=lambda id: id.namespace, reverse=True)
    assert stage.index.reopen([("kyverno", "p")])


def test_an_equal_report_of_another_namespace_is_not_known_already() -> None:
    """Each has the digest of the other."""
    stage = Stage()
    for namespace in ("evil", "prod"):
        stage.index.put(REPORTS, report(namespace))
    assert [FORGED, OBJECT] == stage.changed


def test_a_deleted_report_leaves_those_of_other_namespaces() -> None:
    """The note on the object stays, and it is looked at again when its own report goes."""
    stage = Stage()
    for namespace in ("prod", "evil"):
        stage.index.put(REPORTS, report(namespace))
    stage.index.remove(REPORTS, report("evil"))
    assert (None, True) == (stage.index.note(FORGED), stage.index.note(OBJECT) is not None)


def test_a_list_says_in_which_namespaces_objects_have_reports() -> None:
    """A report elsewhere does not stand for one that is gone."""
    stage = Stage()
    stage.index.put(REPORTS, report("prod"))
    stage.index.begin(REPORTS)
    stage.index.put(REPORTS, report("evil"))
    stage.index.end(REPORTS)
    assert [{"evil": {pack_uid(UID)}}] == stage.listed
    assert [FORGED] == list(stage.index.unsettled())
