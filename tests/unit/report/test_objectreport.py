"""Reports of one object: the merge rule, timestamps, splitting, and digests."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pyverno.engine.result import ResourceRef
from pyverno.kube.json import JSONObject, encode
from pyverno.kube.reportapis import OPENREPORTS, POLICY_REPORTS
from pyverno.report.objectreport import (
    ReportSubject,
    bounded_result,
    merge_results,
    reports_of,
    results_digest,
    subject_of,
)

UID = "0c4f9d0a-9d5c-4b5e-8d0e-0d9c6a1f7d11"
POD = ReportSubject(ResourceRef("v1", "Pod", "team", "web"), UID)


def item(policy: str = "p", rule: str = "r", result: str = "pass", seconds: int = 1, **more: object) -> JSONObject:
    """Return a result."""
    timestamp = {"seconds": seconds, "nanos": 0}
    found: JSONObject = {"source": "kyverno", "policy": policy, "result": result, "timestamp": timestamp, **more}
    return {**found, "rule": rule} if rule else found


def test_the_newest_of_two_results_wins() -> None:
    """The order of the results does not matter."""
    old, new = item(result="fail", seconds=4), item(result="pass", seconds=5)
    assert [new] == merge_results((), (), [old, new])
    assert [new] == merge_results((), (), [new, old])
    assert [new] == merge_results([new], (), [old])


def test_the_last_of_equally_old_results_wins() -> None:
    """Two requests of one second have the same timestamp; those of ephemeral reports come last."""
    first, second = item(result="fail"), item(result="pass")
    assert [second] == merge_results([first], (), [second])
    assert [second] == merge_results((), (), [first, second])


def test_an_unchanged_result_keeps_its_time() -> None:
    """The report is rewritten only when a result changes."""
    assert [item(seconds=3)] == merge_results([item(seconds=3)], [item(seconds=9)], ())
    assert [item(seconds=3)] == merge_results([item(seconds=3)], (), [item(seconds=9)])
    assert [item(result="fail", seconds=9)] == merge_results([item(seconds=3)], [item(result="fail", seconds=9)], ())


def test_bindings_of_an_admission_policy_have_results_of_their_own() -> None:
    """Rules count for legacy policies, bindings for those of Kubernetes, and for others the policy alone."""
    bound = [
        item("vap", "vap", source="ValidatingAdmissionPolicy", properties={"binding": name}) for name in ("a", "b")
    ]
    cel = [item("vpol", rule, seconds=number, source="KyvernoValidatingPolicy") for number, rule in enumerate("xy")]
    rules = [item("p", rule) for rule in ("r", "s")]
    assert [*rules, *bound, cel[1]] == merge_results((), (), [*bound, *cel, *rules])


def test_results_that_the_scan_decides_come_from_the_scan_alone() -> None:
    """A result of an earlier scan or of a request is dropped when the scan does not give it any more."""
    stale, other = item("scanned", result="fail"), item("admission", result="fail")
    merged = merge_results(
        [stale, other], [], [item("scanned", seconds=99)], is_scanned=lambda each: each["policy"] == "scanned"
    )
    assert [other] == merged


def test_results_without_a_policy_are_dropped() -> None:
    """They are dropped from the present report and from ephemeral ones."""
    kept = item("kept")
    merged = merge_results(
        [item("gone"), kept], (), [item("gone", seconds=9)], is_current=lambda each: each["policy"] == "kept"
    )
    assert [kept] == merged


def test_results_are_ordered_by_policy_rule_source_and_time() -> None:
    """The order is that of Kyverno."""
    items = [item("b", "a"), item("a", "b"), item("a", "a", source="z"), item("a", "a")]
    assert [items[3], items[2], items[1], items[0]] == merge_results((), (), items)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["pass", "fail"]), st.integers(0, 5)), max_size=8))
def test_merging_again_changes_nothing(rows: list[tuple[str, str, int]]) -> None:
    """A report that was written before a crash is the same afterwards, with the ephemeral reports still there."""
    items = [item(policy, result=result, seconds=seconds) for policy, result, seconds in rows]
    once = merge_results((), (), items)
    assert once == merge_results(once, (), items)


def test_an_object_with_many_results_has_several_reports() -> None:
    """Of at most a thousand results; names are derived from the uid."""
    items = [item(f"policy-{number}") for number in range(2100)]
    reports = list(reports_of(POD, items, POLICY_REPORTS))
    assert [1000, 1000, 100] == [len(each["results"]) for each in reports]
    assert [UID, f"{UID}-2", f"{UID}-3"] == [each["metadata"]["name"] for each in reports]
    assert items == [each for report in reports for each in report["results"]]
    assert [1000, 1000, 100] == [each["summary"]["pass"] for each in reports]


def test_reports_stay_below_the_largest_object_of_an_api_server() -> None:
    """Messages are cut, and results beyond a megabyte go into the next report."""
    items = [item(f"policy-{number}", message="x" * 1_000_000) for number in range(200)]
    reports = list(reports_of(POD, items, POLICY_REPORTS))
    assert max(len(encode(each)) for each in reports) < 1_400_000
    assert {16 * 1024} == {len(each["message"]) for report in reports for each in report["results"]}
    assert 200 == sum(len(each["results"]) for each in reports)


def test_reports_with_letters_of_several_bytes_stay_below_it_as_well() -> None:
    """The limit applies to the UTF-8 bytes that are sent."""
    items = [item(f"policy-{number}", message="語" * 16_000) for number in range(100)]
    reports = list(reports_of(POD, items, POLICY_REPORTS))
    assert max(len(encode(each).encode()) for each in reports) < 1_400_000


def test_properties_of_a_result_are_bounded() -> None:
    """Texts are cut as messages are, and what exceeds 64 KiB is left out; the rest stays as it was."""
    names = [f"p{number:02d}" for number in range(99)]
    properties = {**dict.fromkeys(names, "x" * 30000), "process": "background scan"}
    [report] = reports_of(POD, [item("a", properties=properties)], POLICY_REPORTS)
    found = report["results"][0]["properties"]
    expected = {**dict.fromkeys(names[:3], 16 * 1024), "process": len("background scan")}
    assert expected == {name: len(value) for name, value in found.items()}
    small = item("a", properties={"process": "background scan"})
    assert small is bounded_result(small)


def test_a_cut_result_is_the_same_again() -> None:
    """Its digest is that of the report, and merging keeps its time: otherwise the report would be written for ever."""
    long = item("a", message="x" * 20_000, properties={"p": "y" * 20_000})
    [report] = reports_of(POD, merge_results((), [long], ()), POLICY_REPORTS)
    assert results_digest([long]) == results_digest(report["results"])
    later = {**long, "timestamp": {"seconds": 9, "nanos": 0}}
    assert report["results"] == merge_results(report["results"], [later], ())


def test_a_report_names_its_object_as_owner_and_scope() -> None:
    """In both APIs, for objects of namespaces and for the others."""
    [report] = reports_of(POD, [item(result="fail")], POLICY_REPORTS)
    reference = {"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": UID}
    assert ("wgpolicyk8s.io/v1alpha2", "PolicyReport") == (report["apiVersion"], report["kind"])
    assert ([reference], {**reference, "namespace": "team"}) == (report["metadata"]["ownerReferences"], report["scope"])
    assert {"app.kubernetes.io/managed-by": "kyverno"} == report["metadata"]["labels"]
    assert {"pass": 0, "fail": 1, "warn": 0, "error": 0, "skip": 0} == report["summary"]
    node = ReportSubject(ResourceRef("v1", "Node", "", "n-1"), UID)
    [report] = reports_of(node, [item()], OPENREPORTS)
    assert ("openreports.io/v1alpha1", "ClusterReport") == (report["apiVersion"], report["kind"])
    assert node == subject_of(report)


def test_a_report_without_a_scope_has_no_subject() -> None:
    """Other tools write reports without a scope."""
    assert subject_of({"metadata": {"name": "scan"}}) is None
    assert subject_of({"metadata": {"name": "scan"}, "scope": {"kind": "Pod", "name": 1}}) is None


def test_a_digest_ignores_order_and_time_only() -> None:
    """Everything else that a report shows counts, the order within properties excepted."""
    one, other = item("a", properties={"x": "1", "y": "2"}), item("b")
    swapped = item("a", seconds=7, properties={"y": "2", "x": "1"})
    assert results_digest([one, other]) == results_digest([other, swapped])
    assert results_digest([one]) != results_digest([{**one, "message": "other"}])
    assert results_digest([one]) != results_digest([one, one])
