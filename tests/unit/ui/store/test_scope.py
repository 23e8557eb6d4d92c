"""Within a scope no query returns results of other namespaces."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import orjson
import pytest

from pyverno.ui.store.filters import NO_FILTER, Filter
from pyverno.ui.store.pool import ReaderPool
from pyverno.ui.store.reader import Reader
from pyverno.ui.store.rows import StoredResult
from pyverno.ui.store.schema import create_tables
from pyverno.ui.store.scope import SCOPE
from pyverno.ui.store.writer import Writer
from tests.unit.ui.store.samples import report, result

HIDDEN = "canary"
FILTERS = (
    NO_FILTER,
    Filter(state="all"),
    Filter({"namespace": (HIDDEN,)}),
    Filter({"namespace": ("*",)}),
    Filter({"namespace": ("!own",)}),
    Filter({"name": (f"{HIDDEN}*",)}),
    Filter({"policy": (f"{HIDDEN}-policy",)}, search=HIDDEN),
    Filter(properties={"exceptions": (f"{HIDDEN}-exception",)}),
    Filter(labels={"team": (HIDDEN,)}),
    Filter(since=0),
)
ARGUMENTS: dict[str, tuple[tuple[Any, ...], ...]] = {
    "results": tuple((each,) for each in FILTERS),
    "each_result": tuple((each,) for each in FILTERS),
    "result": tuple((number,) for number in range(1, 12)),
    "exception_uses": ((),),
    "count": tuple((each,) for each in FILTERS),
    "facets": (*((each,) for each in FILTERS), *((each, ("property.exceptions", "label.team")) for each in FILTERS)),
    "facet_keys": tuple((each,) for each in FILTERS),
    "summary": tuple((each, by) for each in FILTERS for by in ("", "policy", "namespace")),
    "resources": tuple((each,) for each in FILTERS),
    "count_resources": tuple((each,) for each in FILTERS),
    "object_severities": tuple((each, range(1, 12)) for each in FILTERS),
    "counts": tuple((each, ("namespace", "policy")) for each in FILTERS),
    "property_values": tuple((each, "exceptions") for each in FILTERS),
    "resource": tuple((number,) for number in range(1, 12)),
    "changes": tuple((each,) for each in FILTERS),
    "trend": ((NO_FILTER, 30, 200_000),),
}
"""The questions of a reader, with arguments that reach for what is out of scope."""


def fill(path: str) -> None:
    """Write results of a namespace in scope, of another, and of none."""
    create_tables(path)
    writer = Writer(path)
    hidden = [
        result(f"{HIDDEN}-policy", f"{HIDDEN}-{status}", status, name=f"{HIDDEN}-{status}", namespace=namespace,
               message=HIDDEN, properties={"exceptions": f"{HIDDEN}-exception"})
        for namespace in (HIDDEN, "")
        for status in ("fail", "skip")
    ]  # fmt: skip
    writer.write([report(*hidden, name="hidden", labels={"team": HIDDEN, HIDDEN: "x"})], 100)
    writer.write([report(result("open", namespace="own"), name="own")], 100)
    writer.end_day(100_000)
    writer.write([report(*hidden[1:], name="hidden", labels={"team": HIDDEN, HIDDEN: "x"})], 200_000)
    writer.close()


def answers(reader: Reader, name: str) -> str:
    """Return everything that a question answers, as one text."""
    found: list[Any] = []
    for arguments in ARGUMENTS[name]:
        answer = getattr(reader, name)(*arguments)
        found.append([*answer] if name in ("each_result",) else repr(answer) if name == "exception_uses" else answer)
    return orjson.dumps(found, default=_plain, option=orjson.OPT_NON_STR_KEYS).decode()


def _plain(value: Any) -> Any:
    if isinstance(value, StoredResult):
        return value.to_json()
    return repr(value)


@pytest.mark.parametrize("name", ARGUMENTS)
def test_nothing_of_another_namespace_is_answered(name: str, tmp_path: Path) -> None:
    """Neither names nor texts nor counts, though the same questions find them without a scope."""
    path = str(tmp_path / "results.db")
    fill(path)
    reader = Reader(path)
    try:
        if name not in ("count", "count_resources", "object_severities", "trend"):
            assert HIDDEN in answers(reader, name).replace("orderings", "")
        reader.scope = frozenset({"own"})
        within = answers(reader, name)
        reader.scope = frozenset()
        nothing = answers(reader, name)
    finally:
        reader.close()
    assert HIDDEN not in within
    assert "open" not in nothing or name in ("resources", "trend")


def test_counts_of_objects_of_another_namespace_are_empty(tmp_path: Path) -> None:
    """They hold no text by which the test above would know them."""
    path = str(tmp_path / "results.db")
    fill(path)
    reader = Reader(path)
    try:
        everything = reader.object_severities(NO_FILTER, range(1, 12))
        reader.scope = frozenset({"own"})
        own = reader.object_severities(NO_FILTER, range(1, 12))
    finally:
        reader.close()
    assert (4, 1) == (sum(map(bool, everything.values())), sum(map(bool, own.values())))


def test_every_query_is_tried_here() -> None:
    """A new method of the reader must be kept within the scope, too."""
    public = {name for name, _ in inspect.getmembers(Reader, inspect.isfunction) if not name.startswith("_")}
    assert public - {"check", "close", "interrupt"} == set(ARGUMENTS)


def test_counts_within_a_scope_are_those_of_the_scope(tmp_path: Path) -> None:
    """Counts, searches and trends include no results outside the scope."""
    path = str(tmp_path / "results.db")
    fill(path)
    reader = Reader(path)
    try:
        reader.scope = frozenset({"own"})
        assert (1, False) == reader.count(NO_FILTER)
        assert (0, False) == reader.count(Filter({"namespace": (HIDDEN,)}))
        assert 1 == reader.count_resources(Filter(search="a"))
        assert [1] == [each["fail"] for each in reader.trend(NO_FILTER, 30, 200_000)][-1:]
        reader.scope = frozenset({""})
        assert 2 == reader.count(Filter(state="all"))[0]
    finally:
        reader.close()


def test_the_scope_of_a_request_is_that_of_its_questions(tmp_path: Path) -> None:
    """A reader that served one request does not keep its scope for the next."""
    import asyncio

    path = str(tmp_path / "results.db")
    fill(path)

    async def play() -> list[int]:
        async with ReaderPool(path, 1) as readers:
            found = [(await readers.ask(lambda reader: reader.count(NO_FILTER)))[0]]
            token = SCOPE.set(frozenset({"own"}))
            found.append((await readers.ask(lambda reader: reader.count(NO_FILTER)))[0])
            SCOPE.reset(token)
            found.append((await readers.ask(lambda reader: reader.count(NO_FILTER)))[0])
        return found

    assert [4, 1, 4] == asyncio.run(play())
