"""Writing reports into the store."""

from __future__ import annotations

from collections import Counter

import pytest

from pyverno.ui.store.database import Role
from pyverno.ui.store.filters import NO_FILTER, read_filter
from pyverno.ui.store.opening import connect
from pyverno.ui.store.reader import Reader
from pyverno.ui.store.writer import Change, Writer, report_of
from tests.unit.ui.store.samples import report, result

ALL = read_filter([("state", "all")], 0)


def moves(changes: list[Change]) -> list[tuple[str, str, str]]:
    """Return name, status before and after of changes."""
    return sorted((each.result.finding.resource.name, each.before, each.after) for each in changes)


def test_a_result_has_a_history(writer: Writer, reader: Reader) -> None:
    """It appears, changes its status, is resolved, and comes back as new; each once."""
    assert [("a", "", "fail")] == moves(writer.write([report(result())], 10))
    assert [] == moves(writer.write([report(result())], 20))
    assert [("a", "fail", "pass")] == moves(writer.write([report(result(status="pass"))], 30))
    (kept,) = reader.results(NO_FILTER).items
    assert (10, 30, None) == (kept.first_seen, kept.changed, kept.resolved)
    assert [("a", "pass", "")] == moves(writer.write([report()], 40))
    assert 0 == reader.count(NO_FILTER)[0]
    assert [40] == [each.resolved for each in reader.results(ALL).items]
    assert [("a", "", "fail")] == moves(writer.write([report(result())], 50))
    (again,) = reader.results(NO_FILTER).items
    assert (50, None) == (again.first_seen, again.resolved)


def test_a_changed_message_keeps_its_result(writer: Writer, reader: Reader) -> None:
    """Its text and the time of its change are new; it is no transition."""
    writer.write([report(result())], 10)
    assert [] == writer.write([report(result(message="still no"))], 20)
    (kept,) = reader.results(NO_FILTER).items
    assert ("still no", 10, 20) == (kept.collected.finding.message, kept.first_seen, kept.changed)


def test_equal_results_of_a_report_are_all_kept(writer: Writer, reader: Reader) -> None:
    """Tools write several results of one rule for one object, with or without an id of their own."""
    own = [result(message=text, properties={"resultID": text}) for text in ("x", "y")]
    writer.write([report(result(), result(message="other"), *own)], 10)
    assert ["no", "other", "x", "y"] == sorted(
        each.collected.finding.message for each in reader.results(NO_FILTER).items
    )
    assert [("a", "fail", "")] == moves(writer.write([report(result(), *own)], 20))


def test_reports_that_are_gone_are_resolved(writer: Writer, reader: Reader) -> None:
    """After a deletion, or when a whole list lacks them; reports of another cluster stay."""
    for name, cluster in (("one", "c"), ("two", "c"), ("three", "c"), ("one", "d")):
        writer.write([report(result(name=name), name=name, cluster=cluster)], 10)
    assert [("one", "fail", "")] == moves(writer.remove("c", ["one", "unknown"], 20))
    assert [("three", "fail", "")] == moves(writer.keep_only("c", {"two"}, 30))
    assert [("c", "two"), ("d", "one")] == sorted(
        (each.cluster, each.collected.finding.resource.name) for each in reader.results(NO_FILTER).items
    )


def test_a_result_that_moves_to_another_report_is_the_same(writer: Writer, reader: Reader) -> None:
    """The order in which the two reports are written does not matter."""
    writer.write([report(result(), name="one")], 10)
    assert [] == writer.write([report(result(), name="two"), report(name="one")], 20)
    (kept,) = reader.results(NO_FILTER).items
    assert 10 == kept.first_seen


def test_counts_are_those_of_the_results(writer: Writer, path: str) -> None:
    """Series and objects count what is open, after every kind of change."""
    writer.write([report(result(name=name), result("q", status="warn", name=name), name=name) for name in "abc"], 10)
    writer.write([report(result(name="a", status="pass"), name="a"), report(name="b")], 20)
    writer.write([report(result(name="b"), result(name="b", rule="x"), name="b")], 30)
    rows = connect(path, Role.READER)
    real = Counter(
        rows.execute(
            "SELECT s.status, r.object FROM results r JOIN series s ON s.id = r.series WHERE r.resolved IS NULL"
        )
    )
    series = dict(rows.execute("SELECT status, sum(open) FROM series GROUP BY 1 HAVING sum(open) > 0"))
    assert Counter(status for status, _ in real.elements()) == series
    for status in ("fail", "warn", "pass"):
        own = {number: count for (found, number), count in real.items() if found == status}
        assert own == {number: count for number, count in rows.execute(f"SELECT id, {status} FROM objects") if count}  # noqa: S608
    rows.close()


def test_a_batch_is_written_whole_or_not_at_all(writer: Writer, reader: Reader) -> None:
    """An error in the middle leaves the store unchanged and the writer usable."""
    writer.write([report(result())], 10)
    broken = report(result(name="b", properties={"x": "\ud800"}), name="two")
    with pytest.raises(TypeError):
        writer.write([report(result(status="pass")), broken], 20)
    assert ["fail"] == [each.collected.finding.status for each in reader.results(NO_FILTER).items]
    writer.write([report(result(status="pass"))], 30)
    assert ["pass"] == [each.collected.finding.status for each in reader.results(NO_FILTER).items]


def test_the_end_of_a_day_keeps_counts_and_drops_what_is_old(writer: Writer, reader: Reader) -> None:
    """Results that were resolved before the retention period go, with all rows that only they used."""
    writer.write([report(result(name="old"), name="old"), report(result(name="new"), name="new")], 10)
    writer.remove("c", ["old"], 20)
    writer.end_day(86_400 - 1)
    writer.end_day(86_400 * 2 - 1)
    assert ["new"] == [each.collected.finding.resource.name for each in reader.results(ALL).items]
    assert [1, 1] == [day["fail"] for day in reader.trend(NO_FILTER, 7, 86_400 * 2)[-2:]]
    assert [] == reader.resources(read_filter([("name", "old")], 0))["items"]


def test_reports_of_a_cluster_are_read_as_objects() -> None:
    """Kind, namespace and name identify a report; labels that are not strings are dropped."""
    body = {
        "kind": "PolicyReport",
        "metadata": {"namespace": "team", "name": "x", "labels": {"a": "b", "c": 1}},
        "results": [{"policy": "p", "result": "fail"}],
    }
    read = report_of("c", body)
    assert ("PolicyReport/team/x", {"a": "b"}, 1) == (read.name, read.labels, len(read.results))


def test_long_and_strange_texts_are_kept(writer: Writer, reader: Reader) -> None:
    """Fields are cut to 253 bytes; messages of any length are kept whole, and so is everything beside a NUL."""
    long = "\u00e4" * 50_000
    writer.write([report(result(policy=long, rule="r" * 9000, message=long + "%s ? {", name="n" * 300))], 10)
    writer.write([report(result(message="a\0b", properties={"k": "v", "%": "?"}), name="two")], 20)
    found = [each.collected.finding for each in reader.results(NO_FILTER).items]
    assert [("p", "r"), ("\u00e4" * 126, "r" * 253)] == sorted((each.policy, each.rule) for each in found)
    assert {3, 100_000 // 2 + 6} == {len(each.message) for each in found}
    assert 1 == reader.count(read_filter([("property.%", "?")], 0))[0]


def test_numbers_of_series_are_never_used_twice(writer: Writer, reader: Reader) -> None:
    """Readers remember the fields of a series by its number, beyond the series itself."""
    writer.write([report(result("a"), name="a"), report(result("b"), name="b")], 10)
    assert ["a", "b"] == [each["value"] for each in reader.facets(NO_FILTER)["policy"]]
    writer.remove("c", ["a", "b"], 20)
    writer.end_day(86_400)
    writer.write([report(result("d", status="warn"), name="d"), report(result("e"), name="e")], 90_000)
    assert ["d", "e"] == [each["value"] for each in reader.facets(NO_FILTER)["policy"]]
    assert [("fail", 1), ("warn", 1)] == [(each["value"], each["count"]) for each in reader.facets(NO_FILTER)["status"]]
