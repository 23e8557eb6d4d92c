"""Queries of the store."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import pytest

from pyverno.errors import UsageError
from pyverno.report.collected import SEVERITIES, STATUSES
from pyverno.ui.store.filters import NO_FILTER, Filter, fits, read_filter
from pyverno.ui.store.reader import Reader
from pyverno.ui.store.rows import StoredResult
from pyverno.ui.store.schema import create_tables
from pyverno.ui.store.writer import Writer
from tests.unit.ui.store.samples import report, result


def selected(query: str) -> Filter:
    """Return the filter of a query."""
    return read_filter([tuple(part.split("=", 1)) for part in query.split("&") if part], 1000)  # type: ignore[misc]


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def filled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store in each database: six hundred results of all kinds in three clusters, some of them resolved."""
    if request.param == "sqlite":
        place = str(tmp_path_factory.mktemp("filled") / "store.db")
    else:
        place = request.getfixturevalue("postgres").new_schema()
    create_tables(place)
    writer = Writer(place)
    chance = random.Random(7)  # noqa: S311 - the same data in every run
    for number in range(60):
        results = [
            result(
                f"policy-{chance.randrange(4)}",
                f"rule-{index}",
                chance.choice(STATUSES),
                name=f"object-{number}",
                namespace=f"ns-{number % 5}",
                kind=chance.choice(("Pod", "Service")),
                severity=chance.choice(SEVERITIES),
                message=f"text {number * index % 50}",
                properties={"team": f"t{number % 3}", "a b": "x"} if index % 2 else None,
            )
            for index in range(10)
        ]
        labels = {"app": f"a{number % 2}"}
        writer.write([report(*results, name=f"r{number}", cluster=f"c{number % 3}", labels=labels)], 100 + number)
    writer.remove("c0", ["r0", "r3"], 500)
    writer.close()
    return place


@pytest.fixture
def many(filled: str) -> Iterator[Reader]:
    """A reader of six hundred results."""
    opened = Reader(filled)
    yield opened
    opened.close()


def naive(every: list[StoredResult], chosen: Filter) -> list[StoredResult]:
    """Return what a filter selects, by looking at every result; only fields, search and state."""

    def values(each: StoredResult) -> dict[str, str]:
        found, ref = each.collected.finding, each.collected.finding.resource
        return {
            "cluster": each.cluster,
            "source": each.collected.source,
            "category": found.category,
            "policy": found.policy,
            "rule": found.rule,
            "severity": found.severity,
            "status": found.status,
            "namespace": ref.namespace,
            "kind": ref.kind,
            "name": ref.name,
            "apiVersion": ref.api_version,
        }

    def has(each: StoredResult) -> bool:
        found = values(each)
        texts = (each.collected.finding.message, found["name"], found["policy"], found["rule"])
        moment = each.changed if each.resolved is None else each.resolved
        return (
            all(fits(patterns, found[name]) for name, patterns in chosen.fields.items())
            and all(
                fits(patterns, each.collected.finding.properties.get(key, "\0"))
                for key, patterns in chosen.properties.items()
            )
            and any(chosen.search.lower() in text.lower() for text in texts)
            and {"open": each.resolved is None, "resolved": each.resolved is not None, "all": True}[chosen.state]
            and (chosen.since is None or moment >= chosen.since)
            and (chosen.until is None or moment <= chosen.until)
        )

    return [each for each in every if has(each)]


QUERIES = (
    "",
    "status=fail",
    "status=fail,error&severity=high",
    "status=!pass&namespace=ns-1,ns-2",
    "policy=policy-?&kind=P*",
    "policy=!policy-1,!policy-2",
    "severity=-",
    "severity=!-&cluster=c1",
    "name=object-1*",
    "name=object-1&rule=rule-3",
    "search=TEXT 4",
    "search=policy-3&status=warn",
    "search=50%",
    "state=resolved",
    "state=all&namespace=ns-0",
    "since=130&until=140",
    "since=1000s",
    "property.team=t1",
    "property.team=!t1",
    "property.a b=x&status=fail",
    "apiVersion=v2",
    "namespace=[a]",
)


@pytest.mark.parametrize("query", QUERIES)
def test_every_answer_agrees_with_a_look_at_every_result(query: str, many: Reader) -> None:
    """Pages, totals, facets, summaries and resources, by whatever plan they are found."""
    chosen = selected(query)
    every = list(many.each_result(selected("state=all")))
    expected = naive(every, chosen)
    assert 600 == len(every)
    assert [each.id for each in expected] == [each.id for each in many.each_result(chosen)]
    for order in ("latest", "oldest"):
        page = many.results(chosen, order=order, limit=1000)
        assert {each.id for each in expected} == {each.id for each in page.items}
        assert (len(expected), False) == (page.total, page.is_lower_bound)
    counts = Counter(each.collected.finding.status for each in expected)
    assert {status: counts[status] for status in STATUSES} == many.summary(chosen)["summary"]
    by_kind = {
        each["name"]: sum(each[status] for status in STATUSES) for each in many.summary(chosen, "kind")["groups"]
    }
    assert Counter(each.collected.finding.resource.kind for each in expected) == by_kind
    without = Counter(each.collected.finding.severity for each in naive(every, chosen.without("severity")))
    assert without == {each["value"]: each["count"] for each in many.facets(chosen)["severity"]}
    listed = many.resources(chosen, limit=1000)["items"]
    if not chosen.is_about_objects:
        assert {each.object_id for each in expected} == {each["id"] for each in listed}
    fails = Counter(each.object_id for each in expected if each.collected.finding.status == "fail")
    assert all(fails[each["id"]] == each["status"]["fail"] for each in listed)


@pytest.mark.parametrize("order", ["worst", "latest", "oldest"])
@pytest.mark.parametrize("query", ["", "search=text", "status=fail"])
def test_pages_follow_each_other(order: str, query: str, many: Reader) -> None:
    """Pages of any length return every result once and in one order."""
    chosen = selected(query)
    whole = [each.id for each in many.results(chosen, order=order, limit=1000).items]
    found: list[int] = []
    cursor = ""
    while True:
        page = many.results(chosen, order=order, limit=7, cursor=cursor)
        found += [each.id for each in page.items]
        cursor = page.cursor
        if not cursor:
            break
    assert whole == found


def test_the_worst_come_first(many: Reader) -> None:
    """Results are sorted by status, then by severity."""
    found = [each.collected.finding for each in many.each_result(NO_FILTER)]
    ranks = [(STATUSES.index(each.status), SEVERITIES.index(each.severity)) for each in found]
    assert sorted(ranks) == ranks


@pytest.mark.parametrize("cursor", ["x", "W10", "WyJ3b3JzdCJd", "WyJsYXRlc3QiLDEsMV0", "e30", "%00", "/" * 9])
def test_a_foreign_cursor_is_an_error(cursor: str, many: Reader) -> None:
    """An invalid cursor is refused instead of showing the first page."""
    with pytest.raises(UsageError, match="cursor"):
        many.results(NO_FILTER, cursor=cursor)


@pytest.mark.parametrize(
    "query",
    [
        "status=failed",
        "sverity=high",
        "state=closed",
        "since=yesterday",
        "severity=High",
        "policy=" + ",".join("abc" * 40),
    ],
)
def test_a_wrong_filter_is_an_error(query: str) -> None:
    """A typing error must not show everything, or nothing."""
    with pytest.raises(UsageError):
        selected(query)


@pytest.mark.parametrize("text", ["' OR 1=1 --", '"', "%", "_", "\\", "[", "]", "*", "😀", ")"])
def test_texts_of_a_request_stay_texts(text: str, many: Reader) -> None:
    """In every place of a filter; nothing matches them here."""
    for place in ("policy", "name", "search", "property.team", f"property.{text}", f"label.{text}"):
        if text == "*" and place != "search":
            continue
        assert 0 == many.count(read_filter([(place, text)], 0))[0], place


def test_labels_of_reports_select(writer: Writer, reader: Reader) -> None:
    """Label filters take wildcards and exclusions."""
    writer.write([report(result(name=name), name=name, labels={"app": name, "x/y": "1"}) for name in ("one", "two")], 1)
    names = [
        [each.collected.finding.resource.name for each in reader.results(selected(query)).items]
        for query in ("label.app=one", "label.app=t*", "label.app=!one", "label.x/y=1", "label.z=1")
    ]
    assert [["one"], ["two"], ["two"], ["one", "two"], []] == names


def test_an_object_shows_what_is_open_and_what_was(writer: Writer, reader: Reader) -> None:
    """Counts include open results only."""
    writer.write([report(result("p"), result("q"))], 1)
    writer.write([report(result("q"))], 2)
    (listed,) = reader.resources(NO_FILTER)["items"]
    found = reader.resource(listed["id"])
    assert found is not None
    assert (["q"], ["p"], 1) == (
        [each["policy"] for each in found["results"]],
        [each["policy"] for each in found["resolved"]],
        found["status"]["fail"],
    )
    assert None is reader.resource(99)


def test_transitions_are_listed_from_the_latest(writer: Writer, reader: Reader) -> None:
    """Each with the result as it is now."""
    writer.write([report(result(status="fail"))], 1)
    writer.write([report(result(status="pass"))], 2)
    writer.write([report()], 3)
    found = reader.changes(selected("state=all"))
    assert [("pass", ""), ("fail", "pass")] == [(each["before"], each["after"]) for each in found]
    assert found[:1] == reader.changes(selected("state=all"), after=found[1]["id"])


def test_history_is_kept_by_some_fields_only(reader: Reader) -> None:
    """A trend of any other field is an error, since it would silently be wrong."""
    with pytest.raises(UsageError, match="history is kept by"):
        reader.trend(selected("kind=Pod"), 7, 0)
